"""Declared commands of analyses: compare, power, independence, candidate rankings, reproduction and citation."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

import click

from sigdask.cli.declared.options import (
    FIGURE_OPTIONS,
    QUIET,
    TABLE_AND_LAYOUT_OPTIONS,
    TABLE_OPTIONS,
    VERBOSE,
    declare_all,
    declare_file,
    declare_options,
    grouped_command,
    run_by,
)
from sigdask.options import (
    LABEL_READING,
    CandidateFileOptions,
    ChoiceOptions,
    FamilyOptions,
    LabelTestOptions,
    PowerOptions,
    PowerQuestionOptions,
    PowerTestOptions,
    RankingChoiceOptions,
    RankingSampleOptions,
    RankingTestOptions,
    ReadingOptions,
    RunOptions,
    SelectionOptions,
    TestOptions,
)

FORMAT_BY_ENDING = {
    ".json": "json", ".csv": "csv", ".parquet": "parquet", ".md": "markdown", ".tex": "latex", ".bib": "bibtex",
    ".html": "html", ".htm": "html", ".txt": "txt",
}  # fmt: skip
"""Of a file to what it holds."""


def _print_schema(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        resolve_name("sigdask.cli.compare:print_schema")()
        context.exit()


FILES = (
    click.option("--gold", "--qrels", "--ref", "gold", metavar="FILE", help="File of what is right."),
    click.option("--format", "format_", default="auto", show_default=True, help="See `sigdask formats`."),
    *declare_options(ReadingOptions),
)
"""The files of a test set."""

RUN = declare_options(RunOptions)
CACHE = declare_options(SelectionOptions, "cache")

COMPARE_GROUPS = {
    "Files": FILES,
    "What to compare": (
        *declare_options(ChoiceOptions),
        click.option(
            "--name", default="", metavar="TESTSET", help="The test set's name; part of the address of its shuffles."
        ),
    ),
    "The test": (*declare_options(SelectionOptions, "unit"), *declare_options(TestOptions)),
    "Many comparisons": (*declare_options(FamilyOptions), *declare_options(SelectionOptions, "together")),
    "Where to run": (
        *RUN,
        *CACHE,
        click.option("--performance-report", metavar="FILE.html", help="Write dask's report of the run."),
    ),
    "Output": (
        click.option("-o", "--output", "outputs", multiple=True, metavar="FILE",
                     help=f"Write the results as its ending says: {', '.join(FORMAT_BY_ENDING)}. May be repeated."),
        declare_file("json", "Write the results as JSON."),
        declare_file("csv", "Write the results as a CSV table."),
        declare_file("parquet", "Write the results as Parquet: sigdask[parquet]."),
        *TABLE_AND_LAYOUT_OPTIONS,
        declare_file("bibtex", "Write the sources that --latex cites."),
        declare_file("html", "Write the results as a page that needs nothing else.", "FILE"),
        *FIGURE_OPTIONS,
        VERBOSE,
        declare_all("comparison"),
        click.option("--schema", is_flag=True, is_eager=True, expose_value=False, callback=_print_schema,
                     help="Print the JSON schema of what --json writes, and leave."),
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

    SYSTEM is a file of one system's outputs or scores, or a table with one column a system. Several
    files under one NAME are its replicates (optimizer runs, seeds): its score is the mean of theirs.
    """


