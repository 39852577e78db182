"""Servers on loopback for tests: PostgreSQL from Debian's binaries and a web server that answers badly."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
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
        for _ in range(3000):
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


@contextmanager
def serve_connections(handle):
    """Call a function with each connection, in a thread of its own; yield the port."""

    def run(connection):
        with connection, suppress(OSError):
            handle(connection)

    def accept():
        with suppress(OSError):
            while True:
                threading.Thread(target=run, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def forward_connections(target, is_last=lambda _: False):
    """Forward connections to a local port; yield the port, and an event that connects the two sides while it is set.

    While it is not set nothing passes, nobody is told, and what was sent arrives later, as in a partition of a network.
    Where `is_last` is true of what a client sends, the server gets that, and its answer is lost with the connection.
    """
    connected = threading.Event()
    connected.set()

    def pump(source, sink, is_lost):
        with suppress(OSError):
            while data := source.recv(65536):
                connected.wait()
                if is_lost(data):
                    break
                sink.sendall(data)
        with suppress(OSError):
            connected.wait()
            sink.shutdown(socket.SHUT_WR)

    def handle(connection):
        connected.wait()
        cut = threading.Event()

        def note_last(data):
            if is_last(data):
                cut.set()
            return False

        with socket.create_connection(("127.0.0.1", target)) as server:
            back = threading.Thread(target=pump, args=(server, connection, lambda _: cut.is_set()), daemon=True)
            back.start()
            pump(connection, server, note_last)
            back.join()

    with serve_connections(handle) as port:
        yield port, connected


@contextmanager
def answer_requests(answer):
    """Answer each HTTP request with the parts of bytes that a function of its path yields; yield port and requests."""
    requests = []

    def handle(connection):
        with connection.makefile("rb") as file:
            lines = [line.decode("latin-1").rstrip() for line in iter(file.readline, b"\r\n")]
            headers = dict(line.split(": ", 1) for line in lines[1:])
            body = file.read(int(headers.get("Content-Length", 0)))
        requests.append((lines[0], headers, body))
        connection.settimeout(10)  # whoever reads no more and says so opens no window for what is still to come
        for part in answer(lines[0].split()[1]):
            connection.sendall(part)

    with serve_connections(handle) as port:
        yield port, requests
