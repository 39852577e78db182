"""Digests of the inputs of counts. Equal digests mean equal counts, for any files, names and plans.

Content hashes are digests of one system on a test set: of its contributions to each unit. They do not depend on file,
format, name or order of items. A signature uses them to name the system that has changed.

The digest of a pair has the key of its random stream (seed, test set, unit ids), the form of the score, and the content
hashes of the two systems, but nothing of other systems. If one system file of twenty changes, the counts of the pairs
without this system can still be used.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from itertools import islice
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Integers
from sigdask.counts.precision import MAX_DIGITS
from sigdask.errors import InputError
from sigdask.metrics.base import AnyBound, BlackBox
from sigdask.metrics.forms import Form, Formula, MeanOf, is_user_function
from sigdask.randomization.panels import Uncached
from sigdask.randomization.panels.scored_sums import ScoredSums
from sigdask.randomization.stream import SCHEME
from sigdask.statistics.lattice import Lattice

COUNTING_VERSION = 1
"""Increased when a correction changes counts, so that no older counts are used again."""

DIGEST_BYTES = 20

Digests = NDArray[np.void]
"""Digests of `DIGEST_BYTES` bytes each."""


def compute_pair_digests(panels: Sequence[ScoredSums]) -> list[Digests]:
    """Return the digests of each panel's pairs and metrics, shape (n_pairs, n_metrics)."""
    headers: dict[tuple[Hashable, ...], str] = {}
    return [np.stack([_digest_pairs(panel, m, headers) for m in range(len(panel.metrics))], axis=1) for panel in panels]


def _digest_pairs(panel: ScoredSums, m: int, headers: dict[tuple[Hashable, ...], str]) -> Digests:
    """Return the digest of each pair under one metric, from the content hashes and totals of both systems."""
    form, fields_used = panel.metrics[m].form, list(panel.metrics[m].fields)
    lattices = tuple(identify_lattice(panel.lattices[f]) for f in fields_used)
    key = id(form), lattices, panel.is_approximate(m)  # panels share forms, which may be equal with other digests
    if key not in headers:
        headers[key] = digest(("pair", form, *key[1:]))
    start = hashlib.blake2b(f"{headers[key]} {panel.key} {panel.enumerated}".encode(), digest_size=DIGEST_BYTES)
    scales = np.array([get_factor(panel.lattices[f]) for f in fields_used], np.uint64)
    totals = panel.totals[:, fields_used].astype(np.uint64) * scales
    systems = [row.astype("<u8").tobytes() for row in np.hstack([panel.contents[:, fields_used], totals])]
    digests = []
    for i, j in panel.pairs.tolist():
        hasher = start.copy()
        hasher.update(systems[i] + systems[j])
        digests.append(hasher.digest())
    return pack_digests(digests)


def pack_digests(digests: Iterable[bytes]) -> Digests:
    """Return digests as an array, shape (n,)."""
    return np.frombuffer(b"".join(digests), np.dtype((np.void, DIGEST_BYTES)))


def digest_values(values: Iterable[Any], shape: tuple[int, int] = (1, 1)) -> Digests:
    """Return the digest of each value, as an array of a shape."""
    return pack_digests(bytes.fromhex(digest(value)) for value in values).reshape(shape)


class WholePanel:
    """Base of panels that are counted as a whole, not pair by pair: families, resamples, exact p-values."""

    is_whole: ClassVar[bool] = True

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of; the first part names the kind of panel."""
        raise NotImplementedError

    def select(self, _rows: Sequence[int] | Integers, _columns: Sequence[int] | None = None, /) -> Self:
        """Return the panel itself, because it is always counted as a whole."""
        return self

    def compute_digests(self) -> Digests:
        """Return the digest of the whole panel, shape (1, 1)."""
        return digest_values([self])


class ResampledPanel(Uncached, WholePanel):
    """Base of whole panels that are never enumerated."""

    enumerated: ClassVar[bool] = False


STEP = np.uint64(0x9E3779B97F4A7C15)


def mix_bits(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the finalizer of SplitMix64 (Steele, Lea & Flood 2014); one changed bit changes many."""
    x = x + STEP
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def identify_lattice(lattice: Lattice) -> tuple[Any, ...]:
    """Return what a pair's digest has of a lattice: the same for all decimal lattices, on which scores are exact."""
    if lattice.rounding or lattice.is_coarse:
        return "rounded", lattice.exponent, lattice.rounding
    return ("decimal", 0) if lattice.digits is not None else ("binary", lattice.exponent)


def get_factor(lattice: Lattice) -> int:
    """Return the factor for integers on a lattice that makes equal decimals equal on all decimal lattices."""
    return 10 ** (MAX_DIGITS - lattice.digits) if lattice.digits is not None and lattice.digits <= MAX_DIGITS else 1


