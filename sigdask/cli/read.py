"""`sigdask read`: shows how files are read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import click
import numpy as np

from sigdask.cli import declare
from sigdask.cli.compare import read_systems
from sigdask.cli.streams import LOG, be_quiet, print_line
from sigdask.counts import Counts
from sigdask.options import ChoiceOptions, ReadingOptions, SelectionOptions
from sigdask.text import format_list

MAX_SYSTEMS, MAX_ITEMS, MAX_FIELDS = 20, 3, 4
"""Maximum numbers of systems, items and counts of an item that are shown."""


@declare.command(
    click.argument("systems", nargs=-1, required=True, metavar="[NAME=]FILE..."),
    *declare.options(ChoiceOptions, "metrics"),
    declare.GOLD,
    *declare.options(SelectionOptions, "unit"),
    declare.FORMAT,
    *declare.options(ReadingOptions),
    *declare.options(ChoiceOptions, "by"),
)
def command(**options: Any) -> None:
    """Show how files are read: format, columns, systems and first items.

    Nothing is computed. The options are those of `compare`.
    """
    be_quiet()
    counts = read_systems({"name": "", **options})
    for line in _describe(counts):
        print_line(line, hang=10)
    for warning in counts.notices:
        LOG.warning(warning)


def _describe(counts: Counts) -> Iterator[str]:
    """Yield lines on the format, roles of columns, systems and first items."""
    data = counts.of_one
    replicates = f" x {len(counts.replicates)} replicates" if counts.replicates else ""
    yield f"format    {counts.format}"
    if counts.roles:
        yield f"columns   {counts.roles}"
    yield f"systems   {counts.n_systems:,}{replicates}: {format_list([*counts.systems], MAX_SYSTEMS)}"
    yield f"items     {data.n_items:,}"
    if data.groups:
        yield f"units     {', '.join(data.groups)}"
    yield f"metrics   {', '.join(counts.suggested)}"
    for k in range(min(MAX_ITEMS, data.n_items)):
        yield f"item {str(k + 1) if data.ids is None else data.ids[k]}: {_describe_item(data, k)}"


def _describe_item(counts: Counts, item: int) -> str:
    """Return the first counts of an item for the first systems."""
    fields = {name: np.asarray(values) for name, values in islice(counts.fields.items(), MAX_FIELDS)}
    more = ", …" if len(counts.fields) > MAX_FIELDS else ""
    parts = []
    for k, system in enumerate(counts.systems[:MAX_SYSTEMS]):
        if counts.present is not None and not counts.present[item, k]:
            parts.append(f"{system}: missing")
            continue
        values = (f"{name} {column[item, k % column.shape[1]]}" for name, column in fields.items())  # or one for all
        parts.append(f"{system}: {', '.join(values)}{more}")
    return "; ".join(parts)
