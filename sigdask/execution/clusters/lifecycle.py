"""Start, watch and end of clusters of any kind: settings, certificates, size, waiting for workers, version checks.

Lost workers are replaced as long as a cluster is in use. dask alone does not do this: a nanny whose worker dies while
it restarts ends, `scale` does not replace a job that was cancelled, and a job whose submission failed counts as
running.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from multiprocessing import resource_tracker
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

from sigdask.errors import ClusterLostError, InputError, SigdaskError, UnfinishedError
from sigdask.execution.clusters.base import Cluster, get_first_line, log, silence_dask
from sigdask.execution.clusters.description import ClusterDescription, check_keys
from sigdask.execution.clusters.settings import check_versions, settings
from sigdask.execution.clusters.tls import TlsFiles, open_tls_files
from sigdask.text import format_list

CHECK_SECONDS = 2.0
"""Seconds between checks. The interval doubles while restarts do not help."""

MAX_SECONDS = 60.0


@contextmanager
def keep_workers(
    cluster: Any, client: Any, n_workers: int, *, vanished: Callable[[Any], bool] | None = None
) -> Iterator[None]:  # fmt: skip
    """Start new workers whenever a `SpecCluster` has fewer than `n_workers`, while the `with` body runs.

    Parameters
    ----------
    cluster : distributed.SpecCluster
        Cluster that starts workers.
    client : distributed.Client
        Client that counts workers.
    n_workers : int
        Fixed size.
    vanished : callable, optional
        Says of a job whether its queue no longer knows it.
    """
    stop = Event()

    def watch() -> None:
        pause, n_before = CHECK_SECONDS, n_workers
        while not stop.wait(pause):
            with suppress(Exception):  # the engine reports a scheduler that is closing
                n_present = len(client.nthreads())
                if n_present < n_before:
                    log.warning("%d of %d workers are left; starting others", n_present, n_workers)
                pause = CHECK_SECONDS if n_present >= n_before else min(2 * pause, MAX_SECONDS)
                if n_present < n_workers:
                    jobs = list(cluster.workers.items())
                    names = {name for name, job in jobs if vanished is not None and vanished(job)}
                    cluster.loop.add_callback(_forget_dead, cluster, names)
                    cluster.scale(n_workers)
                n_before = n_present

    dog = Thread(target=watch, daemon=True, name="sigdask-watchdog")
    dog.start()
    try:
        yield
    finally:
        stop.set()
        dog.join(timeout=MAX_SECONDS)


def _forget_dead(cluster: Any, names: set[Any]) -> None:
    """Remove from the cluster workers that never started, have closed or lost their job; `scale` then replaces them."""
    for name, worker in list(cluster.workers.items()):
        if worker.status.name in {"created", "closed", "failed"} or name in names:
            del cluster.workers[name]


PROGRESS_SECONDS = 10.0


def wait_for_worker(
    client: Any,
    *,
    seconds: float,
    what: str,
    get_status: Callable[[], str] = str,
    is_hopeless: Callable[[], bool] = bool,
) -> None:
    """Wait until the cluster has a worker; raise if none comes in time.

    Parameters
    ----------
    client : distributed.Client
        Connected to the scheduler.
    seconds : float
        Time limit.
    what : str
        Name of the awaited workers, in messages.
    get_status : callable
        Returns the queue's status.
    is_hopeless : callable
        Returns whether no worker will ever come.

    Raises
    ------
    UnfinishedError
        No worker came in time. The message ends with the queue's output.
    """
    start = time.monotonic()
    last_shown = start
    while not client.nthreads():
        now = time.monotonic()
        is_over = now - start > seconds or is_hopeless()
        status = get_status() if now - last_shown > PROGRESS_SECONDS or is_over else ""
        if is_over:
            detail = f"; the queue says: {status}" if status else ""
            raise UnfinishedError(
                f"{what}: no worker arrived within {now - start:.0f} s. Check that jobs can run there, or set a "
                f"longer time with the key wait{detail}"
            )
        if now - last_shown > PROGRESS_SECONDS:
            last_shown = now
            log.info("waiting for workers of %s: 0 of 1%s", what, f" ({status})" if status else "")
        time.sleep(0.1)


ADAPTIVE = {"target_duration": "1s", "wait_count": 10}
"""Settings of adaptive scaling. Four tasks of a second are in flight for each thread, so a target of 1 s reaches the
maximum.
"""

QUIET_WORKER = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
"""Settings that keep a worker's pages on the loopback interface. A worker serves pages even without its dashboard."""

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


