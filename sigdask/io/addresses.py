"""Python objects that users name as `module:attribute`, such as their own metrics; imported only when used."""

from __future__ import annotations

import importlib
import sys
import sysconfig
import traceback
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
    if module.endswith(".py"):
        raise InputError(
            f"{what} {address!r}: expected a module, not a file; write {Path(module).stem}:{attribute}. sigdask looks "
            "for modules on Python's path, in the current folder, and in the folder of the plan"
        )
    if not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
        raise InputError(f"{what} {address!r}: expected MODULE:ATTRIBUTE, such as my_{what}s:name")


class FolderFinder:
    """Import finder that searches the user's folders after all other finders.

    The user's own `sys.path` is not changed.

    Attributes
    ----------
    folders : list of str
        Folders in the order of search.
    """

    def __init__(self) -> None:
        self.folders: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a top-level module in the folders, or None; modules in packages are not its task."""
        return PathFinder.find_spec(name, self.folders, target) if path is None else None


FOLDERS = FolderFinder()
"""Temporary folders of this process. Data sent to local workers are removed with it."""


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

    Modules are searched on the path and in the current folder.
    """
    check_address(address, what)
    module_name, _, attribute = address.partition(":")
    add_folder(Path.cwd())
    try:
        target: Any = importlib.import_module(module_name)
    except Exception as error:  # noqa: BLE001  # a user's module may raise anything
        reason = describe_failure(error)
        if isinstance(error, ModuleNotFoundError) and error.name in {module_name, module_name.partition(".")[0]}:
            reason = f"no module of this name on Python's path or in {', '.join(FOLDERS.folders)}"
        raise InputError(f"{what} {address!r}: cannot import {module_name!r} ({reason})") from None
    for part in attribute.split("."):
        target = getattr(target, part, None)
    if target is None:
        raise InputError(f"{what} {address!r}: {module_name!r} has no {what} or function {attribute!r}")
    return target


def describe_failure(error: BaseException, function: Any = None) -> str:
    """Return an error of a user's code as text, with the last line that ran, or the function's first line."""
    others = (str(Path(__file__).parents[1]), "<frozen", *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(others)]
    code: Any = getattr(function, "__code__", None)
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    if isinstance(error, SyntaxError) or (not frames and code is None):  # the first names file and line itself
        return text
    file, line = (frames[-1].filename, frames[-1].lineno) if frames else (code.co_filename, code.co_firstlineno)
    path = Path(file)
    return f"{text} ({path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}, line {line})"
