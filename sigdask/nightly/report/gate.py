"""A gate's verdict as text, as JSON for the run's record, and as JUnit XML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree as ET

from sigdask.nightly.gate import GateVerdict, NotWorse, RuleFinding, RuleVerdict
from sigdask.nightly.gate.rules import POWER
from sigdask.statistics.rounding import format_lower_limit, format_upper_limit
from sigdask.text import format_count, format_list, make_printable

MOST_PASSED = 5
"""Comparisons that passed which are listed, of a rule that passed; failures all are."""

MOST_KEPT = 50
"""Comparisons of a rule that a run's record keeps, failures first."""


def render(verdict: GateVerdict) -> str:
    """Return the verdict as text, failures and their reasons first."""
    lines = [
        f"gate: {f'passed{_describe_limits(verdict)}' if verdict.passed else f'FAILED: {_describe_failures(verdict)}'}"
    ]
    for rule in sorted(verdict.rules, key=lambda rule: rule.passed):
        lines += _describe_rule(rule)
    return make_printable("\n".join(lines), keep="\n")


def _describe_limits(verdict: GateVerdict) -> str:
    """Return a clause on what limits the meaning of a passed gate, such as comparisons that could not fail."""
    n_blind, n_gone, n_doubtful = (
        sum(getattr(rule, name) for rule in verdict.rules) for name in ("n_blind", "n_gone", "n_doubtful")
    )
    doubts = [
        *([f"{_count_comparisons(n_blind)} could not fail"] if n_blind else []),
        *([f"{_count_comparisons(n_gone)} of the run before {'is' if n_gone == 1 else 'are'} gone"] if n_gone else []),
        *([f"p of {_count_comparisons(n_doubtful)} may be too small"] if n_doubtful else []),
    ]
    repeats = {rule.repeats for rule in verdict.rules} - {None}
    repeat_text = f", on the outputs of run {min(filter(None, repeats))}" if len(repeats) == 1 else ""
    return repeat_text + (f", but {', and '.join(doubts)} (see the notes)" if doubts else "")


def _count_comparisons(n: int) -> str:
    return format_count(n, "comparison")


def _describe_failures(verdict: GateVerdict) -> str:
    """Return text that names failed comparisons and the notes of rules that failed as a whole."""
    failed = [rule for rule in verdict.rules if not rule.passed]
    failed_names = [_describe_comparison(finding) for rule in failed for finding in rule.findings if not finding.passed]
    reasons = [note for rule in failed if _fails_as_a_whole(rule) for note in rule.notes]
    known_text = "" if verdict.is_new else "; no new alarm: the outputs are those that failed before"
    return (
        format_list([*dict.fromkeys([*failed_names, *reasons])], limit=3, separator="; ") or "see below"
    ) + known_text


def _describe_comparison(finding: RuleFinding) -> str:
    test_set, subset, _, _, metric = finding.key
    scope = " ".join(filter(None, (test_set, subset)))
    return f"{finding.system} against {finding.baseline} by {metric}{f' on {scope}' if scope else ''}"


def _describe_rule(rule: RuleVerdict) -> Iterator[str]:
    failed = [f for f in rule.findings if not f.passed]
    passed = [f for f in rule.findings if f.passed]
    n_shown = MOST_PASSED if rule.passed else 0
    yield f"  {'passed' if rule.passed else 'FAILED'}  {rule.name}, level {format_lower_limit(rule.level)}"
    for finding in failed + passed[:n_shown]:
        yield f"      {'' if finding.passed else '! '}{finding.text}"
    if len(passed) > n_shown:
        largest = _describe_largest(passed[n_shown:]) if isinstance(rule.rule, NotWorse) else ""
        yield f"      and {len(passed) - n_shown:,} more that passed{largest}"
    for note in rule.notes:
        yield f"      note: {note}"
    yield f"      false alarms expected a year: {format_alarms(rule)}"


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
        if rule["passed"] and "level" in rule:
            lines += [f"  passed  {rule['name']}, level {format_lower_limit(rule['level'])}"]
        if not rule["passed"]:
            failed = [finding["text"] for finding in rule["findings"] if not finding["passed"]]
            n_more = rule["n_failed"] - len(failed)
            level = f", level {format_lower_limit(rule['level'])}" if "level" in rule else ""
            lines += [f"  FAILED  {rule['name']}{level}", *(f"      ! {text}" for text in failed)]
            lines += [f"      and {n_more:,} more that failed"] if n_more else []
            lines += [f"      note: {note}" for note in rule["notes"]]
    return make_printable("\n".join(lines), keep="\n")


