"""Things of the user's own, named `module:attribute`; imported when they are used and never before."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from sigdask.errors import InputError


def check(address: str, what: str) -> None:
    """Refuse what cannot be a `module:attribute`.

    Examples
    --------
    >>> check("mine.scores:best", "metric")
    """
    module, _, attribute = address.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
        raise InputError(f"{what} {address!r}: expected MODULE:ATTRIBUTE, such as my_{what}s:name")


class Folders:
    """Finds modules in the user's folders where nothing else does; stands last in `sys.meta_path`.

    The user's own `sys.path` is left as it is.

    Attributes
    ----------
    folders : list of str
        In the order in which they are asked.
    """

    def __init__(self) -> None:
        self.folders: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is; what is within a package is found by the package's own path."""
        return PathFinder.find_spec(name, self.folders, target) if path is None else None


FOLDERS = Folders()
"""Of this process; what its local workers are sent goes with it."""


def look_in(folder: Path | str) -> None:
    """Find modules in a folder as well, after all others."""
    if FOLDERS not in sys.meta_path:
        sys.meta_path.append(FOLDERS)
    found = str(Path(folder).absolute())
    if found not in FOLDERS.folders:
        FOLDERS.folders.append(found)


def looked_in() -> tuple[str, ...]:
    """Return the folders in which this process finds modules after all others."""
    return tuple(FOLDERS.folders)


def load(address: str, what: str) -> Any:
    """Return what `module:attribute` names.

    Modules are looked for on the path and in the current folder.
    """
    check(address, what)
    module_name, _, attribute = address.partition(":")
    look_in(Path.cwd())
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:  # noqa: BLE001  # a user's module may raise anything
        raise InputError(
            f"{what} {address!r}: cannot import {module_name!r} ({error or type(error).__name__})"
        ) from None
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise InputError(f"{what} {address!r}: {module_name!r} has no {what} or function {attribute!r}")
    return found
