"""`sigdask check`: validates plans."""

from __future__ import annotations

import click

from sigdask.cli import declare
from sigdask.cli.streams import output_columns, print_data, print_line, print_text, show_progress
from sigdask.errors import InputError
from sigdask.nightly import plan as plans
from sigdask.nightly.run.check import check_plan_data
from sigdask.report.text import format_table
from sigdask.text import as_json, format_count


@declare.command(
    click.argument("plan_files", metavar="PLAN.toml...", nargs=-1),
    declare.option("--schema", "Print the JSON schema of plans, for editors, and exit."),
    declare.everything("test set, note and warning"),
)
def command(plan_files: tuple[str, ...], *, schema: bool, everything: bool) -> None:
    """Validate a plan and read its data. Nothing is compared."""
    if schema:
        print_data([as_json(plans.build_schema()), "\n"])
        return
    if not plan_files:
        raise InputError("check: expected a plan file, such as plan.toml")
    for file in plan_files:
        _check_plan(file, everything=everything)


NAMES = ("test set", "format", "systems", "items", "unit", "units", "comparisons")

MAX_LISTED = 20
"""Number of test sets that are listed by default."""


def _check_plan(plan: str, *, everything: bool) -> None:
    """Validate a plan with its files and data, and print the sizes of its test sets and the readers' notes."""
    loaded = plans.load_plan(plan)
    with show_progress() as steps:
        sizes = check_plan_data(loaded, steps.show_extraction)
    shown = sizes if everything else sizes[:MAX_LISTED]
    rows = [
        [s.name, s.format, f"{s.n_systems:,}", f"{s.n_items:,}", s.unit, f"{s.n_units:,}", f"{s.n_comparisons:,}"]
        for s in shown
    ]
    n = format_count(sum(s.n_comparisons for s in sizes), "comparison")
    texts = [f"note: {s.name}: {warning}" for s in shown for warning in s.warnings]
    texts += [f"{len(shown)} of {len(sizes):,} test sets (--all lists all)"] if len(shown) < len(sizes) else []
    texts += [f"{loaded.name}: {format_count(len(sizes), 'test set')}, {n}; the plan and its files are valid"]
    print_text(format_table(NAMES, rows, output_columns()))
    for text in texts:
        print_line(text)
