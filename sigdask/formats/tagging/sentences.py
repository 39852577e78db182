"""Tagged sentences of several files, aligned by position: one label per token, as integer codes.

The module also decides which column of the files is scored, and which other columns differ between systems.
"""

from __future__ import annotations

import shlex
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Outputs
from sigdask.counts.factors import Codes
from sigdask.counts.fields import Array, to_object_array
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import build_sentence_groups
from sigdask.formats.reading.files import check_filled
from sigdask.interface import spell
from sigdask.text import describe_items, format_count, format_list

Integers = NDArray[np.int32]

UTTERANCE_END = "<utt>"
"""Mbt's end of a sentence."""

EMPTY_LINE = "an empty line"
"""End of a sentence in other formats, in words."""

MAX_SENTENCE = 200
"""Maximum number of tokens of a sentence."""


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of a file of tagged tokens.

    Attributes
    ----------
    path : Path
        The file.
    names : tuple of str
        Names of the columns. Empty if the file has none.
    width : int
        Number of columns.
    label : int
        Index of the column that is read as the label.
    gold, token : int or None
        Indices of the gold label's column, and of the token's.
    numbered : bool
        Whether columns are identified by numbers, and not by keys of JSON.
    """

    path: Path
    names: tuple[str, ...]
    width: int
    label: int
    gold: int | None
    token: int | None
    numbered: bool = True

    def format_name(self, column: int) -> str:
        """Return a column's name for messages.

        Examples
        --------
        >>> file = FileColumns(Path("x"), ("FORM", "UPOS"), 2, 1, None, 0)
        >>> file.format_name(1), FileColumns(Path("x"), (), 2, 1, None, 0).format_name(1)
        ('UPOS (column 2)', 'column 2 (the last)')
        """
        if not self.numbered:
            return self.names[column] if self.names else "the list of tags"
        if column < len(self.names):
            return f"{self.names[column]} (column {column + 1})"
        return f"column {column + 1}{' (the last)' if column == self.width - 1 else ''}"


def describe_scope(systems: Sequence[FileColumns], gold: FileColumns | None) -> tuple[str, ...]:
    """Return a note on which column is scored, if files have other columns, too.

    Raises
    ------
    InputError
        A named column of labels is another one than in the first file.
    """
    files = [*systems, *([gold] if gold is not None else [])]
    names = {file.names[file.label] for file in systems if file.numbered and file.label < len(file.names)}
    is_one_file = len({file.path for file in systems}) == 1
    if len(names) > 1 and not is_one_file:
        raise InputError(
            f"{', '.join(sorted(names))}: the files have other columns of labels",
            file=systems[-1].path,
            remedy=f"choose one by its name: {spell('format', 'conll:column=NAME')}",
        )
    if all(file.width <= 3 - [file.gold, file.token].count(None) for file in files):
        return ()
    compared = format_list([*dict.fromkeys(file.format_name(file.label) for file in systems)], 10)
    first = systems[0]
    gold_name = first.format_name(first.gold) if first.gold is not None else ""
    if gold is not None and (gold.format_name(gold.label) != compared):
        gold_name = f"{gold.format_name(gold.label)} of {gold.path}"
    return (f"Only {compared} is scored{f', against {gold_name}' if gold_name else ''}",)


@dataclass(frozen=True, slots=True, eq=False)
class TaggedFile:
    """The sentences of a file.

    Attributes
    ----------
    path : Path
        The file.
    lines : int32 array, shape (n_tokens,)
        Line of each token.
    starts : int32 array, shape (n_sentences,)
        First token of each sentence. No sentence is empty.
    labels : int32 array, shape (n_tokens,)
        Codes of the labels that are compared: predictions, or gold labels in a gold file.
    gold, tokens : int32 array, shape (n_tokens,), or None
        Codes of the gold labels and of the tokens, if the file has them.
    documents : tuple of str, or None
        Document of each sentence, if the file marks documents.
    columns : FileColumns or None
        The columns of the file.
    marked_ends : int32 array
        Number of tokens up to and including each one that is marked as the last of its sentence.
    ids : tuple of str, or None
        Names of the sentences, if the file has them.
    unit : str
        Unit of `lines`: lines, or records of JSON.
    """

    path: Path
    lines: Integers
    starts: Integers
    labels: Integers
    gold: Integers | None
    tokens: Integers | None
    documents: tuple[str, ...] | None = None
    columns: FileColumns | None = None
    marked_ends: Integers = field(default_factory=lambda: np.zeros(0, np.int32))
    ids: tuple[str, ...] | None = None
    unit: str = "line"

    @property
    def lengths(self) -> Integers:
        """Number of tokens of each sentence, shape (n_sentences,)."""
        return np.diff(self.starts, append=np.int32(len(self.lines)))

    def get_location(self, token: int) -> str:
        """Return the path and line of a token, for errors."""
        return f"{self.path}, {self.unit} {self.lines[token]}"

    def reorder_like(self, first: TaggedFile) -> TaggedFile:
        """Return the file with its sentences in the order of another file, matched by their ids.

        Raises
        ------
        InputError
            The ids differ.
        """
        if self.ids is None or first.ids is None or self.ids == first.ids:
            return self
        positions = {name: k for k, name in enumerate(self.ids)}
        missing = [name for name in first.ids if name not in positions]
        extra = sorted({*self.ids}.difference(first.ids))
        if missing or extra:
            lacking = f"{describe_items(missing, 'sentence')} of {first.path} missing"
            problem = lacking if missing else f"{describe_items(extra, 'sentence')} more"
            raise InputError(f"{problem}; every file must have the same ids", file=self.path)
        order = np.array([positions[name] for name in first.ids])
        lengths = self.lengths[order]
        starts = np.cumsum(lengths) - lengths
        rows = np.repeat(self.starts[order] - starts, lengths) + np.arange(len(self.lines))
        by_token = {"lines": self.lines, "labels": self.labels, "gold": self.gold, "tokens": self.tokens}
        moved: dict[str, Any] = {name: None if codes is None else codes[rows] for name, codes in by_token.items()}
        documents = self._select_documents(order)
        return replace(self, **moved, starts=starts.astype(np.int32), documents=documents, ids=first.ids)

    def split_at(self, ends: Integers) -> TaggedFile:
        """Return the file with additional sentence ends after the given numbers of tokens."""
        starts = np.union1d(self.starts, ends[ends < len(self.lines)]).astype(np.int32)
        documents = self._select_documents(np.searchsorted(self.starts, starts, side="right") - 1)
        return replace(self, starts=starts, documents=documents)

    def _select_documents(self, sentences: NDArray[np.intp]) -> tuple[str, ...] | None:
        return None if self.documents is None else tuple(self.documents[k] for k in sentences.tolist())


class SentenceCollector:
    """Collects tokens, sentence ends and documents, in the order of the file."""

    def __init__(self, path: Path, labels: Codes, tokens: Codes) -> None:
        self.path, self._label, self._token = path, labels, tokens
        self._lines, self._starts, self._labels, self._gold, self._tokens = (array("i") for _ in range(5))
        self._documents: list[str] = []
        self._document: str | None = None
        self._n_documents = 0
        self._marked_ends = array("i")
        self.between = True
        self.has_tokens = False

    def add_token(self, line: int, label: str, gold: str | None, token: str | None) -> None:
        """Add a token; the first token after a sentence end begins a sentence."""
        if self.between:
            self._starts.append(len(self._lines))
            self._documents.append(self._document or "0")
            self.between, self.has_tokens = False, True
        self._lines.append(line)
        self._labels.append(self._label[label])
        if gold is not None:
            self._gold.append(self._label[gold])
        if token is not None:
            self._tokens.append(self._token[token])

    def mark_end(self) -> None:
        """Mark the last token as the end of its sentence."""
        self._marked_ends.append(len(self._lines))

    def end_sentence(self) -> None:
        """Close the current sentence, if there is one."""
        self.between = True

    def start_document(self, name: str | None) -> None:
        """Begin a document, identified by its name or its number."""
        self.between = True
        self._n_documents += 1
        self._document = name or str(self._n_documents)

    def build_file(self, columns: FileColumns | None = None) -> TaggedFile:
        """Return the collected sentences."""
        check_filled(self.path, self._lines)
        arrays = (self._lines, self._starts, self._labels, self._gold, self._tokens)
        lines, starts, labels, gold, tokens = (np.array(numbers, np.int32) for numbers in arrays)
        return TaggedFile(
            path=self.path,
            lines=lines,
            starts=starts,
            labels=labels,
            gold=gold if len(gold) else None,
            tokens=tokens if len(tokens) else None,
            documents=tuple(self._documents) if self._n_documents else None,
            columns=columns,
            marked_ends=np.array(self._marked_ends, np.int32),
        )


def check_structure(first: TaggedFile, others: Sequence[TaggedFile], end: str = EMPTY_LINE) -> None:
    """Raise unless all files have sentences of the same lengths; `end` is what ends a sentence."""
    for other in others:
        _check_breaks(first, other, end)
        n = min(len(first.starts), len(other.starts))
        differs = np.flatnonzero(first.lengths[:n] != other.lengths[:n])
        if len(differs):
            k = int(differs[0])
            n_tokens = format_count(int(other.lengths[k]), "token")
            raise InputError(
                f"{other.get_location(other.starts[k])}: sentence {k + 1} has {n_tokens}, but {first.lengths[k]} in "
                f"{first.get_location(first.starts[k])}; labels are aligned by position: give both files the same "
                "tokens"
            )
        if len(first.starts) != len(other.starts):
            longer = first if len(first.starts) > n else other
            raise InputError(
                f"{len(other.starts)} sentences, but {first.path} has {len(first.starts)} (the first one too many "
                f"begins on {longer.unit} {longer.lines[longer.starts[n]]} of {longer.path}); labels are aligned by "
                "position",
                file=other.path,
            )


def _check_breaks(first: TaggedFile, other: TaggedFile, end: str) -> None:
    """Raise if a file lacks some or all sentence ends, or if the first file lacks all of them."""
    if len(first.starts) == 1:
        other, first = first, other
    missing = np.setdiff1d(first.starts, other.starts)
    has_none = len(other.starts) == 1
    is_subset = len(other.lines) == len(first.lines) and not len(np.setdiff1d(other.starts, first.starts))
    if not len(missing) or not (is_subset or has_none):
        return
    k = int(missing[0])
    n_lacking = "all" if has_none else f"{len(missing):,} of"
    location = f" (the first before line {other.lines[k]})" if k < len(other.lines) else ""
    awk = f"awk 'NF {{getline < \"{other.path}\"}} 1' {shlex.quote(str(first.path))}"
    remedy = f"; if the tokens are the same, {awk} does this" if has_none and end == EMPTY_LINE else ""
    raise InputError(
        f"lacks {n_lacking} the {len(first.starts) - 1:,} sentence breaks of {first.path}{location}",
        file=other.path,
        remedy=f"put {end} after each sentence, as in that file{remedy}",
    )


def describe_missing_breaks(first: TaggedFile) -> list[str]:
    """Return a warning if many tokens form a single sentence."""
    n = len(first.lines)
    if len(first.starts) > 1 or n <= MAX_SENTENCE:
        return []
    problem = f"{first.path}: has no sentence break, so its {n:,} tokens are one item, and nothing can be tested"
    return [f"{problem}; put an empty line after each sentence"]


def get_shared_gold(files: Sequence[TaggedFile], labels: Codes) -> Integers:
    """Return the gold labels, which must be equal in all files."""
    first = files[0].gold
    assert first is not None
    for other in files[1:]:
        assert other.gold is not None
        differs = np.flatnonzero(first != other.gold)
        if len(differs):
            k = differs[0]
            names = list(labels)
            raise InputError(
                f"{other.get_location(k)}: gold {names[other.gold[k]]!r}, but {names[first[k]]!r} in "
                f"{files[0].get_location(k)}; the files must agree"
            )
    return first


def describe_altered_tokens(first: TaggedFile, others: Sequence[TaggedFile], tokens: Codes) -> list[str]:
    """Return a warning for each file whose tokens are written differently than in the first."""
    warnings = []
    for other in others:
        if first.tokens is None or other.tokens is None:
            continue
        differs = np.flatnonzero(first.tokens != other.tokens)
        if len(differs):
            k = differs[0]
            names = list(tokens)
            warnings.append(
                f"{other.path}: {len(differs):,} of {len(other.lines):,} tokens differ from those of "
                f"{first.path} (first on {other.unit} {other.lines[k]}: {names[other.tokens[k]]!r} for "
                f"{names[first.tokens[k]]!r}); aligned by position"
            )
    return warnings


def build_groups(files: Sequence[TaggedFile], requested: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the group columns: sentence if requested, and document if a file marks documents."""
    documents = next((file.documents for file in files if file.documents is not None), None)
    return build_sentence_groups(files[0].path, len(files[0].starts), documents, requested)


def sum_sentences(values: Array, starts: Integers) -> Array:
    """Sum token rows by sentence: (n_tokens, n_columns) to (n_sentences, n_columns)."""
    return np.add.reduceat(values, starts, axis=0, dtype=np.int32)


def build_outputs(gold: Integers, systems: Sequence[Integers], starts: Integers, names: Sequence[str]) -> Outputs:
    """Return gold and system labels as one list per sentence, for metrics of whole outputs."""
    table = np.array(names, object)

    def sentences(codes: Integers) -> Array:
        labels = table[codes].tolist()
        ends = [*starts[1:].tolist(), len(codes)]
        return to_object_array([labels[a:b] for a, b in zip(starts.tolist(), ends, strict=True)])

    return Outputs(tuple(sentences(codes) for codes in systems), sentences(gold))
