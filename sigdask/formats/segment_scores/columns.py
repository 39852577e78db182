"""Segment scores of several metrics, one column for each metric: `score[NAME]`.

It reads files of one system with a column for each metric (JSON lines of id and metrics, JSON of metric to list as
BERTScore and `evaluate` return it, tables), the output of `bert-score -s` (a line of means, then precision, recall and
F1 of each segment), and the output of `comet-score`, also as JSON, which may hold several systems. Metrics that every
file has are compared. Other columns are groups if their values repeat and agree, and are left out otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.factors import Factor
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading import files
from sigdask.formats.reading.alignment import FILE_ORDER, RowOrder, align, get_group_columns, reorder_column
from sigdask.formats.reading.averages_only import is_metric_name
from sigdask.formats.reading.json_records import load_json, read_head
from sigdask.formats.reading.options import Options, Source, list_row_systems
from sigdask.formats.reading.replicates import build_score_counts, select_one_sample
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.tables.bookkeeping import check_rows, remove_bookkeeping
from sigdask.formats.tables.notation import convert_scores, read_score_table
from sigdask.formats.tables.scores import find_group_columns
from sigdask.interface import spell
from sigdask.metrics import has_direction, is_lower_better
from sigdask.text import describe_items

MEANS_PATTERN = re.compile(r" P: -?\d+\.\d+ R: -?\d+\.\d+ F1: -?\d+\.\d+")
"""Pattern of the end of a line of means."""

MEANS_LENGTH = 80
"""Maximum characters of a line of means."""

COLUMNS = ("P", "R", "F1")
MEANS_HEAD_LINES = 20
"""Number of first lines in which the line of means may stand, after warnings."""


def is_bert_score_output(path: Path) -> bool:
    """Return whether a file is printed output of bert-score."""
    return any(map(_is_means_line, files.read_head_lines(path)[:MEANS_HEAD_LINES]))


def _is_means_line(line: str) -> bool:
    end = line.rstrip()[-MEANS_LENGTH:]
    start = end.find(" P: ")
    return start >= 0 and MEANS_PATTERN.fullmatch(end, start) is not None


def read_bert_score_output(path: Path) -> FileTable:
    """Read the segment scores that bert-score printed.

    Raises
    ------
    InputError
        A line after the means does not have three cells, or there is no such line.
    """
    with files.open_text(path) as text:
        lines = [line.rstrip("\r\n") for line in text]
    first_row = next((k for k, line in enumerate(lines) if _is_means_line(line)), -1) + 1
    rows: dict[int, list[str]] = {}
    for number, line in enumerate(lines[first_row:], start=first_row + 1):
        cells = line.split("\t")
        if len(cells) == len(COLUMNS):
            rows[number] = [cell.strip() for cell in cells]
        elif line.strip():
            raise InputError(
                file=path, line=number, found=f"{line[:40]!r}", expected="P, R and F1 of a segment, separated by tabs"
            )
    if not rows:
        raise InputError("bert-score printed only its means", file=path, remedy="run it with -s (--seg_level)")
    return FileTable(path, dict(zip(COLUMNS, map(list, zip(*rows.values(), strict=True)), strict=True)), [*rows])


COMET_START = re.compile(r'\s*\{\s*"(?:[^"\\]|\\.)*+"\s*:\s*\[\s*')
SEGMENT = re.compile(r"Segment \d+")
COMET_HEAD_LINES = 200
"""Number of first lines in which the first segment may stand, after messages of libraries."""


def is_comet_json(path: Path) -> bool:
    """Return whether a file begins as JSON of lists of objects with `src` or `ref`, `mt` and a score."""
    head = read_head(path)
    if (start := COMET_START.match(head)) is None:
        return False
    try:
        record, _ = json.JSONDecoder().raw_decode(head, start.end())
    except (ValueError, RecursionError):
        return False
    is_scored = isinstance(record, dict) and any(_iter_score_names(record))
    return is_scored and "mt" in record and not record.keys().isdisjoint({"src", "ref"})


def _iter_score_names(record: Mapping[str, Any]) -> Iterator[str]:
    return (name for name, value in record.items() if isinstance(value, int | float) and not isinstance(value, bool))


def read_comet_json(path: Path) -> dict[str, FileTable]:
    """Read the scores of each system, named after its file.

    Raises
    ------
    InputError
        A system has other segments than the first, or a segment is not an object.
    """
    document = load_json(path)
    names = _name_systems(list(document))
    tables: dict[str, FileTable] = {}
    sources: list[Any] = []
    for key, records in document.items():
        for k, record in enumerate(records if isinstance(records, list) else [records], start=1):
            if not isinstance(record, dict) or not isinstance(records, list):
                raise InputError(
                    f"{path}, {key!r}, segment {k}: found {str(record)[:40]}, expected an object with a score"
                )
        metrics = dict.fromkeys(name for record in records for name in _iter_score_names(record))
        if not metrics:
            raise InputError(f"{path}, {key!r}: no scores of segments")
        system_sources = [record.get("src", record.get("ref")) for record in records]
        sources = sources or system_sources
        if system_sources != sources:
            pairs = enumerate(zip(system_sources, sources, strict=False))
            k = next((k for k, (a, b) in pairs if a != b), min(len(system_sources), len(sources)))
            raise InputError(f"{path}, {key!r}, segment {k + 1}: another source than in {next(iter(document))!r}")
        columns = {name: [files.format_cell(record.get(name)) for record in records] for name in metrics}
        tables[names[key]] = FileTable(path, columns, range(1, len(records) + 1))
    return tables


def is_comet_output(path: Path) -> bool:
    """Return whether a file is printed output of comet-score with segment scores."""
    return any(_parse_line(line) is not None for line in files.read_head_lines(path)[:COMET_HEAD_LINES])


def _parse_line(line: str) -> tuple[str, str] | None:
    """Return the file and score of a printed segment line, or None for other lines."""
    cells = line.rstrip("\r\n").split("\t")
    if len(cells) < 3 or not SEGMENT.fullmatch(cells[1]) or not cells[2].startswith("score: "):
        return None
    return cells[0], cells[2].removeprefix("score: ").strip()


def read_comet_output(path: Path) -> dict[str, FileTable]:
    """Read the printed output of comet-score: file, segment number and score; skip other lines."""
    scores: dict[str, list[str]] = {}
    lines: dict[str, list[int]] = {}
    for number, line in files.enumerate_lines(path):
        if (fields := _parse_line(line)) is not None:
            scores.setdefault(fields[0], []).append(fields[1])
            lines.setdefault(fields[0], []).append(number)
    names = _name_systems(list(scores))
    return {names[key]: FileTable(path, {"COMET": file_scores}, lines[key]) for key, file_scores in scores.items()}


def _name_systems(paths: list[str]) -> dict[str, str]:
    """Return a system name for each file: the file name or, if names repeat, the part of the path that differs."""
    names = {path: files.get_stem(Path(path)) for path in paths}
    if len(set(names.values())) == len(paths):
        return names
    names_by_path = files.name_by_difference([Path(path) for path in paths])
    return {path: names_by_path[Path(path)] for path in paths}


def read_metrics(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read segment scores of several metrics, from one file per system or from COMET's files of several systems."""
    path_by_system: dict[str, Path] = {}
    table_by_system: dict[str, FileTable] = {}
    for source in sources:
        file_tables = read_system_tables(source, options)
        row_names = [*file_tables] if len(file_tables) > 1 else [source.system]
        names = list_row_systems(source, row_names, path_by_system, is_only_file=len(sources) == 1)
        table_by_system |= dict(zip(names, file_tables.values(), strict=True))
    return build_metric_counts(table_by_system, options)


