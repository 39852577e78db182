"""`sigdask power`: its options, groups and help."""

from __future__ import annotations

from typing import Any

import click

from sigdask.cli.declared.compare import GROUPS as COMPARE_GROUPS
from sigdask.cli.declared.options import TABLE_OPTIONS, grouped_command, option, parse_integer, run_by

GROUPS = {
    "What is asked": (
        option("--difference", type=float, metavar="D"),
        option("--units", type=parse_integer, metavar="N"),
        option("--power", type=float, metavar="P"),
    ),
    "Files": COMPARE_GROUPS["Files"],
    "What to compare": (
        option("-m", "metrics", long="--metric", multiple=True, metavar="M", more="May be repeated."),
        option("--pair", "pairs", nargs=2, multiple=True, metavar="A B", more="May be repeated."),
        option("--baseline", metavar="NAME"),
        click.option("--name", default="", metavar="TESTSET", help="The test set's name; part of its address."),
    ),
    "The test": (
        option("--unit", multiple=True, metavar="COLUMN"),
        option("--alternative"),
        option("--alpha", type=float),
        click.option(
            "--adjust", type=click.Choice(("none", "holm")), default="none", show_default=True,
            help="holm: each comparison at the level of its first step, alpha / comparisons.",
        ),
        option("--samples", type=parse_integer, metavar="K"),
        option("--seed", type=int),
    ),
    "Where to run": (
        option("--cluster"),
        option("--workers", type=click.IntRange(min=1), metavar="N"),
        click.option("--no-cache", is_flag=True, help="Neither look up nor keep what is extracted from outputs."),
    ),
    "Output": (
        click.option("--json", "json_file", metavar="FILE|-", help="Write what is found as JSON."),
        *TABLE_OPTIONS,
        click.option("--all", "everything", is_flag=True, help="Show every pair."),
        click.option("-q", "--quiet", is_flag=True, help="Say nothing beside results, warnings and errors."),
    ),
}  # fmt: skip

EXAMPLES = (
    "sigdask power scores.csv --difference 0.01",
    "sigdask power new.txt old.txt --ref reference.txt -m BLEU --units 2000 --power 0.9",
    "sigdask power runs.csv --baseline base --difference 0.02 --adjust holm --json power.json",
)


@grouped_command(GROUPS, EXAMPLES)
@click.argument("systems", nargs=-1, required=True, metavar="[NAME=]SYSTEM...")
@run_by("sigdask.cli.power:power")
def power(**options: Any) -> None:
    """Tell how many units a difference needs, and which difference the present test set can detect.

    SYSTEM is as in `compare`. Samples are drawn from the observed pairs of units, tilted so that the systems differ
    by D, and each is judged by the test itself.
    """
