"""Files of dependency trees in CoNLL-U, read into arrays and checked.

https://universaldependencies.org/format.html; the rules for words of multiword tokens, empty nodes and characters are
those of the CoNLL 2018 evaluation (https://universaldependencies.org/conll18/evaluation.html).
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.texts import Codes
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled, enumerate_lines
from sigdask.interface import spell
from sigdask.text import format_count

Integers = NDArray[np.int64]

WIDTH = 10
ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL = range(8)
N_READ = 8
"""Columns of a row, and how many of them are read."""

ROOT = -1
"""Stands for the head of a root among the positions of words."""

RANGE_ID = re.compile(r"([1-9]\d{0,8})(?:-([1-9]\d{0,8}))?")
EMPTY_ID = re.compile(r"\d+\.\d+")
NEWDOC = re.compile(r"#\s*newdoc(?:\s+id\s*=\s*(.+))?\s*$")
SENT_ID = re.compile(r"#\s*sent_id\s*=\s*(.+)")

UNIVERSAL_FEATURES = frozenset({
    "PronType", "NumType", "Poss", "Reflex", "Foreign", "Abbr", "Gender", "Animacy", "Number", "Case",
    "Definite", "Degree", "VerbForm", "Mood", "Tense", "Aspect", "Voice", "Evident", "Polarity", "Person",
    "Polite",
})  # fmt: skip
"""Features that are compared. Features of single languages are not."""


def select_universal_features(cell: str) -> str:
    """Return the universal features of a cell in alphabetical order.

    Examples
    --------
    >>> select_universal_features("Variant=Short|Number=Sing|Gender=Fem,Neut"), select_universal_features("_")
    ('Gender=Fem,Neut|Number=Sing', '')
    """
    return "|".join(sorted(part for part in cell.split("|") if part.partition("=")[0] in UNIVERSAL_FEATURES))


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
    text : str
        The forms of all tokens without spaces.
    columns : mapping of str to int64 array, shape (n_words,)
        Codes of form, lemma, upos, xpos, universal features and relation without subtype.
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
    token_ends : int64 array, shape (n_tokens,)
        Characters of the text up to the end of each token.
    ids, documents : list of str or None
        Id and document of each sentence in the file.
    """

    path: Path
    text: str
    columns: dict[str, Integers]
    heads: Integers
    lines: Integers
    starts: Integers
    tokens: Integers
    is_multiword: NDArray[np.bool_]
    token_ends: Integers
    ids: list[str] | None = None
    documents: list[str] | None = None

    @property
    def word_starts(self) -> Integers:
        """Characters of the text before the token of each word."""
        return np.append(0, self.token_ends[:-1])[self.tokens]

    @property
    def word_ends(self) -> Integers:
        """Characters of the text up to the end of the token of each word."""
        return self.token_ends[self.tokens]

    @property
    def sentence_ends(self) -> Integers:
        """Characters of the text up to the end of each sentence."""
        return np.asarray(self.word_ends[np.append(self.starts[1:], len(self.heads)) - 1])


def read_treebank(path: Path, codes: Codes) -> Treebank:
    """Read a file of dependency trees.

    Parameters
    ----------
    path : Path
        The file.
    codes : Codes
        Numbers of texts, which all files of a test set share.

    Raises
    ------
    InputError
        A row, an id, a head or a tree is invalid. The message names file and line.
    """
    rows = array("q")
    names: list[str] = []
    documents: list[str] = []
    name, document, n_documents, is_between = "", "0", 0, True
    for number, line in enumerate_lines(path):
        cells = line.rstrip("\r\n").split("\t")
        if is_between and line.startswith("#"):
            if match := NEWDOC.match(line):
                n_documents += 1
                document = (match[1] or "").strip() or str(n_documents)
            elif match := SENT_ID.match(line):
                name = match[1].strip()
        elif len(cells) == WIDTH:
            if is_between:
                names.append(name)
                documents.append(document)
                name, is_between = "", False
            rows.extend((number, len(names) - 1, *(codes[cells[k]] for k in range(N_READ))))
        elif not line.strip():
            is_between = True
        else:
            found = f"{format_count(len(cells), 'column')} ({' '.join(cells)[:40].strip()!r})"
            raise InputError(file=path, line=number, found=found, expected=f"{WIDTH} separated by tabs")
    check_filled(path, names)
    return replace(
        _build_treebank(path, np.array(rows, np.int64).reshape(-1, 2 + N_READ).T, codes),
        ids=names if all(names) and len({*names}) == len(names) else None,
        documents=documents if n_documents else None,
    )


