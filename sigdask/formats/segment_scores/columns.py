"""Scores of segments by several metrics, each metric a column: `score[NAME]`.

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
from sigdask.formats.reading.aggregated import is_metric
from sigdask.formats.reading.alignment import AS_THEY_STAND, Order, align, group_columns, in_order
from sigdask.formats.reading.averages import of_matrices
from sigdask.formats.reading.options import Options, Source, systems_inside
from sigdask.formats.reading.replicates import one_sample
from sigdask.formats.reading.summaries import without_summaries
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.segment_scores import bert_score, comet
from sigdask.formats.tables.bookkeeping import check_rows, without_bookkeeping
from sigdask.formats.tables.notation import in_numbers, score_table
from sigdask.formats.tables.scores import further_groups, no_gold
from sigdask.metrics import is_lower_better
from sigdask.text import some


def read_metrics(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read scores of several metrics; see above."""
    options.only("metrics")
    no_gold(gold, "metrics")
    homes: dict[str, Path] = {}
    named: dict[str, FileTable] = {}
    for source in sources:
        inside = tables_of(source, options)
        if len(inside) > 1:
            names = systems_inside(source, [*inside], homes, alone=len(sources) == 1)
        else:
            names = systems_inside(source, [source.system], homes, alone=True)
        named |= dict(zip(names, inside.values(), strict=True))
    return of_tables(named, options)


def tables_of(source: Source, options: Options) -> dict[str, FileTable]:
    """Read the systems of one file: a table each, with a column a metric."""
    path = source.path
    if comet.is_json(path):
        found = comet.of_json(path)
    elif bert_score.is_printed(path):
        found = {source.system: bert_score.printed(path)}
    elif comet.is_printed(path):
        found = comet.printed(path)
    else:
        table = read_table(path, options.ignore, options.decimal)
        check_rows(table, options)
        found = {source.system: without_bookkeeping(_of_metricx(table), options)}
    tables = {name: without_summaries(_in_numbers(table, options), options) for name, table in found.items()}
    return {name: one_sample(table, table.id_name(options), options) for name, table in tables.items()}


def _of_metricx(table: FileTable) -> FileTable:
    """Name the scores of MetricX as such: they stand in `prediction`, beside the texts, and less is better."""
    if not {"hypothesis", "prediction"} <= table.columns.keys() or {"source", "reference"}.isdisjoint(table.columns):
        return table
    if not table.is_numeric("prediction"):
        return table
    names = {"prediction": "MetricX"}
    columns = {name: cells for name, cells in table.columns.items() if name != "reference" or any(cells)}
    return replace(table, columns={names.get(name, name): cells for name, cells in columns.items()})


def _check_sources(in_place: Sequence[tuple[FileTable, Order]]) -> None:
    """Refuse files whose sources or references differ: they are of other test sets."""
    first = in_place[0][0]
    for name in {"source", "src", "reference", "ref"} & first.columns.keys() - first.nested.keys():
        texts = Factor.of(first.columns[name])
        for table, order in in_place[1:]:
            if name in table.columns and Factor.of(in_order(table.columns[name], order)) != texts:
                raise InputError(
                    f"{table.path}: the texts in {name!r} are not those of {first.path}, in this order; compare "
                    "files of one test set"
                )


def _in_numbers(table: FileTable, options: Options) -> FileTable:
    """Return a table in numbers, truth values too: they are scores as well as others (`"em": true`)."""
    return in_numbers(table, options, table.others(table.id_name(options), *options.groups, *options.ignore))


