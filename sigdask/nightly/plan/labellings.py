"""From keys to labellings that are tested for independence of another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats import Options, Source
from sigdask.nightly.plan import paths
from sigdask.nightly.plan.errors import shown
from sigdask.nightly.plan.keys import IndependenceKeys, PlanKeys
from sigdask.nightly.plan.lines import Key
from sigdask.nightly.plan.model import TestedLabels
from sigdask.options import HowPermuted, filled_permuted

Complain = Callable[[Key, str], None]


def tested(keys: PlanKeys, folder: Path, complain: Complain) -> tuple[TestedLabels, ...]:
    """Return the tests of independence of a plan; what is wrong is complained about and left out."""
    found, names = [], [*(own.name for own in keys.test_set), *(own.name for own in keys.rankings)]
    for number, own in enumerate(keys.independence):
        key: Key = ("independence", number)
        if own.name in names:
            complain((*key, "name"), f"found {shown(own.name)} twice, expected a name of its own")
        names.append(own.name)
        sources = _sources(own, folder, partial(complain, (*key, "labels")))
        try:
            gold = None if own.gold is None else paths.existing(own.gold, folder)
            groups = None if own.groups is None else paths.existing(own.groups, folder)
            how = filled_permuted(
                HowPermuted(
                    alternative=own.alternative, method=own.method, adjust=own.adjust,
                    trials=own.trials or keys.trials, seed=keys.seed,
                    alpha=keys.alpha, second_run=keys.second_run,
                )
            )  # fmt: skip
            options = _options(own, groups)
        except InputError as error:
            complain(key, str(error))
            continue
        found.append(TestedLabels(own.name, sources, gold, own.format, options, own.metrics, own.within, how))
    return tuple(found)


def _sources(own: IndependenceKeys, folder: Path, complain: Callable[[str], None]) -> tuple[Source, ...]:
    found = []
    for source in paths.sources(own.labels, folder, own.format):
        if isinstance(source, InputError):
            complain(str(source))
        else:
            found.append(source)
    return tuple(found)


def _options(own: IndependenceKeys, groups: Path | None) -> Options:
    return Options(
        id_column=own.id,
        gold_column=own.gold_column,
        prediction_column=own.prediction_column,
        groups=() if own.within is None else (own.within,),
        ignore=own.ignore or (),
        label_map=tuple((own.map or {}).items()),
        align=own.align,
        group_file=groups,
        most_unpacked=own.most_unpacked,
        name=own.name,
        metrics=own.metrics,
    )
