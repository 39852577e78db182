"""Declared commands on stored results: show, reproduce and cite."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

import click

from sigdask import options
from sigdask.cli.declared.compare import CACHE, FILES, RUN
from sigdask.cli.declared.options import (
    QUIET,
    VERBOSE,
    declare_all,
    declare_options,
    declare_output,
    grouped_command,
    run_by,
)


def _print_schema(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        resolve_name("sigdask.cli.show:print_schema")()
        context.exit()


FIGURE_FORMATS = "svg,pdf"
"""Default formats of figures."""

SHOW_GROUPS = {
    "Output": (
        declare_output("csv", "parquet", "markdown", "latex", "bibtex", "html", "text"),
        *declare_options(options.RankingMarkOptions),
        VERBOSE,
        declare_all("comparison"),
        click.option("--schema", is_flag=True, is_eager=True, expose_value=False, callback=_print_schema,
                     help="Print the JSON schema of results, and exit."),
        QUIET,
    ),
    "Tables": declare_options(options.TableLayoutOptions),
    "Figures": (
        click.option("--figures", metavar="DIR", help="Draw all figures that fit the results into this folder. "
            "Needs sigdask[report]."),
        click.option("--figure-format", default=FIGURE_FORMATS, show_default=True, metavar="FORMAT,...",
            help="Formats of figures: svg, pdf, png."),
        *declare_options(options.FigureStyleOptions),
    ),
}  # fmt: skip

SHOW_EXAMPLES = (
    "sigdask show results.json",
    "sigdask show results.json -o table.tex -o table.md --digits 1",
    "sigdask show results.json -o page.html",
    "sigdask show results.json --figures figures --figure-format png",
)


@grouped_command(
    SHOW_GROUPS, "outputs layout digits percent grouping figures figure_kinds everything verbose quiet", SHOW_EXAMPLES
)
@click.argument("file", metavar="RESULTS.json")
@run_by("sigdask.cli.show:show")
def show(**options: Any) -> None:
    """Show stored results: print them, or write tables, pages and figures.

    RESULTS.json is a file that a command wrote with -o or --json. Without -o and --figures, `show` prints what the
    command printed.
    """


REPRODUCE_GROUPS = {
    "Results": (
        click.option("--name", metavar="TESTSET", help="Test set of the results file to which the files belong."),
    ),
    "Files": FILES,
    "Where to run": (*RUN, *CACHE),
    "Output": (QUIET,),
}  # fmt: skip

REPRODUCE_EXAMPLES = (
    "sigdask reproduce results.json new.txt old.txt --gold reference.txt",
    "sigdask reproduce 'test:ar|metric:f1|…|v:0.4.0' scores.csv",
)


@grouped_command(REPRODUCE_GROUPS, "gold name format_ columns missing documents group_file cluster", REPRODUCE_EXAMPLES)
@click.argument("what", metavar="SIGNATURE|RESULTS")
@click.argument("systems", nargs=-1, required=True, metavar="[NAME=]SYSTEM...")
@run_by("sigdask.cli.reproduce:reproduce")
def reproduce(**options: Any) -> None:
    """Repeat tests from their results or signature, and check that the results are the same.

    RESULTS is the JSON that `compare`, `meta`, `run` or `report` wrote. SIGNATURE is the test signature of one result.
    The files are read as in `compare`. All options of the test are taken from the results or the signature.
    The digests of the data are compared first. Exit status 0: reproduced; 1: not reproduced.
    """


@click.command()
@click.argument("what", required=False, metavar="[RESULTS|PLAN|STORE]")
@click.option("--bibtex", "only", flag_value="bibtex", help="Print only the BibTeX entries.")
@click.option("--text", "only", flag_value="text", help="Print only the paragraph.")
@click.option("--latex", "only", flag_value="latex", help="Print only the paragraph, as LaTeX with \\citep of natbib.")
@run_by("sigdask.cli.cite:cite")
def cite(**options: Any) -> None:
    r"""Print a methods paragraph for a paper, and BibTeX entries of the works that it cites.

    The paragraph describes a file of results (.json), a plan or its store. Without an argument, it says
    how to cite sigdask and its test.
    """
