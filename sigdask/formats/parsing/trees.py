"""Bracketed trees of constituents, scored by evalb's rules and parameter files.

This follows the README of evalb (Sekine & Collins 1997, with Ellis's changes of 2006). Items are gold trees. Terminals
and brackets with deleted labels, and brackets without words, do not count. Labels are cut at `-` or `=`. A sentence
without a parse, or with other words than the gold tree, does not count at all.

Words of a parser aligned with those of the gold standard, and what is right of each.

Written from the description of the CoNLL 2018 evaluation (https://universaldependencies.org/conll18/evaluation.html;
Zeman et al. 2018): tokens are spans of characters. A word is aligned with the gold word of the same span. Where either
side has a multiword token, the words within are aligned by a longest common subsequence of their forms, without case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import Bools
from sigdask.counts.texts import Codes, ScopeNote
from sigdask.errors import InputError
from sigdask.formats.parsing.treebank import ROOT, Integers, Treebank
from sigdask.formats.reading.alignment import build_sentence_groups, check_types
from sigdask.formats.reading.files import check_filled, enumerate_lines
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.interface import spell
from sigdask.io import as_path
from sigdask.text import format_count

CONTENT = frozenset({
    "nsubj", "obj", "iobj", "csubj", "ccomp", "xcomp", "obl", "vocative", "expl", "dislocated", "advcl",
    "advmod", "discourse", "nmod", "appos", "nummod", "acl", "amod", "conj", "fixed", "flat", "compound",
    "list", "parataxis", "orphan", "goeswith", "reparandum", "root", "dep",
})  # fmt: skip
"""Relations of content words, which CLAS, MLAS and BLEX score."""

FUNCTIONAL = frozenset({"aux", "cop", "mark", "det", "clf", "case", "cc"})
"""Relations of function words. MLAS compares those that depend on a content word."""

SHOWN_TEXT = 20
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
    shown, expected = (bank.text[place : place + SHOWN_TEXT] or "the end of the text" for bank in (system, gold))
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


PIECE = re.compile(r"\(([^\s()]*)(?:\s+([^\s()]+)\s*\))?|(\))|([^\s()]+)", re.ASCII)
"""Pattern of a terminal with its label and word, of an opening bracket with its label, of a closing bracket, and of
anything else, which is an error.
"""


CUT = re.compile(r"[-=].*", re.DOTALL)
"""Pattern of functional tags and indices at the end of a label."""

SHOWN = 40
"""Maximum characters shown of a tree."""


@dataclass(slots=True)
class Parameters:
    """Contents of evalb's parameter file.

    Attributes
    ----------
    name : str
        The file's name, for notes.
    deleted : set of str
        Labels that do not count.
    equal : dict of str to dict of str to str
        Labels and words that count as another one, by key.
    is_labelled : bool
        Whether labels of brackets must agree.
    uncounted : set of str
        Labels of words that do not count for the length of a sentence.
    """

    name: str
    deleted: set[str]
    equal: dict[str, dict[str, str]]
    is_labelled: bool = True
    uncounted: set[str] = field(default_factory=set)

    def get_compared_label(self, label: str) -> str | None:
        """Return what is compared of a bracket's label, None if the bracket does not count."""
        equal = self.equal["EQ_LABEL"]
        cut = equal.get(name := CUT.sub("", label), name)
        is_deleted = name in self.deleted or any(equal.get(other, other) == cut for other in self.deleted)
        return None if is_deleted else cut * self.is_labelled


COLLINS = Parameters(
    "COLLINS.prm",
    {"TOP", "-NONE-", ",", ":", "``", "''", "."},
    {"EQ_LABEL": {"PRT": "ADVP"}, "EQ_WORD": {}},
    uncounted={"-NONE-"},
)
"""The rules of the file that comes with evalb."""


