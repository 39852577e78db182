"""`sigdask check` validates a plan, `sigdask submit` sends it to Slurm."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path

import click

from sigdask.cli.output.progress import list_plan_files, show_progress
from sigdask.cli.output.streams import output_columns, print_data, print_text
from sigdask.errors import InputError
from sigdask.execution.clusters.slurm import build_submission
from sigdask.nightly import plan as plans
from sigdask.nightly.report.cost import render
from sigdask.nightly.run import parse_deadline
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
    print_text(
        render(
            loaded.name, costs, count_threads(loaded),
            gate=loaded.gate, everything=everything, width=output_columns(),
        )
    )  # fmt: skip


def submit(plan: Path, cluster: Path, store: str | None, deadline: str | None, *, dry_run: bool) -> None:
    """Send the driver of a plan to Slurm as a batch job."""
    settings = {"--store": store, "--deadline": None if deadline is None else _fix_deadline(deadline)}
    options = [word for key, value in settings.items() if value is not None for word in (key, value)]
    submission = build_submission(plan, cluster, options=options)
    if dry_run:
        print_data(f"{shlex.join(submission.arguments)} <<'END'\n{submission.script}END\n")
        return
    print_text(
        make_printable(f"submitted as job {submission.send()}; `sigdask status {shlex.quote(str(plan))}` follows it")
    )


def _fix_deadline(deadline: str) -> str:
    """Return a deadline as a fixed date and time. A job may start late and more than once, so "in 2 h" would move."""
    return datetime.fromtimestamp(parse_deadline(deadline)).astimezone().isoformat(timespec="seconds")
