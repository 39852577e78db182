"""Declared commands on plans and stores: init, check, run, submit, status, history and report."""

from __future__ import annotations

from typing import Any

import click

from sigdask.cli.declared.options import (
    FORMAT,
    GOLD,
    JSON,
    PLAN_NAME,
    QUIET,
    STORE,
    VERBOSE,
    WORKERS,
    add_options,
    declare_all,
    declare_options,
    declare_output,
    run_by,
)
from sigdask.options import ReadingOptions

WHERE = click.argument("where", metavar="PLAN.toml|STORE")
OUTPUT = (
    declare_output("json", "csv", "parquet", "markdown", "latex", "html", "text"), JSON, VERBOSE,
    declare_all("comparison, test set and change"),
)  # fmt: skip


@click.command()
@click.argument("plan_files", metavar="PLAN.toml...", nargs=-1)
@click.option("--keys", is_flag=True, help="Check only keys and values, without looking for files. For commit hooks.")
@click.option("--schema", is_flag=True, help="Print the JSON schema of plans, for editors, and exit.")
@declare_all("test set, note and warning")
@run_by("sigdask.cli.check:check")
def check(**options: Any) -> None:
    """Validate a plan and read its data. Nothing is compared."""


@click.command()
@click.argument("plan_file", metavar="PLAN.toml")
@click.option(
    "--store", metavar="FILE|URL", help="Database for counts and results.  [default: in the folder of the plan]"
)
@click.option("--cluster", help="Cluster as in `compare`, instead of the plan's.")
@add_options(WORKERS)
@click.option(
    "--deadline", metavar="TIME", help="Stop before this time, such as 06:00, or after this duration, such as 1h30m."
)
@click.option(
    "--reread",
    is_flag=True,
    help="Read all files again, even if their sizes and times are the same as in the latest run.",
)
@add_options(*OUTPUT, QUIET)
@run_by("sigdask.cli.run:run")
def run(**options: Any) -> None:
    """Run a plan: count the missing trials, and report.

    A run that was stopped continues when you start it again. If no trials are missing, nothing is counted.
    """


@click.command()
@click.argument("plan", metavar="PLAN.toml")
@click.option("--cluster", required=True, metavar="FILE.toml", help='Cluster file with class = "slurm".')
@click.option("--store", metavar="FILE|URL", help="As in `run`.")
@click.option("--deadline", metavar="TIME", help="As in `run`.")
@click.option("--dry-run", is_flag=True, help="Show the batch job without submitting it.")
@run_by("sigdask.cli.submit:submit")
def submit(**options: Any) -> None:
    """Run a plan as a batch job on Slurm, which is queued again until the plan is done."""


@click.command()
@add_options(WHERE, STORE, PLAN_NAME)
@click.option("--json", "in_json", is_flag=True, help="Write JSON.")
@click.option(
    "--follow",
    is_flag=True,
    help="Update the progress every few seconds, until the run ends. The exit status is then the run's: 1 if the "
    "gate failed, 3 if the run was stopped or killed.",
)
@run_by("sigdask.cli.status:status")
def status(**options: Any) -> None:
    """Show the progress of a plan, during a run or after it."""


@click.command()
@add_options(WHERE, STORE, PLAN_NAME)
@click.option(
    "--last", type=click.IntRange(min=1), default=30, show_default=True, metavar="N", help="Number of runs to list."
)
@run_by("sigdask.cli.history:history")
def history(**options: Any) -> None:
    """List the runs of a plan."""


@click.command()
@click.argument("wheres", metavar="PLAN.toml|STORE...", nargs=-1, required=True)
@add_options(STORE, PLAN_NAME)
@click.option(
    "--run", "number", type=int, metavar="N", help="Report the results as of this run.  [default: the latest]"
)
@add_options(*OUTPUT)
@click.option(
    "--site",
    metavar="DIR",
    help="Write or update a static site of these plans, with a page for each night. It prints nothing else.",
)
@run_by("sigdask.cli.report:report")
def report(**options: Any) -> None:
    """Show the results of a plan, and what changed since the previous run.

    With --site you can name several plans.
    """


@click.command()
@click.argument("where", nargs=-1, metavar="[FOLDER|FILES...]")
@add_options(GOLD, FORMAT, *declare_options(ReadingOptions, "documents", "missing"))
@click.option(
    "-o", "--output", default="night.toml", show_default=True, metavar="PLAN.toml", help="Plan file to write."
)
@click.option(
    "--baseline",
    metavar="NAME",
    help="Compare all systems with this one.  [default: a system called baseline, prod or main]",
)
@click.option("--force", is_flag=True, help="Overwrite an existing plan.")
@run_by("sigdask.cli.init:init")
def init(**options: Any) -> None:
    """Write a plan for the files of a folder or for the files of systems.

    sigdask reads the files and prints how it interprets each. If something is unclear, it asks you to name it. The plan
    passes `sigdask check` and has comments for you to continue.
    """
