"""Lists of names or labels in an option's value: joined by a mark, or one on each line of a file."""

from __future__ import annotations

from sigdask.errors import InputError
from sigdask.io import as_path


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
    try:
        lines = as_path(file).read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot be read as a list of names ({error}). After @ stands a file with one name on each line; a name "
            "that begins with @ is written in such a file, too",
            file=file,
        ) from None
    names = tuple(line for line in lines if line.strip())
    if not names:
        raise InputError("has no names, expected one on each line", file=file)
    return names
