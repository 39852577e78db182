"""What clusters that this process starts have in common: settings, TLS, size, workers, versions."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sigdask.errors import ClusterLostError, InputError, SigdaskError
from sigdask.execution.certificates import Files, provided
from sigdask.execution.clusters import versions
from sigdask.execution.clusters.base import Cluster, first_line, log, nothing_to_say, quiet
from sigdask.execution.clusters.description import Description, only
from sigdask.execution.clusters.settings import settings
from sigdask.execution.clusters.waiting import wait_for_workers
from sigdask.execution.clusters.watchdog import watched
from sigdask.io.folders import own_folder

ADAPTIVE = {"target_duration": "1s", "wait_count": 10}
"""Four tasks of a second are in flight for each thread, so that a target of 1 s reaches the maximum."""

QUIET_WORKER = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
"""A worker serves pages even without its dashboard; they stay on loopback."""

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


def nothing_to_do() -> None:
    """Leave nothing behind."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterKind:
    """How one kind of cluster is started.

    Attributes
    ----------
    make : callable
        `(description, files)` to a dask cluster; files are None for plain tcp.
    said : callable
        What its queue says.
    vanished : callable, optional
        Says of a job whether its queue no longer knows it.
    hopeless : callable
        Says that no worker will ever come.
    threads : int
        Threads of a worker, where known before it is there.
    remote : bool
        Workers may be other machines.
    scratch : bool
        Its scheduler writes and imports here: in a folder of this run's own, as others could fill a common one.
    after : callable
        What is left to do once the cluster is closed.
    """

    make: Callable[[Description, Files | None], Any]
    said: Callable[[], str] = nothing_to_say
    vanished: Callable[[Any], bool] | None = None
    hopeless: Callable[[], bool] = bool
    threads: int = 1
    remote: bool = True
    scratch: bool = False
    after: Callable[[], None] = nothing_to_do


@contextmanager
def started(description: Description, kind: ClusterKind, *, config: dict[str, Any] | None = None) -> Iterator[Cluster]:
    """Start a cluster, wait for its first worker, hold versions together, and close it in the end.

    Parameters
    ----------
    description : Description
        What to start.
    kind : ClusterKind
        How.
    config : dict, optional
        Further dask settings.
    """
    import dask
    from distributed import Client

    from sigdask.execution.clusters.hung_workers import HungWorkers

    with ExitStack() as stack:
        files = stack.enter_context(provided(description))
        tls = files.config() if files is not None else {}
        stack.enter_context(dask.config.set({**settings(), **tls, **(config or {})}))
        stack.enter_context(quiet())
        if kind.scratch:
            stack.enter_context(dask.config.set({"temporary-directory": _scratch(stack)}))
        if files is None and kind.remote:
            log.warning("%s: plain tcp: whoever reaches the scheduler's port can run code on it", description.where)
        stack.callback(kind.after)
        cluster = stack.enter_context(_made(description, kind, files))
        security = files.security() if files is not None else None
        ours = hasattr(cluster, "worker_spec")
        client = stack.enter_context(Client(cluster if ours else cluster.scheduler_address, security=security))
        _size(cluster, description)
        announce(client)
        if kind.remote:
            client.register_plugin(HungWorkers())
        wait_for_workers(
            client, 1, seconds=description.wait, what=description.where, said=kind.said, hopeless=kind.hopeless
        )
        if kind.remote:
            versions.check(client)
        if not description.adaptive and description.workers is not None and ours:
            stack.enter_context(watched(cluster, client, description.workers, vanished=kind.vanished))
        expected = (description.expected or 0) * kind.threads
        n_threads = max(1, expected, sum(client.nthreads().values()))
        yield Cluster("dask", n_threads, client, kind.remote, kind.said)


def _scratch(stack: ExitStack) -> str:
    """Return a folder that is gone in the end; dask's own, /tmp/dask-scratch-space, stays, and is all users' one."""
    import dask

    root = dask.config.get("temporary-directory", None)
    try:
        return str(stack.enter_context(own_folder("sigdask-dask-", Path(root) if root else None)))
    except OSError as error:
        raise InputError(f"no temporary folder can be made ({error.strerror}); TMPDIR names another place") from None


def announce(client: Any) -> None:
    """Log where the dashboard is, where there is one; those of clusters we start listen on loopback only."""
    port = client.scheduler_info(n_workers=0).get("services", {}).get("dashboard")
    host = urlsplit(client.scheduler.address).hostname
    if port:
        elsewhere = "" if host in {*LOOPBACK, *_own_addresses()} else f" on {host}"
        log.info("dashboard: http://127.0.0.1:%d/status%s", port, elsewhere)


def _own_addresses() -> set[str]:
    import psutil

    return {address.address for found in psutil.net_if_addrs().values() for address in found}


def accepts(description: Description, known: tuple[str, ...]) -> dict[str, Any]:
    """Return the options of a description, all of which must be known."""
    only(description.options, known, f"{description.where}: [options]")
    return dict(description.options)


@contextmanager
def _made(description: Description, kind: ClusterKind, files: Files | None) -> Iterator[Any]:
    try:
        cluster = _deaf(partial(kind.make, description, files))
    except SigdaskError:
        raise
    except (TypeError, ValueError, ImportError) as error:
        raise InputError(f"{description.where}: class {description.kind}: {first_line(error)}") from None
    except Exception as error:  # noqa: BLE001  # whatever a class of the user's raises
        word = kind.said()
        detail = f"; it says: {word}" if word else ""
        raise ClusterLostError(f"{description.where}: the cluster did not start: {first_line(error)}{detail}") from None
    try:
        yield cluster
    finally:
        _close(cluster)


def _deaf(make: Callable[[], Any]) -> Any:
    """Make a cluster whose threads and processes do not hear Ctrl-C, which is for this process to act on.

    They inherit it from the thread that makes it. One that is interrupted meanwhile is made to its end and closed.
    """
    made: Future[Any] = Future()

    def run() -> None:
        if hasattr(signal, "pthread_sigmask"):
            resource_tracker.ensure_running()  # whose start would undo it
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            made.set_result(make())
        except BaseException as error:  # noqa: BLE001  # raised where it was asked for
            made.set_exception(error)

    threading.Thread(target=run, daemon=True, name="making a cluster").start()
    try:
        return made.result()
    except KeyboardInterrupt:
        if made.exception() is None:
            _close(made.result())
        raise


def _close(cluster: Any) -> None:
    """Close a cluster; what a lost one says while closing is of no use."""
    try:
        cluster.close(timeout=30)
    except Exception as error:  # noqa: BLE001
        log.debug("closing: %s", first_line(error))


def _size(cluster: Any, description: Description) -> None:
    if description.adaptive:
        cluster.adapt(minimum=description.minimum or 0, maximum=description.maximum, **ADAPTIVE)
    elif description.workers is not None:
        cluster.scale(description.workers)
