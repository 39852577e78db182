"""A gate's verdict as text, and as JUnit XML for continuous integration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree as ET

from sigdask.nightly.gate import GateVerdict, NotWorse, RuleFinding, RuleVerdict
from sigdask.nightly.gate.rules import POWER
from sigdask.statistics.rounding import high_text, low_text
from sigdask.text import count_noun, listed, printable

MOST_PASSED = 5
"""Comparisons that passed which are listed, of a rule that passed; failures all are."""

MOST_KEPT = 50
"""Comparisons of a rule that a run's record keeps, failures first."""


def render(verdict: GateVerdict) -> str:
    """Return the verdict as text: what failed, and why, before all else."""
    lines = [f"gate: {f'passed{_unseen(verdict)}' if verdict.passed else f'FAILED: {_why(verdict)}'}"]
    for rule in sorted(verdict.rules, key=lambda rule: rule.passed):
        lines += _rule(rule)
    return printable("\n".join(lines), keep="\n")


def _unseen(verdict: GateVerdict) -> str:
    """Say what a reader must know beside a verdict that the gate passed."""
    n_blind, n_gone, n_doubtful = (
        sum(getattr(rule, name) for rule in verdict.rules) for name in ("n_blind", "n_gone", "n_doubtful")
    )
    said = [
        *([f"{_comparisons(n_blind)} could not fail"] if n_blind else []),
        *([f"{_comparisons(n_gone)} of the run before {'is' if n_gone == 1 else 'are'} gone"] if n_gone else []),
        *([f"p of {_comparisons(n_doubtful)} may be too small"] if n_doubtful else []),
    ]
    repeats = {rule.repeats for rule in verdict.rules} - {None}
    alike = f", on the outputs of run {min(filter(None, repeats))}" if len(repeats) == 1 else ""
    return alike + (f", but {', and '.join(said)} (see the notes)" if said else "")


def _comparisons(n: int) -> str:
    return count_noun(n, "comparison")


def _why(verdict: GateVerdict) -> str:
    """Name the comparisons for which a gate failed; of rules that failed as a whole the reason."""
    failed = [rule for rule in verdict.rules if not rule.passed]
    named = [_compared(finding) for rule in failed for finding in rule.findings if not finding.passed]
    reasons = [note for rule in failed if _fails_as_a_whole(rule) for note in rule.notes]
    known = "" if verdict.is_new else "; no new alarm: the outputs are those that failed before"
    return (listed([*dict.fromkeys([*named, *reasons])], most=3, between="; ") or "see below") + known


def _compared(finding: RuleFinding) -> str:
    test_set, subset, _, _, metric = finding.key
    where = " ".join(filter(None, (test_set, subset)))
    return f"{finding.system} against {finding.baseline} by {metric}{f' on {where}' if where else ''}"


def _rule(rule: RuleVerdict) -> Iterator[str]:
    failed = [f for f in rule.findings if not f.passed]
    passed = [f for f in rule.findings if f.passed]
    n_shown = MOST_PASSED if rule.passed else 0
    yield f"  {'passed' if rule.passed else 'FAILED'}  {rule.name}, level {low_text(rule.level)}"
    for finding in failed + passed[:n_shown]:
        yield f"      {'' if finding.passed else '! '}{finding.text}"
    if len(passed) > n_shown:
        largest = _largest(passed[n_shown:]) if isinstance(rule.rule, NotWorse) else ""
        yield f"      and {len(passed) - n_shown:,} more that passed{largest}"
    for note in rule.notes:
        yield f"      note: {note}"
    yield f"      false alarms expected a year: {alarms(rule)}"


def record(verdict: GateVerdict) -> dict[str, Any]:
    """Return what a run's record keeps of the verdict, as values of JSON: each rule with its first comparisons."""
    return {"passed": verdict.passed, "rules": [_recorded(rule) for rule in verdict.rules]}


def recorded_text(kept: Mapping[str, Any]) -> str:
    """Return a verdict as a run's record has it, as text: whether it passed, and what failed.

    Parameters
    ----------
    kept : mapping
        As `record` makes it.
    """
    lines = [f"gate: {'passed' if kept['passed'] else 'FAILED'}"]
    for rule in kept["rules"]:
        if rule["passed"] and "level" in rule:
            lines += [f"  passed  {rule['name']}, level {low_text(rule['level'])}"]
        if not rule["passed"]:
            failed = [finding["text"] for finding in rule["findings"] if not finding["passed"]]
            more = rule["n_failed"] - len(failed)
            level = f", level {low_text(rule['level'])}" if "level" in rule else ""
            lines += [f"  FAILED  {rule['name']}{level}", *(f"      ! {text}" for text in failed)]
            lines += [f"      and {more:,} more that failed"] if more else []
            lines += [f"      note: {note}" for note in rule["notes"]]
    return printable("\n".join(lines), keep="\n")


