"""Column layouts of runs and judgements, the names of systems, and the treatment of missing topics.

Runs have the six columns of TREC (the tag may be missing), MS MARCO's topic, document and rank, or topic, document,
rank and score. Judgements have the four columns of TREC, or BEIR's topic, document and relevance. Both may be JSON,
{topic: {document: score}}, or CSV. A header is skipped. Names and missing topics are treated alike for runs and for
printed scores.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.checks import check_common_items
from sigdask.errors import InputError, MissingItemsError
from sigdask.formats.reading.files import check_filled, open_text
from sigdask.formats.reading.json_records import is_json_lines, read_head
from sigdask.formats.reading.options import Options, Source
from sigdask.interface import spell
from sigdask.options import Missing

SHOWN = 3


def is_finite(text: str) -> bool:
    """Return whether a word is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def choose_system_name(source: Source, tag: str | None) -> str:
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


@dataclass(frozen=True, slots=True)
class SettledTopics:
    """The topics left after the policy for missing topics is applied.

    Attributes
    ----------
    kept : int array
        Positions of the topics that stay.
    present : bool array, shape (n_kept, n_systems), or None
        As in `Counts`.
    warnings : tuple of str
        Warnings about topics.
    """

    kept: NDArray[np.intp]
    present: NDArray[np.bool_] | None
    warnings: tuple[str, ...] = ()


def apply_topic_policy(
    has: NDArray[np.bool_], topics: Sequence[str], systems: Sequence[str], options: Options, default: str
) -> SettledTopics:
    """Apply the policy for missing topics: the format's own option, `--missing`, or the default.

    Parameters
    ----------
    has : bool array, shape (n_topics, n_systems)
        Whether each system has each topic.
    topics, systems : sequence of str
        Names of the topics and of the systems.
    default : str
        The policy if none was requested.
    """
    requested = options.own.get("missing") or options.missing
    policy = requested or default
    all_topics = np.arange(len(topics))
    if has.all():
        return SettledTopics(all_topics, None)
    handling: Missing | None = "pairwise" if policy == "pairwise" else "error" if policy == "error" else None
    if not options.few_in_common:
        check_common_items(has, systems, handling, topics)
    lacking = np.flatnonzero(~has.all(axis=0))
    missing = [topics[int(k)] for k in np.flatnonzero(~has[:, lacking[0]])]
    examples = ", ".join(missing[:SHOWN]) + (", ..." if len(missing) > SHOWN else "")
    more = f", and {len(lacking) - 1} more systems lack topics" if len(lacking) > 1 else ""
    system = systems[int(lacking[0])]
    gap = f"system {system!r} has no topic {examples} ({len(missing)} of {len(topics)} missing){more}"
    if policy == "error":
        raise MissingItemsError(
            f"{gap}; choose {spell('missing', 'zero')} (it counts 0, as under trec_eval -c), "
            f"{spell('missing', 'pairwise')} (each pair on the topics both have) or "
            f"{spell('format', 'trec:missing=intersect')} (the topics all have)"
        )
    if policy == "zero":
        explanation = "a topic that a run lacks counts 0, as under trec_eval -c"
        hint = (
            f" ({spell('missing', 'pairwise')} or error, or {spell('format', 'trec:missing=intersect')}, do otherwise)"
        )
        return SettledTopics(all_topics, None, (f"{gap}; {explanation}{'' if requested else hint}",))
    if policy == "pairwise":
        return SettledTopics(all_topics, has, (f"{gap}; each pair is compared on the topics both have",))
    kept = np.flatnonzero(has.all(axis=1))
    if not len(kept):
        raise MissingItemsError(
            f"{gap}; no topic has scores of all systems; choose {spell('missing', 'zero')} or pairwise"
        )
    return SettledTopics(kept, None, (f"{gap}; {len(kept)} of {len(topics)} topics, which all have, are kept",))


RUN = ("topic", "Q0", "document", "rank", "score", "tag")
QRELS = ("topic", "iteration", "document", "relevance")
RANKED = ("topic", "document", "rank")
SCORED = ("topic", "document", "score")
RUNS_BY_WIDTH = {len(RUN): RUN, 5: RUN[:5], 4: (*RANKED, "score"), 3: RANKED}
QRELS_BY_WIDTH = {len(QRELS): QRELS, 3: ("topic", "document", "relevance")}
"""Columns of relevance judgements by their number."""
N_HEAD_ROWS = 20
MAX_HEAD_LINES = 10_000
"""Number of first lines within which rows must begin, after comments."""

