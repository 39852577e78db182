"""Information retrieval: runs and relevance judgements, or scores per topic printed by tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.trec.printed_scores import is_printed, read_printed
from sigdask.formats.trec.rankings import is_run, read_rankings
from sigdask.interface import spell


def read_trec(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read runs and relevance judgements (`gold`) or, without `gold`, printed scores; items are topics."""
    path = sources[0].path
    if gold is None and is_run(path):
        raise InputError("runs need relevance judgements", file=path, remedy=f"give {spell('gold', 'QRELS')}")
    if gold is None:
        return read_printed(sources, options)
    if is_printed(path):
        raise InputError(
            "is no run, but holds scores that a program computed", file=path, remedy=f"leave out {spell('gold')}"
        )
    return read_rankings(sources, gold, options)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001  # a `Sniffer`
    """Return whether the first file is a run, or without gold holds printed scores."""
    path = sources[0].path
    return is_run(path) or (gold is None and is_printed(path))
