"""Find columns that are not systems, next to scores and labels: counters, times, constants, spreads.

A column is known by its name. The notes name what is left out; the option
`systems=NAME+NAME` of a format names the systems instead. Tables of averages or of training are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sigdask.counts.checks import CLEAR_ITEMS
from sigdask.counts.factors import Factor
from sigdask.counts.texts import ScopeNote, Texts
from sigdask.errors import InputError
from sigdask.formats.reading import averages_only, tables
from sigdask.formats.reading.columns import MISSING, is_number, is_percent
from sigdask.formats.reading.files import format_cell
from sigdask.formats.reading.json_records import parse_nested_columns
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import ID_NAMES, SAMPLE_NAMES, FileTable
from sigdask.interface import spell
from sigdask.text import describe_items

CLOCK_NAMES = re.compile(
    r"(.*[/_. -])?(t_?stamp|time_?stamp|date_?time|(start|end|run|wall)?_?time|date|created|updated|seed)"
    r"([_ -](at|on|s|ms|sec|seconds|id))?",
    re.IGNORECASE,
)
"""Names of columns on when and how a score was measured."""

COUNTER_NAMES = re.compile(
    r"([\w-]+[/.])*_?(rank|n|count|support|size|length|n_tokens|n_words|seconds|line|lineno|line_number|position|runtime|"
    r"((\w+_)?(trial|run|job|worker|shard|gpu|node|fold|batch|chunk)_(index|idx|id|num|number|no)))",
    re.IGNORECASE,
)
"""Names of columns that count or number something."""

COST_NAMES = re.compile(
    r"((total|mean|avg|average|num|n|input|output|prompt|completion|generated|generation|reasoning|inference|response|"
    r"request|wall|api|cpu|gpu|user|eval|decode|decoding|cached)[_ .-])*"
    r"(costs?|price|usd|latency|run_?time|duration|elapsed|time|tokens?|throughput)"
    r"([_ .-](usd|eur|cents|s|sec|secs|seconds|ms|us|ns|min|minutes|hours|total|count|in|out|used|generated))*"
    r"|(tokens|words|samples)_per_(s|sec|second)|(peak|max|gpu)_(memory|mem|vram)([_ ](mb|gb|bytes))?",
    re.IGNORECASE,
)
"""Names of columns with the cost of an item, next to columns of scores."""

AMOUNT_NAMES = re.compile(r"(?i)((num|n|total)_)?(tokens?|words|samples|examples|sequences|batch(es)?|updates?)")
"""Names of a first column with the amount of training data or steps, if it rises in every row."""

ENTRY_NAMES = frozenset({"name", "method", "methods", "approach", "team", "participant", "submission", "entry",
                         "checkpoint", "architecture", "algorithm", "classifier", "llm", "engine", "models", "systems",
                         "run_name", "run_id", "experiment", "config"})  # fmt: skip
"""Names of columns that may name systems, where each row holds averages of one system."""

RATER_NAMES = frozenset({"judge", "rater", "annotator", "worker", "replicate"})
"""Names of columns that number the raters of an item, or other repetitions of it."""

MAX_ENTRIES = 50
"""Maximum number of rows that may be systems although the name of their column does not show it."""

LANGUAGES = (
    "(ar|bg|bn|ca|cs|da|de|el|en|es|et|fa|fi|fr|gu|ha|he|hi|hr|hu|id|is|it|ja|kk|km|ko|lt|lv|nl|no|pl|ps|pt|ro|ru|sv|"
    "ta|tr|uk|vi|xx|zh)"
)
"""Codes of languages whose pairs name test sets."""

BENCHMARKS = (
    r"(?i)(mmlu|gsm.?8k|arc|hellaswag|truthfulqa|winogrande|humaneval|mbpp|math|bbh|gpqa|ifeval|mt.?bench|drop|boolq|piqa|"
    r"squad|sst.?2|mnli|qnli|qqp|mrpc|cola|rte|sts.?b|wnli|musr|triviaqa|nq|copa|wic|wsc|multirc|anli|xnli|xcopa|siqa|"
    r"logiqa|openbookqa|commonsenseqa|csqa|race|lambada|agieval|ceval|cmmlu|aime|livecodebench|swe.?bench|tydiqa|medqa|"
    r"alpaca.?eval|arena.?hard|natural.?questions|flores|wmt.?\d+|(task|dataset|benchmark|test.?set)[ _-]?\w{1,2}|"
    rf"{LANGUAGES}[-_>→]+{LANGUAGES})([^a-z]|$)"
)
"""Names of benchmarks, test sets and language pairs, which are columns of leaderboards."""

RANK_NAMES = re.compile(r"#|ranks?|ranking|place|pos(ition)?", re.IGNORECASE)

SETTING_NAMES = re.compile(
    r"(random_)?seed|temperature|top_[pk]|lr|learning_rate|batch_size|num_beams|beam(_size)?|max_(new_)?tokens|version|"
    r"(num_?|n_?|k_?)(few_?)?shots?|fold|run|trial|(sample|group|set)_size|threshold",
    re.IGNORECASE,
)
"""Names of columns that hold a setting, if all rows have the same value."""

ASIDE_NAMES = (COUNTER_NAMES, COST_NAMES, SETTING_NAMES, CLOCK_NAMES)
"""Patterns of columns next to the score of a row."""

EXTREME_NAMES = re.compile(r"(.+)__(MIN|MAX)")
"""Pattern of the columns that Weights & Biases adds for each line of a chart."""

SPREAD_NAMES = re.compile(
    r"(.+)[_ ](std|sd|se|stderr|sem|ci|var|latency|seconds|(n_)?tokens|length|cost|rank|count|conf|confidence|probs?)",
    re.IGNORECASE,
)
"""Names of columns that describe another column: its spread, cost or confidence."""

DATE_PATTERN = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?)?\s*(Z|UTC|[+-]\d\d:?\d\d)?")
MIN_ROWS = 10
"""Minimum number of rows for recognizing a column by its values."""

MAX_LABELS = 20
"""Maximum number of distinct labels if they are numbers with decimals."""

GOLD_LIKE_NAMES = frozenset({"label", "labels", "target", "truth"})
"""Names of columns with gold labels, if others hold labels or predictions."""


def check_rows(table: FileTable, options: Options, *, is_only_file: bool = False) -> None:
    """Raise an error for a table whose rows are averages of systems or classes, or training steps.

    Parameters
    ----------
    table : FileTable
        The table as it was read.
    options : Options
        Options, with the columns that the user named.
    is_only_file : bool
        Whether it is the only file, and its format must be detected: its rows may then be systems with other names.

    Raises
    ------
    RefusedFileError
        Rows are not items. The message says what they are.
    """
    first_column = next(iter(table.columns))
    _check_no_confusions(table)
    names = {name.lower() for name in table.columns}
    if options.gold_column is None and not names.intersection(metric.lower() for metric in options.metrics):
        averages_only.check_columns(table.path, names)
    system = table.find_system_column(options)
    if system is not None and system not in (*options.groups, *options.ignore):
        _check_one_score(table, options)
    if options.id_column is not None or "systems" in options.own:
        return
    if is_only_file:
        _check_no_averages(table, options)
        _check_rows_are_items(table, options)
    if any(name.lower() in ID_NAMES and name not in table.list_row_columns() for name in table.columns):
        return
    systems = None if system is None or system in table.nested else Factor.from_values(table.columns[system])
    is_amount = AMOUNT_NAMES.fullmatch(first_column) and _is_rising(table, first_column, None, rises_always=True)
    steps = [name for name in table.columns if averages_only.STEP.fullmatch(name) and _is_rising(table, name, systems)]
    step = next(iter([first_column] if is_amount else steps), "")
    if step and step not in (*options.groups, *options.ignore):
        raise averages_only.build_training_curve_error(table.path, step)
    if systems is None or system in options.ignore or not table.header:
        return
    others = table.list_other_columns(system, *options.groups, *options.ignore)
    score_columns = [name for name in others if _has_scores(table, name)]
    if score_columns and len(systems.levels) == table.n_rows > 1:
        raise averages_only.build_leaderboard_error(table.path, system or "")
    are_scores = table.find_column(tables.SCORE_NAMES) or all(map(averages_only.is_metric_name, score_columns))
    if score_columns and are_scores and len(systems.levels) > 1:
        raise InputError(
            f"rows of system, item and score need a column of item ids; columns: {', '.join(table.columns)}",
            file=table.path,
            remedy=f"name it with {spell('columns', 'item=COLUMN')}",
        )


def _check_no_confusions(table: FileTable) -> None:
    """Raise an error for a table whose rows and columns have the same names."""
    first_column, *others = table.columns
    is_square = table.header and table.n_rows == len(others) > 1
    if is_square and sorted(table.columns[first_column]) == sorted(others):
        remedy = "A test needs one row per item"
        raise InputError(f"rows and columns have the same names, as in a confusion matrix. {remedy}", file=table.path)


def _check_no_averages(table: FileTable, options: Options) -> None:
    """Raise an error for a table with one row of averages per system, whatever the column of systems is called.

    Averages are several metrics, or scores next to a rank. With columns other than metrics, a name may be that of an
    item as well as of a system.
    """
    aside = {*options.groups, *options.ignore, *table.nested}
    names = [name for name in table.columns if table.header and name not in aside and not _has_scores(table, name)]
    for name in names:
        is_system, is_index = name.lower() in tables.SYSTEM_NAMES, name == tables.INDEX_NAME
        if not (is_system or is_index or name.lower() in {"id", *ENTRY_NAMES}):
            continue
        numbers = [column for column in table.list_other_columns(name, *aside) if _has_scores(table, column)]
        scores = [column for column in numbers if column.lower() not in ID_NAMES and not RANK_NAMES.fullmatch(column)]
        if not scores or not len(Factor.from_values(table.columns[name]).levels) == table.n_rows > 1:
            continue
        metrics = [name for name in scores if not (COST_NAMES.fullmatch(name) or COUNTER_NAMES.fullmatch(name))]
        benchmarks = {name for name in metrics if re.match(BENCHMARKS, name)}
        turned = (
            "a CSV file with a row for each test set and a column for each system, and name the first column with "
            f"{spell('columns', 'item=COLUMN')}"
        )
        hint = f". To compare systems over test sets, write {turned}" if benchmarks else ""
        if is_system:
            raise averages_only.build_leaderboard_error(table.path, name, hint)
        others = [name for name in metrics if name not in benchmarks]
        are_metrics = all(averages_only.is_metric_name(name) or averages_only.is_summary_name(name) for name in others)
        are_metrics |= len(benchmarks) > max(1, len(others))
        is_index &= not benchmarks
        if name.lower() == "id" and not benchmarks:
            continue
        are_averages = any(map(RANK_NAMES.fullmatch, numbers)) or (len(scores) > 1 and bool(metrics) and are_metrics)
        if table.n_rows <= (MIN_ROWS - 1 if is_index else MAX_ENTRIES) and are_averages:
            hint += f". If rows are items, say {spell('columns', f'item={name}')}"
            raise averages_only.build_leaderboard_error(table.path, name, hint)


def _check_rows_are_items(table: FileTable, options: Options) -> None:
    """Raise an error for a few rows without a number in their names, with many numbered columns."""
    labels = next((name for name in table.columns if not _has_scores(table, name)), "")
    names = table.list_other_columns(labels, tables.INDEX_NAME, *options.groups, *options.ignore)
    numbers = [number for name in names if (number := re.fullmatch(r"(\D*?)[ _-]?0*(\d+)", name.lower()))]
    is_counted = [int(number[2]) for number in numbers] in ([*range(len(names))], [*range(1, len(names) + 1)])
    are_items = len(prefixes := {number[1] for number in numbers}) == 1 and prefixes <= {"", "i", "q", *ID_NAMES}
    are_names = bool(labels) and not any(re.search(r"\d", cell) for cell in table.columns[labels])
    is_wide = 1 < table.n_rows < CLEAR_ITEMS and len(names) >= max(MIN_ROWS, 2 * table.n_rows)
    if table.header and is_counted and are_items and are_names and is_wide:
        raise InputError(
            f"{table.n_rows} rows, and {len(names)} columns {names[0]!r} to {names[-1]!r}. Are rows systems, and "
            "columns items? Then transpose it: write one row per item and one column per system. If columns are "
            f"systems, say {spell('format', 'wide')}",
            file=table.path,
        )


def _has_scores(table: FileTable, name: str) -> bool:
    """Return whether a column holds numbers, with or without percent signs."""
    return table.is_numeric(name) or (name not in table.nested and is_percent(table.columns[name]))


ITEM_NAMES = (
    *(name for name in ID_NAMES if name not in SAMPLE_NAMES | tables.INPUT_IDS), "sample_id", "doc_id",
    *(name for name in ID_NAMES if name in tables.INPUT_IDS),
)  # fmt: skip
"""Names of items in rows of system and item, the likeliest first. Evaluation tools call them sample_id or doc_id."""


def find_item_column(table: FileTable, options: Options) -> str | None:
    """Return the column of items in rows of system and item, which are repeated.

    Beside an id column, a repeated one may hold groups, such as tasks or documents. It is taken only if each row is
    identified by it, the system and the numbers of samples.
    """
    named = [options.id_column] if options.id_column else [table.find_column((name,)) for name in ITEM_NAMES]
    names = [name for name in named if name and name not in {*options.ignore, *table.nested}]
    repeated = [name for name in names if not Texts.from_values(table.get_column(name)).are_unique]
    system, usual = table.find_system_column(options), table.find_id_column(options)
    numbers = [name for name in table.columns if name.lower() in SAMPLE_NAMES and name not in table.nested]

    def identifies_rows(name: str) -> bool:
        columns = [table.get_column(part) for part in dict.fromkeys([name, *numbers, *([system] if system else [])])]
        return Texts.from_values(map("\t".join, zip(*columns, strict=True))).are_unique

    return next((name for name in repeated if name == usual or identifies_rows(name)), None)


def list_unnamed_scores(
    table: FileTable, options: Options, holds_scores: Callable[[FileTable, str], bool] = FileTable.is_numeric
) -> list[str]:
    """Return the columns of numbers in rows of system and item that have no column of one score; none elsewhere."""
    system, item = table.find_system_column(options), find_item_column(table, options)
    if not system or not item or options.score_column is not None or table.find_column(tables.SCORE_NAMES):
        return []
    others = table.list_other_columns(item, system, *options.groups, *options.ignore)
    return [name for name in others if holds_scores(table, name)]


def select_scores(names: Sequence[str], options: Options) -> list[str]:
    """Return those columns that metrics name, else those that are no counts, costs, settings or numbers of samples."""
    scores = [name for name in names if not any(pattern.fullmatch(name) for pattern in ASIDE_NAMES)]
    requested = [name for name in names if name in options.metrics]
    return requested or [name for name in scores if name.lower() not in {*SAMPLE_NAMES, *ENTRY_NAMES, *RATER_NAMES}]


def _check_one_score(table: FileTable, options: Options) -> None:
    """Raise an error for rows of system and item with several score columns, none of them chosen."""
    if scores := list_unnamed_scores(table, options):
        system, item = table.find_system_column(options), find_item_column(table, options)
        raise InputError(
            f"rows of {system!r} and {item!r} with {describe_items(scores, 'column')} of numbers",
            file=table.path,
            remedy=f"choose the score with {spell('columns', 'score=COLUMN')}, or call its column 'score'",
        )


def _is_rising(table: FileTable, name: str, systems: Factor | None, *, rises_always: bool = False) -> bool:
    """Return whether numbers never fall from row to row (of each system), and rise in a third or all of steps."""
    if not table.is_numeric(name) or table.n_rows < 3:
        return False
    values = table.get_numbers(name)
    if np.isnan(values).any():
        return False
    if systems is not None:
        order = np.argsort(systems.codes, kind="stable")
        steps = np.diff(values[order])[np.diff(systems.codes[order]) == 0]
    else:
        steps = np.diff(values)
    needed = len(steps) if rises_always else len(steps) / 3
    return bool(len(steps) and (steps >= 0).all() and np.count_nonzero(steps) >= needed)


def check_gold_labels(table: FileTable, options: Options) -> None:
    """Raise an error for gold labels next to real-valued predictions, which look like scores."""
    names = table.list_system_columns(options, *table.nested)
    gold = next((name for name in names if name.lower() in GOLD_LIKE_NAMES and table.is_numeric(name)), None)
    if gold is None or len(names) < 2:
        return
    columns = {name: Factor.from_values(table.columns[name]) for name in names if name != gold}
    real = next((name for name, column in columns.items() if is_real_valued(column)), None)
    if real is not None:
        raise InputError(
            f"{_describe_real_values(table.path, real, columns[real])}; the column {gold!r} is taken for what they "
            f"predict. Are all columns scores of systems? Then say {spell('format', 'wide')}, or "
            f"{spell('ignore', gold)}"
        )


def is_real_valued(column: Factor) -> bool:
    """Return whether cells are real numbers rather than labels: fractions with many values or few repeats.

    Examples
    --------
    >>> columns = ["0.25", "0.5", "1"], ["0.5", "0.5", "1.0", "0.75"], ["0.5", "1.0", "0.5", "1.0"], ["1", "2"]
    >>> [is_real_valued(Factor.from_values(cells)) for cells in columns]
    [True, True, False, False]
    >>> is_real_valued(Factor.from_values([f"{k}.0" for k in range(100)]))
    False
    """
    levels = [level for level in column.levels.tolist() if level not in MISSING]
    if len(levels) <= MAX_LABELS and 2 * len(levels) <= len(column):
        return False
    return all(map(is_number, levels)) and not all(float(level).is_integer() for level in levels)


def _describe_real_values(path: object, column: str, values: Factor) -> str:
    """Return a message that a column of labels holds real numbers, with advice."""
    subject = f"column {column!r} holds" if column else "holds"
    return (
        f"{path}: {subject} real numbers ({values[0]}, ...: {len(values.levels):,} different values), which are no "
        "labels: predictions of a regression, similarities or probabilities. Name a metric of numbers with "
        f"{spell('metrics')} (MAE, RMSE, pearson, spearman, ...; AUC, brier, ... for gold values of 0 and 1). If "
        f"they are labels, say {spell('format', 'labels')}"
    )


def check_labels(path: object, name: str, column: Factor, options: Options) -> None:
    """Raise an error for real numbers as labels, unless the user chose a format of labels."""
    if options.is_detected and is_real_valued(column):
        raise InputError(_describe_real_values(path, name, column))


def select_systems(table: FileTable, options: Options, columns: Sequence[str]) -> list[str]:
    """Return the columns named by the option `systems`, or all columns without it."""
    requested = options.own.get("systems")
    if requested is None:
        return [*columns]
    names = [requested] if requested in columns else requested.split("+")
    for name in names:
        table.get_column(name)
    return names


SCORE_OBJECTS = re.compile(r"(?i)(named_?)?(scores?|metrics?|metrics_?data|feedback_stats|assessments|evaluations?)")
"""Names of columns of objects with the scores of an item by metric, as tools for traces and evaluations write them."""

VALUE_KEYS = ("value", "score", "avg", "mean")
"""Keys of the number in an object that describes a score."""


def expand_scores(table: FileTable) -> FileTable:
    """Return the table with a column `scores.NAME` for each number in columns of objects, such as `scores`."""
    columns: dict[str, Sequence[str]] = {}
    texts = {name: table.columns[name] for name in filter(SCORE_OBJECTS.fullmatch, table.columns)}
    nested = parse_nested_columns(texts) | {name: table.nested[name] for name in texts if name in table.nested}
    for name, values in nested.items():
        cells = [_parse_scores(value) for value in values]
        for key in dict.fromkeys(key for cell in cells for key in cell):
            columns[f"{name}.{key}"] = Texts.from_values(format_cell(cell.get(key)) for cell in cells)
    columns = {name: cells for name, cells in columns.items() if name not in table.columns}
    if not columns:
        return table
    note = f"{table.path}: scores in objects are read as {describe_items([*columns], 'column')}"
    return replace(table, columns={**table.columns, **columns}, notes=[*table.notes, note])


def has_metrics(table: FileTable, options: Options) -> bool:
    """Return whether a table holds objects `metrics` of scores that are compared instead of its gold labels."""
    columns = expand_scores(table).columns
    names = {name for name in columns if re.match(r"(?i)metrics?\.", name) and name not in table.columns}
    names = {name for name in names if not COST_NAMES.fullmatch(name.partition(".")[2])}
    requested = {name.partition(":")[0] for name in options.metrics}
    return bool(names & requested if requested else names)


def _parse_scores(cell: Any) -> dict[str, Any]:
    """Return the numbers in an object by metric, or in a list of objects with a name and a value.

    Examples
    --------
    >>> _parse_scores({"f1": 0.5, "note": "ok"}), _parse_scores([{"name": "toxic", "value": 1}, {"name": "why"}])
    ({'f1': 0.5}, {'toxic': 1})
    """
    if isinstance(cell, list):
        parts = [part for part in cell if isinstance(part, dict) and isinstance(part.get("name"), str)]
        cell = {part["name"]: part for part in parts} if len({part["name"] for part in parts}) == len(cell) else {}
    if not isinstance(cell, dict):
        return {}
    values = {
        key: next((value[name] for name in VALUE_KEYS if name in value), None) if isinstance(value, dict) else value
        for key, value in cell.items()
    }
    return {key: value for key, value in values.items() if isinstance(value, int | float)}


def remove_bookkeeping(table: FileTable, options: Options, *, costs: bool = False, noun: str = "scores") -> FileTable:
    """Remove the columns of a score table that are not scores, and note which.

    With `costs`, columns of what items cost (such as time) are removed too. This is for columns that are systems,
    not metrics.
    """
    if "systems" in options.own:
        return table
    table = expand_scores(table)
    question = f"{noun} without bookkeeping{' and costs' * costs}"
    return table.recall(question, options, lambda: _remove_bookkeeping(table, options, costs=costs, noun=noun))


def _remove_bookkeeping(table: FileTable, options: Options, *, costs: bool, noun: str) -> FileTable:
    requested = {*options.metrics, options.score_column}
    table = _remove_columns(table, dict.fromkeys(_list_sample_numbers(table, options, requested), SAMPLES), noun)
    columns = table.list_system_columns(options, *table.nested)
    reasons = {name: why for name, why in _find_non_scores(table, columns).items() if name not in requested}
    systems = [name for name in reasons if name.lower() == "step" and _is_binary_score(table, name)]
    reasons = {name: reason for name, reason in reasons.items() if name not in systems}
    if costs:
        reasons = {name: COSTS for name in columns if COST_NAMES.fullmatch(name) and name not in requested} | reasons
    if not any(table.is_numeric(name) for name in columns if name not in reasons):
        return table
    doubt = f"taken for a system's scores; if it is none, {spell('ignore')}"
    binary = [f"{table.path}: column {name!r} holds 0 and 1 alone: {doubt} {name!r}" for name in systems]
    return _remove_columns(replace(table, notes=[*table.notes, *map(ScopeNote, binary)]), reasons, noun)


def remove_label_bookkeeping(table: FileTable, options: Options, gold: str, columns: Sequence[str]) -> FileTable:
    """Remove the columns of a label table that are not labels, and note which."""
    if "systems" in options.own:
        return table
    gold_labels = Factor.from_values(table.get_column(gold))
    labels = gold_labels.levels
    reasons = {}
    for name in columns:
        if name in table.nested:
            continue
        column = Factor.from_values(table.columns[name])
        has_gold_label = any(level in labels for level in column.levels)
        if reason := _describe_by_name(table, name):
            reasons[name] = reason
        elif not has_gold_label and len(column.levels) == 1 and table.n_rows >= MIN_ROWS:
            reasons[name] = CONSTANT
        elif not has_gold_label and _are_dates(column):
            reasons[name] = TIME
        elif not has_gold_label and COST_NAMES.fullmatch(name) and table.is_numeric(name):
            reasons[name] = COSTS
        elif options.is_detected and is_real_valued(column) and not is_real_valued(gold_labels):
            reasons[name] = "real numbers"
    return table if len(reasons) == len(columns) else _remove_columns(table, reasons, "labels")


def _is_binary_score(table: FileTable, name: str) -> bool:
    """Return whether a column holds only 0 and 1, unsorted: scores of a system, not steps."""
    values = table.get_numbers(name) if table.is_numeric(name) else np.array([])
    return bool(np.isin(values, (0, 1)).all() and (np.diff(values) < 0).any())


def _list_sample_numbers(table: FileTable, options: Options, requested: Collection[str | None]) -> list[str]:
    """Return the columns that number the samples of an item, next to ids that are repeated."""
    id_name = table.find_id_column(options)
    candidates = [name for name in table.list_system_columns(options, *table.nested) if name not in requested]
    names = [name for name in candidates if name.lower() in SAMPLE_NAMES]
    if id_name is None or not names:
        return []
    items = Factor.from_values(table.get_column(id_name))
    if len(items.levels) == table.n_rows:
        return []
    columns = {name: Factor.from_values(table.columns[name]) for name in names}
    return [
        name
        for name, column in columns.items()
        if len(np.unique(items.codes.astype(np.int64) * len(column.levels) + column.codes)) == table.n_rows
    ]


SAMPLES = "numbers of samples"
CONSTANT, TIME, COUNTS = "the same in every row", "times", "counters"
COSTS = "costs and times of items"


def _remove_columns(table: FileTable, reason_by_name: Mapping[str, str], noun: str) -> FileTable:
    """Remove columns, and add a note with the reasons."""
    if not reason_by_name:
        return table
    reasons: dict[str, list[str]] = {}
    for name, reason in reason_by_name.items():
        reasons.setdefault(reason, []).append(name)
    reasons_text = "; ".join(f"{describe_items(names, 'column')}: {reason}" for reason, names in reasons.items())
    format_ = "wide" if noun == "scores" else noun
    remedy = f"If some are, name the systems with {spell('format', f'{format_}:systems=A+B')}"
    return replace(
        table,
        columns={name: cells for name, cells in table.columns.items() if name not in reason_by_name},
        removed={**table.removed, **{name: table.columns[name] for name in reason_by_name if name in table.columns}},
        notes=[*table.notes, ScopeNote(f"left out as no {noun} of systems: {reasons_text}. {remedy}")],
    )


def _describe_by_name(table: FileTable, name: str) -> str:
    """Return what a column is according to its name; empty if it may be a system."""
    if (match := EXTREME_NAMES.fullmatch(name)) and match[1] in table.columns:
        return "minima and maxima of other columns"
    if (match := SPREAD_NAMES.fullmatch(name)) and match[1] in table.columns:
        return "spreads, costs or confidences of other columns"
    if CLOCK_NAMES.fullmatch(name):
        return TIME if "seed" not in name.lower() else "seeds"
    return COUNTS if averages_only.STEP.fullmatch(name) or COUNTER_NAMES.fullmatch(name) else ""


def _find_non_scores(table: FileTable, columns: Sequence[str]) -> dict[str, str]:
    """Return the columns that are not scores by their names, or because they hold dates or one text, with the reason.

    A name of a setting is that of a system if the numbers differ.
    """
    reasons = {name: reason for name in columns if (reason := _describe_by_name(table, name))}
    for name in (name for name in columns if name not in reasons and table.n_rows):
        is_number, is_setting = table.is_numeric(name), SETTING_NAMES.fullmatch(name)
        if is_number and not is_setting:
            continue
        column = Factor.from_values(table.columns[name])
        if len(column.levels) == 1 and table.n_rows >= MIN_ROWS and column[0]:
            reasons[name] = CONSTANT
        elif not is_number and _are_dates(column):
            reasons[name] = TIME
    return reasons


def _are_dates(column: Factor) -> bool:
    return len(column.levels) > 1 and all(DATE_PATTERN.fullmatch(level) for level in column.levels)
