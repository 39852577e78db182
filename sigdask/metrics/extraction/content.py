"""The digest of what outputs and gold items hold, whatever files they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from sigdask.counts.fields import Array
from sigdask.metrics.extraction.asked import BYTES


def digest_of(items: Array) -> str:
    """Return the digest of one thing an item: a text, texts, or numbers by name.

    Examples
    --------
    >>> from sigdask.counts.fields import objects
    >>> digest_of(objects(["ab", "c"])) == digest_of(objects(["a", "bc"]))
    False
    """
    made = hashlib.blake2b(digest_size=BYTES)
    _add(made, items.tolist())
    return made.hexdigest()


def key_of(*digests: str) -> str:
    """Return one digest for several."""
    return hashlib.blake2b(" ".join(digests).encode(), digest_size=BYTES).hexdigest()


def _add(made: Any, items: Sequence[Any]) -> None:
    """Add items of one kind, each with its length, so that no two lists of them look alike."""
    kinds = {type(item) for item in items}
    if kinds <= {str, type(None)}:
        lengths = [-1 if text is None else len(text) for text in items]
        _add_parts(made, "text", lengths, "".join(filter(None, items)).encode("utf-8", "surrogatepass"))
    elif kinds in ({tuple}, {list}):
        _add_parts(made, "texts", list(map(len, items)), b"")
        _add(made, list(chain.from_iterable(items)))
    elif kinds == {dict}:
        numbers = chain.from_iterable(item.values() for item in items)
        _add_parts(made, "numbers", list(map(len, items)), repr(list(numbers)).encode())
        _add(made, list(chain.from_iterable(items)))
    else:
        raise TypeError(f"items of {', '.join(sorted(kind.__name__ for kind in kinds))} have no digest")


def _add_parts(made: Any, kind: str, lengths: Sequence[int], content: bytes) -> None:
    made.update(f"{kind} {len(lengths)} {len(content)} ".encode())
    made.update(np.array(lengths, "<i8").tobytes())
    made.update(content)