def read_parameters(path: Path) -> Parameters:
    """Read evalb's parameter file.

    Raises
    ------
    InputError
        There is an unknown key or an invalid value. The message names file and line.
    """
    parameters = Parameters(path.name, set(), {key: {} for key in COLLINS.equal})
    equal = parameters.equal
    for number, line in enumerate_lines(path):
        match [] if line.startswith("#") else line.split():
            case [] | ["DEBUG" | "MAX_ERROR" | "CUTOFF_LEN" | "QUOTE_LABEL", _, *_]:
                pass
            case ["DELETE_LABEL_FOR_LENGTH", label]:
                parameters.uncounted.add(label)
            case ["DELETE_LABEL", label]:
                parameters.deleted.add(label)
            case [key, one, other] if key in equal and not {one, other} & {*equal[key], *equal[key].values()}:
                equal[key][other] = one
            case ["LABELED", "0" | "1" as value]:
                parameters.is_labelled = value == "1"
            case _:
                expected = "one of DELETE_LABEL, EQ_LABEL, EQ_WORD, LABELED, with labels or words equal to one other"
                raise InputError(file=path, line=number, found=f"{line.strip()[:SHOWN]!r}", expected=expected)
    return parameters


@dataclass(slots=True)
class Tree:
    """The scored parts of a tree.

    Attributes
    ----------
    line : int
        Line on which it begins.
    text : str
        The tree as it is written; "" for a sentence without a parse.
    words, tags : list of str
        Words that count, and their parts of speech.
    brackets : Counter of (str, int, int)
        Compared labels and spans of words of the brackets that count.
    length : int
        Number of words, for the option `length`.
    """

    line: int
    text: str
    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    brackets: Counter[tuple[str, int, int]] = field(default_factory=Counter)
    length: int = 0


def parse_tree(path: Path, line: int, text: str, parameters: Parameters) -> Tree:
    """Return the scored parts of a tree; raise InputError if brackets do not match, or one holds several words."""

    def build_error(problem: str) -> InputError:
        remedy = "leave the line empty where there is no parse"
        return InputError(f"{problem} ({text[:SHOWN]!r})", file=path, line=line, remedy=remedy)

    tree = Tree(line, text)
    stack: list[tuple[str, int]] = []
    for label, word, end, rest in PIECE.findall(text):
        tree.length += bool(word) and label not in parameters.uncounted
        if word and label not in parameters.deleted:
            tree.words.append(parameters.equal["EQ_WORD"].get(word, word))
            tree.tags.append(parameters.equal["EQ_LABEL"].get(label, label))
        elif end:
            if not stack:
                raise build_error("a bracket is closed that was not opened")
            name, start = stack.pop()
            if start < len(tree.words) and (compared := parameters.get_compared_label(name)) is not None:
                tree.brackets[compared, start, len(tree.words)] += 1
        elif rest:
            problem = f"found {rest[:SHOWN]!r}, expected a bracket; write a word with its label, as in (NN dog)"
            raise build_error(problem)
        elif not word:
            stack.append((label, len(tree.words)))
    if stack:
        raise build_error(f"{format_count(len(stack), 'bracket')} left open")
    return tree


def read_file(path: Path, parameters: Parameters) -> list[Tree]:
    """Read the trees of a file: one a line, where empty lines are sentences without a parse, or over several lines."""
    texts: list[tuple[int, str]] = []
    depth = 0
    for number, line in enumerate_lines(path):
        first, before = texts.pop() if depth else (number, "")
        texts.append((first, before + line))
        depth = max(0, depth + line.count("(") - line.count(")"))
    trees = [parse_tree(path, number, text.strip(), parameters) for number, text in texts]
    filled = [tree for tree in trees if tree.text]
    check_filled(path, filled)
    return filled if any("\n" in tree.text for tree in filled) else trees


def match_trees(gold_path: Path, gold: Sequence[Tree], path: Path, system: Sequence[Tree]) -> list[Tree]:
    """Return a system's tree for each gold tree, matched by their order, or by lines if some have no parse.

    Raises
    ------
    InputError
        The numbers of trees differ.
    """
    rows = [row for row, tree in enumerate(gold) if tree.text]
    filled = [row for row, tree in enumerate(system) if tree.text]
    if len(filled) == len(rows):
        return [system[row] for row in filled]
    if len(system) > rows[-1] and {*filled} <= {*rows}:
        return [system[row] for row in rows]
    problem = f"{format_count(len(filled), 'tree')}, but {gold_path} has {len(rows):,}"
    remedy = "give a tree for each gold tree in its order, and an empty line where there is no parse"
    raise InputError(problem, file=path, remedy=remedy)


