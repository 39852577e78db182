"""A gate's verdict as text, as JSON for the run's record, and as JUnit XML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from sigdask.nightly.gate.rules import (
    POWER,
    GateVerdict,
    NotWorse,
    RuleFinding,
    RuleVerdict,
    find_largest_losses,
    format_losses,
    is_new_failure,
)
from sigdask.statistics.rounding import format_lower_limit, format_upper_limit
from sigdask.text import format_count, format_list, make_printable

MAX_PASSED = 5
"""Maximum number of comparisons that are listed of a rule that passed. All failures are listed."""

MAX_KEPT = 50
"""Maximum number of comparisons of a rule whose texts are in a run's record, failures first."""

RULE_KEYS = ("name", "passed", "p_value", "level", "n_blind", "n_contested", "n_gone", "n_doubtful", "alarms_per_year")
FINDING_KEYS = (
    "system", "baseline", "gain", "p_value", "p_equal_scores", "level", "passed", "is_contested", "since", "text",
)  # fmt: skip
"""Keys of each comparison in a run's record."""


def render(verdict: GateVerdict) -> str:
    """Return the verdict as text, failures and their reasons first."""
    outcome = f"passed{_describe_limits(verdict)}" if verdict.passed else f"FAILED: {_describe_failures(verdict)}"
    rules = sorted(verdict.rules, key=lambda rule: rule.passed)
    return _clean("\n".join([f"gate: {outcome}", *(line for rule in rules for line in _describe_rule(rule))]))


def _describe_limits(verdict: GateVerdict) -> str:
    """Return a clause on what limits the meaning of a passed gate, such as comparisons that could not fail."""
    n_gone = sum(rule.n_gone for rule in verdict.rules)
    clauses = (
        (sum(rule.n_contested for rule in verdict.rules), "{} contested: one of two tests shows a loss"),
        (sum(rule.n_blind for rule in verdict.rules), "{} could not fail, for lack of data"),
        (n_gone, f"{{}} of the previous run {'is' if n_gone == 1 else 'are'} gone"),
        (sum(rule.n_doubtful for rule in verdict.rules), "p of {} may be too small"),
    )
    doubts = [text.format(format_count(n, "comparison")) for n, text in clauses if n]
    return f", but {', and '.join(doubts)} (see below)" if doubts else ""


def _clean(text: str) -> str:
    return make_printable(text, keep="\n")


def _describe_failures(verdict: GateVerdict) -> str:
    """Return text that names failed comparisons and the notes of rules that failed as a whole."""
    failed = [rule for rule in verdict.rules if not rule.passed]
    failed_names = [_describe_comparison(finding) for rule in failed for finding in rule.failures]
    reasons = [note for rule in failed if _fails_as_a_whole(rule) for note in rule.notes]
    names = format_list([*dict.fromkeys([*failed_names, *reasons])], limit=3, separator="; ") or "see below"
    return names + ("" if verdict.is_new else "; no new alarm: the same outputs failed before")


def _describe_comparison(finding: RuleFinding) -> str:
    test_set, subset, _, _, metric = finding.key
    scope = " ".join(filter(None, (test_set, subset)))
    return f"{finding.system} against {finding.baseline} by {metric}{f' on {scope}' if scope else ''}"


def _describe_rule(rule: RuleVerdict) -> Iterator[str]:
    passed = [f for f in rule.findings if f.passed]
    n_shown = max(MAX_PASSED if rule.passed else 0, rule.n_contested)
    yield f"  {'passed' if rule.passed else 'FAILED'}  {_format_title(rule.name, rule.level)}"
    for finding in [*rule.failures, *passed[:n_shown]]:
        yield f"      {'' if finding.passed else '! '}{finding.text}"
    if len(passed) > n_shown:
        n_more = len(passed) - n_shown
        largest = _describe_largest(passed[n_shown:]) if isinstance(rule.rule, NotWorse) else ""
        yield f"      {n_more:,} other comparison{' passes' if n_more == 1 else 's pass'}{largest}"
    for note in rule.notes:
        yield f"      note: {note}"
    yield f"      false alarms expected a year: {format_alarms(rule)}"


def _format_title(name: str, level: float) -> str:
    return f"{name}, level {format_lower_limit(level)}"


def build_record(verdict: GateVerdict) -> dict[str, Any]:
    """Return the verdict as JSON values for the run's record, each rule with its first comparisons."""
    return {"passed": verdict.passed, "rules": [_build_rule_record(rule) for rule in verdict.rules]}


def format_record(verdict_record: Mapping[str, Any]) -> str:
    """Return a recorded verdict as text: whether it passed, and what failed.

    Parameters
    ----------
    verdict_record : mapping
        As `build_record` makes it.
    """
    lines = [f"gate: {'passed' if verdict_record['passed'] else 'FAILED'}"]
    for rule in verdict_record["rules"]:
        lines += [f"  {'passed' if rule['passed'] else 'FAILED'}  {_format_title(rule['name'], rule['level'])}"]
        if not rule["passed"]:
            failed = [finding["text"] for finding in _list_failures(rule)]
            n_more = rule["n_failed"] - len(failed)
            lines += [f"      ! {text}" for text in failed]
            lines += [f"      and {n_more:,} more that failed"] if n_more else []
            lines += [f"      note: {note}" for note in rule["notes"]]
    return _clean("\n".join(lines))


def _build_rule_record(rule: RuleVerdict) -> dict[str, Any]:
    passed = [f for f in rule.findings if f.passed]
    further = [_build_finding_record(f, ("passed", "since")) for f in rule.failures[MAX_KEPT:]]
    return {
        **{name: getattr(rule, name) for name in RULE_KEYS},
        "alarms": format_alarms(rule),
        "notes": list(rule.notes),
        "n_failed": len(rule.failures),
        "n_passed": len(passed),
        "findings": [_build_finding_record(f, FINDING_KEYS) for f in (*rule.failures, *passed)[:MAX_KEPT]],
        **({"further_failures": further} if further else {}),
    }


def _build_finding_record(finding: RuleFinding, names: Sequence[str]) -> dict[str, Any]:
    return {"key": list(finding.key), **{name: getattr(finding, name) for name in names}}


def format_levels(verdict: Mapping[str, Any]) -> str:
    """Return the levels of a night's rules as text."""
    return ", ".join(dict.fromkeys(format_lower_limit(rule["level"]) for rule in verdict["rules"]))


def is_alarm(verdict: Mapping[str, Any]) -> bool:
    """Return whether a recorded gate fails for a reason that no earlier run with the same outputs had."""
    return any(
        is_new_failure([finding.get("since") for finding in list_findings(rule) if not finding["passed"]])
        for rule in verdict["rules"]
        if not rule["passed"]
    )


def _list_failures(rule: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [finding for finding in rule["findings"] if not finding["passed"]]


def list_findings(rule: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the comparisons in a rule's record, with all failures; those after the first ones have no text."""
    return [*rule.get("findings", ()), *rule.get("further_failures", ())]


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


def _describe_largest(findings: list[RuleFinding]) -> str:
    losses = find_largest_losses(findings)
    if not losses:
        return ""
    if math.inf in losses.values():
        return ". In some of them no loss could be detected"
    detected = f"of {format_losses(losses)} would be detected with power {POWER:g}"
    return f". A loss {detected}" if len(findings) == 1 else f". In each of them a loss {detected}"


def format_alarms(rule: RuleVerdict) -> str:
    """Return a rule's expected number of false alarms a year as text; of a `not-worse` rule it is an upper bound."""
    n = rule.alarms_per_year
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
