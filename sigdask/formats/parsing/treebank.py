"""Files of dependency trees: ten columns a word, read into arrays and checked.

CoNLL-U: https://universaldependencies.org/format.html; its rules for words of multiword tokens, empty nodes and
characters are those of the CoNLL 2018 evaluation (https://universaldependencies.org/conll18/evaluation.html).
CoNLL-X: Buchholz & Marsi 2006, "CoNLL-X shared task on multilingual dependency parsing".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Codes
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled, enumerate_lines
from sigdask.interface import spell

Integers = NDArray[np.int64]

WIDTH = 10
ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL = range(8)
CODED = {"form": FORM, "lemma": LEMMA, "upos": UPOS, "xpos": XPOS, "feats": FEATS, "relation": DEPREL}
"""Columns that are read as integer codes of their texts, with their positions."""

ROOT = -1
"""Stands for the head of a root among the positions of words."""

RANGE_ID = re.compile(r"(\d+)-(\d+)")
EMPTY_ID = re.compile(r"\d+\.\d+")
NEWDOC = re.compile(r"#\s*newdoc(?:\s+id\s*=\s*(.+))?\s*$")
SENT_ID = re.compile(r"#\s*sent_id\s*=\s*(.+)")

BLOCK_ROWS = 1 << 10
"""Rows whose cells are held at a time, few enough for the processor's cache."""


def remove_spaces(form: str) -> str:
    r"""Return a form without spaces of any kind (Unicode's category Zs), which do not count as text.

    Examples
    --------
    >>> remove_spaces("not\u00a0sleepy at all")
    'notsleepyatall'
    """
    return form if form.isalnum() else "".join(c for c in form if unicodedata.category(c) != "Zs")


@dataclass(frozen=True, slots=True, eq=False)
class Treebank:
    """The sentences of a file: words with heads, and the tokens of the text that they belong to.

    Attributes
    ----------
    path : Path
        The file.
    columns : mapping of str to int64 array, shape (n_words,)
        Codes of the cells: form, lemma, upos, xpos, feats, relation.
    heads : int64 array, shape (n_words,)
        Place of each word's head among all words; `ROOT` for a root.
    lines : int64 array, shape (n_words,)
        Line of each word.
    starts : int64 array, shape (n_sentences,)
        First word of each sentence; none is empty.
    tokens : int64 array, shape (n_words,)
        Token of each word: its own, or the multiword token that it is part of.
    is_multiword : bool array, shape (n_words,)
        Whether a word is part of a multiword token.
    token_forms, token_lines : int64 array, shape (n_tokens,)
        Code of the form of each token without spaces, and its line.
    token_ends : int64 array, shape (n_tokens,)
        Characters of the text up to the end of each token.
    ids, documents : list of str or None
        Id and document of each sentence in the file.
    """

    path: Path
    columns: dict[str, Integers]
    heads: Integers
    lines: Integers
    starts: Integers
    tokens: Integers
    is_multiword: NDArray[np.bool_]
    token_forms: Integers
    token_lines: Integers
    token_ends: Integers
    ids: list[str] | None
    documents: list[str] | None

    @property
    def n_words(self) -> int:
        """Number of words."""
        return len(self.heads)

    @property
    def lengths(self) -> Integers:
        """Number of words of each sentence."""
        return np.diff(self.starts, append=self.n_words)

    @property
    def sentences(self) -> Integers:
        """Sentence of each word."""
        return np.repeat(np.arange(len(self.starts)), self.lengths)

    @property
    def token_starts(self) -> Integers:
        """Characters of the text before each token."""
        return np.append(0, self.token_ends[:-1])

    @property
    def sentence_ends(self) -> Integers:
        """Characters of the text up to the end of each sentence."""
        return np.asarray(self.token_ends[self.tokens[np.append(self.starts[1:], self.n_words) - 1]])

    def get_location(self, word: int) -> str:
        """Return the path and line of a word, for errors."""
        return f"{self.path}, line {self.lines[word]}"


