"""Which comparisons a rule speaks of, and what all rules of a run are judged on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.nightly.gate.rules import Evidence, Fdr, Key, NotWorse, Rule, RuleFinding, key_of
from sigdask.results.columns.coded import Coded
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.results.views import result_views


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """What all rules are judged on.

    Attributes
    ----------
    table : Table
        What was found.
    evidence : Evidence
        What the rules need beside it.
    family : {"metric", "test-set", "plan"}
        Within which the plan adjusted.
    fdr : {"none", "lord++", "lond"}
        Online rule.
    runs_per_year : float
        For the expected number of false alarms.
    sizes : mapping of tuple of str to int
        Comparisons of each family.
    n_shared : int
        Comparisons of all rules that share the false alarms of a year.
    alpha : float or None
        The level of the plan's tables, which is not the gate's.
    """

    table: Table
    evidence: Evidence
    family: str
    fdr: Fdr
    runs_per_year: float
    sizes: Mapping[tuple[str, ...], int]
    n_shared: int = 0
    alpha: float | None = None

    @staticmethod
    def of(
        rules: Sequence[Rule], table: Table, evidence: Evidence, family: str, fdr: Fdr, runs_per_year: float
    ) -> Basis:
        """Count the comparisons of each family, and of the rules that share a level."""
        codes = np.column_stack([table.test_set.codes, table.metric.codes])
        found, n_rows = np.unique(codes, axis=0, return_counts=True)
        sizes = Counter[tuple[str, ...]]()
        for (test_set, metric), n in zip(found.tolist(), n_rows.tolist(), strict=True):
            sizes[_family(family, table.test_set.values[test_set], table.metric.values[metric].name)] += n
        n_shared = sum(
            len(rows_covered(rule, table, evidence.baselines))
            for rule in rules
            if isinstance(rule, NotWorse) and rule.false_alarms_per_year is not None
        )
        return Basis(table, evidence, family, fdr, runs_per_year, sizes, n_shared, table.alpha)

    def family_of(self, result: Result) -> tuple[str, ...]:
        """Return what names the family that the plan adjusted a result in."""
        return _family(self.family, result.test_set, result.metric)

    def spread(self, result: Result) -> float | None:
        """Return the swap standard deviation of a comparison, where it is known."""
        return self.evidence.spreads.get(key_of(result))


def _family(family: str, test_set: str, metric: str) -> tuple[str, ...]:
    return {"metric": (test_set, metric), "test-set": (test_set,)}.get(family, ())


@dataclass(frozen=True, slots=True)
class CoveredComparison:
    """A comparison of a system with the baseline, turned so that a gain is good."""

    result: Result
    system: str
    baseline: str
    gain: float

    @property
    def is_worse(self) -> bool:
        """Whether the baseline scores better."""
        return self.gain < 0


def asks_for(rule: Rule, metric: str) -> bool:
    """Say whether a rule asks for a metric, in whatever case it writes its name."""
    return not rule.metrics or metric.casefold() in {name.casefold() for name in rule.metrics}


def speaks_of(rule: Rule, key: Key, baseline: str | None) -> bool:
    """Say whether a rule speaks of a comparison, where its test set has this baseline."""
    test_set, _, a, b, metric = key
    return (
        (not rule.test_sets or test_set in rule.test_sets)
        and asks_for(rule, metric)
        and (rule.baseline or baseline) in {a, b}
    )


def rows_covered(rule: Rule, table: Table, baselines: Mapping[str, str | None]) -> NDArray[np.int64]:
    """Return the rows that a rule speaks of."""
    found = np.zeros(len(table), np.bool_)
    for code, test_set in enumerate(table.test_set.values):
        if not rule.test_sets or test_set in rule.test_sets:
            baseline = {rule.baseline or baselines.get(test_set)}
            found |= (table.test_set.codes == code) & (_among(table.a, baseline) | _among(table.b, baseline))
    if rule.metrics:
        found &= np.isin(table.metric.codes, [k for k, m in enumerate(table.metric.values) if asks_for(rule, m.name)])
    return np.flatnonzero(found)


def _among(names: Coded[str], some: Container[str | None]) -> NDArray[np.bool_]:
    return np.isin(names.codes, [code for code, name in enumerate(names.values) if name in some])


def covered_by(rule: Rule, table: Table, baselines: Mapping[str, str | None]) -> Iterator[CoveredComparison]:
    """Yield what a rule speaks of, each system turned against its baseline."""
    for r in result_views(table.take(rows_covered(rule, table, baselines))):
        baseline = rule.baseline or baselines[r.test_set]
        system = r.a if baseline == r.b else r.b
        gain = r.difference if (system == r.a) == r.higher_is_better else -r.difference
        yield CoveredComparison(r, system, str(baseline), gain)


def where(c: CoveredComparison) -> str:
    """Write which metric on which test set."""
    subset = f", {c.result.subset['column']} {c.result.subset['value']}" if c.result.subset else ""
    return f"{c.result.metric} on {c.result.test_set or 'the test set'}{subset}"


def failures_first(findings: Sequence[RuleFinding]) -> tuple[RuleFinding, ...]:
    """Sort findings for a reader."""
    return tuple(sorted(findings, key=lambda f: f.passed))
