"""`sigdask cite`: a methods paragraph and its sources, for a paper."""

from __future__ import annotations

import click

from sigdask.cli import declare
from sigdask.cli.streams import print_text
from sigdask.errors import InputError
from sigdask.report import methods
from sigdask.report.analyses import load_results
from sigdask.report.methods import Methods
from sigdask.report.presentable import Results


@declare.command(
    click.argument("what", required=False, metavar="[RESULTS.json]"),
    declare.option("--bibtex", "Print only the BibTeX entries.", dest="only", flag_value="bibtex"),
    declare.option("--text", "Print only the paragraph.", dest="only", flag_value="text"),
    declare.option(
        "--latex", "Print only the paragraph, as LaTeX with \\citep of natbib.", dest="only", flag_value="latex"
    ),
)
def command(what: str | None, only: str | None) -> None:
    r"""Print a methods paragraph for a paper, and BibTeX entries of the works that it cites.

    The paragraph describes results that `compare`, `meta` or a plan wrote. Without an argument, it says how to cite
    sigdask and its test.
    """
    methods_text = methods.describe_program() if what is None else _describe(what)
    for k, name in enumerate([only] if only else ["text", "bibtex"]):
        print_text("\n" * (k > 0) + getattr(methods_text, name), hang=0)


def _describe(file: str) -> Methods:
    """Return the methods paragraph of results."""
    loaded = load_results(file)
    if not isinstance(loaded, Results):
        raise InputError(f"{file}: cite describes results of compare, meta and plans")
    return methods.describe_results(loaded)
