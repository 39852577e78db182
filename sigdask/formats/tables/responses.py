"""Read responses: one row each, which says whether the response is of interest and which systems gave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import get_group_columns
from sigdask.formats.reading.listings import build_set_counts, read_by_system
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.replicates import select_one_sample
from sigdask.formats.reading.summaries import remove_summary_rows
from sigdask.formats.reading.tables import FileTable, read_table

TRUE_WORDS = frozenset({"1", "true", "yes", "x", "1.0"})
FALSE_WORDS = frozenset({"0", "false", "no", "", "0.0"})


def read_responses(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read one table of responses, or one list of ids for each system and a list of gold ids."""
    options.check_format_options("responses")
    if gold is not None:
        return _read_lists(sources, gold, options)
    if len(sources) > 1:
        raise InputError(
            "format responses: give one table with a column a system, or --gold and a list of ids a system"
        )
    table = remove_summary_rows(read_table(sources[0].path, options.ignore), options)
    name = options.gold_column or table.find_column(("gold", "of_interest", "correct"))
    if name is None:
        raise InputError(
            f"{table.path}: no column 'gold'; columns: {', '.join(table.columns)}; name it with --gold-column"
        )
    table = select_one_sample(table, table.find_id_column(options), options, gold=name)
    is_of_interest = parse_truths(table, name)
    systems = table.list_other_columns(name, table.find_id_column(options), *options.groups, *options.ignore)
    return Counts.from_responses(
        is_of_interest,
        {system: parse_truths(table, system) for system in systems},
        ids=table.get_ids(options),
        groups=get_group_columns(table, options),
        name=options.name,
        warnings=table.notes,
    )


def parse_truths(table: FileTable, name: str) -> list[bool]:
    """Return a column of truth values (1/0, true/false, yes/no) as booleans."""
    cells = [cell.lower() for cell in table.get_column(name)]
    for line_number, cell in zip(table.lines, cells, strict=True):
        if cell not in TRUE_WORDS and cell not in FALSE_WORDS:
            raise InputError(
                f"{table.path}, line {line_number}, column {name!r}: found {cell!r}, expected 1 or 0 (true/false, "
                "yes/no, x); "
                "leave other columns out with --ignore"
            )
    return [cell in TRUE_WORDS for cell in cells]


def _read_lists(sources: Sequence[Source], gold: Path, options: Options) -> Counts:
    if options.groups:
        raise InputError(f"lists of ids have no column {options.groups[0]!r}; use one table of responses")
    ids_by_system = read_by_system(sources, partial(_read_ids, options))
    return build_set_counts(_read_ids(options, gold), ids_by_system, options.name)


def _read_ids(options: Options, path: Path) -> frozenset[str]:
    table = read_table(path, options.ignore)
    name = table.find_id_column(options) or next(iter(table.columns))
    return frozenset(table.get_ids(replace(options, id_column=name, align="id")) or ())
