"""A plan's gate at the end of a run: gather evidence, judge rules, write files, call the web hook."""

from __future__ import annotations

import http.client
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from sigdask.counts import Counts
from sigdask.errors import SigdaskError
from sigdask.nightly.gate.judge import Count, gather_evidence, judge_rules
from sigdask.nightly.gate.rules import ComparisonKey, Evidence, GateVerdict, format_rule_name, select_rows
from sigdask.nightly.plan import Gate, Plan
from sigdask.nightly.plan.model import fill_date
from sigdask.nightly.report.gate import build_record, render, render_junit
from sigdask.nightly.report.text import list_keys
from sigdask.nightly.run.work import iter_missing
from sigdask.nightly.store import PlanRun, Store
from sigdask.nightly.store.results import fetch_results
from sigdask.nightly.store.runs import iter_runs
from sigdask.nightly.test_sets import build_spec
from sigdask.report.files import write_parts
from sigdask.results.table import Table
from sigdask.text import as_json_line, escape_json, redact

DAYS_PER_YEAR = 365
"""Number of days within which runs are compared with the plan's number of runs per year."""


def judge_night(
    plan: Plan,
    store: Store,
    table: Table,
    counts: Mapping[str, Counts],
    *,
    count: Count,
    interruptible: Callable[[], AbstractContextManager[None]],
) -> tuple[GateVerdict, list[str]]:
    """Judge a run by its plan's gate, record the verdict in the store, write its files and call the web hook.

    Parameters
    ----------
    plan : Plan
        The plan, with a gate.
    store : Store
        Open for the plan's driver.
    table : Table
        Results of all test sets, adjusted as in the plan.
    counts : mapping of str to Counts
        The test sets, by name, as the run read them.
    count : callable
        Counts the jobs of margin tests.
    interruptible : callable
        Context manager for work that may be interrupted.

    Returns
    -------
    (GateVerdict, list of str)
        The verdict, and failures of files and of the web hook.
    """
    assert plan.gate is not None
    evidence = collect_history(plan, store, table)
    for test_set in plan.test_sets:
        own = counts[test_set.name]
        spec = build_spec(test_set, own, ())
        evidence += Evidence(absent=tuple(iter_missing(own, spec)))
        evidence += gather_evidence(own, table, plan.gate.rules, spec, count=count, interruptible=interruptible)
    verdict = judge_rules(plan.gate.rules, table, evidence, runs_per_year=plan.gate.runs_per_year)
    store.commit(details=store.run.details | {"verdict": build_record(verdict)})
    return verdict, list(publish_verdict(plan, verdict, datetime.fromtimestamp(store.run.started).astimezone()))


def collect_history(plan: Plan, store: Store, table: Table) -> Evidence:
    """Return the evidence of earlier runs: how many there were, and comparisons that are gone.

    Parameters
    ----------
    plan : Plan
        With a gate.
    store : Store
        Open for the plan's driver, after a run.
    table : Table
        Results of the run.
    """
    assert plan.gate is not None
    judged_runs = store.read(lambda c: [run for run in iter_runs(c, plan.name) if "verdict" in run.details])[::-1]
    if not judged_runs:
        return Evidence(n_runs=1)
    last_judged = judged_runs[-1]
    last_table = store.read(fetch_results, plan.name, last_judged.number)
    baselines = dict.fromkeys(last_table.test_set.levels.tolist(), plan.comparison["baseline"])
    last_rules = [rule for rule in last_judged.details["verdict"]["rules"] if rule["rule"].get("baseline") is None]
    baselines |= {finding["key"][0]: finding["baseline"] for rule in last_rules for finding in rule["findings"]}
    baselines |= {t.name: t.comparison["baseline"] for t in plan.test_sets}
    dropped: dict[str, list[ComparisonKey]] = {}
    for rule in plan.gate.rules:
        current = {*list_keys(table.take(select_rows(rule, table, baselines)))}
        last_keys = list_keys(last_table.take(select_rows(rule, last_table, baselines)))
        if lost := [key for key in last_keys if key not in current]:
            dropped[format_rule_name(rule)] = lost
    return Evidence(dropped=dropped, n_runs=_count_runs([*judged_runs, store.run]))


