"""A scheduler and workers on hosts reached by ssh.

    class = "ssh"
    [options]
    hosts = ["node1", "node2"]     # a worker on each, the scheduler on the first
    python = "/opt/sigdask/bin/python"
    connect = { username = "eval", client_keys = ["~/.ssh/id_ed25519"] }

Host keys are checked against known_hosts. Certificates are copied to hosts that do not have them
at the same path (no shared home), and removed again.
"""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import Any

from sigdask.clusters.base import first_line
from sigdask.clusters.certificates import Files
from sigdask.clusters.description import Description
from sigdask.clusters.running import Kind, accepts
from sigdask.errors import InputError, missing_extra

OPTIONS = ("hosts", "scheduler", "python", "connect", "scheduler_options", "worker_options")
PATIENCE = 30.0

Contents = dict[Path, str]


def kind(description: Description) -> Kind:
    """Return how hosts are used."""
    threads = int(description.options.get("worker_options", {}).get("nthreads", 1))
    return Kind(_make, threads=threads)


def _make(description: Description, files: Files | None) -> Any:
    try:
        import asyncssh  # noqa: F401
    except ImportError:
        raise missing_extra("asyncssh", "ssh", "class ssh") from None
    from distributed import SSHCluster

    options = accepts(description, OPTIONS)
    hosts = _hosts(options, description)
    connect = _connect(options)
    scheduler = options.get("scheduler", hosts[0])
    contents = {path: path.read_text(encoding="ascii") for path in files or ()}
    asyncio.run(_prepare(dict.fromkeys([scheduler, *hosts]), connect, contents, str(options.get("python", ""))))
    secured = {} if files is None else {"security": files.security()}
    protocol = {} if files is None else {"protocol": "tls://"}
    return SSHCluster(
        [scheduler, *hosts[: description.workers]],
        connect_options=connect,
        remote_python=options.get("python"),
        scheduler_options={
            "dashboard_address": "127.0.0.1:0", "port": 0, **protocol, **options.get("scheduler_options", {}),
        },
        worker_options={"dashboard": False, **protocol, **options.get("worker_options", {})},
        **secured,
    )  # fmt: skip


def _hosts(options: dict[str, Any], description: Description) -> list[str]:
    hosts = options.get("hosts")
    if not isinstance(hosts, list) or not hosts or not all(isinstance(h, str) and h for h in hosts):
        raise description.refuse(f"[options] hosts = {hosts!r}: must be a list of host names")
    if description.adaptive:
        raise description.refuse("class ssh has a fixed size: a worker for each of hosts")
    return hosts


def _connect(options: dict[str, Any]) -> dict[str, Any]:
    connect = dict(options.get("connect", {}))
    for key in ("known_hosts", "client_keys"):
        if isinstance(connect.get(key), str):
            connect[key] = str(Path(connect[key]).expanduser())
        elif isinstance(connect.get(key), list):
            connect[key] = [str(Path(path).expanduser()) for path in connect[key]]
    return connect


async def _prepare(hosts: dict[str, None], connect: dict[str, Any], contents: Contents, python: str) -> None:
    """Log in to every host at once: each must answer, have a Python, and get the certificates."""
    found = await asyncio.gather(*(_prepare_host(host, connect, contents, python) for host in hosts))
    wrong = [word for word in found if word]
    if wrong:
        raise InputError("; ".join(wrong))


async def _prepare_host(host: str, connect: dict[str, Any], contents: Contents, python: str) -> str:
    import asyncssh

    try:
        async with asyncio.timeout(PATIENCE), asyncssh.connect(host, **connect) as connection:
            if python and (await connection.run(f"test -x {shlex.quote(python)}")).exit_status != 0:
                return f"ssh {host}: {python} is no program there"
            for path, content in contents.items():
                await _copy(connection, path, content)
    except TimeoutError:
        return f"ssh {host}: no answer within {PATIENCE:g} s"
    except (OSError, asyncssh.Error) as error:
        return f"ssh {host}: {first_line(error)}"
    return ""


async def _copy(connection: Any, path: Path, content: str) -> None:
    """Write a certificate where it is not there already; it goes through standard input, into no command line."""
    quoted, folder = shlex.quote(str(path)), shlex.quote(str(path.parent))
    command = f"test -r {quoted} || {{ umask 077; mkdir -p {folder} && cat > {quoted}; }}"
    await connection.run(command, input=content, check=True)
