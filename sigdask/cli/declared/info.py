"""Declared commands that show or check what sigdask has: demo, examples, metrics, formats, verify, certificates."""

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
@click.option("--cluster", default="local", show_default=True, help="Where counts are held against this process.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N")
@run_by("sigdask.cli.info:verify")
def verify(**options: Any) -> None:
    """Audit the program itself: streams, Yeh's example, sampled against exact, this cluster."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--days", type=float, default=14.0, show_default=True, help="How long they are valid.")
@run_by("sigdask.cli.info:certificates")
def certificates(**options: Any) -> None:
    """Make an authority and certificates for scheduler, workers and clients that speak TLS.

    Name FOLDER in a cluster file ([security] folder) and give it to `dask scheduler` and `dask worker`.
    """


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
