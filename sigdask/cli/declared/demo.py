"""`sigdask demo` and `sigdask examples`: their options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sigdask.cli.declared.options import run_by


@click.command()
@click.argument("name", required=False)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@run_by("sigdask.cli.demo:examples")
def examples(**options: Any) -> None:
    """List the example data, or copy the files of one.

    FOLDER is called like the example unless it is given. The tutorials start from these files.
    """


@click.command()
@click.option("--yes", is_flag=True, help="Go on without waiting for Enter.")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Leave the files of the example in DIR.")
@click.pass_context
@run_by("sigdask.cli.demo:demo")
def demo(context: click.Context, **options: Any) -> None:
    """Explain a comparison of real taggers, step by step: each command is run, and what it prints is explained."""
