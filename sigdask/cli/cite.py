"""`sigdask cite`: a methods paragraph and its sources, for a paper."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from sigdask.analysis.reproduce import reference as recorded
from sigdask.analysis.reproduce.reference import rows_of_json
from sigdask.cli.output.say import say
from sigdask.errors import InputError
from sigdask.report.methods import text as methods
from sigdask.report.methods.text import Facts
from sigdask.report.presentable import Results
from sigdask.results.record import Result
from sigdask.results.rows import table_from_results
from sigdask.results.signature import Signature, is_signature
from sigdask.results.table import Table
from sigdask.text import printable, value_from_json


def cite(what: str | None, only: str | None, *, in_latex: bool) -> None:
    """Print the methods paragraph and the BibTeX entries of some results."""
    found = methods.in_general() if what is None else methods.of(_facts(what))
    paragraph = found.latex if in_latex else found.text
    parts = {"text": paragraph, "bibtex": found.bibtex}
    for k, name in enumerate([only] if only else parts):
        say("\n" * (k > 0) + printable(parts[name], keep="\n"), hang=0)


def _facts(what: str) -> Any:
    """Return what results, a plan's or those of a file, or signatures say of how they were had."""
    if is_signature(what):
        return Facts.of_signatures([Signature.parse(what)])
    if Path(what).suffix == ".csv":
        return Facts.of_signatures([one.signature for one in recorded.read(Path(what))])
    if Path(what).suffix == ".json":
        return Facts.of(_results(Path(what)))
    return Facts.of(_of_plan(what))


def _results(path: Path) -> Results:
    """Return the results that a file of JSON holds."""
    whole = rows_of_json(path)
    alpha = float(whole.get("alpha", 0.05))
    try:
        rows = [value_from_json(Result, {**row, **{k: math.nan if row[k] is None else row[k] for k in NUMBERS}})
                for row in whole["results"]]  # fmt: skip
        return Results(table_from_results(rows, alpha), int(whole.get("seed", 0)), alpha)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: is not what `sigdask compare --json` writes ({type(error).__name__}: {error})"
        ) from None


NUMBERS = ("score_a", "score_b", "difference", "p_value")
"""Keys whose null is no number."""


def _of_plan(where: str) -> Results:
    """Return what a plan has found on all its test sets."""
    from sigdask.cli.status import store_and_plan  # loads SQLAlchemy and pydantic
    from sigdask.nightly.store import status

    found = [*status.report(*store_and_plan(where, None, None)).results.values()]
    if not found:
        raise InputError(f"{where}: holds no results")
    return Results(Table.joined([own.table for own in found]), found[0].seed, found[0].alpha)
