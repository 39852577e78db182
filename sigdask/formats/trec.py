"""Information retrieval: runs and relevance judgements, or scores per topic printed by tools.

Runs and relevance judgements of TREC, read and ranked as in trec_eval.

Runs have the six columns of TREC, or topic, document and rank, as MS MARCO's, if the option `order` is "rank".
Judgements have the four columns of TREC, or BEIR's topic, document and relevance.

Documents are ranked by descending score, and ties by descending document id, as in trec_eval. Scores are compared in
single precision, as trec_eval stores them. If the rank column gives an order with another average precision, as it does
if scores are coarse or are distances, the run is refused until the option `order` says which order holds.

Information retrieval, whose items are topics: runs and relevance judgements, or scores that tools printed.

trec_eval -q prints measure, topic and value, ir_measures and the script of CLEF's TAR task topic, measure and value.
Lines of "all" (ALL) are means and no topics.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.checks import check_common_items, check_complete
from sigdask.counts.fields import to_object_array
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import describe_missing
from sigdask.formats.reading.files import check_filled, enumerate_lines
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.replicates import build_score_counts
from sigdask.formats.reading.signatures import MEASURE, is_printed, is_run, split_scores
from sigdask.interface import spell
from sigdask.text import format_count, format_list

Ranking = tuple[str, ...]
Judgements = dict[str, dict[str, int]]

RUN_WIDTH = 6

HEADER_NAMES = frozenset({"score", "relevance", "rel", "rank"})
"""Names of the last column in the first line of judgements, or of a run of three columns."""

MAX_DIFFERENCE = 0.01
"""Difference in mean average precision between the orders by score and by rank up to which a run is ranked by score."""


class TrecRun(NamedTuple):
    """A run's tag, the number of its topics, judged or not, and the documents of each judged topic, best first."""

    tag: str
    n_topics: int
    rankings: Mapping[str, Ranking]


def read_rankings(sources: Sequence[Source], gold: Path, options: Options) -> Counts:
    """Read runs; items are the topics of the judgements. A topic that a run lacks counts 0 by default."""
    judgements = read_qrels(gold)
    topics = list(judgements)
    runs = [read_run(source, gold, judgements, options.own.get("order")) for source in sources]
    tags = [choose_system_name(source, run.tag) for source, run in zip(sources, runs, strict=True)]
    names = list_system_names(sources, tags)
    has = np.array([[topic in run.rankings for run in runs] for topic in topics])
    if not options.few_in_common:
        check_common_items(has, names, None if options.missing == "zero" else options.missing, topics)
    if options.missing == "error":
        check_complete(has, names, topics, "scores")
    n_unjudged = max(run.n_topics - len(run.rankings) for run in runs)
    note = f"topics without judgements in {gold} are left out, as in trec_eval: up to {n_unjudged:,} of a run"
    ones = np.ones((len(topics), 1), np.int64)
    return Counts(
        systems=tuple(names),
        fields={"topics": ones, "items": ones},
        n_items=len(topics),
        ids=tuple(topics),
        present=has if options.missing == "pairwise" and not has.all() else None,
        outputs=Outputs(
            tuple(to_object_array([run.rankings.get(topic, ()) for topic in topics]) for run in runs),
            to_object_array(list(judgements.values())),
        ),
        suggested=("AP", "nDCG@10"),
        warnings=(*([note] if n_unjudged else []), *describe_missing(has, names, options, "zero")),
    )


def choose_system_name(source: Source, tag: str) -> str:
    """Return the given name, the tag if the file is called ANYTHING.TAG as at NIST, or the file's name.

    Examples
    --------
    >>> from pathlib import Path
    >>> (choose_system_name(Source(Path("runs/input.MU03rob01.gz")), "MU03rob01"),
    ...  choose_system_name(Source(Path("bm25.run")), "x"))
    ('MU03rob01', 'bm25')
    """
    if source.name is None and tag and source.path.name.removesuffix(".gz").endswith(f".{tag}"):
        return tag
    return source.system


