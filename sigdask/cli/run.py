"""`sigdask run`: runs a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigdask.cli.declared.options import REPORT_FORMATS
from sigdask.cli.output.progress import list_plan_files, show_progress
from sigdask.cli.output.streams import LOG, be_quiet, log_note, print_text
from sigdask.cli.output.write import assign_files, check_figures, check_overwriting, is_printed, write_figures
from sigdask.cli.status import print_report, select_layout, write_files
from sigdask.errors import InputError, UnfinishedError
from sigdask.nightly.plan import load_plan
from sigdask.nightly.plan.cross_checks import list_files
from sigdask.nightly.plan.paths import PLACEHOLDERS
from sigdask.nightly.report.gate import render
from sigdask.nightly.report.page import plot_report
from sigdask.nightly.run import parse_deadline, run_plan
from sigdask.nightly.test_sets import collect_seldom
from sigdask.report.files import write_parts
from sigdask.text import format_count, suggest_name

if TYPE_CHECKING:
    from sigdask.nightly.run import Outcome


def run(plan_file: str, **options: Any) -> int:
    """Run a plan, print and write its report, and return the exit status."""
    collect_seldom()
    deadline = parse_deadline(options["deadline"]) if options["deadline"] is not None else None
    files = assign_files(options, *REPORT_FORMATS)
    select_layout(options)
    check_figures(options)
    plan = load_plan(plan_file)
    if any(files.values()):
        check_overwriting(files, list_files(plan))
    if any(placeholder in (files["html"] or "") for placeholder in PLACEHOLDERS):
        raise InputError(f"{files['html']}: {' and '.join(PLACEHOLDERS)} are for html in [report] of the plan")
    if files["html"] is not None and "html" not in plan.report.files:
        pages = {"html": Path(files["html"]).absolute()}
        plan = replace(plan, report=replace(plan.report, files={**plan.report.files, **pages}))
    names = [test_set.name for test_set in plan.test_sets]
    for name in sorted({*options["opened"]} - {*names}):
        raise InputError(f"--set {name}: the plan has no test set of this name{suggest_name(name, names)}")
    if options["quiet"]:
        be_quiet()
    with show_progress(quiet=options["quiet"]) as steps, steps.show_reading(list_plan_files(plan)):
        outcome = run_plan(
            plan, store=options["store"], cluster=options["cluster"], workers=options["workers"],
            deadline=deadline, progress=steps, note=log_note, reread=options["reread"],
        )  # fmt: skip
    status = _print_outcome(outcome, files, options, steps.n_threads, csv_safe=plan.report.csv_safe)
    if outcome.report is not None:
        write_figures(options, plot_report(outcome.report))
    return status


def _copy_page(outcome: Outcome, file: str | None) -> None:
    """Copy the page of a run to the file that the command names; a page that was not written is not read."""
    page = outcome.page
    if file is not None and page is not None and page != Path(file).absolute() and not outcome.unwritten:
        write_parts(Path(file), [page.read_text(encoding="utf-8")])


def _print_outcome(
    outcome: Outcome, files: Mapping[str, str | None], options: dict[str, Any], n_threads: int, *, csv_safe: bool
) -> int:
    """Print the outcome of a run: the gate's verdict, results, changes and problems. Return the exit status."""
    unwritten = [*outcome.unwritten]
    if outcome.gate is not None:
        print_text(f"{render(outcome.gate)}\n", on_stderr=not is_printed(files))
    if outcome.report is not None:
        if is_printed(files):
            print_report(outcome.report, options, "" if outcome.page is None else str(outcome.page))
        if outcome.site is not None:
            log_note(f"site: {outcome.site}")
        try:
            write_files(outcome.report, files, options, csv_safe=csv_safe)
            _copy_page(outcome, files["html"])
        except UnfinishedError as error:
            unwritten.insert(0, error)
    for failure in unwritten:
        LOG.error(str(failure))
    exact = f"{format_count(outcome.n_exact, 'exact value')} computed, " if outcome.n_exact else ""
    threads = f" on {format_count(n_threads, 'thread')}" if n_threads and outcome.n_counted else ""
    log_note(
        f"{format_count(outcome.n_counted, 'trial')} counted{threads}, "
        f"{exact}{format_count(outcome.n_changed, 'result')} new or changed; stored in {outcome.where}"
    )
    for problem in outcome.problems:
        LOG.error(problem)
    if outcome.stopped:
        log_note(f"stopped by {outcome.stopped}; run it again to continue from the stored counts")
    for word in (*outcome.untold, *([] if outcome.unjudged is None else [str(outcome.unjudged)])):
        LOG.error(word)
    return outcome.exit_status or (UnfinishedError.exit_status if unwritten else 0)
