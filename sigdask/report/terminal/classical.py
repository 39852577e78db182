"""Classical tests as tables show them, those that assume independence beside r12 and what the assumption costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sigdask.report.layout import lay_out
from sigdask.results.record import ClassicalTest, Result
from sigdask.statistics.classical.correlation import inflation
from sigdask.statistics.rounding import p_text
from sigdask.text import printable

ELSEWHERE = "classical tests: --all shows them, --json FILE and --csv FILE keep them"
"""Said of those of many comparisons, unless all are asked for."""


CONTRAST = "for contrast"


@dataclass(frozen=True, slots=True)
class ClassicalTestRow:
    """One test of one comparison, in words.

    Attributes
    ----------
    result : Result
        The comparison.
    name, statistic, p, n, remark : str
        Cells; the remark of a test that assumes independence says so, and what that costs.
    """

    result: Result
    name: str
    statistic: str
    p: str
    n: str
    remark: str

    @property
    def is_contrast(self) -> bool:
        """Whether the test takes the two systems for independent."""
        return self.remark.startswith(CONTRAST)


def lines(results: Sequence[Result], alpha: float) -> Iterator[ClassicalTestRow]:
    """Yield the tests of comparisons, those that fit their scores."""
    for r in results:
        for test in r.tests:
            if test.p_value is not None:
                yield ClassicalTestRow(
                    r, test.name, _number(test.statistic), p_text(test.p_value, alpha), f"{test.n:,}", remark(r, test)
                )


def remark(r: Result, test: ClassicalTest) -> str:
    """Say how a test was had; of one for contrast, what it assumes and what that costs."""
    if not test.assumes_independence:
        return test.detail
    _, reserve, aside = test.detail.partition("; ")
    return f"{CONTRAST}, as if independent{_cost(r)}{reserve}{aside}"


def _number(statistic: float | None) -> str:
    """Write a statistic: sums of ranks may be large, and end in halves."""
    if statistic is None:
        return ""
    return f"{statistic:.4g}" if abs(statistic) < 1000 else f"{statistic:,.1f}".removesuffix(".0")


def _cost(r: Result) -> str:
    """Say what independence costs: by items, of which r12 is; by other units, how much wider the two t are apart."""
    if r.unit == "item":
        if r.r12 is None:
            return ""
        factor = inflation(round(r.r12, 3))
        return f" (r12 = {r.r12:.3f}: {'no bound' if factor == float('inf') else f'{factor:.2f} times as wide'})"
    t = {test.name: test.statistic for test in r.tests}
    one, two = t.get("t"), t.get("two-sample-t")
    return f" ({one / two:.2f} times as wide by {r.unit})" if one and two else ""


def misfits(results: Sequence[Result]) -> Iterator[str]:
    """Say once for each reason which tests do not fit the scores of which metric."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for r in results:
        for test in r.tests:
            if test.p_value is None:
                found.setdefault((r.metric, test.detail), {})[test.name] = None
    for (metric, why), names in found.items():
        yield f"{metric}: {', '.join(names)}: {why}"


def text(results: Sequence[Result], alpha: float, width: int | None) -> list[str]:
    """Return what a terminal shows, as one part: a table of the tests; nothing of none."""
    tested = [r for r in results if r.tests]
    if not tested:
        return []
    with_set, with_subset = len({r.test_set for r in tested}) > 1, any(r.subset for r in tested)
    names = [*(["test set"] if with_set else []), *(["subset"] if with_subset else []), "A", "B", "metric"]
    rows = [
        [
            *([line.result.test_set] if with_set else []),
            *([line.result.subset["value"] if line.result.subset else ""] if with_subset else []),
            line.result.a, line.result.b, line.result.metric, line.name, line.statistic, line.p, line.n, line.remark,
        ]
        for line in lines(tested, alpha)
    ]  # fmt: skip
    table = [lay_out([*names, "test", "statistic", "p", "n", ""], rows, width)] if rows else []
    return ["\n".join([*table, *map(printable, misfits(tested))])]
