"""How a user's function travels to workers: by its name where they can import it, never as code off this machine."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.io.addresses import look_in

Function = Callable[..., Any]


def address_of(function: Any) -> str | None:
    """Return `module:name` where importing that gives this very function, or None.

    Examples
    --------
    >>> address_of(address_of), address_of(lambda: 0)
    ('sigdask.metrics.travel:address_of', None)
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name or module == "__main__" or "<" in name:
        return None
    try:
        found = _attribute(sys.modules[module], name)
    except (KeyError, AttributeError):
        return None
    return f"{module}:{name}" if found is function else None


def is_named(function: Any) -> bool:
    """Say whether a function, or a callable object, can be sent as names and values alone.

    Plain pickle never sends code; what `__main__` defines, workers cannot import.

    Examples
    --------
    >>> is_named(is_named), is_named(lambda: 0)
    (True, False)
    """
    if address_of(function) is not None:
        return True
    try:
        return b"__main__" not in pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False


def folder_of(function: Any) -> str:
    """Return the folder from which a function's module was imported here; workers may share it."""
    name = function.__module__
    file = getattr(sys.modules[name], "__file__", None)
    return str(Path(file).resolve().parents[name.count(".")]) if file else ""


def function_at(address: str, folder: str = "") -> Function:
    """Return the function of an address.

    Parameters
    ----------
    address : str
        `module:name`; modules are looked for on the path, in the current folder, and in `folder`.
    folder : str
        Where the driver has it.

    Raises
    ------
    InputError
        It cannot be imported here; says where.
    """
    module, _, name = address.partition(":")
    look_in(Path.cwd())
    if folder and Path(folder).is_dir():
        look_in(Path(folder))
    try:
        found: Function = _attribute(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"metric {address!r} cannot be imported by a worker ({error}): put its module on the workers' path "
            "(install it, PYTHONPATH, or a shared folder)"
        ) from None
    return found


def functions_of(panel: Any) -> Iterator[tuple[str, Function]]:
    """Yield the users' functions within a panel, or the panels of a family, with the names of their metrics."""
    for member in getattr(panel, "members", ()):
        yield from functions_of(member.panel)
    black_box = getattr(panel, "metric", None)
    if black_box is not None:
        yield black_box.name, black_box.function
    for metric in getattr(panel, "metrics", ()):
        function = getattr(getattr(metric, "form", None), "function", None)
        if function is not None:
            yield metric.name, function


def _attribute(module: Any, name: str) -> Any:
    """Return an attribute; of a metric that a decorator put in a function's place, the function."""
    found = reduce(getattr, name.split("."), module)
    bound = getattr(found, "bind", found)
    return getattr(bound, "function", bound)
