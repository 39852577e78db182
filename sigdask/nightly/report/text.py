"""Text, JSON and the parts of pages that belong to a plan: status, history, results, gate and changes."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sigdask.analysis.details import ComparisonDetails
from sigdask.errors import InputError, UnfinishedError
from sigdask.nightly.plan.model import ReportFiles
from sigdask.nightly.report.gate import format_levels, iter_reasons, list_failing_sets, list_findings
from sigdask.nightly.report.overview import format_overview, format_shared_warnings, list_changed_groups
from sigdask.nightly.store import PlanRun
from sigdask.nightly.store.results import Changes
from sigdask.nightly.store.status import PlanReport, list_runs
from sigdask.report.files import Texts, list_table_texts, write_parts, write_units
from sigdask.report.page import details, format_now, render_page
from sigdask.report.page.frame import PagePart, hide_folders
from sigdask.report.presentable import Results, list_paper_texts
from sigdask.report.screen import iter_other_warnings, render
from sigdask.report.text import format_table
from sigdask.results.fields import iter_json_lines
from sigdask.results.record import Result, drop_duplicates
from sigdask.results.table import Table
from sigdask.statistics.rounding import format_lower_limit, format_p_equals, format_score
from sigdask.text import format_count, format_duration, format_time, iter_array, iter_json, make_printable, to_plain


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
    columns = (table[name].tolist() for name in ("test_set", "subset.column", "subset.value", "a", "b", "metric"))
    rows = zip(*columns, strict=True)
    return [(test_set, value if column else None, *rest) for test_set, column, value, *rest in rows]


KIND_WORDS = {
    "reversed": "reversed", "lost": "significance lost", "gained": "significance gained", "gone": "gone", "new": "new",
    "scores": "with other scores", "p": "with another p", "details": "with another interval, note or signature",
}  # fmt: skip
"""Words for kinds of changes, in the order in which they are counted and listed."""


def count_changes(changes: Changes) -> str:
    """Return text on how many results changed in each way, such as those that became significant."""
    numbers = Counter(kind for kinds in changes.kinds for kind in kinds)
    return ", ".join(f"{n:,} {text}" for kind, text in KIND_WORDS.items() if (n := numbers[kind]))


MAX_REASONS = 3
"""Maximum number of a gate's failures in the card at the top."""

MAX_PAGE_CHANGES = 200
"""Maximum number of changes that are listed."""


def join_tables(report: PlanReport) -> Table:
    """Return one table of the comparisons of all test sets, in their order."""
    tables = [results.table for results in report.results.values()]
    return Table.join(tables) if tables else Table.build_empty()