def digest(value: Any) -> str:
    """Return the digest of a value, from the tags and contents of all its parts."""
    hasher = hashlib.blake2b(PREFIX, digest_size=DIGEST_BYTES)
    try:
        _add_value(hasher, value)
    except RecursionError:
        raise InputError(
            f"{type(value).__name__}: this metric refers to itself, so it has no digest",
            remedy="give a function instead",
        ) from None
    return hasher.hexdigest()


PREFIX = f"{SCHEME} {COUNTING_VERSION}".encode()
"""Prefix of digests of counts."""


def hash_content(value: Any) -> int:
    """Return a 64-bit hash of a value, which unlike `digest` does not depend on `COUNTING_VERSION`."""
    hasher = hashlib.blake2b(digest_size=8)
    _add_value(hasher, value)
    return int.from_bytes(hasher.digest(), "little")


def hash_parts(parts: Iterable[Any], n: int) -> int:
    """Return the `hash_content` of a tuple whose `n` values come one after the other."""
    hasher = hashlib.blake2b(digest_size=8)
    _add_items(hasher, "tuple", parts, n)
    return int.from_bytes(hasher.digest(), "little")


def _add_items(hasher: Any, kind: str, items: Iterable[Any], n: int) -> None:
    """Add the type of a sequence, and its items one after the other, to a hash."""
    hasher.update(f"<{kind}>{n}:".encode())
    remaining = iter(items)
    while batch := [*islice(remaining, BATCH)]:
        if {*map(type, batch)} <= PLAIN_TYPES:
            hasher.update("".join(map(_format_plain, batch)).encode())
        else:
            for item in batch:
                _add_value(hasher, item)
    hasher.update(b">")


BATCH = 4096
"""Items hashed at a time. One at a time, half a million signatures take twice as long."""


PLAIN_TYPES = frozenset({str, int, float, bool, type(None)})
"""Types whose values are hashed as text. Any search for another way would take longer than hashing."""


def _format_plain(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return f"<{type(value).__name__}>{len(text)}:{text}>"


def _add_value(hasher: Any, value: Any) -> None:
    """Add a value's type and content to a hash, with each part delimited."""
    if type(value) in PLAIN_TYPES:
        hasher.update(_format_plain(value).encode())
        return
    value = _as_hashed(value)
    is_numeric = isinstance(value, np.ndarray) and value.dtype != object
    if isinstance(value, (tuple, list, np.ndarray)) and not is_numeric:
        _add_items(hasher, type(value).__name__, value, len(value))
        return
    hasher.update(f"<{type(value).__name__}>".encode())
    if is_numeric:
        hasher.update(f"{value.dtype.str}{value.shape}".encode())
        hasher.update(np.ascontiguousarray(value).tobytes())
    elif (inside := _list_parts(value)) is not None:
        _add_value(hasher, inside)
    elif callable(value):
        hasher.update(_identify_source(value).encode())
    else:
        text = repr(value)
        hasher.update(f"{len(text)}:{text}".encode())
    hasher.update(b">")


def _as_hashed(value: Any) -> Any:
    """Return the plain value that is hashed in place of NumPy's scalar or an object of sigdask, or the value itself."""
    if isinstance(value, np.generic):
        return value.item()
    is_user_class = is_user_function(type(value))
    if hasattr(type(value), "digest_parts"):
        return (*value.digest_parts(), type(value)) if is_user_class else value.digest_parts()
    if not is_user_class or not is_user_function(value):
        raise InputError(
            f"{getattr(value, '__name__', type(value).__name__)} of sigdask has no digest, so stored counts could not "
            "be found again; a metric may contain plain values, functions of your own, and metrics"
        )
    return value


def _list_parts(value: Any) -> Any:
    """Return the parts of a value, in the same order in each process; None for a value without parts."""
    if isinstance(value, (set, frozenset)):
        return sorted(digest(item) for item in value)
    if isinstance(value, dict):
        return sorted(value.items())
    if isinstance(value, functools.partial):
        return [value.func, list(value.args), value.keywords]
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value), [getattr(value, field.name) for field in fields(value)]]
    is_named = hasattr(value, "__qualname__")
    own_names = {name for kind in type(value).__mro__[:-1] for name in vars(kind)}
    if not is_named and (callable(value) or "__repr__" not in own_names):  # whose repr is an address
        return [type(value), getattr(value, "__name__", ""), getattr(value, "__dict__", {})]
    return None


def _identify_source(function: Any) -> str:
    """Return a function's name, and the hash of its code and imports if it is the user's own."""
    definition = function if hasattr(function, "__qualname__") else type(function)
    module, name = getattr(definition, "__module__", "") or "", getattr(definition, "__qualname__", "")
    try:
        file = Path(inspect.getsourcefile(definition) or "").resolve()
        text = b"".join(hashlib.sha256(path.read_bytes()).digest() for path in _find_imports(file, module))
    except (OSError, TypeError):
        code = getattr(function, "__code__", None) if isinstance(function, FunctionType) else None
        text = repr((code.co_code, code.co_consts, code.co_names)).encode() if code is not None else b""
    return f"{name} {hashlib.sha256(text).hexdigest()}"


