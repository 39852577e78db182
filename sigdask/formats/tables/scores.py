"""Tables of scores or responses.

Wide tables have a column for each system, or are one file for each system. Long tables have a row for each system and
item, in one or several files. Tables of responses say in each row whether a response is of interest, and which systems
gave it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.factors import Factor
from sigdask.counts.fields import Array, Floats, LazyColumns
from sigdask.counts.precision import ScoreMatrix
from sigdask.counts.texts import ScopeNote, Texts, join_columns
from sigdask.errors import InputError, MissingColumnError
from sigdask.formats.reading.alignment import FILE_ORDER, RowOrder, align, get_group_columns
from sigdask.formats.reading.averages_only import (
    STEP,
    SUMMARY_WORDS,
    describe_summary_items,
    is_metric_name,
    is_summary_name,
)
from sigdask.formats.reading.columns import MAX_EXACT, MISSING, TypedColumn, has_numbers
from sigdask.formats.reading.files import find_delimiter
from sigdask.formats.reading.listings import build_set_counts, read_by_system
from sigdask.formats.reading.missing import add_missing_rows, describe_missing
from sigdask.formats.reading.options import DEFAULTS, Options, Source, build_repeated_system_error, list_row_systems
from sigdask.formats.reading.replicates import METRIC_COLUMNS, build_score_counts, select_one_sample
from sigdask.formats.reading.tables import (
    HEADER_NAMES,
    ID_NAMES,
    MACHINE_NAMES,
    ROW_NAMES,
    SAMPLE_NAMES,
    SCORE_NAMES,
    SYSTEM_NAMES,
    FileTable,
    build_header_error,
    read_table,
)
from sigdask.formats.tables.bookkeeping import ENTRY_NAMES, GOLD_LIKE_NAMES, find_item_column, select_systems
from sigdask.formats.tables.labels import GOLD_NAMES, PREDICTION_NAMES
from sigdask.formats.tables.notation import convert_scores, find_row_score, read_score_table
from sigdask.interface import spell
from sigdask.metrics import is_lower_better
from sigdask.text import describe_items

Integers = NDArray[np.intp]

LEADERBOARD_NAMES = frozenset({"win_rate", "discrete_win_rate", "length_controlled_winrate", "lc_win_rate",
                           "standard_error", "std_error", "stderr", "lc_standard_error", "n_total", "n_wins",
                           "n_wins_base", "n_draws", "avg_length", "num_battles", "rating_q025", "rating_q975",
                           "elo"})  # fmt: skip
"""Names of columns of leaderboards, whose rows are systems."""

DOUBTFUL_NAMES = frozenset({*GOLD_LIKE_NAMES, "y_true", "actual", "expected", "class", "answer", "correct", "gt",
                            "ground_truth", "groundtruth", "ref", "mos", "confidence", "human",
                            "human_score", "gold_score", "oracle", "best", "diff", "delta",
                            "difference", "change", "gain", "improvement", "p", "p_value", "pvalue", "p-value",
                            "difficulty", "year", "age", "weight"})  # fmt: skip
"""Names of columns that rarely name a system."""

SPREAD_ENDINGS = ("_std", "_sd", "_se", "_stderr", "_sem", "_ci", "_var", " std", " sd", " se")
"""Endings of columns that describe the scores of a system, and are not systems themselves."""


def read_wide(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read one table with a column for each system, or one file of scores for each system."""
    tables = [read_score_table(source, options) for source in sources]
    if options.score_column is not None and len(sources) == 1:
        raise InputError(
            f"{spell('columns', f'score={options.score_column}')} has no effect here: the table has a column for "
            f"each system. Leave out {spell('columns', 'score=COLUMN')}. If a column names the system of each row, "
            f"name it with {spell('columns', 'system=COLUMN')}",
            file=tables[0].path,
        )
    texts = find_group_columns(tables[0], options)
    tables = [select_one_sample(table, table.find_id_column(options), options) for table in tables]
    further = [name for name in find_group_columns(tables[0], options) if name in texts]
    options = replace(options, groups=(*options.groups, *further), ignore=(*options.ignore, *({*texts} - {*further})))
    tables = add_missing_rows(tables, options)
    ids, orders, warnings = align(tables[0], tables[1:], options)
    score_columns: dict[str, tuple[FileTable, str, RowOrder]] = {}
    path_by_system: dict[str, Path] = {}
    for source, table, order in zip(sources, tables, [FILE_ORDER, *orders], strict=True):
        columns = select_systems(table, options, table.list_system_columns(options))
        if not table.header and len(table.columns) > 1:
            commas = (
                ""
                if len(table.columns) > 2
                else f"; or say {spell('format', 'table:decimal=,')} where commas part decimals"
            )
            raise build_header_error(table.path, table.lines[0], commas)
        if not columns:
            raise InputError(f"no column of scores besides ids; columns: {', '.join(table.columns)}", file=table.path)
        for column in columns:
            name = source.system if len(columns) == 1 < len(sources) else column
            if source.name is not None and len(columns) > 1 < len(sources):
                name = f"{source.name}:{column}"
            if path_by_system.setdefault(name, table.path) != table.path:
                raise build_repeated_system_error(table.path, name, path_by_system[name])
            score_columns[name or source.system] = table, column, order
    if len(score_columns) < 2 and len(sources) == 1:
        raise _build_single_system_error(tables[0], next(iter(score_columns)), texts, options)

    def read_scores(system: str) -> Floats:
        table, column, order = score_columns[system]
        return np.asarray(table.get_numbers(column)[order])

    scores = ScoreMatrix.from_scores(LazyColumns([*score_columns], read_scores))
    groups = get_group_columns(tables[0], options)
    warnings += [
        f"{table.path}: column {name!r} counts the rows: taken for their ids or left out, no system"
        for table in tables
        for name in table.list_row_columns()
        if name.lower() not in ID_NAMES and not ROW_NAMES.fullmatch(name)
    ]
    warnings += [describe_groups(name, [table.columns.get(name, ()) for table in tables]) for name in further]
    is_answered = any(":better=" in name for name in options.metrics)
    doubts = _describe_doubts(tables, scores, ids)
    warnings += [ScopeNote(doubt) for doubt in doubts if not (is_answered and ":better=" in doubt)]
    warnings += describe_missing(scores.present, [*score_columns], options)
    return Counts.from_scores(
        scores,
        ids=ids,
        groups=groups,
        missing=options.missing_policy,
        few_in_common=options.few_in_common,
        warnings=warnings,
    )


