"""A PostgreSQL server on loopback, for tests, from Debian's binaries, thrown away afterwards."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import pytest

PASSWORD = "sec:ret/%@word"


class Postgres:
    """A server that can be killed and started again on the same data."""

    def __init__(self, binaries, folder):
        self.binaries, self.folder, self.port = binaries, folder, find_free_port()
        (folder / "password").write_text(PASSWORD)
        options = ("-A", "scram-sha-256", "-U", "sigdask", "--pwfile", str(folder / "password"))
        self._run("initdb", "-D", str(folder / "data"), *options, "-N")
        self.process = None
        self.start()

    @property
    def url(self):
        return f"postgresql://sigdask:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/postgres"

    def start(self):
        options = ["-D", str(self.folder / "data"), "-p", str(self.port), "-h", "127.0.0.1", "-k", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._drop_root([str(self.binaries / "postgres"), *options]),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        for _ in range(300):
            ready = self._run("pg_isready", "-h", "127.0.0.1", "-p", str(self.port), "-U", "sigdask", check=False)
            if ready.returncode == 0:
                return
            time.sleep(0.1)
        pytest.fail((self.folder / "log").read_text())

    def kill(self):
        """Kill the server and all its processes, as a loss of power would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        time.sleep(0.2)

    def close(self):
        """Kill the server and throw its data away."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, name, *arguments, check=True):
        return subprocess.run(
            self._drop_root([str(self.binaries / name), *arguments]), check=check, capture_output=True
        )

    def _drop_root(self, command):
        """Prefix the command to run as another user: the server refuses to run as root."""
        return (
            command if os.geteuid() else ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]
        )


def start_postgres():
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    binary = binaries[-1] if binaries else shutil.which("postgres")
    if binary is None or (not os.geteuid() and shutil.which("setpriv") is None):
        pytest.skip("no PostgreSQL server is installed (apt-get install postgresql)")
    pytest.importorskip("psycopg")
    folder = Path(tempfile.mkdtemp(prefix="sigdask-pg-", dir="/tmp"))
    if not os.geteuid():
        try:
            shutil.chown(folder, "postgres", "postgres")
        except LookupError:
            pytest.skip("there is no user postgres to run the server as")
    return Postgres(Path(binary).resolve().parent, folder)


def find_free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
