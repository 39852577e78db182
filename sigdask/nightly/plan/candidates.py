"""Build the lists of candidates that a plan ranks by measures of association, from the plan's keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sigdask.analysis.candidate_rankings.spec import RankingSpec, convert_cutoffs
from sigdask.errors import InputError
from sigdask.formats.candidates import CandidateColumns
from sigdask.nightly.plan import paths
from sigdask.nightly.plan.errors import format_value
from sigdask.nightly.plan.keys import BaselineKeys, PlanKeys, RankingsKeys
from sigdask.nightly.plan.lines import PlanKey
from sigdask.nightly.plan.model import RankedCandidates

Complain = Callable[[PlanKey, str], None]


def build_rankings(keys: PlanKeys, folder: Path, complain: Complain) -> tuple[RankedCandidates, ...]:
    """Return the candidate lists of a plan; invalid ones are reported through `complain` and left out."""
    rankings, names = [], [entry.name for entry in keys.test_set]
    for number, entry in enumerate(keys.rankings):
        key: PlanKey = ("rankings", number)
        if entry.name in names:
            complain((*key, "name"), f"found {format_value(entry.name)} twice, expected a name of its own")
        names.append(entry.name)
        try:
            path = paths.resolve_existing(entry.candidates, folder)
        except InputError as error:
            complain((*key, "candidates"), str(error))
            continue
        try:
            convert_cutoffs(entry.n)
        except InputError as error:
            complain((*key, "n"), str(error))
            continue
        try:
            rankings.append(RankedCandidates(entry.name, path, _build_columns(entry), _build_spec(entry, keys)))
        except InputError as error:
            complain(key, str(error))
    return tuple(rankings)


def _build_columns(entry: RankingsKeys) -> CandidateColumns:
    ids = (entry.id,) if isinstance(entry.id, str) else entry.id or ()
    return CandidateColumns(
        gold=entry.gold_column,
        ids=tuple(ids),
        measures=entry.measures or (),
        smaller=entry.smaller or (),
        ignore=entry.ignore or (),
        positive=entry.positive or (),
        partial=entry.partial,
        decimal=entry.decimal,
        most_unpacked=entry.most_unpacked,
    )


def _build_spec(entry: RankingsKeys, keys: PlanKeys) -> RankingSpec:
    pairs: dict[str, Any] = {}
    if isinstance(entry.pairs, BaselineKeys):
        pairs = {"baseline": entry.pairs.baseline}
    elif entry.pairs != "all":
        pairs = {"pairs": entry.pairs}
    return RankingSpec.from_options(
        **pairs, n=entry.n, ties=entry.ties, trials=entry.trials, confidence=entry.confidence, samples=entry.samples,
        sample_size=entry.sample_size, seed=keys.seed, alpha=keys.alpha,
    )  # fmt: skip
