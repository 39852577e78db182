"""Bit operations of kernels."""

from __future__ import annotations

from typing import Any

from sigdask.io.caches import FunctionToCompile


def _generate_popcount(_context: Any, word: Any) -> Any:
    """Return the number of set bits of a word (LLVM's ctpop)."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), generate


def _build_intrinsic(function: Any) -> Any:
    from numba.extending import intrinsic

    return intrinsic(function)


popcount = FunctionToCompile(_generate_popcount, _build_intrinsic)
