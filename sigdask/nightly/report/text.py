"""What `run`, `status`, `history` and `report` say of a plan, as text."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, Unpack

from sigdask.analysis.details.details import ComparisonDetails
from sigdask.errors import InputError, UnfinishedError
from sigdask.nightly.report import page
from sigdask.nightly.report.gate import is_alarm, levels_text, reasons
from sigdask.nightly.report.highlights import counted
from sigdask.nightly.report.plots import of_report
from sigdask.nightly.store import PlanRun, Progress
from sigdask.nightly.store.status import Change, Changes, PlanReport, Status
from sigdask.options import HowPrinted
from sigdask.report.files import write_parquet, write_parts, write_whole
from sigdask.report.layout import lay_out
from sigdask.report.page import details, write_page
from sigdask.report.page.frame import PagePart
from sigdask.report.plots.folder import write_figures
from sigdask.report.presentable import Evaluation, Independences, Results
from sigdask.report.summary import verdict
from sigdask.report.summary.sentences import chance
from sigdask.report.tables.latex import document_parts as to_latex
from sigdask.report.tables.markdown import document_parts as to_markdown
from sigdask.report.tables.model import PaperTable
from sigdask.report.terminal import candidate_rankings, independence, render, warnings
from sigdask.results.columns.coded import ScoredMetric, Subset
from sigdask.results.comparisons import made_by
from sigdask.results.export import csv_parts
from sigdask.results.messages.notes import dicts, distinct, texts
from sigdask.results.record import Result
from sigdask.results.schema import VERSION
from sigdask.results.table import Table
from sigdask.statistics.rounding import p_equals, score_text
from sigdask.text import JsonMembers, clock, count_noun, duration, json_parts, plain, printable

OPENED = "those that the gate looks at, and those that another seed or a few more units could turn"
NOT_OPENED = "single comparisons are opened on the page that `sigdask run` itself writes, as it has the data at hand"

AS_EVER: HowPrinted = {}
SHOWN = 20
"""Changes listed unless all are asked for."""

FAILED, MOST_REASONS = "FAILED", 3
"""How a gate ended, and why, in a list of runs."""


def results_text(
    found: Mapping[str, Results], *, everything: bool, verbose: bool = False, width: int | None = None
) -> str:
    """Return what was found of each test set, its warnings below; what is said once is not said again."""
    parts, told = [], set[str]()
    for name, results in found.items():
        notes = [note.text for note in warnings(results, verbose=verbose) if note.text not in told]
        told |= {*notes}
        text = render(results, everything=everything, verbose=verbose, width=width)
        parts.append("\n".join([printable(f"== {name} =="), text, *(printable(f"warning: {note}") for note in notes)]))
    return "\n\n".join(parts)


def answers_text(found: Mapping[str, Results]) -> str:
    """Return a line of each test set: which system is best."""
    verdicts = {name: verdict.of(results) for name, results in found.items()}
    return "\n".join(printable(" ".join([f"{name}:", *own.scope, own.headline])) for name, own in verdicts.items())


def status_text(status: Status, now: float, *, width: int | None = None) -> str:
    """Say how far a plan is."""
    run = status.run
    head = f"plan {run.plan}, run {run.number}: {status.state}{f' ({run.message})' if run.message else ''}"
    when = f"started {clock(run.started)} by process {run.pid} on {run.host}"
    if run.ended is not None:
        when += f", ended {clock(run.ended)} after {duration(run.ended - run.started)}"
    else:
        when += f", last kept something {duration(max(now - run.updated, 0))} ago"
    if (verdict := run.details.get("verdict")) is not None:
        when += f"\ngate {_gate_word(run)}"
        when += f", level {levels_text(verdict)}" if levels_text(verdict) else ""
    rows = [[p.test_set, f"{p.comparisons:,}", f"{p.reached:,}", f"{p.finished:,}", of_trials(p)] for p in run.progress]
    lines = [printable(head), printable(when, keep="\n")]
    if rows:
        lines += ["", lay_out(["test set", "comparisons", "with a bound", "finished", "of trials"], rows, width)]
        lines += [
            "",
            f"{status.have:,} of {count_noun(status.wanted, 'trial')} ({percent(status.have, status.wanted)})",
        ]
    if status.state == "running":
        lines.append(f"{status.rate:,.0f} trials a second; {_time_left(status)}")
    elif status.state in {"killed", "stopped", "failed"}:
        lines.append("run it again: it goes on from what is kept")
    return "\n".join(lines)


def _time_left(status: Status) -> str:
    """Say how long it still takes; where a rule may stop early, at most."""
    left = status.seconds_left
    if left is None:
        return "time left unknown"
    return f"{'at most' if status.run.seconds_left is None else 'about'} {duration(left)} left"


def history_text(runs: Sequence[tuple[PlanRun, int]], *, width: int | None = None) -> str:
    """List runs, the latest first, below a line that says how it ended."""
    judged = any(_gate_word(run) for run, _ in runs)
    rows = []
    for run, changed in runs:
        took = duration((run.ended or run.updated) - run.started)
        counted = sum(p.counted for p in run.progress)
        versions = run.details.get("versions", {})
        rows.append(
            [str(run.number), clock(run.started), took, run.state, *([_gate_word(run)] if judged else []),
             *([_levels(run)] if judged else []),
             f"{sum(p.comparisons for p in run.progress):,}", f"{counted:,}", f"{changed:,}",
             versions.get("sigdask", ""), run.message]
        )  # fmt: skip
    names = ["run", "started", "took", "state", *(["gate", "level"] if judged else []), "comparisons", "trials",
             "changed", "sigdask", ""]  # fmt: skip
    return "\n".join([*map(printable, _latest(runs)), "", lay_out(names, rows, width)])


def _latest(runs: Sequence[tuple[PlanRun, int]]) -> Iterator[str]:
    """Yield how the latest run ended, and why its gate failed."""
    (run, changed), *_ = runs
    verdict, word = run.details.get("verdict"), _gate_word(run)
    n_failed = sum(_gate_word(own) == FAILED for own, _ in runs)
    n_alarms = sum(is_alarm(own.details["verdict"]) for own, _ in runs if _gate_word(own) == FAILED)
    gate = f", gate {word}" if word else ""
    often = f"; the gate failed in {n_failed} of these {len(runs)} runs" if n_failed and len(runs) > 1 else ""
    if often and n_alarms < n_failed:
        often += f", {n_alarms} of them for outputs that had not failed before"
    results = count_noun(changed, "result")
    yield f"plan {run.plan}, run {run.number}: {run.state}{_why(run)}{gate}, {results} changed{often}"
    if verdict is not None:
        yield from (f"    ! {reason['text']}" for reason in islice(reasons(verdict), MOST_REASONS))


def _levels(run: PlanRun) -> str:
    verdict = run.details.get("verdict")
    return "" if verdict is None else levels_text(verdict)


def _gate_word(run: PlanRun) -> str:
    verdict = run.details.get("verdict")
    return "" if verdict is None else "passed" if verdict["passed"] else FAILED


def changes_text(changes: Changes, alpha: float, *, everything: bool = False) -> str:
    """Say what is otherwise since the run before: significances gained and lost first, then scores."""
    if not changes:
        return "Nothing changed since the run before."
    kinds = changes.kinds
    order = sorted(range(len(changes)), key=lambda k: (_rank(kinds[k]), k))
    told = [k for k in order if everything or _rank(kinds[k]) < 3]
    shown = told if everything else told[:SHOWN]
    lines = [f"Changed since the run before: {counted(changes)}.", *(_line(changes[k], kinds[k], alpha) for k in shown)]
    if len(shown) < len(told):
        lines.append(f"    … and {len(told) - len(shown):,} more (--all shows all)")
    return "\n".join(lines)


def report_text(
    report: PlanReport, *, everything: bool = False, verbose: bool = False, width: int | None = None
) -> str:
    """Return results and what changed: of several test sets the answers of all first."""
    run = report.run
    lines = [printable(f"plan {run.plan}, run {run.number} of {clock(run.started)}: {run.state}{_why(run)}"), ""]
    if len(report.results) > 1:
        lines += [answers_text(report.results), ""]
    if report.results:
        lines += [results_text(report.results, everything=everything, verbose=verbose, width=width), ""]
    for name, text in evaluations_text(report.evaluations, everything=everything, width=width).items():
        lines += [printable(f"== {name} =="), text, ""]
    lines += list(_looks(run))
    if report.n_incomplete:
        lacking = count_noun(report.n_incomplete, "result")
        lines += [f"Some trials of {lacking} are missing; the bounds are valid as they are.", ""]
    if report.before is not None:
        lines.append(changes_text(report.changes, report.alpha, everything=everything))
    return "\n".join(lines)


def evaluations_text(
    found: Mapping[str, Evaluation | Independences], *, everything: bool = False, width: int | None = None
) -> dict[str, str]:
    """Return, by name, what is said of rankings of candidates and tests of independence."""
    return {
        name: independence.render(one, width=width)
        if isinstance(one, Independences)
        else candidate_rankings.render(one, everything=everything, width=width)
        for name, one in found.items()
    }


def report_dict(report: PlanReport) -> dict[str, Any]:
    """Return what `--json` writes, but for the results themselves: rankings, the run, and what changed."""
    made = [results.around() for results in report.results.values()]
    whole: dict[str, Any] = {**made[0]} if made else {"sigdask": made_by(), "schema_version": VERSION}
    families = [each["family"] for each in made]
    whole["family"] = families[0] if families and all(family == families[0] for family in families) else None
    whole["families"] = dict(zip(report.results, families, strict=True))
    notes = distinct(each for results in report.results.values() for each in results.notes)
    whole["warnings"], whole["notes"] = list(texts(notes)), dicts(notes)
    for key in ("results", "rankings", "together"):
        whole[key] = [row for each in made for row in each.get(key, ())]
    run = report.run
    whole["plan"] = run.plan
    whole["run"] = {
        "number": run.number, "state": run.state, "message": run.message, "started": iso(run.started),
        "ended": None if run.ended is None else iso(run.ended), "host": run.host,
        "versions": run.details.get("versions", {}), "inputs": _inputs(report),
        "second_looks": run.details.get("second_looks", {}), "incomplete": report.n_incomplete,
    }  # fmt: skip
    if (verdict := run.details.get("verdict")) is not None:
        whole["gate"] = verdict
    whole["changes"] = _change_dicts(report.changes)
    beside = report.evaluations.items()
    if ranked := {name: one.as_dict() for name, one in beside if isinstance(one, Evaluation)}:
        whole["candidates"] = ranked
    if tested := {name: one.to_dict() for name, one in beside if isinstance(one, Independences)}:
        whole["independence"] = tested
    return whole


def _inputs(report: PlanReport) -> dict[str, dict[str, str]]:
    """Return the files that a run read, by test set, with their digests."""
    found: dict[str, dict[str, str]] = report.run.details.get("inputs", {})
    return found


def report_json(report: PlanReport) -> Iterator[str]:
    """Yield the JSON text that `--json` writes, in parts: the results of all test sets, the run, and what changed."""
    lines = (part for results in report.results.values() for part in results.json_lines())
    return json_parts(report_dict(report) | {"results": JsonMembers(lines)})


def report_markdown(report: PlanReport, **printed: Unpack[HowPrinted]) -> Iterator[str]:
    """Yield tables for papers as Markdown, those of each test set."""
    return to_markdown(_paper_tables(report, printed))


def report_latex(report: PlanReport, **printed: Unpack[HowPrinted]) -> Iterator[str]:
    """Yield tables for papers as LaTeX, those of each test set."""
    return to_latex(_paper_tables(report, printed))


def _paper_tables(report: PlanReport, printed: HowPrinted) -> Iterator[PaperTable]:
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
    printed: HowPrinted = AS_EVER,
    text: Path | None = None,
    html: Path | None = None,
    figures: Path | None = None,
    figure_format: Sequence[str] = (),
    opened: Sequence[ComparisonDetails] = (),
) -> Iterator[UnfinishedError]:
    """Write a report's files, each whole or not at all; yield what cannot be written.

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
    opened : sequence of ComparisonDetails
        Comparisons that the page opens, by their rows of all results.
    """
    tables = [results.table for results in report.results.values()]
    writers: list[tuple[Path | None, Callable[[Path], object]]] = [
        (json, lambda path: write_parts(path, chain(report_json(report), ["\n"]))),
        (csv, lambda path: write_parts(path, csv_parts(tables))),
        (parquet, lambda path: write_parquet(path, tables)),
        (markdown, lambda path: write_parts(path, report_markdown(report, **printed))),
        (latex, lambda path: write_parts(path, report_latex(report, **printed))),
        (text, lambda path: write_whole(path, report_text(report, everything=True) + "\n")),
        (html, lambda path: write_report(path, report, opened)),
        (figures, lambda path: write_figures(path, of_report(report, opened), figure_format)),
    ]
    for path, write in writers:
        if path is not None:
            try:
                write(path)
            except UnfinishedError as error:
                yield error
            except InputError as error:  # a package is missing
                yield UnfinishedError(str(error))


def write_report(path: Path, report: PlanReport, opened: Sequence[ComparisonDetails] = ()) -> None:
    """Write a report as a page; comparisons are opened where the data are at hand, as in the run itself."""
    ranked = evaluations_text(report.evaluations)
    write_page(
        path,
        report.results,
        report.run.plan,
        inputs=_inputs(report),
        candidates=ranked,
        command=shlex.join(["sigdask", "run", report.run.path]),
        parts={"plan": page.part(report), **_details(report, opened)},
    )


def _details(report: PlanReport, opened: Sequence[ComparisonDetails]) -> dict[str, PagePart]:
    tables = [results.table for results in report.results.values() if len(results)]
    if not tables:
        return {}
    settings, versions = (report.run.details.get(name, {}) for name in ("settings", "versions"))
    made_of = {"seed": str(settings.get("seed", "")), **versions}
    return details.part(Table.joined(tables), opened, why=OPENED if opened else NOT_OPENED, made_of=made_of)


def status_dict(status: Status) -> dict[str, Any]:
    """Return what `status --json` writes."""
    run = status.run
    return {
        "plan": run.plan, "run": run.number, "state": status.state, "message": run.message,
        "started": iso(run.started), "updated": iso(run.updated),
        "ended": None if run.ended is None else iso(run.ended), "host": run.host, "pid": run.pid,
        "trials": status.have, "wanted": status.wanted, "trials_per_second": status.rate,
        "seconds_left": status.seconds_left, "gate": run.details.get("verdict"),
        "test_sets": [
            {"test_set": p.test_set, "comparisons": p.comparisons, "reached": p.reached, "finished": p.finished,
             "trials": p.kept + p.counted, "wanted": p.wanted}
            for p in run.progress
        ],
    }  # fmt: skip


def _change_dicts(changes: Changes) -> list[dict[str, Any]]:
    sides = [_sides(table, rows.tolist()) for table, rows in changes.sides]
    return [
        {**(now or before)[0], "kinds": list(kinds), "before": before and before[1], "now": now and now[1]}
        for before, now, kinds in zip(*sides, changes.kinds, strict=True)
    ]


NUMBERS = ("score_a", "score_b", "p_value", "p_adjusted", "n_trials")


def _sides(table: Table, rows: Sequence[int]) -> list[Any]:
    """Return (names, numbers) of rows, None where there is none."""
    names = [getattr(table, name).listed() for name in ("test_set", "subset", "a", "b", "metric")]
    columns = [plain(getattr(table, name).tolist()) for name in NUMBERS]
    return [
        None if row < 0
        else (_names(*(column[row] for column in names)), {n: c[row] for n, c in zip(NUMBERS, columns, strict=True)})
        for row in rows
    ]  # fmt: skip


def _names(test_set: str, subset: Subset | None, a: str, b: str, metric: ScoredMetric) -> dict[str, Any]:
    return {"test_set": test_set, "subset": subset and plain(subset), "a": a, "b": b, "metric": metric.name}


def _rank(kinds: Sequence[str]) -> int:
    return 0 if "lost" in kinds else 1 if "gained" in kinds and "new" not in kinds else 2 if "scores" in kinds else 3


def _line(change: Change, kinds: Sequence[str], alpha: float) -> str:
    r = change.now or change.before
    assert r is not None
    subset = f" ({r.subset['value']})" if r.subset else ""
    before, now = (_side(one, alpha) for one in (change.before, change.now))
    what = [kind for kind in kinds if kind != "p"] or ["p"]
    return printable(f"    {', '.join(what)}: {r.test_set}{subset}: {r.a} and {r.b} by {r.metric}: {before} -> {now}")


def _side(r: Result | None, alpha: float) -> str:
    if r is None:
        return "nothing"
    adjusted = "" if r.p_adjusted is None else f", adjusted {p_equals(r.p_adjusted, alpha)}"
    return f"{score_text(r.score_a)} / {score_text(r.score_b)}, {chance(r, alpha)}{adjusted}"


def _looks(run: PlanRun) -> Iterator[str]:
    for name, n in run.details.get("second_looks", {}).items():
        yield printable(
            f"second look: {count_noun(n, 'comparison')} of {name} had a result with fewer trials before; "
            "their p is a later look"
        )


def _why(run: PlanRun) -> str:
    return f" ({run.message})" if run.message else ""


def iso(seconds: float) -> str:
    """Write a time as ISO 8601, with its zone."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")


def of_trials(own: Progress) -> str:
    """Write the share of a test set's trials that are counted; all of them may be those of a test set above."""
    is_above = not own.wanted and own.finished < own.comparisons
    return "counted above" if is_above else percent(own.kept + own.counted, own.wanted)


def percent(part: int, whole: int) -> str:
    """Write a share, rounded down: 100 % only when all is done.

    Examples
    --------
    >>> percent(999_999, 1_000_000), percent(0, 0)
    ('99.9 %', '100 %')
    """
    if part >= whole:
        return "100 %"
    return f"{math.floor(1000 * part / whole) / 10:g} %"
