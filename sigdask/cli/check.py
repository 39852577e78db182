"""`sigdask check` validates a plan, `sigdask submit` sends it to Slurm."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path

import click

from sigdask.cli.output.progress import plan_files, progress
from sigdask.cli.output.say import say, say_data, width
from sigdask.errors import InputError
from sigdask.execution.clusters.queues.submission import prepare
from sigdask.nightly import plan as plans
from sigdask.nightly.report.cost import render
from sigdask.nightly.run import parse_deadline
from sigdask.nightly.run.estimate import estimate, n_threads
from sigdask.text import printable


def check(plan: str | None, *, schema: bool) -> None:
    """Validate a plan and print what it would cost."""
    if schema:
        click.echo(plans.schema_text(), nl=False)
        return
    if plan is None:
        raise InputError("check: expected a plan file, such as plan.toml")

    loaded = plans.load_plan(plan)
    with progress() as steps, steps.reading(plan_files(loaded)):
        costs = estimate(loaded, steps.extracting)
    stops = loaded.stopping is not None
    say(render(loaded.name, costs, n_threads(loaded), gate=loaded.gate, stops=stops, width=width()))


def submit(plan: Path, cluster: Path, store: str | None, deadline: str | None, *, dry_run: bool) -> None:
    """Send the driver of a plan to Slurm as a batch job."""
    given = {"--store": store, "--deadline": None if deadline is None else _fixed(deadline)}
    options = [word for key, value in given.items() if value is not None for word in (key, value)]
    ready = prepare(plan, cluster, options=options)
    if dry_run:
        say_data(f"{shlex.join(ready.arguments)} <<'END'\n{ready.script}END\n")
        return
    say(printable(f"submitted as job {ready.send()}; `sigdask status {shlex.quote(str(plan))}` follows it"))


def _fixed(deadline: str) -> str:
    """Return a deadline that means the same whenever it is read: a job may start late, and again."""
    return datetime.fromtimestamp(parse_deadline(deadline)).astimezone().isoformat(timespec="seconds")
