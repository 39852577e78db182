"""`sigdask rankings`: its options, groups and help."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from sigdask.cli.declared.options import FIGURE_OPTIONS, TABLE_OPTIONS, grouped_command, option, parse_integer, run_by
from sigdask.options import CANDIDATE_OPTIONS, RANKING_OPTIONS

ranking_option: Callable[..., Any] = partial(option, of=RANKING_OPTIONS)

table_option: Callable[..., Any] = partial(option, of=CANDIDATE_OPTIONS)

GROUPS = {
    "Files": (
        table_option("--gold-column", metavar="COLUMN"),
        table_option("--positive", multiple=True, metavar="LABEL", more="May be repeated."),
        table_option("--id", "ids", multiple=True, metavar="COLUMN", more="May be repeated."),
        table_option("--measure", "measures", multiple=True, metavar="COLUMN", more="May be repeated."),
        table_option("--smaller", multiple=True, metavar="MEASURE", more="May be repeated."),
        table_option("--ignore", multiple=True, metavar="COLUMN", more="May be repeated."),
        table_option("--partial", is_flag=True),
        table_option("--decimal", metavar=".|,"),
        table_option("--most-unpacked", type=parse_integer, metavar="BYTES"),
    ),
    "What to compare": (
        ranking_option("--n", metavar="N,N|START:STOP:STEP"),
        ranking_option("--pair", "pairs", nargs=2, multiple=True, metavar="A B", more="May be repeated."),
        ranking_option("--baseline", metavar="MEASURE"),
        click.option("--name", default="", metavar="NAME", help="Of the list; part of the address of what is drawn."),
    ),
    "The tests": (
        ranking_option("--ties"),
        ranking_option("--trials", type=parse_integer, metavar="N"),
        ranking_option("--seed", type=int),
        ranking_option("--alpha", type=float),
        ranking_option("--confidence", type=float),
    ),
    "Samples": (
        ranking_option("--samples", type=parse_integer, metavar="K"),
        ranking_option("--sample-size", type=parse_integer, metavar="N"),
        click.option("--validate", is_flag=True, help="Files are repeated samples: do precisions vary as modelled?"),
        click.option("--cutoff", "cutoffs", multiple=True, metavar="MEASURE=SCORE",
                     help="Accept candidates from this score on, for --validate; else its --n best. May be repeated."),
    ),
    "Where to run": (
        ranking_option("--cluster"),
        ranking_option("--workers", type=click.IntRange(min=1), metavar="N"),
    ),
    "Output": (
        click.option("--json", "json_file", metavar="FILE|-", help="Write all that was found as JSON."),
        click.option("--csv", "csv_file", metavar="FILE|-", help="Write precision and recall as a CSV table."),
        *TABLE_OPTIONS,
        click.option("--text", "text_file", metavar="FILE", help="Write what a pipe would get."),
        *FIGURE_OPTIONS,
        click.option("--all", "everything", is_flag=True, help="Show every n and every difference."),
        click.option("-q", "--quiet", is_flag=True, help="Say nothing beside results, warnings and errors."),
    ),
}  # fmt: skip

EXAMPLES = (
    "sigdask rankings candidates.tsv --n 50,100,200",
    "sigdask rankings pairs.ds.gz --gold-column b.TP --baseline am.log.likelihood --n 50:2000:50 --json curve.json",
    "sigdask rankings candidates.tsv --samples 500 --sample-size 300",
    "sigdask rankings part*.tsv --cutoff G2=32.5 --validate",
)


@grouped_command(GROUPS, EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="CANDIDATES...")
@run_by("sigdask.cli.rankings:rankings")
def rankings(**options: Any) -> None:
    """Evaluate rankings of candidates: precision of the n best, and which measure is better.

    CANDIDATES is a table of a row a candidate: a column gold (is it true?), a column of scores for each measure; or a
    data set of UCS (.ds), or XML of mwetoolkit.
    """