POWER_GROUPS = {
    "What is asked": declare_options(PowerQuestionOptions),
    "Files": FILES,
    "What to compare": (
        *declare_options(PowerOptions, "metrics", "pairs", "baseline"),
        click.option("--name", default="", metavar="TESTSET", help="The test set's name; part of its address."),
    ),
    "The test": declare_options(PowerTestOptions),
    "Where to run": (*RUN, *CACHE),
    "Output": (declare_file("json", "Write what is found as JSON."), *TABLE_OPTIONS, declare_all("pair"), QUIET),
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
    """Tell how many units a difference needs, and which difference the present test set can detect.

    SYSTEM is as in `compare`. Samples are drawn from the observed pairs of units, tilted so that the systems differ
    by D, and each is judged by the test itself.
    """


INDEPENDENCE_GROUPS = {
    "Files": (
        click.option("--gold", metavar="FILE", help="What every FILE is held against, instead of the last."),
        click.option("--format", "format_", default="labels", show_default=True, help="See `sigdask formats`."),
        *declare_options(
            ReadingOptions, *LABEL_READING, more={"group_file": "Permute within its groups by --within."}
        ),
    ),
    "The test": (
        click.option("-m", "--metric", "metrics", multiple=True, metavar="M", default=("accuracy",), show_default=True,
                     help="A score of labels: accuracy, kappa, mcc, precision[LABEL], macro-f1. May be repeated."),
        click.option("--within", metavar="COLUMN", help="Permute labels within each value of a column alone."),
        *declare_options(LabelTestOptions),
        click.option("--name", default="", metavar="TESTSET", help="The test set's name, of its stream's address."),
    ),
    "Where to run": RUN,
    "Output": (declare_file("json", "Write the results as JSON."), *TABLE_OPTIONS, QUIET),
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

    The labels of the last FILE are permuted over the items, and each other FILE is scored against them: by precision
    as the one that gives labels, by recall against those of the last. A single FILE is a table with a column gold.
    """


RANKINGS_GROUPS = {
    "Files": declare_options(CandidateFileOptions),
    "What to compare": (
        *declare_options(RankingChoiceOptions),
        click.option("--name", default="", metavar="NAME", help="Of the list; part of the address of what is drawn."),
    ),
    "The tests": declare_options(RankingTestOptions),
    "Samples": (
        *declare_options(RankingSampleOptions),
        click.option("--validate", is_flag=True, help="Files are repeated samples: do precisions vary as modelled?"),
        click.option("--cutoff", "cutoffs", multiple=True, metavar="MEASURE=SCORE",
                     help="Accept candidates from this score on, for --validate; else its --n best. May be repeated."),
    ),
    "Where to run": RUN,
    "Output": (
        declare_file("json", "Write all that was found as JSON."),
        declare_file("csv", "Write precision and recall as a CSV table."),
        *TABLE_OPTIONS,
        declare_file("text", "Write what a pipe would get.", "FILE"),
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

    CANDIDATES is a table of a row a candidate: a column gold (is it true?), a column of scores for each measure; or a
    data set of UCS (.ds), or XML of mwetoolkit.
    """


REPRODUCE_GROUPS = {
    "Results": (
        click.option("--expect", metavar="P", help="The p that was printed; it is held against what is found."),
        click.option("--name", metavar="TESTSET", help="Of a file of results: the test set that the files are."),
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
    """Find results again, and say whether they are the same.

    RESULTS is a file that `compare`, `run` or `report` wrote (--json, --csv); SIGNATURE is the test's, of one result.
    The files are read as `compare` reads them. Metrics, units, seeds and all else are those of the signatures, and so
    must the data be: their digests are looked at first. Exit status 0: reproduced; 1: not.
    """


@click.command()
@click.argument("what", required=False, metavar="[RESULTS|PLAN|STORE|SIGNATURE]")
@click.option("--bibtex", "only", flag_value="bibtex", help="Print the entries of BibTeX alone.")
@click.option("--text", "only", flag_value="text", help="Print the paragraph alone.")
@click.option("--latex", "in_latex", is_flag=True, help="Write the paragraph as LaTeX, with \\citep of natbib.")
@run_by("sigdask.cli.cite:cite")
def cite(**options: Any) -> None:
    r"""Print the methods of what was run, for a paper, and BibTeX of the works that they rest on.

    Of a file of results (--json, --csv), a plan or its store, or a signature; without any, how sigdask and its test are
    cited.
    """
