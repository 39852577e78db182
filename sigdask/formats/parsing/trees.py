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
from sigdask.counts.fields import Bools
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

TERMINAL = re.compile(r"\([^()\s]+ [^()\s]+\)")
NESTED = re.compile(r"\([^()]*\(")
CUT = re.compile(r"[-=].*", re.DOTALL)
"""Pattern of functional tags and indices at the end of a label."""

QUOTE_WORDS = frozenset("'\"/")
"""Words that are quotation marks if their label is a QUOTE_LABEL."""

SHOWN = 40
"""Maximum characters shown of a tree."""


@dataclass(slots=True)
class Parameters:
    """Contents of evalb's parameter file.

    Attributes
    ----------
    name : str
        The file's name, for notes.
    labels : dict of str to set of str
        Labels by key: those that do not count, those whose words the length leaves out, those of quotation marks.
    equal : dict of str to dict of str to str
        Labels and words that count as another one, by key.
    is_labelled : bool
        Whether labels of brackets must agree.
    """

    name: str
    labels: dict[str, set[str]]
    equal: dict[str, dict[str, str]]
    is_labelled: bool = True

    def get_compared_label(self, label: str) -> str | None:
        """Return what is compared of a bracket's label, None if the bracket does not count."""
        equal, deleted = self.equal["EQ_LABEL"], self.labels["DELETE_LABEL"]
        cut = equal.get(name := CUT.sub("", label), name)
        is_deleted = name in deleted or any(equal.get(other, other) == cut for other in deleted)
        return None if is_deleted else cut * self.is_labelled


COLLINS = Parameters(
    "COLLINS.prm",
    {
        "DELETE_LABEL": {"TOP", "-NONE-", ",", ":", "``", "''", "."},
        "DELETE_LABEL_FOR_LENGTH": {"-NONE-"},
        "QUOTE_LABEL": set(),
    },
    {"EQ_LABEL": {"PRT": "ADVP"}, "EQ_WORD": {}},
)
"""The rules of the file that comes with evalb."""


def read_parameters(path: Path) -> Parameters:
    """Read evalb's parameter file.

    Raises
    ------
    InputError
        There is an unknown key or an invalid value. The message names file and line.
    """
    parameters = Parameters(path.name, {key: set() for key in COLLINS.labels}, {key: {} for key in COLLINS.equal})
    labels, equal = parameters.labels, parameters.equal
    for number, line in enumerate_lines(path):
        match [] if line.startswith("#") else line.split():
            case [] | ["DEBUG" | "MAX_ERROR" | "CUTOFF_LEN", _, *_]:  # which change no totals
                pass
            case [key, label] if key in labels:
                labels[key].add(label)
            case [key, one, other] if key in equal and not {one, other} & {*equal[key], *equal[key].values()}:
                equal[key][other] = one
            case ["LABELED", "0" | "1" as value]:
                parameters.is_labelled = value == "1"
            case _:
                keys = ", ".join((*labels, *equal, "LABELED"))
                expected = f"one of {keys} and its value, where each label or word is equal to one other at most"
                raise InputError(file=path, line=number, found=f"{line.strip()[:SHOWN]!r}", expected=expected)
    return parameters


@dataclass(slots=True)
class Tree:
    """The scored parts of a tree.

    Attributes
    ----------
    words, tags : list of str
        Words that count, and their parts of speech.
    brackets : Counter of (str, int, int)
        Compared labels and spans of words of the brackets that count.
    length : int
        Number of words without those whose labels the length leaves out.
    quotes : list of bool
        Whether the label of each quotation mark is deleted.
    """

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    brackets: Counter[tuple[str, int, int]] = field(default_factory=Counter)
    length: int = 0
    quotes: list[bool] = field(default_factory=list)


def parse_tree(text: str, parameters: Parameters, kept_quotes: Sequence[bool] = ()) -> Tree:
    """Return the scored parts of a tree; quotation marks in `kept_quotes` count, although their labels are deleted.

    Raises
    ------
    ValueError
        Brackets do not match, or a bracket holds several words.
    """
    tree, labels, equal = Tree(), parameters.labels, parameters.equal
    stack: list[tuple[str, int]] = []
    for label, word, end, rest in PIECE.findall(text):
        if word:
            is_deleted = label in labels["DELETE_LABEL"]
            tree.length += label not in labels["DELETE_LABEL_FOR_LENGTH"]
            if label in labels["QUOTE_LABEL"] and word in QUOTE_WORDS:
                tree.quotes.append(is_deleted)
                is_deleted &= not any(kept_quotes[len(tree.quotes) - 1 : len(tree.quotes)])
            if not is_deleted:
                tree.words.append(equal["EQ_WORD"].get(word, word))
                tree.tags.append(equal["EQ_LABEL"].get(label, label))
        elif end:
            if not stack:
                raise ValueError("a bracket is closed that was not opened")
            name, start = stack.pop()
            if start < len(tree.words) and (compared := parameters.get_compared_label(name)) is not None:
                tree.brackets[compared, start, len(tree.words)] += 1
        elif rest:
            raise ValueError(f"found {rest[:SHOWN]!r}, expected a bracket; write a word with its label, as in (NN dog)")
        else:
            stack.append((label, len(tree.words)))
    if stack:
        raise ValueError(f"{format_count(len(stack), 'bracket')} left open")
    return tree


@dataclass(frozen=True, slots=True)
class TreeText:
    """The text of a tree, "" for a sentence without a parse, and where it begins."""

    path: Path
    line: int
    text: str

    def parse(self, parameters: Parameters, kept_quotes: Sequence[bool] = ()) -> Tree:
        """Return the tree; raise InputError with its line if it is none."""
        try:
            return parse_tree(self.text, parameters, kept_quotes)
        except ValueError as error:
            problem, remedy = f"{error} ({self.text[:SHOWN]!r})", "leave the line empty where there is no parse"
            raise InputError(problem, file=self.path, line=self.line, remedy=remedy) from None


