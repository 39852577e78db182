"""Clusters that run already: the caller's client or cluster, or a scheduler's address (given or in dask's settings)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sigdask.errors import ClusterLostError, InputError
from sigdask.execution.clusters.base import Cluster, get_first_line, is_closed, log, silence_dask
from sigdask.execution.clusters.description import ClusterDescription
from sigdask.execution.clusters.settings import SETTINGS
from sigdask.execution.clusters.starting import log_dashboard, wait_for_worker
from sigdask.execution.clusters.tls import build_security

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
