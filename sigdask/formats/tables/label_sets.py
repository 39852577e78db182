"""Several labels a cell: lists in JSON and Parquet, which show themselves, and texts such as `a|b`, as asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sigdask.counts.factors import Factor
from sigdask.counts.label_sets import BETWEEN, joined, known_labels
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import FileTable

USUAL = "|"
NAMED = {"comma": ",", "semicolon": ";", "space": " ", "pipe": USUAL}
"""Separators that have names, since some mean something else on a command line."""

TAG = re.compile(r"O|[BIESLU]-\S+")
"""A tag of a chunk."""

OF_SETS = ("subset-accuracy", "hamming-loss", "jaccard", "samples-precision", "samples-recall", "samples-f1")
"""Metrics that are asked for where items have sets of labels alone."""


def separator(options: Options, gold: Sequence[str]) -> str | None:
    """Return what parts the labels of a text: as it was said, or the usual one where a metric of sets is asked for."""
    said = options.own.get("separator")
    if said is not None:
        if not said:
            raise InputError(f"format labels: separator= is empty; give a mark, or one of {', '.join(NAMED)}")
        return NAMED.get(said, said)
    asked = any(metric.casefold().startswith(OF_SETS) for metric in options.metrics)
    return USUAL if asked and any(USUAL in cell for cell in Factor.of(gold).levels) else None


def opened(table: FileTable) -> FileTable:
    """Return a table whose lists of single values are cells that hold them; other lists and objects stay."""
    lists = {name: cells for name, cells in table.nested.items() if _are_labels(cells)}
    if not lists:
        return table
    cells = {name: ["" if own is None else BETWEEN + joined(own) for own in column] for name, column in lists.items()}
    nested = {name: column for name, column in table.nested.items() if name not in lists}
    return replace(table, columns={**table.columns, **cells}, nested=nested)


def holds_lists(table: FileTable, name: str | None) -> bool:
    """Whether a column holds lists of single values."""
    return name is not None and name in table.nested and _are_labels(table.nested[name])


def _are_labels(cells: Sequence[Any]) -> bool:
    return all(cell is None or (isinstance(cell, list) and all(map(_is_label, cell))) for cell in cells)


def _is_label(value: Any) -> bool:
    return isinstance(value, str | int) and BETWEEN not in str(value)


def are_sets(columns: Sequence[Factor]) -> bool:
    """Whether any cell was a list."""
    return any(level.startswith(BETWEEN) for column in columns for level in column.levels)


def refuse_sequences(gold: Factor) -> None:
    """Refuse cells that hold the tags of a sentence: as sets they would lose order and number."""
    cells = (cell.replace(BETWEEN, " ").split() for cell in gold.levels.tolist())
    tags = {tag for cell in cells if len(cell) > 1 for tag in cell}
    if "O" in tags and any(tag.startswith("B-") for tag in tags) and all(map(TAG.fullmatch, tags)):
        raise InputError(
            "the gold labels are sequences of tags (O, B-...), one for each token, and neither a label nor a set of "
            'labels; write them as JSON lines, {"tags": ["O", "B-PER"]}, which are read as tagged sentences'
        )


def as_sets(column: Factor, mark: str | None, mapped: Mapping[str, str]) -> Factor:
    """Return a column of cells whose labels are parted by `BETWEEN`, some read as others."""
    names = {}
    for cell in column.levels.tolist():
        if cell.startswith(BETWEEN):
            labels = cell[1:].split(BETWEEN) if len(cell) > 1 else []
        else:
            labels = [part.strip() for part in cell.split(mark)] if mark else [cell]
        names[cell] = joined(mapped.get(label, label) for label in labels)
    return column.renamed(names)


def hint(gold: Factor) -> list[str]:
    """Tell of cells that look like several labels: of two or more, each of which is a label of its own elsewhere."""
    cells = gold.levels.tolist()
    whole = set(cells)
    several = [cell for cell in cells if USUAL in cell and whole.issuperset(cell.split(USUAL))]
    if not several:
        return []
    return [f"{several[0]!r} is read as one label; --format 'labels:separator={USUAL}' takes it for several"]


def foreign(gold: Factor, predictions: Mapping[str, Factor]) -> list[str]:
    """Warn of labels that gold does not have: averages over labels leave them out."""
    known = known_labels(gold)
    others = sorted({label for column in predictions.values() for label in known_labels(column)} - known)
    if not others:
        return []
    listed = ", ".join(map(repr, others[:3])) + (" ..." if len(others) > 3 else "")
    what = "precision, recall, f1 and scores of items count them, averages over labels and hamming-loss do not"
    return [f"{len(others):,} label{'s' * (len(others) > 1)} that no item of gold has ({listed}): {what}"]


def without_texts(given: Mapping[str, Factor], gold: Factor) -> dict[str, Factor]:
    """Leave out columns whose labels hardly repeat, none of which gold has, where others do."""
    known = known_labels(gold)
    labels = {name: known_labels(own) for name, own in given.items()}
    kept = {n: own for n, own in given.items() if 2 * len(labels[n]) <= len(own) or not known.isdisjoint(labels[n])}
    return kept or dict(given)
