"""What was recorded of results: a signature alone, or the JSON and tables that `compare` and plans write."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.results.columns.assumptions import kinds_text
from sigdask.results.signature import Signature

INTEGERS = ("n_items", "n_units", "n_discordant", "n_trials", "n_extreme")
REALS = ("score_a", "score_b", "difference", "p_value", "p_adjusted")
"""Of a result, what is held against what is found again."""


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """One result as it was recorded.

    Attributes
    ----------
    signature : Signature
        By what it is found again.
    a, b : str
        What its systems were called; empty where a signature is all there is.
    found : mapping of str to number
        What was found, by the names of JSON; None where there is none.
    assumptions : str or None
        Kinds of doubts that the units gave; None where an earlier version wrote none.
    """

    signature: Signature
    a: str = ""
    b: str = ""
    found: Mapping[str, float | None] = field(default_factory=dict)
    assumptions: str | None = None

    @property
    def label(self) -> str:
        """Name it, for people."""
        own = self.signature
        where = [own.test_set] if own.test_set else []
        where += [f"{own.subset[0]} {own.subset[1]}"] if own.subset else []
        pair = f" of {self.a} and {self.b}" if self.a or self.b else ""
        return f"{', '.join([*where, own.metric])}{pair}"


def read(path: Path) -> list[RecordedResult]:
    """Read the results that a file holds: JSON, or a table of CSV.

    Raises
    ------
    InputError
        It cannot be read, is neither, or holds results without signatures.
    """
    text = _text(path)
    rows = _of_json(path, text)["results"] if text.lstrip().startswith("{") else _of_csv(path, text)
    if not rows:
        raise InputError(f"{path}: holds no results")
    return [_recorded(path, number, row) for number, row in enumerate(rows, 1)]


def rows_of_json(path: Path) -> Mapping[str, Any]:
    """Return the object that a file of results holds, its "results" among it."""
    return _of_json(path, _text(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text ({error})") from None


def _of_json(path: Path, text: str) -> Mapping[str, Any]:
    try:
        whole = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: is no JSON ({error.msg})") from None
    rows = whole.get("results") if isinstance(whole, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f'{path}: expected the JSON that `sigdask compare --json` writes, with "results"')
    return {**whole, "results": rows}


def _of_csv(path: Path, text: str) -> Sequence[Mapping[str, Any]]:
    rows = [*csv.DictReader(text.splitlines())]
    if rows and "test_signature" not in rows[0]:
        raise InputError(
            f"{path}: has no column test_signature; expected what `sigdask compare --json` or --csv writes"
        )
    return rows


def _recorded(path: Path, number: int, row: Mapping[str, Any]) -> RecordedResult:
    if not row.get("test_signature"):
        raise InputError(f"{path}, result {number}: has no test_signature, which this version of sigdask writes")
    try:
        signature = Signature.parse(row["test_signature"])
        found = {**_numbers(row, INTEGERS, int), **_numbers(row, REALS, float)}
    except (InputError, ValueError, TypeError) as error:
        raise InputError(f"{path}, result {number}: {error}") from None
    return RecordedResult(signature, str(row.get("a", "")), str(row.get("b", "")), found, _assumptions(row))


def _assumptions(row: Mapping[str, Any]) -> str | None:
    written = row.get("assumptions")
    return written if written is None or isinstance(written, str) else kinds_text(one["kind"] for one in written)


def _numbers(row: Mapping[str, Any], names: Iterable[str], kind: type[int | float]) -> dict[str, float | None]:
    return {name: None if row.get(name) in {None, ""} else kind(row[name]) for name in names}
