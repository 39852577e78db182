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
from contextlib import suppress
from pathlib import Path
from typing import Any

from sigdask.errors import InputError, missing_extra
from sigdask.execution.certificates import Files
from sigdask.execution.clusters.base import first_line
from sigdask.execution.clusters.description import Description
from sigdask.execution.clusters.lifecycle import ClusterKind, accepts

OPTIONS = ("hosts", "scheduler", "python", "connect", "scheduler_options", "worker_options")
PATIENCE = 30.0

Contents = dict[Path, str]


def size(description: Description) -> int:
    """Return how many workers there are where none are asked for: one a host."""
    return len(_hosts(dict(description.options), description))


def kind(description: Description) -> ClusterKind:
    """Return how hosts are used."""
    threads = int(description.options.get("worker_options", {}).get("nthreads", 1))
    hosts = _RemoteHosts(description)
    return ClusterKind(hosts.make, threads=threads, after=hosts.tidy)


class _RemoteHosts:
    """The hosts of one run, and what was copied to them."""

    def __init__(self, description: Description) -> None:
        self.description = description
        self.options = accepts(description, OPTIONS)
        self.connect = _connect(self.options)
        self.copied: list[tuple[str, Path]] = []

    def make(self, description: Description, files: Files | None) -> Any:
        try:
            import asyncssh  # noqa: F401
        except ImportError:
            raise missing_extra("asyncssh", "ssh", "class ssh") from None
        from distributed import SSHCluster

        hosts = _hosts(self.options, description)
        scheduler = self.options.get("scheduler", hosts[0])
        self._prepare(list(dict.fromkeys([scheduler, *hosts])), files)
        protocol = {} if files is None else {"protocol": "tls://"}
        pages = {"dashboard_address": "127.0.0.1:0"}
        return SSHCluster(
            [scheduler, *hosts[: description.workers]],
            connect_options=self.connect,
            remote_python=self.options.get("python"),
            scheduler_options={"port": 0, **pages, **protocol, **self.options.get("scheduler_options", {})},
            worker_options={"dashboard": False, **pages, **protocol, **self.options.get("worker_options", {})},
            **({} if files is None else {"security": files.security()}),
        )

    def _prepare(self, hosts: list[str], files: Files | None) -> None:
        contents = {path: path.read_text(encoding="ascii") for path in files or ()}
        self.copied = asyncio.run(prepare(hosts, self.connect, contents, str(self.options.get("python", ""))))

    def tidy(self) -> None:
        """Remove what was copied; a host that is gone keeps certificates that expire."""
        with suppress(Exception):
            asyncio.run(_remove(self.copied, self.connect))


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


async def prepare(
    hosts: list[str], connect: dict[str, Any], contents: Contents, python: str
) -> list[tuple[str, Path]]:  # fmt: skip
    """Log in to every host at once: each must answer, have that Python, and get the certificates it lacks.

    Returns
    -------
    list of (host, path)
        What was copied.

    Raises
    ------
    InputError
        Names each host that cannot be used, and why.
    """
    found = await asyncio.gather(*(_prepare_host(host, connect, contents, python) for host in hosts))
    wrong = [outcome for outcome in found if isinstance(outcome, str)]
    if wrong:
        raise InputError("; ".join(wrong))
    return [
        (host, path) for host, paths in zip(hosts, found, strict=True) if not isinstance(paths, str) for path in paths
    ]


async def _prepare_host(host: str, connect: dict[str, Any], contents: Contents, python: str) -> list[Path] | str:
    """Return what was copied, or why the host cannot be used."""
    import asyncssh

    try:
        async with asyncio.timeout(PATIENCE), asyncssh.connect(host, **connect) as connection:
            if python and (await connection.run(f"test -x {shlex.quote(python)}")).exit_status != 0:
                return f"ssh {host}: {python} is no program there"
            return [path for path, content in contents.items() if await _copy(connection, path, content)]
    except TimeoutError:
        return f"ssh {host}: no answer within {PATIENCE:g} s"
    except (OSError, asyncssh.Error) as error:
        return f"ssh {host}: {first_line(error)}"


async def _copy(connection: Any, path: Path, content: str) -> bool:
    """Write a certificate where it is not there already; it goes through standard input, into no command line."""
    quoted, folder = shlex.quote(str(path)), shlex.quote(str(path.parent))
    command = f"test -r {quoted} || {{ umask 077; mkdir -p {folder} && cat > {quoted} && echo copied; }}"
    done = await connection.run(command, input=content, check=True)
    return "copied" in str(done.stdout)


async def _remove(copied: list[tuple[str, Path]], connect: dict[str, Any]) -> None:
    import asyncssh

    for host in dict.fromkeys(host for host, _ in copied):
        paths = " ".join(shlex.quote(str(path)) for where, path in copied if where == host)
        folder = shlex.quote(str(next(path.parent for where, path in copied if where == host)))
        async with asyncio.timeout(PATIENCE), asyncssh.connect(host, **connect) as connection:
            await connection.run(f"rm -f {paths}; rmdir {folder}")
