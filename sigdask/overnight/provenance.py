"""What a run was made of, for its record: versions, settings, and a digest of each file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sigdask.plan import Plan, TestSet
from sigdask.shuffles import SCHEME


def provenance(plan: Plan) -> dict[str, Any]:
    """Return the versions, settings and inputs of a run."""
    return {"versions": _versions(), "settings": _settings(plan), "inputs": _inputs(plan.test_sets)}


def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import version

    packages = {name: version(name) for name in ("sigdask", "numpy", "scipy", "numba", "dask", "distributed")}
    return {**packages, "python": platform.python_version(), "scheme": str(SCHEME)}


def _settings(plan: Plan) -> dict[str, Any]:
    return {"seed": plan.seed, "alpha": plan.alpha, "adjust": plan.adjust, "second_run": plan.second_run,
            "trials": {t.name: t.trials for t in plan.test_sets}}  # fmt: skip


def _inputs(test_sets: Sequence[TestSet]) -> dict[str, dict[str, str]]:
    """Return the digest of every file that was read."""
    return {t.name: {_text(path): _sha256(path) for path in t.files()} for t in test_sets}


def _text(path: Path) -> str:
    """Return a path as text that every file can hold, whatever its bytes are."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
