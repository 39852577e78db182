"""What a terminal shows of results: the answer first, then tables, one line on the test, and warnings that matter."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.interface import get_interface
from sigdask.report.comparisons import (
    Setting,
    build_comparison_table,
    build_joint_table,
    build_ranking_table,
    build_test_table,
    format_deciding_p,
)
from sigdask.report.document import Block, Column, DocumentTable
from sigdask.report.sentences import (
    CHANGES_VERDICTS,
    MAX_NAMED,
    Verdict,
    build_verdict,
    describe_chance,
    describe_checks,
    describe_comparison,
    describe_margin_tests,
    describe_numbers,
    describe_runs,
    describe_settings,
    describe_size,
    describe_test,
    find_doubtful,
    turn_to_better,
)
from sigdask.report.standings import SOME, GroupKey, Standings, get_group_key
from sigdask.report.text import render_blocks, render_table
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.fields import get_result, iter_results
from sigdask.results.record import Note, Result
from sigdask.results.table import CONTESTED, Table, list_scorers
from sigdask.statistics.bounds import EQUAL_SCORES, Check
from sigdask.statistics.classical import compute_inflation
from sigdask.statistics.rounding import format_p_equals
from sigdask.text import format_count, format_list, make_printable

if TYPE_CHECKING:
    from sigdask.analysis.independence import Independence

MAX_SHOWN, MAX_DETAILED, MAX_CLOSEST = 40, 12, 10
"""Numbers of comparisons shown by default, in full in addition to a ranking, and of doubtful ones below it."""

MAX_RANKINGS, MAX_SYSTEMS = 6, 40
"""Numbers of rankings, and of systems of each, shown by default."""

MAX_ALARMS = 100
"""Maximum number of comparisons with disagreeing cross-checks that are named."""

MAX_NOTES = 5
"""Maximum number of notes on single comparisons, and of warnings on many test sets, that are printed."""

MAX_LISTED = 20
"""Number of rows of the table of many test sets shown by default."""

EXPLANATORY_KINDS: frozenset[str] = frozenset({"interval"})
"""Kinds of notes on all results that change no verdict. They are printed among the details."""

ESSENTIAL_KINDS: frozenset[str] = frozenset(
    {"upper-bound", "zero-division", "not-reached", "undecided", "second-look", "few-units-decide"}
)
"""Kinds of notes on single comparisons that are needed to read the answer. All others are printed among the details."""


def render(
    results: ComparisonResults, *, everything: bool = False, verbose: bool = False, width: int | None = None
) -> str:
    """Return the report as text, with the warnings that could change a verdict below the verdict.

    Parameters
    ----------
    results : ComparisonResults
        The results.
    everything : bool
        Show all comparisons. Otherwise, if they are many, the contested and undecided ones or the 40 smallest p.
    verbose : bool
        Show for each comparison how p was found: runs, checks, dependence. At most 12 unless all are shown.
    width : int, optional
        Columns of the terminal; unlimited when None (a pipe).
    """
    return render_blocks(iter_blocks(results, everything=everything, verbose=verbose), width)


def render_with_warnings(results: ComparisonResults, *, everything: bool = False) -> str:
    """Return the report as text, preceded by all other warnings, such as how files were read."""
    return "\n".join([*iter_other_warnings(results), render(results, everything=everything)])


def iter_blocks(results: ComparisonResults, *, everything: bool, verbose: bool) -> Iterator[Block]:
    """Yield the paragraphs and tables of the report; parameters as in `render`."""
    verdict, table, alpha = build_verdict(results), results.table, results.alpha
    urgent = [n for n in select_warnings(results, verbose=verbose) if n.kind in CHANGES_VERDICTS]
    yield "\n".join([*verdict.scope, *verdict.sentences, *(f"warning: {note.text}" for note in urgent)])
    if not len(results):
        return
    if results.together:
        yield build_joint_table(results, n_rows=None if everything else MAX_SHOWN)
    yield from _iter_rankings(results, everything=everything)
    rows = _select_rows(table, verdict, everything=everything, verbose=verbose)
    shown = [*iter_results(table.take(rows))]
    if shown:
        yield build_comparison_table(shown, Setting(shown, alpha), with_checks=verbose)
    if len(rows) < len(table):
        which = "" if verdict.is_ranking else f"; the {len(rows)} smallest p are shown"
        yield f"{count_verdicts(table)}{which} ({_tell_where_all_are()})"
    if len(results) <= MAX_DETAILED or everything:
        yield build_test_table(shown, alpha)
    if verbose or everything:
        n_detailed = len(shown) if verbose and everything else MAX_DETAILED if verbose or len(shown) <= 12 else 0
        yield "\n".join(line for r in turn_to_better(shown[:n_detailed]) for line in _iter_details(r, alpha))
    remarks = [describe_test(results), *_iter_remarks(results, verdict, shown, verbose=verbose)]
    signatures = [f"{name}: {signature}" for name, signature in list_scorers(table)]
    yield "\n".join([*remarks, *([*signatures, describe_settings(results)] if verbose else [])])


def count_verdicts(table: Table) -> str:
    """Return the number of comparisons by verdict."""
    names = {1: f"significant at {table.alpha:g}", -1: "undecided", CONTESTED: "contested", 0: "not significant"}
    counts = {name: int(np.count_nonzero(table.outcome == code)) for code, name in names.items()}
    parts = [f"{n:,} {name}" for name, n in counts.items() if n or name == names[1]]
    return f"{format_count(len(table), 'comparison')}: {', '.join(parts)}"


def _tell_where_all_are() -> str:
    return "to_frame() has all" if get_interface() == "python" else "--all shows all, --json FILE keeps them"


def _iter_rankings(results: ComparisonResults, *, everything: bool) -> Iterator[Block]:
    rankings = results.rankings()
    shown = rankings if everything else rankings[:MAX_RANKINGS]
    for ranking in shown:
        table = build_ranking_table(ranking)
        yield table if everything else table.shorten(MAX_SYSTEMS)
        if len(ranking.systems) > MAX_SYSTEMS and not everything:
            yield f"and {len(ranking.systems) - MAX_SYSTEMS:,} more ({_tell_where_all_are()})"
    if len(shown) < len(rankings):
        yield f"and {len(rankings) - len(shown):,} more rankings ({_tell_where_all_are()})"


def _select_rows(table: Table, verdict: Verdict, *, everything: bool, verbose: bool) -> NDArray[np.int64]:
    """Return the rows to show: all if few, else those with the smallest p, of a ranking only doubtful verdicts."""
    if everything or len(table) <= (MAX_DETAILED if verdict.is_ranking else MAX_SHOWN):
        return np.arange(len(table))
    if verdict.is_ranking:
        return verdict.doubtful[: MAX_SHOWN if verbose else MAX_CLOSEST]
    sort_keys = (-np.abs(table.difference), table.p_value, np.nan_to_num(table.p_adjusted, nan=0.0))
    return np.lexsort(sort_keys)[:MAX_SHOWN]


def _iter_details(r: Result, alpha: float) -> Iterator[str]:
    where = f" in {r.subset['column']} {r.subset['value']}" if r.subset else ""
    yield f"{describe_comparison(r, alpha, where)}."
    sizes = [] if r.interval is None else [describe_size(r)]
    numbers = describe_numbers(r, alpha), *sizes, *describe_margin_tests(r), *describe_runs(r)
    yield from (f"    {text}" for text in numbers)
    for check in r.checks:
        if check.verdict != "not applicable":
            yield f"    {check.name} {check.verdict}: {describe_check(check)}"
    if r.r12 is not None:
        cost = compute_inflation(round(r.r12, 3))
        times = "without bound" if math.isinf(cost) else f"{compute_inflation(r.r12):.2f} times"
        yield f"    r12 = {r.r12:.3f}: a test that assumes independent systems has intervals {times} as wide"
    yield from (f"    note: {text}" for text in r.warnings)
    if r.test_signature is not None:
        yield f"    signature: {r.test_signature}"


def describe_check(check: Check) -> str:
    """Return the detail of a check; that of the equal-score test is its p with the cause of a contested result."""
    if check.name != EQUAL_SCORES or check.p_value is None:
        return check.detail
    adjusted = "" if check.p_adjusted is None else f"adjusted {format_p_equals(check.p_adjusted)}"
    return ", ".join(filter(None, [format_p_equals(check.p_value), adjusted, check.detail]))


# Warnings and remarks


def select_warnings(results: ComparisonResults, *, verbose: bool = False) -> list[Note]:
    """Return the notes on all results that are warnings, or all notes if details are requested.

    Few units matter if p cannot reach the level, or if a difference is not significant, perhaps for want of power.
    """
    hidden = EXPLANATORY_KINDS if (results.table.outcome != 1).any() else EXPLANATORY_KINDS | {"few-units"}
    notes = (note for note in results.notes if note.kind != "scope")  # which comes before the answer
    return [note for note in notes if verbose or note.kind not in hidden or note.numbers.get("n_unreachable")]


def iter_other_warnings(results: ComparisonResults, *, verbose: bool = False) -> Iterator[str]:
    """Yield lines with the warnings that could change no verdict, such as how files were read."""
    for note in select_warnings(results, verbose=verbose):
        if note.kind not in CHANGES_VERDICTS:
            yield make_printable(f"warning: {note.text}")


def _iter_remarks(
    results: ComparisonResults, verdict: Verdict, shown: Sequence[Result], *, verbose: bool
) -> Iterator[str]:
    """Yield lines on checks that disagree, on contested results, and the notes that the answer depends on."""
    table = results.table
    if verbose or not verdict.is_checked:
        yield f"checks: {verdict.checks}"
    yield from list_alarms(iter_results(table.take(np.flatnonzero(table.has_disagreement)[:MAX_ALARMS])))
    notes = [] if verbose else _collect_notes(shown)
    yield from (f"note: {text}" for text in notes[:MAX_NOTES])
    if len(notes) > MAX_NOTES:
        yield f"note: and {len(notes) - MAX_NOTES:,} more notes (-v shows them)"


def _collect_notes(shown: Sequence[Result]) -> list[str]:
    """Return the notes that the answer depends on; each names its comparison if there are several."""
    kinds = ESSENTIAL_KINDS if len(shown) == 1 else ESSENTIAL_KINDS - {"few-units-decide"}  # which are counted then
    noted = [(r, note.text) for r in shown for note in r.notes if note.kind in kinds]
    texts = dict.fromkeys(text for _, text in noted)
    if len(shown) == 1 or len(texts) < len(noted):
        return [*texts]
    return [f"{r.a} and {r.b} on {r.metric}: {text}" for r, text in noted]


def list_alarms(results: Iterable[Result | Independence]) -> list[str]:
    """Return a line for each cross-check that disagrees."""
    return [
        f"!!! CROSS-CHECK DISAGREES: {r.a} and {r.b} by {r.metric}: {check.name}: {check.detail}"
        for r in results
        for check in r.disagreements()
    ]


# Many test sets


def format_overview(
    table: Table, *, changed: Collection[GroupKey] = (), everything: bool = False, width: int | None = None
) -> str:
    """Return a table with one row for each test set, subset and metric, and a line of totals below it.

    If rows are omitted, changed rows are kept first, then those with a failed check, then those with most doubtful
    results. Rows are in the order of the plan.

    Parameters
    ----------
    table : Table
        The comparisons of all test sets.
    changed : collection of (str, str, str)
        Test set, subset and metric of the groups that changed since the previous run.
    everything : bool
        List all rows, in the order of the plan.
    width : int, optional
        Columns of the terminal; unlimited when None (a pipe).
    """
    standings = Standings(table)
    n_groups = standings.n_groups
    keys = _list_keys(table, standings.first_rows)
    n_doubtful = np.bincount(standings.group[find_doubtful(table)], minlength=n_groups)
    has_alarm = np.bincount(standings.group[table.has_disagreement], minlength=n_groups) > 0
    is_changed = np.array([key in changed for key in keys], np.bool_)
    order = np.lexsort((-n_doubtful, ~has_alarm, ~is_changed))
    shown = range(n_groups) if everything else sorted(order[:MAX_LISTED].tolist())
    has_metrics = len({key[2] for key in keys}) > 1
    verdicts = [_describe_group(table.take(np.flatnonzero(standings.group == g))) for g in shown]
    headers = ("test set", "subset", "metric", "best system", "verdict", "p", "doubtful", "changed")
    rows = [
        (*keys[g], *verdict, f"{n_doubtful[g] or ''}", "yes" if is_changed[g] else "")
        for g, verdict in zip(shown, verdicts, strict=True)
    ]
    columns = [
        Column(header, texts, is_name=header not in {"p", "doubtful"})
        for header, texts in zip(headers, zip(*rows, strict=True), strict=True)
    ]
    kept = [column for column in columns if any(column.texts) and (column.header != "metric" or has_metrics)]
    more = f"{len(shown)} of {n_groups:,} rows, chosen by changes, failed checks and doubtful results (--all lists all)"
    shown_table = render_table(DocumentTable.of("", kept), width)
    return "\n".join([shown_table, *[more] * (len(shown) < n_groups), "", *_describe_totals(table)])


def _list_keys(table: Table, rows: NDArray[np.int64]) -> list[GroupKey]:
    return [get_group_key(table, row) for row in rows.tolist()]


def list_changed_groups(sides: Collection[tuple[Table, NDArray[np.int64]]]) -> set[GroupKey]:
    """Return the groups of the rows (-1 for none) of tables before and after a change."""
    return {key for table, rows in sides for key in _list_keys(table, rows[rows >= 0])}


def _describe_group(table: Table) -> tuple[str, str, str]:
    """Return a group's best system ("" at a tie), the number of significant comparisons, and the p of its lead."""
    c = Standings(table)
    count = f"{np.count_nonzero(c.outcome == 1):,} of {len(table):,} significant"
    if c.design == SOME:
        return "", count, ""
    lead = get_result(table, c.list_leading_rows()[0])
    return lead.better() or "", count, format_deciding_p(lead, table.alpha)


