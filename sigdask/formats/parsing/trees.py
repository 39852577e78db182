"""Bracketed trees of constituents, scored by evalb's rules and parameter files.

This follows the README of evalb (Sekine & Collins 1997, with Ellis's changes of 2006). Items are gold trees. Terminals
and brackets with deleted labels, and brackets without words, do not count. Labels are cut at `-` or `=`. A sentence
without a parse, or with other words than the gold tree, does not count at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import build_sentence_groups
from sigdask.formats.reading.files import check_filled, enumerate_lines, open_text, read_head_lines
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.types_of_gold import check_types
from sigdask.interface import spell
from sigdask.io import as_path
from sigdask.text import format_count

PIECE = re.compile(r"\(([^\s()]*)(?:\s+([^\s()]+)\s*\))?|(\))|([^\s()]+)", re.ASCII)
"""Pattern of a terminal with its label and word, of an opening bracket with its label, of a closing bracket, and of
anything else, which is an error.
"""

TERMINAL = re.compile(r"\([^()\s]+ [^()\s]+\)")
NESTED = re.compile(r"\([^()]*\(")
CUT = re.compile(r"[-=].*", re.DOTALL)
"""Pattern of functional tags and indices at the end of a label."""

QUOTE_WORDS = frozenset("'\"/")
"""Words that are quotation marks if their label is a QUOTE_LABEL."""

SHOWN = 40
"""Maximum characters shown of a tree."""

Mask = NDArray[np.bool_]
NONE_KEPT: Mapping[int, int] = {}


@dataclass(frozen=True, slots=True)
class Parameters:
    """Contents of evalb's parameter file.

    Attributes
    ----------
    name : str
        The file's name, for notes.
    is_labelled : bool
        Whether labels of brackets must agree.
    deleted, deleted_for_length, quotes : frozenset of str
        Labels that do not count, labels of words that the length leaves out, and labels that quotation marks may have.
    equal_labels, equal_words : frozenset of (str, str)
        Pairs that count as the same, in both orders.
    """

    name: str = "COLLINS.prm"
    is_labelled: bool = True
    deleted: frozenset[str] = frozenset({"TOP", "-NONE-", ",", ":", "``", "''", "."})
    deleted_for_length: frozenset[str] = frozenset({"-NONE-"})
    quotes: frozenset[str] = frozenset()
    equal_labels: frozenset[tuple[str, str]] = frozenset({("ADVP", "PRT"), ("PRT", "ADVP")})
    equal_words: frozenset[tuple[str, str]] = frozenset()


FIELDS_BY_KEY = {"DELETE_LABEL": "deleted", "DELETE_LABEL_FOR_LENGTH": "deleted_for_length", "QUOTE_LABEL": "quotes",
                 "EQ_LABEL": "equal_labels", "EQ_WORD": "equal_words"}  # fmt: skip
"""Field of `Parameters` for each key of a parameter file with a label, or with two equal labels (EQ)."""

IGNORED_KEYS = frozenset({"DEBUG", "MAX_ERROR", "CUTOFF_LEN"})
"""Keys of parameter files that change no totals."""


def read_parameters(path: Path) -> Parameters:
    """Read evalb's parameter file.

    Raises
    ------
    InputError
        There is an unknown key or an invalid value. The message names file and line.
    """
    sets: dict[str, set[Any]] = {key: set() for key in FIELDS_BY_KEY}
    is_labelled = True
    for number, raw in enumerate_lines(path):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        key, *words = line.split()
        value = " ".join(words)
        if key in sets and len(words) == (2 if key.startswith("EQ_") else 1):
            sets[key] |= {(words[0], words[1]), (words[1], words[0])} if key.startswith("EQ_") else {value}
        elif key == "LABELED" and value in {"0", "1"}:
            is_labelled = value == "1"
        elif key not in IGNORED_KEYS or not value:
            raise InputError(
                file=path,
                line=number,
                found=f"{line[:SHOWN]!r}",
                expected=f"a key of evalb's parameter files and its value: {', '.join((*sets, 'LABELED'))}",
            )
    return Parameters(path.name, is_labelled, **{FIELDS_BY_KEY[key]: frozenset(values) for key, values in sets.items()})


@dataclass(slots=True)
class Tree:
    """The scored parts of a tree.

    Attributes
    ----------
    words, tags : list of str
        Words that count, and their parts of speech.
    brackets : list of (str, int, int)
        Labels and spans of words, in the order in which brackets open, including those without words.
    length : int
        Number of words without those whose labels the length leaves out.
    quotes : list of (int, str, int)
        Words before each quotation mark, its label, and its number among all terminals.
    """

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    brackets: list[tuple[str, int, int]] = field(default_factory=list)
    length: int = 0
    quotes: list[tuple[int, str, int]] = field(default_factory=list)


def parse_tree(text: str, parameters: Parameters, kept: Mapping[int, int] = NONE_KEPT) -> Tree:
    """Return the scored parts of a tree; terminals numbered in `kept` count as often as there, although deleted.

    Raises
    ------
    ValueError
        Brackets do not match, or a bracket holds several words.
    """
    tree = Tree()
    words, tags, brackets = tree.words, tree.tags, tree.brackets
    deleted, without_length, quotes = parameters.deleted, parameters.deleted_for_length, parameters.quotes
    stack: list[int] = []
    number = 0
    for label, word, end, rest in PIECE.findall(text):
        if word:
            if label not in without_length:
                tree.length += 1
            if label in quotes and word in QUOTE_WORDS:
                tree.quotes.append((len(words), label, number))
            for _ in range(kept.get(number, 0) if label in deleted else 1):
                words.append(word)
                tags.append(label)
            number += 1
        elif end:
            if not stack:
                raise ValueError("a bracket is closed that was not opened")
            opened = stack.pop()
            brackets[opened] = (*brackets[opened][:2], len(words))
        elif rest:
            raise ValueError(f"found {rest[:SHOWN]!r}, expected a bracket; write a word with its label, as in (NN dog)")
        else:
            stack.append(len(brackets))
            brackets.append((label, len(words), 0))
    if stack:
        raise ValueError(f"{format_count(len(stack), 'bracket')} left open")
    return tree


@dataclass(frozen=True, slots=True)
class TreeFile:
    """The trees of a file as text, and the line of each: a tree a line, empty for none, or over several lines."""

    path: Path
    texts: list[str]
    lines: list[int]

    @property
    def filled(self) -> list[int]:
        """Places that hold a tree."""
        return [k for k, text in enumerate(self.texts) if not text.isspace()]

    def parse(self, k: int, parameters: Parameters, kept: Mapping[int, int] = NONE_KEPT) -> Tree:
        """Return a tree; raise InputError with its line if it is none."""
        try:
            return parse_tree(self.texts[k], parameters, kept)
        except ValueError as error:
            raise InputError(
                f"{error} ({self.texts[k].strip()[:SHOWN]!r}); complete the tree, or leave the line empty where "
                "there is no parse",
                file=self.path,
                line=self.lines[k],
            ) from None


def read_file(path: Path) -> TreeFile:
    """Read a file of trees."""
    with open_text(path) as text:
        lines = list(text)
    filled = [line for line in lines if not line.isspace()]
    check_filled(path, filled)
    if all(line.count("(") == line.count(")") for line in filled):
        return TreeFile(path, lines, list(range(1, len(lines) + 1)))
    texts: list[str] = []
    starts: list[int] = []
    depth = 0
    for number, line in enumerate(lines, start=1):
        if line.isspace():
            continue
        if depth <= 0:
            texts.append("")
            starts.append(number)
            depth = 0
        texts[-1] += line
        depth += line.count("(") - line.count(")")
    trees = TreeFile(path, texts, starts)
    if depth > 0:
        trees.parse(len(texts) - 1, Parameters())  # which raises
    return trees


def match_trees(gold: TreeFile, system: TreeFile) -> TreeFile:
    """Return a system's trees in the places of the gold trees, matched by their lines or else by their order.

    Raises
    ------
    InputError
        The numbers of trees differ.
    """
    rows, filled = gold.filled, system.filled
    if len(system.texts) > rows[-1] and {*filled} <= {*rows}:
        return system
    if len(filled) != len(rows):
        raise InputError(
            f"{format_count(len(filled), 'tree')}, but {gold.path} has {len(rows):,}",
            file=system.path,
            remedy="give a tree for each gold tree in its order, and an empty line where there is no parse",
        )
    places = dict(zip(rows, filled, strict=True))
    texts = [system.texts[places[k]] if k in places else "\n" for k in range(len(gold.texts))]
    return TreeFile(system.path, texts, [system.lines[places[k]] if k in places else 0 for k in range(len(gold.texts))])


class _CutLabels(dict[str, str | None]):
    """A mapping of the labels of brackets to compared labels: cut at functional tags, None if they do not count."""

    def __init__(self, parameters: Parameters) -> None:
        super().__init__()
        self._parameters = parameters

    def __missing__(self, label: str) -> str | None:
        cut, deleted = CUT.sub("", label), self._parameters.deleted
        is_equal = any((cut, other) in self._parameters.equal_labels for other in deleted)
        self[label] = result = None if cut in deleted or is_equal else cut
        return result


Spans = list[tuple[str, int, int]]


@dataclass(frozen=True, slots=True)
class _Scorer:
    """Counts right brackets and tags of trees."""

    parameters: Parameters
    labels: _CutLabels

    def select_brackets(self, tree: Tree) -> Spans:
        """Return the brackets that count, with the labels that are compared."""
        labels = self.labels
        return [
            (cut, start, end)
            for label, start, end in tree.brackets
            if start != end and (cut := labels[label]) is not None
        ]

    def have_same_words(self, gold: Tree, system: Tree) -> bool:
        """Return whether the words that count are those of gold."""
        if gold.words == system.words:
            return True
        equal = self.parameters.equal_words
        pairs = zip(gold.words, system.words, strict=True)
        return len(gold.words) == len(system.words) and all(a == b or (a, b) in equal for a, b in pairs)

    def count_brackets(self, gold: Spans, system: Spans) -> int:
        """Return the number of gold brackets that the system has; several of a label and span match one by one."""
        left: dict[tuple[int, int], list[str]] = {}
        for label, start, end in system:
            left.setdefault((start, end), []).append(label)
        equal = self.parameters.equal_labels
        n = 0
        for label, start, end in gold:
            labels = left.get((start, end))
            if not labels:
                continue
            if not self.parameters.is_labelled:
                match: str | None = labels[0]
            else:
                match = next((other for other in labels if other == label or (other, label) in equal), None)
            if match is not None:
                labels.remove(match)
                n += 1
        return n


def find_kept_quotes(gold: Tree, system: Tree, parameters: Parameters) -> tuple[Counter[int], Counter[int]]:
    """Return the quotation marks of gold and of a system that count because the other side's label is not deleted.

    Otherwise, a quotation mark that one side takes for a possessive would make the numbers of words differ. One next to
    another may be counted twice, as in evalb, so that its sentence is left out.
    """
    deleted = parameters.deleted
    places = [[place for place, _, _ in tree.quotes] for tree in (gold, system)]
    kept: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    for k, (_, label, _) in enumerate(system.quotes):
        here = places[1][k]
        for j, (_, other_label, _) in enumerate(gold.quotes):
            if places[0][j] != here or (label in deleted) == (other_label in deleted):
                continue
            side, first = (0, j) if other_label in deleted else (1, k)
            kept[side][(gold, system)[side].quotes[first][2]] += 1
            places[side][first:] = [place + 1 for place in places[side][first:]]
    return kept


def read_trees(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read bracketed trees and a gold file of the same sentences."""
    assert gold is not None
    parameters = _find_parameters(options, gold)
    limit = options.own.get("length")
    if limit is not None and not re.fullmatch(r"[1-9]\d{0,8}", limit):
        raise InputError(f"format trees: length = {limit!r}: must be a number of words, 1 or more")
    scorer, equal = _Scorer(parameters, _CutLabels(parameters)), parameters.equal_labels
    first = read_file(gold)
    rows = first.filled
    files = [match_trees(first, read_file(source.path)) for source in sources]
    shape = (len(rows), len(files))
    names = ("correct[brackets]", "system[brackets]", "gold[brackets]", "correct[tags]", "gold[tags]")
    counts = np.zeros((len(names), *shape), np.int32)
    no_parse, other_words, is_long = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_), np.zeros(len(rows), np.bool_)
    known: set[str] = set()
    labels: list[list[str]] = [[] for _ in files]
    for item, row in enumerate(rows):
        tree = first.parse(row, parameters)
        is_long[item] = limit is not None and tree.length > int(limit)
        brackets = scorer.select_brackets(tree)
        known.update(label for label, _, _ in brackets)
        for s, file in enumerate(files):
            given = file.parse(row, parameters)
            if not given.words:
                no_parse[item, s] = True
                continue
            compared, spans = tree, brackets
            if len(tree.words) != len(given.words) and tree.quotes and given.quotes:
                kept = find_kept_quotes(tree, given, parameters)
                compared, given = first.parse(row, parameters, kept[0]), file.parse(row, parameters, kept[1])
                spans = scorer.select_brackets(compared)
            if not scorer.have_same_words(compared, given):
                other_words[item, s] = True
                continue
            found = scorer.select_brackets(given)
            labels[s] += [label for label, _, _ in found]
            counts[:, item, s] = (
                scorer.count_brackets(spans, found),
                len(found),
                len(spans),
                sum(a == b or (a, b) in equal for a, b in zip(compared.tags, given.tags, strict=True)),
                len(compared.words),
            )
    counts[:, is_long] = 0
    scope = [*_describe_scope(first, files, parameters, (no_parse, other_words, is_long), options)]
    names_of_systems = list_system_names(sources)
    foreign = _check_labels(gold, known, dict(zip(names_of_systems, labels, strict=True)), parameters)
    return Counts(
        systems=tuple(names_of_systems),
        fields=dict(zip(names, counts, strict=True)),
        n_items=len(rows),
        groups=build_sentence_groups(gold, len(rows), None, options.groups),
        suggested=("bracket-f1", "bracket-precision", "bracket-recall"),
        warnings=(*scope, *foreign),
    )


