"""Build panels from arrays, and tables from results, for tests."""

import numpy as np

from sigdask.counts import Counts
from sigdask.metrics.base import BoundMetric
from sigdask.randomization.panels.build import PanelGroups
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.results.columns import load_schema
from sigdask.results.fields import build_table
from sigdask.results.record import DERIVED, Result, list_dicts
from sigdask.text import to_plain


def build_panels(counts, units, metrics, pairs, *, subset=None):
    """Build the panels of some pairs of systems, on all items or a subset of them."""
    return PanelGroups.from_metrics(counts, metrics, np.asarray(pairs, np.int64).reshape(-1, 2)).build(units, subset)


def build_panel(values, forms, *, seed=0, pairs=None, name=""):
    """Build a panel of integer contributions, shape (n_items, n_systems, n_fields), with some forms."""
    n_items, n_systems, n_fields = values.shape
    fields = {f"f{k}": values[:, :, k] for k in range(n_fields)}
    counts = Counts(tuple(f"s{k}" for k in range(n_systems)), fields, n_items, name=name)
    metrics = [BoundMetric(f"m{k}", tuple(fields), form) for k, form in enumerate(forms)]
    pairs = pairs or [(i, j) for i in range(n_systems) for j in range(i + 1, n_systems)]
    [placed] = build_panels(counts, SwapUnits.from_counts(counts, seed), metrics, pairs)
    return placed.panel


def results_to_table(results, alpha):
    """Build a table whose rows are results, with verdicts as they follow from their other values."""
    records = [to_plain(r, exact=True) | {"notes": list_dicts(r.notes)} for r in results]
    return build_table([{name: value for name, value in r.items() if name != "verdict"} for r in records], alpha)


def build_result(**members):
    """Build a result with some members; the others are None, or empty if they are lists."""
    kinds = load_schema()["$defs"]["result"]["properties"].items()
    others = {name: () if kind.get("type") == "array" else None for name, kind in kinds if name not in DERIVED}
    return Result(**others | {"notes": ()} | members)


def build_rng(seed):
    return np.random.default_rng(seed)


def find_cells(cells, k):
    """Yield the job, row and column of each count that comparison `k` has among some cells."""
    for part in cells:
        for place in np.flatnonzero(part.index == k).tolist():
            yield part.job, part.row[place], part.column[place]
