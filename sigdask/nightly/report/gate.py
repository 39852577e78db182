"""A gate's verdict as text, as JSON for the run's record, and as JUnit XML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any
from xml.etree import ElementTree as ET

from sigdask.nightly.gate.rules import GateVerdict, NotWorse, RuleVerdict
from sigdask.nightly.store.runs import RuleRecord
from sigdask.statistics.rounding import format_lower_limit, format_upper_limit
from sigdask.text import format_count, format_list, make_printable, to_plain

MAX_PASSED = 5
"""Maximum number of comparisons that are listed of a rule that passed."""

MAX_KEPT = 50
"""Maximum number of comparisons of a rule whose texts are in a run's record, failures first."""


def render(verdict: GateVerdict) -> str:
    """Return the verdict as text, failures and their reasons first."""
    return format_record(build_record(verdict))


def format_record(record: Mapping[str, Any]) -> str:
    """Return a recorded verdict as text, failures and their reasons first.

    Parameters
    ----------
    record : mapping
        As `build_record` makes it.
    """
    rules = record["rules"]
    outcome = f"passed{_describe_limits(rules)}" if record["passed"] else f"FAILED: {_describe_failures(record)}"
    lines = [line for rule in sorted(rules, key=lambda rule: rule["passed"]) for line in _describe_rule(rule)]
    return _clean("\n".join([f"gate: {outcome}", *lines]))


def _describe_limits(rules: Sequence[Mapping[str, Any]]) -> str:
    """Return a clause on what limits the meaning of a passed gate, such as comparisons that could not fail."""
    clauses = (
        ("n_contested", "{} contested: one of two tests shows a loss"),
        ("n_blind", "{} could not fail, for lack of data"),
        ("n_gone", "{} gone since the previous run"),
        ("n_doubtful", "p of {} may be too small"),
    )
    numbers = ((sum(rule[name] for rule in rules), text) for name, text in clauses)
    doubts = [text.format(format_count(n, "comparison")) for n, text in numbers if n]
    return f", but {', and '.join(doubts)} (see below)" if doubts else ""


def _clean(text: str) -> str:
    return make_printable(text, keep="\n")


def _describe_failures(record: Mapping[str, Any]) -> str:
    """Return text that names failed comparisons and the notes of rules that failed as a whole."""
    failed = [rule for rule in record["rules"] if not rule["passed"]]
    names = [_describe_comparison(finding) for rule in failed for finding in _list_failures(rule)]
    reasons = [note for rule in failed if not rule["n_failed"] for note in rule["notes"]]
    return format_list([*dict.fromkeys([*names, *reasons])], limit=3, separator="; ") or "see below"


def _describe_comparison(finding: Mapping[str, Any]) -> str:
    test_set, subset, _, _, metric = finding["key"]
    scope = " ".join(filter(None, (test_set, subset)))
    return f"{finding['system']} against {finding['baseline']} by {metric}{f' on {scope}' if scope else ''}"


def _describe_rule(rule: Mapping[str, Any]) -> Iterator[str]:
    failed, passed = _list_failures(rule), [finding for finding in rule["findings"] if finding["passed"]]
    shown = passed[: max(MAX_PASSED if rule["passed"] else 0, rule["n_contested"])]
    yield f"  {'passed' if rule['passed'] else 'FAILED'}  {_format_title(rule['name'], rule['level'])}"
    yield from (f"      ! {finding['text']}" for finding in failed)
    if n_more := rule["n_failed"] - len(failed):
        yield f"      ! and {n_more:,} more that failed"
    yield from (f"      {finding['text']}" for finding in shown)
    if n_more := rule["n_passed"] - len(shown):
        yield f"      {n_more:,} other comparison{' passes' if n_more == 1 else 's pass'}"
    yield from (f"      note: {note}" for note in rule["notes"])
    yield f"      false alarms expected a year: {rule['alarms']}"


def _format_title(name: str, level: float) -> str:
    return f"{name}, level {format_lower_limit(level)}"


def build_record(verdict: GateVerdict) -> dict[str, Any]:
    """Return the verdict as JSON values for the run's record, each rule with its first comparisons."""
    rules = [_build_rule_record(rule) for rule in verdict.rules]
    return {"passed": verdict.passed, "rules": to_plain(rules, exact=True)}