def _iter_rows(path: Path, widths: Sequence[int], columns: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and words of each row, without a header; all rows have as many columns as the first one.

    Raises
    ------
    InputError
        A row has another number of columns, or there is no row.
    """
    width = 0
    for number, line in enumerate_lines(path):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        n_columns = min(len(words), RUN_WIDTH)  # trec_eval skips what follows the tag of a run
        if n_columns != width:
            if not width and n_columns < RUN_WIDTH and words[-1].lower() in HEADER_NAMES:
                continue
            if width or n_columns not in widths:
                expected = f"{columns}; give runs as systems, and judgements with {spell('gold')}"
                raise InputError(file=path, line=number, found=f"{len(words)} columns", expected=expected)
            width = n_columns
        yield number, words
    check_filled(path, width)


def read_qrels(path: Path) -> Judgements:
    """Read the relevance of each judged document of each topic."""
    judgements: Judgements = {}
    for number, words in _iter_rows(path, (3, 4), "topic iteration document relevance (or topic document relevance)"):
        topic, document, text = words[0], words[-2], words[-1]
        judged = judgements.setdefault(topic, {})
        if document in judged:
            raise InputError(f"document {document!r} of topic {topic!r} is judged twice", file=path, line=number)
        if not (relevance := parse_number(text)).is_integer():
            raise InputError(file=path, line=number, found=f"relevance {text!r}", expected="a whole number")
        judged[document] = int(relevance)
    if not any(value > 0 for judged in judgements.values() for value in judged.values()):
        n = format_count(sum(map(len, judgements.values())), "judgement")
        problem = f"none of its {n} is above 0, so that no document is relevant"
        raise InputError(problem, file=path, remedy=f"check the judgements of {spell('gold')}")
    return judgements


def read_run(source: Source, gold: Path, judgements: Judgements, order: str | None = None) -> TrecRun:
    """Read one run.

    Parameters
    ----------
    source : Source
        The file, or its parts.
    gold : Path
        The file of the judgements.
    judgements : mapping
        Judgements by topic. Only topics with judgements are kept.
    order : {"score", "rank"}, optional
        What orders the documents. None is the score, unless ranks give another average precision.

    Raises
    ------
    InputError
        A row is damaged, a document occurs twice, none is judged, or scores and ranks contradict each other.
    """
    entries: dict[str, tuple[dict[str, None], array[float], array[float]]]
    entries = defaultdict(lambda: ({}, array("d"), array("d")))
    words: list[str] = []
    parts = source.parts or (source.path,)
    columns = f"topic Q0 document rank score tag (or topic document rank, with {spell('format', 'trec:order=rank')})"
    widths = (3, RUN_WIDTH) if order == "rank" else (RUN_WIDTH,)
    for path, (number, row) in ((part, line) for part in parts for line in _iter_rows(part, widths, columns)):
        words = row if len(row) > 3 else [row[0], "", row[1], row[2], row[2], ""]
        documents, scores, ranks = entries[words[0]]
        if math.isnan(score := parse_number(words[4])):
            raise InputError(file=path, line=number, found=f"{words[4]!r}", expected="a number")
        if (document := sys.intern(words[2])) in documents:
            problem = f"topic {words[0]!r} has document {document!r} already; a topic ranks each document once"
            raise InputError(problem, file=path, line=number)
        documents[document] = None
        scores.append(score)
        ranks.append(parse_number(words[3]))
    judged = {topic: entry for topic, entry in entries.items() if topic in judgements}
    if all(judgements[topic].keys().isdisjoint(documents) for topic, (documents, _, _) in judged.items()):
        raise InputError(
            f"no document of its {len(entries)} topics is judged in {gold} (topics {format_list([*judgements], 3)})",
            file=source.path,
            remedy=f"give the judgements of the same topics and documents with {spell('gold')}",
        )
    are_ranked = all(len({*ranks}) == len(ranks) and not math.isnan(sum(ranks)) for _, _, ranks in judged.values())
    if order == "rank" and not are_ranked:
        remedy = f"choose {spell('format', 'trec:order=score')}"
        raise InputError("ranks of a topic are equal, or no numbers", file=source.path, remedy=remedy)
    by_score, by_rank = (
        {topic: sort(*entry) for topic, entry in judged.items()} for sort in (_sort_by_score, _sort_by_rank)
    )
    if order is None and are_ranked and by_rank != by_score:
        means = [_compute_mean_precision(rankings, judgements) for rankings in (by_score, by_rank)]
        if abs(means[0] - means[1]) > MAX_DIFFERENCE:
            raise InputError(
                f"scores and ranks order its documents differently: by score, AP is {means[0]:.4f}, and by rank "
                f"{means[1]:.4f}",
                file=source.path,
                remedy=f"choose {spell('format', 'trec:order=score')}, as in trec_eval (ties go by document id), or "
                f"{spell('format', 'trec:order=rank')}",
            )
    return TrecRun(words[5], len(entries), by_rank if order == "rank" else by_score)


def _sort_by_score(documents: Iterable[str], scores: array[float], _: array[float]) -> Ranking:
    """Return documents by falling score, and those of equal scores by falling id."""
    with np.errstate(over="ignore"):
        single = dict(zip(documents, np.array(scores).astype(np.float32).tolist(), strict=True))
    by_id = sorted(single, reverse=True)
    return tuple(sorted(by_id, key=single.__getitem__, reverse=True))  # keeps the order of equal ones


def _sort_by_rank(documents: Iterable[str], _: array[float], ranks: array[float]) -> Ranking:
    """Return documents by rising rank."""
    return tuple(sorted(documents, key=dict(zip(documents, ranks, strict=True)).__getitem__))


def _compute_mean_precision(rankings: Mapping[str, Ranking], judgements: Mapping[str, Mapping[str, int]]) -> float:
    """Return the mean over topics of average precision."""
    precisions = []
    for topic, ranking in rankings.items():
        relevant = {document for document, value in judgements[topic].items() if value > 0}
        places = [place for place, document in enumerate(ranking, start=1) if document in relevant]
        precisions.append(math.fsum(k / place for k, place in enumerate(places, start=1)) / max(len(relevant), 1))
    return math.fsum(precisions) / max(len(precisions), 1)


def parse_number(text: str) -> float:
    """Return a finite number, or NaN for other texts."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) and "_" not in text else math.nan  # Python reads 1_0 as 10


ALL = "all"
SUGGESTED = ("map", "ndcg_cut_10", "ap")

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
    rows, others = split_scores(enumerate_lines(path))
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


def _find_measures(path: Path, cells: Sequence[str], options: Options) -> int:
    """Return which of the first two columns holds measures: by the option, or by the measure in the first line."""
    if (column := options.own.get("topics")) is not None:
        return 2 - int(column)
    columns = [k for k in (0, 1) if MEASURE.fullmatch(cells[k])]
    if len(columns) == 1:
        return columns[0]
    ways = " or ".join(f"{spell('format', f'trec:topics={k + 1}')} (such as {cells[k]!r})" for k in (0, 1))
    raise InputError("its first or its second column may hold the topics", file=path, remedy=f"choose {ways}")
