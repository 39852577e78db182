"""Python objects of other code: those that users name as `module:attribute`, and entry points of packages."""

from __future__ import annotations

import pkgutil
import sys
import sysconfig
import traceback
from pathlib import Path
from typing import Any

from sigdask.errors import InputError


def check_address(address: str, what: str) -> None:
    """Raise unless an address has the form `module:attribute`.

    Examples
    --------
    >>> check_address("mine.scores:best", "metric")
    """
    module, _, attribute = address.partition(":")
    if module.endswith(".py") or not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
        raise InputError(f"{what} {address!r}: expected MODULE:ATTRIBUTE (no file), such as my_{what}s:name")


FOLDERS: list[str] = []
"""Folders of the user's modules, in the order of search. They are at the end of `sys.path`, after installed modules."""


def add_folder(folder: Path | str) -> None:
    """Add a folder in which modules are searched for, after all others."""
    path = str(Path(folder).absolute())
    for folders in (FOLDERS, sys.path):
        if path not in folders:
            folders.append(path)


def load_object(address: str, what: str) -> Any:
    """Import and return the object that `module:attribute` names.

    Modules are searched on the path and in the current folder.
    """
    check_address(address, what)
    add_folder(Path.cwd())
    try:
        return pkgutil.resolve_name(address)
    except Exception as error:  # noqa: BLE001  # a user's module may raise anything
        problem = f"{what} {address!r}: cannot import it ({describe_failure(error)})"
        remedy = f"modules are searched for on Python's path and in {', '.join(FOLDERS)}"
        raise InputError(problem, remedy=remedy) from None


def describe_failure(error: BaseException) -> str:
    """Return an error of a user's code as text, with the last line of that code that ran."""
    others = (str(Path(__file__).parents[1]), "<frozen", *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(others)]
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}".removesuffix(": ") + place
