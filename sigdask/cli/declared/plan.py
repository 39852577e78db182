"""Declared commands on plans and stores: init, check, run, submit, status, history, report, and store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sigdask.cli.declared.options import (
    FIGURE_OPTIONS,
    QUIET,
    TABLE_AND_LAYOUT_OPTIONS,
    VERBOSE,
    add_options,
    declare_all,
    declare_file,
    declare_options,
    run_by,
)
from sigdask.options import ReadingOptions

STORE = (
    click.argument("where", metavar="PLAN.toml|STORE"),
    click.option("--store", metavar="FILE|URL", help="Instead of the plan's."),
)
PLAN_NAME = click.option("--plan", "name", help="Which plan, where a store has several.")


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
@VERBOSE
@declare_all("comparison")
@declare_file("json", "Write the results, and what changed, as JSON.")
@add_options(*TABLE_AND_LAYOUT_OPTIONS)
@add_options(*FIGURE_OPTIONS)
@QUIET
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
@add_options(*STORE, PLAN_NAME)
@click.option("--json", "in_json", is_flag=True, help="Write JSON.")
@run_by("sigdask.cli.status:status")
def status(**options: Any) -> None:
    """Show how far a plan is, while it runs or after."""


@click.command()
@add_options(*STORE, PLAN_NAME)
@click.option("--last", type=click.IntRange(min=1), default=30, show_default=True, metavar="N", help="How many runs.")
@run_by("sigdask.cli.status:history")
def history(**options: Any) -> None:
    """List the runs of a plan."""


@click.command()
@add_options(*STORE, PLAN_NAME)
@click.option("--run", "number", type=int, metavar="N", help="After this run.  [default: the latest]")
@VERBOSE
@declare_all("comparison and change")
@declare_file("json", "Write JSON.")
@add_options(*TABLE_AND_LAYOUT_OPTIONS)
@declare_file("html", "Write a page that needs nothing else.", "FILE")
@add_options(*FIGURE_OPTIONS)
@run_by("sigdask.cli.status:report")
def report(**options: Any) -> None:
    """Show what a plan has found, and what changed since the run before."""


@click.command()
@click.argument("where", nargs=-1, metavar="[FOLDER|FILES...]")
@click.option("--gold", "--qrels", "--ref", "gold", metavar="FILE", help="File of what is right.")
@click.option("--documents", metavar="FILE", help="File of the document of each segment.")
@click.option("--format", "format_", default="auto", show_default=True, help="See `sigdask formats`.")
@add_options(*declare_options(ReadingOptions, "missing", "min_items"))
@click.option("-o", "--output", default="night.toml", show_default=True, metavar="PLAN.toml", help="What to write.")
@click.option("--force", is_flag=True, help="Write over a plan that is there.")
@run_by("sigdask.cli.init:init")
def init(**options: Any) -> None:
    """Write a plan of the files at hand: a folder's, or those of systems.

    It looks at what lies there, reads it to be sure, and says what it took for what; what it cannot tell it asks for.
    The plan passes `sigdask check`, and is commented for whoever goes on with it.
    """


@click.group()
def store() -> None:
    """Look at a store, and mend one that is damaged."""


@store.command("check")
@add_options(*STORE)
@declare_all("damaged row")
@run_by("sigdask.cli.store:check")
def check_store(**options: Any) -> None:
    """Look at every row: its checksum, and whether trials can have given it. Nothing is changed."""


@store.command("repair")
@add_options(*STORE)
@declare_all("damaged row")
@run_by("sigdask.cli.store:repair")
def repair_store(**options: Any) -> None:
    """Take out what is damaged, so that the next run counts it again; all else stays."""
