"""Which comparisons a rule speaks of, and what all rules of a run are judged on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sigdask.comparison.found.result import Result
from sigdask.gate.rules import Evidence, Fdr, Finding, Key, Rule, key_of


@dataclass(frozen=True, slots=True)
class Basis:
    """What all rules are judged on."""

    results: Sequence[Result]
    evidence: Evidence
    family: str
    fdr: Fdr
    runs_per_year: float

    def family_of(self, result: Result) -> tuple[str, ...]:
        """Return what names the family that the plan adjusted a result in."""
        return {"metric": (result.test_set, result.metric), "test-set": (result.test_set,)}.get(self.family, ())

    def spread(self, result: Result) -> float | None:
        """Return the swap standard deviation of a comparison, where it is known."""
        return self.evidence.spreads.get(key_of(result))


@dataclass(frozen=True, slots=True)
class Covered:
    """A comparison of a system with the baseline, turned so that a gain is good."""

    result: Result
    system: str
    baseline: str
    gain: float

    @property
    def is_worse(self) -> bool:
        """Whether the baseline scores better."""
        return self.gain < 0


def covers(rule: Rule, result: Result, baseline: str | None) -> bool:
    """Say whether a rule speaks of a result, where its test set has this baseline."""
    return speaks_of(rule, key_of(result), baseline)


def speaks_of(rule: Rule, key: Key, baseline: str | None) -> bool:
    """Say whether a rule speaks of a comparison, where its test set has this baseline."""
    test_set, _, a, b, metric = key
    return (
        (not rule.test_sets or test_set in rule.test_sets)
        and (not rule.metrics or metric in rule.metrics)
        and (rule.baseline or baseline) in {a, b}
    )


def covered_by(rule: Rule, results: Sequence[Result], baselines: Mapping[str, str | None]) -> Iterator[Covered]:
    """Yield what a rule speaks of, each system turned against its baseline."""
    for r in results:
        if covers(rule, r, baselines.get(r.test_set)):
            baseline = rule.baseline or baselines[r.test_set]
            system = r.a if baseline == r.b else r.b
            gain = r.difference if (system == r.a) == r.higher_is_better else -r.difference
            yield Covered(r, system, str(baseline), gain)


def where(c: Covered) -> str:
    """Write which metric on which test set."""
    subset = f", {c.result.subset['column']} {c.result.subset['value']}" if c.result.subset else ""
    return f"{c.result.metric} on {c.result.test_set or 'the test set'}{subset}"


def failures_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Sort findings for a reader."""
    return tuple(sorted(findings, key=lambda f: f.passed))
