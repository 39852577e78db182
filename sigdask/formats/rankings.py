"""Runs and relevance judgements of TREC, read and ranked as trec_eval does.

Documents are ranked by score descending, ties by document id descending; the rank column is ignored.
Scores are compared in single precision, as trec_eval stores them.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.errors import InputError
from sigdask.formats.files import empty, open_text
from sigdask.formats.options import Options, Source, check_names
from sigdask.formats.topics import SHOWN, is_finite, settle, system_name

Ranking = tuple[str, ...]
Judgements = dict[str, dict[str, int]]

RUN = ("topic", "Q0", "document", "rank", "score", "tag")
QRELS = ("topic", "iteration", "document", "relevance")
HEAD = 20

_words = re.compile(r"[^ \t\r\n\v\f]+").findall


@dataclass(frozen=True, slots=True)
class Run:
    """One system's rankings.

    Attributes
    ----------
    tag : str
        What the run calls itself.
    topics : int
        How many topics it has, judged or not.
    rankings : mapping of str to tuple of str
        Documents of each judged topic, best first.
    """

    tag: str
    topics: int
    rankings: Mapping[str, Ranking]


def read_rankings(sources: Sequence[Source], gold: Path, options: Options) -> Counts:
    """Read runs; items are the topics of the judgements."""
    judgements = read_qrels(gold)
    topics = list(judgements)
    documents = {document: document for judged in judgements.values() for document in judged}
    names: list[str] = []
    outputs: list[list[Ranking]] = []
    for source in sources:
        run = read_run(source.path, judgements, documents)
        if not run.rankings:
            raise InputError(
                f"{source.path}: none of its {run.topics} topics is judged in {gold} (which has "
                f"{', '.join(topics[:SHOWN])}, ...); the two do not belong together"
            )
        names.append(system_name(source, run.tag))
        outputs.append([run.rankings.get(topic, ()) for topic in topics])
    check_names(sources, names)
    has = np.array([[bool(ranking) for ranking in column] for column in outputs]).T  # (n_topics, n_systems)
    settled = settle(has, topics, names, options, "zero")
    ones = np.ones((len(settled.kept), 1), np.int64)
    return Counts(
        systems=tuple(names),
        fields={"topics": ones, "items": ones},
        n_items=len(settled.kept),
        name=options.name,
        ids=tuple(topics[k] for k in settled.kept),
        present=settled.present,
        outputs=Outputs(
            tuple(_objects(column)[settled.kept] for column in outputs),
            _objects(list(judgements.values()))[settled.kept],
        ),
        suggested=("AP", "nDCG@10"),
        warnings=settled.warnings,
    )


def read_qrels(path: Path) -> Judgements:
    """Read judgements: the relevance of each judged document of each topic."""
    judgements: Judgements = {}
    for number, words in _rows(path):
        if len(words) != len(QRELS):
            raise _misshapen(path, number, words, QRELS)
        topic, _, document, text = words
        judged = judgements.setdefault(topic, {})
        if document in judged:
            raise InputError(f"{path}, line {number}: document {document!r} of topic {topic!r} is judged already")
        judged[document] = _relevance(path, number, text)
    if not judgements:
        raise empty(path)
    return judgements


def read_run(path: Path, judgements: Mapping[str, object], documents: dict[str, str]) -> Run:
    """Read one run.

    Parameters
    ----------
    path : Path
        The file.
    judgements : mapping
        Topics of it are kept.
    documents : dict of str to str
        One copy of each document id, shared by runs; added to.
    """
    found: dict[str, tuple[list[str], array[float]]] = {}
    tag = ""
    for number, words in _rows(path):
        if len(words) < len(RUN):
            raise _misshapen(path, number, words, RUN)
        topic, _, document, _, text, tag = words[:6]
        entry = found.get(topic)
        if entry is None:
            entry = found[topic] = ([], array("d"))
        entry[0].append(documents.setdefault(document, document))
        entry[1].append(_score(path, number, text))
    if not found:
        raise empty(path)
    rankings = {topic: _ranked(path, topic, *found[topic]) for topic in found if topic in judgements}
    return Run(tag, len(found), rankings)


def is_run(path: Path, *, q0: bool = False) -> bool:
    """Whether the first lines are those of a run; with `q0`, whether they also say so in the second column."""
    head = _head(path)
    return bool(head) and all(
        len(words) >= len(RUN) and is_finite(words[3]) and is_finite(words[4]) and (not q0 or words[1].upper() == "Q0")
        for words in head
    )


def is_qrels(path: Path) -> bool:
    """Whether the first lines are those of judgements."""
    head = _head(path)
    return bool(head) and all(len(words) == len(QRELS) and re.fullmatch(r"-?\d+(\.0*)?", words[3]) for words in head)


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the words of each line; empty lines and # comments are left out."""
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            # str.split would also split on Unicode's blanks, which ids may hold
            words = line.split() if line.isascii() else _words(line)
            if words and not words[0].startswith("#"):
                yield number, words


def _head(path: Path) -> list[list[str]]:
    return [words for _, words in islice(_rows(path), HEAD)]


def _ranked(path: Path, topic: str, documents: list[str], scores: array[float]) -> Ranking:
    if len(set(documents)) < len(documents):
        raise _duplicate(path, topic)
    with np.errstate(over="ignore"):
        single = np.array(scores).astype(np.float32).tolist()
    return tuple(document for _, document in sorted(zip(single, documents, strict=True), reverse=True))


def _duplicate(path: Path, topic: str) -> InputError:
    """Read the file again for the lines of a document that a topic has twice."""
    seen: dict[str, int] = {}
    for number, words in _rows(path):
        if words[0] == topic:
            if (document := words[2]) in seen:
                return InputError(
                    f"{path}, line {number}: document {document!r} of topic {topic!r} stands on line "
                    f"{seen[document]} already; a topic ranks each document once"
                )
            seen[document] = number
    return InputError(f"{path}: topic {topic!r} has a document twice")


def _score(path: Path, number: int, text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise InputError(f"{path}, line {number}: score {text!r} is not a finite number; columns are {' '.join(RUN)}")
    return score


def _relevance(path: Path, number: int, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        pass
    if re.fullmatch(r"-?\d+\.0*", text):
        return int(float(text))
    raise InputError(f"{path}, line {number}: relevance {text!r} is not an integer; columns are {' '.join(QRELS)}")


def _misshapen(path: Path, number: int, words: Sequence[str], expected: Sequence[str]) -> InputError:
    other = ""
    if expected is QRELS and len(words) >= len(RUN) and is_finite(words[4]):
        other = "; it looks like a run: give runs as systems, and judgements with --gold"
    if expected is RUN and len(words) == len(QRELS) and is_finite(words[3]):
        other = "; it looks like judgements: give them with --gold, and runs as systems"
    return InputError(
        f"{path}, line {number}: found {len(words)} field{'s' * (len(words) != 1)}, expected {len(expected)} "
        f"({' '.join(expected)}){other}"
    )


def _objects(values: Sequence[object]) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    """Return an object array of one object an item, not of their parts."""
    objects = np.empty(len(values), object)
    objects[:] = values
    return objects
