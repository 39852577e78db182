"""What a run was made of, for its record: versions, settings, and a digest of each file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sigdask.plan import Plan, TestSet
from sigdask.randomization.shuffles import SCHEME

NOTHING: Mapping[str, Sequence[Path]] = {}


def provenance(plan: Plan, taken: Mapping[str, Sequence[Path]] = NOTHING) -> dict[str, Any]:
    """Return the versions, settings and inputs of a run.

    `taken` are, by test set, the files that were taken of the folders and patterns of its systems.
    """
    inputs = _inputs(plan.test_sets, taken) | _beside(plan)
    return {"versions": _versions(), "settings": _settings(plan), "inputs": inputs}


def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import version

    packages = {name: version(name) for name in ("sigdask", "numpy", "scipy", "numba", "dask", "distributed")}
    return {**packages, "python": platform.python_version(), "scheme": str(SCHEME)}


def _settings(plan: Plan) -> dict[str, Any]:
    return {"seed": plan.seed, "alpha": plan.alpha, "adjust": plan.adjust, "second_run": plan.second_run,
            "trials": {t.name: t.trials for t in plan.test_sets}}  # fmt: skip


def _inputs(test_sets: Sequence[TestSet], taken: Mapping[str, Sequence[Path]]) -> dict[str, dict[str, str]]:
    """Return the digest of every file that was read."""
    return {t.name: {_text(path): _digest(path) for path in t.files(taken.get(t.name, ()))} for t in test_sets}


def _beside(plan: Plan) -> dict[str, dict[str, str]]:
    """Return the digests of the files of candidates, and of labels that are tested for independence."""
    files = [(one.name, (one.path,)) for one in plan.rankings] + [(one.name, one.files()) for one in plan.independence]
    return {name: {_text(path): _digest(path) for path in own} for name, own in files}


def _text(path: Path) -> str:
    """Return a path as text that every file can hold, whatever its bytes are."""
    return str(path).encode(errors="surrogateescape").decode(errors="backslashreplace")


def _digest(path: Path) -> str:
    """Return the digest of a file, or of the names and digests of all files in a folder."""
    if not path.is_dir():
        return _sha256(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    listed = "".join(f"{_sha256(file)} {_text(file.relative_to(path))}\n" for file in files)
    return hashlib.sha256(listed.encode()).hexdigest()


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