PLAIN_ID = re.compile(r"(?=.*0)[A-Za-z0][A-Za-z0_.:/-]*")
"""Pattern of an id that needs no conversion: one word with a digit, so no missing value."""

ROLE_NAMES = frozenset({*SYSTEM_NAMES, *SAMPLE_NAMES, *SCORE_NAMES, *GOLD_NAMES, *PREDICTION_NAMES, *ENTRY_NAMES,
                        *GOLD_LIKE_NAMES, *ID_NAMES})  # fmt: skip
"""Names of columns whose role depends on their cells."""

FREE_OPTIONS = ("name", "metrics", "missing", "few_in_common", "is_detected")
"""Options that do not affect the roles of columns."""

FIXED_OPTIONS = tuple(name for name in Options.__slots__ if name not in FREE_OPTIONS)
ITEM_NAMES = (HEADER_NAMES & {*ID_NAMES}) - MACHINE_NAMES
"""Names of columns that certainly hold ids."""

MAX_SCORE = 1e8
"""A column with larger numbers may hold times."""


def read_plain_scores(text: str, shapes: Collection[str], options: Options) -> Counts | None:
    """Read the text of a score table that can be read in one way only: a column of ids, and columns of varying scores.

    Parameters
    ----------
    text : str
        All of the table, with line feeds.
    shapes : collection of str
        The shapes of its rows, in which each number is written as 0, and some words as a.
    options : Options
        Options of reading.

    Returns
    -------
    Counts or None
        None if cells must be inspected to recognize ids, groups, summaries and bookkeeping.
    """
    header, _, body = text.partition("\n")
    delimiter = find_delimiter(header)
    names = header.split(delimiter)
    if delimiter is None or not body or not text.isascii() or not _have_fixed_roles(names, options):
        return None
    for shape in shapes:
        id_shape, *number_shapes = shape.split(delimiter)
        if len(number_shapes) != len(names) - 1 or PLAIN_ID.fullmatch(id_shape) is None:
            return None
    cells = body.replace("\n", delimiter).split(delimiter)
    lowered = body.lower()
    may_sum_up = any(word in lowered for word in SUMMARY_WORDS)
    if may_sum_up and any(map(is_summary_name, cells[:: len(names)])):
        return None
    scores = np.array([[*map(float, cells[k :: len(names)])] for k in range(1, len(names))])
    steps = np.diff(scores)
    if len(scores) > scores.shape[1] or (steps == steps[:, :1]).all(axis=1).any() or np.abs(scores).max() >= MAX_SCORE:
        return None
    return Counts.from_scores(
        dict(zip(names[1:], scores, strict=True)),
        ids=_share_ids(tuple(cells[:: len(names)])),
        name=options.name,
        missing=options.missing_policy,
        few_in_common=options.few_in_common,
    )


