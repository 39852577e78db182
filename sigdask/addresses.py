"""Things of the user's own, named `module:attribute`; imported when they are used and never before."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
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


def look_in(folder: Path) -> None:
    """Find modules in a folder as well, after all others."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


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
