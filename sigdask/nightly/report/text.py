"""Text and JSON that `run`, `status`, `history` and `report` print about a plan."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, Unpack

from sigdask.analysis.details import ComparisonDetails
from sigdask.errors import InputError, UnfinishedError
from sigdask.nightly.report import page
from sigdask.nightly.report.gate import format_levels, is_alarm, iter_reasons
from sigdask.nightly.report.page import count_changes, plot_report
from sigdask.nightly.store import PlanRun, Progress
from sigdask.nightly.store.status import Change, Changes, PlanReport, Status
from sigdask.options import TableLayoutOptions
from sigdask.report.files import write_parquet, write_parts, write_whole_text
from sigdask.report.layout import format_table
from sigdask.report.page import details, write_page
from sigdask.report.page.frame import PagePart
from sigdask.report.plots.results import write_figures
from sigdask.report.presentable import Evaluation, Independences, Results
from sigdask.report.summary import headline
from sigdask.report.summary.sentences import describe_p
from sigdask.report.tables.latex import iter_document_parts as to_latex
from sigdask.report.tables.markdown import iter_document_parts as to_markdown
from sigdask.report.tables.model import PaperTable
from sigdask.report.terminal import candidate_rankings, independence, render, select_warnings
from sigdask.results.columns import ScoredMetric, Subset
from sigdask.results.comparisons import VERSION, get_version
from sigdask.results.export import iter_csv
from sigdask.results.notes import drop_duplicates, list_dicts, list_texts
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.statistics.rounding import format_p_equals, format_score
from sigdask.text import JsonMembers, format_count, format_duration, format_time, iter_json, make_printable, to_plain

OPENED = "those that the gate looks at, and those that another seed or a few more units could turn"
NOT_OPENED = "single comparisons are opened on the page that `sigdask run` itself writes, as it has the data at hand"

DEFAULT_LAYOUT: TableLayoutOptions = {}
MOST_CHANGES = 20
"""Changes listed unless all are asked for."""

FAILED, MOST_REASONS = "FAILED", 3
"""How a gate ended, and why, in a list of runs."""


def format_results(
    results_by_set: Mapping[str, Results], *, everything: bool, verbose: bool = False, width: int | None = None
) -> str:
    """Return the results of each test set with its warnings; repeated warnings are printed once."""
    parts, seen_notes = [], set[str]()
    for name, results in results_by_set.items():
        notes = [note.text for note in select_warnings(results, verbose=verbose) if note.text not in seen_notes]
        seen_notes |= {*notes}
        text = render(results, everything=everything, verbose=verbose, width=width)
        parts.append(
            "\n".join([make_printable(f"== {name} =="), text, *(make_printable(f"warning: {note}") for note in notes)])
        )
    return "\n\n".join(parts)


def format_answers(results_by_set: Mapping[str, Results]) -> str:
    """Return a line for each test set: its name, and the verdict on its results in a sentence."""
    verdicts = {name: headline.build_verdict(results) for name, results in results_by_set.items()}
    return "\n".join(
        make_printable(" ".join([f"{name}:", *set_verdict.scope, set_verdict.headline]))
        for name, set_verdict in verdicts.items()
    )


def format_status(status: Status, now: float, *, width: int | None = None) -> str:
    """Return the progress of a plan as text."""
    run = status.run
    head = f"plan {run.plan}, run {run.number}: {status.state}{f' ({run.message})' if run.message else ''}"
    timing = f"started {format_time(run.started)} by process {run.pid} on {run.host}"
    if run.ended is not None:
        timing += f", ended {format_time(run.ended)} after {format_duration(run.ended - run.started)}"
    else:
        timing += f", last kept something {format_duration(max(now - run.updated, 0))} ago"
    if (headline := run.details.get("verdict")) is not None:
        timing += f"\ngate {_format_gate(run)}"
        timing += f", level {format_levels(headline)}" if format_levels(headline) else ""
    rows = [
        [p.test_set, f"{p.comparisons:,}", f"{p.reached:,}", f"{p.finished:,}", format_progress(p)]
        for p in run.progress
    ]
    lines = [make_printable(head), make_printable(timing, keep="\n")]
    if rows:
        lines += ["", format_table(["test set", "comparisons", "with a bound", "finished", "of trials"], rows, width)]
        lines += [
            "",
            (
                f"{status.n_counted:,} of {format_count(status.n_wanted, 'trial')} "
                f"({format_percent(status.n_counted, status.n_wanted)})"
            ),
        ]
    if status.state == "running":
        lines.append(f"{status.rate:,.0f} trials a second; {_describe_time_left(status)}")
    elif status.state in {"killed", "stopped", "failed"}:
        lines.append("run it again: it goes on from what is kept")
    return "\n".join(lines)


def _describe_time_left(status: Status) -> str:
    """Return the estimated time left; an upper limit where a rule may stop early."""
    seconds = status.seconds_left
    if seconds is None:
        return "time left unknown"
    return f"{'at most' if status.run.seconds_left is None else 'about'} {format_duration(seconds)} left"


def format_history(runs: Sequence[tuple[PlanRun, int]], *, width: int | None = None) -> str:
    """Return a list of runs, the latest first, below a line about the latest."""
    is_judged = any(_format_gate(run) for run, _ in runs)
    rows = []
    for run, changed in runs:
        time_taken = format_duration((run.ended or run.updated) - run.started)
        n_counted = sum(p.counted for p in run.progress)
        versions = run.details.get("versions", {})
        rows.append(
            [
                str(run.number),
                format_time(run.started),
                time_taken,
                run.state,
                *([_format_gate(run)] if is_judged else []),
                *([_format_run_levels(run)] if is_judged else []),
                f"{sum(p.comparisons for p in run.progress):,}",
                f"{n_counted:,}",
                f"{changed:,}",
                versions.get("sigdask", ""),
                run.message,
            ]
        )
    names = ["run", "started", "took", "state", *(["gate", "level"] if is_judged else []), "comparisons", "trials",
             "changed", "sigdask", ""]  # fmt: skip
    return "\n".join([*map(make_printable, _describe_latest(runs)), "", format_table(names, rows, width)])


def _describe_latest(runs: Sequence[tuple[PlanRun, int]]) -> Iterator[str]:
    """Yield how the latest run ended, and why its gate failed."""
    (run, changed), *_ = runs
    headline, word = run.details.get("verdict"), _format_gate(run)
    n_failed = sum(_format_gate(past_run) == FAILED for past_run, _ in runs)
    n_alarms = sum(is_alarm(past_run.details["verdict"]) for past_run, _ in runs if _format_gate(past_run) == FAILED)
    gate = f", gate {word}" if word else ""
    failures_text = f"; the gate failed in {n_failed} of these {len(runs)} runs" if n_failed and len(runs) > 1 else ""
    if failures_text and n_alarms < n_failed:
        failures_text += f", {n_alarms} of them for outputs that had not failed before"
    results = format_count(changed, "result")
    state = f"{run.state}{_format_message(run)}{gate}"
    yield f"plan {run.plan}, run {run.number}: {state}, {results} changed{failures_text}"
    if headline is not None:
        yield from (f"    ! {reason['text']}" for reason in islice(iter_reasons(headline), MOST_REASONS))


def _format_run_levels(run: PlanRun) -> str:
    headline = run.details.get("verdict")
    return "" if headline is None else format_levels(headline)


def _format_gate(run: PlanRun) -> str:
    headline = run.details.get("verdict")
    return "" if headline is None else "passed" if headline["passed"] else FAILED


def format_changes(changes: Changes, alpha: float, *, everything: bool = False) -> str:
    """Return the changes since the run before: significances gained and lost first, then scores."""
    if not changes:
        return "Nothing changed since the run before."
    kinds = changes.kinds
    order = sorted(range(len(changes)), key=lambda k: (_rank_change(kinds[k]), k))
    selected = [k for k in order if everything or _rank_change(kinds[k]) < 3]
    shown = selected if everything else selected[:MOST_CHANGES]
    lines = [
        f"Changed since the run before: {count_changes(changes)}.",
        *(_format_change(changes[k], kinds[k], alpha) for k in shown),
    ]
    if len(shown) < len(selected):
        lines.append(f"    … and {len(selected) - len(shown):,} more (--all shows all)")
    return "\n".join(lines)


def format_report(
    report: PlanReport, *, everything: bool = False, verbose: bool = False, width: int | None = None
) -> str:
    """Return a run's results and changes as text; for several test sets, first the verdict on each."""
    run = report.run
    lines = [
        make_printable(
            f"plan {run.plan}, run {run.number} of {format_time(run.started)}: {run.state}{_format_message(run)}"
        ),
        "",
    ]
    if len(report.results) > 1:
        lines += [format_answers(report.results), ""]
    if report.results:
        lines += [format_results(report.results, everything=everything, verbose=verbose, width=width), ""]
    for name, text in format_evaluations(report.evaluations, everything=everything, width=width).items():
        lines += [make_printable(f"== {name} =="), text, ""]
    lines += list(_describe_looks(run))
    if report.n_incomplete:
        missing_text = format_count(report.n_incomplete, "result")
        lines += [f"Some trials of {missing_text} are missing; the bounds are valid as they are.", ""]
    if report.before is not None:
        lines.append(format_changes(report.changes, report.alpha, everything=everything))
    return "\n".join(lines)


