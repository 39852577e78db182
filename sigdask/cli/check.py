"""`sigdask check`: validates plans and estimates their cost."""

from __future__ import annotations

import click

from sigdask.cli.progress import list_plan_files, show_progress
from sigdask.cli.streams import output_columns, print_text
from sigdask.errors import InputError
from sigdask.nightly import plan as plans
from sigdask.nightly.report.cost import render
from sigdask.nightly.run.estimate import count_threads, estimate_costs
from sigdask.text import make_printable


def check(plan_files: tuple[str, ...], *, keys: bool, schema: bool, everything: bool) -> None:
    """Validate plans and print what each would cost."""
    if schema:
        click.echo(plans.format_schema(), nl=False)
        return
    if not plan_files:
        raise InputError("check: expected a plan file, such as plan.toml")
    for file in plan_files:
        if keys:
            plans.check_keys(file)
            print_text(f"{make_printable(file)}: all keys and values are valid")
        else:
            _check_plan(file, everything=everything)


def _check_plan(plan: str, *, everything: bool) -> None:
    """Validate a plan with its files and data, and print what it would cost."""
    loaded = plans.load_plan(plan)
    loaded.report.check_packages()
    with show_progress() as steps, steps.show_reading(list_plan_files(loaded)):
        costs = estimate_costs(loaded, steps.show_extraction)
    stops = loaded.stopping is not None
    print_text(
        render(
            loaded.name, costs, count_threads(loaded),
            gate=loaded.gate, stops=stops, everything=everything, width=output_columns(),
        )
    )  # fmt: skip
