"""Standard output and error, with control characters escaped, that go on when their reader has gone.

Everything written on `sys.stdout` and `sys.stderr` goes through here. Text of users cannot control the terminal, and
output to a stream that is closed, full or no longer read is dropped. Only `data_stream` passes data and progress bars
on unchanged.
"""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import suppress
from typing import IO, Any, TextIO, cast

from sigdask.text import make_printable

COLOURS = re.compile(r"(\x1b\[[\d;]*m)+")
"""What sets colours, and gives them back."""


ASCII_MARKS = str.maketrans("─✓…", "-+.")
"""Marks of ours, and what stands for them where an encoding lacks them."""


class LossTolerantStream(io.TextIOBase):
    """A stream that does not raise when its reader is gone or the disk is full, but remembers why.

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
        self._stream = own
        self.open = own is not None
        self.lost = ""

    def write(self, text: str) -> int:
        """Write text unchanged."""
        if self.open:
            try:
                cast("TextIO", self._stream).write(text)
            except (OSError, ValueError) as error:
                self._discard_output(error)
        return len(text)

    def write_bytes(self, data: bytes) -> None:
        """Write bytes unchanged."""
        self.flush()
        if self.open:
            try:
                cast("TextIO", self._stream).buffer.write(data)
            except (OSError, ValueError) as error:
                self._discard_output(error)

    def flush(self) -> None:
        """Flush the buffer."""
        if self.open:
            try:
                cast("TextIO", self._stream).flush()
            except (OSError, ValueError) as error:
                self._discard_output(error)

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self.open and cast("TextIO", self._stream).isatty()

    def fileno(self) -> int:
        """Return the file descriptor, if there is one."""
        if self._stream is None:
            raise io.UnsupportedOperation("fileno")
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return True, because the stream can be written to."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The stream's encoding."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        """How the stream treats characters that its encoding lacks."""
        return getattr(self._stream, "errors", None) or "strict"

    def _discard_output(self, error: Exception) -> None:
        """Note why output was lost, and send what is still buffered to the null device."""
        self.open = False
        self.lost = "" if isinstance(error, BrokenPipeError) else getattr(error, "strerror", None) or str(error)
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())


class Harmless(LossTolerantStream):
    """A text stream that escapes control characters and replaces characters that its encoding lacks.

    Attributes
    ----------
    exactly : LossTolerantStream
        The same stream for data.
    """

    def __init__(self, own: TextIO | None) -> None:
        super().__init__(None)
        self.exactly = LossTolerantStream(own)
        self._stream = cast("TextIO", self.exactly)
        self.open = True

    def write(self, text: str) -> int:
        """Write text with control characters escaped; a text that is only colour codes is dropped."""
        if COLOURS.fullmatch(text):
            return len(text)
        escaped = make_printable(text, keep="\n")
        self.exactly.write(escaped if escaped.isascii() else _replace_unencodable(escaped, self.encoding))
        return len(text)


def _replace_unencodable(text: str, encoding: str) -> str:
    """Return a text with the characters that an encoding lacks replaced by ASCII marks or "?"."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(ASCII_MARKS).encode(encoding, "replace").decode(encoding)
    return text


def protect_streams() -> None:
    """Replace standard output and error by streams that escape control characters and tolerate lost readers.

    Their numbers are taken, so that no file that is opened later gets what others write on them.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            _open_null_as(number)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        setattr(sys, name, Harmless(stream.exactly._stream if isinstance(stream, Harmless) else stream))  # noqa: SLF001  # our own


def _open_null_as(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)


def data_stream(stream: IO[Any]) -> LossTolerantStream:
    """Return the stream that writes to the same place as a text stream, but without escaping anything."""
    return stream.exactly if isinstance(stream, Harmless) else LossTolerantStream(cast("TextIO", stream))


def describe_lost_output() -> str:
    """Return why output was lost; empty if all was written or the reader closed the pipe."""
    stream = data_stream(sys.stdout)
    stream.flush()
    return stream.lost
