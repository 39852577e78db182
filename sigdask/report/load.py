"""Results read back from their JSON files, in the classes that present them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from sigdask.analysis.reproduce import check_results, check_signatures, find_other_command, load_document
from sigdask.errors import InputError
from sigdask.formats.reading.files import is_parquet, open_bytes
from sigdask.formats.reading.json_records import is_json
from sigdask.report.analyses import Evaluation, Independences, Powers
from sigdask.report.presentable import Results
from sigdask.results.comparisons import FamilyNote, ResultAcrossSets
from sigdask.results.from_records import results_to_table
from sigdask.results.notes import Note
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.results.validation import find_fault
from sigdask.text import value_from_json

AnyResults = Results | Evaluation | Independences | Powers

NAN_KEYS = ("score_a", "score_b", "difference", "p_value")
"""Keys whose null means NaN."""


def load_results(path: str | Path) -> AnyResults:
    """Return the results in a JSON file that a command or `write` wrote.

    Parameters
    ----------
    path : str or Path
        JSON of `sigdask compare`, `meta`, `run`, `report`, `rankings`, `independence` or `power`.

    Returns
    -------
    Results, Evaluation, Independences or Powers
        As the function that computed them returned them. They lack the data, so they have no scores of units.

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
    ...     load_results(f"{folder}/results.json") == results
    True
    """
    path = Path(path)
    with open_bytes(path):
        pass  # a missing file is not a question of formats
    if is_parquet(path) or not is_json(path):
        raise InputError(
            file=path, expected="the JSON of results", remedy="write it with --json FILE, or with -o FILE.json"
        )
    document = load_document(path)
    command = find_other_command(document)
    try:
        match command:
            case "rankings":
                return cast("Evaluation", value_from_json(Evaluation, document))
            case "independence":
                return cast("Independences", value_from_json(Independences, {**document, "found": document["results"]}))
            case "power":
                return cast("Powers", value_from_json(Powers, {**document, "found": _list_powers(document)}))
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"not results of `sigdask {command} --json` ({error})", file=path) from None
    return _load_comparisons(path, check_results(path, document))


def _load_comparisons(path: Path, document: Mapping[str, Any]) -> Results:
    """Return the results of comparisons in a JSON document."""
    if (fault := find_fault(document)) is not None:
        raise InputError(f"not results of `sigdask compare --json`: {fault}", file=path)
    if not document["results"]:
        raise InputError("holds no results", file=path, remedy="give a file that `sigdask compare --json` wrote")
    check_signatures(path, document)
    alpha, notes = document.get("alpha", 0.05), document.get("notes", ())
    return Results(
        _build_table(path, document, alpha),
        document.get("seed", 0),
        alpha,
        tuple(map(_build_note, notes)),
        value_from_json(FamilyNote, document.get("family")),
        tuple(value_from_json(ResultAcrossSets, verdict) for verdict in document.get("together") or ()),
    )


def _build_table(path: Path, document: Mapping[str, Any], alpha: float) -> Table:
    rows = []
    for number, row in enumerate(document["results"]):
        try:
            values = {**row, **{key: math.nan if row[key] is None else row[key] for key in NAN_KEYS}}
            values |= _restore_bounds(row)
            notes = tuple(map(_build_note, row.get("notes", ())))
            rows.append(replace(value_from_json(Result, values), notes=notes))
        except (KeyError, TypeError) as error:
            raise InputError(
                f"not results of `sigdask compare --json`: results[{number}] lacks a key ({error})", file=path
            ) from None
    return replace(results_to_table(rows, alpha), grouping=document.get("grouping", "auto"))


def _restore_bounds(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the intervals of a row, in which a bound that is null is infinite."""
    bounds = {"low": -math.inf, "high": math.inf}
    intervals: dict[str, Any] = {}
    if (interval := row.get("interval")) is not None:
        intervals["interval"] = interval | {k: v for k, v in bounds.items() if interval.get(k) is None}
    for key in ("interval_simultaneous", "score_a_interval", "score_b_interval"):
        if (ends := row.get(key)) is not None:
            intervals[key] = [b if end is None else end for end, b in zip(ends, bounds.values(), strict=True)]
    return intervals


def _build_note(values: Mapping[str, Any]) -> Note:
    """Return a note whose numbers are the keys other than kind and text."""
    numbers = {key: value for key, value in values.items() if key not in {"kind", "text"}}
    return Note(values["kind"], values["text"], numbers)


def _list_powers(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of a power analysis. A value that is null is infinite."""
    return [
        {
            key: {**value, "value": math.inf} if isinstance(value, dict) and value.get("value", 0) is None else value
            for key, value in entry.items()
        }
        for entry in document["power"]
    ]