class _Collector:
    """Collects rows in blocks of whole sentences."""

    def __init__(self, path: Path, codes: Codes, *, has_ranges: bool) -> None:
        self.path, self._codes, self._has_ranges = path, codes, has_ranges
        self._blocks: list[dict[str, Integers]] = []
        self._rows: list[list[str]] = []
        self._row_lines: list[int] = []
        self._n_words = self._n_tokens = 0
        self._names: list[str] = []
        self._documents: list[str] = []
        self._name: str | None = None
        self._document = "0"
        self._n_documents = 0
        self.is_between = True

    def add_comment(self, line: str) -> None:
        """Note the name of the next sentence, or the beginning of a document."""
        if match := NEWDOC.match(line):
            self._n_documents += 1
            self._document = (match[1] or "").strip() or str(self._n_documents)
        elif match := SENT_ID.match(line):
            self._name = match[1].strip()

    def add_row(self, number: int, cells: list[str]) -> None:
        """Add the cells of a word, a multiword token or an empty node."""
        self._rows.append(cells)
        self._row_lines.append(number)
        self.is_between = False

    def end_sentence(self) -> None:
        """Close the current sentence, if there is one."""
        if self.is_between:
            return
        self.is_between = True
        self._rows.append(_END)
        self._row_lines.append(0)
        self._names.append(self._name or "")
        self._documents.append(self._document)
        self._name = None
        if len(self._rows) >= BLOCK_ROWS:
            self._add_block()

    def _add_block(self) -> None:
        """Move the rows to arrays."""
        is_word = np.fromiter((cells[ID].isdecimal() for cells in self._rows), np.bool_, len(self._rows))
        starts, is_multiword, is_token = self._find_tokens(is_word)
        places, tokens = np.flatnonzero(is_word), np.flatnonzero(is_token)
        columns = list(zip(*(self._rows[place] for place in places.tolist()), strict=True))
        lines = np.array(self._row_lines, np.int64)
        block = {
            "starts": np.array(starts, np.int64) + self._n_words,
            "multiword": is_multiword.astype(np.int64),
            "tokens": np.cumsum(is_token)[places] - 1 + self._n_tokens,
            "token_forms": self._encode([self._rows[place][FORM] for place in tokens.tolist()]),
            "token_lines": lines[tokens],
            "lines": lines[places],
            "ids": self._parse_numbers(columns[ID], lines[places], "id", "1, 2, ..."),
            "heads": self._parse_numbers(
                columns[HEAD],
                lines[places],
                "head",
                "a number: 0 for the root, or the id of a word of the sentence; are there no parses? Then "
                f"{spell('format', 'conll')} scores the tags",
            ),
        }
        block |= {name: self._encode(columns[column]) for name, column in CODED.items()}
        self._blocks.append(block)
        self._n_words += len(places)
        self._n_tokens += len(tokens)
        self._rows, self._row_lines = [], []

    def _find_tokens(self, is_word: NDArray[np.bool_]) -> tuple[list[int], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the first word of each sentence, which words are parts of tokens, and which rows are tokens."""
        n_before: Integers = np.cumsum(is_word) - is_word
        starts = [0]
        is_part = np.zeros(int(is_word.sum()), np.bool_)
        is_token = is_word.copy()
        range_end = 0
        for place in np.flatnonzero(~is_word).tolist():
            name, n_words = self._rows[place][ID], int(n_before[place])
            location = f"{self.path}, line {self._row_lines[place] or self._row_lines[place - 1]}"
            if self._rows[place] is _END:
                if n_words == starts[-1] or n_words < range_end:
                    kind = "without words" if n_words == starts[-1] else "that ends in a multiword token"
                    raise InputError(f"{location}: a sentence {kind}; complete or remove it")
                starts.append(n_words)
            elif self._has_ranges and (match := RANGE_ID.fullmatch(name)):
                following = n_words - starts[-1] + 1
                first, end = int(match[1]), int(match[2])
                if n_words < range_end or first != following or end < first:
                    raise InputError(
                        f"{location}: multiword token {name!r}, expected one that begins with the next word, "
                        f"{following}, and does not overlap another; number the words again"
                    )
                range_end = n_words + end - first + 1
                is_part[n_words:range_end] = True
                is_token[place] = True
            elif not (self._has_ranges and EMPTY_ID.fullmatch(name)):
                kinds = "1, 2, ..., 1-2 or 1.1" if self._has_ranges else "1, 2, ..."
                raise InputError(f"{location}: found id {name!r}, expected {kinds}")
        is_token[np.flatnonzero(is_word)[is_part]] = False
        return starts[:-1], is_part, is_token

    def _encode(self, column: Sequence[str]) -> Integers:
        return np.fromiter(map(self._codes.__getitem__, column), np.int64, len(column))

    def _parse_numbers(self, column: Sequence[str], lines: Integers, what: str, expected: str) -> Integers:
        """Return ids or heads as numbers; raise for a cell that is none."""
        try:
            return np.fromiter(map(int, column), np.int64, len(column))
        except (ValueError, OverflowError):
            k = next(k for k, cell in enumerate(column) if not re.fullmatch(r"-?\d{1,18}", cell))
            raise InputError(
                file=self.path, line=lines[k], found=f"{what} {column[k]!r}", expected=f"{expected}"
            ) from None

    def build_treebank(self) -> Treebank:
        """Return the collected sentences with heads as places of words."""
        self.end_sentence()
        if self._rows:
            self._add_block()
        check_filled(self.path, self._blocks)
        arrays = {name: np.concatenate([block[name] for block in self._blocks]) for name in self._blocks[0]}
        starts, heads, lines, token_lines = (arrays[name] for name in ("starts", "heads", "lines", "token_lines"))
        lengths = np.diff(starts, append=len(heads))
        first = np.repeat(starts, lengths)
        self._check_numbers(arrays["ids"], heads, np.arange(len(heads)) - first + 1, np.repeat(lengths, lengths), lines)
        forms = self._codes.map_codes(arrays["token_forms"], remove_spaces)
        texts = list(self._codes)
        sizes = np.zeros(len(texts), np.int64)
        used = np.unique(forms)
        sizes[used] = [len(texts[code]) for code in used.tolist()]
        if not sizes[forms].all():
            line = token_lines[np.argmin(sizes[forms])]
            raise InputError("the form is empty, expected a word", file=self.path, line=line)
        return Treebank(
            path=self.path,
            columns={name: arrays[name] for name in CODED},
            heads=np.where(heads == 0, ROOT, first + heads - 1),
            lines=lines,
            starts=starts,
            tokens=arrays["tokens"],
            is_multiword=arrays["multiword"].astype(np.bool_),
            token_forms=forms,
            token_lines=token_lines,
            token_ends=np.cumsum(sizes[forms]),
            ids=self._names if all(self._names) and len({*self._names}) == len(self._names) else None,
            documents=self._documents if self._n_documents else None,
        )

    def _check_numbers(
        self, ids: Integers, heads: Integers, expected: Integers, lengths: Integers, lines: Integers
    ) -> None:
        """Raise unless words are numbered from 1 and heads are words of their sentences, or 0."""
        wrong = np.flatnonzero(ids != expected)
        if len(wrong):
            k = int(wrong[0])
            raise InputError(
                file=self.path,
                line=lines[k],
                found=f"id {ids[k]}",
                expected=f"{expected[k]}: words of a sentence are numbered from 1; is an empty line between "
                "sentences missing?",
            )
        wrong = np.flatnonzero((heads < 0) | (heads > lengths))
        if len(wrong):
            k = int(wrong[0])
            raise InputError(
                f"head {heads[k]} is not in the sentence, whose words are 1 to {lengths[k]}; expected one of these, "
                "or 0 for the root",
                file=self.path,
                line=lines[k],
            )


_END = [""]
"""Marks the end of a sentence among rows."""


def read_treebank(path: Path, codes: Codes, *, is_universal: bool) -> Treebank:
    """Read a file of dependency trees.

    Parameters
    ----------
    path : Path
        The file.
    codes : Codes
        Numbers of texts, which all files of a test set share.
    is_universal : bool
        Whether the file is CoNLL-U, with multiword tokens, empty nodes and one root a sentence. CoNLL-X has
        neither, and any number of roots.

    Raises
    ------
    InputError
        A row, an id, a head or a tree is invalid. The message names file and line.
    """
    collector = _Collector(path, codes, has_ranges=is_universal)
    for number, line in enumerate_lines(path):
        cells = line.rstrip("\r\n").split("\t")
        if collector.is_between and line.startswith("#"):
            collector.add_comment(line)
        elif len(cells) == WIDTH:
            collector.add_row(number, cells)
        elif not line.strip():
            collector.end_sentence()
        else:
            raise InputError(
                file=path,
                line=number,
                found=f"{len(cells)} column{'s' * (len(cells) != 1)} ({' '.join(cells)[:40].strip()!r})",
                expected=f"{WIDTH} separated by tabs; complete the line. If it is a comment, put an empty line "
                "before it",
            )
    bank = collector.build_treebank()
    if is_universal:
        check_trees(bank)
    return bank


def check_trees(bank: Treebank) -> None:
    """Raise for a sentence without exactly one root, or with a cycle."""
    n_roots = np.add.reduceat((bank.heads == ROOT).astype(np.int64), bank.starts)
    in_cycle = find_cycles(bank.heads)
    wrong = np.flatnonzero(n_roots > 1)
    if len(wrong):
        sentence = int(wrong[0])
        words = np.flatnonzero(bank.heads[bank.starts[sentence] :][: bank.lengths[sentence]] == ROOT)
        second = int(bank.starts[sentence] + words[1])
        raise InputError(
            f"{bank.get_location(second)}: {n_roots[sentence]} words of sentence {sentence + 1} have the head 0, "
            "expected one root",
            remedy=f"correct the heads, or compare only the tags with {spell('format', 'conll')}",
        )
    if in_cycle.any():
        word = int(np.argmax(in_cycle))
        remedy = f"correct the heads, or compare only the tags with {spell('format', 'conll')}"
        raise InputError(f"{bank.get_location(word)}: the heads of this word lead in a circle and to no root; {remedy}")


def find_cycles(heads: Integers) -> NDArray[np.bool_]:
    """Return a mask of the words whose heads never lead to a root.

    Examples
    --------
    >>> find_cycles(np.array([1, 0, -1, 2])).tolist()
    [True, True, False, False]
    """
    n = len(heads)
    ancestor = np.append(np.where(heads == ROOT, n, heads), n)
    for _ in range(n.bit_length()):  # after k rounds it is the ancestor 2**k words up, or n above the root
        if (ancestor == n).all():
            break
        ancestor = ancestor[ancestor]
    return np.asarray(ancestor[:-1] != n)
