"""Choose system names and settle missing topics, for both runs and printed scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.checks import check_common_items
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options, Source

POLICIES = ("zero", "intersect", "pairwise", "error")
SHOWN = 3


def is_finite(text: str) -> bool:
    """Return whether a word is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def choose_system_name(source: Source, tag: str | None) -> str:
    """Return the given name, the tag if the file is called ANYTHING.TAG as at NIST, or the file's name.

    Examples
    --------
    >>> from pathlib import Path
    >>> (choose_system_name(Source(Path("runs/input.MU03rob01.gz")), "MU03rob01"),
    ...  choose_system_name(Source(Path("bm25.run")), "x"))
    ('MU03rob01', 'bm25')
    """
    if source.name is None and tag and source.path.name.removesuffix(".gz").endswith(f".{tag}"):
        return tag
    return source.system


@dataclass(frozen=True, slots=True)
class SettledTopics:
    """The topics left after the policy for missing topics is applied.

    Attributes
    ----------
    kept : int array
        Positions of the topics that stay.
    present : bool array, shape (n_kept, n_systems), or None
        As in `Counts`.
    warnings : tuple of str
        What was decided.
    """

    kept: NDArray[np.intp]
    present: NDArray[np.bool_] | None
    warnings: tuple[str, ...] = ()


def apply_topic_policy(
    has: NDArray[np.bool_], topics: Sequence[str], systems: Sequence[str], options: Options, default: str
) -> SettledTopics:
    """Apply the policy for missing topics: the format's own option, `--missing`, or the default.

    Parameters
    ----------
    has : bool array, shape (n_topics, n_systems)
        Which topics each system has.
    topics, systems : sequence of str
        Their names.
    default : str
        The policy where none was asked for.
    """
    requested = options.own.get("missing") or options.missing
    policy = requested or default
    all_topics = np.arange(len(topics))
    if has.all():
        return SettledTopics(all_topics, None)
    check_common_items(has, systems, options.min_items, "pairwise" if policy == "pairwise" else None, topics)
    gap = _describe_gap(has, topics, systems)
    if policy == "error":
        raise InputError(
            f"{gap}; choose --missing zero (it counts 0, as under trec_eval -c), --missing pairwise (each pair on the "
            "topics both have) or --format trec:missing=intersect (the topics all have)"
        )
    if policy == "zero":
        explanation = "a topic that a run lacks counts 0, as under trec_eval -c"
        alternatives = (
            "" if requested else " (--missing pairwise or error, or --format trec:missing=intersect, do otherwise)"
        )
        return SettledTopics(all_topics, None, (f"{gap}; {explanation}{alternatives}",))
    if policy == "pairwise":
        return SettledTopics(all_topics, has, (f"{gap}; each pair is compared on the topics both have",))
    kept_topics = np.flatnonzero(has.all(axis=1))
    if not len(kept_topics):
        raise InputError(f"{gap}; no topic is left that all have")
    return SettledTopics(
        kept_topics, None, (f"{gap}; {len(kept_topics)} of {len(topics)} topics, which all have, are kept",)
    )


def _describe_gap(has: NDArray[np.bool_], topics: Sequence[str], systems: Sequence[str]) -> str:
    lacking = np.flatnonzero(~has.all(axis=0))
    first = lacking[0]
    missing = [topics[int(k)] for k in np.flatnonzero(~has[:, first])]
    examples = ", ".join(missing[:SHOWN]) + (", ..." if len(missing) > SHOWN else "")
    more = f", and {len(lacking) - 1} more systems lack topics" if len(lacking) > 1 else ""
    return f"system {systems[int(first)]!r} has no topic {examples} ({len(missing)} of {len(topics)} missing){more}"