def skip_cleanup() -> None:
    """Do nothing: the default action after a cluster is closed."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterKind:
    """Functions and properties of one kind of cluster: how to start it, how to query its status, and how to clean up.

    Attributes
    ----------
    make : callable
        `(description, files)` to a dask cluster; files are None for plain tcp.
    get_status : callable
        Returns the queue's status, if the created cluster has no `get_status`.
    vanished : callable, optional
        Says of a job whether its queue no longer knows it.
    hopeless : callable
        Returns whether no worker will ever come.
    threads : int
        Threads of a worker, if known before it starts.
    remote : bool
        Workers may be other machines.
    scratch : bool
        Whether its scheduler runs here: in its own folder, because others could write to a shared one.
    clean_up : callable
        Called after the cluster is closed.
    """

    make: Callable[[ClusterDescription, TlsFiles | None], Any]
    get_status: Callable[[], str] = str
    vanished: Callable[[Any], bool] | None = None
    hopeless: Callable[[], bool] = bool
    threads: int = 1
    remote: bool = True
    scratch: bool = False
    clean_up: Callable[[], None] = skip_cleanup


@contextmanager
def start_cluster(description: ClusterDescription, kind: ClusterKind) -> Iterator[Cluster]:
    """Start a cluster, wait for its first worker, check versions, and yield it; it is closed afterwards.

    Parameters
    ----------
    description : ClusterDescription
        Description of the cluster.
    kind : ClusterKind
        Kind of the cluster.
    """
    import dask
    from distributed import Client

    from sigdask.execution.clusters.hung_workers import HungWorkers

    with ExitStack() as stack:
        files = stack.enter_context(open_tls_files(description))
        tls = files.to_config() if files is not None else {}
        stack.enter_context(dask.config.set({**settings(), **tls}))
        stack.enter_context(silence_dask())
        if kind.scratch:
            stack.enter_context(dask.config.set({"temporary-directory": _make_scratch_folder(stack)}))
        if files is None and kind.remote:
            text = "%s: plain tcp without TLS: anyone who can reach the scheduler's port can run code there"
            log.warning(text, description.source)
        stack.callback(kind.clean_up)
        cluster = stack.enter_context(_make_cluster(description, kind, files))
        get_status = getattr(cluster, "get_status", kind.get_status)
        security = files.to_security() if files is not None else None
        is_spec_cluster = hasattr(cluster, "worker_spec")
        address = cluster if is_spec_cluster else cluster.scheduler_address
        client = stack.enter_context(Client(address, security=security))
        _set_size(cluster, description)
        if kind.remote:
            check_versions(client)
        check_listening(client, description, ("scheduler",))
        if kind.remote:
            client.register_plugin(HungWorkers())
        what, hopeless = description.source, kind.hopeless
        wait_for_worker(client, seconds=description.wait, what=what, get_status=get_status, is_hopeless=hopeless)
        if kind.remote:
            check_versions(client)
        check_listening(client, description, ("worker", "nanny"))
        if not description.is_adaptive and description.workers is not None and is_spec_cluster:
            stack.enter_context(keep_workers(cluster, client, description.workers, vanished=kind.vanished))
        expected = (description.max_workers or 0) * kind.threads
        n_threads = max(1, expected, sum(client.nthreads().values()))
        yield Cluster("dask", n_threads, client, kind.remote, get_status)


def _make_scratch_folder(stack: ExitStack) -> str:
    """Return a new folder for dask's temporary files that is removed after the run.

    dask's own default folder is permanent and shared by all users.
    """
    import dask

    root = dask.config.get("temporary-directory", None)
    try:
        folder = TemporaryDirectory(prefix="sigdask-dask-", dir=root, ignore_cleanup_errors=True)
        return stack.enter_context(folder)
    except OSError as error:
        raise InputError(
            f"cannot create a temporary folder ({error.strerror})", remedy="set TMPDIR to another place"
        ) from None


Listening = tuple[str, str, str, int]
"""A listening part ("scheduler", "worker", "nanny"), its protocol, host and port."""

PROTECTED = ("tls", "https", "wss")
"""Encrypted protocols."""

KINDS_WITH_PLAIN_TCP = ("ssh", "slurm", "allocation")
"""Kinds whose processes must reach each other over a network. Explicitly requested plain TCP gives only a warning."""


def check_listening(client: Any, description: ClusterDescription, roles: tuple[str, ...]) -> None:
    """Log the addresses beyond loopback on which parts of a cluster listen; raise if one of them is unprotected.

    Parameters
    ----------
    client : distributed.Client
        Connected to the scheduler.
    description : ClusterDescription
        Description of the cluster. `expose` allows unprotected addresses.
    roles : tuple of str
        The parts to ask: "scheduler", "worker", "nanny".

    Raises
    ------
    InputError
        Pages, or parts of a cluster that need no network, listen beyond loopback without TLS.
    """
    listening = list_listening(client, roles)
    if "scheduler" in roles:
        _log_dashboard(listening, urlsplit(client.scheduler.address).hostname)
    beyond = [entry for entry in listening if not ip_address(entry[2].partition("%")[0]).is_loopback]
    if not beyond:
        return
    log.info("other machines can reach: %s", _format_addresses(beyond))
    allowed = (*PROTECTED, "tcp") if description.kind in KINDS_WITH_PLAIN_TCP else PROTECTED
    refused = [entry for entry in beyond if entry[1] not in allowed]
    if refused and not description.expose:
        raise description.build_error(
            f"other machines can reach, without TLS: {_format_addresses(refused)}. Anyone who can connect "
            "can read the dashboard, or run code as you. Let it listen on 127.0.0.1 (dashboard_address "
            'or --dashboard-address 127.0.0.1:0 for pages, security = "tls" or host for tcp), or write expose '
            "= true in the cluster file"
        )


def list_listening(client: Any, roles: tuple[str, ...] = ("scheduler", "worker", "nanny")) -> list[Listening]:
    """Return the addresses on which the parts of a cluster listen, as reported by their sockets."""

    def read_sockets(dask_worker: Any = None, dask_scheduler: Any = None) -> list[tuple[str, str, int]]:
        # a nested function is sent by value, so the scheduler needs no sigdask
        server = dask_worker or dask_scheduler
        servers = [(listener.prefix.split(":")[0], listener) for listener in server.listeners]
        pages = getattr(server, "http_server", None)
        if pages is not None:
            servers.append(("https" if pages.ssl_options else "http", pages))
        addresses = []
        for protocol, listener in servers:
            tcp_server = getattr(listener, "tcp_server", getattr(listener, "server", listener))
            addresses += [
                (protocol, *socket.getsockname()[:2]) for socket in getattr(tcp_server, "_sockets", {}).values()
            ]
        return addresses

    answers = {"scheduler": [client.run_on_scheduler(read_sockets)]} if "scheduler" in roles else {}
    for role in ("worker", "nanny"):
        if role in roles:
            answers[role] = list(client.run(read_sockets, nanny=role == "nanny", on_error="ignore").values())
    return sorted({(role, *entry) for role, lists in answers.items() for entries in lists for entry in entries})


def _format_addresses(listening: list[Listening]) -> str:
    texts = [f"{role} {_format_url(protocol, host, port)}" for role, protocol, host, port in listening]
    return format_list(texts, limit=8)


def _format_url(protocol: str, host: str, port: int) -> str:
    return f"{protocol}://{f'[{host}]' if ':' in host else host}:{port}"


def _log_dashboard(listening: list[Listening], machine: str | None) -> None:
    """Log the address of the scheduler's dashboard, if it has one."""
    import psutil

    pages = [entry for entry in listening if entry[0] == "scheduler" and entry[1] in {"http", "https"}]
    if not pages:
        return
    _, protocol, host, port = pages[0]
    own_addresses = {address.address for addresses in psutil.net_if_addrs().values() for address in addresses}
    elsewhere = "" if machine in {*LOOPBACK, *own_addresses} else f" on {machine}"
    everywhere = ", on all its interfaces" if ip_address(host.partition("%")[0]).is_unspecified else ""
    log.info("dashboard: %s/status%s%s", _format_url(protocol, host, port), elsewhere, everywhere)


