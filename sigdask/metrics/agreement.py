"""Agreement of metrics with human scores: correlations and accuracies of pairs, by segments or by systems.

Deutsch, Foster & Freitag 2023, "Ties matter: meta-evaluating modern metrics with pairwise accuracy and tie calibration"
(acc-eq). Thompson et al. 2024, "Improving statistical significance in human evaluation of automatic metrics via soft
pairwise accuracy" (spa).
"""

from __future__ import annotations

import re
from functools import partial

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.metrics.base import DEFAULT_SIGNS, BoundAgreement, Metric, Spec, build_lacking_error

PREFIX = "meta-"

LEVELS = ("segment", "system")
GROUPS = ("none", "item", "system")

OF_PAIRS = ("accuracy", "acc-eq")
"""Statistics that are shares of pairs, whose decisions can be swapped."""

SET_COLUMN = "language-pair"
"""Grouping column of test sets, over which agreement is averaged."""


def agreement(spec: Spec) -> Metric:
    """Return the metric of agreement with human scores of a parsed name, such as `meta-pearson:group=item`."""
    statistic = spec.base.removeprefix(PREFIX)
    is_soft, is_pairs = statistic == "spa", statistic in OF_PAIRS
    spec.check_options(
        *(() if is_soft else ("level", "group", "undefined")),
        *(("permute",) if is_pairs else ()),
        *(("epsilon",) if statistic == "accuracy" else ()),
        *(("signs",) if is_soft else ()),
    )
    level = "system" if is_soft else spec.get_choice("level", LEVELS)
    group = spec.get_choice("group", GROUPS)
    if level == "system" and group != "none":
        raise InputError(
            f"metric {spec.name!r}: at level=system each system has one score, so there are no groups",
            remedy=f"leave out group={group}",
        )
    swaps_pairs = spec.get_choice("permute", ("units", "pairs")) == "pairs"
    epsilon = float(spec.get_number("epsilon", "0"))
    if epsilon and not swaps_pairs:
        raise InputError(
            f"metric {spec.name!r}: epsilon is a threshold of raw scores, but the test swaps standardised scores",
            remedy="add permute=pairs, or use meta-acc-eq, which chooses the threshold in each trial",
        )
    signs = spec.get_number("signs", str(DEFAULT_SIGNS))
    if not re.fullmatch(r"\d{1,18}", signs) or not 1 <= int(signs) <= 10**6:
        raise InputError(f"metric {spec.name!r}: signs = {signs!r}: expected 1 to 1,000,000 random signs")
    undefined = spec.get_choice("undefined", ("omit", "zero"))
    bound = BoundAgreement(spec.name, statistic, level, group, undefined, swaps_pairs, epsilon, int(signs))
    return Metric(spec.name, partial(_bind, bound))


def _bind(bound: BoundAgreement, counts: Counts) -> BoundAgreement:
    """Return the agreement, after checking that the data have human scores of systems' segments."""
    if "human" not in counts.fields or not {"system", "segment"} <= counts.groups.keys():
        raise build_lacking_error(bound.name, "scores of metrics and of people (`sigdask meta`, format meta)", counts)
    return bound