def _convert(column: Integers, codes: Codes, convert: Callable[[str], Any], dtype: type = np.int64) -> Any:
    """Return a function of the texts of a column, given their codes."""
    used, places = np.unique(column, return_inverse=True)
    texts = list(codes)
    return np.array([convert(texts[code]) for code in used.tolist()], dtype)[places]


def _parse_id(text: str) -> tuple[int, int]:
    """Return the id of a word, and the last one of a range, otherwise 0; 0 for an empty node, -1 for what is no id."""
    if match := RANGE_ID.fullmatch(text):
        return int(match[1]), int(match[2] or 0)
    return (0, 0) if EMPTY_ID.fullmatch(text) else (-1, 0)


def _build_treebank(path: Path, rows: Integers, codes: Codes) -> Treebank:
    """Return the words, tokens and trees of the rows of a file: line, sentence, and codes of cells."""

    def check(problem: str, lines: Integers, is_wrong: NDArray[np.bool_]) -> None:
        if is_wrong.any():
            remedy = f"correct the file, or compare only the tags with {spell('format', 'conll')}"
            raise InputError(problem, file=path, line=int(lines[np.argmax(is_wrong)]), remedy=remedy)

    first, last = _convert(rows[2 + ID], codes, _parse_id).T
    check("the id is no number, range or empty node", rows[0], first < 0)
    check("the form is empty", rows[0], _convert(rows[2 + FORM], codes, lambda form: not remove_spaces(form)))
    is_word, is_range = (first > 0) & (last == 0), last > 0
    (lines, sentences, *words), (range_lines, range_sentences, *ranges) = rows[:, is_word], rows[:, is_range]
    n = len(lines)
    starts, sizes = np.unique(sentences, return_index=True, return_counts=True)[1:]
    problem = "words are numbered from 1 in each sentence, and empty lines separate sentences"
    check(problem, lines, first[is_word] != np.arange(n) - np.repeat(starts, sizes) + 1)
    check("the sentence has no words", rows[0], ~np.isin(rows[1], sentences))

    begin = np.cumsum(is_word)[is_range]  # the first word of each multiword token
    end = begin + last[is_range] - first[is_range]
    is_wrong = (end < begin) | (end >= n) | (begin <= np.append(-1, end[:-1])[: len(end)])
    inside = np.minimum([begin, end], n - 1)
    is_wrong |= (first[is_word][inside[0]] != first[is_range]) | (sentences[inside] != range_sentences).any(axis=0)
    check("a multiword token begins before its first word and ends in its sentence", range_lines, is_wrong)
    is_part = np.cumsum(np.bincount(begin, minlength=n + 1) - np.bincount(end + 1, minlength=n + 1))[:n] > 0
    is_token = ~is_part
    is_token[begin] = True
    tokens = np.cumsum(is_token) - 1
    forms = codes.map_codes(words[FORM], remove_spaces)
    token_forms = forms[is_token]
    token_forms[tokens[begin]] = codes.map_codes(ranges[FORM], remove_spaces)
    texts = _convert(token_forms, codes, str, object).tolist()

    heads = _convert(words[HEAD], codes, lambda head: int(head) if re.fullmatch(r"\d{1,9}", head) else -1)
    check("the head is no number: are there no parses?", lines, heads < 0)
    check("the head is no word of the sentence", lines, heads > np.repeat(sizes, sizes))
    is_root = heads == 0
    heads = np.where(is_root, ROOT, heads + starts[sentences] - 1)
    n_roots = np.bincount(sentences[is_root], minlength=len(starts))
    check("the sentence has more than one root", lines, n_roots[sentences] > 1)
    check("the heads lead in a circle", lines, find_cycles(heads))
    return Treebank(
        path=path,
        text="".join(texts),
        columns={
            "form": np.where(is_part, words[FORM], forms),
            "lemma": words[LEMMA],
            "upos": words[UPOS],
            "xpos": words[XPOS],
            "feats": codes.map_codes(words[FEATS], select_universal_features),
            "relation": codes.map_codes(words[DEPREL], lambda cell: cell.partition(":")[0]),
        },
        heads=heads,
        lines=lines,
        starts=starts,
        tokens=tokens,
        is_multiword=is_part,
        token_ends=np.cumsum([len(text) for text in texts]),
    )


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
