"""Where files of runs and judgements keep topic, document and score.

Runs: six columns of TREC (the tag may lack), MS MARCO's topic document rank, and topic document rank
score. Judgements: four columns of TREC, or BEIR's topic document relevance. Both may be JSON,
{topic: {document: score}}, and those with a header have it passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.files import empty, open_text
from sigdask.formats.reading.json.records import head, is_json_lines
from sigdask.formats.trec.topics import is_finite

RUN = ("topic", "Q0", "document", "rank", "score", "tag")
QRELS = ("topic", "iteration", "document", "relevance")
RANKED = ("topic", "document", "rank")
SCORED = ("topic", "document", "score")
RUNS = {len(RUN): RUN, 5: RUN[:5], 4: (*RANKED, "score"), 3: RANKED}
JUDGED = {len(QRELS): QRELS, 3: ("topic", "document", "relevance")}
"""The columns of a file of so many."""
HEAD = 20
BEFORE = 10_000
"""Lines within which the first rows stand, below comments."""

JSON = re.compile(r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*-?\d')

Place = int | str
"""The line of a row, or the key it stands under."""
Rows = Iterator[tuple[Place, Sequence[str]]]

_words = re.compile(r"[^ \t\r\n\v\f]+").findall


@dataclass(frozen=True, slots=True)
class TrecFile:
    """A file of runs or judgements, taken apart.

    Attributes
    ----------
    path : Path
        Where it lies.
    columns : tuple of str
        What its columns are.
    """

    path: Path
    columns: tuple[str, ...]

    @property
    def document(self) -> int:
        """The column of document ids."""
        return self.columns.index("document")

    @property
    def value(self) -> int:
        """The column that says how good a document is: score, relevance or rank."""
        return max(self.columns.index(name) for name in ("score", "relevance", "rank") if name in self.columns)

    @property
    def by_rank(self) -> bool:
        """Whether documents go by rank, since there is no score."""
        return self.columns == RANKED

    def rows(self) -> Rows:
        """Yield the words of each row, as many as there are columns at least.

        Raises
        ------
        InputError
            For a row of fewer columns; of more where these are not those of a TREC run.
        """
        width, exact = len(self.columns), self.columns != RUN
        for place, words in _body(self.path):
            if len(words) < width or (exact and len(words) > width):
                raise misshapen(self.path, place, words, self.columns)
            yield place, words


def run_file(path: Path) -> TrecFile:
    """Return how a run is laid out, by its first lines."""
    if is_json(path):
        return TrecFile(path, SCORED)
    rows = _head(path)
    place, first = rows[0]
    columns = RUNS[min(len(first), len(RUN))] if len(first) >= 3 else RUN
    several = [words for _, words in rows if len(words) == len(first)]
    if columns == RUNS[4] and (len({words[1] for words in several}) == 1 or not is_finite(first[2])):
        raise misshapen(path, place, first, RUN)
    if columns == RANKED and not all(words[2].isdecimal() for words in several):
        columns = SCORED
    return TrecFile(path, columns)


def judgements_file(path: Path) -> TrecFile:
    """Return how judgements are laid out, by their first line."""
    if is_json(path):
        return TrecFile(path, JUDGED[3])
    place, first = _head(path)[0]
    if len(first) not in JUDGED:
        raise misshapen(path, place, first, QRELS)
    return TrecFile(path, JUDGED[len(first)])


def is_run(path: Path, *, q0: bool = False) -> bool:
    """Whether the first lines are those of a run; with `q0`, whether they also say so in the second column."""
    if is_json(path):
        return not q0
    try:
        file = run_file(path)
    except InputError:
        return False
    rows = [words for _, words in _head(path)]
    if any(len(words) < len(file.columns) or not is_finite(words[file.value]) for words in rows):
        return False
    if file.columns == RUN:
        return all(is_finite(words[3]) and (not q0 or words[1].upper() == "Q0") for words in rows)
    even = all(len(words) == len(file.columns) for words in rows)
    return not q0 and even and _in_topics(rows) and (not file.by_rank or _ascends(rows))


def is_ranked(path: Path) -> bool:
    """Whether the first lines are topic, document and rank, which scores of topics resemble."""
    return is_run(path) and run_file(path).by_rank


def is_qrels(path: Path) -> bool:
    """Whether the first lines are those of judgements."""
    if is_json(path):
        return True
    try:
        file = judgements_file(path)
        rows = [words for _, words in _head(path)]
    except InputError:
        return False
    return all(len(words) == len(file.columns) and re.fullmatch(r"-?\d+(\.0*)?", words[-1]) for words in rows)


def is_json(path: Path) -> bool:
    """Whether a file begins like JSON of topic, document and number."""
    return JSON.match(head(path)) is not None and not is_json_lines(path)


def is_judged(path: Path, judgements: Mapping[str, Container[str]]) -> bool:
    """Whether a document of the first lines is judged: then they are a run, whatever they resemble."""
    return is_run(path) and any(words[1] in judgements.get(words[0], ()) for _, words in _head(path))


def at(path: Path, place: Place) -> str:
    """Name a place of a file."""
    return f"{path}, line {place}" if isinstance(place, int) else f"{path}, {place}"


def misshapen(path: Path, place: Place, words: Sequence[str], expected: Sequence[str]) -> InputError:
    """Return the error for a row of another number of columns."""
    other = ""
    if "relevance" in expected and len(words) >= len(RUN) and is_finite(words[4]):
        other = "; it looks like a run: give runs as systems, and judgements with --gold"
    if "relevance" not in expected and len(words) == len(QRELS) and is_finite(words[3]):
        other = "; it looks like judgements: give them with --gold, and runs as systems"
    return InputError(
        f"{at(path, place)}: found {len(words)} field{'s' * (len(words) != 1)}, expected {len(expected)} "
        f"({' '.join(expected)}){other}"
    )


def _in_topics(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows stand by topics of several documents, as in no table of items."""
    topics = [words[0] for words in rows]
    blocks = 1 + sum(a != b for a, b in pairwise(topics))
    return blocks == len({*topics}) < len(rows)