def _find_imports(file: Path, module: str) -> list[Path]:
    """Return a module's file and the user's own files that it imports, directly or not.

    The user's own files are those below the folder that contains the module's top-level package, without sigdask. For
    an installed package, only the module's file is returned.
    """
    folder = file.parents[module.count(".") + (file.name == "__init__.py")]
    if folder.name in INSTALLED or (folder / "site-packages").is_dir() or SIGDASK in file.parents:
        return [file]
    files, pending = {file}, [file]
    while pending:
        current = pending.pop()
        pending += (new := set(_list_imports(current, folder, current.stat().st_mtime_ns)) - files)
        files |= new
    return sorted(files)


INSTALLED = ("site-packages", "dist-packages")

SIGDASK = Path(__file__).resolve().parents[2]
"""The package's own folder. In a checkout it is next to the user's modules."""


@functools.lru_cache(2**14)
def _list_imports(file: Path, folder: Path, _changed: int) -> tuple[Path, ...]:
    """Return the files below a folder that the import statements of one file name."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return ()
    found: list[Path] = []
    for node in ast.walk(tree):
        names: list[str] = []
        base = folder
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = file.parents[node.level - 1] if node.level else folder
            start = f"{node.module}." if node.module else ""
            names = [*([node.module] if node.module else []), *(start + alias.name for alias in node.names)]
        for path in (base.joinpath(*name.split(".")) for name in names):
            found += [p.resolve() for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()]
    return tuple(path for path in found if SIGDASK not in path.parents)


AT_ONCE = 2**15
"""Numbers hashed at a time, so that they stay in the cache."""

Contents = NDArray[np.uint64]


def hash_units(addresses: Integers, sizes: Integers) -> Contents:
    """Return a hash of each unit's address and number of items, shape (n_units,)."""
    return mix_bits(mix_bits(addresses.astype(np.uint64)) ^ sizes.astype(np.uint64))


def hash_column(sums: NDArray[Any], hashes: Contents, lattice: Lattice) -> Contents:
    """Return a hash of a system's values in one field: a sum over units of hashes of their values.

    Parameters
    ----------
    sums : int array, shape (n_units,)
        The values.
    hashes : uint64 array, shape (n_units,)
        Hashes of the units.
    lattice : Lattice
        Lattice of the field.
    """
    scale, total = np.uint64(get_factor(lattice)), np.zeros((), np.uint64)
    for start in range(0, len(sums), AT_ONCE):
        block = slice(start, start + AT_ONCE)
        total += mix_bits(hashes[block] ^ (sums[block].astype(np.uint64) * scale)).sum(dtype=np.uint64)
    return total


def hash_fields(contents: Contents, lattices: Sequence[Lattice], fields: Sequence[int]) -> Contents:
    """Combine content hashes, shape (n_systems, n_fields), into one hash of some fields, shape (n_systems,)."""
    hashes = np.full(len(contents), _hash_lattices(tuple(identify_lattice(lattices[f]) for f in fields)), np.uint64)
    for f in fields:
        hashes = mix_bits(hashes ^ contents[:, f])
    return hashes


_hash_lattices = functools.lru_cache(hash_content)


def hash_terms(terms: Contents, units: Integers) -> np.uint64:
    """Return a hash of a system's terms and the addresses of the units that hold them."""
    return np.uint64(mix_bits(terms ^ mix_bits(units.astype(np.uint64))).sum(dtype=np.uint64))


def hash_outputs(outputs: NDArray[Any], gold: NDArray[Any] | None, units: Integers) -> np.uint64:
    """Return a hash of a system's outputs, the gold standard and the units' addresses, (n_items,) each."""
    gold_items = [None] * len(outputs) if gold is None else gold.tolist()
    items = [hash_content(output_and_gold) for output_and_gold in zip(outputs.tolist(), gold_items, strict=True)]
    return hash_terms(np.array(items, np.uint64), units)


def hash_code(metric: AnyBound) -> str:
    """Return a hash of the user's own code that a metric calls; empty if it has none."""
    functions = [metric.function] if isinstance(metric, BlackBox) else _list_functions(metric.form)
    user_functions = [function for function in functions if is_user_function(function)]
    return format_hash(hash_content(tuple(user_functions))) if user_functions else ""


def _list_functions(form: Form | None) -> list[Any]:
    if isinstance(form, MeanOf):
        return [function for part in form.forms for function in _list_functions(part)]
    return [form.function] if isinstance(form, Formula) else []


def format_hash(bits: int) -> str:
    """Return 48 of 64 bits as twelve hexadecimal digits; two agree by chance once in 10**14.

    Examples
    --------
    >>> format_hash(0x3F2A00000000FFFF)
    '3f2a00000000'
    """
    return f"{bits >> 16:012x}"
