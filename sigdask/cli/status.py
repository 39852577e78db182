"""`sigdask status`, `history` and `report`: show what the store of a plan holds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigdask.cli.declared.options import REPORT_FORMATS
from sigdask.cli.output.progress import list_plan_files, show_progress
from sigdask.cli.output.streams import clear_terminal, log_note, output_columns, print_json, print_text
from sigdask.cli.output.write import (
    assign_files,
    check_figures,
    check_overwriting,
    is_printed,
    write_csv,
    write_figures,
    write_json,
    write_parquet,
    write_tables,
    write_text,
)
from sigdask.errors import InputError, UnfinishedError
from sigdask.nightly.plan import load_plan, read_store_and_name
from sigdask.nightly.plan.cross_checks import list_files
from sigdask.nightly.report.gate import format_record
from sigdask.nightly.report.page import plot_report
from sigdask.nightly.report.site import write_stored_nights
from sigdask.nightly.report.text import (
    build_status_dict,
    format_history,
    format_report,
    format_status,
    iter_paper_tables,
    render_json,
    write_report,
)
from sigdask.nightly.run.analyses import open_recorded
from sigdask.nightly.store import status as store_status
from sigdask.options import TableLayoutOptions, fill_options, select_options
from sigdask.results.export import iter_csv
from sigdask.text import as_json

if TYPE_CHECKING:
    from sigdask.analysis.details import ComparisonDetails
    from sigdask.nightly.store.status import PlanReport, Status
    from sigdask.results.table import Table


def status(where: str, store: str | None, name: str | None, in_json: bool, follow: bool) -> int:
    """Print the progress of a plan's latest run, once or until the run ends. Return the exit status."""
    location, plan = find_store_and_plan(where, store, name)
    while True:
        plan_status = store_status.read_status(location, plan)
        if follow and not in_json:
            clear_terminal()
        if in_json:
            print_json(as_json(build_status_dict(plan_status)))
        else:
            print_text(format_status(plan_status, time.time(), width=output_columns()))
        if not follow:
            return 0
        if plan_status.state != "running":
            return _judge_end(plan_status)
        time.sleep(2.0)


def _judge_end(followed: Status) -> int:
    """Return the exit status of a followed run: 1 if its gate failed; raise if it ended before it had finished."""
    run = followed.run
    if followed.state != "finished":
        reason = f" ({run.message})" if run.message else ""
        raise UnfinishedError(f"run {run.number} of plan {run.plan} was not finished: it is {followed.state}{reason}")
    return int(not run.details.get("verdict", {"passed": True})["passed"])


def history(where: str, store: str | None, name: str | None, last: int) -> None:
    """Print a list of the runs of a plan."""
    location, plan = find_store_and_plan(where, store, name)
    print_text(format_history(store_status.list_runs(location, plan, last), width=output_columns()))


def report(wheres: Sequence[str], store: str | None, name: str | None, number: int | None, **options: Any) -> None:
    """Print and write the results of a plan and what changed since the previous run, or write a site of plans."""
    if options["site"] is not None:
        if options["open_pairs"]:
            raise InputError('--open: not with --site; add open = [["A", "B"]] to [report] of the plan')
        _write_sites(options["site"], wheres, store, name)
        return
    if len(wheres) > 1:
        raise InputError(f"{wheres[1]}: only --site takes several plans; name one plan")
    [where] = wheres
    files = assign_files(options, *REPORT_FORMATS)
    select_layout(options)
    check_figures(options)
    _check_open(wheres, files, options)
    if any(files.values()) and where.endswith(".toml"):
        try:
            plan_files = list_files(load_plan(where))
        except InputError:  # results can be reported though the plan's files have gone
            plan_files = {}
        check_overwriting(files, plan_files)
    location, plan = find_store_and_plan(where, store, name)
    plan_report = store_status.build_report(location, plan, number, options["grouping"])
    if is_printed(files):
        verdict = plan_report.run.details.get("verdict")
        print_report(plan_report, options, before="" if verdict is None else f"{format_record(verdict)}\n\n")
    write_files(plan_report, files, options)
    details = _open_details(where, plan_report, options) if options["open_pairs"] else ()
    if files["html"] is not None:
        write_report(Path(files["html"]), plan_report, details)
    write_figures(options, plot_report(plan_report, details))


