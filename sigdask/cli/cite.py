"""`sigdask cite`: a methods paragraph and its sources, for a paper."""

from __future__ import annotations

from pathlib import Path

import click

from sigdask.cli import declare
from sigdask.cli.streams import print_text
from sigdask.errors import InputError
from sigdask.formats.reading.json_records import is_json
from sigdask.io import is_present
from sigdask.report import methods
from sigdask.report.analyses import load_results
from sigdask.report.methods import Methods
from sigdask.report.presentable import Results
from sigdask.results.table import Table
from sigdask.text import make_printable


@declare.command(
    click.argument("what", required=False, metavar="[RESULTS|PLAN|STORE]"),
    declare.option("--bibtex", "Print only the BibTeX entries.", dest="only", flag_value="bibtex"),
    declare.option("--text", "Print only the paragraph.", dest="only", flag_value="text"),
    declare.option(
        "--latex", "Print only the paragraph, as LaTeX with \\citep of natbib.", dest="only", flag_value="latex"
    ),
)
def command(what: str | None, only: str | None) -> None:
    r"""Print a methods paragraph for a paper, and BibTeX entries of the works that it cites.

    The paragraph describes a file of results (.json), a plan or its store. Without an argument, it says
    how to cite sigdask and its test.
    """
    methods_text = methods.describe_program() if what is None else _describe(what)
    for k, name in enumerate([only] if only else ["text", "bibtex"]):
        print_text("\n" * (k > 0) + make_printable(getattr(methods_text, name), keep="\n"), hang=0)


def _describe(what: str) -> Methods:
    """Return the methods paragraph of results, or of the latest results in a plan's store."""
    path = Path(what)
    if path.suffix.lower() not in {".json", ".csv", ".parquet"} and not (is_present(path.is_file) and is_json(path)):
        return methods.describe_results(_read_plan_results(what))
    loaded = load_results(path)
    if not isinstance(loaded, Results):
        raise InputError(f"{what}: cite describes results of compare, meta and plans")
    return methods.describe_results(loaded)


def _read_plan_results(where: str) -> Results:
    """Return the latest results of a plan on all its test sets together."""
    from sigdask.cli.status import find_store_and_plan, is_other_file  # loads SQLAlchemy and pydantic
    from sigdask.nightly.store import status

    if is_other_file(where):
        raise InputError(f"{where}: expected results that `sigdask compare` wrote (.json), a plan (.toml) or its store")
    location, plan = find_store_and_plan(where, None, None)
    report = status.build_report(location, plan)
    results = [*report.results.values()]
    if not results:
        raise InputError(f"{where}: holds no results")
    table = Table.join([test_set_results.table for test_set_results in results])
    family = next((test_set_results.family for test_set_results in results if test_set_results.family), None)
    return Results(table, results[0].seed, results[0].alpha, family=family)
