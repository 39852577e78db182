"""Results read back from their JSON files, in the classes that present them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from sigdask.analysis.reproduce import check_signatures, read_json_results
from sigdask.errors import InputError
from sigdask.report.presentable import Results
from sigdask.results.comparisons import FamilyNote, ResultAcrossSets
from sigdask.results.from_records import results_to_table
from sigdask.results.record import Result
from sigdask.results.validation import find_fault
from sigdask.text import value_from_json

NAN_KEYS = ("score_a", "score_b", "difference", "p_value")
"""Keys whose null means NaN."""


def load_results(path: str | Path) -> Results:
    """Return the results of comparisons in a JSON file that a command or `Results.write` wrote.

    Parameters
    ----------
    path : str or Path
        JSON of `sigdask compare`, `meta`, `run` or `report`.

    Returns
    -------
    Results
        They lack the data, so they have no scores of units.

    Raises
    ------
    InputError
        The file holds no results, or contradicts the signatures in it.

    Examples
    --------
    >>> import tempfile
    >>> from sigdask import compare_all
    >>> results = compare_all({"new": [4, 5, 4], "old": [1, 1, 2]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results.write(f"{folder}/results.json")
    ...     load_results(f"{folder}/results.json")["new", "old"].p_value
    0.25
    """
    path = Path(path)
    document = read_json_results(path)
    fault = "holds no results" if not document["results"] else find_fault(document)
    if fault is not None:
        raise InputError(f"{path}: not results of `sigdask compare --json`: {fault}")
    check_signatures(path, document)
    alpha = document.get("alpha", 0.05)
    rows = [
        value_from_json(Result, {**row, **{key: math.nan if row[key] is None else row[key] for key in NAN_KEYS}})
        for row in document["results"]
    ]
    return Results(
        replace(results_to_table(rows, alpha), grouping=document.get("grouping", "auto")),
        document.get("seed", 0),
        alpha,
        family=value_from_json(FamilyNote, document.get("family")),
        together=tuple(value_from_json(ResultAcrossSets, verdict) for verdict in document.get("together") or ()),
    )
