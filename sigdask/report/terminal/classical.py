"""Classical tests as a table. Of tests that assume independent systems, it shows what the assumption costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sigdask.report.layout import format_table
from sigdask.results.record import ClassicalTest, Result
from sigdask.statistics.classical.correlation import compute_inflation
from sigdask.statistics.rounding import format_p
from sigdask.text import make_printable

TESTS_HINT = "classical tests: --all shows them, --json FILE and --csv FILE keep them"
"""Said of those of many comparisons, unless all are asked for."""


CONTRAST = "for contrast"


@dataclass(frozen=True, slots=True)
class ClassicalTestRow:
    """One classical test of one comparison, formatted as cells.

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
        """Whether the test assumes that the two systems are independent."""
        return self.remark.startswith(CONTRAST)


def iter_rows(results: Sequence[Result], alpha: float) -> Iterator[ClassicalTestRow]:
    """Yield the classical tests that fit the scores of comparisons."""
    for r in results:
        for test in r.tests:
            if test.p_value is not None:
                yield ClassicalTestRow(
                    r,
                    test.name,
                    _format_statistic(test.statistic),
                    format_p(test.p_value, alpha),
                    f"{test.n:,}",
                    describe_test(r, test),
                )


def describe_test(r: Result, test: ClassicalTest) -> str:
    """Return details of a test; if it assumes independence, also how much wider its interval is by that."""
    if not test.assumes_independence:
        return test.detail
    _, reserve, aside = test.detail.partition("; ")
    return f"{CONTRAST}, as if independent{_describe_cost(r)}{reserve}{aside}"


def _format_statistic(statistic: float | None) -> str:
    """Return a statistic as text; rank sums may be large and end in halves."""
    if statistic is None:
        return ""
    return f"{statistic:.4g}" if abs(statistic) < 1000 else f"{statistic:,.1f}".removesuffix(".0")


def _describe_cost(r: Result) -> str:
    """Return text on how many times wider an interval gets by assuming that the two systems are independent."""
    if r.unit == "item":
        if r.r12 is None:
            return ""
        factor = compute_inflation(round(r.r12, 3))
        return f" (r12 = {r.r12:.3f}: {'no bound' if factor == float('inf') else f'{factor:.2f} times as wide'})"
    t = {test.name: test.statistic for test in r.tests}
    paired_t, unpaired_t = t.get("t"), t.get("two-sample-t")
    return f" ({paired_t / unpaired_t:.2f} times as wide by {r.unit})" if paired_t and unpaired_t else ""


def iter_misfits(results: Sequence[Result]) -> Iterator[str]:
    """Yield lines that name tests that do not fit the scores of a metric, one for each reason."""
    names_by_reason: dict[tuple[str, str], dict[str, None]] = {}
    for r in results:
        for test in r.tests:
            if test.p_value is None:
                names_by_reason.setdefault((r.metric, test.detail), {})[test.name] = None
    for (metric, reason), names in names_by_reason.items():
        yield f"{metric}: {', '.join(names)}: {reason}"


def format_tests(results: Sequence[Result], alpha: float, width: int | None) -> list[str]:
    """Return a table of classical tests as one part, or nothing without tests."""
    tested = [r for r in results if r.tests]
    if not tested:
        return []
    with_set, with_subset = len({r.test_set for r in tested}) > 1, any(r.subset for r in tested)
    names = [*(["test set"] if with_set else []), *(["subset"] if with_subset else []), "A", "B", "metric"]
    rows = [
        [
            *([test_row.result.test_set] if with_set else []),
            *([test_row.result.subset["value"] if test_row.result.subset else ""] if with_subset else []),
            test_row.result.a,
            test_row.result.b,
            test_row.result.metric,
            test_row.name,
            test_row.statistic,
            test_row.p,
            test_row.n,
            test_row.remark,
        ]
        for test_row in iter_rows(tested, alpha)
    ]
    table = [format_table([*names, "test", "statistic", "p", "n", ""], rows, width)] if rows else []
    return ["\n".join([*table, *map(make_printable, iter_misfits(tested))])]
