"""All cases, by name."""

from __future__ import annotations

from functools import cache

from benchmarks.calibration import across, coverage, families, further, margins, nights, pairs, rankings, real
from benchmarks.calibration.measuring import Case

ROOMS = (pairs, families, coverage, across, margins, nights, further, rankings, real)


@cache
def catalogue() -> dict[str, Case]:
    """Return every case, tables together."""
    cases = [case for room in ROOMS for case in room.cases()]
    tables = list(dict.fromkeys(case.table for case in cases))
    return {case.name: case for case in sorted(cases, key=lambda case: tables.index(case.table))}


def named(name: str) -> Case:
    """Return the case of a name."""
    return catalogue()[name]


def chosen(only: str = "") -> list[Case]:
    """Return the cases whose names hold a text."""
    return [case for name, case in catalogue().items() if only.casefold() in name.casefold()]
