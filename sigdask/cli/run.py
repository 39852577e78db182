"""`sigdask run`: runs a plan."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sigdask.cli import declare
from sigdask.cli.progress import show_progress
from sigdask.cli.report import REPORT_FORMATS, print_report, write_files
from sigdask.cli.streams import LOG, be_quiet, log_note, print_text
from sigdask.cli.write import OutputFile, check_overwriting, is_printed, list_outputs
from sigdask.errors import InputError, UnfinishedError
from sigdask.nightly.plan import load_plan
from sigdask.nightly.plan.paths import PLACEHOLDERS
from sigdask.nightly.report.gate import render
from sigdask.nightly.run import Outcome, parse_deadline, run_plan
from sigdask.report.files import write_parts
from sigdask.text import format_count


@declare.command(
    click.argument("plan_file", metavar="PLAN.toml"),
    declare.option("--store FILE|URL", "Database for counts and results.  [default: in the folder of the plan]"),
    declare.option("--cluster CLUSTER", "Cluster as in `compare`, instead of the plan's."),
    declare.WORKERS,
    declare.option("--deadline TIME", "Stop before this time, such as 06:00, or after this duration, such as 1h30m."),
    declare.option(
        "--reread", "Read all files again, even if their sizes and times are the same as in the latest run."
    ),
    *declare.PLAN_OUTPUT,
    declare.QUIET,
)
def command(plan_file: str, **options: Any) -> int:
    """Run a plan: count the missing trials, and report.

    A run that was stopped continues when you start it again. If no trials are missing, nothing is counted.
    """
    gc.set_threshold(
        20_000
    )  # the objects of thousands of test sets live until the end: 12 % of the time of reading them
    deadline = parse_deadline(options["deadline"]) if options["deadline"] is not None else None
    outputs = list_outputs(options, *REPORT_FORMATS)
    plan = load_plan(plan_file)
    if outputs:
        check_overwriting(outputs, plan.list_files())
    pages = [output.file for output in outputs if output.format == "html"]
    for page in pages:
        if any(placeholder in page for placeholder in PLACEHOLDERS):
            raise InputError(f"{page}: {' and '.join(PLACEHOLDERS)} are for html in [report] of the plan")
    if pages and "html" not in plan.report.files:
        plan = replace(plan, report=plan.report.with_page(Path(pages[0]).absolute()))
    if options["quiet"]:
        be_quiet()
    with show_progress(quiet=options["quiet"]) as steps:
        outcome = run_plan(
            plan, store=options["store"], cluster=options["cluster"], workers=options["workers"],
            deadline=deadline, progress=steps, note=log_note, reread=options["reread"],
        )  # fmt: skip
    return _print_outcome(outcome, outputs, options)


def _copy_page(outcome: Outcome, outputs: Sequence[OutputFile]) -> None:
    """Copy the page of a run to the files that the command names; a page that was not written is not read."""
    page = outcome.page
    for output in outputs:
        is_other = output.format == "html" and page != Path(output.file).absolute()
        if is_other and page is not None and not outcome.unwritten:
            write_parts(Path(output.file), [page.read_text(encoding="utf-8")])


def _print_outcome(outcome: Outcome, outputs: Sequence[OutputFile], options: dict[str, Any]) -> int:
    """Print the outcome of a run: the gate's verdict, results, changes and problems. Return the exit status."""
    unwritten = [*outcome.unwritten]
    if outcome.gate is not None:
        print_text(f"{render(outcome.gate)}\n", on_stderr=not is_printed(outputs))
    if outcome.report is not None:
        if is_printed(outputs):
            print_report(outcome.report, options, "" if outcome.page is None else str(outcome.page))
        if outcome.site is not None:
            log_note(f"site: {outcome.site}")
        try:
            write_files(outcome.report, outputs)
            _copy_page(outcome, outputs)
        except UnfinishedError as error:
            unwritten.insert(0, error)
    for failure in unwritten:
        LOG.error(str(failure))
    exact = f"{format_count(outcome.n_exact, 'exact value')} computed, " if outcome.n_exact else ""
    log_note(
        f"{format_count(outcome.n_counted, 'trial')} counted, "
        f"{exact}{format_count(outcome.n_changed, 'result')} new or changed; stored in {outcome.where}"
    )
    for problem in outcome.problems:
        LOG.error(problem)
    if outcome.stopped:
        log_note(f"stopped by {outcome.stopped}; run it again to continue from the stored counts")
    for word in (*outcome.untold, *([] if outcome.unjudged is None else [str(outcome.unjudged)])):
        LOG.error(word)
    return outcome.exit_status or (UnfinishedError.exit_status if unwritten else 0)
