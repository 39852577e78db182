"""Runs and relevance judgements of TREC, read and ranked as in trec_eval.

Documents are ranked by descending score, and ties by descending document id. The rank column is ignored if there are
scores. Scores are compared in single precision, as trec_eval stores them.
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
from sigdask.text import format_list

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
    doubt : str
        What may be wrong with its scores. Empty if nothing is.
    """

    tag: str
    topics: int
    rankings: Mapping[str, Ranking]
    doubt: str = ""


ORDER_DOUBTS = {
    frozenset({1.0}): "scores rise from the first document of each topic to the last, but the highest score ranks "
    "first, as in trec_eval. Are they distances? Then negate them",
    frozenset({0.0}): "all documents of a topic have the same score, so that their ids decide their ranks, as in "
    "trec_eval. Write scores that fall from rank to rank",
}
"""Doubts about a run by the signs of the differences between scores in successive lines."""


def read_rankings(sources: Sequence[Source], gold: Path, options: Options) -> Counts:
    """Read runs; items are the topics of the judgements."""
    judgements = read_qrels(gold)
    topics = list(judgements)
    documents = {document: document for judged in judgements.values() for document in judged}
    names: list[str] = []
    outputs: list[list[Ranking]] = []
    warnings: list[str] = []
    unjudged: list[str] = []
    for source in sources:
        run = read_run(source.path, judgements, documents)
        if not run.rankings:
            raise InputError(
                f"none of its {run.topics} topics is judged in {gold} (which has "
                f"{', '.join(topics[: layouts.SHOWN])}, ...). Give the judgements of the same topics with "
                f"{spell('gold')}",
                file=source.path,
            )
        if all(judgements[topic].keys().isdisjoint(ranking) for topic, ranking in run.rankings.items()):
            warnings.append(f"{source.path}: no document is judged in {gold}; are its ids those of the judgements?")
        warnings += [ScopeNote(f"{source.path}: {run.doubt}")] if run.doubt else []
        if n_unjudged := run.topics - len(run.rankings):
            unjudged.append(f"{n_unjudged} of the {run.topics} topics of {source.path}")
        names.append(layouts.choose_system_name(source, run.tag))
        outputs.append([run.rankings.get(topic, ()) for topic in topics])
    if unjudged:
        warnings.append(f"topics without judgements in {gold} are left out, as in trec_eval: {format_list(unjudged)}")
    check_names(sources, names)
    has = np.array([[bool(ranking) for ranking in column] for column in outputs]).T  # (n_topics, n_systems)
    settled = layouts.apply_topic_policy(has, topics, names, options, "zero")
    ones = np.ones((len(settled.kept), 1), np.int64)
    return Counts(
        systems=tuple(names),
        fields={"topics": ones, "items": ones},
        n_items=len(settled.kept),
        ids=tuple(topics[k] for k in settled.kept),
        present=settled.present,
        outputs=Outputs(
            tuple(to_object_array(column)[settled.kept] for column in outputs),
            to_object_array(list(judgements.values()))[settled.kept],
        ),
        suggested=("AP", "nDCG@10"),
        warnings=(*warnings, *settled.warnings),
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
    return judgements


def read_run(path: Path, judgements: Mapping[str, object], documents: dict[str, str]) -> TrecRun:
    """Read one run.

    Parameters
    ----------
    path : Path
        The file.
    judgements : mapping
        Judgements by topic. Only topics with judgements are read.
    documents : dict of str to str
        One copy of each document id, shared by runs. New ids are added.
    """
    entries: dict[str, tuple[list[str], array[float]]] = {}
    file = layouts.detect_run_layout(path)
    document_column, value_column = file.document, file.value
    words: Sequence[str] = ()
    for location, words in file.iter_rows():
        topic, document = words[0], words[document_column]
        entry = entries.get(topic)
        if entry is None:
            entry = entries[topic] = ([], array("d"))
        entry[0].append(documents.setdefault(document, document))
        entry[1].append(_parse_score(file, location, words[value_column]))
    sign = -1 if file.is_by_rank else 1
    rankings = {}
    steps: set[float] = set()
    for topic, (ranked, scores) in entries.items():
        if topic not in judgements:
            continue
        if len(set(ranked)) < len(ranked):
            raise _duplicate_error(file, topic)
        with np.errstate(over="ignore"):
            single = (sign * np.array(scores)).astype(np.float32).tolist()
        steps |= {*np.sign(np.diff(single)).tolist()} if len(steps) < 3 else set()
        rankings[topic] = tuple(document for _, document in sorted(zip(single, ranked, strict=True), reverse=True))
    doubt = ORDER_DOUBTS.get(frozenset(steps), "") if file.columns == layouts.RUN else ""
    tag = words[layouts.RUN.index("tag")] if file.columns == layouts.RUN else ""
    return TrecRun(tag, len(entries), rankings, doubt)


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


def _parse_score(file: layouts.TrecFile, location: layouts.RowLocation, text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        kind = "rank" if file.is_by_rank else "score"
        raise InputError(
            f"{layouts.format_location(file.path, location)}: {kind} {text!r} is not a finite number; columns are "
            f"{' '.join(file.columns)}"
        )
    return score


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
