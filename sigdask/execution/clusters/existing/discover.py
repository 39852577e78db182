"""Discovery of a client or cluster that runs: passed by the caller, active, or named in dask's settings."""

from __future__ import annotations

import os
import site
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any


def is_dask_object(cluster: Any) -> bool:
    """Return whether an object is a client or cluster of dask, by its attributes.

    Examples
    --------
    >>> is_dask_object("local"), is_dask_object({"class": "local"})
    (False, False)
    """
    return any(hasattr(cluster, attribute) for attribute in ("scheduler_address", "run_on_scheduler"))


def find_active() -> Any:
    """Return dask's active client, else the scheduler's address in dask's settings, else None.

    Within a task there is none: it would wait for tasks that wait for it. dask is imported only where its settings
    may name a scheduler.
    """
    if "distributed" in sys.modules:
        import distributed

        with suppress(ValueError):
            distributed.get_worker()
            return None
        with suppress(ValueError):
            return distributed.Client.current()
    return get_configured_address() if "dask" in sys.modules or _may_have_address() else None


def get_configured_address() -> Any:
    """Return the scheduler's address in dask's settings, or None."""
    import dask

    address = dask.config.get("scheduler-address", None)
    if address is None:
        return None
    return address if "://" in address else f"{dask.config.get('distributed.comm.default-scheme', 'tcp')}://{address}"


def _may_have_address() -> bool:
    """Return whether the environment or any of dask's settings files may name a scheduler's address."""
    if "DASK_SCHEDULER_ADDRESS" in os.environ:
        return True
    paths = [os.environ.get("DASK_ROOT_CONFIG", "/etc/dask"), os.path.expanduser("~/.config/dask")]  # noqa: PTH111  # may be none
    paths += [f"{prefix}/etc/dask" for prefix in (sys.prefix, *site.PREFIXES)]
    paths += [os.environ["DASK_CONFIG"]] if "DASK_CONFIG" in os.environ else []
    return any(_mentions_address(Path(path)) for path in paths)


def _mentions_address(path: Path) -> bool:
    """Return whether a settings file, or one in a folder, contains "scheduler-address"; False if unreadable."""
    with suppress(OSError):
        files = [path] if path.is_file() else [*path.glob("*.[yj]*")]
        return any(b"scheduler-address" in file.read_bytes().replace(b"_", b"-") for file in files)
    return False


def is_closed(cluster: Any) -> bool:
    """Return whether an object is a client or cluster of dask that is closed and cannot be used again."""
    return is_dask_object(cluster) and get_status(cluster) in {"closed", "closing", "failed"}


def get_status(handle: Any) -> str:
    """Return the status of a client or cluster as one word."""
    status = getattr(handle, "status", None)
    return str(getattr(status, "name", status))  # dask-gateway's is a word, dask's own an enumeration
