"""Words of a parser aligned with those of the gold standard, and what is right of each.

Written from the description of the CoNLL 2018 evaluation (https://universaldependencies.org/conll18/evaluation.html;
Zeman et al. 2018): tokens are spans of characters. A word is aligned with the gold word of the same span. Where either
side has a multiword token, the words within are aligned by a longest common subsequence of their forms, without case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Codes
from sigdask.counts.fields import Bools
from sigdask.errors import InputError
from sigdask.formats.parsing.treebank import ROOT, Integers, Treebank

CONTENT = frozenset({
    "nsubj", "obj", "iobj", "csubj", "ccomp", "xcomp", "obl", "vocative", "expl", "dislocated", "advcl",
    "advmod", "discourse", "nmod", "appos", "nummod", "acl", "amod", "conj", "fixed", "flat", "compound",
    "list", "parataxis", "orphan", "goeswith", "reparandum", "root", "dep",
})  # fmt: skip
"""Relations of content words, which CLAS, MLAS and BLEX score."""

FUNCTIONAL = frozenset({"aux", "cop", "mark", "det", "clf", "case", "cc"})
"""Relations of function words. MLAS compares those that depend on a content word."""

SHOWN = 20
"""Maximum characters shown of texts that differ."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoredSystem:
    """A system's words, and what is right.

    Attributes
    ----------
    sentences : int64 array, shape (n_words,)
        Gold sentence with the first character of each word.
    columns : mapping of str to int64 array, shape (n_words,)
        Codes of the words' cells.
    is_content : bool array, shape (n_words,)
        Whether each word is a content word.
    right : mapping of str to bool array, shape (n_gold_words,)
        The gold words that are right, by metric. "Words" are those that are aligned.
    totals : mapping of str to int64 array, shape (n_sentences,)
        Right, system's and gold tokens and sentences, of each gold sentence.
    """

    sentences: Integers
    columns: Mapping[str, Integers]
    is_content: Bools
    right: Mapping[str, Bools]
    totals: Mapping[str, Integers]


def score_system(gold: Treebank, system: Treebank, codes: Codes) -> ScoredSystem:
    """Align a system's words with those of gold, and return which are right; both must have the same text."""
    if gold.text != system.text:
        raise _build_text_error(gold, system)
    ends = gold.sentence_ends
    bounds = {"tokens": (gold.token_ends, system.token_ends), "sentences": (ends, system.sentence_ends)}
    totals: dict[str, Integers] = {}
    for name, (gold_ends, system_ends) in bounds.items():
        gold_starts, starts = (np.append(0, bound[:-1]) for bound in (gold_ends, system_ends))
        sentences, is_end = np.searchsorted(ends, starts, side="right"), np.isin(system_ends, gold_ends)
        # both files part the same text, so a span is right if it ends where the gold span at its first character does
        gold_end = gold_ends[np.searchsorted(gold_ends, starts, side="right")]
        is_right = is_end & np.append(True, is_end[:-1]) & (gold_end == system_ends)
        gold_sentences = np.searchsorted(ends, gold_starts, side="right")
        counted = {"correct": sentences[is_right], "system": sentences, "gold": gold_sentences}
        totals |= {f"{kind}[{name}]": np.bincount(spans, minlength=len(ends)) for kind, spans in counted.items()}
    return ScoredSystem(
        sentences=np.searchsorted(ends, system.word_starts, side="right"),
        columns=system.columns,
        is_content=_is_among(system, CONTENT, codes),
        right=_find_right_words(gold, system, align_words(gold, system, codes), codes),
        totals=totals,
    )


def _build_text_error(gold: Treebank, system: Treebank) -> InputError:
    """Return the error for files of different texts, at their first difference."""
    pairs = enumerate(zip(gold.text, system.text, strict=False))
    place = next((k for k, (a, b) in pairs if a != b), min(len(gold.text), len(system.text)))
    line = int(system.lines[np.searchsorted(system.word_ends[:-1], place, side="right")])
    shown, expected = (bank.text[place : place + SHOWN] or "the end of the text" for bank in (system, gold))
    expected = f"{expected!r}, as in {gold.path}: both files must hold the same text"
    return InputError(file=system.path, line=line, found=repr(shown), expected=expected)


class _Word(NamedTuple):
    """A word: the characters of its token, whether that is a multiword token, and the code of its form."""

    start: int
    end: int
    is_multiword: bool
    form: int


