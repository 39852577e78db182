"""Words of a parser aligned with those of the gold standard, and what is right of each.

Written from the description of the CoNLL 2018 evaluation (https://universaldependencies.org/conll18/evaluation.html;
Zeman et al. 2018): tokens are spans of characters. A word is aligned with the gold word of the same span. Where either
side has a multiword token, the words within are aligned by a longest common subsequence of their forms, without case.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Codes
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

UNIVERSAL_FEATURES = frozenset({
    "PronType", "NumType", "Poss", "Reflex", "Foreign", "Abbr", "Gender", "Animacy", "Number", "Case",
    "Definite", "Degree", "VerbForm", "Mood", "Tense", "Aspect", "Voice", "Evident", "Polarity", "Person",
    "Polite",
})  # fmt: skip
"""Features that are compared. Features of single languages are not."""

METRICS = ("Words", "UPOS", "XPOS", "UFeats", "AllTags", "Lemmas", "UAS", "LAS", "CLAS", "MLAS", "BLEX")
"""Scores of single words. Each is one bit of a word's flags. Words means that a word is aligned."""

CONTENT_METRICS = ("CLAS", "MLAS", "BLEX")
CONLLX_METRICS = ("UPOS", "XPOS", "Lemmas", "UAS", "LAS")
"""Metrics of files without multiword tokens and universal rules."""

SHOWN = 20
"""Maximum characters shown of texts that differ."""


def select_universal_features(cell: str) -> str:
    """Return the universal features of a cell in alphabetical order.

    Examples
    --------
    >>> select_universal_features("Variant=Short|Number=Sing|Gender=Fem,Neut"), select_universal_features("_")
    ('Gender=Fem,Neut|Number=Sing', '')
    """
    return "|".join(sorted(part for part in cell.split("|") if part.partition("=")[0] in UNIVERSAL_FEATURES))


def make_universal(bank: Treebank, codes: Codes) -> None:
    """Cut subtypes off the relations of a file, and features that are not universal."""
    bank.columns["relation"] = codes.map_codes(bank.columns["relation"], lambda cell: cell.partition(":")[0])
    bank.columns["feats"] = codes.map_codes(bank.columns["feats"], select_universal_features)


def is_among(codes: Integers, texts: frozenset[str], table: Codes) -> NDArray[np.bool_]:
    """Return a mask of the codes of any of the texts."""
    return np.isin(codes, [table[text] for text in texts])


def check_text(gold: Treebank, system: Treebank, codes: Codes) -> None:
    """Raise unless the tokens of both files, joined without spaces, are the same text."""
    texts = list(codes)
    joined = ["".join([texts[code] for code in bank.token_forms.tolist()]) for bank in (gold, system)]
    if joined[0] == joined[1]:
        return
    pairs = enumerate(zip(*joined, strict=False))
    place = next((k for k, (a, b) in pairs if a != b), min(map(len, joined)))
    lines = [bank.token_lines[np.searchsorted(bank.token_ends[:-1], place, side="right")] for bank in (gold, system)]
    shown = [text[place : place + SHOWN] or "the end of the text" for text in joined]
    raise InputError(
        file=system.path,
        line=lines[1],
        found=repr(shown[1]),
        expected=f"{shown[0]!r}, as in {gold.path}, line {lines[0]}: both files must hold the same text",
    )


