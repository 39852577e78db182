"""What is counted, by content: equal digests mean equal counts, whatever files, names or plans they came from.

A pair's digest holds the key of its stream (seed, test set, unit ids), the score's form, and what
the two systems contribute to each unit, and nothing of any other system: changing one system file
of twenty leaves the other pairs' digests, and so their counts, as they are.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Factor
from sigdask.counts.fields import LazyOutputs
from sigdask.counts.lattice import MOST_DIGITS, Lattice, RoundedLattice
from sigdask.counts.precision import ExactNumbers
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.identity import Identity, identity_of
from sigdask.randomization.panels.scored_sums import ScoredSums
from sigdask.randomization.stream.shuffles import SCHEME

COUNTING = 2
"""Raised when a correction changes counts, so that none made before is used again."""

BYTES = 20

MOST_NUMBERS = 2**16
"""Contributions that are hashed at a time."""

Digests = NDArray[np.void]
"""Of `BYTES` bytes each."""


def of_pairs(panel: ScoredSums, m: int) -> Digests:
    """Return the digest of each pair under one metric, shape (n_pairs,)."""
    own = list(panel.metrics[m].fields)
    lattices = [panel.lattices[f] for f in own]
    form = (panel.metrics[m].form, [kind(x) for x in lattices], *widened(panel, m))
    header = digest(("pair", panel.key, panel.enumerated, *form))
    scales = np.array([factor(lattice) for lattice in lattices], np.uint64)
    totals = panel.totals[:, own].astype(np.uint64) * scales  # (n_systems, n_fields)
    sums = _sums(panel, own, scales)
    i, j = panel.pairs.T
    rows = np.concatenate([sums[i] - sums[j], totals[i], totals[j]], axis=1)  # (n_pairs, 2 + 2 n_fields)
    start = hashlib.blake2b(header.encode(), digest_size=BYTES)
    return packed(_continued(start, row) for row in _pieces(rows.astype("<u8", copy=False)))


def packed(digests: Iterable[bytes]) -> Digests:
    """Return digests as an array, shape (n,)."""
    return np.frombuffer(b"".join(digests), np.dtype((np.void, BYTES)))


def _pieces(rows: NDArray[Any]) -> Iterator[bytes]:
    """Yield the bytes of each row."""
    whole, size = rows.tobytes(), rows.itemsize * rows.shape[1]
    return (whole[at : at + size] for at in range(0, len(whole), size))


def _continued(start: Any, more: bytes) -> bytes:
    one = start.copy()
    one.update(more)
    return bytes(one.digest())


def _sums(panel: ScoredSums, own: list[int], scales: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the sum over units of a hash of what each system contributes, shape (n_systems, 2).

    In the difference of two systems' sums, units to which both contribute the same cancel, so that
    it does not matter which units a panel keeps for the sake of other systems.
    """
    sums = np.zeros((len(panel.totals), 2), np.uint64)
    step = max(1, MOST_NUMBERS // max(len(panel.addresses), 1))
    for seed in range(2):
        base = mixed(panel.addresses.astype(np.uint64) + np.uint64((seed + 1) * GOLDEN & ALL))
        for start in range(0, len(sums), step):
            some = slice(start, start + step)
            hashed = mixed(base[:, None] ^ panel.sizes_of(some).astype(np.uint64))  # (n_kept, n_systems), or 1
            for f, scale in zip(own, scales, strict=True):
                hashed = mixed(hashed ^ (panel.values[:, some, f].astype(np.uint64) * scale))
            sums[some, seed] = hashed.sum(axis=0, dtype=np.uint64)
    return sums


GOLDEN, ALL = 0x9E3779B97F4A7C15, 2**64 - 1
STEP = np.uint64(GOLDEN)


def mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the finalizer of SplitMix64 (Steele, Lea & Flood 2014), which turns every bit's change into many."""
    x = x + STEP
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def widened(panel: ScoredSums, m: int) -> tuple[str, ...]:
    """Mark counts whose ties are wider than those of 0.1: scores of inexact sums, and weighted ones."""
    plain = max((panel.lattices[f].slack for f in panel.compared(m)), default=0)
    return ("widened",) if panel.is_approximate(m) or panel.steps(m) > plain else ()


def kind(lattice: Lattice) -> tuple[Any, ...]:
    """Return what of a lattice belongs to the pair: decimals stand for the same scores on any of them."""
    if isinstance(lattice, RoundedLattice):
        return "rounded", lattice.exponent, lattice.rounding
    return ("decimal", 0) if lattice.digits is not None else ("binary", lattice.exponent)


def factor(lattice: Lattice) -> int:
    """Return what integers on a lattice are multiplied by, so that equal decimals are equal on any of them."""
    return 10 ** (MOST_DIGITS - lattice.digits) if lattice.digits is not None and lattice.digits <= MOST_DIGITS else 1


def digest(value: Any) -> str:
    """Return what a value is, by the tags and contents of all that it is made of."""
    made = hashlib.blake2b(digest_size=BYTES)
    made.update(f"{SCHEME} {COUNTING}".encode())
    try:
        _add(made, value)
    except RecursionError:
        raise InputError(
            f"{type(value).__name__}: a metric whose state holds itself cannot be told from another; give a function"
        ) from None
    return made.hexdigest()


def content(value: Any) -> int:
    """Return what a value is as 64 bits, the same in every version that counts otherwise as well."""
    made = hashlib.blake2b(digest_size=8)
    _add(made, value)
    return int.from_bytes(made.digest(), "little")


def _add(made: Any, value: Any) -> None:
    """Add a value's type and content, each part delimited."""
    value = _as_hashed(value)
    known = _known(type(value))
    made.update(f"<{known.tag if known else type(value).__name__}>".encode())
    if isinstance(value, np.ndarray) and value.dtype != object:
        made.update(f"{value.dtype.str}{value.shape}".encode())
        made.update(np.ascontiguousarray(value).tobytes())
    elif known is not None or is_dataclass(value):
        for name in known.fields_of(value) if known else [f.name for f in fields(value)]:
            _add(made, getattr(value, name))
    elif isinstance(value, (tuple, list, np.ndarray)):
        made.update(f"{len(value)}:".encode())
        for item in value:
            _add(made, item)
    elif (inside := _inside(value)) is not None:
        _add(made, inside)
    elif callable(value):
        made.update(_source(value).encode())
    else:
        text = value if isinstance(value, str) else repr(value)
        made.update(f"{len(text)}:{text}".encode())
    made.update(b">")


def _as_hashed(value: Any) -> Any:
    """Return what a value was before it became an array or a view."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, ExactNumbers) and not value.rounding:
        return dict(value.fields)  # as which all numbers were hashed before some were known to be rounded
    return tuple(value) if isinstance(value, Texts | Factor | LazyOutputs) else value


def _known(it: Any) -> Identity | None:
    """Return what a class or function is known as; None of those of others, which go by their own names."""
    known, module = identity_of(it), getattr(it, "__module__", "") or ""
    if known is None and module.partition(".")[0] == "sigdask":
        raise InputError(
            f"{module}:{it.__qualname__} has no lasting name by which counts could be found again (known_as); "
            "a metric holds plain values, functions of your own, or metrics"
        )
    return known


def _inside(value: Any) -> Any:
    """Return what a value is made of, in an order that is the same in each process; None of what is itself."""
    if isinstance(value, (set, frozenset)):
        return sorted(digest(item) for item in value)
    if isinstance(value, dict):
        return sorted(value.items())
    if isinstance(value, functools.partial):
        return [value.func, list(value.args), value.keywords]
    is_named = hasattr(value, "__qualname__")
    if not is_named and (callable(value) or "__repr__" not in _methods(value)):  # whose repr is an address
        return [type(value), getattr(value, "__name__", ""), getattr(value, "__dict__", {})]
    return None


def _methods(value: Any) -> set[str]:
    """Return the names that the classes of a value define, below object."""
    return {name for kind in type(value).__mro__[:-1] for name in vars(kind)}


def _source(function: Any) -> str:
    """Return a function's name, and its code where it is the user's: helpers change scores as well."""
    named = function if hasattr(function, "__qualname__") else type(function)
    module, name = getattr(named, "__module__", "") or "", getattr(named, "__qualname__", "")
    if known := _known(named):
        return known.tag
    try:
        file = Path(inspect.getsourcefile(named) or "").resolve()
        text = b"".join(hashlib.sha256(own.read_bytes()).digest() for own in _imported_by(file, module))
    except (OSError, TypeError):
        code = getattr(function, "__code__", None) if isinstance(function, FunctionType) else None
        text = repr((code.co_code, code.co_consts, code.co_names)).encode() if code is not None else b""
    return f"{name} {hashlib.sha256(text).hexdigest()}"


def _imported_by(file: Path, module: str) -> list[Path]:
    """Return a module's file and those of the user's own that it imports, directly or not.

    Its own are those below the folder that its name starts from; of an installed package the file alone.
    """
    folder = file.parents[module.count(".") + (file.name == "__init__.py")]
    if folder.name in INSTALLED or (folder / "site-packages").is_dir():
        return [file]
    found, left = {file}, [file]
    while left:
        one = left.pop()
        new = set(_imports(one, folder, one.stat().st_mtime_ns)) - found
        found |= new
        left += new
    return sorted(found)


INSTALLED = ("site-packages", "dist-packages")


@functools.lru_cache(2**14)
def _imports(file: Path, folder: Path, _changed: int) -> tuple[Path, ...]:
    """Return the files below a folder that one of them names in its import statements."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return ()
    return tuple(_named(tree, file, folder))


def _named(tree: ast.AST, file: Path, folder: Path) -> Iterator[Path]:
    for node in ast.walk(tree):
        names: list[str] = []
        base = folder
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = file.parents[node.level - 1] if node.level else folder
            start = f"{node.module}." if node.module else ""
            names = [*([node.module] if node.module else []), *(start + alias.name for alias in node.names)]
        for name in names:
            path = base.joinpath(*name.split("."))
            for at in (path.with_suffix(".py"), path / "__init__.py"):
                if at.is_file():
                    yield at.resolve()
