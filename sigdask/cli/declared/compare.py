"""`sigdask compare`: its options, groups and help."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

import click

from sigdask.cli.declared.options import (
    FIGURE_OPTIONS,
    TABLE_AND_LAYOUT_OPTIONS,
    grouped_command,
    option,
    parse_integer,
    run_by,
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


GROUPS = {
    "Files": (
        click.option("--gold", "--qrels", "--ref", "gold", metavar="FILE", help="File of what is right."),
        click.option("--format", "format_", default="auto", show_default=True, help="See `sigdask formats`."),
        option("--id", "id_column", metavar="COLUMN"),
        option("--gold-column", metavar="COLUMN"),
        option("--prediction-column", metavar="COLUMN"),
        option("--system-column", metavar="COLUMN"),
        option("--score-column", metavar="COLUMN"),
        option("--map", "label_map", multiple=True, metavar="TO=FROM,FROM", more="May be repeated."),
        option("--ignore", multiple=True, metavar="COLUMN", more="May be repeated."),
        option("--align"),
        option("--decimal", metavar=".|,"),
        option("--missing"),
        option("--min-items", type=parse_integer, metavar="N"),
        option("--reference", "references", multiple=True, metavar="FILE", more="May be repeated."),
        option("--documents", metavar="FILE", more="Exchange them by --unit document."),
        option("--groups", "group_file", metavar="FILE", more="Exchange them by --unit COLUMN, or group without name."),
        option("--most-unpacked", type=parse_integer, metavar="BYTES"),
    ),
    "What to compare": (
        option("-m", "metrics", long="--metric", multiple=True, metavar="M", more="May be repeated."),
        option("--pair", "pairs", nargs=2, multiple=True, metavar="A B", more="May be repeated."),
        option("--baseline", metavar="NAME"),
        option("--by", metavar="COLUMN"),
        click.option(
            "--name", default="", metavar="TESTSET", help="The test set's name; part of the address of its shuffles."
        ),
    ),
    "The test": (
        option("--unit", multiple=True, metavar="COLUMN"),
        option("--alternative"),
        option("--method"),
        option("--exact-limit", type=float, metavar="SECONDS"),
        option("--trials", type=parse_integer, metavar="N"),
        option("--seed", type=int),
        option("--alpha", type=float),
        option("--stop", metavar="RULE"),
        option("--tests", metavar="NAME,...|all"),
        option("--interval"),
        option("--confidence", type=float),
        option("--resamples", type=parse_integer, metavar="N"),
        click.option("--no-second-run", is_flag=True, help="Leave out the cross-check by a second run."),
    ),
    "Many comparisons": (
        option("--adjust"),
        option("--together", is_flag=True),
    ),
    "Where to run": (
        option("--cluster"),
        option("--workers", type=click.IntRange(min=1), metavar="N"),
        click.option("--no-cache", is_flag=True, help="Neither look up nor keep what is extracted from outputs."),
        click.option("--performance-report", metavar="FILE.html", help="Write dask's report of the run."),
    ),
    "Output": (
        click.option("-o", "--output", "outputs", multiple=True, metavar="FILE",
                     help=f"Write the results as its ending says: {', '.join(FORMAT_BY_ENDING)}. May be repeated."),
        click.option("--json", "json_file", metavar="FILE|-", help="Write the results as JSON."),
        click.option("--csv", "csv_file", metavar="FILE|-", help="Write the results as a CSV table."),
        click.option(
            "--parquet", "parquet_file", metavar="FILE|-", help="Write the results as Parquet: sigdask[parquet]."
        ),
        *TABLE_AND_LAYOUT_OPTIONS,
        click.option("--bibtex", "bibtex_file", metavar="FILE|-", help="Write the sources that --latex cites."),
        click.option(
            "--html", "html_file", metavar="FILE", help="Write the results as a page that needs nothing else."
        ),
        *FIGURE_OPTIONS,
        click.option("-v", "--verbose", is_flag=True, help="Show what each p stands on: runs, checks, dependence."),
        click.option("--all", "everything", is_flag=True, help="Show every comparison."),
        click.option("--schema", is_flag=True, is_eager=True, expose_value=False, callback=_print_schema,
                     help="Print the JSON schema of what --json writes, and leave."),
        click.option("-q", "--quiet", is_flag=True, help="Say nothing beside results, warnings and errors."),
    ),
}  # fmt: skip

EXAMPLES = (
    "sigdask compare scores.csv",
    "sigdask compare a.txt b.txt c.txt --ref reference.txt -m BLEU -m chrF --digits 1 -o table.tex",
    "sigdask compare new.txt old.txt --ref reference.txt -m BLEU -m chrF -o results.json",
    "sigdask compare a.csv b.csv c.csv --gold gold.csv -m macro-f1 --baseline a --adjust holm",
)


@grouped_command(GROUPS, EXAMPLES)
@click.argument("systems", nargs=-1, required=True, metavar="[NAME=]SYSTEM...")
@run_by("sigdask.cli.compare:compare")
def compare(**options: Any) -> None:
    """Compare systems on one test set.

    SYSTEM is a file of one system's outputs or scores, or a table with one column a system. Several
    files under one NAME are its replicates (optimizer runs, seeds): its score is the mean of theirs.
    """
