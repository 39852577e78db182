"""Labels or label sets: one table with a gold column, or a gold file and one file for each system.

A cell with several labels is a list in JSON and Parquet, or a text such as `a|b` if requested.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.checks import are_sentences, describe_foreign_labels, match_numbers
from sigdask.counts.factors import Factor
from sigdask.counts.fields import SEPARATOR, Bools, Integers, join_labels, list_labels
from sigdask.counts.texts import ScopeNote, Texts
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import FILE_ORDER, RowOrder, align, reorder_column
from sigdask.formats.reading.columns import MISSING, is_number
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.replicates import select_one_sample
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.tables.bookkeeping import check_labels, remove_label_bookkeeping, select_systems
from sigdask.interface import spell
from sigdask.text import describe_items, format_count, format_list

DEFAULT_SEPARATOR = "|"
SEPARATOR_NAMES = {"comma": ",", "semicolon": ";", "space": " ", "pipe": DEFAULT_SEPARATOR}
"""Names of separators, since some characters have a meaning on a command line."""

TAG_PATTERN = re.compile(r"O|[BIESLU]-\S+")
"""Pattern of a chunk tag."""

SET_METRICS = ("subset-accuracy", "hamming-loss", "jaccard", "samples-precision", "samples-recall", "samples-f1")
"""Metrics that imply that items have sets of labels."""


def find_separator(options: Options, gold: Sequence[str]) -> str | None:
    """Return the separator of labels in a cell (requested, or default for set metrics), or None for one label."""
    requested = options.own.get("separator")
    if requested is not None:
        if not requested:
            raise InputError(
                "format labels: separator= is empty", remedy=f"give a character, or one of {', '.join(SEPARATOR_NAMES)}"
            )
        return SEPARATOR_NAMES.get(requested, requested)
    has_set_metric = any(metric.casefold().startswith(SET_METRICS) for metric in options.metrics)
    is_separated = has_set_metric and any(DEFAULT_SEPARATOR in cell for cell in Factor.from_values(gold).levels)
    return DEFAULT_SEPARATOR if is_separated else None


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
            "the gold labels are sequences of tags (O, B-...), one for each token, and neither a label nor a set "
            "of labels",
            remedy='write them as JSON lines, {"tags": ["O", "B-PER"]}, which are read as tagged sentences',
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
    labels = set(gold.levels)
    parts_by_cell = {cell: cell.split(DEFAULT_SEPARATOR) for cell in gold.levels.tolist() if DEFAULT_SEPARATOR in cell}
    cell = next((cell for cell, parts in parts_by_cell.items() if labels.issuperset(parts)), None)
    hint = f"{spell('format', f'labels:separator={DEFAULT_SEPARATOR}')} takes it for several"
    return [] if cell is None else [f"{cell!r} is read as one label; {hint}"]


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


CLEAR_GOLD_NAMES = ("gold", "gold_label", "true_label", "y_true")
"""Names of gold labels next to predictions."""

GOLD_NAMES = (*CLEAR_GOLD_NAMES, "reference", "references", "truth", "target", "label", "labels")
TYPE_NAMES = ("relation",)
"""Names of gold labels in files that hold only gold labels (TACRED)."""

ANSWER_NAMES = ("prediction", "predictions", "predicted", "predicted_label", "pred", "pred_label", "y_pred")
MISSING_MARKS = ("-", "-1")
"""Values of SNLI's gold column if its annotators did not agree, as text and as a number."""

PREDICTION_NAMES = (*ANSWER_NAMES, "output", "system", "label", "labels")


