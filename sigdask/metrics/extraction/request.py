"""Requests for statistics of outputs: the function that counts them, and the digest under which they are stored.

The digest is made of the content of outputs and gold items, not of their files.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from typing import Any

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.fields import Array

EXTRACTION_VERSION = 1
"""Increased when a correction changes counts, so that no older result is used again."""

DIGEST_BYTES = 20

Counter = Callable[..., list[Array]]
"""Function (outputs of each system, gold items, **options) that returns an array of shape (n_items, n_fields) for each
system.
"""


@dataclass(frozen=True, slots=True)
class Extraction:
    """A function that counts statistics of outputs, for each item and system separately, with its options.

    Attributes
    ----------
    name : str
        Name of the function in digests.
    counter : callable
        `(systems, gold, **options)`, lists of outputs and a list of gold items, to int64 or float64 arrays, one per
        system, shape (n_items, n_fields). It is a function of a module, so it is sent by name.
    options : mapping of str to str, float or bool
        Its keyword arguments.
    packages : tuple of str
        Packages whose versions change the statistics.
    of : str
        A field of the data that shows whether statistics can be counted.
    power : int
        Power of an output's length with which the cost increases.
    block : int
        Number of items stored together. A change costs at least one block, a killed process loses at most one.
    """

    name: str
    counter: Counter
    options: Mapping[str, Any] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    of: str = "segments"
    power: int = 1
    block: int = 4096

    @property
    def key(self) -> str:
        """A digest of the counting function, its options and the versions of the packages that it uses."""
        versions = [(package, get_version(package)) for package in ("python", *self.packages)]
        payload = json.dumps([EXTRACTION_VERSION, self.name, sorted(self.options.items()), versions])
        return hashlib.blake2b(payload.encode(), digest_size=DIGEST_BYTES).hexdigest()

    def split_items(self, n_items: int) -> list[slice]:
        """Return the blocks of items whose statistics are stored under one key."""
        return [slice(first, min(first + self.block, n_items)) for first in range(0, n_items, self.block)]

    def count(self, systems: Sequence[list[Any]], gold: list[Any]) -> list[Array]:
        """Count and return the statistics of some systems' outputs, one array per system."""
        return self.counter(systems, gold, **self.options)


@cache
def get_version(package: str) -> str:
    """Return the installed version of a package, "" if missing; for Python, the first two numbers.

    Examples
    --------
    >>> get_version("no-such-package")
    ''
    """
    if package == "python":
        return ".".join(platform.python_version_tuple()[:2])
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def get_statistics(extraction: Extraction, counts: Counts) -> Array:
    """Return the statistics of all systems, shape (n_items, n_systems, n_fields), counted now if the data lack them."""
    statistics = counts.extracted.get(extraction.key)
    if statistics is None:
        assert counts.outputs is not None
        assert counts.outputs.gold is not None
        systems = [outputs.tolist() for outputs in counts.outputs.systems]
        statistics = np.stack(extraction.count(systems, counts.outputs.gold.tolist()), axis=1)
    return statistics


def hash_items(items: Array) -> str | None:
    """Return the digest of outputs or gold items that are texts, lists of texts, or numbers by name; None for others.

    Examples
    --------
    >>> from sigdask.counts.fields import to_object_array
    >>> hash_items(to_object_array(["ab", "c"])) == hash_items(to_object_array(["a", "bc"]))
    False
    """
    hasher = hashlib.blake2b(digest_size=DIGEST_BYTES)
    return hasher.hexdigest() if _add_items(hasher, items.tolist()) else None


def join_digests(*digests: str) -> str:
    """Return one digest of several digests in this order."""
    return hashlib.blake2b(" ".join(digests).encode(), digest_size=DIGEST_BYTES).hexdigest()


def _add_items(hasher: Any, items: Sequence[Any]) -> bool:
    """Add items and their lengths to a hash, and return whether they are of a kind that can be hashed.

    With the lengths, different lists never give the same bytes.
    """
    kinds = tuple({type(item) for item in items})
    if all(issubclass(kind, (str, type(None))) for kind in kinds):
        lengths = [-1 if text is None else len(text) for text in items]
        _add_block(hasher, "text", lengths, "".join(filter(None, items)).encode("utf-8", "surrogatepass"))
        return True
    if all(issubclass(kind, (tuple, list)) for kind in kinds):
        _add_block(hasher, "texts", list(map(len, items)), b"")
        return _add_items(hasher, list(chain.from_iterable(items)))
    if all(issubclass(kind, dict) for kind in kinds):
        numbers = list(chain.from_iterable(item.values() for item in items))
        _add_block(hasher, "numbers", list(map(len, items)), repr(numbers).encode())
        return all(isinstance(n, int) for n in numbers) and _add_items(hasher, list(chain.from_iterable(items)))
    return False


def _add_block(hasher: Any, kind: str, lengths: Sequence[int], content: bytes) -> None:
    hasher.update(f"{kind} {len(lengths)} {len(content)} ".encode())
    hasher.update(np.array(lengths, "<i8").tobytes())
    hasher.update(content)
