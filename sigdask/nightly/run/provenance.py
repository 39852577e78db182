"""Provenance of a run for its record: versions, settings, and a digest of each file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sigdask.nightly.plan import Plan, TestSet
from sigdask.report.provenance import get_versions, hash_paths

NO_PATHS: Mapping[str, Sequence[Path]] = {}


def build_provenance(plan: Plan, read_paths: Mapping[str, Sequence[Path]] = NO_PATHS) -> dict[str, Any]:
    """Return the versions, settings and inputs of a run.

    `read_paths` are, by test set, the files that were taken of the folders and patterns of its systems.
    """
    inputs = _hash_inputs(plan.test_sets, read_paths) | _hash_other_inputs(plan)
    return {"versions": get_versions("dask", "distributed"), "settings": _list_settings(plan), "inputs": inputs}


def _list_settings(plan: Plan) -> dict[str, Any]:
    return {"seed": plan.seed, "alpha": plan.alpha, "adjust": plan.adjust, "second_run": plan.second_run,
            "trials": {t.name: t.trials for t in plan.test_sets}}  # fmt: skip


def _hash_inputs(test_sets: Sequence[TestSet], read_paths: Mapping[str, Sequence[Path]]) -> dict[str, dict[str, str]]:
    """Return the digests of the files of each test set."""
    return {t.name: hash_paths(t.list_files(read_paths.get(t.name, ()))) for t in test_sets}


def _hash_other_inputs(plan: Plan) -> dict[str, dict[str, str]]:
    """Return the digests of the files of candidate lists and tests of independence."""
    files = [(entry.name, (entry.path,)) for entry in plan.rankings] + [
        (entry.name, entry.list_files()) for entry in plan.independence
    ]
    return {name: hash_paths(paths) for name, paths in files}