def _ascends(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the last word counts up within each topic."""
    return all(a[0] != b[0] or int(a[-1]) < int(b[-1]) for a, b in pairwise(rows))


def _head(path: Path) -> list[tuple[Place, Sequence[str]]]:
    """Return the first rows, without a header."""
    rows = list(islice(_body(path, BEFORE), HEAD))
    if not rows:
        raise empty(path)
    return rows


def _body(path: Path, n_lines: int | None = None) -> Rows:
    """Yield the rows below the header: a first row without any number above one that ends in a number."""
    rows = _of_json(path) if is_json(path) else _of_lines(path, n_lines)
    first = list(islice(rows, 2))
    if len(first) == 2:
        (_, header), (_, row) = first
        if len(header) == len(row) <= len(QRELS) and is_finite(row[-1]) and not any(map(is_finite, header)):
            del first[0]
    yield from first
    yield from rows


def _of_lines(path: Path, n_lines: int | None) -> Rows:
    """Yield the words of each line; empty lines and # comments are left out."""
    with open_text(path) as text:
        for number, line in enumerate(islice(text, n_lines), start=1):
            # str.split would also split on Unicode's blanks, which ids may hold
            words = line.split() if line.isascii() else _words(line)
            if words and not words[0].startswith("#"):
                yield number, words


def _of_json(path: Path) -> Rows:
    """Yield topic, document and number of {topic: {document: number}}."""
    with open_text(path) as text:
        try:
            topics: Any = json.load(text, object_pairs_hook=tuple)  # pairs: a document given twice is seen
        except ValueError as error:
            raise InputError(f"{path}: invalid JSON ({error})") from None
    for topic, documents in topics:
        if not isinstance(documents, tuple):
            raise InputError(f"{path}, topic {topic!r}: found {documents!r:.40}, expected an object of documents")
        for document, value in documents:
            yield f"topic {topic!r}", (topic, document, str(value))
