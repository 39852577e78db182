"""The commands beside comparing: lists of what there is, the audit, certificates."""

from __future__ import annotations

from pathlib import Path

import click

from sigdask.cli.output.write import note, say
from sigdask.errors import InputError
from sigdask.text import printable

TO_TEXT = 19
"""Columns from the start of a name to what is said of it."""


@click.command()
def metrics() -> None:
    """List the metrics."""
    from sigdask.metrics import METRICS

    for name, (_, text) in METRICS.items():
        _say_named(name, text)
    _say_named("MODULE:NAME", "your own: a @sigdask.metric of summed counts, or any f(outputs, gold) -> float")


@click.command()
def formats() -> None:
    """List the file formats."""
    from sigdask.formats import FORMATS

    for name, (_, text) in FORMATS.items():
        _say_named(name, text)


def _say_named(name: str, text: str) -> None:
    say(f"{name:{TO_TEXT}}{text}", hang=TO_TEXT)


@click.command()
@click.option("--cluster", default="local", show_default=True, help="Where counts are held against this process.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N")
def verify(cluster: str, workers: int | None) -> int:
    """Audit the program itself: streams, Yeh's example, sampled against exact, this cluster."""
    from sigdask.verify import audits

    failed = 0
    for name, passed, detail in audits(cluster, workers):
        say(printable(f"{'ok    ' if passed else 'FAILED'}  {name}: {detail}"), hang=8)
        failed += not passed
    say(f"\n{failed} of the audits failed" if failed else "\nall audits passed")
    return 1 if failed else 0


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--days", type=float, default=14.0, show_default=True, help="How long they are valid.")
def certificates(folder: Path, days: float) -> None:
    """Make an authority and certificates for scheduler, workers and clients that speak TLS.

    Name FOLDER in a cluster file ([security] folder) and give it to `dask scheduler` and `dask worker`.
    """
    from sigdask.execution.certificates import make

    if not 0 < days <= 398:
        raise InputError(f"--days {days:g}: must be more than 0, at most 398")
    files = make(folder, days=days)
    note(f"valid for {days:g} days, readable by their owner only: {', '.join(path.name for path in files)}")