@lru_cache(16)
def _share_ids(ids: tuple[str, ...]) -> Texts:
    """Return a column of ids, the same one for tables with the same ids, so that it is checked and sent once."""
    return Texts.from_values(ids)


def _have_fixed_roles(names: Sequence[str], options: Options) -> bool:
    """Return whether names and options leave no doubt that the first column holds ids, and the others scores."""
    return _get_fixed_options(options) == _get_fixed_options(DEFAULTS) and _have_plain_roles(tuple(names))


_get_fixed_options = attrgetter(*FIXED_OPTIONS)


@lru_cache(16)
def _have_plain_roles(names: tuple[str, ...]) -> bool:
    id_name, *systems = map(str.lower, names)
    return (
        len(systems) > 1
        and id_name in ITEM_NAMES
        and ROLE_NAMES.isdisjoint(systems)
        and not any(is_summary_name(name) or STEP.fullmatch(name) or ROW_NAMES.fullmatch(name) for name in systems)
    )


def are_same_scores(first: Counts, second: Counts) -> bool:
    """Return whether scores were read alike, without groups and missing scores."""
    return (
        first.systems == second.systems
        and first.ids == second.ids
        and first.notices == second.notices
        and not any((second.groups, second.files, second.replicates))
        and second.present is None
        and second.fields.keys() == first.fields.keys()
        and all(np.array_equal(first.field(name), second.field(name)) for name in first.fields)
    )


def _build_single_system_error(table: FileTable, name: str, groups: Sequence[str], options: Options) -> InputError:
    """Return the error for a table with only one score column, with advice on its other columns."""
    left_out = "".join(f"; {note}" for note in table.notes if "left out as no" in note)
    columns = ", ".join(read_table(table.path, decimal=options.decimal).columns)  # ignored columns too
    group_names = " or ".join(map(repr, groups))
    remedy = f"Then call that column 'system' (or say {spell('columns', 'system=COLUMN')})."
    advice = f" Are systems named in {group_names}? {remedy}" if groups else ""
    return InputError(
        "a comparison needs two systems or more, found only "
        f"{name!r}{columns and '; columns: '}{columns}{left_out}.{advice} Give the scores of at least two systems",
        file=table.path,
    )


def _describe_doubts(tables: Sequence[FileTable], scores: Mapping[str, Floats], ids: Texts | None) -> Iterator[str]:
    """Yield notes on columns that may not be scores of items, and on rows that may not be items."""
    path = tables[0].path
    summary = [name for name in scores if name.lower() in LEADERBOARD_NAMES]
    if len(summary) > 1:
        examples = ", ".join(summary[:3])
        yield f"{path}: columns {examples} look like a summary with one row per system; rows are taken for items"
        return
    yield from _describe_doubtful_names(path, [*scores], ids or ())
    named_by = {"file's name says": [table.path.name for table in tables], "systems' names say": [*scores]}
    lower = next((says for says, names in named_by.items() if all(map(is_lower_better, names))), None)
    if lower:
        yield f"{path}: higher is taken as better. Is lower better, as the {lower}? Then -m mean:better=lower"
    if all(map(is_metric_name, scores)) and (len(tables) == 1 or len(scores) > len(tables)):
        hint = "if they are metrics, add a column `system` that names the system of each row"
        yield f"{path}: the columns are called like metrics, but are taken for systems; {hint}"
    if any(np.fmax.reduce(np.abs(column), initial=0) > MAX_EXACT for column in scores.values()):
        yield f"{path}: scores exceed 2^53, so that their last digits are lost: subtract a number from all of them"


