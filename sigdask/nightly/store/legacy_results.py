"""Results stored by earlier versions, with one row each and notes as sentences, read as blocks of columns."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import groupby, islice
from typing import Any

import numpy as np
from sqlalchemy import Connection, text

from sigdask.nightly.store.blocks import COMPARISON, COMPLETE, NEVER_ENDED, POSITION, ResultBlock
from sigdask.nightly.store.columns import table_to_columns
from sigdask.results.from_records import results_to_table
from sigdask.results.messages.notes import upgrade_warnings
from sigdask.results.record import Result
from sigdask.text import value_from_json

ROWS_AT_ONCE = 10_000
"""Rows that are read at a time."""

PLAIN_FIELDS = ("test_set", "unit", "a", "b", "metric", "alternative", "score_a", "score_b", "difference", "n_items",
         "n_units", "n_discordant", "method", "n_trials", "n_extreme", "p_value", "p_adjusted")  # fmt: skip
"""Fields of a result that were columns; the others were in `detail`."""


def iter_earlier_blocks(connection: Connection, plan: str) -> Iterator[ResultBlock]:
    """Yield a plan's results that earlier versions stored, as blocks in the order of runs."""
    query = text(
        "SELECT results.*, comparisons.id AS comparison FROM results "
        "LEFT JOIN comparisons ON comparisons.digest = results.digest "
        "WHERE plan = :plan ORDER BY since, position, results.id"
    )
    rows = connection.execute(query, {"plan": plan}).mappings()
    for since, run_rows in groupby(rows, key=lambda row: int(row["since"])):
        alpha = _read_alpha(connection, since)
        while batch := list(islice(run_rows, ROWS_AT_ONCE)):
            yield _build_block(since, batch, alpha)


def _read_alpha(connection: Connection, run: int) -> float:
    """Return the significance level that a run recorded for its verdicts."""
    query = text("SELECT details FROM runs WHERE id = :run")
    details = json.loads(connection.execute(query, {"run": run}).scalar_one())
    return float(details.get("settings", {}).get("alpha", 0.05))


def _build_block(since: int, rows: list[Any], alpha: float) -> ResultBlock:
    columns = table_to_columns(results_to_table([_build_result(row) for row in rows], alpha))
    columns[COMPARISON] = np.array([row["comparison"] or -1 for row in rows], np.int64)
    columns[COMPLETE] = np.array([row["complete"] for row in rows], np.bool_)
    columns[POSITION] = np.array([row["position"] for row in rows], np.int64)
    until = np.array([row["until"] or NEVER_ENDED for row in rows], np.int64)
    return ResultBlock(0, since, is_earlier=True, columns=columns, until=until)


def _build_result(row: Any) -> Result:
    values = {**json.loads(row["detail"]), **{name: row[name] for name in PLAIN_FIELDS}}
    for name in ("score_a", "score_b", "difference", "p_value"):
        values[name] = math.nan if values[name] is None else values[name]
    values["higher_is_better"] = bool(row["higher_is_better"])
    values["subset"] = None if row["subset"] is None else json.loads(row["subset"])
    result: Result = value_from_json(Result, upgrade_warnings(values))
    return result
