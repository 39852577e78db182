"""Real parts of clusters, started for a test and stopped after it: schedulers, workers, sshd, hosts."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from cluster.slurm import find_free_port, wait_until

TESTS = Path(__file__).parent.parent
DASK = str(Path(sys.executable).parent / "dask")


def build_environment():
    """Return the environment in which a worker can import the project and the tests."""
    paths = [str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def start(*command, log, prefix=()):
    """Start a process in a session of its own, with its output in a file."""
    with Path(log).open("w") as out:
        return subprocess.Popen(
            [*prefix, *map(str, command)], env=build_environment(), stdout=out, stderr=out, start_new_session=True
        )


def kill(process, signal_number=signal.SIGKILL):
    """Signal a process and its children."""
    try:
        os.killpg(process.pid, signal_number)
    except ProcessLookupError:
        return
    if signal_number == signal.SIGKILL:
        process.wait()


def write_certificates(folder):
    """Write a certificate as dask makes it and its key to a folder, and return the table of a cluster file."""
    from distributed.security import Security

    security = Security.temporary()
    contents = {"ca": security.tls_ca_file, "cert": security.tls_client_cert, "key": security.tls_client_key}
    for name, content in contents.items():
        (folder / f"{name}.pem").touch(0o600)
        (folder / f"{name}.pem").write_text(content)
    return {name: str(folder / f"{name}.pem") for name in contents}


def list_tls_options(files):
    """Return the options of `dask scheduler` and `dask worker`."""
    return ["--tls-ca-file", files["ca"], "--tls-cert", files["cert"], "--tls-key", files["key"]]


@contextmanager
def start_dask_cluster(folder, *, files=None, n_workers=1):
    """Start a scheduler and workers in processes of their own, and yield the address."""
    port, scheme = find_free_port(), "tls" if files else "tcp"
    address = f"{scheme}://127.0.0.1:{port}"
    options = [
        "--host",
        "127.0.0.1",
        "--no-dashboard",
        "--protocol",
        scheme,
        *(list_tls_options(files) if files else []),
    ]
    processes = [start(DASK, "scheduler", *options, "--port", port, log=folder / "scheduler.log")]
    for k in range(n_workers):
        worker = [DASK, "worker", address, *options, "--nthreads", "1"]
        processes.append(start(*worker, log=folder / f"worker-{k}.log"))
    try:
        wait_until(lambda: is_answering(port), "scheduler", 300)
        yield address
    finally:
        for process in reversed(processes):
            kill(process)


def is_answering(port, host="127.0.0.1"):
    import socket

    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((host, port)) == 0


@contextmanager
def start_sshd(folder):
    """Start a real sshd on a loopback port with new keys, and yield the options to log in."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    port = find_free_port()
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    key = " ".join((folder / "host.pub").read_text().split()[:2])
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {key}\n")
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile {folder}/sshd.pid\n"
        f"AuthorizedKeysFile {folder}/authorized\nPasswordAuthentication no\nUsePAM no\nStrictModes no\n"
        f"SetEnv PYTHONPATH={build_environment()['PYTHONPATH']}\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    process = start(shutil.which("sshd"), "-D", "-e", "-f", folder / "config", log=folder / "sshd.log")
    try:
        wait_until(lambda: is_answering(port), "sshd", 300)
        yield {"port": port, "username": os.environ.get("USER", "root"), "client_keys": [str(folder / "user")],
               "known_hosts": str(folder / "known_hosts")}  # fmt: skip
    finally:
        kill(process)
