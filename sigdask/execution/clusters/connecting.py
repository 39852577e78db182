"""Clusters that run already: the caller's client or cluster, or a scheduler's address (given or in dask's settings).

Start and end of clusters of any kind: settings, certificates, size, and waiting for workers.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from sigdask.errors import ClusterLostError, InputError, SigdaskError, UnfinishedError
from sigdask.execution.clusters.base import (
    SETTINGS,
    Cluster,
    get_first_line,
    hide_working_directory,
    is_closed,
    log,
    silence_dask,
)
from sigdask.execution.clusters.description import ClusterDescription, build_security
from sigdask.io import count_cores

CONNECT_SECONDS = 10

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@contextmanager
def connect_address(description: ClusterDescription) -> Iterator[Cluster]:
    """Yield the cluster of the scheduler whose address is described."""
    import dask
    from distributed import Client

    address = description.options.address
    if not address.startswith(("tcp://", "tls://")):
        raise description.build_error(f"address {address!r}: must be tcp://HOST:PORT or tls://HOST:PORT")
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(SETTINGS))
        stack.enter_context(silence_dask())
        try:
            client = stack.enter_context(
                Client(address, timeout=CONNECT_SECONDS, security=_get_security(description, address))
            )
        except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
            raise InputError(
                f"no dask scheduler answers at {address} ({get_first_line(error)})",
                remedy="check that it runs, and that address and certificates are right",
            ) from None
        log_dashboard(client)
        wait_for_worker(client, description)
        yield Cluster("dask", max(1, sum(client.nthreads().values())), client, remote=True)


def _get_security(description: ClusterDescription, address: str) -> Any:
    """Return the client's TLS certificates, from the description or else from dask's settings; None for plain tcp."""
    import dask
    from distributed.security import Security

    if address.startswith("tcp://"):
        if urlsplit(address).hostname not in LOOPBACK:
            text = "%s: plain tcp without TLS: anyone who can reach this port can run code there; use tls://"
            log.warning(text, address)
        return None
    if description.certificates is not None:
        return build_security(description)
    if not dask.config.get("distributed.comm.tls.ca-file", None):
        raise InputError(
            f"{address}: TLS needs certificates: name them in a cluster file ([certificates] ca, cert and key), "
            "or in dask's settings (DASK_DISTRIBUTED__COMM__TLS__CA_FILE and so on)"
        )
    return Security(require_encryption=True)


def read_scheduler_file(file: Path) -> str:
    """Return the address in a file that `dask scheduler --scheduler-file` has written."""
    try:
        return str(json.loads(file.read_text(encoding="utf-8"))["address"])
    except FileNotFoundError:
        raise InputError(f"scheduler file {file}: no such file") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"scheduler file {file}: has no address of a scheduler; `dask scheduler --scheduler-file` writes one"
        ) from None


@contextmanager
def use_client(handle: Any) -> Iterator[Cluster]:
    """Yield a connection to the caller's client or cluster; only a client that is opened here is closed afterwards.

    It is the caller's own session. So metrics defined in it (in a notebook or script) are sent by value.

    Raises
    ------
    InputError
        The client is closed, or it uses the running event loop.
    ClusterLostError
        The cluster does not answer, or the client was closed.
    """
    import dask

    name = type(handle).__name__
    if is_closed(handle):
        raise InputError(f"the given {name} is closed", remedy="give one that is running")
    if getattr(handle, "asynchronous", False):
        raise InputError(
            f"this {name} belongs to the running event loop, which a comparison would block",
            remedy="use `await asyncio.to_thread(sigdask.compare_all, counts, cluster=...)`, or a client made "
            "without asynchronous=True",
        )
    with (
        _open_client(handle) as client,
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}),  # panels are sent once, on purpose
    ):
        try:
            n_threads = sum(client.nthreads().values())
            if not n_threads:
                log.warning("the scheduler at %s has no workers yet: waiting for some", client.scheduler.address)
            yield Cluster("dask", max(1, n_threads), client)
        except Exception as error:
            if is_closed(client):
                raise ClusterLostError(f"the given {name} was closed during the run") from error
            raise


@contextmanager
def _open_client(handle: Any) -> Iterator[Any]:
    from distributed import Client

    if hasattr(handle, "run_on_scheduler"):
        yield handle
        return
    try:  # not its own get_client(), which may return the caller's
        client = Client(handle, set_as_default=False)
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        raise InputError(f"cannot connect to this {type(handle).__name__}: {get_first_line(error)}") from None
    with client:
        yield client


REMOTE_SCHEDULERS = ("ssh", "kubernetes")
"""Kinds whose scheduler is not in this process."""


@contextmanager
def start_cluster(description: ClusterDescription) -> Iterator[Cluster]:
    """Start a cluster, wait for its first worker unless it starts with none, and yield it; it is closed afterwards.

    Parameters
    ----------
    description : ClusterDescription
        Description of the cluster.
    """
    import dask
    from distributed import Client

    description = description.with_workers(None if description.maximum else _choose_size(description))
    with ExitStack() as stack:
        # a job in a queue may take as long to replace a lost worker as to start the first
        lost = {"distributed.scheduler.no-workers-timeout": f"{description.wait} s"}
        stack.enter_context(dask.config.set(SETTINGS | lost))
        stack.enter_context(silence_dask())
        if description.kind not in REMOTE_SCHEDULERS:
            # dask imports from its temporary folder; its own is permanent, and others may be able to write to it
            root = dask.config.get("temporary-directory", None)
            folder = TemporaryDirectory(prefix="sigdask-dask-", dir=root, ignore_cleanup_errors=True)
            stack.enter_context(dask.config.set({"temporary-directory": stack.enter_context(folder)}))
        security = build_security(description)
        if security is None and description.kind != "local":
            text = "%s: plain tcp without TLS: anyone who can reach the scheduler's port can run code there"
            log.warning(text, description.source)
        cluster = _start(stack, description, security)
        client = stack.enter_context(Client(cluster, security=security))
        log_dashboard(client)
        get_status = getattr(cluster, "get_status", str)
        _set_size(cluster, description)
        if description.maximum is None or description.minimum:
            wait_for_worker(client, description, get_status, getattr(cluster, "is_hopeless", bool))
        n_expected = (description.maximum or description.workers or 1) * description.n_threads
        n_threads = max(n_expected, sum(client.nthreads().values()))
        yield Cluster("dask", n_threads, client, description.kind != "local", get_status)


def _choose_size(description: ClusterDescription) -> int:
    """Return the number of workers: as described, or else one per core, per host, per Slurm task, or one."""
    defaults = {
        "local": count_cores(),
        "ssh": max(1, len(description.options.hosts) - 1),
        "allocation": int(os.environ.get("SLURM_NTASKS", "1")),
    }
    return description.workers or defaults.get(description.kind, 1)


def _set_size(cluster: Any, description: ClusterDescription) -> None:
    """Let dask follow the work, or keep a fixed size: `adapt` replaces lost workers, and `scale` does not."""
    if description.kind == "allocation":  # srun has started the workers
        return
    smallest, largest = description.minimum, description.maximum
    if largest is None:
        smallest = largest = description.workers or 1
    if hasattr(cluster, "worker_spec"):
        cluster.scale(smallest)
        # four tasks of a second are in flight for each thread, so a target of 1 s reaches the maximum
        pace = {"Adaptive": _build_adaptive_class(), "target_duration": "1s", "wait_count": 10}
        cluster.adapt(minimum=smallest, maximum=largest, **pace)
    elif description.maximum is not None:
        cluster.adapt(minimum=smallest, maximum=largest)


@cache
def _build_adaptive_class() -> Any:
    from distributed.deploy.adaptive import Adaptive

    class ReplacingAdaptive(Adaptive):  # type: ignore[misc]
        """Also replaces workers that never started, as a refused job, or a process that was killed as it began.

        dask counts them as requested for ever.
        """

        async def recommendations(self, target: int) -> Any:
            for name, worker in list(self.cluster.workers.items()):
                if worker.status.name in {"created", "closed", "failed"}:
                    del self.cluster.workers[name]
            return await super().recommendations(target)

    return ReplacingAdaptive


def _start(stack: ExitStack, description: ClusterDescription, security: Any) -> Any:
    """Return a new cluster, which the stack closes; raise unless it starts within the time `wait`.

    Its threads and processes ignore Ctrl-C, which only this process handles. They inherit this from the thread.
    """
    module = import_module(f"sigdask.execution.clusters.{description.kind}")
    context: AbstractContextManager[Any] = module.open_cluster(description, security)
    future: Future[Any] = Future()

    def run() -> None:
        if hasattr(signal, "pthread_sigmask"):
            with hide_working_directory():
                resource_tracker.ensure_running()  # whose start would undo it
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            future.set_result(context.__enter__())
        except BaseException as error:  # noqa: BLE001  # raised where it was asked for
            future.set_exception(error)

    stack.callback(_close_cluster, future, context)
    threading.Thread(target=run, daemon=True, name="starting a cluster").start()
    try:
        return future.result(timeout=description.wait)
    except SigdaskError:
        raise
    except (TypeError, ValueError, ImportError) as error:
        raise InputError(f"{description.source}: class {description.kind}: {get_first_line(error)}") from None
    except Exception as error:  # noqa: BLE001  # whatever dask's class raises
        reason = get_first_line(error) if future.done() else f"no answer within {description.wait:.0f} s"
        raise ClusterLostError(f"{description.source}: the cluster did not start: {reason}") from None


def _close_cluster(future: Future[Any], context: AbstractContextManager[Any]) -> None:
    """Close a cluster, also one that is still starting after Ctrl-C; errors of a lost cluster are only logged."""
    try:
        future.result(timeout=30).close(timeout=30)
    except Exception as error:  # noqa: BLE001
        log.debug("closing: %s", get_first_line(error))
    if future.done() and future.exception() is None:
        context.__exit__(None, None, None)


def wait_for_worker(
    client: Any,
    description: ClusterDescription,
    get_status: Callable[[], str] = str,
    is_hopeless: Callable[[], bool] = bool,
) -> None:
    """Wait until a cluster has a worker; a line every ten seconds shows the queue's status.

    Raises
    ------
    UnfinishedError
        No worker came in time, or none will ever come. The message ends with the queue's status.
    """
    seconds = 0
    while seconds < description.wait and not is_hopeless():
        with suppress(TimeoutError):
            client.wait_for_workers(1, timeout=1)
            return
        seconds += 1
        if seconds % 10 == 0:
            log.info("waiting for the first worker of %s %s", description.source, get_status())
    status = get_status()
    raise UnfinishedError(
        f"{description.source}: no worker arrived within {seconds} s. Check that jobs can run there, or set a longer "
        f"time with the key wait{f'; the queue says: {status}' if status else ''}"
    )


def log_dashboard(client: Any) -> None:
    """Log the address of the scheduler's dashboard, if it has one; dask names a port even without a dashboard."""
    has_dashboard = client.run_on_scheduler(lambda dask_scheduler: bool(dask_scheduler.http_application.applications))
    if has_dashboard:
        log.info("dashboard: %s", client.dashboard_link)
