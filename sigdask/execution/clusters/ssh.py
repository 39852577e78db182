"""A scheduler and workers on hosts that are reached by ssh, by dask's SSHCluster.

    class = "ssh"
    [options]
    hosts = ["node1", "node1", "node2"]     # the first for the scheduler, the others for workers
    remote_python = "/opt/sigdask/bin/python"
    connect_options = { username = "eval", client_keys = ["~/.ssh/id_ed25519"] }

Host keys are checked against known_hosts. The certificate of a run is copied to the hosts and removed again.
"""

from __future__ import annotations

import asyncio
import secrets
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sigdask.errors import InputError, explain_missing
from sigdask.execution.clusters.base import LOOPBACK_PAGES, get_first_line, join_last_lines
from sigdask.execution.clusters.description import ClusterDescription, build_settings

TIMEOUT_SECONDS = 30.0


@contextmanager
def open_cluster(description: ClusterDescription, security: Any) -> Iterator[Any]:
    """Yield a cluster on the hosts, after a check that each can be used."""
    import dask
    from distributed import SSHCluster

    with explain_missing("asyncssh", "class ssh"):
        import asyncssh  # noqa: F401
    options = description.options
    if description.maximum is not None or len(options.hosts) < 2:
        raise description.build_error(
            "class ssh needs hosts, the first for the scheduler and the others for workers, and no minimum and maximum"
        )
    hosts = options.hosts[: (description.workers or 1) + 1]
    arguments = options.to_arguments()
    python = f"{shlex.quote(arguments.get('remote_python', sys.executable))} -P"  # no module there hides a library's
    # commands start in the user's home, and these settings go with them
    file, certificate = f".sigdask-{secrets.token_hex(8)}.pem", ""
    certificates = build_settings(file, file, file)
    if security is None:
        certificates = {}
    elif (files := description.certificates) is not None:  # the user has copied them
        certificates = build_settings(str(files.ca), str(files.cert), str(files.key))
    else:
        certificate = security.tls_client_key + security.tls_client_cert
    common = {"dashboard_address": LOOPBACK_PAGES} | ({} if security is None else {"protocol": "tls://"})
    arguments |= {
        "hosts": hosts,
        "remote_python": python,
        "scheduler_options": {"port": 0, **common, **options.scheduler_options},
        "worker_options": {"dashboard": False, **common, **options.worker_options},
        "security": security,
    }
    copy = f"umask 077; cat > {file} && " if certificate else ""
    asyncio.run(_run_on_hosts(hosts, options.connect_options, f"{copy}{python} -c ''", certificate))
    try:
        with dask.config.set(certificates):
            yield SSHCluster(**arguments)
    finally:
        if certificate:
            with suppress(InputError):  # it remains on unreachable hosts, where only this user can read it
                asyncio.run(_run_on_hosts(hosts, options.connect_options, f"rm -f {file}"))


async def _run_on_hosts(hosts: list[str], connect: dict[str, Any], command: str, content: str = "") -> None:
    """Run a command on all hosts at once, with a content that goes over standard input, not in a command line.

    Raises
    ------
    InputError
        Names a host that cannot be used, and why.
    """
    await asyncio.gather(*(_run_on_host(host, connect, command, content) for host in dict.fromkeys(hosts)))


async def _run_on_host(host: str, connect: dict[str, Any], command: str, content: str) -> None:
    import asyncssh

    try:
        async with asyncio.timeout(TIMEOUT_SECONDS), asyncssh.connect(host, **connect) as connection:
            result = await connection.run(command, input=content)
    except TimeoutError:
        raise InputError(f"ssh {host}: no answer within {TIMEOUT_SECONDS:g} s") from None
    except (OSError, asyncssh.Error) as error:
        raise InputError(f"ssh {host}: {get_first_line(error)}") from None
    if result.exit_status != 0:
        raise InputError(f"ssh {host}: {join_last_lines(str(result.stderr))}")