def read_labels(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read gold labels and predictions."""
    if gold is None and len(sources) == 1:
        return _read_one_table(read_table(sources[0].path, options.ignore), options)
    tables = [read_table(source.path, options.ignore) for source in sources]
    return build_label_counts(sources, tables, None if gold is None else read_table(gold, options.ignore), options)


def build_label_counts(
    sources: Sequence[Source], tables: Sequence[FileTable], gold: FileTable | None, options: Options
) -> Counts:
    """Build counts from one table for each system; gold labels are in a separate table or in each system's table."""
    if _has_several_labels(gold or tables[0], options):
        tables, gold = [*map(convert_label_lists, tables)], None if gold is None else convert_label_lists(gold)
    if gold is None:
        options = options.with_columns(gold=_find_common_gold(tables, options))
    gold_name = options.gold_column if gold is None else None
    tables = [select_one_sample(table, table.find_id_column(options), options, gold=gold_name) for table in tables]
    if gold is not None:
        gold = select_one_sample(gold, gold.find_id_column(options), options, gold=get_gold_column(gold, options))
    base_table = tables[0] if gold is None else gold
    other_tables = tables[1:] if gold is None else tables
    gold_column = get_gold_column(base_table, options)
    if gold_column not in base_table.nested:
        check_labels(base_table.path, gold_column, Factor.from_values(base_table.get_column(gold_column)), options)
    ids, orders, warnings = align(base_table, other_tables, options)
    if gold is None:
        orders = [FILE_ORDER, *orders]
        _check_same_gold(tables, orders, options)
    predictions: dict[str, Factor] = {}
    warnings += [text for table in (base_table, *other_tables) for text in _describe_guess(table, options)]
    for name, table, order in zip(list_system_names(sources), tables, orders, strict=True):
        column = get_prediction_column(table, options)
        predictions[name] = Factor.from_values(reorder_column(table.get_column(column), order))
        check_labels(table.path, column, predictions[name], options)
    gold_labels = Factor.from_values(base_table.get_column(gold_column))
    columns = LabelColumns(base_table, gold_labels, predictions, ids, np.asarray(base_table.lines))
    return _build_counts(columns, options, (list(tables), orders), warnings)


def _has_several_labels(table: FileTable, options: Options) -> bool:
    """Return whether gold labels are lists, or texts with a requested separator."""
    gold_column = options.gold_column or table.find_column(GOLD_NAMES)
    columns = [gold_column] if gold_column else table.list_system_columns(options)
    return "separator" in options.own or any(has_label_lists(table, column) for column in columns)


def _read_one_table(table: FileTable, options: Options) -> Counts:
    in_lists = _has_several_labels(table, options)
    table = convert_label_lists(table) if in_lists else table
    gold = options.gold_column or find_gold_column(table) or infer_gold_column(table, options)
    if gold is None and in_lists:
        gold = table.find_column(GOLD_NAMES)
    if gold is None:
        raise table.build_column_error(
            "no column 'gold'", f"{spell('columns', 'gold=COLUMN')}, or give a gold file with {spell('gold')}"
        )
    table = select_one_sample(table, table.find_id_column(options), options, gold=gold)
    gold_labels = Factor.from_values(table.get_column(gold))
    candidates = table.list_system_columns(options, gold)
    table = remove_label_bookkeeping(table, options, gold, candidates)
    systems = table.list_system_columns(options, gold)
    answers = [name for name in systems if name.lower() in ANSWER_NAMES]
    if not answers and gold.lower() not in CLEAR_GOLD_NAMES and infer_gold_column(table, options) == gold:
        answers = _find_prediction_columns(table, gold, options)
    if "systems" in options.own:
        answers = select_systems(table, options, systems)
    # the text next to the labels is not a system
    by_name = {name: Factor.from_values(table.get_column(name)) for name in answers or systems}
    for name, column in {gold: gold_labels, **by_name}.items():
        check_labels(table.path, name, column, options)
    predictions = by_name if "systems" in options.own else _remove_text_columns(by_name, gold_labels, options)
    check_not_sequences(gold_labels)
    if (mark := find_separator(options, gold_labels)) is not None or has_label_sets([gold_labels]):
        sets = {name: convert_to_sets(labels, mark, options.label_mapping) for name, labels in by_name.items()}
        gold_sets = convert_to_sets(gold_labels, mark, options.label_mapping)
        predictions = {name: by_name[name] for name in remove_text_sets(sets, gold_sets)}
    notes = [*table.notes, *_describe_roles(table, gold, predictions, systems)]
    columns = LabelColumns(table, gold_labels, predictions, table.get_ids(options), np.asarray(table.lines))
    return _build_counts(columns, options, ([], []), notes)


def infer_gold_column(table: FileTable, options: Options) -> str | None:
    """Return the column with a conventional gold name if other columns share its labels, else None."""
    name = table.find_column(GOLD_NAMES)
    if name is None or name in options.ignore or not _find_prediction_columns(table, name, options):
        return None
    return name


def _find_prediction_columns(table: FileTable, gold: str, options: Options) -> list[str]:
    """Return the columns of predictions, in which most cells are gold labels; none if gold labels hardly repeat."""
    if not table.header or gold in table.nested:
        return []
    gold_labels = Factor.from_values(table.columns[gold])
    if 2 * len(gold_labels.levels) > len(gold_labels):
        return []
    labels = {*gold_labels.levels, *options.label_mapping}
    predictions = []
    for name in table.list_system_columns(options, gold, *table.nested):
        column = Factor.from_values(table.columns[name])
        is_label = np.array([level in labels for level in column.levels])
        if 2 * int(np.count_nonzero(is_label[column.codes])) > len(column):
            predictions.append(name)
    return predictions


def _remove_text_columns(labels_by_name: dict[str, Factor], gold: Factor, options: Options) -> dict[str, Factor]:
    """Remove columns that hardly repeat and hold no gold label, unless all columns are such."""
    labels = {*gold.levels, *options.label_mapping}
    kept = {
        name: column
        for name, column in labels_by_name.items()
        if 2 * len(column.levels) <= len(column) or len(column) <= 2 or not labels.isdisjoint(column.levels)
    }
    return kept or labels_by_name


def _describe_roles(table: FileTable, gold: str, predictions: Collection[str], columns: Sequence[str]) -> list[str]:
    """Return a note on the role of each column where names alone do not show it."""
    aside = [name for name in columns if name not in predictions]
    if not aside and gold.lower() in CLEAR_GOLD_NAMES:
        return []
    others = f"; not a system: {describe_items(aside, 'column')}" if aside else ""
    names = ", ".join(map(repr, predictions))
    return [f"{table.path}: column {gold!r} holds gold labels, {names} predictions{others}"]


@dataclass(frozen=True, slots=True, eq=False)
class LabelColumns:
    """The gold labels of a table and the systems' labels of the same items, as they are written."""

    table: FileTable
    gold: Factor
    predictions: Mapping[str, Factor]
    ids: Texts | None
    lines: Integers

    def select(self, is_selected: Bools) -> LabelColumns:
        """Return the labels of some items."""
        predictions = {name: column[is_selected] for name, column in self.predictions.items()}
        ids = None if self.ids is None else self.ids[is_selected]
        return LabelColumns(self.table, self.gold[is_selected], predictions, ids, self.lines[is_selected])

    def check_filled(self, remedy: str) -> None:
        """Raise an error for an item without a label."""
        for labeller, column in (("gold", self.gold), *self.predictions.items()):
            if "" in column:
                index = int(np.argmax(column.equals_text("")))
                item = self.ids[index] if self.ids else f"line {self.lines[index]}"
                raise InputError(f"{labeller} has no label for item {item!r}; {remedy}", file=self.table.path)


def _build_counts(
    columns: LabelColumns, options: Options, files: tuple[list[FileTable], list[RowOrder]], warnings: list[str]
) -> Counts:
    table, gold = columns.table, columns.gold
    groups = {name: Factor.from_values(_get_group_column(name, table, files)) for name in options.groups}
    if table not in files[0]:
        groups |= _find_groups(table, gold, set(columns.predictions), options)
    check_not_sequences(gold)
    if (mark := find_separator(options, gold)) is not None or has_label_sets([gold, *columns.predictions.values()]):
        return _build_set_counts(columns, groups, mark, options, warnings)
    if (mark := _find_missing_mark(gold, columns.predictions.values(), options)) is not None:
        is_kept = ~gold.equals_text(mark)
        n_left_out = len(gold) - int(np.count_nonzero(is_kept))
        note = f"{table.path}: gold {mark!r} on {format_count(n_left_out, 'item')} is no label: left out"
        warnings, columns = [*warnings, note], columns.select(is_kept)
        groups = {name: column[is_kept] for name, column in groups.items()}
    columns.check_filled("every item needs one")
    mapped = options.label_mapping
    all_labels = {*columns.gold.levels}.union(*(column.levels for column in columns.predictions.values()))
    warnings = [*warnings, *options.describe_unused_labels(all_labels), *describe_possible_sets(columns.gold)]
    gold_labels = columns.gold.rename_levels(mapped)
    system_labels = {name: column.rename_levels(mapped) for name, column in columns.predictions.items()}
    system_labels, notes = match_numbers(gold_labels, system_labels)
    warnings = [*warnings, *notes, *_describe_texts(columns, options)]
    return Counts.from_labels(
        gold_labels,
        system_labels,
        ids=columns.ids,
        groups=groups,
        warnings=[*warnings, *describe_foreign_labels(gold_labels, system_labels)],
    )


def _describe_texts(columns: LabelColumns, options: Options) -> Iterator[ScopeNote]:
    """Yield a note if gold labels are sentences and no metric is named: outputs may be translations."""
    if not options.metrics and are_sentences(columns.gold):
        yield ScopeNote(
            f"{columns.table.path}: the gold labels are sentences, so an output is only right if it is the same "
            "text. For BLEU, WER and other metrics of texts, write each text on a line of its own: "
            f"{spell('format', 'segments')}"
        )


def _build_set_counts(
    columns: LabelColumns, groups: Mapping[str, Factor], mark: str | None, options: Options, warnings: list[str]
) -> Counts:
    """Return counts of items that each have a set of labels."""
    if mark is None:
        columns.check_filled("an item without any has []")
    elif "separator" not in options.own:
        reason = f"{mark!r} separates the labels of a cell, as the chosen metrics need"
        warnings = [*warnings, f"{columns.table.path}: {reason}"]
    written = (columns.gold, *columns.predictions.values())
    written_sets = [convert_to_sets(column, mark, {}) for column in written]
    unused = options.describe_unused_labels(set().union(*map(list_labels, written_sets)))
    gold_sets, *sets = (convert_to_sets(column, mark, options.label_mapping) for column in written)
    system_sets = dict(zip(columns.predictions, sets, strict=True))
    return Counts.from_label_sets(
        gold_sets,
        system_sets,
        ids=columns.ids,
        groups=groups,
        warnings=[*warnings, *unused, *describe_unknown_labels(gold_sets, system_sets)],
    )


def _find_missing_mark(gold: Factor, predictions: Iterable[Factor], options: Options) -> str | None:
    """Return the mark for "no gold label" in SNLI data: "-" among words, or -1 among class numbers.

    It is no mark if a system gives it as a label, or --map names it.
    """
    levels = set(gold.levels)
    mark = next((mark for mark in MISSING_MARKS if mark in levels), None)
    if mark is None or mark in options.label_mapping or any(mark in column for column in predictions):
        return None
    labels = levels - {mark}
    are_words = all(len(label) > 1 and label[0].isalpha() for label in labels)
    are_class_numbers = labels == {str(k) for k in range(len(labels))}
    return mark if len(labels) > 1 and (are_words if mark == "-" else are_class_numbers and len(labels) > 2) else None


def _find_groups(table: FileTable, gold: Factor, systems: Collection[str], options: Options) -> dict[str, Factor]:
    """Return the columns of a gold file that group its items, to report dependence in groups.

    Columns of texts that hardly repeat and columns of measurements are left out, and so is a column that follows
    from the gold label.
    """
    groups = {}
    aside = (table.find_id_column(options), *options.groups, *options.ignore, *systems)
    for name in table.list_other_columns(*aside, *table.nested):
        column = Factor.from_values(table.columns[name])
        n_groups = len(column.levels)
        if not 2 <= n_groups <= table.n_rows / 2 or "" in column or _are_measurements(column.levels):
            continue
        pair_codes = gold.codes.astype(np.int64) * n_groups + column.codes
        if len(np.unique(pair_codes)) != len(gold.levels):  # else it follows from the gold label
            groups[name] = column
    return groups


def _are_measurements(column: Collection[str]) -> bool:
    """Return whether cells are numbers, not all of them whole."""
    values = set(column)
    return all(map(is_number, values)) and not all(value.lstrip("-").isdecimal() for value in values - MISSING)


def _get_group_column(name: str, base_table: FileTable, files: tuple[list[FileTable], list[RowOrder]]) -> Sequence[str]:
    """Return a grouping column of the gold file, or else of a system's file."""
    if name not in base_table.columns:
        for table, order in zip(*files, strict=True):
            if name in table.columns:
                return reorder_column(table.get_column(name), order)
    return base_table.get_column(name)


def find_gold_column(table: FileTable) -> str | None:
    """Return the gold column of a prediction table; a name such as `label` counts only with a prediction column."""
    gold_column = table.find_column(CLEAR_GOLD_NAMES)
    if gold_column is None and (answer := table.find_column(ANSWER_NAMES)) is not None:
        gold_column = table.find_column(GOLD_NAMES)
        if gold_column is not None and gold_column not in table.nested and table.is_numeric(answer):
            texts = Factor.from_values(table.columns[gold_column])
            is_empty = list(texts.levels) == [""]  # as without references
            if is_empty or (2 * len(texts.levels) > len(texts) and not table.is_numeric(gold_column)):
                return None  # references next to the scores of a metric (MetricX)
    return gold_column


def get_gold_column(table: FileTable, options: Options) -> str:
    """Return the requested gold column of a gold file, or the one found by its name or position."""
    if options.gold_column is not None:
        table.get_column(options.gold_column)
        return options.gold_column
    named_column = table.find_column((*GOLD_NAMES, *TYPE_NAMES))
    if named_column == table.find_id_column(options):
        named_column = None
    return named_column or _get_only_column(
        table, options, "gold labels", f"{spell('columns', 'gold=COLUMN')}", options.groups
    )


def get_prediction_column(table: FileTable, options: Options) -> str:
    """Return the requested prediction column of a system's file, or the one found by its name or position."""
    if options.prediction_column is not None and (table.header or len(table.columns) > 1):
        table.get_column(options.prediction_column)
        return options.prediction_column
    prediction_column = table.find_column(PREDICTION_NAMES)
    if prediction_column is not None and prediction_column != options.gold_column:
        return prediction_column
    aside = (*options.groups, *([options.gold_column] if options.gold_column and len(table.columns) > 2 else []))
    return _get_only_column(table, options, "predictions", f"{spell('columns', 'prediction=COLUMN')}", aside)


def _get_only_column(table: FileTable, options: Options, noun: str, option: str, aside: Sequence[str]) -> str:
    candidates = table.list_other_columns(table.find_id_column(options), *aside, *options.ignore)
    if candidates and not table.header:
        return _find_repeating_column(table, candidates)
    if len(candidates) != 1:
        raise table.build_column_error(f"which column holds {noun}?", option)
    return candidates[0]


def _find_repeating_column(table: FileTable, columns: Sequence[str]) -> str:
    """Return the last column whose cells repeat like labels, or the last column if there is none."""
    cells = ((column, Factor.from_values(table.columns[column])) for column in reversed(columns))
    return next((column for column, labels in cells if 2 * len(labels.levels) <= len(labels)), columns[-1])


def _describe_guess(table: FileTable, options: Options) -> list[str]:
    """Return a note on the column taken as labels in a table without a header."""
    candidates = table.list_other_columns(table.find_id_column(options), *options.ignore)
    is_named = table.header or options.gold_column or options.prediction_column
    if is_named or len(candidates) < 2 or len(table.columns) < 3:
        return []
    column = _find_repeating_column(table, candidates)
    return [
        f"{table.path}: has no header; column {column} is taken for labels (leave others out with {spell('ignore')})"
    ]


def _find_common_gold(tables: Sequence[FileTable], options: Options) -> str:
    """Return the name of the gold column, which the file of each system must have."""
    name = options.gold_column or find_gold_column(tables[0])
    if name is None:
        columns = format_list([*tables[0].columns], 8)
        remedy = (
            f"give {spell('gold', 'FILE')}, or {spell('columns', 'gold=COLUMN')} if each file holds them (columns: "
            f"{columns})"
        )
        raise InputError(f"no gold labels; {remedy}", file=tables[0].path)
    for table in tables:
        table.get_column(name)
    return name


def _check_same_gold(tables: Sequence[FileTable], orders: Sequence[RowOrder], options: Options) -> None:
    name = options.gold_column or ""
    expected = Texts.from_values(tables[0].get_column(name))
    for table, order in zip(tables[1:], orders[1:], strict=True):
        gold_labels = reorder_column(table.get_column(name), order)
        if (is_same := gold_labels.equals_column(expected)).all():
            continue
        k = int(np.argmin(is_same))
        row = int(np.arange(len(gold_labels))[order][k])
        raise InputError(
            f"gold {gold_labels[k]!r}, but {expected[k]!r} in {tables[0].path}, line {tables[0].lines[k]}; the "
            f"files must agree. Are {name!r} predictions? Give the gold labels with {spell('gold', 'FILE')}",
            file=table.path,
            line=table.lines[row],
        )
