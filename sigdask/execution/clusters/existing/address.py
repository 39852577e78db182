"""Connection to a scheduler that runs already, by its address or scheduler file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sigdask.errors import InputError
from sigdask.execution.certificates import open_certificates
from sigdask.execution.clusters import versions
from sigdask.execution.clusters.base import Cluster, get_first_line, log, silence_dask
from sigdask.execution.clusters.description import ClusterDescription
from sigdask.execution.clusters.existing.discover import get_configured_address
from sigdask.execution.clusters.lifecycle import LOOPBACK, check_options
from sigdask.execution.clusters.settings import settings
from sigdask.execution.clusters.waiting import wait_for_workers

CONNECT_SECONDS = 10


@contextmanager
def connect_address(description: ClusterDescription) -> Iterator[Cluster]:
    """Yield the cluster of the scheduler that `address` or `scheduler_file` names."""
    options = check_options(description, ("address", "scheduler_file"))
    address = options.get("address") or _read_address(Path(options.get("scheduler_file", "")), description)
    with _open_client(description, address) as client:
        if client.dashboard_link:
            log.info("dashboard: %s", client.dashboard_link)
        wait_for_workers(
            client, 1, seconds=description.wait, what=f"the scheduler at {address}", get_status=lambda: ""
        )  # fmt: skip
        versions.check_versions(client)
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
            raise InputError(f"no dask scheduler answers at {address} ({get_first_line(error)}){hint}") from None
        yield stack.enter_context(client)


def _get_security(stack: ExitStack, description: ClusterDescription, address: str) -> Any:
    """Return the client's TLS certificates, from the description or else from dask's settings; None for plain tcp."""
    transport = description.transport
    if address.startswith("tcp://"):
        if not is_loopback(address):
            log.warning("%s: plain tcp: whoever reaches this port can run code there; tls:// is safe", address)
        return None
    if transport.folder is not None or transport.ca is not None:
        files = stack.enter_context(open_certificates(description))
        return files.to_security() if files is not None else None
    import dask

    if not dask.config.get("distributed.comm.tls.ca-file", None):
        raise InputError(
            f"{address}: TLS needs certificates: name them in a cluster file ([security] folder, or ca, cert and "
            "key), or in dask's settings (DASK_DISTRIBUTED__COMM__TLS__CA_FILE and so on)"
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
        raise InputError(f"scheduler file {file}: holds no scheduler's address; `dask scheduler` writes it") from None
