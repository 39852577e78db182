"""Gold values and predictions in tables: which columns hold them, by their names, and the rows of each item.

They are in one table with a gold column and a column for each system, in rows of item, system and prediction, or in a
gold file and one file for each system.

Labels or label sets: one table with a gold column, or a gold file and one file for each system.

A cell with several labels is a list in JSON and Parquet, or a text such as `a|b` if the option `separator` says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.fields import SEPARATOR, Bools, join_labels, list_labels
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import FILE_ORDER, RowOrder, align, check_types, describe_missing, reorder_column
from sigdask.formats.reading.columns import NUMBER
from sigdask.formats.reading.files import parse_header, read_head
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.roles import FileKind, Roles, build_roles_error, name_role, resolve_roles
from sigdask.interface import spell
from sigdask.text import format_count, format_list

Prepare = Callable[[FileTable], FileTable]
"""Function that converts the columns of a table, such as lists of labels."""


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Gold values, and the predictions of systems for the same items.

    Attributes
    ----------
    table : FileTable
        Table with the gold column.
    gold : str
        The gold column.
    systems : mapping of str to (FileTable, str, row order)
        For each system its table, its column, and the row of each item.
    ids : Texts or None
        Item ids, None by position.
    notes : list of str
        Notes on the columns and rows.
    groups : tuple of str
        Columns that are units or subsets, by their names or by the options.
    """

    table: FileTable
    gold: str
    systems: Mapping[str, tuple[FileTable, str, RowOrder]]
    ids: Texts | None
    notes: list[str]
    groups: tuple[str, ...] = ()

    def read_columns(self) -> tuple[Texts, dict[str, Texts]]:
        """Return the gold labels, and each system's labels of the same items, "" where it has none."""
        gold = Texts.from_values(self.table.get_column(self.gold)).encode()
        return gold, {
            name: Texts.from_values(reorder_column(table.get_column(column), order)).encode()
            for name, (table, column, order) in self.systems.items()
        }

    def read_groups(self) -> dict[str, Texts]:
        """Return the columns that are units or subsets, of the gold table or else of a system's."""
        return {name: Texts.from_values(self._get_group(name)).encode() for name in self.groups}

    def _get_group(self, name: str) -> Sequence[str]:
        if name not in self.table.columns:
            for table, _, order in self.systems.values():
                if name in table.columns:
                    return reorder_column(table.get_column(name), order)
        return self.table.get_column(name)

    def find_present(self, n_items: int) -> Bools | None:
        """Return whether each system has each item, shape (n_items, n_systems), or None if all have."""
        has = np.ones((n_items, len(self.systems)), np.bool_)
        for k, (_, _, order) in enumerate(self.systems.values()):
            if not isinstance(order, slice):
                has[:, k] = order >= 0
        return None if has.all() else has


def read_predictions(sources: Sequence[Source], gold: Path | None, options: Options, prepare: Prepare) -> Predictions:
    """Read gold values and predictions from the columns that have these roles by their names or by the options."""
    tables = [prepare(_read_file(source.path, options)) for source in sources]
    if gold is not None:
        gold_table = prepare(_read_file(gold, options))
        options = _add_groups([gold_table, *tables], options)
        reference = gold_table, find_gold_column(gold_table, options, "gold")
        if len(tables) == 1 and (system := _find_row_systems(tables[0], options)):
            return _join_rows(sources[0], tables[0], system, options, reference)
        return join_tables(sources, tables, reference, options)
    options = _add_groups(tables, options)
    if len(tables) > 1:
        return join_tables(sources, tables, None, options)
    (table,) = tables
    column = find_gold_column(table, options)
    roles = resolve_roles(table, options)
    if (system := roles.get("system")) is not None and "systems" not in options.own:
        if not (roles.unknown or "prediction" in roles):
            problem = f"column {system!r} names systems, and no column holds predictions"
            is_long = _find_row_systems(table, options) is not None
            ways = [spell("gold", "FILE"), "a column `gold`"] if is_long else [spell("columns", f"prediction={system}")]
            raise build_roles_error(table, problem, ways)
        return _join_rows(sources[0], table, system, options, None)
    systems = _list_systems(table, roles, options)
    named = sources[0].name if len(systems) == 1 else None  # a name is one system
    by_system = {named or name: (table, name, FILE_ORDER) for name in systems}
    return Predictions(table, column, by_system, table.get_ids(options), [], options.groups)


