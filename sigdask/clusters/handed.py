"""A client or a cluster that the caller has already: used as it is, and left running."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sigdask.clusters import versions
from sigdask.clusters.base import Cluster, first_line, log
from sigdask.clusters.settings import lacking, settings
from sigdask.clusters.waiting import wait_for_workers
from sigdask.errors import ClusterLostError, InputError, SigdaskError

WAIT = 600.0
"""Seconds for the first worker: of a queue they may take long."""

OURS = "distributed.admin.large-graph-warning-threshold"
"""What this program sets while it uses a client; all else is its owner's."""

TOLD: set[str] = set()
"""Schedulers whose settings were named."""


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


@contextmanager
def used(given: Any) -> Iterator[Cluster]:
    """Use a client, or a cluster by a client of our own, which alone is closed in the end.

    It is the caller's own session, so that metrics defined in it (a notebook, a script) are sent by value.

    Raises
    ------
    InputError
        It is closed, its event loop is the one that runs here, or versions differ.
    ClusterLostError
        It does not answer, no worker came in time, or it was closed meanwhile.
    """
    import dask

    _refuse_closed(given)
    _refuse_own_loop(given)
    with _client_of(given) as client, dask.config.set({OURS: settings()[OURS]}):
        try:
            _wait(client)
            versions.check(client)
            _name_settings(client)
            n_threads = max(1, sum(client.nthreads().values()))
        except SigdaskError:
            raise
        except (OSError, RuntimeError, ValueError) as error:  # dask's errors of lost connections are OSErrors
            raise ClusterLostError(f"the cluster that was given does not answer: {first_line(error)}") from None
        try:
            yield Cluster("dask", n_threads, client)
        except Exception as error:
            if is_gone(client):
                raise ClusterLostError(f"the {type(given).__name__} that was given was closed meanwhile") from error
            raise


def is_gone(cluster: Any) -> bool:
    """Say whether this is a client or a cluster of the caller's that is closed: it does not come back."""
    return is_handed(cluster) and _status(cluster) in {"closed", "closing", "failed"}


def _status(given: Any) -> str:
    status = getattr(given, "status", None)
    return str(getattr(status, "name", status))  # dask-gateway's is a word, dask's own an enumeration


def _refuse_closed(given: Any) -> None:
    if is_gone(given):
        raise InputError(f"the {type(given).__name__} that was given is {_status(given)}; give one that is running")


def _refuse_own_loop(given: Any) -> None:
    if getattr(given, "asynchronous", False):
        raise InputError(
            f"this {type(given).__name__} belongs to the event loop that runs here, which a comparison would block: "
            "`await asyncio.to_thread(sigdask.compare_all, counts, cluster=...)`, or give a client made without "
            "asynchronous=True"
        )


@contextmanager
def _client_of(given: Any) -> Iterator[Any]:
    if hasattr(given, "run_on_scheduler"):
        yield given
        return
    from distributed import Client

    try:  # never its own get_client(), which may give the caller's
        client = Client(given, set_as_default=False)
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        raise InputError(f"cannot connect to this {type(given).__name__}: {first_line(error)}") from None
    try:
        yield client
    finally:
        client.close()


def _wait(client: Any) -> None:
    """Wait for a worker; a task that does nothing makes a cluster whose size follows the work start one."""
    if client.nthreads():
        return
    what = f"the scheduler at {client.scheduler.address}"
    log.warning("%s has no workers yet: waiting for the first, up to %.0f s (`cluster.scale(n)` asks for some)",
                what, WAIT)  # fmt: skip
    wanted = client.submit(abs, 0, pure=False)
    try:
        wait_for_workers(client, 1, seconds=WAIT, what=what, said=lambda: "")
    finally:
        wanted.release()


def _name_settings(client: Any) -> None:
    """Name, once a scheduler, the settings against lost workers that it lacks; the counts are the same without."""
    import dask

    if client.scheduler_info(n_workers=0)["id"] in TOLD:
        return
    TOLD.add(client.scheduler_info(n_workers=0)["id"])
    found = lacking(client.run_on_scheduler(dask.config.get, "distributed"))
    if found:
        log.warning(
            "the scheduler at %s lacks settings that recover sooner from lost workers (the counts are the same): %s; "
            "docs/clusters.md says how to set them",
            client.scheduler.address,
            ", ".join(found),
        )