def read_file(path: Path) -> list[TreeText]:
    """Read the trees of a file: one a line, where empty lines are sentences without a parse, or over several lines."""
    texts: list[tuple[int, str]] = []
    depth = 0
    for number, line in enumerate_lines(path):
        first, before = texts.pop() if depth else (number, "")
        texts.append((first, before + line))
        depth = max(0, depth + line.count("(") - line.count(")"))
    trees = [TreeText(path, number, text.strip()) for number, text in texts]
    filled = [tree for tree in trees if tree.text]
    check_filled(path, filled)
    if depth:
        filled[-1].parse(COLLINS)  # which raises
    return filled if any("\n" in tree.text for tree in filled) else trees


def match_trees(gold: Sequence[TreeText], system: Sequence[TreeText]) -> list[TreeText]:
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
        f"{format_count(len(filled), 'tree')}, but {gold[0].path} has {len(rows):,}",
        file=system[0].path,
        remedy="give a tree for each gold tree in its order, and an empty line where there is no parse",
    )


FIELDS = ("correct[brackets]", "system[brackets]", "gold[brackets]", "correct[tags]", "gold[tags]")


def read_trees(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read bracketed trees and a gold file of the same sentences."""
    assert gold is not None
    parameters = _find_parameters(options, gold)
    limit = options.own.get("length", "999999999")
    if not re.fullmatch(r"[1-9]\d{0,8}", limit):
        raise InputError(f"format trees: length = {limit!r}: must be a number of words, 1 or more")
    lines, names = read_file(gold), list_system_names(sources)
    files = [match_trees(lines, read_file(source.path)) for source in sources]
    gold_lines = [line for line in lines if line.text]
    trees = [line.parse(parameters) for line in gold_lines]
    is_long = np.array([tree.length > int(limit) for tree in trees])
    counts = np.zeros((len(FIELDS), len(trees), len(files)), np.int32)
    left_out = np.zeros((len(trees), len(files)), np.bool_)
    labels: dict[str, list[str]] = {name: [] for name in names}
    for s, file in enumerate(files):
        for item, (line, gold_line, tree) in enumerate(zip(file, gold_lines, trees, strict=True)):
            compared, given = _restore_quotes((gold_line, line), (tree, line.parse(parameters)), parameters)
            left_out[item, s] = compared.words != given.words
            if not left_out[item, s]:
                labels[names[s]] += [label for label, _, _ in given.brackets.elements()]
                counts[:, item, s] = (
                    (compared.brackets & given.brackets).total(),
                    given.brackets.total(),
                    compared.brackets.total(),
                    sum(map(str.__eq__, compared.tags, given.tags)),
                    len(compared.words),
                )
    counts[:, is_long] = 0
    remedy = f"; {spell('format', 'trees:parameters=FILE.prm')} chooses another file"
    remedy *= "parameters" not in options.own
    notes = [ScopeNote(f"Brackets are scored by the rules of evalb with {parameters.name}{remedy}")]
    if "length" in options.own:
        if is_long.all():
            raise InputError(f"every sentence has more than {limit} words", file=gold, remedy="leave out length=")
        n = format_count(len(trees), "sentence")
        notes.append(ScopeNote(f"{np.sum(~is_long):,} of {n} are scored, of at most {limit} words"))
    notes += _describe_left_out(gold_lines, files, left_out)
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


def _restore_quotes(
    lines: tuple[TreeText, TreeText], trees: tuple[Tree, Tree], parameters: Parameters
) -> Sequence[Tree]:
    """Return the trees of gold and system; if their lengths differ, with the quotation marks that only one deletes.

    Otherwise, a quotation mark that one side takes for a possessive would make the numbers of words differ.
    """
    (gold, system), kept = trees, [a != b for a, b in zip(trees[0].quotes, trees[1].quotes, strict=False)]
    if len(gold.words) == len(system.words) or len(gold.quotes) != len(system.quotes) or not any(kept):
        return trees
    return [line.parse(parameters, kept) for line in lines]


def _find_parameters(options: Options, gold: Path) -> Parameters:
    """Return the parameters in the file that the option names, here or next to the gold file, or those of Collins."""
    text = options.own.get("parameters")
    if text is None:
        return COLLINS
    path, beside = as_path(text), gold.parent / text
    return read_parameters(beside if not path.exists() and beside.exists() else path)


def _describe_left_out(
    gold: Sequence[TreeText], files: Sequence[Sequence[TreeText]], left_out: Bools
) -> Iterator[ScopeNote]:
    """Yield notes on trees left out; raise if all of a system are."""
    for file, is_left_out in zip(files, left_out.T, strict=True):
        row = int(np.argmax(is_left_out))
        if is_left_out.all():
            raise InputError(
                f"no tree has the words of the gold tree; this one is {file[row].text[:SHOWN]!r}, "
                f"{gold[row].path} has {gold[row].text[:SHOWN]!r} on line {gold[row].line}",
                file=file[row].path,
                line=file[row].line,
            )
        if is_left_out.any():
            yield ScopeNote(
                f"{file[row].path}: {is_left_out.sum():,} of {format_count(len(gold), 'sentence')} are left out of its "
                f"scores, as evalb does: they have no parse, or other words than gold (first on line {file[row].line})"
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
    start = "" if path.is_dir() else "\n".join(line.strip() for line in read_head(path).filled_lines)
    return start.startswith("(") and TERMINAL.search(start) is not None and NESTED.search(start) is not None
