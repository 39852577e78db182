"""Columns that stand beside scores and labels: counters, times, constants, spreads. They are no systems.

A column is known by its name, or by values that cannot be scores. The notes name what is left out; the option
`systems=NAME+NAME` of a format names the systems instead. Tables of averages or of training are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Factor
from sigdask.counts.shown import FirstLine
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.formats.reading.aggregated import STEP, is_metric, leaderboard, report_table, training_curve
from sigdask.formats.reading.numbers import MISSING, is_number, is_percent
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.summaries import is_summary
from sigdask.formats.reading.tables import ID_NAMES, INDEX, SCORE_NAMES, SYSTEM_NAMES, FileTable
from sigdask.text import some

CLOCK = re.compile(
    r"(.*[/_. -])?(t_?stamp|time_?stamp|date_?time|(start|end|run|wall)?_?time|date|created|updated|seed)"
    r"([_ -](at|on|s|ms|sec|seconds|id))?",
    re.IGNORECASE,
)
"""Names of columns that say when and how a score was taken."""

COUNTER = re.compile(
    r"([\w-]+[/.])*_?(rank|n|count|support|size|length|n_tokens|n_words|seconds|line|lineno|line_number|position|runtime|"
    r"((\w+_)?(trial|run|job|worker|shard|gpu|node|fold|batch|chunk)_(index|idx|id|num|number|no)))",
    re.IGNORECASE,
)
"""Names of columns that count or number something."""

COST = re.compile(
    r"((total|mean|avg|average|num|n|input|output|prompt|completion|generated|generation|reasoning|inference|response|"
    r"request|wall|api|cpu|gpu|user|eval|decode|decoding|cached)[_ .-])*"
    r"(costs?|price|usd|latency|run_?time|duration|elapsed|time|tokens?|throughput)"
    r"([_ .-](usd|eur|cents|s|sec|secs|seconds|ms|us|ns|min|minutes|hours|total|count|in|out|used|generated))*"
    r"|(tokens|words|samples)_per_(s|sec|second)|(peak|max|gpu)_(memory|mem|vram)([_ ](mb|gb|bytes))?",
    re.IGNORECASE,
)
"""Names of columns that say what an item took, where they stand beside columns of scores."""

AMOUNT = re.compile(r"((num|n|total)_)?(tokens?|words|samples|examples|sequences|batch(es)?|updates?)", re.IGNORECASE)
"""Names of a first column that counts what a model was trained on, where it rises in every row."""

ENTRY_NAMES = frozenset({"name", "method", "methods", "approach", "team", "participant", "submission", "entry",
                         "checkpoint", "architecture", "algorithm", "classifier", "llm", "engine", "models", "systems",
                         "run_name", "run_id", "experiment", "config"})  # fmt: skip
"""Columns that may name systems, where each row holds the averages of one."""

MOST_ENTRIES = 50
"""Rows that may be systems where the name of their column does not say so."""

RANK = re.compile(r"#|ranks?|ranking|place|pos(ition)?", re.IGNORECASE)

SETTING = re.compile(
    r"(random_)?seed|temperature|top_[pk]|lr|learning_rate|batch_size|num_beams|beam(_size)?|max_(new_)?tokens|version|"
    r"(num_?|n_?|k_?)(few_?)?shots?|fold|run|trial|(sample|group|set)_size|threshold",
    re.IGNORECASE,
)
"""Names of columns that hold a setting, where they are the same in every row."""

EXTREME = re.compile(r"(.+)__(MIN|MAX)")
"""What Weights & Biases writes beside each column of a chart."""

SPREAD = re.compile(
    r"(.+)[_ ](std|sd|se|stderr|sem|ci|var|latency|seconds|(n_)?tokens|length|cost|rank|count|conf|confidence|probs?)",
    re.IGNORECASE,
)
"""Names of what stands beside another column: its spread, what it took, how sure it is."""

DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?)?\s*(Z|UTC|[+-]\d\d:?\d\d)?")
FIRST_SECOND, LAST_SECOND = 9e8, 2.2e9
"""Unix times from 1998 to 2039."""

FEWEST = 10
"""Rows from which on a column is known by its values."""

MOST_LABELS = 20
"""Different labels that numbers with decimals may be."""

GOLD_LIKE = frozenset({"label", "labels", "target", "truth"})
"""Columns that hold gold labels, where others hold labels or predictions."""


def check_rows(table: FileTable, options: Options, *, alone: bool = False) -> None:
    """Refuse a table whose rows are no items: averages of systems or classes, steps of training.

    Parameters
    ----------
    table : FileTable
        As it was read.
    options : Options
        Which columns the user named.
    alone : bool
        Whether it is the only file, and its format is to be told: its rows may then be systems by other names.

    Raises
    ------
    RefusedFileError
        It says what the rows are.
    """
    names = {name.lower() for name in table.columns}
    if {"precision", "recall", "f1-score", "support"} <= names:
        raise report_table(table.path)
    system = table.system_name(options)
    if system is not None and system not in (*options.groups, *options.ignore):
        _check_one_score(table, options, system)
    if options.id_column is not None or "systems" in options.own:
        return
    if alone:
        _check_no_averages(table, options)
    if _has_ids(table):
        return
    systems = None if system is None or system in table.nested else Factor.of(table.columns[system])
    step = _step(table, systems)
    if step is not None and step not in (*options.groups, *options.ignore):
        raise training_curve(table.path, step)
    if systems is None or system in options.ignore or not table.header:
        return
    others = [name for name in table.others(system, *options.groups, *options.ignore) if _holds_scores(table, name)]
    if others and len(systems.levels) == table.n_rows > 1:
        raise leaderboard(table.path, system or "")
    if others and (table.conventional(SCORE_NAMES) or all(map(is_metric, others))) and len(systems.levels) > 1:
        raise InputError(
            f"{table.path}: rows of system, item and score need a column that says which item each is of; columns: "
            f"{', '.join(table.columns)}; name it with --id"
        )


def _step(table: FileTable, systems: Factor | None) -> str | None:
    """Return the column that counts steps of training; None where rows are no points of a curve."""
    first = next(iter(table.columns))
    if AMOUNT.fullmatch(first) and _grows(table, first, None, always=True):
        return first
    return next((name for name in table.columns if STEP.fullmatch(name) and _grows(table, name, systems)), None)


def _check_no_averages(table: FileTable, options: Options) -> None:
    """Refuse a table with one row of averages for each system, whatever the column of systems is called.

    Beside other columns than metrics, a name is that of an item as well as of a system, unless systems are ranked.
    """
    aside = {*options.groups, *options.ignore, *table.nested}
    names = [name for name in table.columns if table.header and name not in aside and not _holds_scores(table, name)]
    for name in names:
        is_system, is_index = name.lower() in SYSTEM_NAMES, name == INDEX
        if not (is_system or is_index or name.lower() in ENTRY_NAMES):
            continue
        numbers = [other for other in table.others(name, *aside) if _holds_scores(table, other)]
        scores = [other for other in numbers if other.lower() not in ID_NAMES and not RANK.fullmatch(other)]
        if not scores or not len(Factor.of(table.columns[name]).levels) == table.n_rows > 1:
            continue
        if is_system:
            raise leaderboard(table.path, name)
        if table.n_rows <= (FEWEST - 1 if is_index else MOST_ENTRIES) and _are_of_entries(numbers, scores):
            raise leaderboard(table.path, name, f". If rows are items, say --id {name!r}")


def _are_of_entries(numbers: Sequence[str], scores: Sequence[str]) -> bool:
    """Whether columns of numbers are averages by their names: several metrics, or scores beside a rank."""
    if any(map(RANK.fullmatch, numbers)):
        return True
    metrics = [name for name in scores if not (COST.fullmatch(name) or COUNTER.fullmatch(name))]
    return len(scores) > 1 and bool(metrics) and all(is_metric(name) or is_summary(name) for name in metrics)


def _holds_scores(table: FileTable, name: str) -> bool:
    """Whether a column holds numbers, with percent signs or without."""
    return table.is_numeric(name) or (name not in table.nested and is_percent(table.columns[name]))


def _check_one_score(table: FileTable, options: Options, system: str) -> None:
    """Refuse rows of system and item with several scores, of which none is named."""
    item = table.id_name(options)
    if item is None or options.score_column is not None or table.conventional(SCORE_NAMES):
        return
    if item in table.nested or Texts.of(table.columns[item]).are_unique:
        return
    scores = [name for name in table.others(item, system, *options.groups, *options.ignore) if table.is_numeric(name)]
    if scores:
        raise InputError(
            f"{table.path}: rows of {system!r} and {item!r} with {some(scores, 'column')} of numbers; choose the score "
            "with --score-column, or call its column 'score'"
        )


def _has_ids(table: FileTable) -> bool:
    """Whether a column is called like ids, and holds more than the numbers of rows."""
    return any(name.lower() in ID_NAMES and name not in table.row_columns() for name in table.columns)


def _grows(table: FileTable, name: str, systems: Factor | None, *, always: bool = False) -> bool:
    """Whether numbers never fall from row to row (of a system), and rise again and again, or always."""
    if not table.is_numeric(name) or table.n_rows < 3:
        return False
    values = table.numbers(name)
    if np.isnan(values).any():
        return False
    if systems is not None:
        order = np.argsort(systems.codes, kind="stable")
        steps = np.diff(values[order])[np.diff(systems.codes[order]) == 0]
    else:
        steps = np.diff(values)
    needed = len(steps) if always else len(steps) / 3
    return bool(len(steps) and (steps >= 0).all() and np.count_nonzero(steps) >= needed)


def check_gold_beside(table: FileTable, options: Options) -> None:
    """Refuse gold labels beside real-valued predictions, which would pass for scores of systems."""
    columns = table.others(table.id_name(options), *options.groups, *options.ignore, *table.nested)
    gold = next((name for name in columns if name.lower() in GOLD_LIKE and table.is_numeric(name)), None)
    if gold is None or len(columns) < 2:
        return
    real = next((name for name in columns if name != gold and is_real_valued(Factor.of(table.columns[name]))), None)
    if real is not None:
        raise InputError(
            f"{real_values(table.path, real, Factor.of(table.columns[real]))}; the column {gold!r} is taken for what "
            f"they predict. Are all columns scores of systems? Then say --format wide, or --ignore {gold}"
        )


def is_real_valued(column: Factor) -> bool:
    """Whether cells are real numbers rather than labels: not all whole, and more than 20 different, or no two alike.

    Examples
    --------
    >>> [is_real_valued(Factor.of(cells)) for cells in (["0.25", "0.5", "1.75"], ["0.5", "1.0", "0.5"], ["1", "2"])]
    [True, False, False]
    >>> is_real_valued(Factor.of([f"{k}.0" for k in range(100)]))
    False
    """
    levels = [level for level in column.levels.tolist() if level not in MISSING]
    if len(levels) <= 2 or (len(levels) <= MOST_LABELS and len(column.levels) < len(column)):
        return False
    if not all(map(is_number, levels)):
        return False
    whole = [float(level).is_integer() for level in levels]
    return not all(whole) if len(levels) > MOST_LABELS else not any(whole)


def real_values(path: object, column: str, values: Factor) -> str:
    """Say that a column of labels holds real numbers, and what to do."""
    of_column = f"column {column!r} holds" if column else "holds"
    return (
        f"{path}: {of_column} real numbers ({values[0]}, ...: {len(values.levels):,} different values), which are no "
        "labels: predictions of a regression, similarities or probabilities. Metrics of these (Pearson, MAE, ...) are "
        "not available yet; compare a score of each item instead, such as the absolute error, in a table with a column "
        "a system; if they are labels, say --format labels"
    )


def check_labels(path: object, name: str, column: Factor, options: Options) -> None:
    """Refuse real numbers as labels, unless the user says that they are labels."""
    if options.is_detected and is_real_valued(column):
        raise InputError(real_values(path, name, column))


def chosen_systems(table: FileTable, options: Options, columns: Sequence[str]) -> list[str]:
    """Return the columns that the option `systems` names; all without it."""
    said = options.own.get("systems")
    if said is None:
        return [*columns]
    names = [said] if said in columns else said.split("+")
    for name in names:
        table.column(name)
    return names


def without_bookkeeping(table: FileTable, options: Options, *, costs: bool = False) -> FileTable:
    """Leave out the columns of a table of scores that are no scores; a notice names them.

    What items cost is left out too where that is asked: of columns that are systems, not metrics.
    """
    if "systems" in options.own:
        return table
    columns = table.others(table.id_name(options), *options.groups, *options.ignore, *table.nested)
    asked = {*options.metrics, options.score_column}
    found = {name: why for name, why in _beside_scores(table, columns).items() if name not in asked}
    systems = [name for name in found if name.lower() == "step" and _are_right_or_wrong(table, name)]
    found = {name: why for name, why in found.items() if name not in systems}
    if costs:
        found = {name: COSTS for name in columns if COST.fullmatch(name) and name not in asked} | found
    if not any(table.is_numeric(name) for name in columns if name not in found):
        return table
    taken = (
        f"{table.path}: column {name!r} holds 0 and 1 alone: taken for a system's scores; if it is none, --ignore "
        f"{name!r}"
        for name in systems
    )
    notes = [*table.notes, *map(FirstLine, taken), *_constants(table, [name for name in columns if name not in found])]
    return _without(replace(table, notes=notes), found, "scores")


def without_label_bookkeeping(table: FileTable, options: Options, gold: str, columns: Sequence[str]) -> FileTable:
    """Leave out the columns of a table of labels that are none; a notice names them."""
    if "systems" in options.own:
        return table
    right = Factor.of(table.column(gold))
    labels = right.levels
    found = {}
    for name in columns:
        if name in table.nested:
            continue
        column = Factor.of(table.columns[name])
        known = any(level in labels for level in column.levels)
        if why := _name_says(table, name):
            found[name] = why
        elif not known and len(column.levels) == 1 and table.n_rows >= FEWEST:
            found[name] = CONSTANT
        elif not known and _are_dates(column):
            found[name] = TIME
        elif not known and COST.fullmatch(name) and table.is_numeric(name):
            found[name] = COSTS
        elif options.is_detected and is_real_valued(column) and not is_real_valued(right):
            found[name] = "real numbers"
    return table if len(found) == len(columns) else _without(table, found, "labels")


def _are_right_or_wrong(table: FileTable, name: str) -> bool:
    """Whether a column holds 0 and 1 in no order: the scores of a system rather than steps."""
    values = table.numbers(name) if table.is_numeric(name) else np.array([])
    return bool(np.isin(values, (0, 1)).all() and (np.diff(values) < 0).any())


CONSTANT, TIME, COUNTS = "the same in every row", "times", "counters"
COSTS = "costs and times of items"


def _without(table: FileTable, found: Mapping[str, str], what: str) -> FileTable:
    """Leave out columns, and say why."""
    if not found:
        return table
    reasons: dict[str, list[str]] = {}
    for name, why in found.items():
        reasons.setdefault(why, []).append(name)
    listed = "; ".join(f"{some(names, 'column')}: {why}" for why, names in reasons.items())
    remedy = (
        f"name the systems with --format '{'wide' if what == 'scores' else 'labels'}:systems=A+B' if some are {what}"
    )
    return replace(
        table,
        columns={name: cells for name, cells in table.columns.items() if name not in found},
        notes=[*table.notes, FirstLine(f"left out as no {what} of systems: {listed} ({remedy})")],
    )


def _name_says(table: FileTable, name: str) -> str:
    """Say what a column is by its name; nothing where that may be a system."""
    if (match := EXTREME.fullmatch(name)) and match[1] in table.columns:
        return "minima and maxima of other columns"
    if (match := SPREAD.fullmatch(name)) and match[1] in table.columns:
        return "spreads, costs or confidences of other columns"
    if CLOCK.fullmatch(name):
        return TIME if "seed" not in name.lower() else "seeds"
    return COUNTS if STEP.fullmatch(name) or COUNTER.fullmatch(name) else ""


def _beside_scores(table: FileTable, columns: Sequence[str]) -> dict[str, str]:
    """Return the columns that are no scores, and why."""
    found = {name: why for name in columns if (why := _name_says(table, name))}
    numbers: dict[str, NDArray[np.float64]] = {}
    for name in columns:
        if name in found:
            continue
        if table.is_numeric(name):
            numbers[name] = table.numbers(name)
            continue
        column = Factor.of(table.columns[name])
        if _are_dates(column):
            found[name] = TIME
        elif len(column.levels) == 1 and table.n_rows >= FEWEST and column[0]:
            found[name] = CONSTANT
    if table.n_rows >= FEWEST:
        found |= dict(_by_values(numbers))
    return found


def _by_values(numbers: Mapping[str, NDArray[np.float64]]) -> Iterator[tuple[str, str]]:
    """Yield the columns whose numbers cannot be scores beside the others.

    A constant may be the score of a system (always 0 or 1, a baseline's 0.5). It is none where it is a setting by its
    name, or a whole number beyond the scale of the others, which are shares.
    """
    whole = {
        name: not np.isnan(values).any() and (values == np.floor(values)).all() for name, values in numbers.items()
    }
    counting = [name for name, values in numbers.items() if whole[name] and _counts_on(values)]
    times = [name for name, values in numbers.items() if _are_times(values)]
    constant = {name: values[0] for name, values in numbers.items() if len(np.unique(values)) == 1}
    scores = [own for name, own in numbers.items() if name not in {*counting, *times, *constant}]
    if not scores:
        return
    yield from ((name, COUNTS) for name in counting)
    yield from ((name, TIME) for name in times)
    are_shares = all(np.nanmin(own) >= 0 and np.nanmax(own) <= 1 for own in scores)
    for name, value in constant.items():
        beyond = are_shares and whole[name] and value not in {0, 1, 100}
        if value not in {0, 1} and (beyond or SETTING.fullmatch(name)):
            yield name, CONSTANT


def _counts_on(values: NDArray[np.float64]) -> bool:
    steps = np.diff(values)
    return bool(steps[0] != 0 and (steps == steps[0]).all())


def _are_times(values: NDArray[np.float64]) -> bool:
    """Whether numbers are Unix times, in seconds or thousandths, millionths or billionths of them."""
    least, most = float(np.nanmin(values, initial=np.inf)), float(np.nanmax(values, initial=-np.inf))
    return any(FIRST_SECOND * scale <= least <= most <= LAST_SECOND * scale for scale in (1, 1e3, 1e6, 1e9))


def _are_dates(column: Factor) -> bool:
    return len(column.levels) > 1 and all(DATE.fullmatch(level) for level in column.levels)


def _constants(table: FileTable, columns: Sequence[str]) -> Iterator[str]:
    """Say which columns are the same in every row, and taken for systems all the same."""
    if table.n_rows < FEWEST or len(columns) < 2:
        return
    for name in columns:
        if table.is_numeric(name):
            values = np.unique(table.numbers(name))
            if len(values) == 1 and values[0] not in {0, 1} and not np.isnan(values[0]):
                yield FirstLine(
                    f"{table.path}: column {name!r} is {values[0]:g} in every row: taken for a system's scores; if it "
                    f"is none, --ignore {name!r}"
                )
