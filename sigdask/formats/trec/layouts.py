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


def apply_topic_policy(
    has: NDArray[np.bool_], topics: Sequence[str], systems: Sequence[str], options: Options, default: Missing
) -> tuple[NDArray[np.bool_] | None, list[str]]:
    """Apply the policy for missing topics, by default that of the layout.

    Parameters
    ----------
    has : bool array, shape (n_topics, n_systems)
        Whether each system has each topic.
    topics, systems : sequence of str
        Names of the topics and of the systems.
    options : Options
        The requested policy, if any.
    default : {"zero", "error"}
        The policy if none was requested.

    Returns
    -------
    present : bool array, shape (n_topics, n_systems), or None
        As in `Counts`.
    notes : list of str
        What is missing and how it counts.
    """
    policy = options.missing or default
    if has.all():
        return None, []
    if not options.few_in_common:
        check_common_items(has, systems, None if policy == "zero" else policy, topics)
    lacking = np.flatnonzero(~has.all(axis=0))
    missing = [topics[int(k)] for k in np.flatnonzero(~has[:, lacking[0]])]
    examples = ", ".join(missing[:SHOWN]) + (", ..." if len(missing) > SHOWN else "")
    more = f", and {len(lacking) - 1} more systems lack topics" if len(lacking) > 1 else ""
    system = systems[int(lacking[0])]
    gap = f"system {system!r} has no topic {examples} ({len(missing)} of {len(topics)} missing){more}"
    pairwise = f"{spell('missing', 'pairwise')} (each pair on the topics both have)"
    if policy == "error":
        zero = f"{spell('missing', 'zero')} (it counts 0, as under trec_eval -c)"
        raise MissingItemsError(f"{gap}; choose {zero} or {pairwise}")
    if policy == "pairwise":
        return has, [f"{gap}; each pair is compared on the topics both have"]
    hint = "" if options.missing else f" (or choose {pairwise})"
    return None, [f"{gap}; a topic that a run lacks counts 0, as under trec_eval -c{hint}"]


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
        """Whether there are ranks and no scores."""
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


def detect_run_layout(path: Path, order: str | None = None) -> TrecFile:
    """Return the layout of a run, by the number of its columns; `order` says what a third of three columns is.

    Raises
    ------
    InputError
        Whole numbers in the last of three columns may be scores or ranks.
    """
    columns = _find_columns(path)
    if columns == RANKED and (order == "score" or (order is None and _are_scores(path))):
        columns = SCORED
    return TrecFile(path, columns)


def _find_columns(path: Path) -> tuple[str, ...]:
    """Return the columns of a run by their number; three are RANKED."""
    if is_json(path):
        return SCORED
    rows = _read_head(path)
    location, first_words = rows[0]
    columns = RUNS_BY_WIDTH[min(len(first_words), len(RUN))] if len(first_words) >= 3 else RUN
    same_width = [words for _, words in rows if len(words) == len(first_words)]
    if len(columns) == 4 and (len({words[1] for words in same_width}) == 1 or not is_finite(first_words[2])):
        raise row_width_error(path, location, first_words, RUN)
    return columns


def _are_scores(path: Path) -> bool:
    """Return whether third columns are scores, which are named so or have decimals, and no ranks, which count."""
    rows = [words for _, words in _read_head(path)]
    header = read_head(path).partition("\n")[0].lower()
    if "score" in header or not all(words[2].isdecimal() for words in rows if len(words) == len(RANKED)):
        return True
    numbers: dict[str, list[int]] = {}
    for words in filter(lambda words: len(words) == len(RANKED), rows):
        numbers.setdefault(words[0], []).append(int(words[2]))
    starts = {ranks[0] for ranks in numbers.values()}
    if "rank" in header or (
        len(starts) == 1
        and starts <= {0, 1}
        and all(b == a + 1 for ranks in numbers.values() for a, b in pairwise(ranks))
    ):
        return False
    raise InputError(
        f"{path}: the numbers of its third column may be scores or ranks",
        remedy=f"choose {spell('format', 'trec:order=score')} (the highest is best) or "
        f"{spell('format', 'trec:order=rank')} (the lowest is best)",
    )


def detect_qrels_layout(path: Path) -> TrecFile:
    """Return the layout of judgements, detected from their first line."""
    if is_json(path):
        return TrecFile(path, QRELS_BY_WIDTH[3])
    location, first_words = _read_head(path)[0]
    if len(first_words) not in QRELS_BY_WIDTH:
        raise row_width_error(path, location, first_words, QRELS)
    return TrecFile(path, QRELS_BY_WIDTH[len(first_words)])


def is_run(path: Path, *, q0: bool = False) -> bool:
    """Return whether the first lines are those of a run; with `q0`, of one with Q0, which needs no judgements."""
    if is_json(path) or CSV_START.match(read_head(path)):  # CSV may be any table
        return is_json(path) and not q0
    try:
        columns = _find_columns(path)
    except InputError:
        return False
    rows = [words for _, words in _read_head(path)]
    if columns == RUN:
        fits = all(len(words) >= len(RUN) and is_finite(words[3]) and is_finite(words[4]) for words in rows)
        return fits and not (q0 and any(words[1].upper() != "Q0" for words in rows))
    if q0 or not all(len(words) == len(columns) and is_finite(words[-1]) for words in rows):
        return False
    topics = [words[0] for words in rows]  # in blocks with several documents, unlike items of tables
    return 1 + sum(a != b for a, b in pairwise(topics)) == len({*topics}) < len(rows)


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
