"""Information retrieval: runs and judgements, or the scores of each topic as evaluation tools print them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.trec.layouts import is_judged, is_qrels, is_ranked, is_run
from sigdask.formats.trec.printed import is_printed, read_printed
from sigdask.formats.trec.rankings import read_qrels, read_rankings
from sigdask.formats.trec.topics import POLICIES


def read_trec(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read runs with `gold` judgements, or printed scores without; items are topics."""
    options.only("trec", missing=POLICIES)
    first = sources[0].path
    printed = is_printed(first) and not is_ranked(first)
    if gold is None and not printed and is_run(first):
        raise InputError(f"{first}: is a run, and runs need relevance judgements; give --gold QRELS")
    if gold is None:
        return read_printed(sources, options)
    if printed and not (is_qrels(gold) and is_judged(first, read_qrels(gold))):
        raise InputError(f"--gold {gold}: {first} holds scores that were printed already and takes no gold file")
    return read_rankings(sources, gold, options)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001  # a `Sniffer`
    """Whether the first file is a run, judgements given in its place, or printed scores."""
    first = sources[0].path
    try:
        if gold is None:
            return is_run(first, q0=True) or is_ranked(first) or is_printed(first)
        return (is_run(first) and is_qrels(gold)) or (is_qrels(first) and is_run(gold))
    except InputError:  # not text, or not there: for the reader of its format to say
        return False