def of_tables(named: dict[str, FileTable], options: Options) -> Counts:
    """Bring tables of one system each together: the metrics that all have."""
    first, *others = named.values()
    ids, orders, warnings = align(first, others, options)
    of_each = [metrics_of(table, options) for table in named.values()]
    shared = [name for name in of_each[0] if all(name in own for own in of_each)]
    if options.score_column is not None:
        shared = [name for name in shared if name == options.score_column]
    if not shared:
        listed = ", ".join(dict.fromkeys(name for own in of_each for name in own)) or "none"
        what = f"no metric {options.score_column!r}" if options.score_column else "no metric that all files have"
        raise InputError(f"{first.path}: {what}; columns of numbers: {listed}")
    in_place: list[tuple[FileTable, Order]] = list(zip(named.values(), [AS_THEY_STAND, *orders], strict=True))
    _check_sources(in_place)
    matrices = {
        name: np.column_stack([table.numbers(name)[order].astype(np.float64) for table, order in in_place])
        for name in shared
    }
    matrices = {name: matrix for name, matrix in matrices.items() if not np.isnan(matrix).all()}
    alike = [name for name, matrix in matrices.items() if not is_metric(name) and _are_alike(matrix)]
    if len(alike) < len(matrices):  # else what is said of an item, whoever the system
        matrices = {name: matrix for name, matrix in matrices.items() if name not in alike}
    if not matrices:
        raise InputError(f"{first.path}: no scores in {', '.join(shared)}")
    groups = {name: Factor.of(column) for name, column in group_columns(first, options).items()}
    for name in further_groups(first, options):
        column = Factor.of(first.columns[name])
        if all(
            name in table.columns and Factor.of(in_order(table.columns[name], o)) == column for table, o in in_place
        ):
            groups[name] = column
    return of_matrices(
        matrices,
        list(named),
        ids,
        groups=groups,
        options=options,
        warnings=[*dict.fromkeys(warnings), *_told(named, shared, options)],
    )


def _are_alike(matrix: NDArray[np.float64]) -> bool:
    """Whether all systems have the same scores."""
    return matrix.shape[1] > 1 and np.array_equal(
        matrix, np.repeat(matrix[:, :1], matrix.shape[1], axis=1), equal_nan=True
    )


def metrics_of(table: FileTable, options: Options) -> list[str]:
    """Return the columns of numbers that may be scores."""
    columns = table.others(table.id_name(options), *options.groups, *options.ignore, *table.nested)
    return [name for name in columns if table.is_numeric(name)]


def _told(named: dict[str, FileTable], shared: Sequence[str], options: Options) -> Iterator[str]:
    """Say what is taken for metrics where names do not tell, and what is left out."""
    first = next(iter(named.values()))
    if not all(is_metric(name) or is_lower_better(name) for name in shared):
        what = some(shared, "column")
        yield f"{first.path}: {what} stand{'s' * (len(shared) == 1)} in every file: metrics, and a system a file"
    if options.score_column is not None:
        return
    said: dict[tuple[str, ...], Path] = {}
    for table in named.values():
        if left := tuple(name for name in metrics_of(table, options) if name not in shared):
            said.setdefault(left, table.path)
    for left, path in said.items():
        yield f"{path}: {some(left, 'metric')} not in every file: left out"


def share_metrics(sources: Sequence[Source], first: FileTable, options: Options) -> bool:
    """Whether files have columns of the same names, which are metrics then, and systems are files.

    Files that were given names may as well hold several systems each: there, names must be those of metrics. A single
    column is a system's scores, unless its name says that less is better.
    """
    mine = metrics_of(first, options)
    if len(sources) < 2 or not mine or not first.header:
        return False
    if len(_columns(first, options)) < 2 and not all(map(is_lower_better, mine)):
        return False
    tables = [first, *(score_table(source, options, costs=False) for source in sources[1:])]
    alike = all(set(table.columns) == set(first.columns) for table in tables)
    if any(source.name for source in sources) or not alike:
        shared = set(mine).intersection(*(metrics_of(table, options) for table in tables[1:]))
        return bool(shared) and all(is_metric(name) or is_lower_better(name) for name in (shared if alike else mine))
    return True


def _columns(table: FileTable, options: Options) -> list[str]:
    """Return what a table of systems would have as systems."""
    return table.others(table.id_name(options), *options.groups, *options.ignore, *further_groups(table, options))


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Know what metrics' tools write by its first bytes."""
    if gold is not None:
        return False
    path = sources[0].path
    return comet.is_json(path) or bert_score.is_printed(path) or comet.is_printed(path)
