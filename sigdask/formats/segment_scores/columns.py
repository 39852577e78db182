"""Segment scores of several metrics, one column for each metric: `score[NAME]`.

Takes files of one system with a column a metric (JSON lines of id and metrics, JSON of metric to list as BERTScore and
`evaluate` return it, tables), what `bert-score -s` and `comet-score` print, and COMET's JSON, which may hold several
systems. Metrics are compared that every file has; other columns are groups where they repeat and agree, else left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.factors import Factor
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import FILE_ORDER, RowOrder, align, get_group_columns, reorder_column
from sigdask.formats.reading.averages import build_score_counts
from sigdask.formats.reading.averages_only import is_metric_name
from sigdask.formats.reading.options import Options, Source, list_row_systems
from sigdask.formats.reading.replicates import select_one_sample
from sigdask.formats.reading.summaries import remove_summary_rows
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.segment_scores import bert_score, comet
from sigdask.formats.tables.bookkeeping import check_rows, remove_bookkeeping
from sigdask.formats.tables.score_notation import convert_scores, read_score_table
from sigdask.formats.tables.scores import check_no_gold, find_group_columns
from sigdask.metrics import is_lower_better
from sigdask.text import describe_items


def read_metrics(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read segment scores of several metrics, from one file per system or from COMET's files of several systems."""
    options.check_format_options("metrics")
    check_no_gold(gold, "metrics")
    path_by_system: dict[str, Path] = {}
    table_by_system: dict[str, FileTable] = {}
    for source in sources:
        file_tables = read_system_tables(source, options)
        if len(file_tables) > 1:
            names = list_row_systems(source, [*file_tables], path_by_system, is_only_file=len(sources) == 1)
        else:
            names = list_row_systems(source, [source.system], path_by_system, is_only_file=True)
        table_by_system |= dict(zip(names, file_tables.values(), strict=True))
    return build_metric_counts(table_by_system, options)


def read_system_tables(source: Source, options: Options) -> dict[str, FileTable]:
    """Read one file as a table for each system, with one column for each metric."""
    path = source.path
    if comet.is_json(path):
        raw_tables = comet.read_json(path)
    elif bert_score.is_printed(path):
        raw_tables = {source.system: bert_score.read_printed(path)}
    elif comet.is_printed(path):
        raw_tables = comet.read_printed(path)
    else:
        table = read_table(path, options.ignore, options.decimal)
        check_rows(table, options)
        raw_tables = {source.system: remove_bookkeeping(_rename_metricx(table), options)}
    tables = {
        name: remove_summary_rows(_convert_metrics(table, options), options) for name, table in raw_tables.items()
    }
    return {name: select_one_sample(table, table.find_id_column(options), options) for name, table in tables.items()}


def _rename_metricx(table: FileTable) -> FileTable:
    """Rename the score column of MetricX output, `prediction`, to the metric's name."""
    if not {"hypothesis", "prediction"} <= table.columns.keys() or {"source", "reference"}.isdisjoint(table.columns):
        return table
    if not table.is_numeric("prediction"):
        return table
    names = {"prediction": "MetricX"}
    columns = {name: cells for name, cells in table.columns.items() if name != "reference" or any(cells)}
    return replace(table, columns={names.get(name, name): cells for name, cells in columns.items()})


def _check_sources(aligned: Sequence[tuple[FileTable, RowOrder]]) -> None:
    """Raise an error if sources or references differ between files."""
    first_table = aligned[0][0]
    for name in {"source", "src", "reference", "ref"} & first_table.columns.keys() - first_table.nested.keys():
        texts = Factor.from_values(first_table.columns[name])
        for table, order in aligned[1:]:
            if name in table.columns and Factor.from_values(reorder_column(table.columns[name], order)) != texts:
                raise InputError(
                    f"{table.path}: the texts in {name!r} are not those of {first_table.path}, in this order; compare "
                    "files of one test set"
                )


def _convert_metrics(table: FileTable, options: Options) -> FileTable:
    """Convert score columns to numbers, including truth values (`"em": true`)."""
    return convert_scores(
        table, options, table.list_other_columns(table.find_id_column(options), *options.groups, *options.ignore)
    )


