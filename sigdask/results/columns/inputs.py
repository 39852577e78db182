"""What results come from: columns with digests of data, code and families."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sigdask.results.columns.coded import Coded

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class InputDigests:
    """What p depends on that no other column says: columns of a table, empty texts where it is not known.

    Attributes
    ----------
    seed : int64
        Of the stream.
    method : Coded of str
        As it was asked for, behind a colon the limit in seconds that was given for exact p-values (`auto` and `both`).
    units : Coded of str
        The ids of the test set's units, by content.
    data_a, data_b : Coded of str
        What both systems contribute under the metric on the items compared, gold included, by content.
    code : Coded of str
        The user's own code that the metric is made of, by content.
    adjust, members, family : Coded of str
        How p was adjusted, over how many comparisons, and which these are, by content.
    version : Coded of str
        Of the program that found the result.
    """

    seed: NDArray[np.int64]
    method: Coded[str]
    units: Coded[str]
    data_a: Coded[str]
    data_b: Coded[str]
    code: Coded[str]
    adjust: Coded[str]
    members: Coded[str]
    family: Coded[str]
    version: Coded[str]


def no_origins(n: int) -> InputDigests:
    """Return the columns of rows of which it is not known what they come from."""
    texts = {f.name: Coded.same("", n) for f in fields(InputDigests) if f.name != "seed"}
    return InputDigests(seed=np.zeros(n, np.int64), **texts)