def build_part(report: PlanReport) -> PagePart:
    """Return the page's section on a plan's run."""
    verdict = report.run.details.get("verdict")
    runs = list_runs(report.store, report.run.plan)
    return PagePart(
        {
            "run": report.run,
            "when": format_time(report.run.started),
            "before": report.before,
            "gate": verdict and _build_gate(verdict),
            "is_unjudged": verdict is None and any("verdict" in run.details for run in runs),
            "most_reasons": MAX_REASONS,
            "changed": count_changes(report.changes),
            "changes": [*iter_changes(report.changes, report.alpha, MAX_PAGE_CHANGES)],
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
        before, now = changes[k]
        r = now or before
        assert r is not None
        yield SimpleNamespace(
            kinds=", ".join(
                _describe_kind(kind, before if kind == "lost" else now) for kind in _select_kinds(kinds[k])
            ),
            subset=r.subset["value"] if r.subset else "",
            **{name: getattr(r, name) for name in ("test_set", "a", "b", "metric")},
            before=_format_side(before, alpha),
            now=_format_side(now, alpha),
        )


def _select_kinds(kinds: Sequence[str]) -> Iterator[str]:
    """Yield the kinds of a change to show: "p" only if it is the sole kind."""
    selected = {*kinds} - ({"p"} if len(kinds) > 1 else set())
    yield from (kind for kind in KIND_WORDS if kind in selected)


def _describe_kind(kind: str, r: Result | None) -> str:
    """Return a kind of change as text; for significances also which system is or was better."""
    if kind not in {"reversed", "lost", "gained"} or r is None or r.better() is None:
        return KIND_WORDS[kind]
    return f"{KIND_WORDS[kind]}: {r.better()} {'was' if kind == 'lost' else 'is'} better"


def _format_side(r: Result | None, alpha: float) -> str:
    if r is None:
        return "–"
    p, is_bound = (r.p_value, r.is_bound) if r.p_adjusted is None else (r.p_adjusted, r.is_adjusted_bound)
    p_text = "" if math.isnan(p) else f", {format_p_equals(p, alpha, is_bound=is_bound)}"
    return f"{format_score(r.score_a)} / {format_score(r.score_b)}{p_text}"


OPENED = (
    "comparisons that the gate judges, the best system and its runner-up, and doubtful results "
    "(contested, or another seed could change the verdict)"
)
NOT_OPENED = "details of single comparisons need the data: they are on the page that `sigdask run` writes"

MAX_OPENED = 4
"""Up to this number of test sets, all results are printed. With more, a table shows the verdicts."""

MAX_CHANGES = 20
"""Number of changes that are listed by default."""


def format_results(
    results_by_set: Mapping[str, Results], *, everything: bool, verbose: bool = False, width: int | None = None
) -> str:
    """Return the results of each test set with its warnings; repeated warnings are printed once."""
    parts, seen_warnings = [], set[str]()
    for name, results in results_by_set.items():
        warnings = [line for line in iter_other_warnings(results, verbose=verbose) if line not in seen_warnings]
        seen_warnings |= {*warnings}
        text = render(results, everything=everything, verbose=verbose, width=width)
        parts.append("\n".join([make_printable(f"== {name} =="), *warnings, text]))
    return "\n\n".join(parts)


def format_status(run: PlanRun, now: float) -> str:
    """Return the progress of a plan's latest run as text."""
    head = f"plan {run.plan}, run {run.number}: {run.state}{_format_message(run)}"
    timing = f"started {format_time(run.started)} by process {run.pid} on {run.host}"
    if run.ended is not None:
        timing += f", ended {format_time(run.ended)} after {format_duration(run.ended - run.started)}"
    else:
        timing += f", last stored something {format_duration(max(now - run.updated, 0))} ago"
    if (headline := run.details.get("verdict")) is not None:
        levels = format_levels(headline)
        timing += f"\ngate {format_gate(run)}{f', level {levels}' if levels else ''}"
    lines = [make_printable(head), make_printable(timing, keep="\n"), format_count(run.comparisons, "comparison")]
    if run.wanted:
        n_stored = run.kept + run.counted
        share = math.floor(1000 * min(n_stored, run.wanted) / run.wanted) / 10  # 100 only if all are stored
        lines.append(f"{n_stored:,} of {format_count(run.wanted, 'trial')} ({share:g} %)")
    if run.state == "running":
        left = "unknown" if run.seconds_left is None else f"about {format_duration(run.seconds_left)}"
        lines.append(f"time left: {left}")
    elif run.state in {"killed", "stopped", "failed"}:
        lines.append("run it again: it continues from the stored counts")
    return "\n".join(lines)


def list_run_cells(runs: Sequence[PlanRun]) -> dict[str, list[str]]:
    """Return the first columns of a list of runs."""
    return {
        "run": [str(run.number) for run in runs],
        "started": [format_time(run.started) for run in runs],
        "took": [format_duration((run.ended or run.updated) - run.started) for run in runs],
        "state": [run.state for run in runs],
    }


def format_history(runs: Sequence[PlanRun], *, width: int | None = None) -> str:
    """Return a list of runs, the latest first."""
    columns = {
        **list_run_cells(runs),
        "gate": [format_gate(run) for run in runs],
        "level": ["" if (verdict := run.details.get("verdict")) is None else format_levels(verdict) for run in runs],
        "comparisons": [f"{run.comparisons:,}" for run in runs],
        "trials": [f"{run.counted:,}" for run in runs],
        "changed": [f"{run.n_changed:,}" for run in runs],
        "sigdask": [run.details.get("versions", {}).get("sigdask", "") for run in runs],
        "": [run.message for run in runs],
    }
    if not any(columns["gate"]):
        del columns["gate"], columns["level"]
    return format_table([*columns], [*zip(*columns.values(), strict=True)], width)


def format_gate(run: PlanRun) -> str:
    """Return how a run's gate ended, "" without a verdict."""
    headline = run.details.get("verdict")
    return "" if headline is None else "passed" if headline["passed"] else "FAILED"


def format_changes(report: PlanReport, *, everything: bool = False) -> str:
    """Return the changes since an earlier run, in the order of the page."""
    changes = report.changes
    if not changes:
        return f"Nothing changed since run {report.before}."
    lines = [f"Changed since run {report.before}: {count_changes(changes)}."]
    for c in iter_changes(changes, report.alpha, None if everything else MAX_CHANGES):
        subset = f" ({c.subset})" if c.subset else ""
        head = f"    {c.test_set}{subset}: {c.a} and {c.b} by {c.metric}: {c.kinds}"
        lines += map(make_printable, (head, f"        before  {c.before}", f"        now     {c.now}"))
    if not everything and len(changes) > MAX_CHANGES:
        lines.append(f"    … and {len(changes) - MAX_CHANGES:,} more (--all shows all)")
    return "\n".join(lines)


def format_report(
    report: PlanReport,
    *,
    is_whole: bool = False,
    everything: bool = False,
    verbose: bool = False,
    page_path: str = "",
    width: int | None = None,
) -> str:
    """Return a run's changes and results as text.

    Parameters
    ----------
    report : PlanReport
        The results.
    is_whole : bool
        Show the results of all test sets in full. By default, and without `verbose`, more than a few are a table of
        verdicts.
    everything, verbose : bool
        As in `render`.
    page_path : str
        Path of the run's page. Empty if there is none.
    width : int, optional
        Columns of the terminal. None, for a pipe, sets no limit.
    """
    run = report.run
    head = f"plan {run.plan}, run {run.number} of {format_time(run.started)}: {run.state}{_format_message(run)}"
    changes = [] if report.before is None else [format_changes(report, everything=everything)]
    lines = [make_printable(head), ""]
    if len(report.results) > MAX_OPENED and not (is_whole or verbose):
        changed = list_changed_groups(report.changes.sides)
        lines += [part for text in changes for part in (text, "")]
        lines.append(format_overview(report.table, changed=changed, everything=everything, width=width))
        lines += format_shared_warnings(report.noted, everything=everything)
        lines.append("-v shows the results of each test set")
    else:
        results = format_results(report.results, everything=everything, verbose=verbose, width=width)
        lines += [*([results, ""] if results else []), *changes]
    for name, n in run.details.get("second_looks", {}).items():
        looks = f"second look: {format_count(n, 'comparison')} of {name} had a result with fewer trials before"
        lines.append(make_printable(f"{looks}, so their p was computed twice"))
    if report.n_incomplete:
        missing_text = format_count(report.n_incomplete, "result")
        lines.append(f"Some trials of {missing_text} are missing: each p is valid, but has a larger random error.")
    if page_path:
        lines.append(make_printable(f"page: {page_path}"))
    return "\n".join(lines).rstrip("\n")


def build_report_dict(report: PlanReport) -> dict[str, Any]:
    """Return the JSON document of `--json` without the results: the run and changes."""
    run, by_set = report.run, report.results
    notes = drop_duplicates(note for results in by_set.values() for note in results.notes)
    document = Results(report.table, run.details["settings"]["seed"], report.alpha, notes).around()
    for name, name_by_set in (("family", "families"), ("options", "options_by_set")):
        values = {name_of_set: to_plain(getattr(results, name)) or None for name_of_set, results in by_set.items()}
        first = next(iter(values.values()), None)
        document[name] = first if all(value == first for value in values.values()) else None
        document[name_by_set] = values
    document["plan"] = run.plan
    document["run"] = {
        "number": run.number, "state": run.state, "message": run.message, "started": format_iso(run.started),
        "ended": None if run.ended is None else format_iso(run.ended), "host": run.host,
        "versions": run.details.get("versions", {}), "inputs": run.details.get("inputs", {}),
        "second_looks": run.details.get("second_looks", {}), "incomplete": report.n_incomplete,
    }  # fmt: skip
    if (headline := run.details.get("verdict")) is not None:
        document["gate"] = headline
    document["changes"] = _build_change_dicts(report.changes)
    return document


def render_json(report: PlanReport) -> Iterator[str]:
    """Yield the JSON text of `--json` in parts: results of all test sets, the run and changes."""
    return iter_json(build_report_dict(report) | {"results": iter_array(iter_json_lines(report.table))})


def list_report_texts(report: PlanReport) -> Texts:
    """Return what files of a report hold, by format, but pages."""
    all_results = report.results.values()
    return {
        **list_paper_texts(lambda: chain.from_iterable(results.paper_tables() for results in all_results)),
        **list_table_texts(lambda: [results.table for results in all_results]),
        "json": lambda: chain(render_json(report), ["\n"]),
        "text": lambda: [format_report(report, is_whole=True, everything=True), "\n"],
    }


def write_files(
    report: PlanReport,
    files: ReportFiles,
    opened_details: Sequence[ComparisonDetails] = (),
    units: Iterable[pa.Table] = (),
) -> Iterator[UnfinishedError]:
    """Write a report's files, each whole or not at all; yield an error for each that fails.

    Parameters
    ----------
    report : PlanReport
        The report.
    files : ReportFiles
        Paths and formats of the files. Those without a path are not written.
    opened_details : sequence of ComparisonDetails
        Details of the comparisons that the page shows, by their rows in all results.
    units : iterable of pyarrow.Table
        The units of all comparisons. They are only read if a file of units is written.
    """
    texts = list_report_texts(report)
    writers: dict[str, Callable[[Path], object]] = {
        "items": lambda path: write_units(path, units),
        "html": lambda path: write_report(path, report, opened_details),
    }
    for name, path in files.files.items():
        try:
            if name in texts:
                write_parts(path, texts[name]())
            else:
                writers[name](path)
        except UnfinishedError as error:
            yield error
        except InputError as error:  # a package is missing
            yield UnfinishedError(str(error))


def write_report(
    path: Path, report: PlanReport, opened_details: Sequence[ComparisonDetails] = (), home: str = ""
) -> None:
    """Write a report as a page, with the details of single comparisons that are given; `home` as in `render_page`."""
    plan, inputs = Path(report.run.path), report.run.details.get("inputs", {})
    text = render_page(
        report.results,
        title=report.run.plan,
        created=format_now(),
        inputs={
            name: {hide_folders(path, plan.parent): digest for path, digest in files.items()}
            for name, files in inputs.items()
        },
        command=shlex.join(["sigdask", "run", plan.name]),
        parts={"plan": build_part(report), **_build_details(report, opened_details)},
        home=home,
        leading=list_failing_sets(report.run.details.get("verdict")),
    )
    write_parts(path, [text])


def _build_details(report: PlanReport, opened_details: Sequence[ComparisonDetails]) -> dict[str, PagePart]:
    tables = [results.table for results in report.results.values() if len(results)]
    if not tables:
        return {}
    settings, versions = (report.run.details.get(name, {}) for name in ("settings", "versions"))
    origins = {"seed": str(settings.get("seed", "")), **versions}
    return details.build_part(
        Table.join(tables), opened_details, reason=OPENED if opened_details else NOT_OPENED, origins=origins
    )


def build_status_dict(run: PlanRun) -> dict[str, Any]:
    """Return the JSON document of `status --json`."""
    return {
        "plan": run.plan, "run": run.number, "state": run.state, "message": run.message,
        "started": format_iso(run.started), "updated": format_iso(run.updated),
        "ended": None if run.ended is None else format_iso(run.ended), "host": run.host, "pid": run.pid,
        "comparisons": run.comparisons, "trials": run.kept + run.counted, "wanted": run.wanted,
        "seconds_left": run.seconds_left, "gate": run.details.get("verdict"),
    }  # fmt: skip


def _build_change_dicts(changes: Changes) -> list[dict[str, Any]]:
    sides = [_list_sides(table, rows.tolist()) for table, rows in changes.sides]
    return [
        {**(now or before)[0], "kinds": list(kinds), "before": before and before[1], "now": now and now[1]}
        for before, now, kinds in zip(*sides, changes.kinds, strict=True)
    ]


NUMBERS = ("score_a", "score_b", "p_value", "p_adjusted", "n_trials")


def _list_sides(table: Table, rows: Sequence[int]) -> list[Any]:
    """Return the names and numbers of each row's comparison for JSON, or None for a negative row."""
    names = {name: table[name].tolist() for name in ("test_set", "a", "b", "metric")}
    subsets = zip(table["subset.column"].tolist(), table["subset.value"].tolist(), strict=True)
    names["subset"] = [{"column": column, "value": value} if column else None for column, value in subsets]
    numbers = {name: to_plain(table[name].tolist()) for name in NUMBERS}
    return [
        None if row < 0 else [{name: column[row] for name, column in part.items()} for part in (names, numbers)]
        for row in rows
    ]


def _format_message(run: PlanRun) -> str:
    return f" ({run.message})" if run.message else ""


def format_iso(seconds: float) -> str:
    """Return a time as ISO 8601 text with its zone."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")