def _describe_doubtful_names(path: object, names: Sequence[str], ids: Sequence[str]) -> Iterator[str]:
    for name in names:
        if name.lower() in DOUBTFUL_NAMES or name.lower().endswith(SPREAD_ENDINGS) or is_summary_name(name):
            yield f"{path}: column {name!r} is taken for a system's scores; if it is none, {spell('ignore', name)}"
    yield from (f"{path}: {note}" for note in describe_summary_items(ids))


DOCUMENT_NAMES = frozenset({"doc", "document", "docid", "doc_id", "document_id"})
"""Names of columns that group items although they may hold numbers."""


def describe_groups(name: str, columns: Sequence[Any]) -> str:
    """Return the sentence that a column, one in each table, was taken as groups of items."""
    column, *others = columns
    if name.lower() in LABEL_NAMES and any([*other] != [*column] for other in others):  # labels that systems gave
        hint = f"If scores are confidences in these labels, give {spell('gold', 'FILE')} with the right ones"
        return ScopeNote(f"column {name!r} holds labels, taken as groups of items. {hint}")
    has_no_numbers = name.lower() not in DOCUMENT_NAMES or not has_numbers(Texts.from_values(column[:1]))
    return f"column {name!r}{' holds no numbers' * has_no_numbers}: taken as groups of items"


LABEL_NAMES = frozenset({*GOLD_LIKE_NAMES, *PREDICTION_NAMES} - {"system", "output"})
"""Names of columns of labels, whose scores may be a classifier's confidences."""


def find_group_columns(table: FileTable, options: Options) -> list[str]:
    """Return the columns that group items: repeating texts, some of which may be missing, or numbers of documents."""
    groups: list[str] = []
    if "systems" in options.own:
        return groups
    for name in table.list_system_columns(options, *table.nested):
        cells = table.columns[name]
        if name.lower() in DOCUMENT_NAMES:
            groups += [name] * (2 <= len(Factor.from_values(cells).levels) <= table.n_rows / 2)
            continue
        if isinstance(cells, TypedColumn) and cells.is_numeric:
            continue
        first = Texts.from_values(cells[:1])  # so that only one cell of a typed column becomes text
        if first[0] not in MISSING and has_numbers(first):
            continue
        values = [value for value in Factor.from_values(cells).levels.tolist() if value not in MISSING]
        if 2 <= len(values) <= table.n_rows / 2 and not has_numbers(Texts.from_values(values)):
            groups.append(name)
    return groups


TRUE_WORDS = frozenset({"1", "true", "yes", "x", "1.0"})
FALSE_WORDS = frozenset({"0", "false", "no", "", "0.0"})


