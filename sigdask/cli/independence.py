"""`sigdask independence`: tests whether two labellings of the same items are independent."""

from __future__ import annotations

from typing import Any

import click

from sigdask import formats
from sigdask import options as declared
from sigdask.cli import declare
from sigdask.cli.compare import read_systems
from sigdask.cli.streams import show_progress
from sigdask.cli.write import present_analysis
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.execution import clusters
from sigdask.options import IndependenceOptions, fill_options, select_options
from sigdask.report.analyses import independence_all

GROUPS = {
    "Files": (
        declare.option("--gold FILE", "Labelling that every FILE is compared with, instead of "
            "the last FILE."),
        declare.option("--format FORMAT", "Format of the files; see `sigdask list formats`.", dest="format_",
                       default="labels"),
        *declare.options(declared.ReadingOptions, *declared.LABEL_READING),
    ),
    "The test": (
        declare.option("-m,--metric M", "A score of labels: accuracy, kappa, mcc, precision[LABEL], macro-f1. "
            "May be repeated.", dest="metrics", multiple=True, default=("accuracy",)),
        declare.option("--within COLUMN", "Permute labels only within each value of this column."),
        *declare.options(declared.LabelTestOptions),
        declare.NAME,
    ),
    "Where to run": declare.RUN,
    "Output": (*declare.output("json", "markdown", "latex"), declare.QUIET),
}  # fmt: skip

EXAMPLES = (
    "sigdask independence expert.txt contents.txt",
    "sigdask independence annotator1.csv annotator2.csv -m kappa -m 'f1[spam]' --alternative two-sided",
    "sigdask independence model.csv --gold gold.csv -m macro-f1 --within document",
)

LABELLINGS = click.argument("files", nargs=-1, required=True, metavar="[NAME=]FILE...")


@declare.command(LABELLINGS, groups=GROUPS, examples=EXAMPLES)
def command(**options: Any) -> None:
    """Test whether one labelling of items is independent of another.

    The labels of the last FILE are permuted over the items, and each other FILE is scored against them. The last FILE
    takes the place of the gold standard in precision and recall. A single FILE is a table with a column gold.
    """
    clusters.check_cluster(options["cluster"])
    settings = fill_options(IndependenceOptions, select_options(IndependenceOptions, options))
    with show_progress() as settings["progress"]:
        counts, reference = _read_labellings(options)
        results = independence_all(
            counts, metrics=options["metrics"], reference=reference, within=options["within"], **settings
        )
    present_analysis(options["outputs"], results)


def _read_labellings(options: dict[str, Any]) -> tuple[Counts, str]:
    """Return the labellings to test, and the name of the reference labelling."""
    files, gold = options["files"], options["gold"]
    gold_column = formats.parse_columns(options["columns"]).get("gold")
    reference = gold_column or "gold"
    if gold is not None:
        reference = formats.parse_source(gold).system
    elif len(files) > 1:
        *files, last = files
        source = formats.parse_source(last)
        gold, reference = str(source.path), source.system
    if gold is not None and gold_column is None and not files:
        raise InputError("--gold is the only labelling", remedy="name a file to compare with it")
    counts = read_systems({**options, "systems": files, "gold": gold}, "labelling", [options["within"]])
    return counts, reference
