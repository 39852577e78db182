"""Counts made of what others keep scores in."""

from __future__ import annotations

from typing import Any

import numpy as np

from sigdask.counts import Counts


def as_counts(scores: Any, **options: Any) -> Counts:
    """Return counts of a mapping or data frame of item scores, one column a system.

    Parameters
    ----------
    scores : mapping or data frame (pandas, polars)
        Column name to item scores.
    **options
        As in `Counts.from_scores`.
    """
    columns = scores.to_dict(as_series=True) if hasattr(scores, "get_column") else dict(scores.items())
    return Counts.from_scores({str(name): np.asarray(column) for name, column in columns.items()}, **options)
