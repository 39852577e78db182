"""Labels: a table with gold and a column a system, or a gold file and a file a system; one an item, or sets of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.checks import foreign_labels
from sigdask.counts.factors import Factor
from sigdask.counts.label_sets import known_labels
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import AS_THEY_STAND, Order, align, in_order
from sigdask.formats.reading.numbers import MISSING, is_number
from sigdask.formats.reading.options import Options, Source, system_names
from sigdask.formats.reading.replicates import one_sample
from sigdask.formats.reading.summaries import without_summaries
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.tables.bookkeeping import check_labels, chosen_systems, without_label_bookkeeping
from sigdask.formats.tables.label_sets import (
    are_sets,
    as_sets,
    foreign,
    hint,
    holds_lists,
    opened,
    refuse_sequences,
    separator,
    without_texts,
)
from sigdask.text import count_noun, some

BESIDE_NAMES = ("gold", "gold_label", "true_label", "y_true")
"""Of gold labels that stand beside predictions."""

GOLD_NAMES = (*BESIDE_NAMES, "reference", "truth", "target", "label", "labels")
ANSWER_NAMES = ("prediction", "predicted", "predicted_label", "pred", "pred_label", "y_pred")
NO_LABELS = ("-", "-1")
"""What SNLI's gold column holds where its annotators did not agree, in text and as a number."""

PREDICTION_NAMES = (*ANSWER_NAMES, "output", "system", "label", "labels")


