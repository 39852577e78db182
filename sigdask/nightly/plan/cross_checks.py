"""Check keys of a plan against each other and against known formats and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path

from sigdask import formats, metrics
from sigdask.counts.checks import canonicalize
from sigdask.errors import InputError
from sigdask.io import addresses
from sigdask.nightly.gate.rules import Rule
from sigdask.nightly.plan.errors import MAX_SHOWN, PlanKey, format_value, suggest_nearest
from sigdask.nightly.plan.model import Plan
from sigdask.nightly.test_sets import TestSet

Complain = Callable[[PlanKey, str], None]


def check_comparisons(test_set: TestSet, own: Container[str], key: PlanKey, complain: Complain) -> None:
    """Check the formats, metrics and pairs of one test set without reading its data; `own` holds its own options."""
    _check_format(test_set.format, (*key, "format"), complain)
    metrics_key: PlanKey = (*key, "metrics") if "metrics" in own else ("metrics",)
    for name in test_set.metrics:
        try:
            metrics.check_name(name)
        except InputError as error:
            complain(metrics_key, str(error))
    folded_names: set[str] = set()
    for name in test_set.metrics:
        if name.casefold() in folded_names:
            complain(metrics_key, f"{format_value(name)} stands twice")
        folded_names.add(name.casefold())
    if "pairs" in own:
        check_pairs(test_set.comparison["pairs"] or (), (*key, "pairs"), complain)
    _check_names_in_pairs(test_set, (*key, "pairs") if "pairs" in own else ("pairs",), complain)


def _check_format(text: str, key: PlanKey, complain: Complain) -> None:
    try:
        if formats.is_address(text):
            addresses.check_address(text, "format")
            return
        name, _ = formats.parse_format(text)
    except InputError as error:
        complain(key, str(error))
        return
    choices = ["auto", *formats.FORMATS]
    if name not in choices:
        complain(key, f"found {format_value(name)}, expected a format; {suggest_nearest(name, choices)}")


def check_pairs(pairs: Sequence[tuple[str, str]], key: PlanKey, complain: Complain) -> None:
    """Check pairs alone: of a test set, or, once for all test sets, those at the top of a plan."""
    for a, b in pairs:
        if a == b:
            complain(key, f"{format_value(a)} is paired with itself")
    for (a, b), number in Counter(tuple(sorted(pair)) for pair in pairs).items():
        if number > 1:
            complain(key, f"{format_value(a)} and {format_value(b)} are paired twice")


def _check_names_in_pairs(test_set: TestSet, key: PlanKey, complain: Complain) -> None:
    source_names = [source.name for source in test_set.sources if source.name is not None]
    systems = dict.fromkeys(source_names)
    if len(source_names) != len(test_set.sources) or len(systems) < 2:
        return  # one file may hold several systems, with names of their own
    names = [name for pair in test_set.comparison["pairs"] or () for name in pair]
    for name in dict.fromkeys([*names, test_set.comparison["baseline"] or ""]):
        if name and name not in systems:
            hint = suggest_nearest(name, [*systems], "systems")
            complain(key, f"no system {format_value(name)} on test set {format_value(test_set.name)}; {hint}")


def check_plan(plan: Plan, complain: Complain) -> None:
    """Complain about keys of a plan that contradict each other."""
    numbers: dict[bytes, int] = {}
    for number, test_set in enumerate(plan.test_sets):
        first_number = numbers.setdefault(canonicalize(test_set.name), number)
        if first_number != number:
            complain(
                ("test_set", number, "name"),
                f"{format_value(test_set.name)} is already the name of test_set[{first_number}]; choose another",
            )
    uses = list_inputs(plan)
    for key, path in _iter_outputs(plan):
        if path in uses:
            complain(key, f"{path} is {uses[path]}; expected another file")
        uses[path] = f"what {'.'.join(map(str, key))} writes"
    for number, rule in enumerate(plan.gate.rules if plan.gate else ()):
        _check_rule(rule, plan, ("gate", "rules", number), complain)


def list_inputs(plan: Plan) -> dict[Path, str]:
    """Return the use of each file that a plan reads."""
    uses: dict[Path, str] = {plan.path: "the plan itself"}
    for test_set in plan.test_sets:
        uses.update(dict.fromkeys(test_set.list_files(), f"an input of test set {format_value(test_set.name)}"))
    return uses


def list_files(plan: Plan) -> dict[Path, str]:
    """Return the role of each file of a plan (input, store, file of the gate)."""
    written = {
        path: f"what {'.'.join(map(str, key))} of the plan writes"
        for key, path in _iter_outputs(plan)
        if key[0] != "report"
    }
    return {**list_inputs(plan), **written}


def _iter_outputs(plan: Plan) -> Iterator[tuple[PlanKey, Path]]:
    outputs: list[tuple[PlanKey, Path | None]] = [(("report", name), path) for name, path in plan.report.files.items()]
    if plan.gate is not None:
        outputs += [(("gate", "junit"), plan.gate.junit), (("gate", "json"), plan.gate.json)]
    if "://" not in plan.store:
        outputs.append((("store",), Path(plan.store)))
    yield from ((key, path) for key, path in outputs if path is not None)


def _check_rule(rule: Rule, plan: Plan, key: PlanKey, complain: Complain) -> None:
    names = {test_set.name: None for test_set in plan.test_sets}
    for number, name in enumerate(name for name in rule.test_sets if name not in names):
        hint = suggest_nearest(name, [*names], "test sets") if number < MAX_SHOWN else "there are others"
        complain((*key, "test_sets"), f"no test set {format_value(name)}; {hint}")
    covered_names = {*rule.test_sets} or names
    covered = [t for t in plan.test_sets if t.name in covered_names]
    if all(t.metrics for t in covered):
        check_rule_metrics(rule, {name for t in covered for name in t.metrics}, key, complain)
    for test_set in covered:
        _check_baseline(rule, test_set, key, complain)


def check_rule_metrics(rule: Rule, compared: Iterable[str], key: PlanKey, complain: Complain) -> None:
    """Complain about metrics of a rule that no test set of the rule is compared by."""
    names = sorted({*compared})
    for name in rule.metrics:
        if name.casefold() not in map(str.casefold, names):
            hint = suggest_nearest(name, names, "metrics")
            complain((*key, "metrics"), f"metric {format_value(name)} is not computed there; {hint}")


def _check_baseline(rule: Rule, test_set: TestSet, key: PlanKey, complain: Complain) -> None:
    only, pairs = test_set.comparison["baseline"], test_set.comparison["pairs"]
    baseline = rule.baseline or only
    if baseline is None:
        complain(
            key,
            f"which system of test set {format_value(test_set.name)} is the baseline? "
            "Give baseline = NAME here or pairs = { baseline = NAME }",
        )
    elif only not in {None, baseline}:
        complain(
            (*key, "baseline"),
            f"found {format_value(baseline)}, and test set {format_value(test_set.name)} is compared with "
            f"{format_value(test_set.comparison['baseline'])} alone",
        )
    elif pairs is not None and not any(baseline in pair for pair in pairs):
        names = sorted({name for pair in pairs for name in pair})
        hint = suggest_nearest(baseline, names, "expected one of")
        complain(
            (*key, "baseline"),
            f"no pair of test set {format_value(test_set.name)} has {format_value(baseline)}; {hint}",
        )