def format_evaluations(
    evaluations: Mapping[str, Evaluation | Independences], *, everything: bool = False, width: int | None = None
) -> dict[str, str]:
    """Return candidate rankings and tests of independence as text, by name."""
    return {
        name: independence.render(evaluation, width=width)
        if isinstance(evaluation, Independences)
        else candidate_rankings.render(evaluation, everything=everything, width=width)
        for name, evaluation in evaluations.items()
    }


def build_report_dict(report: PlanReport) -> dict[str, Any]:
    """Return the JSON document of `--json` without the results: rankings, the run and changes."""
    heads = [results.around() for results in report.results.values()]
    document: dict[str, Any] = {**heads[0]} if heads else {"sigdask": get_version(), "schema_version": VERSION}
    families = [entry["family"] for entry in heads]
    document["family"] = families[0] if families and all(family == families[0] for family in families) else None
    document["families"] = dict(zip(report.results, families, strict=True))
    notes = drop_duplicates(entry for results in report.results.values() for entry in results.notes)
    document["warnings"], document["notes"] = list(list_texts(notes)), list_dicts(notes)
    for key in ("results", "rankings", "together"):
        document[key] = [row for entry in heads for row in entry.get(key, ())]
    run = report.run
    document["plan"] = run.plan
    document["run"] = {
        "number": run.number, "state": run.state, "message": run.message, "started": format_iso(run.started),
        "ended": None if run.ended is None else format_iso(run.ended), "host": run.host,
        "versions": run.details.get("versions", {}), "inputs": _get_inputs(report),
        "second_looks": run.details.get("second_looks", {}), "incomplete": report.n_incomplete,
    }  # fmt: skip
    if (headline := run.details.get("verdict")) is not None:
        document["gate"] = headline
    document["changes"] = _build_change_dicts(report.changes)
    evaluations = report.evaluations.items()
    if rankings := {
        name: evaluation.as_dict() for name, evaluation in evaluations if isinstance(evaluation, Evaluation)
    }:
        document["candidates"] = rankings
    if independences := {
        name: evaluation.to_dict() for name, evaluation in evaluations if isinstance(evaluation, Independences)
    }:
        document["independence"] = independences
    return document


