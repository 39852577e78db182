"""The commands that list or check what sigdask has: metrics, formats, verify, certificates."""

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
@run_by("sigdask.cli.verify:verify")
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
