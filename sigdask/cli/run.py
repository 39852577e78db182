"""`sigdask run`: runs a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sigdask.cli.output.figures import check_figures, write_figures
from sigdask.cli.output.progress import plan_files, progress
from sigdask.cli.output.say import LOG, be_quiet, note, say, width
from sigdask.cli.output.write import write_json
from sigdask.cli.status import PlanTables
from sigdask.errors import UnfinishedError
from sigdask.nightly.plan import load_plan
from sigdask.nightly.report.gate import render
from sigdask.nightly.report.plots import of_report
from sigdask.nightly.report.text import report_json, report_text
from sigdask.nightly.run import parse_deadline, run_plan
from sigdask.text import count_noun

if TYPE_CHECKING:
    from sigdask.nightly.run import Outcome


def run(plan_file: str, everything: bool, verbose: bool, json_file: str | None, **options: Any) -> int:
    """Run a plan, print and write its report, and return the exit status."""
    deadline = parse_deadline(options["deadline"]) if options["deadline"] is not None else None
    tables = PlanTables.of(options, json_file)
    check_figures(options["figures"], options["figure_format"])
    plan = load_plan(plan_file)
    if options["quiet"]:
        be_quiet()
    with progress(quiet=options["quiet"]) as steps, steps.reading(plan_files(plan)):
        outcome = run_plan(
            plan, store=options["store"], cluster=options["cluster"], workers=options["workers"],
            deadline=deadline, progress=steps, note=note,
        )  # fmt: skip
    status = _tell(outcome, json_file, tables, everything=everything, verbose=verbose)
    if outcome.report is not None:
        write_figures(options["figures"], options["figure_format"], of_report(outcome.report))
    return status


def _tell(outcome: Outcome, json_file: str | None, tables: PlanTables, *, everything: bool, verbose: bool) -> int:
    """Say how a run ended: the gate, then results and changes as the store has them, or why there are none.

    Returns the exit status.
    """
    unwritten = [*outcome.unwritten]
    is_piped = "-" in (json_file, *tables.files.values())
    if outcome.gate is not None:
        say(f"{render(outcome.gate)}\n", beside=is_piped)
    if (found := outcome.report) is not None:
        if not is_piped:
            say(report_text(found, everything=everything, verbose=verbose, width=width()))
        try:
            write_json(json_file, lambda: report_json(found))
            tables.write(found)
        except UnfinishedError as error:
            unwritten.insert(0, error)
    for one in unwritten:
        LOG.error(str(one))
    note(
        f"{count_noun(outcome.n_counted, 'trial')} counted, {count_noun(outcome.n_changed, 'result')} new or otherwise"
        f"; kept in {outcome.where}"
    )
    for problem in outcome.problems:
        LOG.error(problem)
    if outcome.stopped:
        note(f"stopped by {outcome.stopped}; run it again to go on from what is kept")
    for word in (*outcome.untold, *([] if outcome.unjudged is None else [str(outcome.unjudged)])):
        LOG.error(word)
    return outcome.exit_status or (UnfinishedError.exit_status if unwritten else 0)
