"""The parts of the page that belong to a plan: gate verdict and recent changes; and which comparisons stand first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.nightly.report.gate import iter_reasons, list_findings
from sigdask.nightly.store.status import Change, Changes, PlanReport, list_runs
from sigdask.report.comparisons import format_p_cell
from sigdask.report.page.frame import PagePart
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.statistics.rounding import format_lower_limit, format_score
from sigdask.text import format_time


def select_first(report: PlanReport, table: Table, n_rows: int) -> NDArray[np.int64]:
    """Return the first rows to show: gate failures, then other gated, then changed comparisons.

    Parameters
    ----------
    report : PlanReport
        Report of a run.
    table : Table
        All comparisons of the run.
    n_rows : int
        Maximum number of rows.
    """
    rank = np.full(len(table), 3)
    row_index = {key: k for k, key in enumerate(list_keys(table))}
    changes = report.changes
    names = list_keys(changes.new)
    for row, kinds in zip(changes.new_rows.tolist(), changes.kinds, strict=True):
        is_changed = row >= 0 and {"reversed", "lost", "gained", "scores"} & {*kinds}
        if is_changed and names[row] in row_index:
            rank[row_index[names[row]]] = 2
    verdict = report.run.details.get("verdict") or {"rules": ()}
    for finding in (finding for rule in verdict["rules"] for finding in list_findings(rule)):
        key = tuple(finding["key"])
        if key in row_index:
            rank[row_index[key]] = min(rank[row_index[key]], 1 if finding["passed"] else 0)
    return np.argsort(rank, kind="stable")[:n_rows].astype(np.int64)


def list_keys(table: Table) -> list[tuple[Any, ...]]:
    """Return the key by which the gate identifies each row's comparison: test set, subset, systems and metric."""
    columns = (table[name].to_list() for name in ("test_set", "subset.column", "subset.value", "a", "b", "metric"))
    rows = zip(*columns, strict=True)
    return [(test_set, value if column else None, *rest) for test_set, column, value, *rest in rows]


KIND_WORDS = {
    "reversed": "reversed", "lost": "significance lost", "gained": "significance gained", "gone": "gone", "new": "new",
    "scores": "with other scores", "p": "with another p", "details": "with other details",
}  # fmt: skip
"""Words for kinds of changes, in the order in which they are counted and listed."""


def count_changes(changes: Changes) -> str:
    """Return text on how many results changed in each way, such as those that became significant."""
    numbers = Counter(kind for kinds in changes.kinds for kind in kinds)
    return ", ".join(f"{n:,} {text}" for kind, text in KIND_WORDS.items() if (n := numbers[kind]))


MAX_REASONS = 3
"""Maximum number of a gate's failures in the card at the top."""

MAX_CHANGES = 200
"""Maximum number of changes that are listed."""


def join_tables(report: PlanReport) -> Table:
    """Return one table of the comparisons of all test sets, in their order."""
    tables = [results.table for results in report.results.values()]
    return Table.join(tables) if tables else Table.build_empty()


def build_part(report: PlanReport) -> PagePart:
    """Return the page's section on a plan's run."""
    verdict = report.run.details.get("verdict")
    runs = [run for run, _ in list_runs(report.store, report.run.plan)]
    return PagePart(
        {
            "run": report.run,
            "when": format_time(report.run.started),
            "before": report.before,
            "gate": verdict and _build_gate(verdict),
            "is_unjudged": verdict is None and any("verdict" in run.details for run in runs),
            "most_reasons": MAX_REASONS,
            "changed": count_changes(report.changes),
            "changes": [*iter_changes(report.changes, report.alpha, MAX_CHANGES)],
            "n_changes": len(report.changes),
        }
    )


def _build_gate(verdict: Mapping[str, Any]) -> dict[str, Any]:
    rules = [{**rule, "level_text": format_lower_limit(rule["level"])} for rule in verdict["rules"]]
    n_failed = sum(rule["n_failed"] or (not rule["passed"]) for rule in rules)
    return {**verdict, "rules": rules, "why": [*iter_reasons(verdict)], "n_failed": n_failed}


def iter_changes(changes: Changes, alpha: float, limit: int | None = None) -> Iterator[SimpleNamespace]:
    """Yield the comparisons whose results changed, lost significances first: kinds, names, scores and p as text."""
    kinds = changes.kinds
    rank = {kind: k for k, kind in enumerate(KIND_WORDS)}
    order = sorted(range(len(changes)), key=lambda k: (rank[next(_select_kinds(kinds[k]))], k))
    for k in order[:limit]:
        change = changes[k]
        r = change.now or change.before
        assert r is not None
        yield SimpleNamespace(
            kinds=", ".join(_describe_kind(kind, change) for kind in _select_kinds(kinds[k])),
            subset=r.subset["value"] if r.subset else "",
            **{name: getattr(r, name) for name in ("test_set", "a", "b", "metric")},
            before=_format_side(change.before, alpha),
            now=_format_side(change.now, alpha),
        )


def _select_kinds(kinds: Sequence[str]) -> Iterator[str]:
    """Yield the kinds of a change to show: "p" only if it is the sole kind."""
    selected = {*kinds} - ({"p"} if len(kinds) > 1 else set())
    yield from (kind for kind in KIND_WORDS if kind in selected)


def _describe_kind(kind: str, change: Change) -> str:
    """Return a kind of change as text; for significances also which system is better."""
    r = change.before if kind == "lost" else change.now
    if kind not in {"reversed", "lost", "gained"} or r is None or r.better() is None:
        return KIND_WORDS[kind]
    return f"{KIND_WORDS[kind]}: {r.better()} {'was' if kind == 'lost' else 'is'} better"


def _format_side(r: Result | None, alpha: float) -> str:
    if r is None:
        return "–"
    p_text = format_p_cell(r.p_value if r.p_adjusted is None else r.p_adjusted, alpha)
    return f"{format_score(r.score_a)} / {format_score(r.score_b)}" + (f", p = {p_text}" if p_text else "")
