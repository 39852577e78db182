"""Servers of files on loopback, for tests: one that speaks S3 in a process of its own, one that speaks HTTP in a thread."""

import contextlib
import functools
import http.server
import os
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from servers import free_port

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/bPxRfiCYEXAMPLEKEY"


def scores(path, *, seed, n_items=40):
    """A file of one system's scores."""
    values = np.random.default_rng(seed).random(n_items).round(2)
    path.write_text("id,score\n" + "".join(f"i{k},{value}\n" for k, value in enumerate(values)))


class ObjectStore:
    """A process that speaks S3; with `n_free` requests that need no leave, as their user has none."""

    def __init__(self, log, n_free=10**9):
        self.port = free_port()
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        environment = os.environ | {"INITIAL_NO_AUTH_ACTION_COUNT": str(n_free)}
        self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.1)
        pytest.fail("the object store did not start")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self):
        """What a user sets to work with it: nothing of it is in a plan."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.url,
        }

    def kill(self):
        self.process.kill()
        self.process.wait()


class _Files(http.server.SimpleHTTPRequestHandler):
    """Files of a folder; a path that begins with a status answers so, `slow` never, `once` breaks off the first time."""

    def do_GET(self):
        self.server.asked.append((self.command, self.path, self.headers.get("Authorization")))
        first = self.path.split("?")[0].strip("/").split("/")[0]
        if first.isdecimal():
            self.send_error(int(first))
        elif first == "slow":
            self.server.closing.wait(30)
        elif first == "once" and self.server.broken < 2:
            self.server.broken += self.command == "GET"
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(b"id,a,b\n")
                self.close_connection = True
        else:
            super().do_GET() if self.command == "GET" else super().do_HEAD()

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def web(folder):
    """A server of the files in a folder; `asked` is what it was asked for."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Files, directory=str(folder)))
    server.daemon_threads, server.asked, server.closing, server.broken = True, [], threading.Event(), 0
    server.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
