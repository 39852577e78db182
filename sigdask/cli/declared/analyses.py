"""Declared commands of analyses: compare, power, independence, candidate rankings, reproduction and citation."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

import click

from sigdask import options
from sigdask.cli.declared.options import (
    CSV_OPTIONS,
    FIGURE_OPTIONS,
    FORMAT,
    FORMAT_BY_ENDING,
    GOLD,
    JSON_OPTIONS,
    QUIET,
    TABLE_AND_LAYOUT_OPTIONS,
    TABLE_OPTIONS,
    VERBOSE,
    declare_all,
    declare_file,
    declare_options,
    declare_output,
    grouped_command,
    run_by,
)


def _print_schema(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        resolve_name("sigdask.cli.compare:print_schema")()
        context.exit()


FILES = (GOLD, FORMAT, *declare_options(options.ReadingOptions))
"""The files of a test set."""

NAME = click.option(
    "--name", default="", metavar="TESTSET", help="Test-set name. Like the seed, it determines the random trials."
)
RUN = declare_options(options.RunOptions)
CACHE = declare_options(options.SelectionOptions, "cache")
TOGETHER = declare_options(options.SelectionOptions, "together")

COMPARE_GROUPS = {
    "Files": FILES,
    "What to compare": (*declare_options(options.ChoiceOptions), NAME),
    "The test": (*declare_options(options.SelectionOptions, "unit"), *declare_options(options.TestOptions)),
    "Many comparisons": (*declare_options(options.FamilyOptions), *TOGETHER),
    "Where to run": (
        *RUN,
        *CACHE,
        click.option("--performance-report", metavar="FILE.html", help="Write dask's performance report of the run."),
    ),
    "Output": (
        declare_output(*FORMAT_BY_ENDING.values()),
        declare_file("json", "Write the results as JSON."),
        *JSON_OPTIONS,
        declare_file("csv", "Write the results as a CSV table."),
        *CSV_OPTIONS,
        declare_file("parquet", "Write the results as Parquet. Needs sigdask[parquet]."),
        declare_file(
            "items", "Write the scores of each unit and its contribution to the difference, in the format of FILE's "
            "ending: .csv, .jsonl, .parquet. CSV and JSON lines may also end in .gz.", "FILE"
        ),
        *TABLE_AND_LAYOUT_OPTIONS,
        declare_file("bibtex", "Write the BibTeX entries that --latex cites."),
        declare_file("html", "Write the results as a self-contained HTML page.", "FILE"),
        *declare_options(options.PageOptions),
        *FIGURE_OPTIONS,
        VERBOSE,
        declare_all("comparison"),
        click.option("--schema", is_flag=True, is_eager=True, expose_value=False, callback=_print_schema,
                     help="Print the JSON schema of the output of --json, and exit."),
        QUIET,
    ),
}  # fmt: skip

COMPARE_EXAMPLES = (
    "sigdask compare scores.csv",
    "sigdask compare a.txt b.txt c.txt --ref reference.txt -m BLEU -m chrF --digits 1 -o table.tex",
    "sigdask compare new.txt old.txt --ref reference.txt -m BLEU -m chrF -o results.json",
    "sigdask compare a.csv b.csv c.csv --gold gold.csv -m macro-f1 --baseline a --adjust holm",
)


@grouped_command(COMPARE_GROUPS, COMPARE_EXAMPLES)
@click.argument("systems", nargs=-1, required=True, metavar="[NAME=]SYSTEM...")
@run_by("sigdask.cli.compare:compare")
def compare(**options: Any) -> None:
    """Compare systems on one test set.

    SYSTEM is a file of one system's outputs or scores, or a table with one column per system. Several files under one
    NAME are replicates of a system (optimizer runs, seeds). Its score is the mean over its replicates.
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
        *declare_options(options.ReadingOptions, "id_column", "system_column", "ignore", "decimal", "sheet",
                         "most_unpacked"),
    ),
    "Agreement": declare_options(options.AgreementOptions),
    "What to compare": (*declare_options(options.ChoiceOptions, "pairs", "baseline", "by"), NAME),
    "The test": declare_options(options.TestOptions),
    "Many comparisons": declare_options(options.FamilyOptions),
    "Where to run": COMPARE_GROUPS["Where to run"],
    "Output": COMPARE_GROUPS["Output"],
}  # fmt: skip

META_EXAMPLES = (
    "sigdask meta scores.csv --statistic kendall --group item",
    "sigdask meta wmt22 --human mqm --statistic spa",
    "sigdask meta wmt22/ --human mqm --language-pair en-de --level system --alternative greater",
    "sigdask meta scores.csv --statistic acc-eq --group item --permute segments",
)


@grouped_command(META_GROUPS, META_EXAMPLES)
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
    "Output": (
        declare_output("json", "markdown", "latex"),
        declare_file("json", "Write the results as JSON."),
        *TABLE_OPTIONS,
        declare_all("pair"),
        QUIET,
    ),
}  # fmt: skip

POWER_EXAMPLES = (
    "sigdask power scores.csv --difference 0.01",
    "sigdask power new.txt old.txt --ref reference.txt -m BLEU --units 2000 --power 0.9",
    "sigdask power runs.csv --baseline base --difference 0.02 --adjust holm --json power.json",
)


