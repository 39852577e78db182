"""What is extracted: a function of outputs and gold items, by whose digest its statistics are known."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.fields import Array
from sigdask.identity import identity_of, known_as

EXTRACTING = 1
"""Raised when a correction changes what a counter gives, so that nothing made before is used again."""

BYTES = 20

Counter = Callable[..., list[Array]]
"""(outputs of each system, gold items, **options) to an array of each system, shape (n_items, n_fields)."""


@known_as("Extraction", "counter options packages of power block")
@dataclass(frozen=True, slots=True)
class Extraction:
    """How statistics of items are counted, each item and system for itself.

    Attributes
    ----------
    counter : callable
        `(systems, gold, **options)`, lists of outputs and a list of gold items, to int64 or float64 arrays, one a
        system, shape (n_items, n_fields). A function of a module, so that it travels by name.
    options : mapping of str to str, float or bool
        Its keyword arguments.
    packages : tuple of str
        Whose versions it hangs on.
    of : str
        A field that data have of which it can be counted.
    power : int
        How its cost grows with the length of an output.
    block : int
        Items that are kept together: what a change costs at least, and a kill at most.
    """

    counter: Counter
    options: Mapping[str, Any] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    of: str = "segments"
    power: int = 1
    block: int = 4096

    @property
    def key(self) -> str:
        """What is extracted and by what, as a digest."""
        known = identity_of(self.counter)
        assert known is not None
        versions = [(package, installed(package)) for package in ("python", *self.packages)]
        said = json.dumps([EXTRACTING, known.tag, sorted(self.options.items()), versions])
        return hashlib.blake2b(said.encode(), digest_size=BYTES).hexdigest()

    def suits(self, counts: Counts) -> bool:
        """Say whether the data have what it is counted of."""
        return self.of in counts.fields and counts.outputs is not None and counts.outputs.gold is not None

    def blocks(self, n_items: int) -> list[slice]:
        """Return the items that are kept together."""
        return [slice(first, min(first + self.block, n_items)) for first in range(0, n_items, self.block)]

    def count(self, systems: Sequence[list[Any]], gold: list[Any]) -> list[Array]:
        """Count the items of some systems."""
        return self.counter(systems, gold, **self.options)


@cache
def installed(package: str) -> str:
    """Return the version of a package, empty where it is not there; of Python the first two numbers.

    Examples
    --------
    >>> installed("no-such-package")
    ''
    """
    if package == "python":
        return ".".join(platform.python_version_tuple()[:2])
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def taken(extraction: Extraction, counts: Counts) -> Array:
    """Return the statistics of all systems, shape (n_items, n_systems, n_fields): those at hand, or made now."""
    found = counts.extracted.get(extraction.key)
    if found is None:
        assert counts.outputs is not None
        assert counts.outputs.gold is not None
        systems = [outputs.tolist() for outputs in counts.outputs.systems]
        found = np.stack(extraction.count(systems, counts.outputs.gold.tolist()), axis=1)
    return found
