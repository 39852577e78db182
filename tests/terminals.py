"""Run commands in a real pseudo-terminal, and read its screen afterwards."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass

import pyte

N_ROWS = 400
"""Lines of the window: whatever is written stays on the screen."""


@dataclass(frozen=True)
class TerminalOutput:
    """What a command left on a terminal: its screen, all its output, and its exit status."""

    screen: list[str]
    written: str
    status: int

    @property
    def text(self) -> str:
        return "\n".join(self.screen)


def run_in_terminal(*arguments: str, columns: int, cwd: object = None, **environment: str) -> TerminalOutput:
    """Run sigdask with standard output and error on a terminal with this many columns."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", N_ROWS, columns, 0, 0))
    inherited = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CI"}}
    process = subprocess.Popen(
        [sys.executable, "-m", "sigdask", *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=cwd,
        start_new_session=True,
        env={**inherited, "TERM": "xterm-256color", **environment},
    )
    os.close(terminal)
    output = _read(controller)
    os.close(controller)
    screen = pyte.Screen(columns, N_ROWS)
    pyte.ByteStream(screen).feed(output)
    return TerminalOutput([line.rstrip() for line in screen.display], output.decode(), process.wait())


def _read(terminal: int) -> bytes:
    """Read until the last process that holds the terminal closes it."""
    chunks = []
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # Linux says so when nobody holds the other side
            break
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks)
