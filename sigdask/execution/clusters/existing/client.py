"""A client or a cluster that the caller has already: used as it is, and left running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sigdask.errors import ClusterLostError, InputError, SigdaskError
from sigdask.execution.clusters import versions
from sigdask.execution.clusters.base import Cluster, first_line, log
from sigdask.execution.clusters.existing.discover import is_gone, status_of
from sigdask.execution.clusters.settings import lacking, settings
from sigdask.execution.clusters.waiting import wait_for_workers

WAIT = 600.0
"""Seconds for the first worker: of a queue they may take long."""

OURS = "distributed.admin.large-graph-warning-threshold"
"""What this program sets while it uses a client; all else is its owner's."""

TOLD: set[str] = set()
"""Schedulers whose settings were named."""


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


def _refuse_closed(given: Any) -> None:
    if is_gone(given):
        raise InputError(f"the {type(given).__name__} that was given is {status_of(given)}; give one that is running")


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
