"""Functions that numba compiles when they are first called, and caches on disk.

Importing a module of such functions does not import numba. numba notices changes of a function's own file only. After
you change a helper that functions of other files call, remove the `*.nbi` files of `__pycache__`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any


class LazyKernel:
    """A function that is compiled when it is first called.

    Parameters
    ----------
    function : callable
        The function to compile.
    compile_function : callable
        Returns the compiled function.
    """

    def __init__(self, function: Any, compile_function: Callable[[Any], Any]) -> None:
        self._function, self._compile, self._compiled = function, compile_function, None
        update_wrapper(self, function)

    def build(self) -> Any:
        """Return the compiled function, and replace the kernels that it calls by compiled ones."""
        with _COMPILING:
            if self._compiled is None:
                function = self._function
                for name in function.__code__.co_names:
                    if isinstance(value := function.__globals__.get(name), LazyKernel):
                        function.__globals__[name] = value.build()
                self._compiled = self._compile(function)
            return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return (self._compiled or self.build())(*arguments)


_COMPILING = threading.RLock()


def cached_njit(**options: Any) -> Callable[[Any], LazyKernel]:
    """Return a decorator that compiles functions with numba, releases the interpreter lock, and caches the result."""

    def compile_function(function: Any) -> Any:
        import numba

        try:
            return numba.njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # no folder can be written, so each process compiles
            return numba.njit(nogil=True, **options)(function)

    return partial(LazyKernel, compile_function=compile_function)
