"""`sigdask status`, `history` and `report`: show what the store of a plan holds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sigdask.cli.output.figures import check_figures, write_figures
from sigdask.cli.output.say import output_columns, print_json, print_text
from sigdask.cli.output.write import check_outputs, write_data, write_json
from sigdask.nightly.plan import read_store_and_name
from sigdask.nightly.report.gate import format_record
from sigdask.nightly.report.plots import plot_report
from sigdask.nightly.report.text import (
    build_status_dict,
    format_history,
    format_report,
    format_status,
    render_json,
    render_latex,
    render_markdown,
    write_report,
)
from sigdask.nightly.store import status as store_status
from sigdask.options import PRINT_OPTIONS, TableLayoutOptions
from sigdask.text import as_json

if TYPE_CHECKING:
    from sigdask.nightly.store.status import PlanReport


def status(where: str, store: str | None, name: str | None, in_json: bool) -> None:
    """Print the progress of a plan's latest run."""
    plan_status = store_status.read_status(*find_store_and_plan(where, store, name))
    if in_json:
        print_json(as_json(build_status_dict(plan_status)))
    else:
        print_text(format_status(plan_status, time.time(), width=output_columns()))


def history(where: str, store: str | None, name: str | None, last: int) -> None:
    """Print a list of the runs of a plan."""
    print_text(
        format_history(store_status.list_runs(*find_store_and_plan(where, store, name), last), width=output_columns())
    )


def report(
    where: str,
    store: str | None,
    name: str | None,
    number: int | None,
    verbose: bool,
    everything: bool,
    json_file: str | None,
    html_file: str | None,
    figures: str | None,
    figure_format: str,
    **options: Any,
) -> None:
    """Print and write the results of a plan and what changed since the run before."""
    tables = PlanTables.from_options(options, json_file, html=html_file)
    check_figures(figures, figure_format)
    plan_report = store_status.build_report(*find_store_and_plan(where, store, name), number)
    if "-" not in (json_file, *tables.files.values()):
        if (verdict := plan_report.run.details.get("verdict")) is not None:
            print_text(f"{format_record(verdict)}\n")
        print_text(format_report(plan_report, everything=everything, verbose=verbose, width=output_columns()))
    write_json(json_file, lambda: render_json(plan_report))
    tables.write(plan_report)
    if html_file is not None:
        write_report(Path(html_file), plan_report)
    write_figures(figures, figure_format, plot_report(plan_report))


@dataclass(frozen=True, slots=True)
class PlanTables:
    """The paper tables that a command on plans writes.

    Attributes
    ----------
    files : dict of str to str or None
        By "markdown" and "latex".
    printed : dict
        How they are laid out.
    """

    files: dict[str, str | None]
    printed: TableLayoutOptions

    @staticmethod
    def from_options(options: dict[str, Any], json_file: str | None, **others: str | None) -> PlanTables:
        """Return the tables that the options request; raise if a file cannot be written."""
        files = {name: options[f"{name}_file"] for name in ("markdown", "latex")}
        check_outputs(json=json_file, **files, **others)
        for name, printed in PRINT_OPTIONS.items():
            printed.check(name, options[name])
        return PlanTables(files, cast("TableLayoutOptions", {name: options[name] for name in PRINT_OPTIONS}))

    def write(self, plan_report: PlanReport) -> None:
        """Write the tables of a report."""
        for name, parts in (("markdown", render_markdown), ("latex", render_latex)):
            if (file := self.files[name]) is not None:
                write_data(file, parts(plan_report, **self.printed), f"--{name}")


def find_store_and_plan(where: str, store: str | None, name: str | None) -> tuple[str, str | None]:
    """Return the store and the plan's name in it, given a plan file or the store itself."""
    if not where.endswith(".toml"):
        return store or where, name

    plan_store, plan_name = read_store_and_name(where)
    return store or plan_store, name or plan_name
