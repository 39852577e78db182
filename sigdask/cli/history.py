"""`sigdask history`: lists the runs of a plan."""

from __future__ import annotations

import click

from sigdask.cli import declare
from sigdask.cli.status import find_store_and_plan
from sigdask.cli.streams import output_columns, print_text
from sigdask.nightly.report.text import format_history
from sigdask.nightly.store import status as store_status


@declare.command(
    declare.WHERE,
    declare.STORE,
    declare.PLAN_NAME,
    declare.option("--last N", "Number of runs to list.", type=click.IntRange(min=1), default=30),
)
def command(where: str, store: str | None, name: str | None, last: int) -> None:
    """List the runs of a plan."""
    location, plan = find_store_and_plan(where, store, name)
    print_text(format_history(store_status.list_runs(location, plan, last), width=output_columns()))
