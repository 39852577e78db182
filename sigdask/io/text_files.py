"""Text files that people write: plans, cluster descriptions, templates. Small, UTF-8, no pipes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from sigdask.errors import InputError

MAX_BYTES = 16 * 2**20
"""Maximum size of a file written by hand."""

MAX_KEY_PARTS = 50
"""Maximum parts of a dotted key. `tomllib` looks up all its prefixes."""

_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+(?:{_PART}[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS - 1}}}", re.MULTILINE)


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


_YAML = re.compile(r"(?:---|- |[\w.-]+:(?:\s|$))")

TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl")
"""Endings of data files, which are sometimes given in place of a TOML file."""


def parse_toml(text: str, path: Path, remedy: str = "") -> dict[str, Any]:
    """Return the tables of a TOML text.

    Parameters
    ----------
    text : str
        The file's text.
    path : Path
        The file, for errors.
    remedy : str
        How to get a TOML file, for errors about files in another format.

    Raises
    ------
    InputError
        It is not TOML, or its keys have too many parts.
    """
    if _LONG_KEY.search(text):
        raise InputError(f"not TOML: a key has more than {MAX_KEY_PARTS} parts", file=path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML{_describe_toml_error(text, path, str(error), remedy)}", file=path) from None
    except RecursionError:
        raise InputError("not TOML: lists or tables are nested too deep", file=path) from None
    except ValueError as error:  # an integer of thousands of digits, a date that is none
        raise InputError(f"not TOML: {error}", file=path) from None


def _describe_toml_error(text: str, path: Path, error: str, remedy: str) -> str:
    """Return that a text is of another format, or the parser's message with the line."""
    lines = text.splitlines()
    first = next((line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")), " ")
    if first[0] == "{" or _YAML.match(first):
        return f", but {'JSON' if first[0] == '{' else 'YAML'}{remedy and '; '}{remedy}"
    if remedy and path.suffix.lower() in TABLE_SUFFIXES:
        return f"; {remedy}"
    return f": {error}; text needs quotation marks, and a list ends with ]"
