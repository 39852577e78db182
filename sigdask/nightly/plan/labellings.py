"""Build the tests of independence of a plan, which compare labellings with a reference, from its keys."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats import Options, Source
from sigdask.nightly.plan import paths
from sigdask.nightly.plan.errors import format_value
from sigdask.nightly.plan.keys import IndependenceKeys, PlanKeys
from sigdask.nightly.plan.lines import PlanKey
from sigdask.nightly.plan.model import TestedLabels
from sigdask.options import IndependenceOptions, fill_permutation_options

Complain = Callable[[PlanKey, str], None]


def build_independence_tests(keys: PlanKeys, folder: Path, complain: Complain) -> tuple[TestedLabels, ...]:
    """Return the tests of independence of a plan; invalid ones are reported and left out."""
    tests, names = [], [*(entry.name for entry in keys.test_set), *(entry.name for entry in keys.rankings)]
    for number, entry in enumerate(keys.independence):
        key: PlanKey = ("independence", number)
        if entry.name in names:
            complain((*key, "name"), f"found {format_value(entry.name)} twice, expected a name of its own")
        names.append(entry.name)
        sources = _find_sources(entry, folder, partial(complain, (*key, "labels")))
        try:
            gold = None if entry.gold is None else paths.resolve_existing(entry.gold, folder)
            groups = None if entry.groups is None else paths.resolve_existing(entry.groups, folder)
            settings = fill_permutation_options(
                IndependenceOptions(
                    alternative=entry.alternative, method=entry.method, adjust=entry.adjust,
                    trials=entry.trials or keys.trials, seed=keys.seed,
                    alpha=keys.alpha, second_run=keys.second_run,
                )
            )  # fmt: skip
            options = _build_options(entry, groups)
        except InputError as error:
            complain(key, str(error))
            continue
        tests.append(
            TestedLabels(entry.name, sources, gold, entry.format, options, entry.metrics, entry.within, settings)
        )
    return tuple(tests)


def _find_sources(entry: IndependenceKeys, folder: Path, complain: Callable[[str], None]) -> tuple[Source, ...]:
    found_sources = []
    for source in paths.find_sources(entry.labels, folder, entry.format):
        if isinstance(source, InputError):
            complain(str(source))
        else:
            found_sources.append(source)
    return tuple(found_sources)


def _build_options(entry: IndependenceKeys, groups: Path | None) -> Options:
    return Options(
        id_column=entry.id,
        gold_column=entry.gold_column,
        prediction_column=entry.prediction_column,
        groups=() if entry.within is None else (entry.within,),
        ignore=entry.ignore or (),
        label_map=tuple((entry.map or {}).items()),
        align=entry.align,
        group_file=groups,
        most_unpacked=entry.most_unpacked,
        name=entry.name,
        metrics=entry.metrics,
    )
