"""Text files that people write: plans, cluster descriptions, templates. Small, UTF-8, no pipes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from sigdask.errors import InputError

MAX_BYTES = 16 * 2**20
"""Maximum size of a file written by hand."""


def read_text(path: Path, expected: str) -> str:
    """Return the text of a small file that people write.

    Parameters
    ----------
    path : Path
        The file.
    expected : str
        Description of the expected file, for errors: "a plan file (TOML)".

    Raises
    ------
    InputError
        The file is missing, or cannot be read as text.
    """
    try:
        if path.is_dir():
            raise InputError(f"is a folder, expected {expected}", file=path)
        if path.exists() and not path.is_file():
            raise InputError(f"not a file, expected {expected}", file=path)
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError("no such file", file=path) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({getattr(error, 'strerror', None) or error})", file=path) from None
    if len(raw) > MAX_BYTES:
        raise InputError(f"has more than {MAX_BYTES >> 20} MB, so it is not {expected}", file=path)
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise build_encoding_error(raw, path) from None


def build_encoding_error(raw: bytes, path: Path) -> InputError:
    """Return the error for bytes that are not UTF-8, with the first line and byte that show it."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return InputError("is UTF-16, not UTF-8", file=path, remedy="convert the file with iconv -f utf-16 -t utf-8")
    remedy = "is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{raw[error.start]:02x} at offset {error.start}"
        return InputError(f"{byte} {remedy}", file=path, line=line)
    return InputError(f"{remedy}", file=path)


def parse_toml(text: str, path: Path, remedy: str = "") -> dict[str, Any]:
    """Return the tables of a TOML text.

    Parameters
    ----------
    text : str
        The file's text.
    path : Path
        The file, for errors.
    remedy : str
        How to get a TOML file, for errors.

    Raises
    ------
    InputError
        It is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not TOML: {error}", file=path, remedy=remedy) from None
