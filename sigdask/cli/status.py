"""`sigdask status`: shows the progress of a plan."""

from __future__ import annotations

import time

import click

from sigdask.cli import declare
from sigdask.cli.streams import print_data, print_text
from sigdask.errors import UnfinishedError
from sigdask.nightly.plan import read_store_and_name
from sigdask.nightly.report.text import build_status_dict, format_status
from sigdask.nightly.store import status as store_status
from sigdask.text import as_json, escape_json


@declare.command(
    declare.WHERE,
    declare.STORE,
    declare.PLAN_NAME,
    declare.option("--json", "Write JSON.", dest="in_json"),
    declare.option(
        "--follow",
        "Update the progress every few seconds, until the run ends. The exit status is then the run's: 1 if the "
        "gate failed, 3 if the run was stopped or killed, or could not write its output.",
    ),
)
def command(where: str, store: str | None, name: str | None, in_json: bool, follow: bool) -> int:
    """Show the progress of a plan, during a run or after it."""
    location, plan = find_store_and_plan(where, store, name)
    while True:
        run = store_status.list_runs(location, plan, 1)[0]
        if follow and not in_json:
            click.clear()
        if in_json:
            print_data([escape_json(as_json(build_status_dict(run))), "\n"])
        else:
            print_text(format_status(run, time.time()))
        if not follow:
            return 0
        if run.is_over:
            break
        time.sleep(2.0)
    if run.state != "finished":
        reason = f" ({run.message})" if run.message else ""
        raise UnfinishedError(f"run {run.number} of plan {run.plan} was not finished: it is {run.state}{reason}")
    return int(run.details["status"])


def find_store_and_plan(where: str, store: str | None, name: str | None) -> tuple[str, str | None]:
    """Return the store and the plan's name in it, given a plan file or the store itself."""
    if not where.endswith(".toml"):
        return store or where, name
    plan_store, plan_name = read_store_and_name(where)
    return store or plan_store, name or plan_name
