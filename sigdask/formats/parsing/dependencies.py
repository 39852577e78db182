"""Dependency parses in CoNLL-U, scored as in the CoNLL 2018 shared task.

Items are the gold sentences. Each word, token and sentence of a system counts for the gold sentence in which its first
character lies. So sums over items are the counts of the whole files, however the system divides the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.fields import Array, LazyColumns
from sigdask.counts.texts import Codes
from sigdask.formats.parsing.treebank import read_treebank
from sigdask.formats.parsing.trees import ScoredSystem, score_system
from sigdask.formats.reading.alignment import build_sentence_groups, check_types
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.interface import spell
from sigdask.metrics.base import Spec
from sigdask.metrics.labels import WORD_METRICS

TEXT_UNITS = ("tokens", "sentences")
LABELS = ("relation", "upos", "xpos")
"""Columns whose values can restrict a metric, as in LAS[nsubj]."""


def read_conllu(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read parses in CoNLL-U and a gold file of the same text, whatever the tokens of each file."""
    assert gold is not None
    codes, names = Codes(), list_system_names(sources)
    first, *banks = (read_treebank(path, codes) for path in (gold, *(source.path for source in sources)))
    of_gold, *systems = (score_system(first, bank, codes) for bank in (first, *banks))
    notes: list[str] = []
    bases = {Spec.parse(name).base.casefold() for name in options.metrics}
    if not bases or not bases.isdisjoint({"las", "clas", "mlas", "blex"}):
        texts = list(codes)
        known, *used = ([texts[code] for code in bank.columns["relation"].tolist()] for bank in (first, *banks))
        remedy = f"compare heads alone with {spell('metrics', 'UAS')}"
        notes += check_types(gold, known, dict(zip(names, used, strict=True)), "words", "relations", remedy)
    return Counts(
        systems=tuple(names),
        fields=_build_fields(of_gold, systems, list(codes)),
        n_items=len(first.starts),
        ids=first.ids,
        groups=build_sentence_groups(gold, len(first.starts), first.documents, options.groups),
        suggested=("LAS", "UAS", "UPOS"),
        warnings=tuple(notes),
    )


def _build_fields(gold: ScoredSystem, systems: Sequence[ScoredSystem], texts: Sequence[str]) -> LazyColumns:
    """Return fields of parses, summed by gold sentence on access.

    `correct[METRIC]` counts right words (tokens, sentences); `gold[UNIT]` and `system[UNIT]` count what there is and
    `aligned[UNIT]` the gold words that are aligned; a unit is tokens, sentences, words or content (content words).
    `[relation=R]`, `[upos=T]` or `[xpos=T]` after it restricts words to those of one relation or tag.
    """
    specs: dict[str, tuple[str, str, str | None, int]] = {}
    for column in (None, *LABELS):
        metrics = {metric: unit for metric, (unit, labels, _) in WORD_METRICS.items() if column in {None, labels}}
        pairs = [("correct", unit if unit in TEXT_UNITS else metric) for metric, unit in metrics.items()]
        pairs += [(kind, unit) for unit in dict.fromkeys(metrics.values()) for kind in ("system", "gold")]
        pairs += [("aligned", unit) for unit in dict.fromkeys(metrics.values()) if unit not in TEXT_UNITS]
        used = [words.columns[column] for words in (gold, *systems)] if column else [np.zeros(1, np.int64)]
        for code in sorted({*np.concatenate(used).tolist()}, key=texts.__getitem__):
            end = f"[{column}={texts[code]}]" if column else ""
            specs |= {f"{kind}[{what}]{end}": (kind, what, column, code) for kind, what in pairs}

    def count(name: str) -> Array:
        kind, what, column, code = specs[name]
        columns = []
        for system in systems[:1] if kind == "gold" else systems:
            if what in TEXT_UNITS:
                columns.append(system.totals[f"{kind}[{what}]"])
                continue
            words = system if kind == "system" else gold
            mask = words.columns[column] == code if column else np.ones(len(words.sentences), np.bool_)
            if what == "content":
                mask = mask & words.is_content
            if kind in {"correct", "aligned"}:
                mask = mask & system.right[what if kind == "correct" else "Words"]
            columns.append(np.bincount(words.sentences[mask], minlength=len(system.totals["gold[tokens]"])))
        return np.stack(columns, axis=1).astype(np.int32)

    return LazyColumns(list(specs), count)
