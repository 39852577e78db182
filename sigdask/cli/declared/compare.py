"""Declared commands that compare: compare, meta, rankings, independence and power."""

from __future__ import annotations

from typing import Any

import click

from sigdask import options
from sigdask.cli.declared.options import (
    ALL_FORMATS,
    FORMAT,
    GOLD,
    JSON,
    QUIET,
    VERBOSE,
    declare_all,
    declare_options,
    declare_output,
    grouped_command,
    run_by,
)

FILES = (GOLD, FORMAT, *declare_options(options.ReadingOptions))
"""The files of a test set."""

NAME = click.option(
    "--name", default="", metavar="TESTSET", help="Test-set name. Like the seed, it determines the random trials."
)
TEST = declare_options(
    options.TestOptions, *(name for name in options.list_options(options.TestOptions) if name != "stop")
)
ADJUST = declare_options(options.FamilyOptions, "adjust")
RUN = declare_options(options.RunOptions)
CACHE = declare_options(options.SelectionOptions, "cache")
TABLE_OUTPUT = (declare_output("json", "markdown", "latex"), JSON)

OUTPUT = (
    declare_output(*ALL_FORMATS),
    JSON,
    click.option(
        "--items", "items_file", metavar="FILE",
        help="Write the scores of each unit and its contribution to the difference, in the format of FILE's ending: "
        ".csv, .jsonl, .parquet. CSV and JSON lines may also end in .gz.",
    ),
    VERBOSE,
    declare_all("comparison"),
    QUIET,
)  # fmt: skip

COMPARE_GROUPS = {
    "Files": FILES,
    "What to compare": (
        *declare_options(options.ChoiceOptions), *declare_options(options.SelectionOptions, "together"), NAME,
    ),
    "The test": (*declare_options(options.SelectionOptions, "unit"), *TEST),
    "Many comparisons": ADJUST,
    "Where to run": (*RUN, *CACHE),
    "Output": OUTPUT,
}  # fmt: skip

COMPARE_EXAMPLES = (
    "sigdask compare scores.csv",
    "sigdask compare new.txt old.txt --gold reference.txt -m BLEU -m chrF -o results.json -o table.tex",
    "sigdask compare a.csv b.csv c.csv --gold gold.csv -m macro-f1 --baseline a --adjust holm",
    "sigdask show results.json -o page.html --digits 1",
)


@grouped_command(
    COMPARE_GROUPS,
    "metrics gold unit outputs baseline by format_ columns missing adjust seed cluster",
    COMPARE_EXAMPLES,
)
@click.argument("systems", nargs=-1, required=True, metavar="[NAME=]SYSTEM...")
@run_by("sigdask.cli.compare:compare")
def compare(**options: Any) -> None:
    """Compare systems on one test set.

    SYSTEM is a file of one system's outputs or scores, or a table with one column per system. Several files under one
    NAME are replicates of a system (optimizer runs, seeds). Its score is the mean over its replicates. `sigdask show`
    makes tables, pages and figures of the results.
    """


META_GROUPS = {
    "Files": (
        click.option("--human", metavar="NAME", help="Human scores: a column of TABLE, or NAME in a folder's file "
            "PAIR.NAME.seg.score.  [default: the column human, or the only human scores]"),
        click.option("--language-pair", metavar="PAIR", help="Read only this language pair of a folder.  "
            "[default: the average over all]"),
        click.option("--metric", "-m", "scores", multiple=True, metavar="NAME", help="Metric to compare. May be "
            "repeated.  [default: all]"),
        click.option("--lower", multiple=True, metavar="COLUMN", help="Column in which lower scores are better; none "
            "means no column. May be repeated.  [default: recognised by their names, such as TER]"),
        click.option("--format", "format_", default="meta", show_default=True, help="Format of the tables, with "
            "its options after the name: meta:sheet=NAME,decimal=,"),
        *declare_options(options.ReadingOptions, "columns", "ignore"),
    ),
    "Agreement": declare_options(options.AgreementOptions),
    "What to compare": (*declare_options(options.ChoiceOptions, "pairs", "baseline", "by"), NAME),
    "The test": TEST,
    "Many comparisons": ADJUST,
    "Where to run": (*RUN, *CACHE),
    "Output": OUTPUT,
}  # fmt: skip

META_EXAMPLES = (
    "sigdask meta scores.csv --statistic kendall --group item",
    "sigdask meta wmt22 --human mqm --statistic spa",
    "sigdask meta wmt22/ --human mqm --language-pair en-de --level system --alternative greater",
    "sigdask meta scores.csv --statistic acc-eq --group item --permute segments",
)


@grouped_command(
    META_GROUPS, "scores human statistic outputs level group permute language_pair baseline by adjust seed",
    META_EXAMPLES,
)  # fmt: skip
@click.argument("systems", nargs=-1, required=True, metavar="[NAME=]TABLE|FOLDER...")
@run_by("sigdask.cli.meta:meta")
def meta(**options: Any) -> None:
    """Compare evaluation metrics by their agreement with human judgements.

    TABLE has one row per system and segment: columns system, segment, human, and a column for each metric. FOLDER is a
    test set of mt-metrics-eval (WMT metrics tasks). Agreement is averaged over tables, folders and language pairs.
    """


