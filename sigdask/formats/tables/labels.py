"""Labels or label sets: one table with a gold column, or a gold file and one file for each system.

A cell with several labels is a list in JSON and Parquet, or a text such as `a|b` if the option `separator` says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.counts.factors import Factor
from sigdask.counts.fields import SEPARATOR, join_labels, list_labels
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import describe_missing
from sigdask.formats.reading.columns import NUMBER
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.tables import FileTable
from sigdask.formats.reading.types_of_gold import check_types
from sigdask.formats.tables.predictions import Predictions, read_predictions
from sigdask.interface import spell

SEPARATOR_NAMES = {"comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}
"""Names of separators, since some characters have a meaning on a command line."""

LIST_PATTERN = re.compile(r"""\[\s*(['"].*['"])?\s*\]""")
"""Pattern of a list in JSON or Python syntax."""

TAG_PATTERN = re.compile(r"O|[BIESLU]-\S+")
"""Pattern of a chunk tag."""


def read_labels(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read gold labels and predictions."""
    return build_label_counts(read_predictions(sources, gold, options, convert_label_lists), options)


def build_label_counts(predictions: Predictions, options: Options) -> Counts:
    """Return the counts of gold labels and predictions, one label for each item or several."""
    gold, systems = predictions.read_columns()
    _check_not_sequences(gold)
    if options.is_detected:
        _check_not_real(predictions.table.path, gold)
    mark = _get_separator(options)
    columns = (gold, *systems.values())
    are_sets = mark is not None or _holds_lists(gold)
    for name, column in systems.items():
        if not are_sets and _holds_lists(column):
            raise InputError(
                f"{name!r} is a list of labels for each item, but {predictions.gold!r} is one label",
                file=predictions.table.path,
                remedy=f"leave it out: {spell('ignore', name)}",
            )
    if mark is None:
        _check_filled(predictions, systems, gold, "an item without any has []" if are_sets else "every item needs one")
    written = [_convert_to_sets(column, mark, {}) for column in columns] if are_sets else columns
    options.check_used_labels(set().union(*(list_labels(column) if are_sets else column.levels for column in written)))
    names = options.label_mapping
    gold, *mapped = (
        _convert_to_sets(column, mark, names) if are_sets else column.rename_levels(names) for column in columns
    )
    systems = dict(zip(systems, mapped, strict=True))
    known, *used = (sorted(list_labels(c)) if are_sets else [label for label in c if label] for c in (gold, *mapped))
    own = dict(zip(systems, used, strict=True))
    unknown = check_types(predictions.table.path, known, own, "labels", "values")
    build = Counts.from_label_sets if are_sets else Counts.from_labels
    counts = build(
        gold,
        systems,
        ids=predictions.ids,
        groups=predictions.read_groups(),
        warnings=[*predictions.notes, *unknown],
    )
    present = predictions.find_present(len(gold))
    counts = replace(counts, scope=(*counts.scope, *describe_missing(present, counts.systems, options)))
    # Under "zero" an item without a prediction is wrong.
    return replace(counts, present=present) if options.missing == "pairwise" else counts


def convert_label_lists(table: FileTable) -> FileTable:
    """Return the table with text cells in place of lists of single values."""
    lists = {name: column for name, column in table.nested.items() if _are_lists(column)}
    if not lists:
        return table
    cells = {
        name: ["" if labels is None else SEPARATOR + join_labels(labels) for labels in column]
        for name, column in lists.items()
    }
    nested = {name: column for name, column in table.nested.items() if name not in lists}
    return replace(table, columns={**table.arrays, **cells}, nested=nested)


def _are_lists(cells: Sequence[Any]) -> bool:
    return all(cell is None or (isinstance(cell, list) and all(map(_is_label, cell))) for cell in cells)


def _is_label(value: Any) -> bool:
    return isinstance(value, str | int) and SEPARATOR not in str(value)


def _holds_lists(column: Factor) -> bool:
    return any(level.startswith(SEPARATOR) for level in column.levels)


def _get_separator(options: Options) -> str | None:
    """Return the requested separator of several labels in a cell, or None for one label."""
    requested = options.own.get("separator")
    if requested == "":
        raise InputError(
            "format labels: separator= is empty", remedy=f"give a character, or one of {', '.join(SEPARATOR_NAMES)}"
        )
    return requested and SEPARATOR_NAMES.get(requested, requested)


def _convert_to_sets(column: Factor, mark: str | None, mapped: Mapping[str, str]) -> Factor:
    """Convert cells to label sets joined by `SEPARATOR`, with the label map applied."""
    names = {}
    for cell in column.levels.tolist():
        if cell.startswith(SEPARATOR):
            labels = cell[1:].split(SEPARATOR) if len(cell) > 1 else []
        else:
            labels = [piece.strip() for piece in cell.split(mark) if piece.strip()] if mark else [cell]
        names[cell] = join_labels(mapped.get(label, label) for label in labels)
    return column.rename_levels(names)


def _check_not_sequences(gold: Factor) -> None:
    """Raise an error if gold cells are lists as text, or the tags of sentences, whose order would be lost in sets."""
    if (filled := [*filter(None, gold.levels.tolist())]) and all(map(LIST_PATTERN.fullmatch, filled)):
        raise InputError(
            f"the gold labels are lists as text ({filled[0]})",
            remedy='write them as JSON lines, {"id": 1, "gold": ["A", "B"]}, or as A|B with '
            f"{spell('format', 'labels:separator=pipe')}",
        )
    cells = (cell.replace(SEPARATOR, " ").split() for cell in gold.levels.tolist())
    tags = {tag for cell in cells if len(cell) > 1 for tag in cell}
    if "O" in tags and any(tag.startswith("B-") for tag in tags) and all(map(TAG_PATTERN.fullmatch, tags)):
        raise InputError(
            "the gold labels are sequences of tags (O, B-...), one for each token, and neither a label nor a set "
            "of labels",
            remedy='write them as JSON lines, {"tokens": ["I", "Ann"], "tags": ["O", "B-PER"]}, which are read as '
            "tagged sentences",
        )


def _check_not_real(path: Path, gold: Factor) -> None:
    """Raise an error for real numbers as gold labels."""
    levels = [level for level in gold.levels.tolist() if level]
    if all(map(NUMBER.fullmatch, levels)) and not all(float(level).is_integer() for level in levels):
        raise InputError(
            f"gold holds real numbers ({gold[0]}, ...), not labels",
            file=path,
            remedy=f"name a metric of numbers, such as {spell('metrics', 'MAE')} or {spell('metrics', 'AUC')}. If they "
            f"are labels, {spell('format', 'labels')}",
        )


def _check_filled(predictions: Predictions, systems: Mapping[str, Factor], gold: Factor, remedy: str) -> None:
    """Raise an error for an item without a label, other than one whose row a system lacks."""
    present = predictions.find_present(len(gold))
    for k, (labeller, column) in enumerate((("gold", gold), *systems.items())):
        is_empty = column.equals("")
        if present is not None and k:
            is_empty &= present[:, k - 1]
        if is_empty.any():
            index = int(is_empty.argmax())
            item = predictions.ids[index] if predictions.ids else f"line {predictions.table.lines[index]}"
            raise InputError(
                f"{labeller} has no label for item {item!r} ({is_empty.sum():,} in total); {remedy}",
                file=predictions.table.path,
            )
