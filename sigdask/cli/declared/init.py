"""`sigdask init`: its options and help."""

from __future__ import annotations

from typing import Any

import click

from sigdask.cli.declared.options import option, parse_integer, run_by


@click.command()
@click.argument("where", nargs=-1, metavar="[FOLDER|FILES...]")
@click.option("--gold", "--qrels", "--ref", "gold", metavar="FILE", help="File of what is right.")
@click.option("--documents", metavar="FILE", help="File of the document of each segment.")
@click.option("--format", "format_", default="auto", show_default=True, help="See `sigdask formats`.")
@option("--missing")
@option("--min-items", type=parse_integer, metavar="N")
@click.option("-o", "--output", default="night.toml", show_default=True, metavar="PLAN.toml", help="What to write.")
@click.option("--force", is_flag=True, help="Write over a plan that is there.")
@run_by("sigdask.cli.init:init")
def init(**options: Any) -> None:
    """Write a plan of the files at hand: a folder's, or those of systems.

    It looks at what lies there, reads it to be sure, and says what it took for what; what it cannot tell it asks for.
    The plan passes `sigdask check`, and is commented for whoever goes on with it.
    """
