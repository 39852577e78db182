"""`sigdask cite`: its options and help."""

from __future__ import annotations

from typing import Any

import click

from sigdask.cli.declared.options import run_by


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
