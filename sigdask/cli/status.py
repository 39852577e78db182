"""`sigdask status`, `history` and `report`: what the store of a plan holds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sigdask.cli.output.figures import check_figures, write_figures
from sigdask.cli.output.say import say, say_json, width
from sigdask.cli.output.write import check_outputs, write_data, write_json
from sigdask.nightly.plan import peek
from sigdask.nightly.report.gate import recorded_text
from sigdask.nightly.report.plots import of_report
from sigdask.nightly.report.text import (
    history_text,
    report_json,
    report_latex,
    report_markdown,
    report_text,
    status_dict,
    status_text,
    write_report,
)
from sigdask.nightly.store import status as views
from sigdask.options import PRINTED, HowPrinted
from sigdask.text import as_json

if TYPE_CHECKING:
    from sigdask.nightly.store.status import PlanReport


def status(where: str, store: str | None, name: str | None, in_json: bool) -> None:
    """Print how far a plan is."""
    found = views.status(*store_and_plan(where, store, name))
    if in_json:
        say_json(as_json(status_dict(found)))
    else:
        say(status_text(found, time.time(), width=width()))


def history(where: str, store: str | None, name: str | None, last: int) -> None:
    """Print the runs of a plan."""
    say(history_text(views.runs(*store_and_plan(where, store, name), last), width=width()))


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
    """Print and write the results of a plan and what changed."""
    tables = PlanTables.of(options, json_file, html=html_file)
    check_figures(figures, figure_format)
    found = views.report(*store_and_plan(where, store, name), number)
    if "-" not in (json_file, *tables.files.values()):
        if (kept := found.run.details.get("verdict")) is not None:
            say(f"{recorded_text(kept)}\n")
        say(report_text(found, everything=everything, verbose=verbose, width=width()))
    write_json(json_file, lambda: report_json(found))
    tables.write(found)
    if html_file is not None:
        write_report(Path(html_file), found)
    write_figures(figures, figure_format, of_report(found))


@dataclass(frozen=True, slots=True)
class PlanTables:
    """Tables for papers that a command writes.

    Attributes
    ----------
    files : dict of str to str or None
        By "markdown" and "latex".
    printed : dict
        How they are laid out.
    """

    files: dict[str, str | None]
    printed: HowPrinted

    @staticmethod
    def of(options: dict[str, Any], json_file: str | None, **others: str | None) -> PlanTables:
        """Take what is asked for, refused where it cannot be written."""
        files = {name: options[f"{name}_file"] for name in ("markdown", "latex")}
        check_outputs(json=json_file, **files, **others)
        for name, printed in PRINTED.items():
            printed.check(name, options[name])
        return PlanTables(files, cast("HowPrinted", {name: options[name] for name in PRINTED}))

    def write(self, found: PlanReport) -> None:
        """Write what is asked for."""
        for name, parts in (("markdown", report_markdown), ("latex", report_latex)):
            if (file := self.files[name]) is not None:
                write_data(file, parts(found, **self.printed), f"--{name}")


def store_and_plan(where: str, store: str | None, name: str | None) -> tuple[str, str | None]:
    """Return the store and the plan's name that a plan file, or a store, stands for."""
    if not where.endswith(".toml"):
        return store or where, name

    kept, called = peek(where)
    return store or kept, name or called
