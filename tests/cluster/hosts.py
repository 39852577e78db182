"""Real parts of clusters, started for a test and stopped after it: schedulers, workers, sshd, hosts."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from cluster.slurm import free_port, wait

TESTS = Path(__file__).parent.parent
DASK = str(Path(sys.executable).parent / "dask")


def environment():
    """What a worker started by hand needs to import the project and the tests."""
    paths = [str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def start(*command, log, prefix=()):
    """Start a process in a session of its own, with its output in a file."""
    with Path(log).open("w") as out:
        return subprocess.Popen(
            [*prefix, *map(str, command)], env=environment(), stdout=out, stderr=out, start_new_session=True
        )


def kill(process, how=signal.SIGKILL):
    """Signal a process and its children."""
    try:
        os.killpg(process.pid, how)
    except ProcessLookupError:
        return
    if how == signal.SIGKILL:
        process.wait()


def tls(files, role):
    """Return the options of `dask scheduler` and `dask worker`."""
    return ["--tls-ca-file", files.ca, "--tls-cert", files.certs[role], "--tls-key", files.keys[role]]


@contextmanager
def dask_cluster(folder, *, files=None, n_workers=1):
    """A scheduler and workers in processes of their own: yields the address."""
    port, scheme = free_port(), "tls" if files else "tcp"
    address = f"{scheme}://127.0.0.1:{port}"
    at = ["--host", "127.0.0.1", "--no-dashboard"]
    secure = {role: tls(files, role) if files else [] for role in ("scheduler", "worker")}
    protocol = ["--protocol", scheme]
    started = [
        start(DASK, "scheduler", *at, *protocol, "--port", port, *secure["scheduler"], log=folder / "scheduler.log")
    ]
    for k in range(n_workers):
        options = [*at, *protocol, "--nthreads", "1", *secure["worker"]]
        started.append(start(DASK, "worker", address, *options, log=folder / f"worker-{k}.log"))
    try:
        wait(lambda: answers(port), "scheduler", 30)
        yield address
    finally:
        for process in reversed(started):
            kill(process)


def answers(port, host="127.0.0.1"):
    import socket

    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((host, port)) == 0


@contextmanager
def sshd(folder):
    """A real sshd on a loopback port, with keys made now: yields the options to log in."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    port = free_port()
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    key = " ".join((folder / "host.pub").read_text().split()[:2])
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {key}\n")
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile {folder}/sshd.pid\n"
        f"AuthorizedKeysFile {folder}/authorized\nPasswordAuthentication no\nUsePAM no\nStrictModes no\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    process = start(shutil.which("sshd"), "-D", "-e", "-f", folder / "config", log=folder / "sshd.log")
    try:
        wait(lambda: answers(port), "sshd", 10)
        yield {"port": port, "username": os.environ.get("USER", "root"), "client_keys": [str(folder / "user")],
               "known_hosts": str(folder / "known_hosts")}  # fmt: skip
    finally:
        kill(process)
