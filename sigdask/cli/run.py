"""`sigdask run`: runs a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sigdask.cli.output.figures import check_figures, write_figures
from sigdask.cli.output.progress import list_plan_files, show_progress
from sigdask.cli.output.say import LOG, be_quiet, log_note, output_columns, print_text
from sigdask.cli.output.write import write_json
from sigdask.cli.status import PlanTables
from sigdask.errors import UnfinishedError
from sigdask.nightly.plan import load_plan
from sigdask.nightly.report.gate import render
from sigdask.nightly.report.plots import plot_report
from sigdask.nightly.report.text import format_report, render_json
from sigdask.nightly.run import parse_deadline, run_plan
from sigdask.text import format_count

if TYPE_CHECKING:
    from sigdask.nightly.run import Outcome


def run(plan_file: str, everything: bool, verbose: bool, json_file: str | None, **options: Any) -> int:
    """Run a plan, print and write its report, and return the exit status."""
    deadline = parse_deadline(options["deadline"]) if options["deadline"] is not None else None
    tables = PlanTables.from_options(options, json_file)
    check_figures(options["figures"], options["figure_format"])
    plan = load_plan(plan_file)
    if options["quiet"]:
        be_quiet()
    with show_progress(quiet=options["quiet"]) as steps, steps.reading(list_plan_files(plan)):
        outcome = run_plan(
            plan, store=options["store"], cluster=options["cluster"], workers=options["workers"],
            deadline=deadline, progress=steps, note=log_note,
        )  # fmt: skip
    status = _print_outcome(outcome, json_file, tables, everything=everything, verbose=verbose)
    if outcome.report is not None:
        write_figures(options["figures"], options["figure_format"], plot_report(outcome.report))
    return status


def _print_outcome(
    outcome: Outcome, json_file: str | None, tables: PlanTables, *, everything: bool, verbose: bool
) -> int:
    """Print what a run found: the gate's verdict, results, changes and problems. Return the exit status."""
    unwritten = [*outcome.unwritten]
    is_piped = "-" in (json_file, *tables.files.values())
    if outcome.gate is not None:
        print_text(f"{render(outcome.gate)}\n", on_stderr=is_piped)
    if (plan_report := outcome.report) is not None:
        if not is_piped:
            print_text(format_report(plan_report, everything=everything, verbose=verbose, width=output_columns()))
        try:
            write_json(json_file, lambda: render_json(plan_report))
            tables.write(plan_report)
        except UnfinishedError as error:
            unwritten.insert(0, error)
    for failure in unwritten:
        LOG.error(str(failure))
    log_note(
        f"{format_count(outcome.n_counted, 'trial')} counted, {format_count(outcome.n_changed, 'result')} new or "
        "otherwise"
        f"; kept in {outcome.where}"
    )
    for problem in outcome.problems:
        LOG.error(problem)
    if outcome.stopped:
        log_note(f"stopped by {outcome.stopped}; run it again to go on from what is kept")
    for word in (*outcome.untold, *([] if outcome.unjudged is None else [str(outcome.unjudged)])):
        LOG.error(word)
    return outcome.exit_status or (UnfinishedError.exit_status if unwritten else 0)
