"""Results read back from their JSON files, in the classes that present them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from sigdask.analysis.reproduce import RecordedResults, check_results, find_other_command, load_document
from sigdask.errors import InputError
from sigdask.report.analyses import Evaluation, Independences, Powers
from sigdask.report.presentable import Results
from sigdask.results.comparisons import FamilyNote, ResultAcrossSets
from sigdask.results.fields import build_table
from sigdask.results.notes import read_note
from sigdask.text import value_from_json

AnyResults = Results | Evaluation | Independences | Powers


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
    return _load_comparisons(check_results(path, document))


def _load_comparisons(recorded: RecordedResults) -> Results:
    """Return the recorded results of comparisons."""
    document = recorded.document
    return Results(
        build_table([entry.values for entry in recorded.results], document["alpha"], document.get("grouping", "auto")),
        document["seed"],
        document["alpha"],
        tuple(map(read_note, document["notes"])),
        value_from_json(FamilyNote, document["family"]),
        tuple(value_from_json(ResultAcrossSets, verdict) for verdict in document["together"]),
        document["options"] or {},
    )


def _list_powers(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of a power analysis. A value that is null is infinite."""
    return [
        {
            key: {**value, "value": math.inf} if isinstance(value, dict) and value.get("value", 0) is None else value
            for key, value in entry.items()
        }
        for entry in document["power"]
    ]
