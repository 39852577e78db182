"""Python objects that users name as `module:attribute`, such as their own metrics; imported only when used."""

from __future__ import annotations

import importlib
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
    if module.endswith(".py"):
        raise InputError(
            f"{what} {address!r}: expected a module, not a file",
            remedy=f"write {Path(module).stem}:{attribute}. sigdask looks for modules on Python's path, in the "
            "current folder, and in the folder of the plan",
        )
    if not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
        raise InputError(f"{what} {address!r}: expected MODULE:ATTRIBUTE, such as my_{what}s:name")


FOLDERS: list[str] = []
"""Folders of the user's modules, in the order of search. They are at the end of `sys.path`, after installed modules."""


def add_folder(folder: Path | str) -> None:
    """Add a folder in which modules are searched for, after all others."""
    path = str(Path(folder).absolute())
    for folders in (FOLDERS, sys.path):
        if path not in folders:
            folders.append(path)


def list_folders() -> tuple[str, ...]:
    """Return the folders that were added to this process's search for modules."""
    return tuple(FOLDERS)


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
            reason = f"no module of this name on Python's path or in {', '.join(FOLDERS)}"
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
