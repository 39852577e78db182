"""Error rates of nightly gates: failures of runs without a loss."""

from __future__ import annotations

import numpy as np

from benchmarks.calibration.compared import QUIET, draw_seed
from benchmarks.calibration.measuring import Case, Outcome, Outcomes
from benchmarks.calibration.scenarios import Rng, to_thousandths
from sigdask import compare_all
from sigdask.counts import Counts
from sigdask.nightly.gate.judge import judge_rules
from sigdask.nightly.gate.rules import Evidence, NotWorse

ALPHA, N_UNITS = 0.05, 30


def cases() -> list[Case]:
    """Return the cases of gates."""
    return [
        Case("gates", "5 systems as good as the baseline, 30 units", measure_no_loss, 4_000, 50),
    ]  # fmt: skip


def measure_no_loss(rng: Rng, n_sets: int) -> Outcomes:
    """Return which runs fail although no system is worse than the baseline."""
    failed = np.array([not run_gate(rng) for _ in range(n_sets)])
    return {"not worse, by Holm": Outcome(failed)}


def run_gate(rng: Rng) -> bool:
    """Return whether the gate passes one run of systems with equal means."""
    scores = to_thousandths(rng.standard_normal((N_UNITS, 6)) + rng.standard_normal((N_UNITS, 1)))
    counts = Counts.from_scores({f"s{k}": scores[:, k] for k in range(6)})
    results = compare_all(
        counts, metrics="mean", baseline="s0", method="randomization", trials=999, seed=draw_seed(rng), **QUIET
    )
    return judge_rules([NotWorse(ALPHA, baseline="s0")], results.table, Evidence()).passed
