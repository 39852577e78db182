"""Standard output and error as commands use them: what is written is harmless, and a lost stream ends no command.

All that is written on `sys.stdout` and `sys.stderr`, by whomever, goes through here: users' words cannot command a
terminal, and a stream that is closed, full or no longer read takes the rest and is done with. Only `exactly` passes on
data and what draws a bar as they are.
"""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import suppress
from typing import IO, Any, TextIO, cast

from sigdask.text import printable

COLOURS = re.compile(r"(\x1b\[[\d;]*m)+")
"""What sets colours, and gives them back."""


PLAIN = str.maketrans("─✓…", "-+.")
"""Marks of ours, and what stands for them where an encoding lacks them."""


class LossTolerantStream(io.TextIOBase):
    """A stream whose loss is kept in mind instead of raised.

    Parameters
    ----------
    own : text stream or None
        What is written on; None for one that is closed.

    Attributes
    ----------
    lost : str
        Why what was written did not arrive; empty for a reader who has read enough, and where all went well.
    open : bool
        Whether what is written may still arrive.
    """

    def __init__(self, own: TextIO | None) -> None:
        self._own = own
        self.open = own is not None
        self.lost = ""

    def write(self, text: str) -> int:
        """Write a text as it is."""
        if self.open:
            try:
                cast("TextIO", self._own).write(text)
            except (OSError, ValueError) as error:
                self._lose(error)
        return len(text)

    def write_bytes(self, data: bytes) -> None:
        """Write bytes as they are."""
        self.flush()
        if self.open:
            try:
                cast("TextIO", self._own).buffer.write(data)
            except (OSError, ValueError) as error:
                self._lose(error)

    def flush(self) -> None:
        """Pass on what is held back."""
        if self.open:
            try:
                cast("TextIO", self._own).flush()
            except (OSError, ValueError) as error:
                self._lose(error)

    def isatty(self) -> bool:
        """Say whether it is a terminal."""
        return self.open and cast("TextIO", self._own).isatty()

    def fileno(self) -> int:
        """Return its number, if it has one."""
        if self._own is None:
            raise io.UnsupportedOperation("fileno")
        return self._own.fileno()

    def writable(self) -> bool:
        """Say that it can be written on."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Return how letters become bytes."""
        return getattr(self._own, "encoding", None) or "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        """Return what becomes of letters that the encoding lacks."""
        return getattr(self._own, "errors", None) or "strict"

    def _lose(self, error: Exception) -> None:
        """Let what is still held back, and what children write, go nowhere."""
        self.open = False
        self.lost = "" if isinstance(error, BrokenPipeError) else getattr(error, "strerror", None) or str(error)
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())


class Harmless(LossTolerantStream):
    """A sturdy stream of words: nothing on it is taken as a command, and letters that its encoding lacks are marked.

    Attributes
    ----------
    exactly : LossTolerantStream
        The same stream for data.
    """

    def __init__(self, own: TextIO | None) -> None:
        super().__init__(None)
        self.exactly = LossTolerantStream(own)
        self._own = cast("TextIO", self.exactly)
        self.open = True

    def write(self, text: str) -> int:
        """Write words; colours alone, with which libraries leave a terminal as they found it, are none."""
        if COLOURS.fullmatch(text):
            return len(text)
        shown = printable(text, keep="\n")
        self.exactly.write(shown if shown.isascii() else _within(shown, self.encoding))
        return len(text)


def _within(text: str, encoding: str) -> str:
    """Return a text in letters that an encoding has: our marks as others, what is else lacking as question marks."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(PLAIN).encode(encoding, "replace").decode(encoding)
    return text


def guard() -> None:
    """Put harmless streams in the place of standard output and error; those that are closed go nowhere.

    Their numbers are taken, so that no file that is opened later gets what others write on them.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            _take(number)
    for name in ("stdout", "stderr"):
        own = getattr(sys, name)
        setattr(sys, name, Harmless(own.exactly._own if isinstance(own, Harmless) else own))  # noqa: SLF001  # our own


def _take(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)


def exactly(stream: IO[Any]) -> LossTolerantStream:
    """Return the stream that passes data on as they are."""
    return stream.exactly if isinstance(stream, Harmless) else LossTolerantStream(cast("TextIO", stream))


def unwritten() -> str:
    """Say why results did not arrive on standard output; nothing where they did, or nobody wanted more."""
    stream = exactly(sys.stdout)
    stream.flush()
    return stream.lost
