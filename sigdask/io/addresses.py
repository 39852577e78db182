"""Python objects that users name as `module:attribute`, such as their own metrics; imported only when used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from sigdask.errors import InputError


def check_address(address: str, what: str) -> None:
    """Raise unless an address has the form `module:attribute`.

    Examples
    --------
    >>> check_address("mine.scores:best", "metric")
    """
    module, _, attribute = address.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
        raise InputError(f"{what} {address!r}: expected MODULE:ATTRIBUTE, such as my_{what}s:name")


class FolderFinder:
    """Import finder that looks for modules in the user's folders, after all other finders.

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
        """Return the spec of a top-level module in the folders, or None; modules in packages are not its task."""
        return PathFinder.find_spec(name, self.folders, target) if path is None else None


FOLDERS = FolderFinder()
"""Of this process; what its local workers are sent goes with it."""


def add_folder(folder: Path | str) -> None:
    """Add a folder in which modules are searched for, after all others."""
    if FOLDERS not in sys.meta_path:
        sys.meta_path.append(FOLDERS)
    path = str(Path(folder).absolute())
    if path not in FOLDERS.folders:
        FOLDERS.folders.append(path)


def list_folders() -> tuple[str, ...]:
    """Return the folders that were added to this process's search for modules."""
    return tuple(FOLDERS.folders)


def load_object(address: str, what: str) -> Any:
    """Import and return the object that `module:attribute` names.

    Modules are looked for on the path and in the current folder.
    """
    check_address(address, what)
    module_name, _, attribute = address.partition(":")
    add_folder(Path.cwd())
    try:
        target: Any = importlib.import_module(module_name)
    except Exception as error:  # noqa: BLE001  # a user's module may raise anything
        raise InputError(
            f"{what} {address!r}: cannot import {module_name!r} ({error or type(error).__name__})"
        ) from None
    for part in attribute.split("."):
        target = getattr(target, part, None)
    if target is None:
        raise InputError(f"{what} {address!r}: {module_name!r} has no {what} or function {attribute!r}")
    return target
