"""Measures of rankings: ir-measures scores each topic, sigdask averages topics.

Names are those of ir-measures (`nDCG@10`, `AP(rel=2)`) or of trec_eval (`ndcg_cut_10`). A ranking is
given to ir-measures as an order without ties, so every one of its providers ranks as trec_eval does.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.errors import InputError, missing_extra
from sigdask.identity import known_as
from sigdask.metrics.base import BoundMetric, Metric, Spec
from sigdask.metrics.extraction.request import Extraction, taken
from sigdask.metrics.forms import Form, Formula, Ratios

MOST_DOCUMENTS = 2**31 - 1
"""Of a cut-off: trec_eval ends the whole program at one that its counters do not hold."""

PACKAGES = ("ir-measures", "pytrec-eval-terrier", "cwl-eval", "trectools", "ranx", "pyndeval", "numpy", "scipy")
"""What topics are measured by: ir-measures, and whichever of its providers there are."""

MOST_RELEVANT = 1000
"""Of a relevance: trec_eval's counters are as many as the highest one (it documents 127)."""


def holds_rankings(counts: Counts) -> bool:
    """Whether the data are rankings and judgements (format trec)."""
    return "topics" in counts.fields and counts.outputs is not None


def may_know(name: str) -> bool:
    """Say whether a name is a measure's, as far as that can be known here."""
    return find_spec("ir_measures") is None or measure(name) is not None


def measure_of(spec: Spec) -> Metric:
    """Return the measure of a name, whatever the data."""
    found = measure(spec.name)
    if found is None:
        raise InputError(f"metric {spec.name!r}: not a name that ir-measures knows, such as AP(rel=2) or AP@100")
    return found


def measure(name: str) -> Metric | None:
    """Return the measure that ir-measures or trec_eval calls so; None where neither does.

    Raises
    ------
    InputError
        ir-measures is not installed; the measure has no such parameter.
    """
    known, parsed = _parse(name)
    return None if parsed is None else Metric(known, partial(_bind, known, parsed), _extraction(known))


def _extraction(name: str) -> Extraction:
    return Extraction(measure_topics, {"name": name}, PACKAGES, of="topics")


def _parse(name: str) -> tuple[str, Any]:
    """Return a name as the measure is listed, and the measure; None where there is none."""
    try:
        import ir_measures
    except ImportError:
        raise missing_extra("ir-measures", "ir", f"metric {name!r}") from None
    try:
        parsed = ir_measures.parse_measure(name)
    except (ValueError, NameError, KeyError):
        parsed = _by_trec_name(name)
        right = None if parsed is not None else _without_case(name, ir_measures.measures.registry)
        return _parse(right) if right else (name, parsed)
    _check(name, parsed)
    return name, parsed


def _by_trec_name(name: str) -> Any:
    import ir_measures

    try:
        found = ir_measures.parse_trec_measure(name)
    except (ValueError, KeyError):
        return None
    if len(found) != 1:
        raise InputError(f"metric {name!r} stands for {', '.join(map(str, found))}: name one of them")
    _check(name, found[0])
    return found[0]


def _without_case(name: str, known: Iterable[str]) -> str | None:
    """Return the name with the case that ir-measures writes it in, if it is one."""
    base = re.split(r"[@(]", name, maxsplit=1)[0]
    for right in sorted(known, reverse=True):  # of two spellings the one that is no alias: nDCG, Rprec, Bpref
        if right.lower() == base.lower() and right != base:
            return right + name[len(base) :]
    return None


def _check(name: str, parsed: Any) -> None:
    """Refuse parameters that the measure does not have, lacks, or that no ranking can have."""
    known: Mapping[str, Any] = parsed.SUPPORTED_PARAMS
    takes = ", ".join(f"{key}: {info.desc}" if info.desc else key for key, info in known.items()) or "no parameters"
    for key in parsed.params:
        if key not in known:
            raise InputError(f"metric {name!r}: no parameter {key!r}; it takes {takes}")
    try:
        parsed.validate_params()
    except AssertionError:
        lacking = [key for key, info in known.items() if info.required and key not in parsed.params]
        problem = f"give {', '.join(lacking)}, as in {parsed.NAME}@10" if lacking else "a value that cannot be"
        raise InputError(f"metric {name!r}: {problem}; it takes {takes}") from None
    for key, least, most in (("cutoff", 1, MOST_DOCUMENTS), ("rel", 1, MOST_DOCUMENTS), ("recall", 0, 1)):
        value = parsed.params.get(key, least)
        if isinstance(value, bool) or (isinstance(value, int | float) and not least <= value <= most):
            raise InputError(f"metric {name!r}: {key} = {value} must lie between {least} and {most}")


