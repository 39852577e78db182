"""From keys to lists of candidates that measures rank."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sigdask.analysis.candidate_rankings.spec import RankingSpec, read_cutoffs
from sigdask.errors import InputError
from sigdask.formats.candidates import CandidateColumns
from sigdask.nightly.plan import paths
from sigdask.nightly.plan.errors import shown
from sigdask.nightly.plan.keys import BaselineKeys, PlanKeys, RankingsKeys
from sigdask.nightly.plan.lines import Key
from sigdask.nightly.plan.model import RankedCandidates

Complain = Callable[[Key, str], None]


def ranked(keys: PlanKeys, folder: Path, complain: Complain) -> tuple[RankedCandidates, ...]:
    """Return the lists of candidates of a plan; what is wrong is complained about and left out."""
    found, names = [], [own.name for own in keys.test_set]
    for number, own in enumerate(keys.rankings):
        key: Key = ("rankings", number)
        if own.name in names:
            complain((*key, "name"), f"found {shown(own.name)} twice, expected a name of its own")
        names.append(own.name)
        try:
            path = paths.existing(own.candidates, folder)
        except InputError as error:
            complain((*key, "candidates"), str(error))
            continue
        try:
            read_cutoffs(own.n)
        except InputError as error:
            complain((*key, "n"), str(error))
            continue
        try:
            found.append(RankedCandidates(own.name, path, _columns(own), _asked(own, keys)))
        except InputError as error:
            complain(key, str(error))
    return tuple(found)


def _columns(own: RankingsKeys) -> CandidateColumns:
    ids = (own.id,) if isinstance(own.id, str) else own.id or ()
    return CandidateColumns(
        gold=own.gold_column,
        ids=tuple(ids),
        measures=own.measures or (),
        smaller=own.smaller or (),
        ignore=own.ignore or (),
        positive=own.positive or (),
        partial=own.partial,
        decimal=own.decimal,
        most_unpacked=own.most_unpacked,
    )


def _asked(own: RankingsKeys, keys: PlanKeys) -> RankingSpec:
    pairs: dict[str, Any] = {}
    if isinstance(own.pairs, BaselineKeys):
        pairs = {"baseline": own.pairs.baseline}
    elif own.pairs != "all":
        pairs = {"pairs": own.pairs}
    return RankingSpec.of(
        **pairs, n=own.n, ties=own.ties, trials=own.trials, confidence=own.confidence, samples=own.samples,
        sample_size=own.sample_size, seed=keys.seed, alpha=keys.alpha,
    )  # fmt: skip
