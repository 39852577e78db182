"""Information retrieval, whose items are topics: runs and relevance judgements, or scores that tools printed.

trec_eval -q prints measure, topic and value, ir_measures and the script of CLEF's TAR task topic, measure and value.
Lines of "all" (ALL) are means and no topics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isnan, nan
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled, enumerate_lines, read_head
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.replicates import build_score_counts
from sigdask.formats.trec.rankings import is_run, parse_number, read_rankings
from sigdask.interface import spell
from sigdask.text import format_list

ALL = "all"
SUGGESTED = ("map", "ndcg_cut_10", "ap")
MEASURE = re.compile(
    r"Z?(runid|topic_id|num_\w+|(gm_|inf|set_|relative_)*(map|ap|p|f|recall|bpref)|set[prf]|r|rr|mrr|recip_rank"
    r"|r-?prec|iprec|n?dcg|rndcg|success|err|rbp|judged|utility|11pt_avg|relstring)([@_(].*)?",
    re.IGNORECASE,
)
"""Pattern of the measures of trec_eval, ir_measures and TAR, by which their column is recognized."""

Scores = dict[str, dict[str, float]]
"""Scores by measure and topic."""


def read_trec(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read runs and relevance judgements (`gold`) or, without `gold`, printed scores; items are topics."""
    path = sources[0].path
    if gold is None:
        if is_run(path):
            raise InputError("runs need relevance judgements", file=path, remedy=f"give {spell('gold', 'QRELS')}")
        return read_printed(sources, options)
    if is_printed(path):
        remedy = f"leave out {spell('gold')}"
        raise InputError("is no run, but holds scores that a program computed", file=path, remedy=remedy)
    return read_rankings(sources, gold, options)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001  # a `Sniffer`
    """Return whether the first file is a run, or without gold holds printed scores."""
    path = sources[0].path
    return is_run(path) or (gold is None and is_printed(path))


def read_printed(sources: Sequence[Source], options: Options) -> Counts:
    """Read one file per system; every measure that all files have becomes a column of scores."""
    messages: list[str] = []
    files = [read_scores(source.path, options, messages) for source in sources]
    measures = [measure for measure in files[0] if all(measure in file for file in files)]
    others = list(dict.fromkeys(measure for file in files for measure in file if measure not in measures))
    if not measures:
        problem = f"no measure is in all files; this one has {format_list([*files[0]], 6)}"
        raise InputError(problem, file=sources[0].path)
    topics = list(dict.fromkeys(topic for file in files for column in file.values() for topic in column))
    notes = [f"lines that hold no score are left out: {len(messages)} (first {messages[0]})"] if messages else []
    notes += [f"measures that not all files have are left out: {format_list(others, 3)}"] if others else []
    counts = build_score_counts(
        {name: np.array([[file[name].get(topic, nan) for file in files] for topic in topics]) for name in measures},
        list_system_names(sources),
        tuple(topics),
        groups={},
        options=options,
        warnings=notes,
    )
    return replace(counts, suggested=tuple(name for name in SUGGESTED if name in measures) or (measures[0],))


def read_scores(path: Path, options: Options, messages: list[str]) -> Scores:
    """Read the scores printed in one file. Measures whose values are texts are left out.

    Raises
    ------
    InputError
        The number of columns is wrong, a topic occurs twice, a value is not a number, or the file has only summaries.
    """
    rows, others = _split_lines(enumerate_lines(path))
    check_filled(path, rows)
    messages += [f"{path}, line {number}: {line.strip()[:40]!r}" for number, line in others]
    m = None
    values: dict[str, dict[str, str]] = {}
    for number, cells in rows:
        if len(cells) != 3 or not all(cells):
            expected = "measure, topic and value as trec_eval -q prints them"
            raise InputError(file=path, line=number, found=f"{' | '.join(cells)[:60]!r}", expected=expected)
        m = _find_measures(path, cells, options) if m is None else m
        column = values.setdefault(cells[m], {})
        if cells[1 - m] in column:
            problem = f"{cells[m]} of topic {cells[1 - m]} is there already"
            raise InputError(problem, file=path, line=number, remedy="give one file per system")
        column[cells[1 - m]] = cells[2]
    scores: Scores = {}
    for measure, column in values.items():
        by_topic = {topic: parse_number(value) for topic, value in column.items() if topic.lower() != ALL}
        texts = [topic for topic, value in by_topic.items() if isnan(value)]
        if len(texts) == len(by_topic):  # such as trec_eval's relstring
            continue
        if texts:
            problem = f"{measure} of topic {texts[0]} is {column[texts[0]]!r}, expected a number"
            raise InputError(problem, file=path)
        scores[measure] = by_topic
    if not scores:
        raise InputError("has only averages, no scores of topics; print these with trec_eval -q", file=path)
    return scores


def is_printed(path: Path) -> bool:
    """Return whether the first lines have three cells, and the first one has a measure by its name and a value."""
    rows = [cells for _, cells in _split_lines(enumerate(read_head(path).text.split("\n")))[0][:5]]
    if len(rows) < 2 or any(len(cells) != 3 for cells in rows):
        return False
    *names, value = rows[0]
    has_value = not isnan(parse_number(value)) or value in names or "runid" in names  # unlike a header
    return has_value and sum(map(bool, map(MEASURE.fullmatch, names))) == 1


def _split_lines(lines: Iterable[tuple[int, str]]) -> tuple[list[tuple[int, list[str]]], list[tuple[int, str]]]:
    """Return the cells of lines of scores, and the messages among them: lines without tabs, if scores have tabs."""
    filled = [(number, line) for number, line in lines if line.strip()]
    tabbed = [(number, [cell.strip() for cell in line.split("\t")]) for number, line in filled if "\t" in line]
    if tabbed:
        return tabbed, [(number, line) for number, line in filled if "\t" not in line]
    return [(number, line.split()) for number, line in filled], []


def _find_measures(path: Path, cells: Sequence[str], options: Options) -> int:
    """Return which of the first two columns holds measures: by the option, or by the measure in the first line."""
    if (column := options.own.get("topics")) is not None:
        return 2 - int(column)
    columns = [k for k in (0, 1) if MEASURE.fullmatch(cells[k])]
    if len(columns) == 1:
        return columns[0]
    ways = " or ".join(f"{spell('format', f'trec:topics={k + 1}')} (such as {cells[k]!r})" for k in (0, 1))
    raise InputError("its first or its second column may hold the topics", file=path, remedy=f"choose {ways}")
