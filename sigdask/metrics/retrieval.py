"""Measures of rankings: ir-measures scores each topic, and sigdask averages over topics.

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
from sigdask.counts.fields import Floats
from sigdask.errors import InputError, explain_missing
from sigdask.interface import spell
from sigdask.metrics.base import BoundMetric, Metric, Spec, build_lacking_error, has_rankings
from sigdask.metrics.extraction import Extraction, get_statistics
from sigdask.metrics.forms import MEAN, Form, Formula

MAX_DOCUMENTS = 2**31 - 1
"""Maximum cutoff. A larger one overflows trec_eval's counters and ends the program."""

PACKAGES = ("ir-measures", "pytrec-eval-terrier", "cwl-eval", "trectools", "ranx", "pyndeval", "numpy", "scipy")
"""Packages that measure topics: ir-measures and its installed providers."""

MAX_RELEVANT = 1000
"""Maximum relevance. trec_eval allocates as many counters as the highest one (it documents 127)."""


def can_be_measure(name: str) -> bool:
    """Return whether a name may be a ranking measure's; true for any name if ir-measures is not installed."""
    return find_spec("ir_measures") is None or find_measure(name) is not None


def ranking_measure(spec: Spec) -> Metric:
    """Return the ranking measure with this name, for any data; raise InputError if there is none."""
    metric = find_measure(spec.name)
    if metric is None:
        raise InputError(f"metric {spec.name!r}: not a name that ir-measures knows, such as AP(rel=2) or AP@100")
    return metric


def find_measure(name: str) -> Metric | None:
    """Return the measure that ir-measures or trec_eval knows by this name, or None.

    Raises
    ------
    InputError
        ir-measures is not installed; the measure has no such parameter.
    """
    listed_name, parsed = _parse_measure(name)
    if parsed is None:
        return None
    extraction = Extraction("topics", measure_topics, {"name": listed_name}, PACKAGES, of="topics")
    return Metric(listed_name, partial(_bind, listed_name, parsed, extraction), extraction)


def _parse_measure(name: str, *, may_correct: bool = True) -> tuple[str, Any]:
    """Return the name as ir-measures spells it, and the measure, which is None if the name is unknown.

    The capitals of an unknown name are corrected once: of `nDCG@ten` no spelling is known.
    """
    with explain_missing("ir-measures", f"metric {name!r}"):
        import ir_measures
    try:
        parsed = ir_measures.parse_measure(name)
    except (ValueError, NameError, KeyError):
        try:
            measures = ir_measures.parse_trec_measure(name)
        except (ValueError, KeyError):
            corrected_name = _match_case(name, ir_measures.measures.registry) if may_correct else None
            return _parse_measure(corrected_name, may_correct=False) if corrected_name else (name, None)
        if len(measures) != 1:
            raise InputError(f"metric {name!r} stands for {', '.join(map(str, measures))}: name one of them") from None
        parsed = measures[0]
    _check_parameters(name, parsed)
    return name, parsed


def _match_case(name: str, known_names: Iterable[str]) -> str | None:
    """Return the name with the capitals that ir-measures uses, or None if it has no such name."""
    base = re.split(r"[@(]", name, maxsplit=1)[0]
    # prefers the spelling that is not an alias: nDCG, Rprec, Bpref
    for known_name in sorted(known_names, reverse=True):
        if known_name.lower() == base.lower() and known_name != base:
            return known_name + name[len(base) :]
    return None


def _check_parameters(name: str, parsed: Any) -> None:
    """Raise InputError if a parameter of a measure is unknown, missing or out of range."""
    supported: Mapping[str, Any] = parsed.SUPPORTED_PARAMS
    takes = ", ".join(f"{key}: {info.desc}" if info.desc else key for key, info in supported.items()) or "no parameters"
    try:
        parsed.validate_params()
    except AssertionError as error:
        raise InputError(f"metric {name!r}: {error}; it takes {takes}") from None
    for key, lowest, highest in (("cutoff", 1, MAX_DOCUMENTS), ("rel", 1, MAX_DOCUMENTS), ("recall", 0, 1)):
        value = parsed.params.get(key, lowest)
        if isinstance(value, bool) or (isinstance(value, int | float) and not lowest <= value <= highest):
            raise InputError(f"metric {name!r}: {key} = {value} must lie between {lowest} and {highest}")


