"""How a user's function reaches workers: by an importable name, never as code."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.io.addresses import add_folder

Function = Callable[..., Any]


def get_address(function: Any) -> str | None:
    """Return `module:name` if importing it gives this very function, else None.

    Examples
    --------
    >>> get_address(get_address), get_address(lambda: 0)
    ('sigdask.metrics.transport:get_address', None)
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name or module == "__main__" or "<" in name:
        return None
    try:
        attribute = _get_function(sys.modules[module], name)
    except (KeyError, AttributeError):
        return None
    return f"{module}:{name}" if attribute is function else None


def is_user_function(function: Any) -> bool:
    """Return whether a function is the user's own, so that its source is part of digests, not only its name.

    Examples
    --------
    >>> is_user_function(is_user_function), is_user_function(max)
    (False, True)
    """
    inner = getattr(function, "function", getattr(function, "func", function))  # of a metric, a partial
    return (getattr(inner, "__module__", None) or "").partition(".")[0] != "sigdask"


def can_send_by_name(function: Any) -> bool:
    """Return whether a function or callable object can be sent as names and values alone.

    Plain pickle never sends code, and workers cannot import definitions of `__main__`.

    Examples
    --------
    >>> can_send_by_name(can_send_by_name), can_send_by_name(lambda: 0)
    (True, False)
    """
    if get_address(function) is not None:
        return True
    try:
        return b"__main__" not in pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False


def reduce_by_address(kind: Callable[..., Any], name: str, function: Function, *rest: Any) -> tuple[Any, ...]:
    """Return what pickle needs to build `kind(name, function, *rest)`, with the function's address if it has one."""
    address = get_address(function)
    if address is None:
        return kind, (name, function, *rest)
    file = getattr(sys.modules[function.__module__], "__file__", None)  # workers may find its folder too
    folder = str(Path(file).resolve().parents[function.__module__.count(".")]) if file else ""
    return _build_by_address, (kind, name, address, folder, *rest)


def _build_by_address(kind: Callable[..., Any], name: str, address: str, folder: str, *rest: Any) -> Any:
    """Import the function with this address, and build `kind(name, function, *rest)`.

    Parameters
    ----------
    kind, name, rest
        The class or function to call, and its arguments before and after the function.
    address : str
        `module:name`; modules are looked for on the path, in the current folder, and in `folder`.
    folder : str
        Its folder on the driver; empty if unknown.

    Raises
    ------
    InputError
        The function cannot be imported. The message says where.
    """
    module, _, attribute = address.partition(":")
    add_folder(Path.cwd())
    if folder and Path(folder).is_dir():
        add_folder(Path(folder))
    try:
        function = _get_function(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"metric {address!r} cannot be imported by a worker ({error}): put its module on the workers' path "
            "(install it, PYTHONPATH, or a shared folder)"
        ) from None
    return kind(name, function, *rest)


def iter_functions(panel: Any) -> Iterator[tuple[str, Function]]:
    """Yield the user's functions that a panel, or a family of panels, calls, each with its metric's name."""
    for member in getattr(panel, "members", ()):
        yield from iter_functions(member.panel)
    black_box = getattr(panel, "metric", None)
    if black_box is not None and hasattr(black_box, "function"):
        yield black_box.name, black_box.function
    for metric in getattr(panel, "metrics", ()):
        function = getattr(getattr(metric, "form", None), "function", None)
        if function is not None:
            yield metric.name, function


def _get_function(module: Any, name: str) -> Any:
    """Return a module's attribute by its dotted name; for a metric, the function that it was made from."""
    attribute = reduce(getattr, name.split("."), module)
    bound = getattr(attribute, "bind", attribute)
    return getattr(bound, "function", bound)