def read_system_tables(source: Source, options: Options) -> dict[str, FileTable]:
    """Read one file as a table for each system, with one column for each metric."""
    path = source.path
    if is_comet_json(path):
        raw_tables = read_comet_json(path)
    elif is_bert_score_output(path):
        raw_tables = {source.system: read_bert_score_output(path)}
    elif is_comet_output(path):
        raw_tables = read_comet_output(path)
    else:
        table = read_table(path, options.ignore, options.decimal)
        check_rows(table, options)
        raw_tables = {source.system: remove_bookkeeping(_rename_metricx(table), options)}
    tables = {}
    for name, raw_table in raw_tables.items():  # truth values are scores too ("em": true)
        table = convert_scores(raw_table, options, raw_table.list_system_columns(options))
        tables[name] = select_one_sample(table, table.find_id_column(options), options)
    return tables


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
                    f"the texts in {name!r} are not those of {first_table.path}, in this order",
                    file=table.path,
                    remedy="compare files of one test set",
                )


def build_metric_counts(table_by_system: dict[str, FileTable], options: Options) -> Counts:
    """Align one table for each system and return counts of the metrics that all have."""
    first_table, *other_tables = table_by_system.values()
    ids, orders, warnings = align(first_table, other_tables, options)
    all_metrics = [list_metrics(table, options) for table in table_by_system.values()]
    shared = [name for name in all_metrics[0] if all(name in names for names in all_metrics)]
    if options.score_column is not None:
        shared = [name for name in shared if name == options.score_column]
    if not shared:
        listed = ", ".join(dict.fromkeys(name for names in all_metrics for name in names)) or "none"
        problem = f"no metric {options.score_column!r}" if options.score_column else "no metric that all files have"
        raise InputError(f"{problem}; columns of numbers: {listed}", file=first_table.path)
    aligned: list[tuple[FileTable, RowOrder]] = list(zip(table_by_system.values(), [FILE_ORDER, *orders], strict=True))
    _check_sources(aligned)
    matrices = {
        name: np.column_stack([table.get_numbers(name)[order].astype(np.float64) for table, order in aligned])
        for name in shared
    }
    matrices = {name: matrix for name, matrix in matrices.items() if not np.isnan(matrix).all()}
    constant_metrics = [
        name
        for name, matrix in matrices.items()
        if not is_metric_name(name)
        and matrix.shape[1] > 1
        and np.array_equal(matrix, np.broadcast_to(matrix[:, :1], matrix.shape), equal_nan=True)
    ]
    if len(constant_metrics) < len(matrices):  # else the column describes an item, not a system
        matrices = {name: matrix for name, matrix in matrices.items() if name not in constant_metrics}
    for name, matrix in matrices.items():
        if n_empty := int(np.isnan(matrix).all(axis=1).sum()):
            note = f"{n_empty:,} of {len(matrix):,} items have no {name!r} in any file and are left out"
            warnings.append(ScopeNote(note))
    if not matrices:
        raise InputError(
            f"no scores in {', '.join(shared)}; fill in the columns, or name others with {spell('metrics')}",
            file=first_table.path,
        )
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


