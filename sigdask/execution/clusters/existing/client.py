"""Use of the caller's own dask clients and clusters, which are left running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sigdask.errors import ClusterLostError, InputError, SigdaskError
from sigdask.execution.clusters import versions
from sigdask.execution.clusters.base import Cluster, get_first_line, log
from sigdask.execution.clusters.existing.discover import get_status, is_closed
from sigdask.execution.clusters.settings import describe_differences, settings
from sigdask.execution.clusters.waiting import wait_for_workers

WAIT_SECONDS = 600.0
"""Seconds for the first worker: of a queue they may take long."""

GRAPH_WARNING_SETTING = "distributed.admin.large-graph-warning-threshold"
"""What this program sets while it uses a client; all else is its owner's."""

WARNED_SCHEDULERS: set[str] = set()
"""Schedulers whose settings were named."""


@contextmanager
def use_client(handle: Any) -> Iterator[Cluster]:
    """Yield a connection to the caller's client or cluster; only a client that is opened here is closed afterwards.

    It is the caller's own session, so that metrics defined in it (a notebook, a script) are sent by value.

    Raises
    ------
    InputError
        It is closed, its event loop is the one that runs here, or versions differ.
    ClusterLostError
        It does not answer, no worker came in time, or it was closed meanwhile.
    """
    import dask

    _check_open(handle)
    _check_event_loop(handle)
    with _open_client(handle) as client, dask.config.set({GRAPH_WARNING_SETTING: settings()[GRAPH_WARNING_SETTING]}):
        try:
            _wait_for_worker(client)
            versions.check_versions(client)
            _warn_settings(client)
            n_threads = max(1, sum(client.nthreads().values()))
        except SigdaskError:
            raise
        except (OSError, RuntimeError, ValueError) as error:  # dask's errors of lost connections are OSErrors
            raise ClusterLostError(f"the cluster that was given does not answer: {get_first_line(error)}") from None
        try:
            yield Cluster("dask", n_threads, client)
        except Exception as error:
            if is_closed(client):
                raise ClusterLostError(f"the {type(handle).__name__} that was given was closed meanwhile") from error
            raise


def _check_open(handle: Any) -> None:
    if is_closed(handle):
        raise InputError(
            f"the {type(handle).__name__} that was given is {get_status(handle)}; give one that is running"
        )


def _check_event_loop(handle: Any) -> None:
    if getattr(handle, "asynchronous", False):
        raise InputError(
            f"this {type(handle).__name__} belongs to the event loop that runs here, which a comparison would block: "
            "`await asyncio.to_thread(sigdask.compare_all, counts, cluster=...)`, or give a client made without "
            "asynchronous=True"
        )


@contextmanager
def _open_client(handle: Any) -> Iterator[Any]:
    if hasattr(handle, "run_on_scheduler"):
        yield handle
        return
    from distributed import Client

    try:  # never its own get_client(), which may give the caller's
        client = Client(handle, set_as_default=False)
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        raise InputError(f"cannot connect to this {type(handle).__name__}: {get_first_line(error)}") from None
    try:
        yield client
    finally:
        client.close()


def _wait_for_worker(client: Any) -> None:
    """Wait until the client has a worker; a small task is submitted so that an adaptive cluster starts one."""
    if client.nthreads():
        return
    what = f"the scheduler at {client.scheduler.address}"
    log.warning("%s has no workers yet: waiting for the first, up to %.0f s (`cluster.scale(n)` asks for some)",
                what, WAIT_SECONDS)  # fmt: skip
    future = client.submit(abs, 0, pure=False)
    try:
        wait_for_workers(client, 1, seconds=WAIT_SECONDS, what=what, get_status=lambda: "")
    finally:
        future.release()


def _warn_settings(client: Any) -> None:
    """Warn, once per scheduler, if it lacks settings for fast recovery from lost workers."""
    import dask

    if client.scheduler_info(n_workers=0)["id"] in WARNED_SCHEDULERS:
        return
    WARNED_SCHEDULERS.add(client.scheduler_info(n_workers=0)["id"])
    differences = describe_differences(client.run_on_scheduler(dask.config.get, "distributed"))
    if differences:
        log.warning(
            "the scheduler at %s lacks settings that recover sooner from lost workers (the counts are the same): %s; "
            "docs/clusters.md says how to set them",
            client.scheduler.address,
            ", ".join(differences),
        )
