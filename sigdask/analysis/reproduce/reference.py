"""Recorded results, read from signatures or from the JSON and CSV files that `compare` and plans write."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.results.columns.assumptions import format_kinds
from sigdask.results.signature import Signature

INTEGERS = ("n_items", "n_units", "n_discordant", "n_trials", "n_extreme")
REALS = ("score_a", "score_b", "difference", "p_value", "p_adjusted")
"""Of a result, what is held against what is found again."""


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """One result as it was recorded, with its signature.

    Attributes
    ----------
    signature : Signature
        By what it is found again.
    a, b : str
        What its systems were called; empty where a signature is all there is.
    values : mapping of str to number
        What was found, by the names of JSON; None where there is none.
    assumptions : str or None
        Kinds of doubts that the units gave; None where an earlier version wrote none.
    """

    signature: Signature
    a: str = ""
    b: str = ""
    values: Mapping[str, float | None] = field(default_factory=dict)
    assumptions: str | None = None

    @property
    def label(self) -> str:
        """Name of the result in messages: test set, subset, metric and systems."""
        signature = self.signature
        parts = [signature.test_set] if signature.test_set else []
        parts += [f"{signature.subset[0]} {signature.subset[1]}"] if signature.subset else []
        pair = f" of {self.a} and {self.b}" if self.a or self.b else ""
        return f"{', '.join([*parts, signature.metric])}{pair}"


def read(path: Path) -> list[RecordedResult]:
    """Return the recorded results in a JSON or CSV file.

    Raises
    ------
    InputError
        It cannot be read, is neither, or holds results without signatures.
    """
    text = _read_text(path)
    rows = _parse_json(path, text)["results"] if text.lstrip().startswith("{") else _parse_csv(path, text)
    if not rows:
        raise InputError(f"{path}: holds no results")
    return [_build_result(path, number, row) for number, row in enumerate(rows, 1)]


def read_json_results(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file of results, with its list of results as "results"."""
    return _parse_json(path, _read_text(path))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text ({error})") from None


def _parse_json(path: Path, text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: is no JSON ({error.msg})") from None
    rows = document.get("results") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f'{path}: expected the JSON that `sigdask compare --json` writes, with "results"')
    return {**document, "results": rows}


def _parse_csv(path: Path, text: str) -> Sequence[Mapping[str, Any]]:
    rows = [*csv.DictReader(text.splitlines())]
    if rows and "test_signature" not in rows[0]:
        raise InputError(
            f"{path}: has no column test_signature; expected what `sigdask compare --json` or --csv writes"
        )
    return rows


def _build_result(path: Path, number: int, row: Mapping[str, Any]) -> RecordedResult:
    if not row.get("test_signature"):
        raise InputError(f"{path}, result {number}: has no test_signature, which this version of sigdask writes")
    try:
        signature = Signature.parse(row["test_signature"])
        values = {**_parse_numbers(row, INTEGERS, int), **_parse_numbers(row, REALS, float)}
    except (InputError, ValueError, TypeError) as error:
        raise InputError(f"{path}, result {number}: {error}") from None
    return RecordedResult(signature, str(row.get("a", "")), str(row.get("b", "")), values, _get_assumptions(row))


def _get_assumptions(row: Mapping[str, Any]) -> str | None:
    recorded = row.get("assumptions")
    return (
        recorded if recorded is None or isinstance(recorded, str) else format_kinds(doubt["kind"] for doubt in recorded)
    )


def _parse_numbers(row: Mapping[str, Any], names: Iterable[str], kind: type[int | float]) -> dict[str, float | None]:
    return {name: None if row.get(name) in {None, ""} else kind(row[name]) for name in names}