@grouped_command(POWER_GROUPS, POWER_EXAMPLES)
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
                     help="Format of the files; see `sigdask formats`."),
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
    "Output": (
        declare_output("json", "markdown", "latex"),
        declare_file("json", "Write the results as JSON."),
        *TABLE_OPTIONS,
        QUIET,
    ),
}  # fmt: skip

INDEPENDENCE_EXAMPLES = (
    "sigdask independence expert.txt contents.txt",
    "sigdask independence annotator1.csv annotator2.csv -m kappa -m 'f1[spam]' --alternative two-sided",
    "sigdask independence model.csv --gold gold.csv -m macro-f1 --within document",
)


@grouped_command(INDEPENDENCE_GROUPS, INDEPENDENCE_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="[NAME=]FILE...")
@run_by("sigdask.cli.independence:independence")
def independence(**options: Any) -> None:
    """Test whether one labelling of items is independent of another.

    The labels of the last FILE are permuted over the items, and each other FILE is scored against them. The last FILE
    takes the place of the gold standard in precision and recall. A single FILE is a table with a column gold.
    """


RANKINGS_GROUPS = {
    "Files": declare_options(options.CandidateFileOptions),
    "What to compare": (
        *declare_options(options.RankingChoiceOptions),
        click.option("--name", default="", metavar="NAME", help="Name of the list. It also determines the "
            "random stream."),
    ),
    "The tests": declare_options(options.RankingTestOptions),
    "Samples": (
        *declare_options(options.RankingSampleOptions),
        click.option("--validate", is_flag=True, help="Treat the files as repeated samples, and test whether "
            "precision varies among them as the binomial model predicts."),
        click.option("--cutoff", "cutoffs", multiple=True, metavar="MEASURE=SCORE",
                     help="For --validate, accept candidates with at least this score instead of the --n "
                         "best. May be repeated."),
    ),
    "Where to run": RUN,
    "Output": (
        declare_output("json", "csv", "markdown", "latex", "text"),
        declare_file("json", "Write all results as JSON."),
        declare_file("csv", "Write precision and recall as a CSV table."),
        *CSV_OPTIONS,
        *TABLE_OPTIONS,
        declare_file("text", "Write the plain-text report.", "FILE"),
        *FIGURE_OPTIONS,
        declare_all("n and every difference"),
        QUIET,
    ),
}  # fmt: skip

RANKINGS_EXAMPLES = (
    "sigdask rankings candidates.tsv --n 50,100,200",
    "sigdask rankings pairs.ds.gz --gold-column b.TP --baseline am.log.likelihood --n 50:2000:50 --json curve.json",
    "sigdask rankings candidates.tsv --samples 500 --sample-size 300",
    "sigdask rankings part*.tsv --cutoff G2=32.5 --validate",
)


@grouped_command(RANKINGS_GROUPS, RANKINGS_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="CANDIDATES...")
@run_by("sigdask.cli.rankings:rankings")
def rankings(**options: Any) -> None:
    """Evaluate rankings of candidates: precision of the n best, and which measure is better.

    CANDIDATES is a table with one row per candidate: a column gold (is it true?) and a column of scores for each
    measure. It can also be a data set of UCS (.ds) or XML of mwetoolkit.
    """


REPRODUCE_GROUPS = {
    "Results": (
        click.option("--expect", metavar="P", help="The published p, which is compared with the reproduced one."),
        click.option("--name", metavar="TESTSET", help="Test set of the results file to which the files belong."),
    ),
    "Files": FILES,
    "Where to run": (*RUN, *CACHE),
    "Output": (QUIET,),
}  # fmt: skip

REPRODUCE_EXAMPLES = (
    "sigdask reproduce results.json new.txt old.txt --ref reference.txt",
    "sigdask reproduce 'test:ar|metric:f1|…|v:0.3.0' scores.csv --expect 0.0296",
)


@grouped_command(REPRODUCE_GROUPS, REPRODUCE_EXAMPLES)
@click.argument("what", metavar="SIGNATURE|RESULTS")
@click.argument("systems", nargs=-1, required=True, metavar="[NAME=]SYSTEM...")
@run_by("sigdask.cli.reproduce:reproduce")
def reproduce(**options: Any) -> None:
    """Repeat tests from their results or signature, and check that the results are the same.

    RESULTS is a file that `compare`, `meta`, `run` or `report` wrote (--json, --csv, --parquet). SIGNATURE is the test
    signature of one result. The files are read as in `compare`. Metrics, units, seeds and other settings are taken from
    the signatures.
    The digests of the data are compared first. Exit status 0: reproduced; 1: not reproduced.
    """


@click.command(context_settings={"allow_extra_args": True})  # `cite` says what to do with them
@click.argument("what", required=False, metavar="[RESULTS|PLAN|STORE|SIGNATURE]")
@click.option("--bibtex", "only", flag_value="bibtex", help="Print only the BibTeX entries.")
@click.option("--text", "only", flag_value="text", help="Print only the paragraph.")
@click.option("--latex", "in_latex", is_flag=True, help="Print only the paragraph, as LaTeX with \\citep of natbib.")
@declare_output("latex", "bibtex", "text")
@run_by("sigdask.cli.cite:cite")
def cite(**options: Any) -> None:
    r"""Print a methods paragraph for a paper, and BibTeX entries of the works that it cites.

    The paragraph describes a file of results (--json, --csv, --parquet), a plan or its store, or a signature. Without
    an argument, it says how to cite sigdask and its test.
    """
