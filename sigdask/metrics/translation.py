"""BLEU, chrF, chrF++ and TER: sacrebleu counts each segment, sigdask sums and scores.

The sums are sacrebleu's own sufficient statistics, and the score of a sum is its corpus score.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from sigdask.counts import Array, Counts
from sigdask.errors import InputError, missing_extra
from sigdask.metrics.base import BoundMetric, Metric, Spec
from sigdask.metrics.forms import Bleu, ChrF, Form, Ratios

TOKENIZERS = ("13a", "none", "char", "intl", "zh")


def bleu(spec: Spec) -> Metric:
    """Return corpus BLEU (options tokenize=13a|none|char|intl|zh, lowercase=0|1)."""
    spec.only("tokenize", "lowercase")
    tokenize = _choice(spec, "tokenize", TOKENIZERS)
    options = {"tokenize": tokenize, "lowercase": _choice(spec, "lowercase", ("0", "1")) == "1", "force": True}
    return Metric(spec.name, partial(_bind, spec.name, "BLEU", options, Bleu(), True))


def chrf(spec: Spec) -> Metric:
    """Return corpus chrF, or chrF++ with its two word orders (options beta=2, lowercase=0|1)."""
    spec.only("beta", "lowercase")
    beta = float(spec.number("beta", "2"))
    options = {
        "word_order": 2 if spec.base == "chrF++" else 0,
        "beta": beta,
        "lowercase": _choice(spec, "lowercase", ("0", "1")) == "1",
    }
    return Metric(spec.name, partial(_bind, spec.name, "CHRF", options, ChrF(beta), True))


def ter(spec: Spec) -> Metric:
    """Return corpus TER in percent of reference words (options normalized=0|1, case_sensitive=0|1)."""
    spec.only("normalized", "case_sensitive")
    options = {key: _choice(spec, key, ("0", "1")) == "1" for key in ("normalized", "case_sensitive")}
    form = Ratios(((100, 0),), ((0, 1),))
    return Metric(spec.name, partial(_bind, spec.name, "TER", options, form, False))


def _choice(spec: Spec, key: str, choices: tuple[str, ...]) -> str:
    text = spec.options.get(key, choices[0])
    if text not in choices:
        raise InputError(f"metric {spec.name!r}: {key} = {text!r} must be one of {', '.join(choices)}")
    return text


def _bind(
    name: str, scorer: str, options: Mapping[str, Any], form: Form, higher_is_better: bool, counts: Counts
) -> BoundMetric:
    if counts.outputs is None or "segments" not in counts.fields:
        known = ", ".join(list(counts.fields)[:6])
        raise InputError(f"metric {name!r} needs texts and references (format segments); these data have: {known}")
    statistics = extract(scorer, options, counts)  # (n_items, n_systems, n_fields)
    fields = tuple(f"{name}#{k}" for k in range(statistics.shape[2]))
    own = {field: statistics[:, :, k] for k, field in enumerate(fields)}
    return BoundMetric(name, fields, form, higher_is_better, own)


def extract(scorer: str, options: Mapping[str, Any], counts: Counts) -> Array:
    """Return sacrebleu's statistics of each segment, shape (n_items, n_systems, n_fields), integers.

    Raises
    ------
    InputError
        sacrebleu is not installed; or reference lengths that are no integers (TER of several references).
    """
    try:
        from sacrebleu import metrics
    except ImportError:
        raise missing_extra("sacrebleu", "mt", scorer) from None
    assert counts.outputs is not None
    assert counts.outputs.gold is not None
    references = [list(stream) for stream in zip(*counts.outputs.gold, strict=True)]
    tool = getattr(metrics, scorer)(references=references, **options)
    # the statistics have no public name in sacrebleu; its own paired tests take them from here
    of_system = tool._extract_corpus_statistics  # noqa: SLF001
    systems = [np.array(of_system(outputs.tolist(), None), np.float64) for outputs in counts.outputs.systems]
    statistics = np.stack(systems, axis=1)
    if scorer == "TER":
        statistics = statistics[:, :, :2] * len(references)  # mean reference length, made whole
    whole = np.rint(statistics)
    if not np.allclose(whole, statistics, atol=1e-6):
        raise InputError(f"{scorer}: the statistics of a segment are no integers")
    return whole.astype(np.int64)
