"""`sigdask meta`: compares evaluation metrics by their agreement with human judgements.

It is `compare` of format `meta` under a metric of agreement, so results, stores and signatures are those of `compare`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from sigdask import options as declared
from sigdask.analysis.agreement import build_format, find_unit, name_metric, sort_by_agreement
from sigdask.cli import declare
from sigdask.cli.compare import OUTPUT, compare
from sigdask.errors import InputError
from sigdask.metrics import find_metric
from sigdask.options import AgreementOptions, check_options, select_options

GROUPS = {
    "Files": (
        declare.option("--human NAME", "Human scores: a column of TABLE, or NAME in a folder's file "
            "PAIR.NAME.seg.score.  [default: the column human, or the only human scores]"),
        declare.option("--language-pair PAIR", "Read only this language pair of a folder.  "
            "[default: the average over all]"),
        declare.option("--metric,-m NAME", "Metric to compare. May be "
            "repeated.  [default: all]", dest="scores", multiple=True),
        declare.option("--lower COLUMN", "Column in which lower scores are better; none "
            "means no column. May be repeated.  [default: recognised by their names, such as TER]", multiple=True),
        declare.option("--format FORMAT", "Format of the tables, with "
            "its options after the name: meta:sheet=NAME,decimal=,", dest="format_", default="meta"),
        *declare.options(declared.ReadingOptions, "columns", "ignore"),
    ),
    "Agreement": declare.options(declared.AgreementOptions),
    "What to compare": (*declare.options(declared.ChoiceOptions, "pairs", "baseline", "by"), declare.NAME),
    "The test": declare.options(declared.RandomizationOptions),
    "Many comparisons": declare.ADJUST,
    "Where to run": (*declare.RUN, *declare.CACHE),
    "Output": OUTPUT,
}  # fmt: skip

EXAMPLES = (
    "sigdask meta scores.csv --statistic kendall --group item",
    "sigdask meta wmt22 --human mqm --statistic spa",
    "sigdask meta wmt22/ --human mqm --language-pair en-de --level system --alternative greater",
    "sigdask meta scores.csv --statistic acc-eq --group item --permute segments",
)

SYSTEMS = click.argument("systems", nargs=-1, required=True, metavar="[NAME=]TABLE|FOLDER...")


@declare.command(SYSTEMS, groups=GROUPS, examples=EXAMPLES)
def command(**options: Any) -> None:
    """Compare evaluation metrics by their agreement with human judgements.

    TABLE has one row per system and segment: columns system, segment, human, and a column for each metric. FOLDER is a
    test set of mt-metrics-eval (WMT metrics tasks). Agreement is averaged over tables, folders and language pairs.
    """
    check_options(AgreementOptions, select_options(AgreementOptions, options))
    metric, unit = name_metric(options), find_unit(options)
    find_metric(metric)  # a wrong one before files are read
    name, _, given = options["format_"].partition(":")
    if name != "meta":
        raise InputError(f"--format {name}: meta reads only tables and folders of its own format, meta")
    format_ = build_format(options["language_pair"], options["scores"], options["lower"], given)
    human = () if options["human"] is None else (f"gold={options['human']}",)
    read = {"format_": format_, "columns": (*options["columns"], *human), "metrics": (metric,), "unit": unit}
    compare(partial(sort_by_agreement, metric), **{**options, **read, "gold": None})
