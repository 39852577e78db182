"""Keys of a plan held against each other and against what the program knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sigdask import formats, metrics
from sigdask.analysis.comparison.stopping.compatibility import SHARED
from sigdask.counts.checks import canonical
from sigdask.errors import InputError
from sigdask.io import addresses
from sigdask.nightly.gate import NotWorse, Rule
from sigdask.nightly.plan.errors import nearest, shown
from sigdask.nightly.plan.keys import TestSetKeys
from sigdask.nightly.plan.lines import Key
from sigdask.nightly.plan.model import Plan, TestSet
from sigdask.statistics.stopping import ConfidenceSequence

Complain = Callable[[Key, str], None]


def check_comparisons(found: TestSet, own: TestSetKeys, key: Key, complain: Complain) -> None:
    """Check what one test set asks for, as far as that can be known without its data."""
    _check_format(found.format, (*key, "format"), complain)
    place: Key = (*key, "metrics") if own.metrics else ("metrics",)
    for name in found.metrics:
        _check_metric(name, place, complain)
    for k, name in enumerate(found.metrics):
        if name.casefold() in map(str.casefold, found.metrics[:k]):
            complain(place, f"{shown(name)} stands twice")
    _check_pairs(found, (*key, "pairs") if own.pairs else ("pairs",), complain)


def _check_format(written: str, key: Key, complain: Complain) -> None:
    try:
        if formats.is_address(written):
            addresses.check(written, "format")
            return
        name, _ = formats.parse_format(written)
    except InputError as error:
        complain(key, str(error))
        return
    known = ["auto", *formats.FORMATS]
    if name not in known:
        complain(key, f"found {shown(name)}, expected a format; {nearest(name, known)}")


def _check_metric(name: str, key: Key, complain: Complain) -> None:
    """Check what is known of a metric before the data are read: the form of its name."""
    try:
        metrics.check_name(name)
    except InputError as error:
        complain(key, str(error))


def _check_pairs(found: TestSet, key: Key, complain: Complain) -> None:
    named = [source.name for source in found.sources if source.name is not None]
    systems = list(dict.fromkeys(named))
    # one file may hold several systems, under names of its own
    known = set(systems) if len(named) == len(found.sources) and len(systems) > 1 else None
    asked = [name for pair in found.pairs or () for name in pair] + [found.baseline or ""]
    for name in dict.fromkeys(filter(None, asked)):
        if known is not None and name not in known:
            hint = nearest(name, systems, "systems")
            complain(key, f"no system {shown(name)} on test set {shown(found.name)}; {hint}")
    for a, b in found.pairs or ():
        if a == b:
            complain(key, f"{shown(a)} is paired with itself")
    for pair in _twice([tuple(sorted(pair)) for pair in found.pairs or ()]):
        complain(key, f"{shown(pair[0])} and {shown(pair[1])} are paired twice")


def check_across(plan: Plan, complain: Complain) -> None:
    """Check keys that must fit each other."""
    seen: dict[bytes, int] = {}
    for number, test_set in enumerate(plan.test_sets):
        before = seen.setdefault(canonical(test_set.name), number)
        if before != number:
            complain(("test_set", number, "name"), f"{shown(test_set.name)} is the name of test_set[{before}] as well")
    _check_adjustment(plan, complain)
    _check_outputs(plan, complain)
    for number, rule in enumerate(plan.gate.rules if plan.gate else ()):
        _check_rule(rule, plan, ("gate", "rules", number), complain)


def _check_adjustment(plan: Plan, complain: Complain) -> None:
    if plan.adjust in SHARED and plan.stopping is not None:
        complain(
            ("stopping",),
            f"adjust = {shown(plan.adjust)} needs the same number of trials of every comparison; "
            "leave [stopping] out, or choose holm, hochberg, bh or by",
        )
    asked = {(t.alternative, t.trials) for t in plan.test_sets}
    if plan.adjust in SHARED and plan.family == "plan" and len(asked) > 1:
        complain(
            ("family",),
            f"adjust = {shown(plan.adjust)} over the whole plan needs one alternative and one number of trials; found "
            + ", ".join(sorted(f"{a}, {n or 'default'} trials" for a, n in asked)),
        )
    sides = sorted({a for a, _ in asked})
    if plan.adjust is None and plan.family == "plan" and len(sides) > 1:
        complain(
            ("family",),
            f"the default adjustment over the whole plan needs one alternative; found {', '.join(sides)}: choose one, "
            'or adjust = "holm"',
        )
    if isinstance(plan.stopping, ConfidenceSequence) and plan.adjust not in {None, "none"}:
        complain(
            ("stopping", "rule"),
            f'"confidence-sequence" gives decisions and no p-values for adjust = {shown(plan.adjust)}; '
            'expected "besag-clifford", or adjust = "none"',
        )


def _check_outputs(plan: Plan, complain: Complain) -> None:
    """Refuse two outputs in one file, and an output over an input."""
    taken: dict[Path, str] = {plan.path: "the plan itself"}
    for test_set in plan.test_sets:
        taken.update(dict.fromkeys(test_set.files(), f"an input of test set {shown(test_set.name)}"))
    for key, path in _outputs(plan):
        if path in taken:
            complain(key, f"{path} is {taken[path]}; expected a file of its own")
        taken[path] = f"what {'.'.join(map(str, key))} writes"


def _outputs(plan: Plan) -> Iterator[tuple[Key, Path]]:
    written: list[tuple[Key, Path | None]] = [(("report", name), path) for name, path in plan.report.files.items()]
    if plan.gate is not None:
        written += [(("gate", "junit"), plan.gate.junit), (("gate", "json"), plan.gate.json)]
    if "://" not in plan.store:
        written.append((("store",), Path(plan.store)))
    yield from ((key, path) for key, path in written if path is not None)


def _check_rule(rule: Rule, plan: Plan, key: Key, complain: Complain) -> None:
    names = [test_set.name for test_set in plan.test_sets]
    for name in rule.test_sets:
        if name not in names:
            complain((*key, "test_sets"), f"no test set {shown(name)}; {nearest(name, names, 'test sets')}")
    covered = [t for t in plan.test_sets if not rule.test_sets or t.name in rule.test_sets]
    asked = sorted({name for t in covered for name in t.metrics})
    for name in rule.metrics:
        if all(t.metrics for t in covered) and name.casefold() not in map(str.casefold, asked):
            complain((*key, "metrics"), f"metric {shown(name)} is not counted there; {nearest(name, asked, 'metrics')}")
    for test_set in covered:
        _check_baseline(rule, test_set, key, complain)
    if isinstance(rule, NotWorse):
        if rule.adjust == "plan" and plan.adjust == "none":
            complain((*key, "adjust"), 'found "plan", and the plan has adjust = "none"; expected "holm" or "none"')
        if isinstance(plan.stopping, ConfidenceSequence):
            complain(key, 'needs p-values, and [stopping] rule = "confidence-sequence" gives none')


def _check_baseline(rule: Rule, test_set: TestSet, key: Key, complain: Complain) -> None:
    baseline = rule.baseline or test_set.baseline
    if baseline is None:
        complain(
            key,
            f"which system of test set {shown(test_set.name)} is the baseline? "
            "Give baseline = NAME here or pairs = { baseline = NAME }",
        )
    elif test_set.baseline not in {None, baseline}:
        complain(
            (*key, "baseline"),
            f"found {shown(baseline)}, and test set {shown(test_set.name)} is compared with "
            f"{shown(test_set.baseline)} alone",
        )
    elif test_set.pairs is not None and not any(baseline in pair for pair in test_set.pairs):
        names = sorted({name for pair in test_set.pairs for name in pair})
        hint = nearest(baseline, names, "expected one of")
        complain((*key, "baseline"), f"no pair of test set {shown(test_set.name)} has {shown(baseline)}; {hint}")


def _twice(names: Sequence[Any]) -> list[Any]:
    return [name for name, number in Counter(names).items() if number > 1]
