"""Declared commands that show or check what sigdask has: demo, examples, metrics, formats, verify."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sigdask.cli.declared.options import run_by


@click.command()
@run_by("sigdask.cli.info:metrics")
def metrics() -> None:
    """List the metrics."""


@click.command()
@run_by("sigdask.cli.info:formats")
def formats() -> None:
    """List the file formats."""


@click.command()
@click.option(
    "--cluster",
    default="local",
    show_default=True,
    help="Cluster whose counts are compared with those of this process.",
)
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Threads or processes to start.")
@run_by("sigdask.cli.info:verify")
def verify(**options: Any) -> None:
    """Check the program on this machine: random streams, Yeh's example, trials against exact p, and a cluster."""


@click.command()
@click.argument("name", required=False)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@run_by("sigdask.cli.demo:examples")
def examples(**options: Any) -> None:
    """List the example data sets, or copy the files of one of them.

    The default FOLDER has the name of the example. The tutorials start from these files.
    """


@click.command()
@click.option("--yes", is_flag=True, help="Do not wait for Enter after each step.")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Keep the files of the example in DIR.")
@click.pass_context
@run_by("sigdask.cli.demo:demo")
def demo(context: click.Context, **options: Any) -> None:
    """Run a comparison of real taggers step by step, and explain the output of each command."""
