"""Scores per topic, as printed by trec_eval -q and by the script of CLEF's TAR task.

trec_eval prints measure, topic and value, ir_measures and the script topic, measure and value. Lines of "all" (ALL) are
means and no topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled, open_text, read_head
from sigdask.formats.reading.options import Options, Source, check_names
from sigdask.formats.trec.layouts import SHOWN, apply_topic_policy, choose_system_name, is_finite
from sigdask.interface import spell

ALL = "all"
N_HEAD_LINES = 200
SUGGESTED = ("map", "ndcg_cut_10", "ap")


Scores = Mapping[str, Mapping[str, float]]
"""Numbers by measure, then topic."""


@dataclass(frozen=True, slots=True)
class PrintedScores:
    """The scores printed in one file, by measure and topic.

    Attributes
    ----------
    tag : str or None
        Name of the run, as the file states it.
    topics : mapping of str to None
        Topics, in the order of the file.
    scores : mapping of str to mapping of str to float
        Scores by measure, then by topic. Measures whose values are texts are left out.
    messages : sequence of str
        Lines without a score, the first with its path and line.
    """

    tag: str | None
    topics: Mapping[str, None]
    scores: Scores
    messages: Sequence[str]


def read_printed(sources: Sequence[Source], options: Options) -> Counts:
    """Read one file per system; every measure becomes a column of scores."""
    files = [read_scores(source.path, options) for source in sources]
    names = [choose_system_name(source, file.tag) for source, file in zip(sources, files, strict=True)]
    check_names(sources, names)
    measures, warnings = _select_measures(sources, files)
    topics = list(dict.fromkeys(topic for file in files for topic in file.topics))
    has = np.array([[topic in file.topics for file in files] for topic in topics])  # (n_topics, n_systems)
    present, gap_notes = apply_topic_policy(has, topics, names, options, "error")
    fields: dict[str, NDArray[np.generic]] = {}
    for measure in measures:
        for source, file in zip(sources, files, strict=True):
            missing = [t for t in topics if t in file.topics and t not in file.scores[measure]]
            if missing:
                raise InputError(
                    f"topic {missing[0]!r} has no line of {measure}, as other topics have", file=source.path
                )
        columns = [[file.scores[measure].get(topic, 0.0) for topic in topics] for file in files]
        fields[f"score[{measure}]"] = np.column_stack(columns)
    notes = []
    if messages := [message for file in files for message in file.messages]:
        notes.append(f"lines that hold no score are left out: {len(messages)} (first {messages[0]})")
    suggested = tuple(m for m in SUGGESTED if m in measures)
    return Counts(
        systems=tuple(names),
        fields={**fields, "items": np.ones((len(topics), 1), np.int64)},
        n_items=len(topics),
        ids=tuple(topics),
        present=present,
        suggested=suggested or (next((m for m in measures if not m.startswith("num_")), measures[0]),),
        warnings=(*notes, *warnings, *gap_notes),
    )


def read_scores(path: Path, options: Options) -> PrintedScores:
    """Read the scores printed in one file.

    Raises
    ------
    InputError
        The number of columns is wrong, a topic occurs twice, a value is not a number, or the file has only summaries.
    """
    rows, messages = _read_rows(path)
    t = _find_topic_column(path, [cells for _, cells in rows], options)
    tag, lines = None, dict[tuple[str, str], int]()
    texts: dict[str, dict[str, str]] = {}
    for number, cells in rows:
        topic, measure, text = cells[t], cells[1 - t], cells[2]
        if (first := lines.setdefault((measure, topic), number)) != number:
            problem = f"{measure} of topic {topic} is on line {first} already"
            raise InputError(problem, file=path, line=number, remedy="give one file per system")
        if topic.lower() != ALL:
            texts.setdefault(measure, {})[topic] = text
        elif measure == "runid":
            tag = text
    # measures such as trec_eval's relstring are texts
    numeric = {m: column for m, column in texts.items() if any(map(is_finite, column.values()))}
    for measure, column in numeric.items():
        for topic in (topic for topic, text in column.items() if not is_finite(text)):
            problem = f"{measure} of topic {topic} is {column[topic]!r}, expected a number"
            raise InputError(problem, file=path, line=lines[measure, topic])
    if not numeric:
        raise InputError("has only averages, no scores of topics; print these with trec_eval -q", file=path)
    scores = {m: {topic: float(text) for topic, text in column.items()} for m, column in numeric.items()}
    topics = dict.fromkeys(topic for column in scores.values() for topic in column)
    return PrintedScores(tag, topics, scores, messages)


def is_printed(path: Path) -> bool:
    """Return whether the first lines have three cells, a topic, a measure and a number, with measures that recur."""
    head = _read_head(path)
    if len(head) < 2 or any(len(cells) != 3 for cells in head) or len({(c[0], c[1]) for c in head}) < len(head):
        return False
    numeric = [is_finite(cells[2]) for cells in head]
    is_first = numeric[0] or head[0][0] == "runid" or head[0][2] in head[0][:2]  # a header has no number
    return is_first and 2 * sum(numeric) >= len(head) and any(_has_measures(head, k) for k in (0, 1))


def _has_measures(rows: Sequence[Sequence[str]], k: int) -> bool:
    """Return whether a column holds names, no numbers, and the second topic has only names that the first one has."""
    names: dict[str, set[str]] = {}
    for row in rows:
        names.setdefault(row[1 - k], set()).add(row[k])
    first, second = [*names.values(), set[str]()][:2]
    return second <= first and not any(is_finite(row[k]) for row in rows)


def _read_head(path: Path) -> list[list[str]]:
    """Return the cells of the first lines with tabs, or of the first lines if no line has tabs."""
    lines = read_head(path).filled_lines
    tabbed = [line for line in lines if "\t" in line]
    return [_split_line(line, tabs=bool(tabbed)) for line in (tabbed or lines)[:N_HEAD_LINES]]


def _split_line(line: str, *, tabs: bool) -> list[str]:
    return [cell.strip() for cell in line.split("\t")] if tabs else line.split()


def _read_rows(path: Path) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """Return the lines of scores with their numbers, and messages: if scores have tabs, lines without tabs."""
    with open_text(path) as text:
        lines = [(number, line) for number, line in enumerate(text, start=1) if line.strip()]
    check_filled(path, lines)
    has_tabs = any("\t" in line for _, line in lines)
    rows = [(number, _split_line(line, tabs=has_tabs)) for number, line in lines if "\t" in line or not has_tabs]
    for number, cells in rows:
        if len(cells) != 3 or not all(cells):
            raise InputError(
                file=path,
                line=number,
                found=f"{' | '.join(cells)[:60]!r}",
                expected="measure, topic and value as trec_eval -q prints them",
            )
    messages = [(number, line) for number, line in lines if has_tabs and "\t" not in line]
    return rows, [f"{path}, line {number}: {line.strip()[:40]!r}" for number, line in messages]


def _find_topic_column(path: Path, rows: Sequence[Sequence[str]], options: Options) -> int:
    """Return which of the first two columns holds topics: the option's, the one with "all", or beside the measures.

    Raises
    ------
    InputError
        Both columns may hold topics.
    """
    if (column := options.own.get("topics")) is not None:
        return int(column) - 1
    for k in (1, 0):
        if any(row[k].lower() == ALL for row in rows):
            return k
    columns = [1 - k for k in (0, 1) if _has_measures(rows, k)]
    if len(columns) == 1:
        return columns[0]
    ways = [f"{spell('format', f'trec:topics={k + 1}')} (such as {rows[0][k]!r})" for k in (0, 1)]
    raise InputError(
        "its first or its second column may hold the topics", file=path, remedy=f"choose {' or '.join(ways)}"
    )


def _select_measures(sources: Sequence[Source], files: Sequence[PrintedScores]) -> tuple[list[str], list[str]]:
    """Return the measures that all files have, and a warning about others."""
    measures = [m for m in files[0].scores if all(m in file.scores for file in files)]
    others = list(dict.fromkeys(m for file in files for m in file.scores if m not in measures))
    if not measures:
        raise InputError(f"no measure is in all files; this one has {', '.join(others[:6])}", file=sources[0].path)
    examples = ", ".join(others[:SHOWN]) + (", ..." if len(others) > SHOWN else "")
    return measures, [f"measures that not all files have are left out: {examples}"] if others else []