def _check_labels(gold: Path, known: set[str], labels: Mapping[str, list[str]], parameters: Parameters) -> list[str]:
    """Return a note on labels of brackets that gold never has, neither they nor their equals."""
    if not parameters.is_labelled:
        return []
    remedy = f"make labels equal by a line EQ_LABEL of {spell('format', 'trees:parameters=FILE.prm')}"
    equal = {other for label, other in parameters.equal_labels if label in known}
    return check_types(gold, sorted(known | equal if known else known), labels, "brackets", "labels", remedy)


def _find_parameters(options: Options, gold: Path) -> Parameters:
    """Return the parameters in the file that the option names, here or next to the gold file, or those of Collins."""
    text = options.own.get("parameters")
    if text is None:
        return Parameters()
    path = as_path(text)
    beside = gold.parent / text
    return read_parameters(beside if not path.exists() and beside.exists() else path)


def _describe_scope(
    gold: TreeFile, files: Sequence[TreeFile], parameters: Parameters, masks: tuple[Mask, Mask, Mask], options: Options
) -> Iterator[ScopeNote]:
    """Yield notes on the parameters, on long sentences, and on trees left out; raise if all of a system are."""
    no_parse, other_words, is_long = masks
    n, limit = len(is_long), options.own.get("length")
    remedy = (
        "" if "parameters" in options.own else f"; {spell('format', 'trees:parameters=FILE.prm')} chooses another file"
    )
    yield ScopeNote(f"Brackets are scored by the rules of evalb with {parameters.name}{remedy}")
    if limit is not None:
        if is_long.all():
            raise InputError(
                f"every sentence has more than {limit} words", file=gold.path, remedy=f"leave out length={limit}"
            )
        yield ScopeNote(f"{n - is_long.sum():,} of {format_count(n, 'sentence')} are scored, of at most {limit} words")
    left_out = no_parse | other_words
    for s, file in enumerate(files):
        if not left_out[:, s].any():
            continue
        row = gold.filled[int(np.argmax(left_out[:, s]))]
        if left_out[:, s].all():
            raise InputError(
                f"no tree has the words of the gold tree; this one is {file.texts[row].strip()[:SHOWN]!r}, "
                f"{gold.path} has {gold.texts[row].strip()[:SHOWN]!r} on line {gold.lines[row]}",
                file=file.path,
                line=file.lines[row],
            )
        kinds = [
            f"{mask[:, s].sum():,} {what}"
            for mask, what in ((no_parse, "without a parse"), (other_words, "with other words than gold"))
            if mask[:, s].any()
        ]
        yield ScopeNote(
            f"{file.path}: {left_out[:, s].sum():,} of {format_count(n, 'sentence')} are left out of its scores, as "
            f"evalb does: {', '.join(kinds)} (first on line {file.lines[row]})"
        )
    if (left_out != left_out[:, :1]).any():
        yield ScopeNote(
            "Different sentences are left out for different systems, so their scores are not of the same sentences"
        )


def sniff(sources: Sequence[Source], gold: Path | None, _: Options) -> bool:
    """Return whether the first file, or the gold file, holds bracketed trees."""
    return any(map(_are_trees, (sources[0].path, *([] if gold is None else [gold]))))


def _are_trees(path: Path) -> bool:
    """Return whether the first line with text opens a bracket, and words stand below parts of speech in brackets."""
    lines = [] if path.is_dir() else [line.strip() for line in read_head_lines(path) if line.strip()]
    start = "\n".join(lines)
    return start.startswith("(") and TERMINAL.search(start) is not None and NESTED.search(start) is not None