def _bind(name: str, parsed: Any, extraction: Extraction, counts: Counts) -> BoundMetric:
    if not has_rankings(counts):
        raise build_lacking_error(name, f"rankings and judgements (format trec, {spell('gold', 'QRELS')})", counts)
    column = f"score[{name}]"
    scores: NDArray[Any] = get_statistics(extraction, counts)[:, :, 0]
    if np.isnan(scores).any():
        k, s = np.argwhere(np.isnan(scores))[0]
        topic = counts.ids[k] if counts.ids is not None else k + 1
        raise InputError(f"metric {name!r}: not defined for system {counts.systems[s]!r}, topic {topic!r}")
    form: Form = MEAN
    fields: tuple[str, ...] = (column, "items")
    if type(parsed.aggregator()).__name__ == "SumAgg":  # num_ret, num_rel, num_rel_ret: totals of counts
        scores, form, fields = scores.astype(np.int64), Formula(name, _total), (column,)
    return BoundMetric(name, fields, form, own={column: scores})


def _total(values: NDArray[Any]) -> NDArray[Any]:
    return values


def measure_topics(systems: Sequence[list[Sequence[str]]], gold: list[Mapping[str, int]], *, name: str) -> list[Floats]:
    """Return a measure's score for each topic, one array per system of shape (n_items, 1); NaN if undefined.

    One run at a time: the mappings that ir-measures takes are many times the size of the rankings.
    """
    import ir_measures

    _, parsed = _parse_measure(name)
    # judged_only cuts after it has left documents out, all else at a rank
    depth = None if parsed.params.get("judged_only") else parsed.params.get("cutoff")
    results = []
    try:
        # topics go by number: gdeval takes no other ids
        gold_by_topic = {str(k): _clean_judgements(name, parsed, judgements) for k, judgements in enumerate(gold)}
        evaluator = ir_measures.evaluator([parsed], gold_by_topic)
        for rankings in systems:
            scores = np.full((len(gold), 1), np.nan)
            for scored in evaluator.iter_calc(_build_run(rankings, depth)):
                scores[int(scored.query_id)] = scored.value
            results.append(scores)
    except (ValueError, TypeError, RuntimeError, ImportError, OSError, subprocess.SubprocessError) as error:
        raise InputError(f"metric {name!r}: ir-measures cannot compute it: {' '.join(str(error).split())}") from None
    return results


def _clean_judgements(name: str, parsed: Any, gold: Mapping[str, int]) -> Mapping[str, int]:
    """Return judgements without negative relevance, for which pytrec_eval counts outside its memory.

    trec_eval takes such documents as not relevant; its bpref takes them as not judged.
    """
    lowest, highest = min(gold.values(), default=0), max(gold.values(), default=0)
    if highest > MAX_RELEVANT:
        problem = f"the judgements have relevance {highest}, but at most {MAX_RELEVANT:,} is possible"
        raise InputError(f"metric {name!r}: {problem}", remedy="give smaller grades")
    if lowest >= 0:
        return gold
    if parsed.NAME == "infAP":
        raise InputError(
            f"metric {name!r}: pytrec_eval cannot count relevance {lowest}", remedy="choose another metric"
        )
    if parsed.NAME == "Bpref":
        return {document: relevance for document, relevance in gold.items() if relevance >= 0}
    return {document: max(relevance, 0) for document, relevance in gold.items()}


def _build_run(rankings: Iterable[Sequence[str]], depth: int | None) -> dict[str, dict[str, float]]:
    """Return rankings as a run for ir-measures: scores fall by 1 per rank, and topics without documents are absent."""
    cut = [documents[:depth] for documents in rankings]
    falling = np.arange(max(map(len, cut), default=0), 0, -1, dtype=np.float64).tolist()
    return {
        str(k): dict(zip(documents, falling[len(falling) - len(documents) :], strict=True))
        for k, documents in enumerate(cut)
        if documents
    }
