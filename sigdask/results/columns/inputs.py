"""Columns with the inputs of results: digests of data, code and families."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sigdask.results.columns.coded import CodedColumn

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class InputDigests:
    """Columns of a table with what p depends on and no other column has: seed, method, digests of data and code.

    Attributes
    ----------
    seed : int64
        Of the stream.
    method : CodedColumn of str
        As it was asked for, behind a colon the limit in seconds that was given for exact p-values (`auto` and `both`).
    units : CodedColumn of str
        The ids of the test set's units, by content.
    data_a, data_b : CodedColumn of str
        What both systems contribute under the metric on the items compared, gold included, by content.
    code : CodedColumn of str
        The user's own code that the metric is made of, by content.
    adjust, members, family : CodedColumn of str
        How p was adjusted, over how many comparisons, and which these are, by content.
    version : CodedColumn of str
        Of the program that found the result.
    """

    seed: NDArray[np.int64]
    method: CodedColumn[str]
    units: CodedColumn[str]
    data_a: CodedColumn[str]
    data_b: CodedColumn[str]
    code: CodedColumn[str]
    adjust: CodedColumn[str]
    members: CodedColumn[str]
    family: CodedColumn[str]
    version: CodedColumn[str]


def build_empty_digests(n: int) -> InputDigests:
    """Return columns for `n` rows whose inputs are unknown."""
    texts = {f.name: CodedColumn.from_constant("", n) for f in fields(InputDigests) if f.name != "seed"}
    return InputDigests(seed=np.zeros(n, np.int64), **texts)