def align_words(gold: Treebank, system: Treebank, codes: Codes) -> tuple[Integers, Integers]:
    """Return the places of aligned words: of gold, and of the system."""
    sides = []
    for bank in (gold, system):
        written = np.where(bank.is_multiword, bank.columns["form"], bank.token_forms[bank.tokens])
        forms = codes.map_codes(written, str.lower)
        columns = (bank.token_starts[bank.tokens], bank.token_ends[bank.tokens], bank.is_multiword, forms)
        sides.append(_Side(*(column.tolist() for column in columns)))
    pairs = np.array(list(_iter_pairs(*sides)), np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """The words of one file: their spans of characters, whether they are of multiword tokens, their forms."""

    starts: list[int]
    ends: list[int]
    is_multiword: list[bool]
    forms: list[int]

    def belongs(self, k: int, end: int) -> bool:
        """Return whether a word is in a region of multiword tokens that ends at a character."""
        if k >= len(self.starts):
            return False
        return self.starts[k] < end if self.is_multiword[k] else self.ends[k] <= end


def _iter_pairs(gold: _Side, system: _Side) -> Iterator[tuple[int, int]]:
    """Yield the places of aligned words."""
    g, s = 0, 0
    n_gold, n_system = len(gold.starts), len(system.starts)
    while g < n_gold and s < n_system:
        gold_start, system_start = gold.starts[g], system.starts[s]
        if gold.is_multiword[g] or system.is_multiword[s]:
            g0, s0, g, s = _find_region(gold, system, g, s)
            yield from _align_forms(gold.forms[g0:g], system.forms[s0:s], g0, s0)
        elif gold_start == system_start and gold.ends[g] == system.ends[s]:
            yield g, s
            g += 1
            s += 1
        elif gold_start <= system_start:
            g += 1
        else:
            s += 1


def _find_region(gold: _Side, system: _Side, g: int, s: int) -> tuple[int, int, int, int]:
    """Return the first words and the words after the region of overlapping multiword tokens at two words.

    A word that begins before the multiword token of the other side, and is none itself, is not in it.
    """
    leader, k = (gold, g) if gold.is_multiword[g] else (system, s)
    end = leader.ends[k]
    if leader is gold:
        s += not system.is_multiword[s] and system.starts[s] < gold.starts[g]
    else:
        g += gold.starts[g] < system.starts[s]
    first_g, first_s = g, s
    while gold.belongs(g, end) or system.belongs(s, end):
        takes_gold = g < len(gold.starts) and (s >= len(system.starts) or gold.starts[g] <= system.starts[s])
        side, k = (gold, g) if takes_gold else (system, s)
        if side.is_multiword[k]:
            end = max(end, side.ends[k])
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


def flag_words(gold: Treebank, system: Treebank, pairs: tuple[Integers, Integers], codes: Codes) -> NDArray[np.uint16]:
    """Return flags of the gold words: which of `METRICS` count each as right."""
    g, s = pairs
    mine, theirs = gold.columns, system.columns
    same = {name: column[g] == theirs[name][s] for name, column in mine.items()}
    gold_of = np.full(system.n_words + 1, -2)  # -2 for a word that is not aligned
    gold_of[s] = g
    gold_of[ROOT] = ROOT
    right_head = gold.heads[g] == gold_of[system.heads[s]]
    right = right_head & same["relation"]
    is_content = is_among(mine["relation"], CONTENT, codes)[g]
    same_lemma = same["lemma"] | (mine["lemma"][g] == codes["_"])
    same_tags = same["upos"] & same["feats"]
    same_function_words = _have_same_function_words(gold, system, pairs, right & same_tags, codes)
    masks = {
        "Words": np.ones(len(g), np.bool_),
        "UPOS": same["upos"],
        "XPOS": same["xpos"],
        "UFeats": same["feats"],
        "AllTags": same_tags & same["xpos"],
        "Lemmas": same_lemma,
        "UAS": right_head,
        "LAS": right,
        "CLAS": right & is_content,
        "MLAS": right & is_content & same_tags & same_function_words,
        "BLEX": right & is_content & same_lemma,
    }
    flags = np.zeros(gold.n_words, np.uint16)
    for k, name in enumerate(METRICS):
        flags[g] |= masks[name].astype(np.uint16) << np.uint16(k)
    return flags


def _have_same_function_words(
    gold: Treebank, system: Treebank, aligned: tuple[Integers, Integers], is_right: NDArray[np.bool_], codes: Codes
) -> NDArray[np.bool_]:
    """Return which aligned words have the same function words below them, with the same relations and tags.

    They do if each of the gold word's function words is right, and the system's word has no other.
    """
    g, s = aligned
    is_functional = [is_among(bank.columns["relation"], FUNCTIONAL, codes) for bank in (gold, system)]
    n_below = [
        np.bincount(bank.heads[mask & (bank.heads != ROOT)], minlength=bank.n_words)
        for bank, mask in zip((gold, system), is_functional, strict=True)
    ]
    is_shared = is_right & is_functional[0][g] & (gold.heads[g] != ROOT)
    n_shared = np.bincount(gold.heads[g[is_shared]], minlength=gold.n_words)[g]
    return np.asarray((n_below[0][g] == n_shared) & (n_below[1][s] == n_shared))


@dataclass(frozen=True, eq=False)
class ScoredWords:
    """The words of a file, as they are counted.

    Attributes
    ----------
    sentences : int64 array, shape (n_words,)
        Gold sentence with the first character of each word.
    labels : mapping of str to int64 array, shape (n_words,)
        Codes of relation, UPOS and XPOS.
    is_scored, is_content : bool array, shape (n_words,)
        Whether each word is scored, and whether it is a content word.
    """

    sentences: Integers
    labels: Mapping[str, Integers]
    is_scored: NDArray[np.bool_]
    is_content: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ScoredSystem:
    """A system's words, and which gold words it has right.

    Attributes
    ----------
    words : ScoredWords
        The system's words.
    flags : uint16 array, shape (n_gold_words,)
        Bits of `METRICS`.
    totals : mapping of str to int64 array, shape (n_sentences,)
        Right, system's and gold tokens and sentences, of each gold sentence.
    """

    words: ScoredWords
    flags: NDArray[np.uint16]
    totals: Mapping[str, Integers]


LABELS = ("relation", "upos", "xpos")
"""Columns whose values can restrict a metric, as in LAS[nsubj]."""


def score_words(gold: Treebank, bank: Treebank, codes: Codes, marks: Collection[int]) -> ScoredWords:
    """Return the words of a file; those whose form is one of the marks are not scored."""
    return ScoredWords(
        sentences=find_sentences(gold.sentence_ends, bank.token_starts[bank.tokens]),
        labels={name: bank.columns[name] for name in LABELS},
        is_scored=~np.isin(bank.columns["form"], [*marks]),
        is_content=is_among(bank.columns["relation"], CONTENT, codes),
    )


def score_system(gold: Treebank, system: Treebank, words: ScoredWords, codes: Codes) -> ScoredSystem:
    """Align a system's words with those of gold, and return which are right; both have the same text."""
    check_text(gold, system, codes)
    ends = gold.sentence_ends
    bounds = {"tokens": (gold.token_ends, system.token_ends), "sentences": (ends, system.sentence_ends)}
    totals: dict[str, Integers] = {}
    for name, (gold_ends, system_ends) in bounds.items():
        gold_starts, starts = (np.append(0, bound[:-1]) for bound in (gold_ends, system_ends))
        sentences, is_end = find_sentences(ends, starts), np.isin(system_ends, gold_ends)
        # both files part the same text, so a span is right if it ends where the gold span at its first character does
        gold_end = gold_ends[np.searchsorted(gold_ends, starts, side="right")]
        is_right = is_end & np.append(True, is_end[:-1]) & (gold_end == system_ends)
        counted = {"correct": sentences[is_right], "system": sentences, "gold": find_sentences(ends, gold_starts)}
        totals |= {f"{kind}[{name}]": np.bincount(spans, minlength=len(ends)) for kind, spans in counted.items()}
    flags = flag_words(gold, system, align_words(gold, system, codes), codes)
    return ScoredSystem(words, flags, totals)


def find_sentences(ends: Integers, starts: Integers) -> Integers:
    """Return the gold sentence with the first character of each span."""
    return np.searchsorted(ends, starts, side="right")
