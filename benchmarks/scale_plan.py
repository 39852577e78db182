"""Plans of a hundred thousand comparisons: written with their data, then checked, run, and run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

N_SYSTEMS, N_ITEMS, N_TRIALS = 448, 1000, 10_000
"""448 systems are 100,128 pairs."""


def write_plan(folder: Path, *, n_systems: int = N_SYSTEMS, n_items: int = N_ITEMS, n_trials: int = N_TRIALS) -> Path:
    """Write a plan and its one table of 0/1 scores; return the plan's path."""
    rng = np.random.default_rng(n_systems)
    difficulty, skill = rng.random((n_items, 1)), np.linspace(-0.1, 0.1, n_systems)
    right = (difficulty + skill + rng.normal(0, 0.3, (n_items, n_systems)) > 0.5).astype(np.int8)
    names = ",".join(f"system-{k}" for k in range(n_systems))
    rows = [f"item-{k},{','.join(map(str, row))}" for k, row in enumerate(right.tolist())]
    (folder / "scores.csv").write_text("\n".join([f"item,{names}", *rows, ""]), encoding="utf-8")
    path = folder / "night.toml"
    path.write_text(
        f'trials = {n_trials}\nseed = 1\nadjust = "holm"\n'
        '[[test_set]]\nname = "scores"\nsystems = "scores.csv"\nmetrics = ["mean"]\n',
        encoding="utf-8",
    )
    return path


def cases(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield what is measured, one after the other: a name, and the arguments of `sigdask`."""
    plan = str(write_plan(folder))
    yield "plan of 100,128 comparisons: check", ["check", plan]
    yield "plan of 100,128 comparisons: run", ["run", plan]
    yield "plan of 100,128 comparisons: run again", ["run", plan]
    yield "plan of 100,128 comparisons: status", ["status", plan]
    yield "plan of 100,128 comparisons: history", ["history", plan]