def _count_runs(runs: Sequence[PlanRun]) -> int:
    """Return the number of runs in the year before the last of them, which is included; equal neighbours are one."""
    recent = [run for run in runs if run.started >= runs[-1].started - DAYS_PER_YEAR * 86_400]
    return 1 + sum(bool(a.details.get("inputs") != b.details.get("inputs")) for a, b in pairwise(recent))


def withdraw_verdict(plan: Plan) -> None:
    """Remove the gate's files of an earlier run, so that none is taken for the verdict of a run that fails."""
    for path in (plan.gate.junit, plan.gate.json) if plan.gate else ():
        if path is not None and path.is_file() and not path.is_symlink():
            with suppress(OSError):  # it cannot be written later either, which is an error then
                path.unlink()


def publish_verdict(plan: Plan, verdict: GateVerdict, start: datetime) -> Iterator[str]:
    """Write the gate's files and call its web hook; yield a message for each failure.

    Parameters
    ----------
    plan : Plan
        With the gate.
    verdict : GateVerdict
        How it ended.
    start : datetime
        Start of the run, for `{date}` and `{time}`.
    """
    gate = plan.gate
    assert gate is not None
    for path, text in ((gate.junit, render_junit(verdict, plan.name)), (gate.json, verdict.to_json() + "\n")):
        if path is not None:
            try:
                write_parts(fill_date(path, start), [text])
            except SigdaskError as error:
                yield f"gate: {error}"
    yield from call_webhook(gate, verdict, plan.name)


TIMEOUT = 30.0
"""Seconds for the whole exchange with a web hook."""


def call_webhook(settings: Gate, verdict: GateVerdict, name: str) -> Iterator[str]:
    """Post the verdict's JSON to the web hook of a plan, with a `text` that chat programs show; yield why it failed.

    Parameters
    ----------
    settings : Gate
        Settings of the plan.
    verdict : GateVerdict
        How it ended.
    name : str
        The plan's.
    """
    if settings.webhook is None or (verdict.passed and settings.when == "failed"):
        return
    fields = {"plan": name, "text": f"{name}: {render(verdict)}", **verdict.to_dict()}
    body = escape_json(as_json_line(fields)).encode()
    if trouble := _post_in_thread(settings.webhook, body):
        yield f"gate.webhook: {trouble}"


def _post_in_thread(url: str, body: bytes) -> str | None:
    """Post to a URL; return why that failed, or None. A thread enforces the time limit on the whole exchange."""
    answers: list[str | None] = []
    thread = threading.Thread(target=lambda: answers.append(_send_request(url, body)), daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    return answers[0] if answers else f"no answer within {TIMEOUT:g} s"


def _send_request(url: str, body: bytes) -> str | None:
    """Post to a URL; return why that failed, or None. No body of an answer is read."""
    secrets: list[str] = []
    try:
        parts = urlsplit(url)
        secrets += filter(None, (parts.path, parts.query, parts.netloc.rpartition("@")[0]))
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310  # http or https, by the plan
        urllib.request.build_opener(WithoutRedirects).open(request, timeout=TIMEOUT).close()
    except urllib.error.HTTPError as error:
        error.close()
        is_redirect = 300 <= error.code < 400
        return f"answered with status {error.code}{', a redirect, which is not followed' if is_redirect else ''}"
    except (OSError, ValueError) as error:  # URLError and timeouts are OSErrors
        return redact(f"no answer ({getattr(error, 'reason', None) or error})", values=secrets)
    except http.client.HTTPException as error:  # its text may hold the URL
        return f"no answer ({type(error).__name__})"
    return None


class WithoutRedirects(urllib.request.HTTPRedirectHandler):
    """Make redirects errors. urllib would follow them to other hosts, and read their bodies whatever their size."""

    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect."""