JSON_START = re.compile(r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*-?\d')

RowLocation = int | str
"""Line of a row, or key of a record."""
Rows = Iterator[tuple[RowLocation, Sequence[str]]]

_split_words = re.compile(r"[^ \t\r\n\v\f]+").findall

CSV_START = re.compile(r"[^\s,]+(,[^\s,]+){2,3}\r?(\n|$)")
"""Pattern of a first line of three or four columns that commas separate."""


@dataclass(frozen=True, slots=True)
class TrecFile:
    """A file of runs or judgements with its column layout.

    Attributes
    ----------
    path : Path
        Path of the file.
    columns : tuple of str
        Roles of its columns.
    """

    path: Path
    columns: tuple[str, ...]

    @property
    def document(self) -> int:
        """Index of the document-id column."""
        return self.columns.index("document")

    @property
    def value(self) -> int:
        """Index of the column with the score, relevance or rank of a document."""
        return max(self.columns.index(name) for name in ("score", "relevance", "rank") if name in self.columns)

    @property
    def is_by_rank(self) -> bool:
        """Whether documents are ordered by rank because there are no scores."""
        return self.columns == RANKED

    def iter_rows(self) -> Rows:
        """Yield the words of each row, which has at least as many words as there are columns.

        Raises
        ------
        InputError
            A row has too few columns, or more than those of a TREC run.
        """
        width, is_exact = len(self.columns), self.columns != RUN
        for location, words in _iter_body(self.path):
            if len(words) < width or (is_exact and len(words) > width):
                raise row_width_error(self.path, location, words, self.columns)
            yield location, words


def detect_run_layout(path: Path) -> TrecFile:
    """Return the layout of a run, detected from its first lines."""
    if is_json(path):
        return TrecFile(path, SCORED)
    rows = _read_head(path)
    location, first_words = rows[0]
    columns = RUNS_BY_WIDTH[min(len(first_words), len(RUN))] if len(first_words) >= 3 else RUN
    same_width = [words for _, words in rows if len(words) == len(first_words)]
    if columns == RUNS_BY_WIDTH[4] and (len({words[1] for words in same_width}) == 1 or not is_finite(first_words[2])):
        raise row_width_error(path, location, first_words, RUN)
    if columns == RANKED and _are_scores(path, same_width):
        columns = SCORED
    return TrecFile(path, columns)


def _are_scores(path: Path, rows: Sequence[Sequence[str]]) -> bool:
    """Return whether third columns are scores and not ranks: real, named so, or descending in each topic."""
    if not all(words[2].isdecimal() for words in rows) or "score" in read_head(path).partition("\n")[0].lower():
        return True
    steps = {int(a[2]) - int(b[2]) for a, b in pairwise(rows) if a[0] == b[0]}
    return bool(steps - {0}) and min(steps) >= 0


def detect_qrels_layout(path: Path) -> TrecFile:
    """Return the layout of judgements, detected from their first line."""
    if is_json(path):
        return TrecFile(path, QRELS_BY_WIDTH[3])
    location, first_words = _read_head(path)[0]
    if len(first_words) not in QRELS_BY_WIDTH:
        raise row_width_error(path, location, first_words, QRELS)
    return TrecFile(path, QRELS_BY_WIDTH[len(first_words)])


def is_run(path: Path, *, q0: bool = False) -> bool:
    """Return whether a file begins like a run; with `q0`, only if it has Q0 or rows in blocks of topics."""
    if (json_ := is_json(path)) or CSV_START.match(read_head(path)):  # CSV may be any table
        return json_ and not q0
    try:
        file = detect_run_layout(path)
    except InputError:
        return False
    rows = [words for _, words in _read_head(path)]
    if any(len(words) < len(file.columns) or not is_finite(words[file.value]) for words in rows):
        return False
    if file.columns == RUN:
        return all(is_finite(words[3]) and (not q0 or words[1].upper() == "Q0") for words in rows)
    if q0 or any(len(words) != len(file.columns) for words in rows):
        return False
    # rows are in blocks of topics with several documents, unlike tables of items, and ranks rise in each
    topics = [words[0] for words in rows]
    n_blocks = 1 + sum(a != b for a, b in pairwise(topics))
    is_ascending = all(a[0] != b[0] or int(a[-1]) < int(b[-1]) for a, b in pairwise(rows) if file.is_by_rank)
    return n_blocks == len({*topics}) < len(rows) and is_ascending


def is_ranked(path: Path) -> bool:
    """Return whether a file begins like a run with ranks in place of scores."""
    return is_run(path) and detect_run_layout(path).is_by_rank


def is_qrels(path: Path) -> bool:
    """Return whether the first lines are those of judgements."""
    if is_json(path):
        return True
    try:
        file = detect_qrels_layout(path)
        rows = [words for _, words in _read_head(path)]
    except InputError:
        return False
    return all(len(words) == len(file.columns) and re.fullmatch(r"-?\d+(\.0*)?", words[-1]) for words in rows)


def is_json(path: Path) -> bool:
    """Return whether a file begins like JSON of topic, document and number."""
    return JSON_START.match(read_head(path)) is not None and not is_json_lines(path)


def is_judged(path: Path, judgements: Mapping[str, Container[str]]) -> bool:
    """Return whether the first lines name a judged document, so that the file is a run and not printed scores."""
    return is_run(path) and any(words[1] in judgements.get(words[0], ()) for _, words in _read_head(path))


def format_location(path: Path, location: RowLocation) -> str:
    """Return the path and line or key of a row, for messages."""
    return f"{path}, line {location}" if isinstance(location, int) else f"{path}, {location}"


def row_width_error(path: Path, location: RowLocation, words: Sequence[str], expected: Sequence[str]) -> InputError:
    """Return the error for a row with the wrong number of columns."""
    is_judged = "relevance" in expected
    hint = f"; give relevance judgements with {spell('gold')}" if is_judged else ""
    if is_judged and len(words) >= len(RUN) and is_finite(words[4]):
        hint = f"; it looks like a run: give runs as systems, and judgements with {spell('gold')}"
    if not is_judged and len(words) == len(QRELS) and is_finite(words[3]):
        hint = f"; it looks like judgements: give them with {spell('gold')}, and runs as systems"
    return InputError(
        f"{format_location(path, location)}: found {len(words)} field{'s' * (len(words) != 1)}, expected "
        f"{len(expected)} ({' '.join(expected)}){hint}"
    )


def _read_head(path: Path) -> list[tuple[RowLocation, Sequence[str]]]:
    """Return the first rows, without a header."""
    rows = list(islice(_iter_body(path, MAX_HEAD_LINES), N_HEAD_ROWS))
    check_filled(path, rows)
    return rows


def _iter_body(path: Path, n_lines: int | None = None) -> Rows:
    """Yield the rows of a file without its header, a first row without numbers before a row that ends in a number."""
    rows = _iter_json(path) if is_json(path) else _iter_lines(path, n_lines)
    first_rows = list(islice(rows, 2))
    if len(first_rows) == 2:
        (_, header), (_, row) = first_rows
        if len(header) == len(row) <= len(QRELS) and is_finite(row[-1]) and not any(map(is_finite, header)):
            del first_rows[0]
    yield from first_rows
    yield from rows


def _iter_lines(path: Path, n_lines: int | None) -> Rows:
    """Yield the words of each line, without empty lines and # comments."""
    with open_text(path) as text:
        if CSV_START.match(read_head(path)):
            yield from enumerate(filter(None, csv.reader(islice(text, n_lines))), start=1)
        for number, line in enumerate(islice(text, n_lines), start=1):
            # str.split would also split at Unicode blanks, which ids may contain
            words = line.split() if line.isascii() else _split_words(line)
            if words and not words[0].startswith("#"):
                yield number, words


def _iter_json(path: Path) -> Rows:
    """Yield topic, document and number of {topic: {document: number}}."""
    with open_text(path) as text:
        try:
            topics: Any = json.load(text, object_pairs_hook=tuple)  # pairs, so that a repeated document is noticed
        except ValueError as error:
            raise InputError(f"invalid JSON ({error})", file=path) from None
    for topic, documents in topics:
        if not isinstance(documents, tuple):
            raise InputError(f"{path}, topic {topic!r}: found {documents!r:.40}, expected an object of documents")
        for document, value in documents:
            yield f"topic {topic!r}", (topic, document, str(value))