def _build_rule_record(rule: RuleVerdict) -> dict[str, Any]:
    failed = [f for f in rule.findings if not f.passed]
    passed = [f for f in rule.findings if f.passed]
    return {
        "name": rule.name,
        "passed": rule.passed,
        "p_value": rule.p_value,
        "level": rule.level,
        "least_level": rule.least_level,
        "fdr": rule.fdr,
        "repeats": rule.repeats,
        "n_blind": rule.n_blind,
        "n_gone": rule.n_gone,
        "n_doubtful": rule.n_doubtful,
        "alarms_per_year": rule.alarms_per_year,
        "alarms": format_alarms(rule),
        "notes": list(rule.notes),
        "n_failed": len(failed),
        "n_passed": len(passed),
        "findings": [
            {"key": list(f.key), "system": f.system, "baseline": f.baseline, "gain": f.gain, "p_value": f.p_value,
             "level": f.level, "passed": f.passed, "since": f.since, "text": f.text}
            for f in (failed + passed)[:MOST_KEPT]
        ],
    }  # fmt: skip


def format_levels(verdict: Mapping[str, Any]) -> str:
    """Return the levels of a night's rules as text, or "" where its record has none."""
    return ", ".join(dict.fromkeys(format_lower_limit(rule["level"]) for rule in verdict["rules"] if "level" in rule))


def is_alarm(verdict: Mapping[str, Any]) -> bool:
    """Return whether a recorded gate fails for a reason that no earlier run with the same outputs had."""
    failed = [rule for rule in verdict["rules"] if not rule["passed"]]
    findings = [finding for rule in failed for finding in rule["findings"] if not finding["passed"]]
    return bool(failed) and (not findings or any(finding.get("since") is None for finding in findings))


def iter_reasons(verdict: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield rule name and text of each failure in a recorded verdict."""
    for rule in verdict["rules"]:
        if not rule["passed"]:
            failed = [f for f in rule["findings"] if not f["passed"]]
            for finding in failed:
                yield {"rule": rule["name"], "text": finding["text"]}
            if not failed:
                yield {"rule": rule["name"], "text": "; ".join(rule["notes"])}


def _describe_largest(findings: list[RuleFinding]) -> str:
    losses = [f.detectable for f in findings if f.detectable is not None]
    if not losses:
        return ""
    if math.isinf(max(losses)):
        return "; in some of them no difference could be detected"
    return f"; in each of them a loss of {format_upper_limit(max(losses))} would be detected with power {POWER:g}"


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
        What became of the rules.
    name : str
        The plan's name.
    """
    root = ET.Element("testsuites", _count_cases(verdict.rules, name))
    for rule in verdict.rules:
        suite = ET.SubElement(root, "testsuite", _count_cases([rule], rule.name))
        for finding in rule.findings:
            _add_case(suite, finding)
        if _fails_as_a_whole(rule):
            case = ET.SubElement(
                suite,
                "testcase",
                {"classname": make_printable(name, keep="\n"), "name": make_printable(rule.name, keep="\n")},
            )
            _add_failure(case, "; ".join(rule.notes))
        text = "\n".join([*rule.notes, f"false alarms expected a year: {format_alarms(rule)}"])
        ET.SubElement(suite, "system-out").text = make_printable(text, keep="\n")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _count_cases(rules: list[RuleVerdict] | tuple[RuleVerdict, ...], name: str) -> dict[str, str]:
    n_whole = sum(map(_fails_as_a_whole, rules))
    n_cases = n_whole + sum(len(rule.findings) for rule in rules)
    n_failures = n_whole + sum(not f.passed for rule in rules for f in rule.findings)
    return {"name": make_printable(name, keep="\n"), "tests": str(n_cases), "failures": str(n_failures), "errors": "0"}


def _fails_as_a_whole(rule: RuleVerdict) -> bool:
    """Return whether a rule fails although none of its comparisons does."""
    return not rule.passed and all(finding.passed for finding in rule.findings)


def _add_case(suite: ET.Element, finding: RuleFinding) -> None:
    test_set, subset, _, _, metric = finding.key
    scope = test_set + (f".{subset}" if subset is not None else "")
    title = f"{finding.system} against {finding.baseline}, {metric}"
    case = ET.SubElement(
        suite, "testcase", {"classname": make_printable(scope, keep="\n"), "name": make_printable(title, keep="\n")}
    )
    if finding.passed:
        ET.SubElement(case, "system-out").text = make_printable(finding.text, keep="\n")
    else:
        _add_failure(case, finding.text)


def _add_failure(case: ET.Element, text: str) -> None:
    ET.SubElement(case, "failure", {"message": make_printable(text, keep="\n"), "type": "gate"}).text = make_printable(
        text, keep="\n"
    )