POWER_GROUPS = {
    "Question": declare_options(options.PowerQuestionOptions),
    "Files": FILES,
    "What to compare": (*declare_options(options.PowerOptions, "metrics", "pairs", "baseline"), NAME),
    "The test": declare_options(options.PowerTestOptions),
    "Where to run": (*RUN, *CACHE),
    "Output": (*TABLE_OUTPUT, declare_all("pair"), QUIET),
}

POWER_EXAMPLES = (
    "sigdask power scores.csv --difference 0.01",
    "sigdask power new.txt old.txt --gold reference.txt -m BLEU --units 2000 --power 0.9",
    "sigdask power runs.csv --baseline base --difference 0.02 --adjust holm --json power.json",
)


@grouped_command(
    POWER_GROUPS, "metrics gold unit outputs difference units power baseline format_ columns adjust samples",
    POWER_EXAMPLES,
)  # fmt: skip
@click.argument("systems", nargs=-1, required=True, metavar="[NAME=]SYSTEM...")
@run_by("sigdask.cli.power:power")
def power(**options: Any) -> None:
    """Find how many units a test needs to detect a difference, or which difference the test set can detect.

    SYSTEM is as in `compare`. Power is simulated: samples are drawn from the observed pairs of units, reweighted so
    that the systems differ by D, and the test is applied to each sample. For scores of 0 and 1, such as accuracy,
    power is computed exactly.
    """


MORE_ON_GROUPS = {"group_file": "Permute within its groups with --within COLUMN."}

INDEPENDENCE_GROUPS = {
    "Files": (
        click.option("--gold", metavar="FILE", help="Labelling that every FILE is compared with, instead of "
            "the last FILE."),
        click.option("--format", "format_", default="labels", show_default=True,
                     help="Format of the files; see `sigdask list formats`."),
        *declare_options(options.ReadingOptions, *options.LABEL_READING, more=MORE_ON_GROUPS),
    ),
    "The test": (
        click.option("-m", "--metric", "metrics", multiple=True, metavar="M", default=("accuracy",), show_default=True,
                     help="A score of labels: accuracy, kappa, mcc, precision[LABEL], macro-f1. May be repeated."),
        click.option("--within", metavar="COLUMN", help="Permute labels only within each value of this column."),
        *declare_options(options.LabelTestOptions),
        NAME,
    ),
    "Where to run": RUN,
    "Output": (*TABLE_OUTPUT, QUIET),
}  # fmt: skip

INDEPENDENCE_EXAMPLES = (
    "sigdask independence expert.txt contents.txt",
    "sigdask independence annotator1.csv annotator2.csv -m kappa -m 'f1[spam]' --alternative two-sided",
    "sigdask independence model.csv --gold gold.csv -m macro-f1 --within document",
)


@grouped_command(
    INDEPENDENCE_GROUPS, "metrics gold within outputs alternative method columns align adjust trials seed",
    INDEPENDENCE_EXAMPLES,
)  # fmt: skip
@click.argument("files", nargs=-1, required=True, metavar="[NAME=]FILE...")
@run_by("sigdask.cli.independence:independence")
def independence(**options: Any) -> None:
    """Test whether one labelling of items is independent of another.

    The labels of the last FILE are permuted over the items, and each other FILE is scored against them. The last FILE
    takes the place of the gold standard in precision and recall. A single FILE is a table with a column gold.
    """


RANKINGS_GROUPS = {
    "File": declare_options(options.CandidateFileOptions),
    "What to compare": (
        *declare_options(options.RankingChoiceOptions),
        click.option("--name", default="", metavar="NAME", help="Name of the list. It also determines the "
            "random stream."),
    ),
    "The tests": declare_options(options.RankingTestOptions),
    "Samples": (
        click.option("--validate", is_flag=True, help="Treat the files as repeated samples, and test whether "
            "precision varies among them as the binomial model predicts."),
        click.option("--cutoff", "cutoffs", multiple=True, metavar="MEASURE=SCORE",
                     help="For --validate, accept candidates with at least this score instead of the --n "
                         "best. May be repeated."),
    ),
    "Where to run": RUN,
    "Output": (
        declare_output("json", "csv", "markdown", "latex", "text"), JSON, declare_all("n and every difference"), QUIET,
    ),
}  # fmt: skip

RANKINGS_EXAMPLES = (
    "sigdask rankings candidates.tsv --n 50,100,200",
    "sigdask rankings pairs.ds.gz --columns gold=b.TP --baseline am.log.likelihood --n 50:2000:50 -o curve.json",
    "sigdask rankings part*.tsv --cutoff G2=32.5 --validate",
)


@grouped_command(
    RANKINGS_GROUPS, "n columns measures outputs baseline pairs positive smaller seed",
    RANKINGS_EXAMPLES,
)  # fmt: skip
@click.argument("files", nargs=-1, required=True, metavar="CANDIDATES...")
@run_by("sigdask.cli.rankings:rankings")
def rankings(**options: Any) -> None:
    """Evaluate rankings of candidates: precision of the n best, and which measure is better.

    CANDIDATES is a table with one row per candidate: a column gold (is it true?) and a column of scores for each
    measure. It can also be a data set of UCS (.ds).
    """