def align_words(gold: Treebank, system: Treebank, codes: Codes) -> tuple[Integers, Integers]:
    """Return the places of aligned words: of gold, and of the system."""
    sides = []
    for bank in (gold, system):
        forms = codes.map_codes(bank.columns["form"], str.lower)
        columns = (bank.word_starts, bank.word_ends, bank.is_multiword, forms)
        sides.append([_Word(*row) for row in zip(*(column.tolist() for column in columns), strict=True)])
    pairs = np.array(list(_iter_pairs(*sides)), np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _iter_pairs(gold: list[_Word], system: list[_Word]) -> Iterator[tuple[int, int]]:
    """Yield the places of aligned words."""
    g, s = 0, 0
    while g < len(gold) and s < len(system):
        if gold[g].is_multiword or system[s].is_multiword:
            g0, s0, g, s = _find_region(gold, system, g, s)
            yield from _align_forms([w.form for w in gold[g0:g]], [w.form for w in system[s0:s]], g0, s0)
        elif gold[g][:2] == system[s][:2]:
            yield g, s
            g, s = g + 1, s + 1
        elif gold[g].start <= system[s].start:
            g += 1
        else:
            s += 1


def _find_region(gold: list[_Word], system: list[_Word], g: int, s: int) -> tuple[int, int, int, int]:
    """Return the first words and the words after the region of overlapping multiword tokens at two words.

    A word that begins before the multiword token of the other side, and is none itself, is not in it.
    """
    if gold[g].is_multiword:
        end = gold[g].end
        s += not system[s].is_multiword and system[s].start < gold[g].start
    else:
        end = system[s].end
        g += gold[g].start < system[s].start
    first_g, first_s = g, s

    def is_inside(side: list[_Word], k: int) -> bool:
        return k < len(side) and (side[k].start < end if side[k].is_multiword else side[k].end <= end)

    while is_inside(gold, g) or is_inside(system, s):
        takes_gold = g < len(gold) and (s >= len(system) or gold[g].start <= system[s].start)
        word = gold[g] if takes_gold else system[s]
        end = max(end, word.end) if word.is_multiword else end
        g, s = (g + 1, s) if takes_gold else (g, s + 1)
    return first_g, first_s, g, s


def _align_forms(gold: list[int], system: list[int], g: int, s: int) -> Iterator[tuple[int, int]]:
    """Yield the places of the words of a best common subsequence of forms; g and s are those of the first."""
    n, m = len(gold), len(system)
    best = [[0] * (m + 1) for _ in range(n + 1)]  # of what follows words i and j
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            best[i][j] = best[i + 1][j + 1] + 1 if gold[i] == system[j] else max(best[i + 1][j], best[i][j + 1])
    i = j = 0
    while i < n and j < m:
        if gold[i] == system[j]:
            yield g + i, s + j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1


def _is_among(bank: Treebank, relations: frozenset[str], codes: Codes) -> Bools:
    """Return a mask of the words with any of the relations."""
    return np.isin(bank.columns["relation"], [codes[relation] for relation in relations])


def _find_right_words(
    gold: Treebank, system: Treebank, pairs: tuple[Integers, Integers], codes: Codes
) -> dict[str, Bools]:
    """Return masks of the gold words that each metric counts as right."""
    g, s = pairs
    mine, theirs = gold.columns, system.columns
    same = {name: column[g] == theirs[name][s] for name, column in mine.items()}
    gold_of = np.full(len(system.heads) + 1, -2)  # -2 for a word that is not aligned
    gold_of[s] = g
    gold_of[ROOT] = ROOT
    right_head = gold.heads[g] == gold_of[system.heads[s]]
    right = right_head & same["relation"]
    content = right & _is_among(gold, CONTENT, codes)[g]
    same_lemma = same["lemma"] | (mine["lemma"][g] == codes["_"])
    same_tags = same["upos"] & same["feats"]
    masks = {
        "Words": np.ones(len(g), np.bool_),
        "UPOS": same["upos"],
        "XPOS": same["xpos"],
        "UFeats": same["feats"],
        "AllTags": same_tags & same["xpos"],
        "Lemmas": same_lemma,
        "UAS": right_head,
        "LAS": right,
        "CLAS": content,
        "MLAS": content & same_tags & _have_same_function_words(gold, system, pairs, right & same_tags, codes),
        "BLEX": content & same_lemma,
    }
    found = {name: np.zeros(len(gold.heads), np.bool_) for name in masks}
    for name, mask in masks.items():
        found[name][g] = mask
    return found


def _have_same_function_words(
    gold: Treebank, system: Treebank, aligned: tuple[Integers, Integers], is_right: Bools, codes: Codes
) -> NDArray[np.bool_]:
    """Return which aligned words have the same function words below them, with the same relations and tags.

    They do if each of the gold word's function words is right, and the system's word has no other.
    """
    g, s = aligned
    is_functional = [_is_among(bank, FUNCTIONAL, codes) for bank in (gold, system)]
    n_below = [
        np.bincount(bank.heads[mask & (bank.heads != ROOT)], minlength=len(bank.heads))
        for bank, mask in zip((gold, system), is_functional, strict=True)
    ]
    is_shared = is_right & is_functional[0][g] & (gold.heads[g] != ROOT)
    n_shared = np.bincount(gold.heads[g[is_shared]], minlength=len(gold.heads))[g]
    return np.asarray((n_below[0][g] == n_shared) & (n_below[1][s] == n_shared))
