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
from sigdask.nightly.run import parse_deadline
from sigdask.nightly.run.check import check_plan_data
from sigdask.report.layout import format_table
from sigdask.text import format_count, make_printable


def check(plan_files: tuple[str, ...], *, keys: bool, schema: bool, everything: bool) -> None:
    """Validate plans and print the sizes of their test sets."""
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


NAMES = ("test set", "format", "systems", "items", "unit", "units", "comparisons")

MAX_LISTED = 20
"""Number of test sets that are listed by default."""


def _check_plan(plan: str, *, everything: bool) -> None:
    """Validate a plan with its files and data, and print the sizes of its test sets and the readers' notes."""
    loaded = plans.load_plan(plan)
    loaded.report.check_packages()
    with show_progress() as steps, steps.show_reading(list_plan_files(loaded)):
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
    print_text("\n".join([format_table(NAMES, rows, output_columns()), *map(make_printable, texts)]))


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