def _get_inputs(report: PlanReport) -> dict[str, dict[str, str]]:
    """Return the digests of the files that a run read, by test set."""
    inputs: dict[str, dict[str, str]] = report.run.details.get("inputs", {})
    return inputs


def render_json(report: PlanReport) -> Iterator[str]:
    """Yield the JSON text of `--json` in parts: results of all test sets, the run and changes."""
    members = (line for results in report.results.values() for line in results.json_lines())
    return iter_json(build_report_dict(report) | {"results": JsonMembers(members)})


def render_markdown(report: PlanReport, **printed: Unpack[TableLayoutOptions]) -> Iterator[str]:
    """Yield the tables for papers of each test set as Markdown."""
    return to_markdown(_iter_paper_tables(report, printed))


def render_latex(report: PlanReport, **printed: Unpack[TableLayoutOptions]) -> Iterator[str]:
    """Yield the tables for papers of each test set as LaTeX."""
    return to_latex(_iter_paper_tables(report, printed))


def _iter_paper_tables(report: PlanReport, printed: TableLayoutOptions) -> Iterator[PaperTable]:
    for results in report.results.values():
        yield from results.paper_tables(**printed)


def write_files(
    report: PlanReport,
    *,
    json: Path | None = None,
    csv: Path | None = None,
    parquet: Path | None = None,
    markdown: Path | None = None,
    latex: Path | None = None,
    printed: TableLayoutOptions = DEFAULT_LAYOUT,
    text: Path | None = None,
    html: Path | None = None,
    figures: Path | None = None,
    figure_format: Sequence[str] = (),
    opened_details: Sequence[ComparisonDetails] = (),
) -> Iterator[UnfinishedError]:
    """Write a report's files, each whole or not at all; yield an error for each that fails.

    Parameters
    ----------
    report : PlanReport
        What was found.
    json, csv, parquet, markdown, latex, text, html : Path, optional
        Where to; None is not written.
    printed : dict
        Of the tables for papers, as in `Results.to_markdown`.
    figures : Path, optional
        A folder for those that fit.
    figure_format : sequence of str
        What they are written as.
    opened_details : sequence of ComparisonDetails
        Comparisons that the page opens, by their rows of all results.
    """
    tables = [results.table for results in report.results.values()]
    writers: list[tuple[Path | None, Callable[[Path], object]]] = [
        (json, lambda path: write_parts(path, chain(render_json(report), ["\n"]))),
        (csv, lambda path: write_parts(path, iter_csv(tables))),
        (parquet, lambda path: write_parquet(path, tables)),
        (markdown, lambda path: write_parts(path, render_markdown(report, **printed))),
        (latex, lambda path: write_parts(path, render_latex(report, **printed))),
        (text, lambda path: write_whole_text(path, format_report(report, everything=True) + "\n")),
        (html, lambda path: write_report(path, report, opened_details)),
        (figures, lambda path: write_figures(path, plot_report(report, opened_details), figure_format)),
    ]
    for path, write in writers:
        if path is not None:
            try:
                write(path)
            except UnfinishedError as error:
                yield error
            except InputError as error:  # a package is missing
                yield UnfinishedError(str(error))


