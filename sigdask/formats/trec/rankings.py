"""Runs and relevance judgements of TREC, read and ranked as in trec_eval.

Documents are ranked by descending score, and ties by descending document id, as in trec_eval. Scores are compared in
single precision, as trec_eval stores them. If the rank column gives an order with another average precision, as it does
if scores are coarse or are distances, the run is refused until the option `order` says which order holds.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import to_object_array
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options, Source, check_names
from sigdask.formats.trec import layouts
from sigdask.interface import spell
from sigdask.text import format_count, format_list

Ranking = tuple[str, ...]
Judgements = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class TrecRun:
    """The rankings of one system.

    Attributes
    ----------
    tag : str
        Name of the run, as the file states it.
    topics : int
        Number of its topics, judged or not.
    rankings : mapping of str to tuple of str
        Documents of each judged topic, best first.
    difference : float
        Difference between its average precision by scores and by ranks.
    orders : tuple of str
        What documents can be ordered by: "score", "rank".
    """

    tag: str
    topics: int
    rankings: Mapping[str, Ranking]
    difference: float = 0.0
    orders: tuple[str, ...] = ()


MAX_DIFFERENCE = 0.01
"""Difference in mean average precision between the orders by score and by rank up to which a run is ranked by score."""


def read_rankings(sources: Sequence[Source], gold: Path, options: Options) -> Counts:
    """Read runs; items are the topics of the judgements."""
    judgements = read_qrels(gold)
    order = options.own.get("order")
    orders = set[str]()
    topics = list(judgements)
    documents = {document: document for judged in judgements.values() for document in judged}
    names: list[str] = []
    outputs: list[list[Ranking]] = []
    warnings: list[str] = []
    unjudged: list[str] = []
    differences: dict[str, float] = {}
    for source in sources:
        run = read_run(source.path, judgements, documents, order)
        orders.update(run.orders)
        if not run.rankings:
            raise InputError(
                f"none of its {run.topics} topics is judged in {gold} (which has "
                f"{', '.join(topics[: layouts.SHOWN])}, ...). Give the judgements of the same topics with "
                f"{spell('gold')}",
                file=source.path,
            )
        if all(judgements[topic].keys().isdisjoint(ranking) for topic, ranking in run.rankings.items()):
            warnings.append(f"{source.path}: no document is judged in {gold}; are its ids those of the judgements?")
        differences[source.path.name] = run.difference
        if n_unjudged := run.topics - len(run.rankings):
            unjudged.append(f"{n_unjudged} of the {run.topics} topics of {source.path}")
        names.append(layouts.choose_system_name(source, run.tag))
        outputs.append([run.rankings.get(topic, ()) for topic in topics])
    if differing := [name for name, difference in differences.items() if round(difference, 4)]:
        warnings.append(
            ScopeNote(
                f"ranks of {format_list(differing, 3)} order documents otherwise than scores (AP differs by up to "
                f"{max(differences.values()):.4f}): scores count, and ties go by document id, as in trec_eval; "
                f"{spell('format', 'trec:order=rank')} takes the ranks"
            )
        )
    if order is not None and order not in orders:
        remedy = f"leave out the option order={order}"
        raise InputError(f"no run has a column of {order}s", file=sources[0].path, remedy=remedy)
    if unjudged:
        warnings.append(f"topics without judgements in {gold} are left out, as in trec_eval: {format_list(unjudged)}")
    check_names(sources, names)
    has = np.array([[bool(ranking) for ranking in column] for column in outputs]).T  # (n_topics, n_systems)
    present, gap_notes = layouts.apply_topic_policy(has, topics, names, options, "zero")
    ones = np.ones((len(topics), 1), np.int64)
    return Counts(
        systems=tuple(names),
        fields={"topics": ones, "items": ones},
        n_items=len(topics),
        ids=tuple(topics),
        present=present,
        outputs=Outputs(
            tuple(to_object_array(column) for column in outputs),
            to_object_array(list(judgements.values())),
        ),
        suggested=("AP", "nDCG@10"),
        warnings=(*warnings, *gap_notes),
    )


def read_qrels(path: Path) -> Judgements:
    """Read the relevance of each judged document of each topic."""
    judgements: Judgements = {}
    file = layouts.detect_qrels_layout(path)
    document_column, value_column = file.document, file.value
    for location, words in file.iter_rows():
        topic, document = words[0], words[document_column]
        judged = judgements.setdefault(topic, {})
        if document in judged:
            raise InputError(
                f"{layouts.format_location(path, location)}: document {document!r} of topic {topic!r} has a "
                "judgement already",
                remedy="remove one of them",
            )
        judged[document] = _parse_relevance(file, location, words[value_column])
    if not any(value > 0 for judged in judgements.values() for value in judged.values()):
        n = sum(map(len, judgements.values()))
        raise InputError(
            f"none of its {format_count(n, 'judgement')} is above 0, so that no document is relevant",
            file=path,
            remedy=f"check the judgements of {spell('gold')}",
        )
    return judgements


def read_run(
    path: Path, judgements: Mapping[str, Mapping[str, int]], documents: dict[str, str], order: str | None = None
) -> TrecRun:
    """Read one run.

    Parameters
    ----------
    path : Path
        The file.
    judgements : mapping
        Judgements by topic. Only topics with judgements are read.
    documents : dict of str to str
        One copy of each document id, shared by runs. New ids are added.
    order : {"score", "rank"}, optional
        What orders the documents. None is the score, unless ranks give another average precision.

    Raises
    ------
    InputError
        A row is damaged, a document occurs twice, or scores and ranks contradict each other.
    """
    file = layouts.detect_run_layout(path, order)
    columns = [file.columns.index(name) for name in ("score", "rank") if name in file.columns]
    entries: dict[str, tuple[list[str], list[array[float]]]] = {}
    words: Sequence[str] = ()
    n_columns = len(columns)
    for location, words in file.iter_rows():
        topic, document = words[0], words[file.document]
        if (entry := entries.get(topic)) is None:
            entry = entries[topic] = ([], [array("d") for _ in columns])
        entry[0].append(documents.setdefault(document, document))
        for k in range(n_columns):
            entry[1][k].append(_parse_number(file, location, words, columns[k]))
    orders: dict[str, dict[str, Ranking]] = {}
    for topic in filter(judgements.__contains__, entries):
        ranked, numbers = entries[topic]
        if len(set(ranked)) < len(ranked):
            raise _duplicate_error(file, topic)
        for k, values in zip(columns, numbers, strict=True):
            sort = _sort_by_score if file.columns[k] == "score" else _sort_by_rank
            orders.setdefault(file.columns[k], {})[topic] = sort(ranked, values)
    tag = words[layouts.RUN.index("tag")] if file.columns == layouts.RUN else ""
    rankings = orders.get(order or "score") or next(iter(orders.values()), {})
    if without := [topic for topic, ranking in rankings.items() if not ranking]:
        remedy = f"choose {spell('format', 'trec:order=score')}"
        raise InputError(f"ranks of topic {without[0]!r} are equal, or no numbers", file=path, remedy=remedy)
    difference = 0.0 if order else _compare_orders(path, orders, judgements)
    return TrecRun(tag, len(entries), rankings, difference, tuple(file.columns[k] for k in columns))


def _sort_by_score(documents: Sequence[str], scores: array[float]) -> Ranking:
    with np.errstate(over="ignore"):
        single = np.array(scores).astype(np.float32).tolist()
    return tuple(document for _, document in sorted(zip(single, documents, strict=True), reverse=True))


def _sort_by_rank(documents: Sequence[str], ranks: array[float]) -> Ranking:
    """Return documents by rising rank; none if ranks are equal or missing, which give no order."""
    if len({*ranks}) < len(ranks) or math.isnan(sum(ranks)):
        return ()
    return tuple(document for _, document in sorted(zip(ranks, documents, strict=True)))


def _compare_orders(
    path: Path, orders: Mapping[str, Mapping[str, Ranking]], judgements: Mapping[str, Mapping[str, int]]
) -> float:
    """Return how far average precision by ranks is from that by scores; raise an error if it is far."""
    if len(orders) < 2 or not all(orders["rank"].values()):
        return 0.0
    by_score, by_rank = (
        math.fsum(_compute_average_precision(ranking, judgements[topic]) for topic, ranking in rankings.items())
        / len(rankings)
        for rankings in (orders["score"], orders["rank"])
    )
    if abs(by_score - by_rank) > MAX_DIFFERENCE:
        ways = (
            f"by score, and ties by document id, AP is {by_score:.4f} ({spell('format', 'trec:order=score')}, as in "
            f"trec_eval); by rank it is {by_rank:.4f} ({spell('format', 'trec:order=rank')})"
        )
        raise InputError("scores and ranks order its documents differently", file=path, remedy=f"choose one: {ways}")
    return abs(by_score - by_rank)


def _compute_average_precision(ranking: Ranking, judged: Mapping[str, int]) -> float:
    n_relevant = sum(value > 0 for value in judged.values())
    places = [place for place, document in enumerate(ranking, start=1) if judged.get(document, 0) > 0]
    return math.fsum(k / place for k, place in enumerate(places, start=1)) / max(n_relevant, 1)


def _duplicate_error(file: layouts.TrecFile, topic: str) -> InputError:
    """Read the file again to find a document that a topic has twice, and return the error."""
    locations: dict[str, layouts.RowLocation] = {}
    for location, words in file.iter_rows():
        if words[0] == topic:
            if (document := words[file.document]) in locations:
                has_line = isinstance(location, int)
                earlier = f"is on line {locations[document]} already" if has_line else "stands twice"
                where = layouts.format_location(file.path, location)
                problem = f"document {document!r} of topic {topic!r} {earlier}"
                return InputError(f"{where}: {problem}; a topic ranks each document once")
            locations[document] = location
    return InputError(f"topic {topic!r} has a document twice", file=file.path)


def _parse_number(file: layouts.TrecFile, location: layouts.RowLocation, words: Sequence[str], column: int) -> float:
    """Return a score or rank; ranks beside scores may be missing (nan)."""
    try:
        number = float(words[column])
    except ValueError:
        number = math.nan
    kind = file.columns[column]
    if not math.isfinite(number) and (kind == "score" or file.is_by_rank):
        raise InputError(
            f"{layouts.format_location(file.path, location)}: {kind} {words[column]!r} is not a finite number; columns "
            f"are {' '.join(file.columns)}"
        )
    return number


def _parse_relevance(file: layouts.TrecFile, location: layouts.RowLocation, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        pass
    if re.fullmatch(r"-?\d+\.0*", text):
        return int(float(text))
    raise InputError(
        f"{layouts.format_location(file.path, location)}: relevance {text!r} is not an integer; columns are "
        f"{' '.join(file.columns)}"
    )