def _add_groups(tables: Sequence[FileTable], options: Options) -> Options:
    """Return the options with the columns that are units or subsets by their names."""
    named = (column for table in tables for column in resolve_roles(table, options).list_all("unit", "subset"))
    return replace(options, groups=tuple(dict.fromkeys((*options.groups, *named))))


def _read_file(path: Path, options: Options) -> FileTable:
    """Read a table, or a list with one value on each line, which may contain commas.

    Raises
    ------
    InputError
        The first line may be a value with a comma or a header, since none of its parts is the name of a role.
    """
    is_stated = options.own.get("list") == "yes" or read_head(path).is_json
    head = "" if is_stated else next(iter(read_head(path).lines), "")
    names = parse_header(head)
    if len(names) > 1 and not options.columns and not any(map(name_role, names)):
        ways = ",".join(f"{role}={name}" for role, name in zip(("item", "prediction"), names, strict=False))
        raise InputError(
            f"{head[:60]!r} may be a value or the names of columns",
            file=path,
            line=1,
            remedy=f"if each line is one value, {spell('format', 'labels:list=yes')}. If columns have these names, say "
            f"what they are: {spell('columns', ways)}",
        )
    return read_table(path, options.ignore)


def find_gold_column(table: FileTable, options: Options, part: FileKind | None = None) -> str:
    """Return the column with the role gold, or the only one without a role in a gold file."""
    roles = resolve_roles(table, options, part)
    if options.gold_column is not None:
        return options.gold_column
    others = roles.list_all("gold") or roles.unknown or roles.list_all("prediction") or roles.list_all("score")
    columns = others if part == "gold" else roles.list_all("gold")
    if len(columns) == 1:
        return columns[0]
    ways = [spell("columns", f"gold={column}") for column in others]
    ways += [] if part == "gold" else [spell("gold", "FILE")]
    raise build_roles_error(table, "no column is the gold standard by its name", ways)


def _find_prediction_column(table: FileTable, options: Options, gold: str | None) -> str:
    """Return the column of predictions in a system's file: by its role, or the only one besides the item."""
    given = options.prediction_column
    roles = resolve_roles(table, options if gold else options.with_columns(gold=None), "system")
    if given is not None and (table.header or len(table.columns) > 1):
        table.get_column(given)
        return given
    columns = [column for column in roles.list_all("prediction") if column != gold]
    columns = columns or [column for column in (*roles.unknown, *roles.list_all("gold")) if column != gold]
    columns = columns or [*roles.list_all("score")]
    if len(columns) == 1:
        return columns[0]
    ways = [spell("columns", f"prediction={column}") for column in columns or roles.list_all("text")]
    ways = ways or [spell("gold", "FILE") if gold else spell("columns", "prediction=COLUMN")]
    raise build_roles_error(table, "no single column holds predictions", ways)


def _list_systems(table: FileTable, roles: Roles, options: Options) -> Sequence[str]:
    """Return the columns of systems in a table with a gold column: those of predictions, or those without a role."""
    if requested := options.own.get("systems"):
        return table.list_columns(requested)
    predictions, unknown = roles.list_all("prediction"), [*roles.unknown]
    if predictions and unknown and "prediction" not in options.columns:
        leave_out = spell("ignore", *unknown)
        compare = spell("columns", f"prediction={'+'.join((*predictions, *unknown))}")
        problem = f"{format_list([*map(repr, unknown)])} beside predictions may be others, or no predictions"
        raise build_roles_error(table, problem, [leave_out, compare])
    if not (predictions or unknown):
        raise build_roles_error(table, "no column holds predictions", [spell("columns", "prediction=COLUMN")])
    return predictions or unknown


