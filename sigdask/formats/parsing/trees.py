"""Bracketed trees of constituents, scored by evalb's rules and parameter files.

This follows the README of evalb (Sekine & Collins 1997, with Ellis's changes of 2006). Items are gold trees. Terminals
and brackets with deleted labels, and brackets without words, do not count. Labels are cut at `-` or `=`. A sentence
without a parse, or with other words than the gold tree, does not count at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import build_sentence_groups
from sigdask.formats.reading.files import check_filled, enumerate_lines, read_head
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.types_of_gold import check_types
from sigdask.interface import spell
from sigdask.io import as_path
from sigdask.text import format_count

PIECE = re.compile(r"\(([^\s()]*)(?:\s+([^\s()]+)\s*\))?|(\))|([^\s()]+)", re.ASCII)
"""Pattern of a terminal with its label and word, of an opening bracket with its label, of a closing bracket, and of
anything else, which is an error.
"""

START = re.compile(r"\([^()]*(?=\().*?\([^()\s]+ [^()\s]+\)", re.DOTALL)
"""Pattern of a bracket in a bracket, and a word with its part of speech in one."""

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
    raise InputError(
        f"{format_count(len(filled), 'tree')}, but {gold_path} has {len(rows):,}",
        file=path,
        remedy="give a tree for each gold tree in its order, and an empty line where there is no parse",
    )


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


def sniff(sources: Sequence[Source], gold: Path | None, _: Options) -> bool:
    """Return whether the first file, or the gold file, holds bracketed trees."""
    return any(map(_are_trees, (sources[0].path, *([] if gold is None else [gold]))))


def _are_trees(path: Path) -> bool:
    """Return whether the first line with text opens a bracket, and words stand below parts of speech in brackets."""
    start = "" if path.is_dir() else "\n".join(line.strip() for line in read_head(path).filled_lines)
    return START.match(start) is not None
