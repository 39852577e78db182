"""The commands beside comparing: lists of what there is, the audit, certificates."""

from __future__ import annotations

from pathlib import Path

from sigdask.cli.output.say import note, say
from sigdask.errors import InputError
from sigdask.execution.certificates import make
from sigdask.formats import FORMATS
from sigdask.metrics import METRICS

TO_TEXT = 19
"""Columns from the start of a name to what is said of it."""


def metrics() -> None:
    """Print the metrics with their meanings."""
    for name, (_, text) in METRICS.items():
        _say_named(name, text)
    _say_named("MODULE:NAME", "your own: a @sigdask.metric of summed counts, or any f(outputs, gold) -> float")


def formats() -> None:
    """Print the file formats with their meanings."""
    for name, (_, text) in FORMATS.items():
        _say_named(name, text)


def _say_named(name: str, text: str) -> None:
    say(f"{name:{TO_TEXT}}{text}", hang=TO_TEXT)


def certificates(folder: Path, days: float) -> None:
    """Create a certificate authority and TLS certificates in a folder."""
    if not 0 < days <= 398:
        raise InputError(f"--days {days:g}: must be more than 0, at most 398")
    files = make(folder, days=days)
    note(f"valid for {days:g} days, readable by their owner only: {', '.join(path.name for path in files)}")
