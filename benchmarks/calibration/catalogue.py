"""All calibration cases by name."""

from __future__ import annotations

from functools import cache

from benchmarks.calibration import (
    across,
    coverage,
    equal_scores,
    families,
    further,
    margins,
    nights,
    pairs,
    rankings,
    real,
    runs,
)
from benchmarks.calibration.measuring import Case

MODULES = (pairs, equal_scores, families, coverage, across, margins, nights, further, rankings, real, runs)


@cache
def get_catalogue() -> dict[str, Case]:
    """Return all cases by name, grouped by table."""
    cases = [case for module in MODULES for case in module.cases()]
    tables = list(dict.fromkeys(case.table for case in cases))
    return {case.name: case for case in sorted(cases, key=lambda case: tables.index(case.table))}


def get_case(name: str) -> Case:
    """Return a case by its name."""
    return get_catalogue()[name]


def select_cases(name_part: str = "") -> list[Case]:
    """Return the cases whose names contain a text."""
    return [case for name, case in get_catalogue().items() if name_part.casefold() in name.casefold()]
