"""The commands on plans (check, run, submit, status, history, report): their options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sigdask.cli.declared.options import add_figure_options, add_table_options, run_by


@click.command()
@click.argument("plan", metavar="PLAN.toml", required=False)
@click.option("--schema", is_flag=True, help="Print the JSON schema of plans, for editors, and leave.")
@run_by("sigdask.cli.check:check")
def check(**options: Any) -> None:
    """Validate a plan, read its data and say what it would cost; nothing is compared."""


@click.command()
@click.argument("plan_file", metavar="PLAN.toml")
@click.option("--store", metavar="FILE|URL", help="Where counts and results are kept.  [default: beside the plan]")
@click.option("--cluster", help="As in `compare`, instead of the plan's.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Threads or processes to start.")
@click.option("--deadline", metavar="TIME", help="Stop in time: 06:00 (the next one), 90m, 1h30m.")
@click.option("-v", "--verbose", is_flag=True, help="Show what each p stands on: runs, checks, dependence.")
@click.option("--all", "everything", is_flag=True, help="Show every comparison.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the results, and what changed, as JSON.")
@add_table_options
@add_figure_options
@click.option("-q", "--quiet", is_flag=True, help="Say nothing beside results, warnings and errors.")
@run_by("sigdask.cli.run:run")
def run(**options: Any) -> None:
    """Run a plan: count what is missing, and report.

    Again after a stop it goes on; when nothing is missing it counts nothing.
    """


@click.command()
@click.argument("plan", type=click.Path(path_type=Path), metavar="PLAN.toml")
@click.option("--cluster", required=True, type=click.Path(path_type=Path), metavar="FILE.toml", help="Of class slurm.")
@click.option("--store", metavar="FILE|URL", help="As in `run`.")
@click.option("--deadline", metavar="TIME", help="As in `run`.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and send nothing.")
@run_by("sigdask.cli.check:submit")
def submit(**options: Any) -> None:
    """Send the driver itself to Slurm as a batch job that comes back until the plan is done."""


@click.command()
@click.argument("where", metavar="PLAN.toml|STORE")
@click.option("--store", metavar="FILE|URL", help="Instead of the plan's.")
@click.option("--plan", "name", help="Which plan, where a store has several.")
@click.option("--json", "in_json", is_flag=True, help="Write JSON.")
@run_by("sigdask.cli.status:status")
def status(**options: Any) -> None:
    """Show how far a plan is, while it runs or after."""


@click.command()
@click.argument("where", metavar="PLAN.toml|STORE")
@click.option("--store", metavar="FILE|URL", help="Instead of the plan's.")
@click.option("--plan", "name", help="Which plan, where a store has several.")
@click.option("--last", type=click.IntRange(min=1), default=30, show_default=True, metavar="N", help="How many runs.")
@run_by("sigdask.cli.status:history")
def history(**options: Any) -> None:
    """List the runs of a plan."""


@click.command()
@click.argument("where", metavar="PLAN.toml|STORE")
@click.option("--store", metavar="FILE|URL", help="Instead of the plan's.")
@click.option("--plan", "name", help="Which plan, where a store has several.")
@click.option("--run", "number", type=int, metavar="N", help="After this run.  [default: the latest]")
@click.option("-v", "--verbose", is_flag=True, help="Show what each p stands on: runs, checks, dependence.")
@click.option("--all", "everything", is_flag=True, help="Show every comparison and change.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write JSON.")
@add_table_options
@click.option("--html", "html_file", metavar="FILE", help="Write a page that needs nothing else.")
@add_figure_options
@run_by("sigdask.cli.status:report")
def report(**options: Any) -> None:
    """Show what a plan has found, and what changed since the run before."""