def _describe_totals(table: Table) -> Iterator[str]:
    """Yield lines on the number of comparisons by verdict and on the checks of all of them."""
    yield f"{format_count(len(np.unique(table.test_set.codes)), 'test set')}, {count_verdicts(table)}"
    yield from describe_chance(table, table.number_rows("test_set", "metric"))
    if table.has_disagreement.any():
        yield f"checks: {describe_checks(table)}"


def iter_shared_notes(sets: Mapping[str, ComparisonResults]) -> Iterator[Note]:
    """Yield each distinct note once. If it does not apply to all test sets, it names those to which it applies."""
    names_by_note: dict[tuple[str, str], list[str]] = {}
    for name, results in sets.items():
        for note in (note for note in results.notes if note.kind != "scope"):
            names_by_note.setdefault((note.kind, note.text), []).append(name)
    for (kind, text), names in names_by_note.items():
        is_named = len(names) == len(sets) or text.startswith(f"{names[0]}: ")
        yield Note(kind, text if is_named else f"{format_list(names, MAX_NAMED)}: {text}")


def format_shared_warnings(sets: Mapping[str, ComparisonResults], *, everything: bool) -> Iterator[str]:
    """Yield each different warning once, with the test sets that it holds for; only the first ones by default."""
    warned = {name: replace(results, notes=tuple(select_warnings(results))) for name, results in sets.items()}
    notes = [*iter_shared_notes(warned)]
    for note in notes if everything else notes[:MAX_NOTES]:
        yield make_printable(f"warning: {note.text}")
    if len(notes) > MAX_NOTES and not everything:
        yield f"warning: and {len(notes) - MAX_NOTES:,} more warnings (--all lists all)"
