"""Contributions of units to scores that are not computed from sums over units: by leaving units out.

The contribution of unit u is (n - 1) / n (s - s_u), with the score s_u without the unit. The sum of its squares about
the mean is the jackknife variance (Efron & Tibshirani 1993, chapter 11). For AUC these are the placements of DeLong,
DeLong & Clarke-Pearson (1988). Of many units, random groups of equal size are left out instead of single units.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.errors import InputError
from sigdask.randomization.panels import Uncached
from sigdask.randomization.panels.agreement import AgreementPanel
from sigdask.randomization.panels.cells import score_cells
from sigdask.randomization.panels.digests import mix_bits
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.ranks import RankPanel
from sigdask.randomization.stream import Key

MAX_GROUPS = {OutputsPanel: 200, RankPanel: 1000, AgreementPanel: 100}
"""Maximum number of groups of units, each of which is left out of the scores once."""


@dataclass(frozen=True, eq=False)
class JackknifePanel(Uncached):
    """A panel of scores that are not sums, as far as its units contribute to them.

    Attributes
    ----------
    panel : OutputsPanel or AgreementPanel
        The panel.
    """

    panel: OutputsPanel | AgreementPanel

    linear: ClassVar[tuple[bool, ...]] = (False,)

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "jackknife", self.panel.compute_digests()

    @property
    def key(self) -> Key:
        """Key of the stream."""
        return self.panel.key

    @property
    def metric(self) -> Any:
        """The metric, whose function may be a user's."""
        return self.panel.metric

    @property
    def pairs(self) -> Integers:
        """Indices of the systems compared, shape (n_pairs, 2)."""
        return self.panel.pairs

    @property
    def differences(self) -> Floats:
        """Observed differences, shape (n_pairs, 1)."""
        scores = self.panel.pair_scores
        return np.asarray(scores[..., 0] - scores[..., 1])

    @cached_property
    def contributions(self) -> Floats:
        """Contributions of each unit address to each system's score; zeros if a score is not defined without a unit.

        Returns
        -------
        float64 array, shape (n_addresses, n_systems)
            The contribution of a group is spread over its units so that the sum of squares stays.
        """
        index = self.panel.index
        addresses = np.unique(index)
        n_groups = min(len(addresses), MAX_GROUPS[type(self.panel)])
        group = np.empty(len(addresses), np.int64)
        group[np.argsort(mix_bits(addresses.astype(np.uint64)), kind="stable")] = np.arange(len(addresses)) % n_groups
        group_of_item = group[np.searchsorted(addresses, index)]
        try:
            without = np.array([self._score(group_of_item != g) for g in range(n_groups)])
        except InputError:  # a user's function that fails without some outputs
            without = np.full((n_groups, int(self.pairs.max()) + 1), np.nan)
        result = np.zeros((int(addresses[-1]) + 1, without.shape[1]))
        if n_groups > 1 and np.isfinite(without).all():
            added = (n_groups - 1) / n_groups * (without.mean(axis=0) - without)
            result[addresses] = (added / np.sqrt(np.bincount(group, minlength=n_groups))[:, None])[group]
        return result

    def _score(self, kept: Bools) -> Floats:
        """Return the scores of the systems on some of the items or cells, shape (n_systems,)."""
        if isinstance(self.panel, AgreementPanel):
            return score_cells(self.panel.cells.select(kept), self.panel.metric)
        return self.panel.select_items(kept).scores[:, 0]
