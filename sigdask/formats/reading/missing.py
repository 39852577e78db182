"""Items that a system lacks: rows for them in tables, and the note on what was done with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sigdask.counts.fields import Bools
from sigdask.counts.texts import ScopeNote
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import FileTable
from sigdask.interface import spell
from sigdask.options import Missing
from sigdask.text import format_count

MAX_SHOWN = 3
"""Number of systems that a note names."""


def describe_missing(
    present: Bools | None, systems: Sequence[str], options: Options, convention: Missing = "error"
) -> list[ScopeNote]:
    """Return a note on missing items or scores, if there are any: how many each system lacks, and what was done.

    Parameters
    ----------
    present : bool array, shape (n_items, n_systems), or None
        Which items each system has. None if none is missing.
    systems : sequence of str
        Their names.
    options : Options
        Its `missing` says what was done: "pairwise" or "zero".
    convention : {"error", "zero"}
        What the format does if `missing` does not say.
    """
    lacking = {} if present is None else dict(zip(systems, (~present).sum(axis=0).tolist(), strict=True))
    shown = [f"{name} lacks {n:,}" for name, n in lacking.items() if n]
    if present is None or not shown:
        return []
    more = f", {format_count(len(shown) - MAX_SHOWN, 'more system')} some" if len(shown) > MAX_SHOWN else ""
    treatment = "left out of the pairs of that system" if options.missing == "pairwise" else "scored 0"
    reason = f"the format's convention; {spell('missing', 'pairwise')} leaves them out"
    reason = (
        reason if options.missing is None and convention == "zero" else spell("missing", options.missing or "error")
    )
    lacks = f"{', '.join(shown[:MAX_SHOWN])}{more} of {format_count(len(present), 'item')}"
    return [ScopeNote(f"{lacks}: {treatment} ({reason})")]


def add_missing_rows(tables: Sequence[FileTable], options: Options) -> list[FileTable]:
    """Return tables with a row for every item of any table, if missing items are allowed.

    The cells of an added row are empty, except its item and the columns of groups.
    """
    names = [table.find_id_column(options) for table in tables]
    if options.missing in {None, "error"} or options.align == "position" or None in names:
        return [*tables]
    donors: dict[str, tuple[FileTable, int]] = {}
    for table, name in zip(tables, names, strict=True):
        for row, item in enumerate(table.get_column(str(name))):
            donors.setdefault(item, (table, row))
    return [_add_rows(table, str(name), donors, options) for table, name in zip(tables, names, strict=True)]


def _add_rows(table: FileTable, id_name: str, donors: dict[str, tuple[FileTable, int]], options: Options) -> FileTable:
    held = {*table.get_column(id_name)}
    added = [item for item in donors if item not in held]
    if not added:
        return table
    columns = {name: [*cells, *[""] * len(added)] for name, cells in table.columns.items()}
    for name in options.groups:
        if name in columns:
            groups = [donors[item][0].columns.get(name) for item in added]
            cells = ["" if group is None else group[donors[item][1]] for item, group in zip(added, groups, strict=True)]
            columns[name] = [*table.columns[name], *cells]
    columns[id_name] = [*table.get_column(id_name), *added]
    return replace(table, columns=columns, lines=[*table.lines, *[table.lines[-1]] * len(added)])
