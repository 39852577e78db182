"""Commands run in a real pseudo-terminal, and what its screen shows afterwards."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass

import pyte

ROWS = 300
"""Lines of the window: whatever is written stays on the screen."""


@dataclass(frozen=True)
class Shown:
    """What a command left on a terminal: its screen, its bytes, and its exit status."""

    screen: list[str]
    written: str
    status: int

    @property
    def text(self) -> str:
        return "\n".join(self.screen)


def shown(*arguments: str, columns: int, cwd: object = None, **environment: str) -> Shown:
    """Run sigdask with standard output and error on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    inherited = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CI"}}
    process = subprocess.Popen(
        [sys.executable, "-m", "sigdask", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        start_new_session=True,
        env={**inherited, "TERM": "xterm-256color", **environment},
    )
    os.close(theirs)
    written = _read(ours)
    os.close(ours)
    screen = pyte.Screen(columns, ROWS)
    pyte.ByteStream(screen).feed(written)
    return Shown([line.rstrip() for line in screen.display], written.decode(), process.wait())


def _read(terminal: int) -> bytes:
    """Read until the last process that holds the terminal leaves it."""
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux says so when nobody holds the other side
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts)