def write_report(path: Path, report: PlanReport, opened_details: Sequence[ComparisonDetails] = ()) -> None:
    """Write a report as a page, with the details of single comparisons that are given."""
    evaluation_texts = format_evaluations(report.evaluations)
    write_page(
        path,
        report.results,
        report.run.plan,
        inputs=_get_inputs(report),
        candidates=evaluation_texts,
        command=shlex.join(["sigdask", "run", report.run.path]),
        parts={"plan": page.build_part(report), **_build_details(report, opened_details)},
    )


def _build_details(report: PlanReport, opened_details: Sequence[ComparisonDetails]) -> dict[str, PagePart]:
    tables = [results.table for results in report.results.values() if len(results)]
    if not tables:
        return {}
    settings, versions = (report.run.details.get(name, {}) for name in ("settings", "versions"))
    origins = {"seed": str(settings.get("seed", "")), **versions}
    return details.build_part(
        Table.join(tables), opened_details, reason=OPENED if opened_details else NOT_OPENED, origins=origins
    )


def build_status_dict(status: Status) -> dict[str, Any]:
    """Return the JSON document of `status --json`."""
    run = status.run
    return {
        "plan": run.plan, "run": run.number, "state": status.state, "message": run.message,
        "started": format_iso(run.started), "updated": format_iso(run.updated),
        "ended": None if run.ended is None else format_iso(run.ended), "host": run.host, "pid": run.pid,
        "trials": status.n_counted, "wanted": status.n_wanted, "trials_per_second": status.rate,
        "seconds_left": status.seconds_left, "gate": run.details.get("verdict"),
        "test_sets": [
            {"test_set": p.test_set, "comparisons": p.comparisons, "reached": p.reached, "finished": p.finished,
             "trials": p.kept + p.counted, "wanted": p.wanted}
            for p in run.progress
        ],
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
    names = [getattr(table, name).to_list() for name in ("test_set", "subset", "a", "b", "metric")]
    columns = [to_plain(getattr(table, name).tolist()) for name in NUMBERS]
    return [
        None
        if row < 0
        else (
            _build_names(*(column[row] for column in names)),
            {n: c[row] for n, c in zip(NUMBERS, columns, strict=True)},
        )
        for row in rows
    ]


def _build_names(test_set: str, subset: Subset | None, a: str, b: str, metric: ScoredMetric) -> dict[str, Any]:
    return {"test_set": test_set, "subset": subset and to_plain(subset), "a": a, "b": b, "metric": metric.name}


def _rank_change(kinds: Sequence[str]) -> int:
    return 0 if "lost" in kinds else 1 if "gained" in kinds and "new" not in kinds else 2 if "scores" in kinds else 3


def _format_change(change: Change, kinds: Sequence[str], alpha: float) -> str:
    r = change.now or change.before
    assert r is not None
    subset = f" ({r.subset['value']})" if r.subset else ""
    before, now = (_format_side(result, alpha) for result in (change.before, change.now))
    main_kinds = [kind for kind in kinds if kind != "p"] or ["p"]
    return make_printable(
        f"    {', '.join(main_kinds)}: {r.test_set}{subset}: {r.a} and {r.b} by {r.metric}: {before} -> {now}"
    )


def _format_side(r: Result | None, alpha: float) -> str:
    if r is None:
        return "nothing"
    adjusted = "" if r.p_adjusted is None else f", adjusted {format_p_equals(r.p_adjusted, alpha)}"
    return f"{format_score(r.score_a)} / {format_score(r.score_b)}, {describe_p(r, alpha)}{adjusted}"


def _describe_looks(run: PlanRun) -> Iterator[str]:
    for name, n in run.details.get("second_looks", {}).items():
        yield make_printable(
            f"second look: {format_count(n, 'comparison')} of {name} had a result with fewer trials before; "
            "their p is a later look"
        )


def _format_message(run: PlanRun) -> str:
    return f" ({run.message})" if run.message else ""


def format_iso(seconds: float) -> str:
    """Return a time as ISO 8601 text with its zone."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")


def format_progress(progress: Progress) -> str:
    """Return the share of a test set's trials that are counted, or a note that other test sets count them."""
    is_above = not progress.wanted and progress.finished < progress.comparisons
    return "counted above" if is_above else format_percent(progress.kept + progress.counted, progress.wanted)


def format_percent(n: int, total: int) -> str:
    """Return a percentage rounded down, so that only complete work is 100 %.

    Examples
    --------
    >>> format_percent(999_999, 1_000_000), format_percent(0, 0)
    ('99.9 %', '100 %')
    """
    if n >= total:
        return "100 %"
    return f"{math.floor(1000 * n / total) / 10:g} %"