def _open_details(where: str, plan_report: PlanReport, options: Mapping[str, Any]) -> tuple[ComparisonDetails, ...]:
    """Return the details of the comparisons that `--open` names, and of those that a run's page opens."""
    plan = load_plan(where)
    with show_progress() as steps, steps.show_reading(list_plan_files(plan)):
        return open_recorded(plan, plan_report, options["open_pairs"])


def _check_open(wheres: Sequence[str], files: Mapping[str, str | None], options: Mapping[str, Any]) -> None:
    """Raise if comparisons are to be opened without the data, or without a page or figures that show them."""
    if not options["open_pairs"]:
        return
    if not wheres[0].endswith(".toml"):
        raise InputError(f"--open: {wheres[0]} is a store, which has no data of units; name the plan's file instead")
    if files["html"] is None and options["figures"] is None:
        raise InputError("--open: needs a page on which it opens comparisons; add --html FILE")


def _write_sites(site: str, wheres: Sequence[str], store: str | None, name: str | None) -> None:
    """Write or update a site of some plans."""
    for where in wheres:
        location, plan = find_store_and_plan(where, store, name)
        write_stored_nights(Path(site), location, plan)
    log_note(f"site: {Path(site) / 'index.html'}")


def print_report(plan_report: PlanReport, options: Mapping[str, Any], page_path: str = "", before: str = "") -> None:
    """Print a report for the terminal after some text, as `--all`, `--verbose` and `--set` ask for it."""
    text = format_report(
        plan_report,
        opened=options["opened"] or None,
        everything=options["everything"],
        verbose=options["verbose"],
        page_path=page_path,
        width=output_columns(),
    )
    print_text(before + text)


def select_layout(options: Mapping[str, Any]) -> TableLayoutOptions:
    """Return the layout of the paper tables that a command on plans writes."""
    return fill_options(TableLayoutOptions, select_options(TableLayoutOptions, options))


def write_files(
    plan_report: PlanReport, files: Mapping[str, str | None], options: Mapping[str, Any], *, csv_safe: bool = True
) -> None:
    """Write the JSON, the tables and the text of a report to the files that are given for them."""

    def iter_tables() -> Iterator[Table]:
        return (results.table for results in plan_report.results.values())

    write_json(files["json"], lambda: render_json(plan_report, options["json_layout"]))
    write_csv(files["csv"], lambda: iter_csv(iter_tables(), csv_safe=csv_safe))
    write_parquet(files["parquet"], iter_tables())
    write_tables(files, lambda: iter_paper_tables(plan_report, select_layout(options)))
    if files["text"] is not None:
        write_text(files["text"], format_report(plan_report, opened=plan_report.results, everything=True))


TEXT_ENDINGS = frozenset({".json", ".yaml", ".yml", ".csv", ".tsv", ".txt", ".md", ".html"})


def is_other_file(where: str) -> bool:
    """Return whether a path is a text file other than a plan; a damaged store may begin with anything."""
    path = Path(where)
    if path.suffix.lower() not in TEXT_ENDINGS or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(6) != b"SQLite"


def find_store_and_plan(where: str, store: str | None, name: str | None) -> tuple[str, str | None]:
    """Return the store and the plan's name in it, given a plan file or the store itself."""
    if is_other_file(where):
        raise InputError(f"{where}: expected a plan (a file that ends in .toml) or its store (an SQLite file)")
    if not where.endswith(".toml"):
        return store or where, name

    plan_store, plan_name = read_store_and_name(where)
    return store or plan_store, name or plan_name
