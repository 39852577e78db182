"""Which client or cluster is at hand already: handed over by the caller, active here, or named by dask's settings."""

from __future__ import annotations

import os
import site
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any


def is_handed(cluster: Any) -> bool:
    """Say whether this is a client or a cluster of dask's, of whatever class.

    Examples
    --------
    >>> is_handed("local"), is_handed({"class": "local"})
    (False, False)
    """
    return any(hasattr(cluster, own) for own in ("scheduler_address", "run_on_scheduler"))


def active() -> Any:
    """Return the active client, else the address of a scheduler in dask's settings, else None.

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
    return configured() if "dask" in sys.modules or _may_be_set() else None


def configured() -> Any:
    """Return the address of the scheduler that dask's settings name, None where they name none."""
    import dask

    address = dask.config.get("scheduler-address", None)
    if address is None:
        return None
    return address if "://" in address else f"{dask.config.get('distributed.comm.default-scheme', 'tcp')}://{address}"


def _may_be_set() -> bool:
    """Say whether the environment, or a file where dask keeps its settings, speaks of a scheduler's address."""
    if "DASK_SCHEDULER_ADDRESS" in os.environ:
        return True
    places = [os.environ.get("DASK_ROOT_CONFIG", "/etc/dask"), os.path.expanduser("~/.config/dask")]  # noqa: PTH111  # may be none
    places += [f"{prefix}/etc/dask" for prefix in (sys.prefix, *site.PREFIXES)]
    places += [os.environ["DASK_CONFIG"]] if "DASK_CONFIG" in os.environ else []
    return any(_speak_of_address(Path(place)) for place in places)


def _speak_of_address(place: Path) -> bool:
    """Say whether a file, or one of those in a folder, speaks of it; what cannot be read does not, to dask either."""
    with suppress(OSError):
        files = [place] if place.is_file() else [*place.glob("*.[yj]*")]
        return any(b"scheduler-address" in file.read_bytes().replace(b"_", b"-") for file in files)
    return False


def is_gone(cluster: Any) -> bool:
    """Say whether this is a client or a cluster of the caller's that is closed: it does not come back."""
    return is_handed(cluster) and status_of(cluster) in {"closed", "closing", "failed"}


def status_of(given: Any) -> str:
    """Return in one word how a client or cluster is."""
    status = getattr(given, "status", None)
    return str(getattr(status, "name", status))  # dask-gateway's is a word, dask's own an enumeration
