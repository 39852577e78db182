"""Digests of the content of outputs and gold items, independent of their files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from sigdask.counts.fields import Array
from sigdask.metrics.extraction.request import DIGEST_BYTES


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
    """Return one digest that stands for several digests in this order."""
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
        return all(isinstance(number, int) for number in numbers) and _add_items(
            hasher, list(chain.from_iterable(items))
        )
    return False


def _add_block(hasher: Any, kind: str, lengths: Sequence[int], content: bytes) -> None:
    hasher.update(f"{kind} {len(lengths)} {len(content)} ".encode())
    hasher.update(np.array(lengths, "<i8").tobytes())
    hasher.update(content)