def _recorded(rule: RuleVerdict) -> dict[str, Any]:
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
        "alarms": alarms(rule),
        "notes": list(rule.notes),
        "n_failed": len(failed),
        "n_passed": len(passed),
        "findings": [
            {"key": list(f.key), "system": f.system, "baseline": f.baseline, "gain": f.gain, "p_value": f.p_value,
             "level": f.level, "passed": f.passed, "since": f.since, "text": f.text}
            for f in (failed + passed)[:MOST_KEPT]
        ],
    }  # fmt: skip


def levels_text(verdict: Mapping[str, Any]) -> str:
    """Write the levels of the rules of a night, of what its record keeps; of nights that kept none nothing."""
    return ", ".join(dict.fromkeys(low_text(rule["level"]) for rule in verdict["rules"] if "level" in rule))


def is_alarm(verdict: Mapping[str, Any]) -> bool:
    """Say whether a recorded gate failed for more than what an earlier run failed for with the same outputs."""
    failed = [rule for rule in verdict["rules"] if not rule["passed"]]
    findings = [finding for rule in failed for finding in rule["findings"] if not finding["passed"]]
    return bool(failed) and (not findings or any(finding.get("since") is None for finding in findings))


def reasons(verdict: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield why a gate failed, of what a run's record keeps: rule by rule, by the rule's name and the text."""
    for rule in verdict["rules"]:
        if not rule["passed"]:
            failed = [f for f in rule["findings"] if not f["passed"]]
            for finding in failed:
                yield {"rule": rule["name"], "text": finding["text"]}
            if not failed:
                yield {"rule": rule["name"], "text": "; ".join(rule["notes"])}


def _largest(findings: list[RuleFinding]) -> str:
    known = [f.detectable for f in findings if f.detectable is not None]
    if not known:
        return ""
    if math.isinf(max(known)):
        return "; in some of them no difference could be detected"
    return f"; in each of them a loss of {high_text(max(known))} would be detected with power {POWER:g}"


def alarms(rule: RuleVerdict) -> str:
    """Write the expected number of false alarms; that of losses is a bound, rounded up."""
    n = rule.alarms_per_year
    if isinstance(rule.rule, NotWorse):
        return f"at most {high_text(n, 2) if n < 100 else f'{math.ceil(n):,}'}"
    return f"{n:.2g}" if n < 100 else f"{n:,.0f}"


def junit(verdict: GateVerdict, name: str) -> str:
    """Return JUnit XML: a suite a rule, a case a comparison.

    Parameters
    ----------
    verdict : GateVerdict
        What became of the rules.
    name : str
        The plan's name.
    """
    root = ET.Element("testsuites", _counted(verdict.rules, name))
    for rule in verdict.rules:
        suite = ET.SubElement(root, "testsuite", _counted([rule], rule.name))
        for finding in rule.findings:
            _case(suite, finding)
        if _fails_as_a_whole(rule):
            case = ET.SubElement(
                suite, "testcase", {"classname": printable(name, keep="\n"), "name": printable(rule.name, keep="\n")}
            )
            _failure(case, "; ".join(rule.notes))
        text = "\n".join([*rule.notes, f"false alarms expected a year: {alarms(rule)}"])
        ET.SubElement(suite, "system-out").text = printable(text, keep="\n")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _counted(rules: list[RuleVerdict] | tuple[RuleVerdict, ...], name: str) -> dict[str, str]:
    whole = sum(map(_fails_as_a_whole, rules))
    n_cases = whole + sum(len(rule.findings) for rule in rules)
    n_failures = whole + sum(not f.passed for rule in rules for f in rule.findings)
    return {"name": printable(name, keep="\n"), "tests": str(n_cases), "failures": str(n_failures), "errors": "0"}


def _fails_as_a_whole(rule: RuleVerdict) -> bool:
    """Say whether a rule fails by none of its comparisons: there is none, or some could not be made."""
    return not rule.passed and all(finding.passed for finding in rule.findings)


def _case(suite: ET.Element, finding: RuleFinding) -> None:
    test_set, subset, _, _, metric = finding.key
    where = test_set + (f".{subset}" if subset is not None else "")
    title = f"{finding.system} against {finding.baseline}, {metric}"
    case = ET.SubElement(
        suite, "testcase", {"classname": printable(where, keep="\n"), "name": printable(title, keep="\n")}
    )
    if finding.passed:
        ET.SubElement(case, "system-out").text = printable(finding.text, keep="\n")
    else:
        _failure(case, finding.text)


def _failure(case: ET.Element, text: str) -> None:
    ET.SubElement(case, "failure", {"message": printable(text, keep="\n"), "type": "gate"}).text = printable(
        text, keep="\n"
    )