def join_tables(
    sources: Sequence[Source], tables: Sequence[FileTable], gold: tuple[FileTable, str] | None, options: Options
) -> Predictions:
    """Return the predictions of one table for each system, which has the gold values too if there is no gold table."""
    own_golds = [find_gold_column(table, options) if gold is None else None for table in tables]
    columns = [_find_prediction_column(table, options, own) for table, own in zip(tables, own_golds, strict=True)]
    if gold is not None:
        base, gold_column = gold
        ids, orders, notes = align(base, tables, options, may_lack=True)
    else:
        base, gold_column = tables[0], own_golds[0] or ""
        ids, others, notes = align(base, tables[1:], options)
        orders = [FILE_ORDER, *others]
        _check_same_gold(tables, [own or "" for own in own_golds], orders)
    systems = dict(zip(list_system_names(sources), zip(tables, columns, orders, strict=True), strict=True))
    return Predictions(base, gold_column, systems, ids, notes, options.groups)


def _find_row_systems(table: FileTable, options: Options) -> str | None:
    """Return the column of systems if a table has a row for each item and system: if items occur in several rows."""
    roles = resolve_roles(table, options, "system")
    item, system = options.id_column or roles.get("item"), roles.get("system")
    return None if item is None or Texts.from_values(table.get_column(item)).are_unique else system


def _join_rows(
    source: Source, table: FileTable, system: str, options: Options, gold: tuple[FileTable, str] | None
) -> Predictions:
    """Return the predictions of rows of item, system, prediction, and gold value if gold has no table of its own."""
    by_system = table.get_names(system, "the name of a system").encode()
    names = [*dict.fromkeys(map(str, by_system))]
    tables = [table.select_rows(by_system.equals(name)) for name in names]
    inner = replace(options, ignore=(*options.ignore, system)).with_columns(system=None)
    tables = [replace(part, columns={k: v for k, v in part.arrays.items() if k != system}) for part in tables]
    return join_tables([replace(source, name=name) for name in names], tables, gold, inner)


def _check_same_gold(tables: Sequence[FileTable], columns: Sequence[str], orders: Sequence[RowOrder]) -> None:
    """Raise an error if tables differ in their gold columns."""
    expected = Texts.from_values(tables[0].get_column(columns[0]))
    for table, column, order in zip(tables[1:], columns[1:], orders[1:], strict=True):
        gold = reorder_column(table.get_column(column), order)
        if (is_same := gold.equals(expected)).all():
            continue
        k = int(np.argmin(is_same))
        row = int(np.arange(len(gold))[order][k])
        raise InputError(
            f"gold {gold[k]!r}, but {expected[k]!r} in {tables[0].path}, line {tables[0].lines[k]}; the files must "
            f"agree. Are {column!r} predictions? Give the gold standard with {spell('gold', 'FILE')}",
            file=table.path,
            line=table.lines[row],
        )


NO_NUMBER = "found no number; write one, or remove the item from every file"