FIELDS = ("correct[brackets]", "system[brackets]", "gold[brackets]", "correct[tags]", "gold[tags]")


def read_trees(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read bracketed trees and a gold file of the same sentences."""
    assert gold is not None
    parameters = read_parameters(as_path(options.own["parameters"])) if "parameters" in options.own else COLLINS
    lines, names = read_file(gold, parameters), list_system_names(sources)
    files = [match_trees(gold, lines, source.path, read_file(source.path, parameters)) for source in sources]
    trees = [line for line in lines if line.text]
    if "length" in options.own:
        rows = [row for row, tree in enumerate(trees) if tree.length <= _parse_length(options.own["length"])]
        trees, files = [trees[row] for row in rows], [[file[row] for row in rows] for file in files]
        check_filled(gold, trees)
    counts = np.array([[*map(_count_matches, trees, file)] for file in files], np.int32).T
    labels = {
        name: [label for own, tree in zip(file, trees, strict=True) if own.words == tree.words
               for label, _, _ in own.brackets.elements()]
        for name, file in zip(names, files, strict=True)
    }  # fmt: skip
    remedy = f"; {spell('format', 'trees:parameters=FILE.prm')} chooses another file"
    remedy *= "parameters" not in options.own
    notes = [ScopeNote(f"Brackets are scored by the rules of evalb with {parameters.name}{remedy}")]
    notes += _describe_left_out(gold, trees, [source.path for source in sources], files)
    known = sorted({label for tree in trees for label, _, _ in tree.brackets})
    remedy = f"make labels equal by a line EQ_LABEL of {spell('format', 'trees:parameters=FILE.prm')}"
    foreign = check_types(gold, known, labels, "brackets", "labels", remedy) if parameters.is_labelled else []
    return Counts(
        systems=tuple(names),
        fields=dict(zip(FIELDS, counts, strict=True)),
        n_items=len(trees),
        groups=build_sentence_groups(gold, len(trees), None, options.groups),
        suggested=("bracket-f1", "bracket-precision", "bracket-recall"),
        warnings=(*notes, *foreign),
    )


def _parse_length(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        raise InputError(f"format trees: length = {text!r}: must be a number of words, 1 or more")
    return int(text)


def _count_matches(gold: Tree, system: Tree) -> tuple[int, ...]:
    """Return the numbers of a sentence in the order of `FIELDS`: 0 where a tree has other words than gold."""
    if gold.words != system.words:
        return (0,) * len(FIELDS)
    n_right, n_tags = (gold.brackets & system.brackets).total(), sum(map(str.__eq__, gold.tags, system.tags))
    return n_right, system.brackets.total(), gold.brackets.total(), n_tags, len(gold.words)


def _describe_left_out(
    gold_path: Path, gold: Sequence[Tree], paths: Sequence[Path], files: Sequence[Sequence[Tree]]
) -> Iterator[ScopeNote]:
    """Yield notes on trees left out; raise if all of a system are."""
    left_out = [[own.words != tree.words for own, tree in zip(file, gold, strict=True)] for file in files]
    for path, file, is_left_out in zip(paths, files, left_out, strict=True):
        if not any(is_left_out):
            continue
        row = is_left_out.index(True)
        if all(is_left_out):
            expected = f"the words of {gold[row].text[:SHOWN]!r}, as on line {gold[row].line} of {gold_path}"
            raise InputError(file=path, line=file[row].line, found=repr(file[row].text[:SHOWN]), expected=expected)
        yield ScopeNote(
            f"{path}: {sum(is_left_out):,} of {format_count(len(gold), 'sentence')} are left out of its scores, as "
            f"evalb does: they have no parse, or other words than gold (first on line {file[row].line})"
        )
