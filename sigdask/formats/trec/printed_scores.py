"""Scores per topic, as printed by trec_eval -q and by the script of CLEF's TAR task.

trec_eval prints measure, topic and value, ir_measures and the script topic, measure and value. Lines of "all" (ALL) are
means and no topics.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isnan
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled, enumerate_lines, read_head
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.trec.rankings import parse_number
from sigdask.formats.trec.topics import apply_topic_policy
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

Row = tuple[int, list[str]]


def read_printed(sources: Sequence[Source], options: Options) -> Counts:
    """Read one file per system; every measure that all files have becomes a column of scores."""
    messages: list[str] = []
    files = [read_scores(source.path, options, messages) for source in sources]
    names = list_system_names(sources)
    measures = [measure for measure in files[0] if all(measure in file for file in files)]
    others = list(dict.fromkeys(measure for file in files for measure in file if measure not in measures))
    if not measures:
        problem = f"no measure is in all files; this one has {format_list([*files[0]], 6)}"
        raise InputError(problem, file=sources[0].path)
    topics_by_file = [dict.fromkeys(topic for column in file.values() for topic in column) for file in files]
    topics = list(dict.fromkeys(topic for file_topics in topics_by_file for topic in file_topics))
    for source, file, file_topics in zip(sources, files, topics_by_file, strict=True):
        for measure in measures:
            if lacking := file_topics.keys() - file[measure]:
                problem = f"topic {min(lacking)!r} has no line of {measure}, as other topics have"
                raise InputError(problem, file=source.path)
    has = np.array([[topic in file_topics for file_topics in topics_by_file] for topic in topics])
    present, gap_notes = apply_topic_policy(has, topics, names, options, "error")
    fields = {
        f"score[{measure}]": np.array([[file[measure].get(topic, 0.0) for file in files] for topic in topics])
        for measure in measures
    }
    notes = [f"lines that hold no score are left out: {len(messages)} (first {messages[0]})"] if messages else []
    notes += [f"measures that not all files have are left out: {format_list(others, 3)}"] if others else []
    return Counts(
        systems=tuple(names),
        fields={**fields, "items": np.ones((len(topics), 1), np.int64)},
        n_items=len(topics),
        ids=tuple(topics),
        present=present,
        suggested=tuple(measure for measure in SUGGESTED if measure in measures) or (measures[0],),
        warnings=(*notes, *gap_notes),
    )


def read_scores(path: Path, options: Options, messages: list[str]) -> dict[str, dict[str, float]]:
    """Read the scores printed in one file, by measure and topic. Measures whose values are texts are left out.

    Raises
    ------
    InputError
        The number of columns is wrong, a topic occurs twice, a value is not a number, or the file has only summaries.
    """
    rows = _split_rows(list(enumerate_lines(path)), messages, str(path))
    check_filled(path, rows)
    m = _find_measures(path, rows[0][1], options)
    values: dict[str, dict[str, str]] = {}
    for number, cells in rows:
        if len(cells) != 3 or not all(cells):
            expected = "measure, topic and value as trec_eval -q prints them"
            raise InputError(file=path, line=number, found=f"{' | '.join(cells)[:60]!r}", expected=expected)
        measure, topic, value = cells[m], cells[1 - m], cells[2]
        column = values.setdefault(measure, {})
        if topic in column:
            problem = f"{measure} of topic {topic} is there already"
            raise InputError(problem, file=path, line=number, remedy="give one file per system")
        column[topic] = value
    scores: dict[str, dict[str, float]] = {}
    for measure, column in values.items():
        by_topic = {topic: value for topic, value in column.items() if topic.lower() != ALL}
        texts = {topic: value for topic, value in by_topic.items() if isnan(parse_number(value))}
        if len(texts) == len(by_topic):  # such as trec_eval's relstring
            continue
        for topic, value in texts.items():
            raise InputError(f"{measure} of topic {topic} is {value!r}, expected a number", file=path)
        scores[measure] = {topic: float(value) for topic, value in by_topic.items()}
    if not scores:
        raise InputError("has only averages, no scores of topics; print these with trec_eval -q", file=path)
    return scores


def is_printed(path: Path) -> bool:
    """Return whether the first lines have three cells, and the first one has a measure by its name and a value."""
    rows = [cells for _, cells in _split_rows(list(enumerate(read_head(path).text.split("\n"))), [], "")[:5]]
    if len(rows) < 2 or any(len(cells) != 3 for cells in rows):
        return False
    has_value = (
        not isnan(parse_number(rows[0][2])) or rows[0][2] in rows[0][:2] or "runid" in rows[0]
    )  # unlike a header
    return has_value and sum(map(_is_measure, rows[0][:2])) == 1


def _is_measure(cell: str) -> bool:
    return MEASURE.fullmatch(cell) is not None


def _split_rows(lines: Sequence[tuple[int, str]], messages: list[str], path: str) -> list[Row]:
    """Return the cells of lines of scores with their numbers; if scores have tabs, other lines are messages."""
    lines = [(number, line) for number, line in lines if line.strip()]
    if not any("\t" in line for _, line in lines):
        return [(number, line.split()) for number, line in lines]
    messages += [f"{path}, line {number}: {line.strip()[:40]!r}" for number, line in lines if "\t" not in line]
    return [(number, [cell.strip() for cell in line.split("\t")]) for number, line in lines if "\t" in line]


def _find_measures(path: Path, cells: Sequence[str], options: Options) -> int:
    """Return which of the first two columns holds measures: by the option, or by the measure in the first line."""
    if (column := options.own.get("topics")) is not None:
        return 2 - int(column)
    columns = [k for k in (0, 1) if _is_measure(cells[k])] if len(cells) == 3 else [0]
    if len(columns) == 1:
        return columns[0]
    ways = " or ".join(f"{spell('format', f'trec:topics={k + 1}')} (such as {cells[k]!r})" for k in (0, 1))
    raise InputError("its first or its second column may hold the topics", file=path, remedy=f"choose {ways}")
