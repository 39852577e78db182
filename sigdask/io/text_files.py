"""Text files that people write: plans, cluster descriptions, lists of names. Small, UTF-8, no pipes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.io import as_path


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
        if not path.is_file():
            raise InputError(f"no such file, or not a file; expected {expected}", file=path)
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise build_encoding_error(error.object, path) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({getattr(error, 'strerror', None) or error})", file=path) from None


def build_encoding_error(raw: bytes, path: Path) -> InputError:
    """Return the error for bytes that are not UTF-8, with the first line that shows it."""
    encoding = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin1"
    line = 1 + raw.decode(errors="replace").partition("\N{REPLACEMENT CHARACTER}")[0].count("\n")
    remedy = f"convert the file, for example with iconv -f {encoding} -t utf-8"
    return InputError("is not UTF-8", file=path, line=line, remedy=remedy)


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


def split_names(text: str, mark: str = "+") -> tuple[str, ...]:
    """Return the names that an option's value lists: `A+B`, or one on each line of FILE for `@FILE`.

    Examples
    --------
    >>> split_names("A+B")
    ('A', 'B')
    """
    return tuple(text.split(mark)) if not text.startswith("@") else read_names(text[1:])


def read_names(file: str) -> tuple[str, ...]:
    """Return the lines of a file of names. Empty lines are left out.

    Raises
    ------
    InputError
        The file cannot be read, or has no names.
    """
    expected = "one name on each line. Names that begin with @ are written in such a file, too"
    names = tuple(line for line in read_text(as_path(file), expected).splitlines() if line.strip())
    if not names:
        raise InputError("has no names, expected one on each line", file=file)
    return names
