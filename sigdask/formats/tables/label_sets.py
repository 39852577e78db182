"""Several labels in a cell: lists in JSON and Parquet, or texts such as `a|b` if requested."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sigdask.counts.factors import Factor
from sigdask.counts.label_sets import SEPARATOR, join_labels, list_labels
from sigdask.errors import InputError
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import FileTable

DEFAULT_SEPARATOR = "|"
SEPARATOR_NAMES = {"comma": ",", "semicolon": ";", "space": " ", "pipe": DEFAULT_SEPARATOR}
"""Separators that have names, since some mean something else on a command line."""

TAG_PATTERN = re.compile(r"O|[BIESLU]-\S+")
"""A tag of a chunk."""

SET_METRICS = ("subset-accuracy", "hamming-loss", "jaccard", "samples-precision", "samples-recall", "samples-f1")
"""Metrics that are asked for where items have sets of labels alone."""


def find_separator(options: Options, gold: Sequence[str]) -> str | None:
    """Return the separator of labels in a cell (requested, or default for set metrics), or None for one label."""
    requested = options.own.get("separator")
    if requested is not None:
        if not requested:
            raise InputError(f"format labels: separator= is empty; give a mark, or one of {', '.join(SEPARATOR_NAMES)}")
        return SEPARATOR_NAMES.get(requested, requested)
    has_set_metric = any(metric.casefold().startswith(SET_METRICS) for metric in options.metrics)
    return (
        DEFAULT_SEPARATOR
        if has_set_metric and any(DEFAULT_SEPARATOR in cell for cell in Factor.from_values(gold).levels)
        else None
    )


def convert_label_lists(table: FileTable) -> FileTable:
    """Convert columns of lists of single values to text cells; other nested columns stay."""
    lists = {name: cells for name, cells in table.nested.items() if _are_labels(cells)}
    if not lists:
        return table
    cells = {
        name: ["" if labels is None else SEPARATOR + join_labels(labels) for labels in column]
        for name, column in lists.items()
    }
    nested = {name: column for name, column in table.nested.items() if name not in lists}
    return replace(table, columns={**table.columns, **cells}, nested=nested)


def has_label_lists(table: FileTable, name: str | None) -> bool:
    """Return whether a column holds lists of single values."""
    return name is not None and name in table.nested and _are_labels(table.nested[name])


def _are_labels(cells: Sequence[Any]) -> bool:
    return all(cell is None or (isinstance(cell, list) and all(map(_is_label, cell))) for cell in cells)


def _is_label(value: Any) -> bool:
    return isinstance(value, str | int) and SEPARATOR not in str(value)


def has_label_sets(columns: Sequence[Factor]) -> bool:
    """Return whether any cell of the columns was a list of labels in its file."""
    return any(level.startswith(SEPARATOR) for column in columns for level in column.levels)


def check_not_sequences(gold: Factor) -> None:
    """Raise an error if gold cells are the tag sequences of sentences, whose order would be lost in label sets."""
    cells = (cell.replace(SEPARATOR, " ").split() for cell in gold.levels.tolist())
    tags = {tag for cell in cells if len(cell) > 1 for tag in cell}
    if "O" in tags and any(tag.startswith("B-") for tag in tags) and all(map(TAG_PATTERN.fullmatch, tags)):
        raise InputError(
            "the gold labels are sequences of tags (O, B-...), one for each token, and neither a label nor a set of "
            'labels; write them as JSON lines, {"tags": ["O", "B-PER"]}, which are read as tagged sentences'
        )


def convert_to_sets(column: Factor, mark: str | None, mapped: Mapping[str, str]) -> Factor:
    """Convert cells to label sets joined by `BETWEEN`, with the label map applied."""
    names = {}
    for cell in column.levels.tolist():
        if cell.startswith(SEPARATOR):
            labels = cell[1:].split(SEPARATOR) if len(cell) > 1 else []
        else:
            labels = [piece.strip() for piece in cell.split(mark)] if mark else [cell]
        names[cell] = join_labels(mapped.get(label, label) for label in labels)
    return column.rename_levels(names)


def describe_possible_sets(gold: Factor) -> list[str]:
    """Return a note on cells that look like several labels, each a label elsewhere."""
    cells = gold.levels.tolist()
    labels = set(cells)
    combined = [
        cell for cell in cells if DEFAULT_SEPARATOR in cell and labels.issuperset(cell.split(DEFAULT_SEPARATOR))
    ]
    if not combined:
        return []
    return [
        f"{combined[0]!r} is read as one label; --format 'labels:separator={DEFAULT_SEPARATOR}' takes it for several"
    ]


def describe_unknown_labels(gold: Factor, predictions: Mapping[str, Factor]) -> list[str]:
    """Return a warning on labels that gold lacks; averages over labels omit them."""
    gold_labels = list_labels(gold)
    unknown = sorted({label for column in predictions.values() for label in list_labels(column)} - gold_labels)
    if not unknown:
        return []
    examples = ", ".join(map(repr, unknown[:3])) + (" ..." if len(unknown) > 3 else "")
    effect = "precision, recall, f1 and scores of items count them, averages over labels and hamming-loss do not"
    return [f"{len(unknown):,} label{'s' * (len(unknown) > 1)} that no item of gold has ({examples}): {effect}"]


def remove_text_sets(label_columns: Mapping[str, Factor], gold: Factor) -> dict[str, Factor]:
    """Remove columns whose labels hardly repeat and never occur in gold, unless all are such."""
    gold_labels = list_labels(gold)
    labels = {name: list_labels(column) for name, column in label_columns.items()}
    selected = {
        n: column
        for n, column in label_columns.items()
        if 2 * len(labels[n]) <= len(column) or not gold_labels.isdisjoint(labels[n])
    }
    return selected or dict(label_columns)