@known_as("sigdask.metrics.retrieval:_bind")
def _bind(name: str, parsed: Any, counts: Counts) -> BoundMetric:
    if not holds_rankings(counts):
        raise InputError(
            f"metric {name!r} needs rankings and judgements (format trec, --gold QRELS); these data have: "
            f"{', '.join(list(counts.fields)[:6])}"
        )
    column = f"score[{name}]"
    scores: NDArray[Any] = topic_scores(name, counts)
    form: Form = Ratios(((1, 0),), ((0, 1),))
    fields: tuple[str, ...] = (column, "items")
    if type(parsed.aggregator()).__name__ == "SumAgg":  # num_ret, num_rel, num_rel_ret: totals of counts
        scores, form, fields = scores.astype(np.int64), Formula(name, _total), (column,)
    return BoundMetric(name, fields, form, own={column: scores})


@known_as("sigdask.metrics.retrieval:_total")
def _total(values: NDArray[Any]) -> NDArray[Any]:
    return values


def topic_scores(name: str, counts: Counts) -> NDArray[np.float64]:
    """Return a measure of each topic and system, shape (n_items, n_systems).

    Raises
    ------
    InputError
        ir-measures has no provider for the measure, or the provider fails.
    """
    scores: NDArray[np.float64] = taken(_extraction(name), counts)[:, :, 0]
    if np.isnan(scores).any():
        k, s = np.argwhere(np.isnan(scores))[0]
        topic = counts.ids[k] if counts.ids is not None else k + 1
        raise InputError(f"metric {name!r}: not defined for system {counts.systems[s]!r}, topic {topic!r}")
    return scores


@known_as("sigdask.metrics.retrieval:measure_topics")
def measure_topics(
    systems: Sequence[list[Sequence[str]]], gold: list[Mapping[str, int]], *, name: str
) -> list[NDArray[np.float64]]:
    """Return a measure of each topic, an array a system, shape (n_items, 1); NaN where it is not defined.

    One run at a time: the mappings that ir-measures takes are many times the size of the rankings.
    """
    import ir_measures

    _, parsed = _parse(name)
    # judged_only cuts after it has left documents out, all else at a rank
    depth = None if parsed.params.get("judged_only") else parsed.params.get("cutoff")
    found = []
    try:
        # topics go by number: gdeval takes no other ids
        judged = {str(k): _judged(name, parsed, judgements) for k, judgements in enumerate(gold)}
        evaluator = ir_measures.evaluator([parsed], judged)
        for rankings in systems:
            scores = np.full((len(gold), 1), np.nan)
            for scored in evaluator.iter_calc(_run(rankings, depth)):
                scores[int(scored.query_id)] = scored.value
            found.append(scores)
    except (ValueError, TypeError, RuntimeError, ImportError, OSError, subprocess.SubprocessError) as error:
        raise InputError(f"metric {name!r}: ir-measures cannot compute it: {' '.join(str(error).split())}") from None
    return found


def _judged(name: str, parsed: Any, gold: Mapping[str, int]) -> Mapping[str, int]:
    """Return judgements without negative relevance, which pytrec_eval counts outside of its memory.

    trec_eval takes such documents as not relevant; its bpref takes them as not judged.
    """
    lowest, highest = min(gold.values(), default=0), max(gold.values(), default=0)
    if highest > MOST_RELEVANT:
        raise InputError(f"metric {name!r}: relevance {highest} in the judgements, expected {MOST_RELEVANT} or less")
    if lowest >= 0:
        return gold
    if parsed.NAME == "infAP":
        raise InputError(f"metric {name!r}: relevance {lowest} in the judgements, which pytrec_eval cannot count")
    if parsed.NAME == "Bpref":
        return {document: relevance for document, relevance in gold.items() if relevance >= 0}
    return {document: max(relevance, 0) for document, relevance in gold.items()}


def _run(rankings: Iterable[Sequence[str]], depth: int | None) -> dict[str, dict[str, float]]:
    """Return a run as ir-measures takes it: scores that fall by 1 a rank; topics without documents left out."""
    cut = [documents[:depth] for documents in rankings]
    falling = np.arange(max(map(len, cut), default=0), 0, -1, dtype=np.float64).tolist()
    return {
        str(k): dict(zip(documents, falling[len(falling) - len(documents) :], strict=True))
        for k, documents in enumerate(cut)
        if documents
    }
