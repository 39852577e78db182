"""`sigdask independence`: its options, groups and help."""

from __future__ import annotations

from typing import Any

import click

from sigdask.cli.declared.options import TABLE_OPTIONS, grouped_command, option, parse_integer, run_by
from sigdask.options import PERMUTATION_OPTIONS

GROUPS = {
    "Files": (
        click.option("--gold", metavar="FILE", help="What every FILE is held against, instead of the last."),
        click.option("--format", "format_", default="labels", show_default=True, help="See `sigdask formats`."),
        option("--id", "id_column", metavar="COLUMN"),
        option("--gold-column", metavar="COLUMN"),
        option("--prediction-column", metavar="COLUMN"),
        option("--map", "label_map", multiple=True, metavar="TO=FROM,FROM", more="May be repeated."),
        option("--ignore", multiple=True, metavar="COLUMN", more="May be repeated."),
        option("--align"),
        option("--groups", "group_file", metavar="FILE", more="Permute within its groups by --within."),
        option("--most-unpacked", type=parse_integer, metavar="BYTES"),
    ),
    "The test": (
        click.option("-m", "--metric", "metrics", multiple=True, metavar="M", default=("accuracy",), show_default=True,
                     help="A score of labels: accuracy, kappa, mcc, precision[LABEL], macro-f1. May be repeated."),
        click.option("--within", metavar="COLUMN", help="Permute labels within each value of a column alone."),
        option("--alternative", of=PERMUTATION_OPTIONS),
        option("--method", of=PERMUTATION_OPTIONS),
        option("--adjust", of=PERMUTATION_OPTIONS),
        option("--trials", of=PERMUTATION_OPTIONS, type=parse_integer, metavar="N"),
        option("--seed", of=PERMUTATION_OPTIONS, type=int),
        option("--alpha", of=PERMUTATION_OPTIONS, type=float),
        click.option("--no-second-run", is_flag=True, help="Leave out the cross-check by a second run."),
        click.option("--name", default="", metavar="TESTSET", help="The test set's name, of its stream's address."),
    ),
    "Where to run": (
        option("--cluster"),
        option("--workers", of=PERMUTATION_OPTIONS, type=click.IntRange(min=1), metavar="N"),
    ),
    "Output": (
        click.option("--json", "json_file", metavar="FILE|-", help="Write the results as JSON."),
        *TABLE_OPTIONS,
        click.option("-q", "--quiet", is_flag=True, help="Say nothing beside results, warnings and errors."),
    ),
}  # fmt: skip

EXAMPLES = (
    "sigdask independence expert.txt contents.txt",
    "sigdask independence annotator1.csv annotator2.csv -m kappa -m 'f1[spam]' --alternative two-sided",
    "sigdask independence model.csv --gold gold.csv -m macro-f1 --within document",
)


@grouped_command(GROUPS, EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="[NAME=]FILE...")
@run_by("sigdask.cli.independence:independence")
def independence(**options: Any) -> None:
    """Test whether one labelling of items is independent of another.

    The labels of the last FILE are permuted over the items, and each other FILE is scored against them: by precision
    as the one that gives labels, by recall against those of the last. A single FILE is a table with a column gold.
    """
