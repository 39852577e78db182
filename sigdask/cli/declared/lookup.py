"""Declared commands that look things up: list, read and verify."""

from __future__ import annotations

from typing import Any

import click

from sigdask import options
from sigdask.cli.declared.options import FORMAT, GOLD, WORKERS, add_options, declare_options, run_by


@click.command("list")
@click.argument("what", metavar="metrics|formats|examples", type=click.Choice(["metrics", "formats", "examples"]))
@click.argument("name", required=False)
@click.option("--to", "folder", metavar="DIR", help="Folder for the files of the example.  [default: ./NAME]")
@run_by("sigdask.cli.list:list_entries")
def list_(**options: Any) -> None:
    """List metrics, file formats or example data, or copy an example.

    `sigdask list examples NAME --to DIR` copies the files of an example. The tutorials start from these files.
    """


@click.command()
@click.argument("systems", nargs=-1, required=True, metavar="[NAME=]FILE...")
@add_options(
    *declare_options(options.ChoiceOptions, "metrics"),
    GOLD,
    *declare_options(options.SelectionOptions, "unit"),
    FORMAT,
    *declare_options(options.ReadingOptions),
    *declare_options(options.ChoiceOptions, "by"),
)
@run_by("sigdask.cli.read:read")
def read(**options: Any) -> None:
    """Show how files are read: format, columns, systems and first items.

    Nothing is computed. The options are those of `compare`.
    """


@click.command()
@click.option(
    "--cluster", default="local", show_default=True, help="Cluster whose counts are compared with this process's."
)
@add_options(WORKERS)
@run_by("sigdask.cli.verify:verify")
def verify(**options: Any) -> None:
    """Check the program on this machine: random streams, Yeh's example, trials against exact p, and a cluster."""
