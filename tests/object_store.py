"""File servers on loopback, for tests: S3 in another process, and HTTP in a thread."""

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
from servers import find_free_port

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/bPxRfiCYEXAMPLEKEY"


def write_scores(path, *, seed, n_items=40):
    """Write one system's scores to a file."""
    values = np.random.default_rng(seed).random(n_items).round(2)
    path.write_text("id,score\n" + "".join(f"i{k},{value}\n" for k, value in enumerate(values)))


class ObjectStore:
    """An S3 server in another process; the first `n_free` requests need no authentication."""

    def __init__(self, log, n_free=10**9):
        self.port = find_free_port()
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        environment = os.environ | {"INITIAL_NO_AUTH_ACTION_COUNT": str(n_free)}
        self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        for _ in range(3000):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.1)
        pytest.fail("the object store did not start")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self):
        """Environment variables for using the server; none of them belongs in a plan."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.url,
        }

    def kill(self):
        self.process.kill()
        self.process.wait()


class FolderHandler(http.server.SimpleHTTPRequestHandler):
    """Serve a folder; a path may start with a status to return or `slow`."""

    def do_GET(self):
        self.server.asked.append((self.command, self.path, self.headers.get("Authorization")))
        directory_name = self.path.split("?")[0].strip("/").split("/")[0]
        if directory_name.isdecimal():
            self.send_error(int(directory_name))
        elif directory_name == "slow":
            self.server.closing.wait(30)
        else:
            super().do_GET() if self.command == "GET" else super().do_HEAD()

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def serve_folder(folder):
    """Serve the files of a folder over HTTP; `asked` lists the requests."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(FolderHandler, directory=str(folder)))
    server.daemon_threads, server.asked, server.closing = True, [], threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
