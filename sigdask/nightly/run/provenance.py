"""What a run was made of, for its record: versions, settings, and a digest of each file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sigdask.nightly.plan import Plan, TestSet
from sigdask.report.provenance import digests, versions

NOTHING: Mapping[str, Sequence[Path]] = {}


def provenance(plan: Plan, taken: Mapping[str, Sequence[Path]] = NOTHING) -> dict[str, Any]:
    """Return the versions, settings and inputs of a run.

    `taken` are, by test set, the files that were taken of the folders and patterns of its systems.
    """
    inputs = _inputs(plan.test_sets, taken) | _beside(plan)
    return {"versions": versions("dask", "distributed"), "settings": _settings(plan), "inputs": inputs}


def _settings(plan: Plan) -> dict[str, Any]:
    return {"seed": plan.seed, "alpha": plan.alpha, "adjust": plan.adjust, "second_run": plan.second_run,
            "trials": {t.name: t.trials for t in plan.test_sets}}  # fmt: skip


def _inputs(test_sets: Sequence[TestSet], taken: Mapping[str, Sequence[Path]]) -> dict[str, dict[str, str]]:
    """Return the digest of every file that was read."""
    return {t.name: digests(t.files(taken.get(t.name, ()))) for t in test_sets}


def _beside(plan: Plan) -> dict[str, dict[str, str]]:
    """Return the digests of the files of candidates, and of labels that are tested for independence."""
    files = [(one.name, (one.path,)) for one in plan.rankings] + [(one.name, one.files()) for one in plan.independence]
    return {name: digests(own) for name, own in files}
