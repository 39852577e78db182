"""The commands `metrics`, `formats` and `verify`."""

from __future__ import annotations

from sigdask.cli.output.streams import print_text
from sigdask.formats import FORMATS
from sigdask.metrics import METRICS
from sigdask.text import make_printable
from sigdask.verify import run_audits

NAME_COLUMNS = 19
"""Width of the column of names."""


def metrics() -> None:
    """Print the metrics with their meanings."""
    for name, (_, text) in METRICS.items():
        _print_entry(name, text)
    _print_entry("MODULE:NAME", "your own: a @sigdask.metric of summed counts, or any f(outputs, gold) -> float")


def formats() -> None:
    """Print the file formats with their meanings."""
    for name, declared in FORMATS.items():
        _print_entry(name, declared.help)


def _print_entry(name: str, text: str) -> None:
    print_text(f"{name:{NAME_COLUMNS}}{text}", hang=NAME_COLUMNS)


def verify(cluster: str, workers: int | None) -> int:
    """Run the checks of `sigdask.verify`, print each result and return the exit status."""
    failed = 0
    for name, passed, detail in run_audits(cluster, workers):
        print_text(make_printable(f"{'ok    ' if passed else 'FAILED'}  {name}: {detail}"), hang=8)
        failed += not passed
    print_text(f"\n{failed} of the audits failed" if failed else "\nall audits passed")
    return 1 if failed else 0
