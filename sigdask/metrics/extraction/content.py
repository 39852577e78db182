"""The digest of what outputs and gold items hold, whatever files they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from sigdask.counts.fields import Array
from sigdask.metrics.extraction.request import BYTES


def digest_of(items: Array) -> str | None:
    """Return the digest of one thing an item: a text, texts, or numbers by name; None of what else a reader may give.

    Examples
    --------
    >>> from sigdask.counts.fields import objects
    >>> digest_of(objects(["ab", "c"])) == digest_of(objects(["a", "bc"]))
    False
    """
    made = hashlib.blake2b(digest_size=BYTES)
    return made.hexdigest() if _add(made, items.tolist()) else None


def key_of(*digests: str) -> str:
    """Return one digest for several."""
    return hashlib.blake2b(" ".join(digests).encode(), digest_size=BYTES).hexdigest()


def _add(made: Any, items: Sequence[Any]) -> bool:
    """Add items of one kind, each with its length, so that no two lists of them look alike; False of other kinds."""
    kinds = tuple({type(item) for item in items})
    if all(issubclass(kind, (str, type(None))) for kind in kinds):
        lengths = [-1 if text is None else len(text) for text in items]
        _add_parts(made, "text", lengths, "".join(filter(None, items)).encode("utf-8", "surrogatepass"))
        return True
    if all(issubclass(kind, (tuple, list)) for kind in kinds):
        _add_parts(made, "texts", list(map(len, items)), b"")
        return _add(made, list(chain.from_iterable(items)))
    if all(issubclass(kind, dict) for kind in kinds):
        numbers = list(chain.from_iterable(item.values() for item in items))
        _add_parts(made, "numbers", list(map(len, items)), repr(numbers).encode())
        return all(isinstance(number, int) for number in numbers) and _add(made, list(chain.from_iterable(items)))
    return False


def _add_parts(made: Any, kind: str, lengths: Sequence[int], content: bytes) -> None:
    made.update(f"{kind} {len(lengths)} {len(content)} ".encode())
    made.update(np.array(lengths, "<i8").tobytes())
    made.update(content)
