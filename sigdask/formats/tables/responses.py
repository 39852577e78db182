"""Responses: one row a response, whether it is of interest, and which systems gave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import group_columns
from sigdask.formats.reading.listings import named, of_sets
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.replicates import one_sample
from sigdask.formats.reading.summaries import without_summaries
from sigdask.formats.reading.tables import FileTable, read_table

TRUE = frozenset({"1", "true", "yes", "x", "1.0"})
FALSE = frozenset({"0", "false", "no", "", "0.0"})


def read_responses(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read one table of responses, or a list of ids given a system and a list of gold ids."""
    options.only("responses")
    if gold is not None:
        return _lists(sources, gold, options)
    if len(sources) > 1:
        raise InputError(
            "format responses: give one table with a column a system, or --gold and a list of ids a system"
        )
    table = without_summaries(read_table(sources[0].path, options.ignore), options)
    name = options.gold_column or table.conventional(("gold", "of_interest", "correct"))
    if name is None:
        raise InputError(
            f"{table.path}: no column 'gold'; columns: {', '.join(table.columns)}; name it with --gold-column"
        )
    table = one_sample(table, table.id_name(options), options, gold=name)
    of_interest = truths(table, name)
    systems = table.others(name, table.id_name(options), *options.groups, *options.ignore)
    return Counts.from_responses(
        of_interest,
        {system: truths(table, system) for system in systems},
        ids=table.ids(options),
        groups=group_columns(table, options),
        name=options.name,
        warnings=table.notes,
    )


def truths(table: FileTable, name: str) -> list[bool]:
    """Return a column of yes and no."""
    cells = [cell.lower() for cell in table.column(name)]
    for line, cell in zip(table.lines, cells, strict=True):
        if cell not in TRUE and cell not in FALSE:
            raise InputError(
                f"{table.path}, line {line}, column {name!r}: found {cell!r}, expected 1 or 0 (true/false, yes/no, x); "
                "leave other columns out with --ignore"
            )
    return [cell in TRUE for cell in cells]


def _lists(sources: Sequence[Source], gold: Path, options: Options) -> Counts:
    if options.groups:
        raise InputError(f"lists of ids have no column {options.groups[0]!r}; use one table of responses")
    given = named(sources, partial(_given, options))
    return of_sets(_given(options, gold), given, options.name)


def _given(options: Options, path: Path) -> frozenset[str]:
    table = read_table(path, options.ignore)
    name = table.id_name(options) or next(iter(table.columns))
    return frozenset(table.ids(replace(options, id_column=name, align="id")) or ())
