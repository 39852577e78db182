"""Information retrieval: runs and relevance judgements, or scores per topic printed by tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.trec.layouts import is_judged, is_qrels, is_run
from sigdask.formats.trec.printed_scores import is_printed, read_printed
from sigdask.formats.trec.rankings import read_qrels, read_rankings
from sigdask.interface import spell


def read_trec(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read runs and relevance judgements (`gold`) or, without `gold`, printed scores; items are topics."""
    path = sources[0].path
    has_scores = is_printed(path)
    if gold is None and not has_scores and is_run(path):
        raise InputError(
            "is a run, and runs need relevance judgements", file=path, remedy=f"give {spell('gold', 'QRELS')}"
        )
    if gold is None:
        return read_printed(sources, options)
    if has_scores and not (is_run(path) and is_qrels(gold) and is_judged(path, read_qrels(gold))):
        raise InputError(
            f"{spell('gold')} {gold}: {path} is no run, but holds scores that a program computed",
            remedy=f"leave out {spell('gold')}",
        )
    return read_rankings(sources, gold, options)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001  # a `Sniffer`
    """Return whether the first file is a run, judgements swapped with the run, or printed scores."""
    path = sources[0].path
    try:
        if gold is None:
            return is_run(path, q0=True) or is_printed(path)
        return (is_run(path) and is_qrels(gold)) or (is_qrels(path) and is_run(gold))
    except InputError:  # not text, or missing: the reader of its format reports it
        return False