def check_options(description: ClusterDescription, allowed: tuple[str, ...]) -> dict[str, Any]:
    """Return the options of a cluster description; raise if one of them is unknown."""
    check_keys(description.options, allowed, f"{description.source}: [options]")
    return dict(description.options)


@contextmanager
def _make_cluster(description: ClusterDescription, kind: ClusterKind, files: TlsFiles | None) -> Iterator[Any]:
    try:
        cluster = _make_without_interrupts(partial(kind.make, description, files))
    except SigdaskError:
        raise
    except (TypeError, ValueError, ImportError) as error:
        raise InputError(f"{description.source}: class {description.kind}: {get_first_line(error)}") from None
    except Exception as error:  # noqa: BLE001  # whatever a class of the user's raises
        status = kind.get_status()
        detail = f"; it says: {status}" if status else ""
        raise ClusterLostError(
            f"{description.source}: the cluster did not start: {get_first_line(error)}{detail}"
        ) from None
    try:
        yield cluster
    finally:
        _close_cluster(cluster)


def _make_without_interrupts(make: Callable[[], Any]) -> Any:
    """Return a new cluster whose threads and processes ignore Ctrl-C, which only this process handles.

    They inherit this from the creating thread. On Ctrl-C, the cluster is started to the end, then closed.
    """
    future: Future[Any] = Future()

    def run() -> None:
        if hasattr(signal, "pthread_sigmask"):
            resource_tracker.ensure_running()  # whose start would undo it
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            future.set_result(make())
        except BaseException as error:  # noqa: BLE001  # raised where it was asked for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="making a cluster").start()
    try:
        return future.result()
    except KeyboardInterrupt:
        if future.exception() is None:
            _close_cluster(future.result())
        raise


def _close_cluster(cluster: Any) -> None:
    """Close a cluster; errors, which a lost cluster raises, are only logged."""
    try:
        cluster.close(timeout=30)
    except Exception as error:  # noqa: BLE001
        log.debug("closing: %s", get_first_line(error))


def _set_size(cluster: Any, description: ClusterDescription) -> None:
    if description.is_adaptive:
        cluster.adapt(minimum=description.minimum or 0, maximum=description.maximum, **ADAPTIVE)
    elif description.workers is not None:
        cluster.scale(description.workers)