def build_metric_counts(table_by_system: dict[str, FileTable], options: Options) -> Counts:
    """Align one table for each system and return counts of the metrics that all have."""
    first_table, *other_tables = table_by_system.values()
    ids, orders, warnings = align(first_table, other_tables, options)
    metrics_by_system = [list_metrics(table, options) for table in table_by_system.values()]
    shared = [
        name for name in metrics_by_system[0] if all(name in system_metrics for system_metrics in metrics_by_system)
    ]
    if options.score_column is not None:
        shared = [name for name in shared if name == options.score_column]
    if not shared:
        metric_names = (
            ", ".join(dict.fromkeys(name for system_metrics in metrics_by_system for name in system_metrics)) or "none"
        )
        problem = f"no metric {options.score_column!r}" if options.score_column else "no metric that all files have"
        raise InputError(f"{first_table.path}: {problem}; columns of numbers: {metric_names}")
    aligned: list[tuple[FileTable, RowOrder]] = list(zip(table_by_system.values(), [FILE_ORDER, *orders], strict=True))
    _check_sources(aligned)
    matrices = {
        name: np.column_stack([table.get_numbers(name)[order].astype(np.float64) for table, order in aligned])
        for name in shared
    }
    matrices = {name: matrix for name, matrix in matrices.items() if not np.isnan(matrix).all()}
    constant_metrics = [
        name for name, matrix in matrices.items() if not is_metric_name(name) and _have_equal_scores(matrix)
    ]
    if len(constant_metrics) < len(matrices):  # else what is said of an item, whoever the system
        matrices = {name: matrix for name, matrix in matrices.items() if name not in constant_metrics}
    if not matrices:
        raise InputError(f"{first_table.path}: no scores in {', '.join(shared)}")
    groups = {name: Factor.from_values(column) for name, column in get_group_columns(first_table, options).items()}
    for name in find_group_columns(first_table, options):
        column = Factor.from_values(first_table.columns[name])
        if all(
            name in table.columns and Factor.from_values(reorder_column(table.columns[name], o)) == column
            for table, o in aligned
        ):
            groups[name] = column
    return build_score_counts(
        matrices,
        list(table_by_system),
        ids,
        groups=groups,
        options=options,
        warnings=[*dict.fromkeys(warnings), *_describe_metrics(table_by_system, shared, options)],
    )


def _have_equal_scores(matrix: NDArray[np.float64]) -> bool:
    """Return whether all systems have the same scores."""
    return matrix.shape[1] > 1 and np.array_equal(
        matrix, np.repeat(matrix[:, :1], matrix.shape[1], axis=1), equal_nan=True
    )


def list_metrics(table: FileTable, options: Options) -> list[str]:
    """Return the numeric columns that may be scores."""
    columns = table.list_other_columns(table.find_id_column(options), *options.groups, *options.ignore, *table.nested)
    return [name for name in columns if table.is_numeric(name)]


def _describe_metrics(table_by_system: dict[str, FileTable], shared: Sequence[str], options: Options) -> Iterator[str]:
    """Yield notes on columns taken as metrics although no metric has their name, and on metrics not in every file."""
    first_table = next(iter(table_by_system.values()))
    if not all(is_metric_name(name) or is_lower_better(name) for name in shared):
        columns_text = describe_items(shared, "column")
        yield (
            f"{first_table.path}: {columns_text} stand{'s' * (len(shared) == 1)} in every file: metrics, and a "
            "system a file"
        )
    if options.score_column is not None:
        return
    path_by_omitted: dict[tuple[str, ...], Path] = {}
    for table in table_by_system.values():
        if omitted := tuple(name for name in list_metrics(table, options) if name not in shared):
            path_by_omitted.setdefault(omitted, table.path)
    for omitted, path in path_by_omitted.items():
        yield f"{path}: {describe_items(omitted, 'metric')} not in every file: left out"


def share_metrics(sources: Sequence[Source], first_table: FileTable, options: Options) -> bool:
    """Return whether several files share score columns, so that the files are systems and the columns metrics.

    Files that were given names may as well hold several systems each: there, names must be those of metrics. A single
    column is a system's scores, unless its name says that less is better.
    """
    first_metrics = list_metrics(first_table, options)
    if len(sources) < 2 or not first_metrics or not first_table.header:
        return False
    if len(_list_systems(first_table, options)) < 2 and not all(map(is_lower_better, first_metrics)):
        return False
    tables = [first_table, *(read_score_table(source, options, costs=False) for source in sources[1:])]
    has_same_columns = all(set(table.columns) == set(first_table.columns) for table in tables)
    if any(source.name for source in sources) or not has_same_columns:
        shared = set(first_metrics).intersection(*(list_metrics(table, options) for table in tables[1:]))
        return bool(shared) and all(
            is_metric_name(name) or is_lower_better(name) for name in (shared if has_same_columns else first_metrics)
        )
    return True


def _list_systems(table: FileTable, options: Options) -> list[str]:
    """Return the columns that would be systems if the table held one column per system."""
    return table.list_other_columns(
        table.find_id_column(options), *options.groups, *options.ignore, *find_group_columns(table, options)
    )


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first file is the output of a metric's tool, by its first bytes."""
    if gold is not None:
        return False
    path = sources[0].path
    return comet.is_json(path) or bert_score.is_printed(path) or comet.is_printed(path)