def list_metrics(table: FileTable, options: Options) -> list[str]:
    """Return the numeric columns that may be scores."""
    columns = table.list_system_columns(options, *table.nested)
    return [name for name in columns if table.is_numeric(name)]


def _describe_metrics(table_by_system: dict[str, FileTable], shared: Sequence[str], options: Options) -> Iterator[str]:
    """Yield notes on columns taken as metrics although no metric has their name, and on metrics not in every file."""
    first_table = next(iter(table_by_system.values()))
    if not all(is_metric_name(name) or has_direction(name) for name in shared):
        columns_text = describe_items(shared, "column")
        yield (
            f"{first_table.path}: {columns_text} stand{'s' * (len(shared) == 1)} in every file: taken for metrics, and "
            "each file for a system"
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
    columns = first_table.list_system_columns(options, *find_group_columns(first_table, options))
    if len(columns) < 2 and not all(map(is_lower_better, first_metrics)):
        return False
    tables = [first_table, *(read_score_table(source, options, costs=False) for source in sources[1:])]
    has_same_columns = all(set(table.columns) == set(first_table.columns) for table in tables)
    if any(source.name for source in sources) or not has_same_columns:
        shared = set(first_metrics).intersection(*(list_metrics(table, options) for table in tables[1:]))
        names = shared if has_same_columns else first_metrics
        return bool(shared) and all(is_metric_name(name) or has_direction(name) for name in names)
    return True


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first file is the output of a metric's tool, by its first bytes."""
    path = sources[0].path
    return is_comet_json(path) or is_bert_score_output(path) or is_comet_output(path)