def read_numbers(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read predicted numbers from one table with a gold column, or from a gold file and one file for each system."""
    options = replace(options, missing=None)
    predictions = read_predictions(sources, gold, options, _order_submission)
    return Counts.from_numbers(
        predictions.table.get_complete_numbers(predictions.gold, NO_NUMBER),
        {
            name: np.asarray(table.get_complete_numbers(column, NO_NUMBER)[order])
            for name, (table, column, order) in predictions.systems.items()
        },
        ids=predictions.ids,
        groups=predictions.read_groups(),
        warnings=predictions.notes,
    )


SUBMISSION_HEAD = 3
"""Lines before the rows of a submission to WMT's quality estimation task: size in bytes, parameters, models."""


def _order_submission(table: FileTable) -> FileTable:
    """Return the numbers of a submission to WMT's quality estimation task by their indices, other tables unchanged.

    A row has the language pair, the method, the index of the segment, and the number.
    """
    if table.header or len(table.columns) != 1:
        return table
    [(name, column)] = table.columns.items()
    cells = [cell.split("\t") for cell in column]
    head, rows = cells[:SUBMISSION_HEAD], cells[SUBMISSION_HEAD:]
    if not rows or not all(cell[0].isdigit() for cell in head) or any(len(row) != 4 for row in rows):
        return table
    lines = table.lines[SUBMISSION_HEAD:]
    number_by_index = {index: (number, line) for (_, _, index, number), line in zip(rows, lines, strict=True)}
    indices = [str(k) for k in range(len(rows))]
    if lacking := [index for index in indices if index not in number_by_index]:
        remedy = f"give {format_count(len(rows), 'row')} the indices 0 to {len(rows) - 1:,}, each once"
        raise InputError(f"no row has the index {lacking[0]}", file=table.path, remedy=remedy)
    numbers, lines = zip(*(number_by_index[index] for index in indices), strict=True)
    return replace(table, columns={name: numbers}, lines=lines)


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
            problem = f"{name!r} is a list of labels for each item, but {predictions.gold!r} is one label"
            raise InputError(problem, file=predictions.table.path, remedy=f"leave it out: {spell('ignore', name)}")
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


def _holds_lists(column: Texts) -> bool:
    return any(level.startswith(SEPARATOR) for level in column.levels)


def _get_separator(options: Options) -> str | None:
    """Return the requested separator of several labels in a cell, or None for one label."""
    requested = options.own.get("separator")
    if requested == "":
        raise InputError(
            "format labels: separator= is empty", remedy=f"give a character, or one of {', '.join(SEPARATOR_NAMES)}"
        )
    return requested and SEPARATOR_NAMES.get(requested, requested)


def _convert_to_sets(column: Texts, mark: str | None, mapped: Mapping[str, str]) -> Texts:
    """Convert cells to label sets joined by `SEPARATOR`, with the label map applied."""
    names = {}
    for cell in column.levels.tolist():
        if cell.startswith(SEPARATOR):
            labels = cell[1:].split(SEPARATOR) if len(cell) > 1 else []
        else:
            labels = [piece.strip() for piece in cell.split(mark) if piece.strip()] if mark else [cell]
        names[cell] = join_labels(mapped.get(label, label) for label in labels)
    return column.rename_levels(names)


def _check_not_sequences(gold: Texts) -> None:
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


def _check_not_real(path: Path, gold: Texts) -> None:
    """Raise an error for real numbers as gold labels."""
    levels = [level for level in gold.levels.tolist() if level]
    if all(map(NUMBER.fullmatch, levels)) and not all(float(level).is_integer() for level in levels):
        raise InputError(
            f"gold holds real numbers ({gold[0]}, ...), not labels",
            file=path,
            remedy=f"name a metric of numbers, such as {spell('metrics', 'MAE')} or {spell('metrics', 'AUC')}. If they "
            f"are labels, {spell('format', 'labels')}",
        )


def _check_filled(predictions: Predictions, systems: Mapping[str, Texts], gold: Texts, remedy: str) -> None:
    """Raise an error for an item without a label, other than one whose row a system lacks."""
    present = predictions.find_present(len(gold))
    for k, (labeller, column) in enumerate((("gold", gold), *systems.items())):
        is_empty = column.equals("")
        if present is not None and k:
            is_empty &= present[:, k - 1]
        if is_empty.any():
            index = int(is_empty.argmax())
            item = predictions.ids[index] if predictions.ids else f"line {predictions.table.lines[index]}"
            table = predictions.systems[labeller][0] if k else predictions.table
            problem = f"{labeller} has no label for item {item!r} ({is_empty.sum():,} in total)"
            raise InputError(problem, file=table.path, remedy=remedy)