def read_responses(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read one table of responses, or one list of ids for each system and a list of gold ids."""
    if gold is not None:
        if options.groups:
            raise MissingColumnError(
                f"lists of ids have no column {options.groups[0]!r}; give one table of responses with this column",
                options.groups[0],
            )
        return build_set_counts(_read_ids(options, gold), read_by_system(sources, partial(_read_ids, options)))
    if len(sources) > 1:
        remedy = f"give {spell('gold', 'FILE')} (the right ids), or one table with a column per system"
        raise InputError(f"format responses: several files and no gold list; {remedy}")
    table = read_table(sources[0].path, options.ignore)
    names = ("gold", "of_interest", "correct")
    name = table.require_column(options.gold_column, names, "column 'gold'", f"{spell('columns', 'gold=COLUMN')}")
    table = select_one_sample(table, table.find_id_column(options), options, gold=name)
    is_of_interest = parse_truths(table, name)
    systems = table.list_system_columns(options, name)
    return Counts.from_responses(
        is_of_interest,
        {system: parse_truths(table, system) for system in systems},
        ids=table.get_ids(options),
        groups=get_group_columns(table, options),
        warnings=table.notes,
    )


def parse_truths(table: FileTable, name: str) -> list[bool]:
    """Return a column of truth values (1/0, true/false, yes/no) as booleans."""
    cells = [cell.lower() for cell in table.get_column(name)]
    for line_number, cell in zip(table.lines, cells, strict=True):
        if cell not in TRUE_WORDS and cell not in FALSE_WORDS:
            raise InputError(
                f"{table.path}, line {line_number}, column {name!r}: found {cell!r}, expected 1 or 0 (true/false, "
                f"yes/no, x); if the column is none of responses, leave it out with {spell('ignore')}"
            )
    return [cell in TRUE_WORDS for cell in cells]


def _read_ids(options: Options, path: Path) -> frozenset[str]:
    table = read_table(path, options.ignore)
    name = table.find_id_column(options) or next(iter(table.columns))
    return frozenset(table.get_ids(replace(options.with_columns(item=name), align="id")) or ())


def read_long(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read rows of system, item and score."""
    files = [_read_long_file(source, options) for source in sources]
    systems, system_codes = _number_systems(files, sources)
    items = Factor.from_values(join_columns([file.items for file in files]))
    parts_by_group = zip(*(file.groups for file in files), strict=True)
    groups = [Factor.from_values(join_columns(list(parts))) for parts in parts_by_group]
    item_order, first_rows = items.first_occurrences
    metrics, codes = _number_metrics(files, system_codes, len(systems), items, options.metrics)
    _check_long_rows(files, systems * len(metrics), codes, items, groups)
    columns = [f"{metric}\0{system}" if metric else system for metric in metrics for system in systems]
    scores = _build_long_scores(columns, codes, items, [file.scores for file in files])
    ids = items.levels[item_order]
    rows = first_rows[item_order]
    item_groups = {name: column[rows] for name, column in zip(options.groups, groups, strict=True)}
    warnings = [
        *(note for file in files for note in file.table.notes),
        *(f"{', '.join(str(source.path) for source in sources)}: {note}" for note in describe_summary_items(ids)),
    ]
    score_names = {file.score for file in files}
    if metrics == [""] and len(score_names) == 1 and is_lower_better(*score_names):
        metrics = [*score_names]
    if metrics != [""]:
        matrix = np.column_stack([*scores.values()]).astype(np.float64)
        matrices = dict(zip(metrics, np.split(matrix, len(metrics), axis=1), strict=True))
        return build_score_counts(matrices, systems, ids, groups=item_groups, options=options, warnings=warnings)
    return Counts.from_scores(
        scores,
        ids=ids,
        groups=item_groups,
        missing=options.missing_policy,
        few_in_common=options.few_in_common,
        warnings=warnings,
    )


@dataclass(frozen=True, slots=True)
class _LongFile:
    """A table of rows of system, item and score, and its columns that are read."""

    table: FileTable
    groups: list[Texts]
    systems: Factor
    items: Texts
    scores: Array
    metrics: Factor | None
    score: str


def _find_metric_column(table: FileTable, *aside: str) -> str | None:
    """Return the column that names the metric of each row's score, or None."""
    names = (name for name in table.list_other_columns(*aside, *table.nested) if name.lower() in METRIC_COLUMNS)
    return next((name for name in names if not table.is_numeric(name)), None)


def _number_metrics(
    files: Sequence[_LongFile], system_codes: Integers, n_systems: int, items: Factor, requested: Sequence[str]
) -> tuple[list[str], Integers]:
    """Return the metrics that rows name ("" if none does), and the number of each row's pair of metric and system.

    A column with one value for each item describes items, unless a value is requested or says that lower is better.
    """
    if all(file.metrics is None for file in files):
        return [""], system_codes
    cells = [file.metrics or Factor.from_values(["score"] * len(file.items)) for file in files]
    metrics = Factor.from_values(join_columns([Texts.from_values(column.tolist()) for column in cells]))
    n_cells = len(np.unique(items.codes * np.int64(len(metrics.levels)) + metrics.codes))
    if n_cells == len(items.levels) and not any(name in requested or is_lower_better(name) for name in metrics.levels):
        return [""], system_codes
    return metrics.levels.tolist(), metrics.codes.astype(np.intp) * n_systems + system_codes


def _read_long_file(source: Source, options: Options) -> _LongFile:
    table = read_table(source.path, options.ignore, options.decimal)
    roles = {}
    unnamed = find_row_score(table, options)
    item = find_item_column(table, options) if unnamed else options.id_column
    for role, requested, names, option in (
        ("system", options.system_column, SYSTEM_NAMES, f"{spell('columns', 'system=COLUMN')}"),
        ("item", item, ID_NAMES, f"{spell('columns', 'item=COLUMN')}"),
        ("score", options.score_column or unnamed, SCORE_NAMES, f"{spell('columns', 'score=COLUMN')}"),
    ):
        roles[role] = table.require_column(requested, names, f"{role} column", option)
    table = convert_scores(table, options, [roles["score"]])
    metric = _find_metric_column(table, *roles.values(), *options.groups, *options.ignore)
    table = select_one_sample(table, roles["item"], options, within=[roles["system"], *([metric] if metric else [])])
    others = table.list_other_columns(*roles.values(), *options.groups, *options.ignore, *table.nested)
    omitted = [name for name in others if table.is_numeric(name)]
    if omitted or unnamed:
        note = f"{table.path}: {roles['score']!r} is compared"
        note += f"; {describe_items(omitted, 'column')} left out" if omitted else ""
        note += f" ({spell('columns', 'score=COLUMN')} chooses another)"
        table = replace(table, notes=[*table.notes, ScopeNote(note)])
    return _LongFile(
        table,
        [Texts.from_values(table.get_column(name)) for name in options.groups],
        Factor.from_values(table.get_column(roles["system"])),
        Texts.from_values(table.get_column(roles["item"])),
        table.get_numbers(roles["score"]),
        Factor.from_values(table.get_column(metric)) if metric else None,
        roles["score"],
    )


def _number_systems(files: Sequence[_LongFile], sources: Sequence[Source]) -> tuple[list[str], Integers]:
    """Return the systems in the order of their first rows, and the number of each row's system."""
    homes: dict[str, Path] = {}
    numbers: dict[str, int] = {}
    row_numbers = []
    for file, source in zip(files, sources, strict=True):
        order = file.systems.first_occurrences[0]
        names = list_row_systems(source, file.systems.levels[order].tolist(), homes, is_only_file=len(sources) == 1)
        codes = np.empty(len(order), np.intp)
        codes[order] = [numbers.setdefault(name, len(numbers)) for name in names]
        row_numbers.append(codes[file.systems.codes])
    return [*numbers], np.concatenate(row_numbers)


def _check_long_rows(
    files: Sequence[_LongFile], systems: Sequence[str], system_codes: Integers, items: Factor, groups: Sequence[Factor]
) -> None:
    """Raise an error for the first row with a second score of an item, or with other groups of it."""
    cells = system_codes * len(items.levels) + items.codes
    sorted_cells = np.sort(cells)
    item_rows = items.first_occurrences[1][items.codes]
    has_repeats = (sorted_cells[1:] == sorted_cells[:-1]).any()
    if not has_repeats and all((group.codes == group.codes[item_rows]).all() for group in groups):
        return
    first_rows = np.unique(cells, return_index=True)[1][np.unique(cells, return_inverse=True)[1].reshape(-1)]
    is_repeated = first_rows != np.arange(len(cells))
    row = int(np.argmax(np.any([is_repeated, *(group.codes != group.codes[item_rows] for group in groups)], axis=0)))
    places = [(file.table.path, line) for file in files for line in file.table.lines]
    (path, line), item = places[row], items[row]
    if is_repeated[row]:
        other_path, other_line = places[first_rows[row]]
        raise InputError(
            f"system {systems[system_codes[row]]!r}, item {item!r} has a score already, on line {other_line} of "
            f"{other_path}",
            file=path,
            line=line,
            remedy="remove one of them",
        )
    group, other_group = (tuple(column[int(k)] for column in groups) for k in (row, item_rows[row]))
    raise InputError(
        f"item {item!r} is in {group}, but in {other_group} elsewhere",
        file=path,
        line=line,
        remedy="give the item the same group everywhere",
    )


def _build_long_scores(systems: list[str], system_codes: Integers, items: Factor, values: list[Array]) -> LazyColumns:
    """Return the scores of each system in item order, NaN where it has none."""
    order = np.argsort(system_codes, kind="stable")
    bounds = np.searchsorted(system_codes[order], np.arange(len(systems) + 1))
    n_items = len(items.levels)
    positions = np.empty(n_items, np.intp)
    positions[items.first_occurrences[0]] = np.arange(n_items)
    positions = positions[items.codes[order]]
    ordered = np.concatenate(values)[order] if len(values) > 1 else values[0][order]
    file_numbers = np.repeat(np.arange(len(values)), [len(column) for column in values])
    first_rows = order[np.minimum(bounds[:-1], len(order) - 1)]  # another column's if a metric lacks a system
    kinds = [values[k].dtype for k in file_numbers[first_rows]]

    def get_scores(system: str) -> Array:
        k = systems.index(system)
        span = slice(bounds[k], bounds[k + 1])
        scores = np.full(n_items, np.nan, kinds[k])
        scores[positions[span]] = ordered[span]
        return scores

    return LazyColumns(systems, get_scores)
