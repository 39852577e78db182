"""Clusters that run already: the caller's client or cluster, or a scheduler's address (given or in dask's settings)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sigdask.errors import ClusterLostError, InputError, SigdaskError
from sigdask.execution.clusters.base import (
    Cluster,
    get_configured_address,
    get_first_line,
    get_status,
    is_closed,
    log,
    silence_dask,
)
from sigdask.execution.clusters.description import ClusterDescription
from sigdask.execution.clusters.lifecycle import LOOPBACK, check_options, wait_for_worker
from sigdask.execution.clusters.settings import check_versions, describe_differences, settings
from sigdask.execution.clusters.tls import open_tls_files

CONNECT_SECONDS = 10


@contextmanager
def connect_address(description: ClusterDescription) -> Iterator[Cluster]:
    """Yield the cluster of the scheduler that `address` or `scheduler_file` names."""
    options = check_options(description, ("address", "scheduler_file"))
    address = options.get("address") or _read_address(Path(options.get("scheduler_file", "")), description)
    with _open_client(description, address) as client:
        if client.dashboard_link:
            log.info("dashboard: %s", client.dashboard_link)
        wait_for_worker(client, seconds=description.wait, what=f"the scheduler at {address}")
        check_versions(client)
        yield Cluster("dask", max(1, sum(client.nthreads().values())), client, remote=True)


def is_loopback(address: str) -> bool:
    """Return whether an address is on this machine.

    Examples
    --------
    >>> is_loopback("tcp://127.0.0.1:8786"), is_loopback("tls://node7:8786")
    (True, False)
    """
    return urlsplit(address).hostname in LOOPBACK


def _has_port(address: str) -> bool:
    try:
        return urlsplit(address).port is not None
    except ValueError:
        return False


@contextmanager
def _open_client(description: ClusterDescription, address: str) -> Iterator[Any]:
    import dask
    from distributed import Client

    if not address.startswith(("tcp://", "tls://")) or not _has_port(address):
        raise description.build_error(f"address {address!r}: must be tcp://HOST:PORT or tls://HOST:PORT")
    with ExitStack() as stack:
        security = _get_security(stack, description, address)
        stack.enter_context(dask.config.set(settings()))
        stack.enter_context(silence_dask())
        try:
            client = Client(address, timeout=CONNECT_SECONDS, security=security)
        except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
            hint = "; dask's settings name it (scheduler-address)" if address == get_configured_address() else ""
            raise InputError(
                f"no dask scheduler answers at {address} ({get_first_line(error)}){hint}",
                remedy="check that it runs, and that address and certificates are right",
            ) from None
        yield stack.enter_context(client)


def _get_security(stack: ExitStack, description: ClusterDescription, address: str) -> Any:
    """Return the client's TLS certificates, from the description or else from dask's settings; None for plain tcp."""
    transport = description.transport
    if address.startswith("tcp://"):
        if not is_loopback(address):
            log.warning(
                ("%s: plain tcp without TLS: anyone who can reach this port can run code there; use tls://"), address
            )
        return None
    if transport.ca is not None:
        files = stack.enter_context(open_tls_files(description))
        return files.to_security() if files is not None else None
    import dask

    if not dask.config.get("distributed.comm.tls.ca-file", None):
        raise InputError(
            f"{address}: TLS needs certificates: name them in a cluster file ([security] ca, cert and key), "
            "or in dask's settings (DASK_DISTRIBUTED__COMM__TLS__CA_FILE and so on)"
        )
    from distributed.security import Security

    return Security(require_encryption=True)


def _read_address(file: Path, description: ClusterDescription) -> str:
    if not str(file) or str(file) == ".":
        raise description.build_error("[options] names no address and no scheduler_file")
    if not file.is_file():
        raise InputError(f"scheduler file {file}: no such file")
    try:
        return str(json.loads(file.read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"scheduler file {file}: has no address of a scheduler; `dask scheduler --scheduler-file` writes one"
        ) from None


WAIT_SECONDS = 600.0
"""Seconds to wait for the first worker. Workers in a queue may take long."""

GRAPH_WARNING_SETTING = "distributed.admin.large-graph-warning-threshold"
"""The only setting of dask that sigdask changes while it uses a client."""

WARNED_SCHEDULERS: set[str] = set()
"""Schedulers about whose settings a warning was printed."""


@contextmanager
def use_client(handle: Any) -> Iterator[Cluster]:
    """Yield a connection to the caller's client or cluster; only a client that is opened here is closed afterwards.

    It is the caller's own session. So metrics defined in it (in a notebook or script) are sent by value.

    Raises
    ------
    InputError
        The client is closed, it uses the running event loop, or versions differ.
    ClusterLostError
        The cluster does not answer, no worker came in time, or the client was closed.
    """
    import dask

    if is_closed(handle):
        raise InputError(
            f"the given {type(handle).__name__} is {get_status(handle)}", remedy="give one that is running"
        )
    _check_event_loop(handle)
    with (
        _open_given_client(handle) as client,
        dask.config.set({GRAPH_WARNING_SETTING: settings()[GRAPH_WARNING_SETTING]}),
    ):
        try:
            _wait_for_worker(client)
            check_versions(client)
            _warn_settings(client)
            n_threads = max(1, sum(client.nthreads().values()))
        except SigdaskError:
            raise
        except (OSError, RuntimeError, ValueError) as error:  # dask's errors of lost connections are OSErrors
            raise ClusterLostError(f"the given cluster does not answer: {get_first_line(error)}") from None
        try:
            yield Cluster("dask", n_threads, client)
        except Exception as error:
            if is_closed(client):
                raise ClusterLostError(f"the given {type(handle).__name__} was closed during the run") from error
            raise


def _check_event_loop(handle: Any) -> None:
    if getattr(handle, "asynchronous", False):
        raise InputError(
            f"this {type(handle).__name__} belongs to the running event loop, which a comparison would block",
            remedy="use `await asyncio.to_thread(sigdask.compare_all, counts, cluster=...)`, or a client made "
            "without asynchronous=True",
        )


@contextmanager
def _open_given_client(handle: Any) -> Iterator[Any]:
    if hasattr(handle, "run_on_scheduler"):
        yield handle
        return
    from distributed import Client

    try:  # not its own get_client(), which may return the caller's
        client = Client(handle, set_as_default=False)
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        raise InputError(f"cannot connect to this {type(handle).__name__}: {get_first_line(error)}") from None
    try:
        yield client
    finally:
        client.close()


def _wait_for_worker(client: Any) -> None:
    """Wait until the client has a worker; a small task makes an adaptive cluster start one."""
    if client.nthreads():
        return
    what = f"the scheduler at {client.scheduler.address}"
    log.warning("%s has no workers yet: waiting for the first, up to %.0f s (`cluster.scale(n)` requests some)",
                what, WAIT_SECONDS)  # fmt: skip
    future = client.submit(abs, 0, pure=False)
    try:
        wait_for_worker(client, seconds=WAIT_SECONDS, what=what)
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
            "the scheduler at %s lacks settings for quick recovery from lost workers (counts are the same "
            "without them): %s; docs/clusters-tested.md explains how to set them",
            client.scheduler.address,
            ", ".join(differences),
        )
