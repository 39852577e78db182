"""WER and CER: jiwer counts the errors of each utterance, and sigdask sums errors and reference lengths."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.fields import Array, Integers
from sigdask.errors import InputError, explain_missing
from sigdask.identity import known_as
from sigdask.metrics.base import BoundMetric, Metric, Spec, get_texts
from sigdask.metrics.extraction.request import Extraction, get_statistics, get_version
from sigdask.metrics.forms import MEAN

BLOCK = 4096
"""Utterances aligned at a time. Alignments need much memory."""


UNITS = {"WER": "words", "CER": "characters"}
"""Units of errors. Spaces between words count as characters."""


def error_rate(spec: Spec) -> Metric:
    """Return the metric word or character error rate: errors / reference units (lowercase=0|1, punctuation=1|0)."""
    unit = UNITS[spec.base]
    spec.check_options("lowercase", "punctuation")
    lowercase, punctuation = spec.get_flag("lowercase"), spec.get_flag("punctuation", default=True)
    bind = partial(_bind, spec.name, unit, lowercase, punctuation)
    return Metric(spec.name, bind, _build_extraction(spec.name, unit, lowercase, punctuation))


def _build_extraction(name: str, unit: str, lowercase: bool, punctuation: bool) -> Extraction:
    options = {"name": name, "unit": unit, "lowercase": lowercase, "punctuation": punctuation}
    return Extraction(count_errors, options, ("jiwer", "rapidfuzz"))


@known_as("sigdask.metrics.speech:_bind")
def _bind(name: str, unit: str, lowercase: bool, punctuation: bool, counts: Counts) -> BoundMetric:
    get_texts(name, counts)
    errors, lengths = np.moveaxis(get_statistics(_build_extraction(name, unit, lowercase, punctuation), counts), 2, 0)
    lengths = lengths[:, :1]  # of the references, which all systems share
    if not lengths.any():
        raise InputError(
            f"metric {name!r}: the references have no {unit}, so an error rate is not defined; check --ref"
        )
    own_fields = {f"{name}#errors": errors, f"{name}#{unit}": lengths}
    signature = (
        f"case:{'lc' if lowercase else 'mixed'}|punct:{'kept' if punctuation else 'removed'}|unit:{unit}"
        f"|jiwer:{get_version('jiwer')}"
    )
    return BoundMetric(name, tuple(own_fields), MEAN, False, own_fields, signature)


@known_as("sigdask.metrics.speech:count_errors")
def count_errors(
    systems: Sequence[list[str]], gold: list[Any], *, name: str, unit: str, lowercase: bool, punctuation: bool
) -> list[Array]:
    """Return the errors and the reference length of each utterance, one array per system of shape (n_items, 2)."""
    if any(len(references) != 1 for references in gold[:1]):
        raise InputError(
            f"metric {name!r} takes one reference, but each item has {len(gold[0])}; leave out --reference"
        )
    aligner = _WordAligner(unit, lowercase, punctuation)
    references = [text for (text,) in gold]
    lengths = aligner.count_lengths(references)
    return [np.column_stack([aligner.count_edits(references, outputs), lengths]) for outputs in systems]


class _WordAligner:
    """Alignment by jiwer, with one choice of unit (words or characters) and normalisation."""

    def __init__(self, unit: str, lowercase: bool, punctuation: bool) -> None:
        with explain_missing("jiwer", "asr", "an error rate of transcripts"):
            import jiwer
        normalizers = [jiwer.ToLowerCase()] if lowercase else []
        normalizers += [] if punctuation else [jiwer.RemovePunctuation()]
        words = unit == "words"
        default_transforms = (jiwer.wer_default if words else jiwer.cer_default).transforms
        self.transform = jiwer.Compose([*normalizers, *default_transforms])
        self.process = jiwer.process_words if words else jiwer.process_characters

    def count_lengths(self, texts: Sequence[str]) -> Integers:
        """Return the number of words or characters of each text."""
        return np.array([len(self.transform(text)[0]) for text in texts], np.int64)

    def count_edits(self, references: Sequence[str], hypotheses: Sequence[str]) -> Array:
        """Return the number of substitutions, deletions and insertions in each hypothesis, in total."""
        n_edits: list[int] = []
        for start in range(0, len(references), BLOCK):
            block = slice(start, start + BLOCK)
            output = self.process(list(references[block]), list(hypotheses[block]), self.transform, self.transform)
            n_edits += [sum(map(_count_chunk_errors, chunks)) for chunks in output.alignments]
        return np.array(n_edits, np.int64)


def _count_chunk_errors(chunk: Any) -> int:
    """Return the number of errors in one chunk of an alignment."""
    if chunk.type == "equal":
        return 0
    return int(max(chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx))
