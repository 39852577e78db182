"""`sigdask submit`: sends the driver of a plan to Slurm as a batch job."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path

import click

from sigdask.cli import declare
from sigdask.cli.streams import print_data, print_line
from sigdask.execution.clusters.submission import build_submission
from sigdask.nightly.run import parse_deadline


@declare.command(
    click.argument("plan", metavar="PLAN.toml"),
    declare.option("--cluster FILE.toml", 'Cluster file with class = "slurm".', required=True),
    declare.option("--store FILE|URL", "As in `run`."),
    declare.option("--deadline TIME", "As in `run`."),
    declare.option("--dry-run", "Show the batch job without submitting it."),
)
def command(plan: str, cluster: str, store: str | None, deadline: str | None, *, dry_run: bool) -> None:
    """Run a plan as a batch job on Slurm, which is queued again until the plan is done."""
    settings = {"--store": store, "--deadline": None if deadline is None else _fix_deadline(deadline)}
    options = [word for key, value in settings.items() if value is not None for word in (key, value)]
    submission = build_submission(Path(plan), Path(cluster), options=options)
    if dry_run:
        print_data([f"{shlex.join(submission.arguments)} <<'END'\n{submission.script}END\n"])
        return
    print_line(f"submitted as job {submission.send()}; `sigdask status {shlex.quote(plan)}` follows it")


def _fix_deadline(deadline: str) -> str:
    """Return a deadline as a fixed date and time. A job may start late and more than once, so "in 2 h" would move."""
    return datetime.fromtimestamp(parse_deadline(deadline)).astimezone().isoformat(timespec="seconds")
