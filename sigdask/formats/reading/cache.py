"""Answers about files that are computed only once while data are read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from sigdask.io.compression import set_variable

P = ParamSpec("P")
T = TypeVar("T")

_results: ContextVar[dict[Hashable, Any] | None] = ContextVar("results by function and arguments", default=None)


@contextmanager
def cache_files() -> Iterator[None]:
    """Read the head and the table of each file only once inside the `with` block."""
    with set_variable(_results, {} if (outer := _results.get()) is None else outer):
        yield


def cache_result(function: Callable[P, T]) -> Callable[P, T]:
    """Call a function with the same arguments only once inside `cache_files`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if (results := _results.get()) is None:
            return function(*args, **kwargs)
        if (key := (function, *args, *kwargs.items())) not in results:
            results[key] = function(*args, **kwargs)
        return cast("T", results[key])

    return call
