"""`sigdask report`: shows the results of a plan and what changed, or writes a site of plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from sigdask.cli import declare
from sigdask.cli.status import find_store_and_plan
from sigdask.cli.streams import LOG, output_columns, print_text
from sigdask.cli.write import OutputFile, check_overwriting, is_printed, write_outputs
from sigdask.errors import InputError
from sigdask.nightly.plan import load_plan
from sigdask.nightly.report.gate import format_record
from sigdask.nightly.report.site import find_latest_report, update_site
from sigdask.nightly.report.text import format_report, list_report_texts, write_report
from sigdask.nightly.store import status as store_status
from sigdask.nightly.store.status import PlanReport


@declare.command(
    click.argument("wheres", metavar="PLAN.toml|STORE...", nargs=-1, required=True),
    declare.STORE,
    declare.PLAN_NAME,
    declare.option("--run N", "Report the results as of this run.  [default: the latest]", dest="number", type=int),
    *declare.PLAN_OUTPUT,
    declare.option(
        "--site DIR",
        "Write or update a static site of these plans, with a page for each night. It prints nothing else.",
    ),
)
def command(wheres: Sequence[str], store: str | None, name: str | None, number: int | None, **options: Any) -> None:
    """Show the results of a plan, and what changed since the previous run.

    With --site you can name several plans.
    """
    if options["site"] is not None:
        _write_sites(options["site"], wheres, store, name)
        return
    if len(wheres) > 1:
        raise InputError(f"{wheres[1]}: only --site takes several plans", remedy="name one plan")
    [where] = wheres
    outputs = options["outputs"]
    if outputs and where.endswith(".toml"):
        try:
            plan_files = load_plan(where).list_files()
        except InputError:  # results can be reported though the plan's files have gone
            plan_files = {}
        check_overwriting(outputs, plan_files)
    location, plan = find_store_and_plan(where, store, name)
    plan_report = store_status.build_report(location, plan, number)
    write_files(plan_report, outputs)
    for output in outputs:
        if output.format == "html":
            write_report(Path(output.file), plan_report)
    print_report(plan_report, options)


def _write_sites(site: str, wheres: Sequence[str], store: str | None, name: str | None) -> None:
    """Write or update a site of some plans."""
    for where in wheres:
        location, plan = find_store_and_plan(where, store, name)
        update_site(Path(site), find_latest_report(location, plan), has_all_nights=True)
    LOG.info(f"site: {Path(site) / 'index.html'}")


def print_report(plan_report: PlanReport, options: Mapping[str, Any], page_path: str = "") -> None:
    """Print a report as `--all` and `--verbose` ask for it, after the gate's verdict, unless JSON is printed."""
    verdict = plan_report.run.details.get("verdict")
    gate = "" if verdict is None else format_record(verdict)
    if not is_printed(options["outputs"]):
        for line in gate.splitlines():
            LOG.info(line)
        return
    text = format_report(
        plan_report,
        everything=options["everything"],
        verbose=options["verbose"],
        page_path=page_path,
        width=output_columns(),
    )
    print_text(f"{gate}\n\n{text}" if gate else text)


def write_files(plan_report: PlanReport, outputs: Sequence[OutputFile]) -> None:
    """Write the JSON, the tables and the text of a report, but no pages."""
    write_outputs([output for output in outputs if output.format != "html"], list_report_texts(plan_report))
