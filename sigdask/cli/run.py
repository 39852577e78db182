"""`sigdask run`: runs a plan."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sigdask.cli import declare
from sigdask.cli.report import print_report, write_files
from sigdask.cli.streams import LOG, show_progress
from sigdask.cli.write import check_overwriting
from sigdask.errors import UnfinishedError
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import Outcome, parse_deadline, run_plan
from sigdask.text import format_count


@declare.command(
    click.argument("plan_file", metavar="PLAN.toml"),
    declare.option("--store FILE|URL", "Database for counts and results.  [default: in the folder of the plan]"),
    declare.option("--cluster CLUSTER", "Cluster as in `compare`, instead of the plan's."),
    declare.WORKERS,
    declare.option("--deadline TIME", "Stop before this time, such as 06:00, or after this duration, such as 1h30m."),
    declare.option(
        "--reread", "Read all files again, even those whose sizes and times are the same as in the latest run."
    ),
    *declare.PLAN_OUTPUT,
    declare.QUIET,
)
def command(plan_file: str, **options: Any) -> int:
    """Run a plan: count the missing trials, and report.

    A run that was stopped continues when you start it again. If no trials are missing, nothing is counted.
    """
    # the objects of thousands of test sets live until the end: 12 % of the time of reading them
    gc.set_threshold(20_000)
    deadline = parse_deadline(options["deadline"]) if options["deadline"] is not None else None
    outputs = options["outputs"]
    plan = load_plan(plan_file)
    if outputs:
        check_overwriting(outputs, plan.list_files())
    for output in outputs:
        if output.format == "html":  # with details of comparisons, which need the data
            plan = replace(plan, report=plan.report.with_page(Path(output.file).absolute()))
    with show_progress() as steps:
        outcome = run_plan(
            plan, store=options["store"], cluster=options["cluster"], workers=options["workers"],
            deadline=deadline, progress=steps, note=LOG.info, reread=options["reread"],
        )  # fmt: skip
    return _print_outcome(outcome, options)


def _print_outcome(outcome: Outcome, options: dict[str, Any]) -> int:
    """Print the outcome of a run: the gate's verdict, results, changes and problems. Return the exit status."""
    unwritten = [*outcome.unwritten]
    if outcome.report is not None:
        try:
            write_files(outcome.report, options["outputs"])
            print_report(outcome.report, options, "" if outcome.page is None else str(outcome.page))
        except UnfinishedError as error:
            unwritten.insert(0, error)
    if outcome.site is not None:
        LOG.info(f"site: {outcome.site}")
    for failure in unwritten:
        LOG.error(str(failure))
    exact = f"{format_count(outcome.n_exact, 'exact value')} computed, " if outcome.n_exact else ""
    LOG.info(
        f"{format_count(outcome.n_counted, 'trial')} counted, "
        f"{exact}{format_count(outcome.n_changed, 'result')} new or changed; stored in {outcome.where}"
    )
    if outcome.stopped:
        LOG.info(f"stopped by {outcome.stopped}; run it again to continue from the stored counts")
    for word in (*outcome.problems, *outcome.untold, *([] if outcome.unjudged is None else [str(outcome.unjudged)])):
        LOG.error(word)
    return outcome.exit_status or (UnfinishedError.exit_status if unwritten else 0)
