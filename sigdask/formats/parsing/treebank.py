"""Files of dependency trees: ten columns a word, read into arrays and checked.

CoNLL-U: https://universaldependencies.org/format.html; its rules for words of multiword tokens, empty nodes and
characters are those of the CoNLL 2018 evaluation (https://universaldependencies.org/conll18/evaluation.html).
CoNLL-X: Buchholz & Marsi 2006, "CoNLL-X shared task on multilingual dependency parsing".
"""

from __future__ import annotations

import re
import unicodedata
from array import array
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

RANGE_ID = re.compile(r"(\d{1,9})-(\d{1,9})")
EMPTY_ID = re.compile(r"\d+\.\d+")
NEWDOC = re.compile(r"#\s*newdoc(?:\s+id\s*=\s*(.+))?\s*$")
SENT_ID = re.compile(r"#\s*sent_id\s*=\s*(.+)")


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
    def sentences(self) -> Integers:
        """Sentence of each word."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=self.n_words))

    @property
    def token_starts(self) -> Integers:
        """Characters of the text before each token."""
        return np.append(0, self.token_ends[:-1])

    @property
    def sentence_ends(self) -> Integers:
        """Characters of the text up to the end of each sentence."""
        return np.asarray(self.token_ends[self.tokens[np.append(self.starts[1:], self.n_words) - 1]])


class _Collector:
    """Collects the words, tokens and names of sentences."""

    def __init__(self, path: Path, codes: Codes, *, is_universal: bool) -> None:
        self.path, self._codes, self._is_universal = path, codes, is_universal
        self._words = array("q")  # codes of CODED, then head, line, token, whether of a multiword token
        self._tokens = array("q")  # code of the form, line, end
        self._starts: list[int] = []
        self._names: list[str] = []
        self._documents: list[str] = []
        self._name = ""
        self._document: str | None = None
        self._n_documents = self._n_words = self._n_tokens = self._end = self._range_end = 0
        self._heads: list[tuple[int, int]] = []  # of the sentence, with lines
        self.last_line = 0  # of the sentence

    def add_comment(self, line: str) -> None:
        """Note the name of the next sentence, or the beginning of a document."""
        if match := NEWDOC.match(line):
            self._n_documents += 1
            self._document = (match[1] or "").strip() or str(self._n_documents)
        elif match := SENT_ID.match(line):
            self._name = match[1].strip()

    def add_row(self, line: int, cells: list[str]) -> None:
        """Add a word, a multiword token or an empty node."""
        name, following = cells[ID], len(self._heads) + 1
        self.last_line = line
        if name == str(following):
            self._add_word(line, cells)
        elif self._is_universal and (match := RANGE_ID.fullmatch(name)):
            if following <= self._range_end or int(match[1]) != following or int(match[2]) < following:
                raise self.build_error(line, f"multiword token {name!r}", f"one that begins with word {following}")
            self._range_end = int(match[2])
            self._add_token(line, cells)
        elif not (self._is_universal and EMPTY_ID.fullmatch(name)):
            problem = f"{following}: words are numbered from 1 in each sentence, and empty lines separate sentences"
            raise self.build_error(line, f"id {name!r}", problem)

    def _add_token(self, line: int, cells: list[str]) -> None:
        if not (form := remove_spaces(cells[FORM])):
            raise self.build_error(line, "an empty form", "a word")
        self._end += len(form)
        self._n_tokens += 1
        self._tokens.extend((self._codes[form], line, self._end))

    def _add_word(self, line: int, cells: list[str]) -> None:
        is_part = len(self._heads) < self._range_end
        if not is_part:
            self._add_token(line, cells)
        if not re.fullmatch(r"\d{1,9}", cells[HEAD]):
            hint = f"are there no parses? Then {spell('format', 'conll')} scores the tags"
            raise self.build_error(line, f"head {cells[HEAD]!r}", f"a number, 0 for the root; {hint}")
        head = int(cells[HEAD])
        self._heads.append((head, line))
        codes = [self._codes[cells[k]] for k in CODED.values()]
        place = self._n_words + head - 1 if head else ROOT
        self._words.extend((*codes, place, line, self._n_tokens - 1, is_part))

    def end_sentence(self) -> None:
        """Close the current sentence, if there is one."""
        if not self.last_line:
            return
        n = len(self._heads)
        if n == 0 or n < self._range_end:
            expected = "all words of its multiword tokens, and at least one"
            raise self.build_error(self.last_line, "the end of a sentence", expected)
        for head, line in self._heads:
            if head > n:
                raise self.build_error(line, f"head {head}", f"the id of a word of the sentence, 1 to {n}, or 0")
        self._starts.append(self._n_words)
        self._names.append(self._name)
        self._documents.append(self._document or "0")
        self._n_words += n
        self._name, self._range_end, self._heads, self.last_line = "", 0, [], 0

    def build_error(self, line: int, found: str, expected: str) -> InputError:
        """Return the error for a line of the file."""
        return InputError(file=self.path, line=line, found=found, expected=expected)

    def build_treebank(self) -> Treebank:
        """Return the collected sentences."""
        self.end_sentence()
        check_filled(self.path, self._starts)
        words = np.array(self._words, np.int64).reshape(-1, len(CODED) + 4).T.copy()
        forms, token_lines, token_ends = np.array(self._tokens, np.int64).reshape(-1, 3).T.copy()
        heads, lines, tokens, is_multiword = words[len(CODED) :]
        return Treebank(
            path=self.path,
            columns=dict(zip(CODED, words, strict=False)),
            heads=heads,
            lines=lines,
            starts=np.array(self._starts, np.int64),
            tokens=tokens,
            is_multiword=is_multiword.astype(np.bool_),
            token_forms=forms,
            token_lines=token_lines,
            token_ends=token_ends,
            ids=self._names if all(self._names) and len({*self._names}) == len(self._names) else None,
            documents=self._documents if self._n_documents else None,
        )


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
    collector = _Collector(path, codes, is_universal=is_universal)
    for number, line in enumerate_lines(path):
        cells = line.rstrip("\r\n").split("\t")
        if not collector.last_line and line.startswith("#"):
            collector.add_comment(line)
        elif len(cells) == WIDTH:
            collector.add_row(number, cells)
        elif not line.strip():
            collector.end_sentence()
        else:
            found = f"{len(cells)} column{'s' * (len(cells) != 1)} ({' '.join(cells)[:40].strip()!r})"
            raise collector.build_error(number, found, f"{WIDTH} separated by tabs")
    bank = collector.build_treebank()
    if is_universal:
        check_trees(bank)
    return bank


def check_trees(bank: Treebank) -> None:
    """Raise for a sentence without exactly one root, or with a cycle."""
    is_root = bank.heads == ROOT
    n_roots = np.cumsum(is_root)
    n_before = (n_roots - is_root)[bank.starts]  # roots before each sentence
    is_second = is_root & (n_roots - n_before[bank.sentences] > 1)
    problems = {"its sentence has more than one root": is_second, "its heads lead in a circle": find_cycles(bank.heads)}
    for problem, wrong in problems.items():
        if wrong.any():
            remedy = f"correct the heads, or compare only the tags with {spell('format', 'conll')}"
            raise InputError(problem, file=bank.path, line=bank.lines[np.argmax(wrong)], remedy=remedy)


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
        ancestor = ancestor[ancestor]
    return np.asarray(ancestor[:-1] != n)
