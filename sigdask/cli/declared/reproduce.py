"""`sigdask reproduce`: its options, groups and help."""

from __future__ import annotations

from typing import Any

import click

from sigdask.cli.declared.compare import GROUPS as COMPARE_GROUPS
from sigdask.cli.declared.options import grouped_command, option, run_by

GROUPS = {
    "Results": (
        click.option("--expect", metavar="P", help="The p that was printed; it is held against what is found."),
        click.option("--name", metavar="TESTSET", help="Of a file of results: the test set that the files are."),
    ),
    "Files": COMPARE_GROUPS["Files"],
    "Where to run": (
        option("--cluster"),
        option("--workers", type=click.IntRange(min=1), metavar="N"),
        click.option("--no-cache", is_flag=True, help="Neither look up nor keep what is extracted from outputs."),
    ),
    "Output": (
        click.option("-q", "--quiet", is_flag=True, help="Say nothing beside results, warnings and errors."),
    ),
}  # fmt: skip

EXAMPLES = (
    "sigdask reproduce results.json new.txt old.txt --ref reference.txt",
    "sigdask reproduce 'test:ar|metric:f1|…|v:0.3.0' scores.csv --expect 0.0296",
)


@grouped_command(GROUPS, EXAMPLES)
@click.argument("what", metavar="SIGNATURE|RESULTS")
@click.argument("systems", nargs=-1, required=True, metavar="[NAME=]SYSTEM...")
@run_by("sigdask.cli.reproduce:reproduce")
def reproduce(**options: Any) -> None:
    """Find results again, and say whether they are the same.

    RESULTS is a file that `compare`, `run` or `report` wrote (--json, --csv); SIGNATURE is the test's, of one result.
    The files are read as `compare` reads them. Metrics, units, seeds and all else are those of the signatures, and so
    must the data be: their digests are looked at first. Exit status 0: reproduced; 1: not.
    """