def _build_rule_record(rule: RuleVerdict) -> RuleRecord:
    return RuleRecord(
        **{f.name: getattr(rule, f.name) for f in fields(rule)} | {"findings": rule.findings[:MAX_KEPT]},
        alarms=format_alarms(rule),
        n_failed=len(rule.failures),
        n_passed=len(rule.findings) - len(rule.failures),
        further_failures=tuple(finding.key for finding in rule.failures[MAX_KEPT:]),
    )


def format_levels(verdict: Mapping[str, Any]) -> str:
    """Return the levels of a night's rules as text."""
    return ", ".join(dict.fromkeys(format_lower_limit(rule["level"]) for rule in verdict["rules"]))


def _list_failures(rule: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [finding for finding in rule["findings"] if not finding["passed"]]


def list_findings(rule: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the comparisons in a rule's record, with all failures; those after the first ones have no text."""
    return [*rule["findings"], *({"key": key, "passed": False} for key in rule["further_failures"])]


def list_failing_sets(verdict: Mapping[str, Any] | None) -> set[str]:
    """Return the test sets of the comparisons that failed in a recorded verdict, if there is one."""
    findings = [finding for rule in (verdict or {"rules": ()})["rules"] for finding in list_findings(rule)]
    return {finding["key"][0] for finding in findings if not finding["passed"]}


def iter_reasons(verdict: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield rule name and text of each failure in a recorded verdict."""
    for rule in verdict["rules"]:
        if not rule["passed"]:
            texts = [finding["text"] for finding in _list_failures(rule)] or ["; ".join(rule["notes"])]
            yield from ({"rule": rule["name"], "text": text} for text in texts)


def list_first_reasons(verdict: Mapping[str, Any] | None, limit: int) -> list[str]:
    """Return the texts of the first failures in a recorded verdict, if there is one, and how many more there are."""
    texts = [reason["text"] for reason in iter_reasons(verdict)] if verdict else []
    n_more = max(sum(rule.get("n_failed", 0) for rule in verdict["rules"]) if verdict else 0, len(texts)) - limit
    return [*texts[:limit], *([f"and {n_more:,} more that failed"] if n_more > 0 else [])]


def format_alarms(rule: RuleVerdict) -> str:
    """Return a rule's expected number of false alarms a year as text; of a `not-worse` rule it is an upper bound."""
    n = float(f"{rule.alarms_per_year:.12g}")  # without errors of floating point, which rounding up would show
    if isinstance(rule.rule, NotWorse):
        return f"at most {format_upper_limit(n, 2) if n < 100 else f'{math.ceil(n):,}'}"
    return f"{n:.2g}" if n < 100 else f"{n:,.0f}"


def render_junit(verdict: GateVerdict, name: str) -> str:
    """Return JUnit XML with a suite for each rule and a case for each comparison.

    Parameters
    ----------
    verdict : GateVerdict
        Verdict of the gate.
    name : str
        Name of the plan.
    """
    root = ET.Element("testsuites", _count_cases(verdict.rules, name))
    for rule in verdict.rules:
        suite = ET.SubElement(root, "testsuite", _count_cases([rule], _format_title(rule.name, rule.level)))
        for finding in rule.findings:
            test_set, subset, _, _, metric = finding.key
            scope = test_set + (f".{subset}" if subset is not None else "")
            title = f"{finding.system} against {finding.baseline}, {metric}"
            _add_case(suite, scope, title, finding.text, passed=finding.passed)
        if _fails_as_a_whole(rule):
            _add_case(suite, name, rule.name, "; ".join(rule.notes), passed=False)
        text = "\n".join([*rule.notes, f"false alarms expected a year: {format_alarms(rule)}"])
        ET.SubElement(suite, "system-out").text = _clean(text)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _count_cases(rules: Sequence[RuleVerdict], name: str) -> dict[str, str]:
    n_whole = sum(map(_fails_as_a_whole, rules))
    n_cases = n_whole + sum(len(rule.findings) for rule in rules)
    n_failures = n_whole + sum(len(rule.failures) for rule in rules)
    return {"name": _clean(name), "tests": str(n_cases), "failures": str(n_failures), "errors": "0"}


def _fails_as_a_whole(rule: RuleVerdict) -> bool:
    """Return whether a rule fails although none of its comparisons does."""
    return not rule.passed and not rule.failures


def _add_case(suite: ET.Element, scope: str, title: str, text: str, *, passed: bool) -> None:
    case = ET.SubElement(suite, "testcase", {"classname": _clean(scope), "name": _clean(title)})
    if passed:
        ET.SubElement(case, "system-out").text = _clean(text)
    else:
        ET.SubElement(case, "failure", {"message": _clean(text), "type": "gate"}).text = _clean(text)