def read_labels(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read gold labels and predictions."""
    options.only("labels", separator=(), systems=())
    if gold is None and len(sources) == 1:
        return _one_table(without_summaries(read_table(sources[0].path, options.ignore), options), options)
    tables = [read_table(source.path, options.ignore) for source in sources]
    return from_tables(sources, tables, None if gold is None else read_table(gold, options.ignore), options)


def from_tables(
    sources: Sequence[Source], tables: Sequence[FileTable], gold: FileTable | None, options: Options
) -> Counts:
    """Bring a table a system together with gold labels, of a table of their own or a column of each."""
    if _in_lists(gold or tables[0], options):
        tables, gold = [*map(opened, tables)], None if gold is None else opened(gold)
    if gold is None:
        options = replace(options, gold_column=_gold_in_each(tables, options))
    gold_name = options.gold_column if gold is None else None
    tables = [one_sample(table, table.id_name(options), options, gold=gold_name) for table in tables]
    if gold is not None:
        gold = one_sample(gold, gold.id_name(options), options, gold=_gold(gold, options))
    first = tables[0] if gold is None else gold
    others = tables[1:] if gold is None else tables
    right = _gold(first, options)
    if right not in first.nested:
        check_labels(first.path, right, Factor.of(first.column(right)), options)
    ids, orders, warnings = align(first, others, options)
    if gold is None:
        orders = [AS_THEY_STAND, *orders]
        _same_gold(tables, orders, options)
    predictions: dict[str, Factor] = {}
    warnings += [text for table in (first, *others) for text in _guesses(table, options)]
    for name, table, order in zip(system_names(sources), tables, orders, strict=True):
        column = _prediction(table, options)
        predictions[name] = Factor.of(in_order(table.column(column), order))
        check_labels(table.path, column, predictions[name], options)
    return _counts(
        first,
        Factor.of(first.column(right)),
        predictions,
        ids,
        options,
        (list(tables), orders),
        warnings,
    )


def _in_lists(table: FileTable, options: Options) -> bool:
    """Whether gold labels are in lists, or are said to be several in a text."""
    named = options.gold_column or table.conventional(GOLD_NAMES)
    columns = [named] if named else table.others(table.id_name(options), *options.groups, *options.ignore)
    return "separator" in options.own or any(holds_lists(table, column) for column in columns)


def _one_table(table: FileTable, options: Options) -> Counts:
    in_lists = _in_lists(table, options)
    table = opened(table) if in_lists else table
    gold = options.gold_column or gold_beside(table) or gold_among(table, options)
    if gold is None and in_lists:
        gold = table.conventional(GOLD_NAMES)
    if gold is None:
        raise InputError(
            f"{table.path}: no column 'gold'; columns: {', '.join(table.columns)}; name it with --gold-column"
        )
    table = one_sample(table, table.id_name(options), options, gold=gold)
    right = Factor.of(table.column(gold))
    beside = table.others(gold, table.id_name(options), *options.groups, *options.ignore)
    table = without_label_bookkeeping(table, options, gold, beside)
    systems = table.others(gold, table.id_name(options), *options.groups, *options.ignore)
    answers = [name for name in systems if name.lower() in ANSWER_NAMES]
    if not answers and gold.lower() not in BESIDE_NAMES and gold_among(table, options) == gold:
        answers = _answers(table, gold, options)
    if "systems" in options.own:
        answers = chosen_systems(table, options, systems)
    given = {name: Factor.of(table.column(name)) for name in answers or systems}  # the text beside is no system
    for name, column in {gold: right, **given}.items():
        check_labels(table.path, name, column, options)
    predictions = given if "systems" in options.own else _without_texts(given, right, options)
    refuse_sequences(right)
    if (mark := separator(options, right)) is not None or are_sets([right]):
        sets = {name: as_sets(own, mark, options.mapped) for name, own in given.items()}
        predictions = {name: given[name] for name in without_texts(sets, as_sets(right, mark, options.mapped))}
    notes = [*table.notes, *_set_aside(table, gold, predictions, systems)]
    return _counts(table, right, predictions, table.ids(options), options, ([], []), notes)


def gold_among(table: FileTable, options: Options) -> str | None:
    """Return a column called as gold labels are, where others hold its labels: `index,text,label,svm,bert`."""
    name = table.conventional(GOLD_NAMES)
    return name if name is not None and name not in options.ignore and _answers(table, name, options) else None


def _answers(table: FileTable, gold: str, options: Options) -> list[str]:
    """Return the columns of which most cells are labels that come again and again in the column of gold labels."""
    if not table.header or gold in table.nested:
        return []
    right = Factor.of(table.columns[gold])
    if 2 * len(right.levels) > len(right):
        return []
    labels = {*right.levels, *options.mapped}
    found = []
    for name in table.others(gold, table.id_name(options), *options.groups, *options.ignore, *table.nested):
        column = Factor.of(table.columns[name])
        known = np.array([level in labels for level in column.levels])
        if 2 * int(np.count_nonzero(known[column.codes])) > len(column):
            found.append(name)
    return found


def _without_texts(given: dict[str, Factor], gold: Factor, options: Options) -> dict[str, Factor]:
    """Leave out columns that hardly repeat and hold no gold label, where others do."""
    labels = {*gold.levels, *options.mapped}
    texts = [
        name for name, own in given.items() if 2 * len(own.levels) > len(own) > 2 and labels.isdisjoint(own.levels)
    ]
    return given if len(texts) == len(given) else {name: own for name, own in given.items() if name not in texts}


def _set_aside(table: FileTable, gold: str, predictions: Collection[str], columns: Sequence[str]) -> list[str]:
    """Say which columns are taken for what, where names alone do not tell."""
    aside = [name for name in columns if name not in predictions]
    if not aside and gold.lower() in BESIDE_NAMES:
        return []
    left = f"; {some(aside, 'column')} beside them {'is' if len(aside) == 1 else 'are'} no system" if aside else ""
    return [f"{table.path}: column {gold!r} holds gold labels, {', '.join(map(repr, predictions))} predictions{left}"]


def _counts(
    first: FileTable,
    gold: Factor,
    predictions: dict[str, Factor],
    ids: Texts | None,
    options: Options,
    files: tuple[list[FileTable], list[Order]],
    warnings: list[str],
) -> Counts:
    groups = {name: Factor.of(_group(name, first, files)) for name in options.groups}
    if first not in files[0]:
        groups |= _further_groups(first, gold, set(predictions), options)
    refuse_sequences(gold)
    if (mark := separator(options, gold)) is not None or are_sets([gold, *predictions.values()]):
        return _of_sets(first, gold, predictions, ids, groups, mark, options, warnings)
    lines = np.asarray(first.lines)
    if (mark := _no_label(gold, predictions.values(), options)) is not None:
        kept = ~gold.are(mark)
        n_left_out = len(gold) - int(np.count_nonzero(kept))
        warnings = [*warnings, f"{first.path}: gold {mark!r} on {count_noun(n_left_out, 'item')} is no label: left out"]
        lines, gold, ids = lines[kept], gold[kept], None if ids is None else ids[kept]
        predictions, groups = ({name: own[kept] for name, own in d.items()} for d in (predictions, groups))
    _check_filled(first, gold, predictions, ids, lines, "every item needs one")
    mapped = options.mapped
    known = {*gold.levels}.union(*(column.levels for column in predictions.values()))
    warnings = [*warnings, *options.unmapped(known), *hint(gold)]
    right = gold.renamed(mapped)
    given = {name: column.renamed(mapped) for name, column in predictions.items()}
    return Counts.from_labels(
        right, given, ids=ids, groups=groups, name=options.name, warnings=[*warnings, *foreign_labels(right, given)]
    )


def _of_sets(
    first: FileTable,
    gold: Factor,
    predictions: Mapping[str, Factor],
    ids: Texts | None,
    groups: Mapping[str, Factor],
    mark: str | None,
    options: Options,
    warnings: list[str],
) -> Counts:
    """Return the counts of items with any number of labels."""
    if mark is None:
        _check_filled(first, gold, predictions, ids, np.asarray(first.lines), "an item without any has []")
    elif "separator" not in options.own:
        why = f"{mark!r} parts the labels of a cell, as the metrics that are asked for need"
        warnings = [*warnings, f"{first.path}: {why}"]
    right = as_sets(gold, mark, {})
    given = {name: as_sets(own, mark, {}) for name, own in predictions.items()}
    warnings = warnings + options.unmapped(known_labels(right).union(*map(known_labels, given.values())))
    if mapped := options.mapped:
        right, given = as_sets(gold, mark, mapped), {n: as_sets(own, mark, mapped) for n, own in predictions.items()}
    return Counts.from_label_sets(
        right, given, ids=ids, groups=groups, name=options.name, warnings=[*warnings, *foreign(right, given)]
    )


def _check_filled(
    first: FileTable,
    gold: Factor,
    predictions: Mapping[str, Factor],
    ids: Texts | None,
    lines: NDArray[np.int64],
    remedy: str,
) -> None:
    """Refuse items without a label."""
    for what, column in (("gold", gold), *predictions.items()):
        if "" in column:
            at = int(np.argmax(column.are("")))
            where = ids[at] if ids else f"line {lines[at]}"
            raise InputError(f"{first.path}: {what} has no label for item {where!r}; {remedy}")


def _no_label(gold: Factor, predictions: Iterable[Factor], options: Options) -> str | None:
    """Return what stands for "no gold label": SNLI's "-" beside words, or its -1 beside the numbers of three classes.

    No system may give it, nor --map name it.
    """
    known = set(gold.levels)
    mark = next((mark for mark in NO_LABELS if mark in known), None)
    if mark is None or mark in options.mapped or any(mark in column for column in predictions):
        return None
    others = known - {mark}
    words = all(len(label) > 1 and label[0].isalpha() for label in others)
    counted = others == {str(k) for k in range(len(others))}
    return mark if len(others) > 1 and (words if mark == "-" else counted and len(others) > 2) else None


def _further_groups(table: FileTable, gold: Factor, systems: Collection[str], options: Options) -> dict[str, Factor]:
    """Return the columns of a gold file that group its items, so that dependence within them is told.

    A column of few repeated values (texts) groups nothing, nor does one of measurements, and one that follows
    from the gold label is the label by another name.
    """
    found = {}
    aside = (table.id_name(options), *options.groups, *options.ignore, *systems)
    for name in table.others(*aside, *table.nested):
        column = Factor.of(table.columns[name])
        n_groups = len(column.levels)
        if not 2 <= n_groups <= table.n_rows / 2 or "" in column or _are_measured(column.levels):
            continue
        both = gold.codes.astype(np.int64) * n_groups + column.codes
        if len(np.unique(both)) != len(gold.levels):  # else it follows from the gold label
            found[name] = column
    return found


def _are_measured(column: Collection[str]) -> bool:
    """Whether cells are numbers, and not all of them whole."""
    values = set(column)
    return all(map(is_number, values)) and not all(value.lstrip("-").isdecimal() for value in values - MISSING)


def _group(name: str, first: FileTable, files: tuple[list[FileTable], list[Order]]) -> Sequence[str]:
    """Return a grouping column, of the gold file or of a system's."""
    if name not in first.columns:
        for table, order in zip(*files, strict=True):
            if name in table.columns:
                return in_order(table.column(name), order)
    return first.column(name)


def gold_beside(table: FileTable) -> str | None:
    """Return the column of gold labels in a table of predictions; label is one where something else is predicted."""
    named = table.conventional(BESIDE_NAMES)
    if named is None and (answer := table.conventional(ANSWER_NAMES)) is not None:
        named = table.conventional(GOLD_NAMES)
        if named is not None and named not in table.nested and table.is_numeric(answer):
            texts = Factor.of(table.columns[named])
            is_empty = list(texts.levels) == [""]  # as without references
            if is_empty or (2 * len(texts.levels) > len(texts) and not table.is_numeric(named)):
                return None  # references beside the scores of a metric (MetricX)
    return named


def _gold(table: FileTable, options: Options) -> str:
    if options.gold_column is not None:
        table.column(options.gold_column)
        return options.gold_column
    named = table.conventional(GOLD_NAMES)
    return named if named is not None else _only(table, options, "gold labels", "--gold-column", options.groups)


def _prediction(table: FileTable, options: Options) -> str:
    if options.prediction_column is not None and (table.header or len(table.columns) > 1):
        table.column(options.prediction_column)
        return options.prediction_column
    named = table.conventional(PREDICTION_NAMES)
    if named is not None and named != options.gold_column:
        return named
    aside = (*options.groups, *([options.gold_column] if options.gold_column and len(table.columns) > 2 else []))
    return _only(table, options, "predictions", "--prediction-column", aside)


def _only(table: FileTable, options: Options, what: str, option: str, aside: Sequence[str]) -> str:
    left = table.others(table.id_name(options), *aside, *options.ignore)
    if left and not table.header:
        return _repeated(table, left)
    if len(left) != 1:
        raise InputError(
            f"{table.path}: which column holds {what}? Columns: {', '.join(table.columns)}; name it with {option}"
        )
    return left[0]


def _repeated(table: FileTable, columns: Sequence[str]) -> str:
    """Return the last column whose cells come again and again, as labels do."""
    cells = ((column, Factor.of(table.columns[column])) for column in reversed(columns))
    return next((column for column, own in cells if 2 * len(own.levels) <= len(own)), columns[-1])


def _guesses(table: FileTable, options: Options) -> list[str]:
    """Say which column holds labels, where none has a name and several may."""
    left = table.others(table.id_name(options), *options.ignore)
    if table.header or options.gold_column or options.prediction_column or len(left) < 2 or len(table.columns) < 3:
        return []
    column = _repeated(table, left)
    return [f"{table.path}: has no header; column {column} is taken for labels (leave others out with --ignore)"]


def _gold_in_each(tables: Sequence[FileTable], options: Options) -> str:
    """Return the column of gold labels that each file holds beside its predictions."""
    name = options.gold_column or gold_beside(tables[0])
    if name is None:
        raise InputError(
            f"{tables[0].path}: no gold labels; give --gold FILE, or --gold-column where each file holds them"
        )
    for table in tables:
        table.column(name)
    return name


def _same_gold(tables: Sequence[FileTable], orders: Sequence[Order], options: Options) -> None:
    name = options.gold_column or ""
    right = Texts.of(tables[0].column(name))
    for table, order in zip(tables[1:], orders[1:], strict=True):
        own = in_order(table.column(name), order)
        if (alike := own.alike(right)).all():
            continue
        k = int(np.argmin(alike))
        row = int(np.arange(len(own))[order][k])
        raise InputError(
            f"{table.path}, line {table.lines[row]}: gold {own[k]!r}, but {right[k]!r} in "
            f"{tables[0].path}, line {tables[0].lines[k]}; the files must agree"
        )
