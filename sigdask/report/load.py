"""Results read back from their JSON files, in the classes that present them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from sigdask.analysis.reproduce import RecordedResults, check_results, find_other_command, load_document
from sigdask.errors import InputError
from sigdask.report.analyses import Evaluation, Independences, Powers
from sigdask.report.presentable import Results
from sigdask.results.comparisons import FamilyNote, ResultAcrossSets
from sigdask.results.fields import build_table
from sigdask.results.record import read_note
from sigdask.text import value_from_json

Analysis = TypeVar("Analysis", Evaluation, Independences, Powers)
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
    document = dict(load_document(path))
    match find_other_command(document):
        case "rankings":
            return _load_analysis(path, "rankings", Evaluation, document)
        case "independence":
            return _load_analysis(path, "independence", Independences, document | {"found": document["results"]})
        case "power":
            return _load_analysis(path, "power", Powers, document | {"found": _list_powers(document["power"])})
    return _load_comparisons(check_results(path, document))


def _load_analysis(path: Path, command: str, kind: type[Analysis], document: Mapping[str, Any]) -> Analysis:
    """Return the results of another command in a JSON document, whose values must have their types."""
    import pydantic  # the results of comparisons do without it

    try:
        analysis = pydantic.TypeAdapter(kind).validate_python(document)
    except pydantic.ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        raise InputError(f"not results of `sigdask {command} --json`: {place}: {fault['msg']}", file=path) from None
    if not getattr(analysis, "found", True):
        raise InputError(f"holds no results of `sigdask {command}`", file=path)
    return analysis


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


def _list_powers(entries: Any) -> Any:
    """Return the entries of a power analysis. A value that is null is infinite."""
    if not isinstance(entries, list):
        return entries
    return [
        {
            key: {**value, "value": math.inf} if isinstance(value, dict) and value.get("value", 0) is None else value
            for key, value in entry.items()
        }
        if isinstance(entry, dict)
        else entry
        for entry in entries
    ]
