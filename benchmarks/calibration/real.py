"""Real systems under the null: their outputs are swapped at random, unit by unit, and then tested.

Whatever real scores are (skewed, tied, corpus-level), the two columns that this makes are exchangeable, so a test that
finds more than its level of differences is wrong. The data lie in ../shared/data; without them nothing is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.compared import build_counts, compare_pairs, draw_seed, interleave
from benchmarks.calibration.measuring import DEFAULT_SETS, Case, Outcome, Outcomes
from benchmarks.calibration.scenarios import Rng
from sigdask.counts import Counts
from sigdask.metrics.forms import Form

DATA = Path(__file__).parents[3] / "shared" / "data"
ALPHA, N_TRIALS = 0.05, 999


@dataclass(frozen=True, slots=True)
class Source:
    """Files of a real test set and how to read them.

    Attributes
    ----------
    systems : str
        Pattern of its files, below the folder of data.
    gold : str or None
    metric : str
    n_items : int
        So many are drawn of it for each batch, where it has more.
    n_sets : int
        Data sets made of it.
    """

    systems: str
    gold: str | None
    metric: str
    n_items: int = 3000
    n_sets: int = DEFAULT_SETS


SETS = {
    "TREC adhoc8, average precision": Source("matrix_trec_urbano/adhoc8_ap.csv", None, "mean"),
    "WNUT 2017, F1": Source("seqlab_wnut17/submissions/*", "seqlab_wnut17/emerging.test.annotated", "f1"),
    "HANS, accuracy": Source("class_hans/*preds*.txt", "class_hans/gold.csv", "accuracy"),
    "WMT 2024 en-de, BLEU": Source(
        "mt_wmt24_en-de/systems/*.txt", "mt_wmt24_en-de/en-de.refA.txt", "bleu", n_sets=5000
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class RealTestSet:
    """Sums of a metric on a real test set, shape (n_items, n_systems) or (n_items, 1), and its form."""

    fields: dict[str, NDArray[Any]]
    form: Form
    n_items: int
    n_systems: int

    def sample_items(self, rng: Rng, n_items: int) -> RealTestSet:
        """Return a random sample of the items, without replacement."""
        indices = np.sort(rng.permutation(self.n_items)[:n_items])
        return RealTestSet(
            {name: field[indices] for name, field in self.fields.items()}, self.form, len(indices), self.n_systems
        )

    def draw_pairs(self, rng: Rng, n_sets: int) -> NDArray[np.int64]:
        """Draw two different systems for each data set, shape (2, n_sets)."""
        a = rng.integers(0, self.n_systems, n_sets)
        return np.array([a, (a + rng.integers(1, self.n_systems, n_sets)) % self.n_systems])


def cases() -> list[Case]:
    """Return the cases of real data, none if the data are missing."""
    if not DATA.is_dir():
        return []
    return [Case("real", name, partial(measure_size, name), source.n_sets, 100) for name, source in SETS.items()]


def measure_size(name: str, rng: Rng, n_sets: int) -> Outcomes:
    """Return which differences of swapped outputs are found."""
    real = load_test_set(name).sample_items(rng, SETS[name].n_items)
    counts = swap_outputs(real, rng, n_sets)
    p = compare_pairs(
        counts, form=real.form, seed=draw_seed(rng), method="randomization", trials=N_TRIALS
    ).table.p_value
    return {"sampled, two-sided": Outcome(p <= ALPHA)}


def swap_outputs(real: RealTestSet, rng: Rng, n_sets: int) -> Counts:
    """Return pairs of systems, with the outputs of each item swapped with probability 1/2."""
    a, b = real.draw_pairs(rng, n_sets)
    swap = rng.random((real.n_items, n_sets)) < 0.5
    fields = {}
    for name, field in real.fields.items():
        if field.shape[1] == 1:
            fields[name] = field
        else:
            x, y = field[:, a], field[:, b]
            fields[name] = interleave(np.where(swap, y, x), np.where(swap, x, y))
    return build_counts(fields)


@cache
def load_test_set(name: str) -> RealTestSet:
    """Load a real test set and compute the sums of its metric."""
    from sigdask import read
    from sigdask.analysis.comparison.pairs import bind_metric
    from sigdask.metrics import find_metric

    source = SETS[name]
    options = {"format": "segments"} if source.metric == "bleu" else {}
    if "hans" in source.systems:
        options["label_map"] = {"non-entailment": ["neutral", "contradiction"]}
    gold = DATA / source.gold if source.gold else None
    counts = read(*sorted(DATA.glob(source.systems)), gold=gold, **options)
    metric = bind_metric(find_metric(source.metric, counts), counts)
    fields = {field: np.asarray(metric.get_field(field, counts)) for field in metric.fields}
    if source.metric == "mean":  # four decimals
        fields = {
            "score": np.rint(1e4 * counts.field("score")).astype(np.int64),
            "items": np.ones((counts.n_items, 1), np.int64),
        }
    return RealTestSet(fields, metric.form, counts.n_items, counts.n_systems)
