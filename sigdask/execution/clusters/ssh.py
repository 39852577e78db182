"""A scheduler and workers on hosts that are reached by ssh.

    class = "ssh"
    [options]
    hosts = ["node1", "node2"]     # a worker on each, the scheduler on the first
    python = "/opt/sigdask/bin/python"
    connect = { username = "eval", client_keys = ["~/.ssh/id_ed25519"] }

Host keys are checked against known_hosts. Certificates are copied to hosts that do not share the home folder, and
removed again.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from sigdask.errors import InputError, explain_missing
from sigdask.execution.clusters.base import get_first_line
from sigdask.execution.clusters.description import ClusterDescription
from sigdask.execution.clusters.lifecycle import ClusterKind, check_options
from sigdask.execution.clusters.tls import TlsFiles

OPTIONS = ("hosts", "scheduler", "python", "connect", "scheduler_options", "worker_options")
TIMEOUT_SECONDS = 30.0

Contents = dict[Path, str]


def count_workers(description: ClusterDescription) -> int:
    """Return the default number of workers: one per host."""
    return len(_get_hosts(dict(description.options), description))


def build_kind(description: ClusterDescription) -> ClusterKind:
    """Return the `ClusterKind` that starts scheduler and workers on the hosts."""
    threads = int(description.options.get("worker_options", {}).get("nthreads", 1))
    hosts = _RemoteHosts(description)
    return ClusterKind(hosts.make, threads=threads, clean_up=hosts.remove_copies)


class _RemoteHosts:
    """The hosts on which a cluster runs, and the certificate files that were copied to them."""

    def __init__(self, description: ClusterDescription) -> None:
        self.description = description
        self.options = check_options(description, OPTIONS)
        self.connect = dict(self.options.get("connect", {}))
        for key in ("known_hosts", "client_keys"):
            if isinstance(self.connect.get(key), str):
                self.connect[key] = str(Path(self.connect[key]).expanduser())
            elif isinstance(self.connect.get(key), list):
                self.connect[key] = [str(Path(path).expanduser()) for path in self.connect[key]]
        self.copied: list[tuple[str, Path]] = []

    def make(self, description: ClusterDescription, files: TlsFiles | None) -> Any:
        with explain_missing("asyncssh", "ssh", "class ssh"):
            import asyncssh  # noqa: F401
        from distributed import SSHCluster

        hosts = _get_hosts(self.options, description)
        scheduler = self.options.get("scheduler", hosts[0])
        python, contents = self.options.get("python"), {path: path.read_text(encoding="ascii") for path in files or ()}
        all_hosts = list(dict.fromkeys([scheduler, *hosts]))
        self.copied = asyncio.run(prepare_hosts(all_hosts, self.connect, contents, str(python or "")))
        protocol = {} if files is None else {"protocol": "tls://"}
        pages = {"dashboard_address": "127.0.0.1:0"}
        return SSHCluster(
            [scheduler, *hosts[: description.workers]],
            connect_options=self.connect,
            remote_python=f"{python or sys.executable} -P",  # no module of the folder hides a library's
            scheduler_options={"port": 0, **pages, **protocol, **self.options.get("scheduler_options", {})},
            worker_options={"dashboard": False, **pages, **protocol, **self.options.get("worker_options", {})},
            **({} if files is None else {"security": files.to_security()}),
        )

    def remove_copies(self) -> None:
        """Remove the copied certificate files from the hosts; on unreachable hosts they remain until they expire."""
        with suppress(Exception):
            asyncio.run(_remove_files(self.copied, self.connect))


def _get_hosts(options: dict[str, Any], description: ClusterDescription) -> list[str]:
    hosts = options.get("hosts")
    if not isinstance(hosts, list) or not hosts or not all(isinstance(h, str) and h for h in hosts):
        raise description.build_error(
            f"[options] hosts {'is missing' if hosts is None else f'= {hosts!r}'}: must be a list of host names, "
            'such as ["node1", "node2"]'
        )
    if description.is_adaptive:
        raise description.build_error(
            "class ssh has a fixed size, one worker for each of hosts; leave out minimum and maximum"
        )
    return hosts


async def prepare_hosts(
    hosts: list[str], connect: dict[str, Any], contents: Contents, python: str
) -> list[tuple[str, Path]]:  # fmt: skip
    """Log in to all hosts at once, check that each can be used, and copy the certificates that it lacks.

    Returns
    -------
    list of (host, path)
        The copied files.

    Raises
    ------
    InputError
        Names each host that cannot be used, and why.
    """
    outcomes = await asyncio.gather(*(_prepare_host(host, connect, contents, python) for host in hosts))
    errors = [outcome for outcome in outcomes if isinstance(outcome, str)]
    if errors:
        raise InputError("; ".join(errors))
    return [
        (host, path)
        for host, paths in zip(hosts, outcomes, strict=True)
        if not isinstance(paths, str)
        for path in paths
    ]


async def _prepare_host(host: str, connect: dict[str, Any], contents: Contents, python: str) -> list[Path] | str:
    """Copy certificates to a host; return the copied paths, or a text that says why the host cannot be used."""
    import asyncssh

    try:
        async with asyncio.timeout(TIMEOUT_SECONDS), asyncssh.connect(host, **connect) as connection:
            if python and (await connection.run(f"test -x {shlex.quote(python)}")).exit_status != 0:
                return f"ssh {host}: {python} is not a program on that host"
            return [path for path, content in contents.items() if await _copy_file(connection, path, content)]
    except TimeoutError:
        return f"ssh {host}: no answer within {TIMEOUT_SECONDS:g} s"
    except (OSError, asyncssh.Error) as error:
        return f"ssh {host}: {get_first_line(error)}"


async def _copy_file(connection: Any, path: Path, content: str) -> bool:
    """Copy a certificate to a host, unless it is there already, and return whether it was copied.

    The content goes over standard input, not in a command line.
    """
    quoted, folder = shlex.quote(str(path)), shlex.quote(str(path.parent))
    command = f"test -r {quoted} || {{ umask 077; mkdir -p {folder} && cat > {quoted} && echo copied; }}"
    process = await connection.run(command, input=content, check=True)
    return "copied" in str(process.stdout)


async def _remove_files(copied: list[tuple[str, Path]], connect: dict[str, Any]) -> None:
    import asyncssh

    for host in dict.fromkeys(host for host, _ in copied):
        paths = " ".join(shlex.quote(str(path)) for copy_host, path in copied if copy_host == host)
        folder = shlex.quote(str(next(path.parent for copy_host, path in copied if copy_host == host)))
        async with asyncio.timeout(TIMEOUT_SECONDS), asyncssh.connect(host, **connect) as connection:
            await connection.run(f"rm -f {paths}; rmdir {folder}")
