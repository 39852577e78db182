"""`sigdask reproduce`: repeats the tests of recorded results and reports whether they give the same results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import click

from sigdask.analysis.reproduce import RecordedResult, RecordedResults, ReproduceOutcome, read, reproduce_results
from sigdask.api import compare_with_options
from sigdask.cli import declare
from sigdask.cli.compare import SYSTEMS, read_systems
from sigdask.cli.streams import print_line, show_progress
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.execution.run import connect_once
from sigdask.options import RunOptions, SelectionOptions, select_options
from sigdask.report.presentable import Results
from sigdask.report.sentences import describe_p
from sigdask.results.signature import Signature
from sigdask.statistics.rounding import format_score
from sigdask.text import format_count

MAX_SHOWN = 20
"""Maximum number of differing results that are named."""


GROUPS = {
    "Results": (
        declare.option("--name TESTSET", "Test set of the results file to which the files belong."),
    ),
    "Files": declare.FILES,
    "Where to run": (*declare.RUN, *declare.CACHE),
    "Output": (declare.QUIET,),
}  # fmt: skip

EXAMPLES = (
    "sigdask reproduce results.json new.txt old.txt --gold reference.txt",
    "sigdask reproduce 'test:ar|metric:f1|…|v:0.4.0' scores.csv",
)

WHAT = click.argument("what", metavar="SIGNATURE|RESULTS")


@declare.command(WHAT, SYSTEMS, groups=GROUPS, examples=EXAMPLES)
def command(what: str, systems: tuple[str, ...], **options: Any) -> int:
    """Repeat tests from their results or signature, and check that the results are the same.

    RESULTS is the JSON that `compare`, `meta`, `run` or `report` wrote. SIGNATURE is the test signature of one result.
    The files are read as in `compare`. All options of the test are taken from the results or the signature.
    The digests of the data are compared first. Exit status 0: reproduced; 1: not reproduced.
    """
    recorded = _read_recorded(what, options["name"])
    signatures = [result.signature for result in recorded.results]
    metrics = tuple(dict.fromkeys(signature.metric for signature in signatures))
    reading = {"name": signatures[0].test_set, "metrics": metrics, "unit": None, "by": None, "systems": systems}
    columns = [name for signature in signatures for name in (signature.unit, *(signature.subset or ())[:1])]
    with show_progress() as steps:
        counts = read_systems({**options, **reading}, columns=columns)
        execution: dict[str, Any] = {**select_options(RunOptions, options), "cache": not options["no_cache"]}
        execution["progress"] = steps
        with connect_once(execution.get("cluster", "auto"), execution.get("workers")) as cluster:
            execution["cluster"] = cluster
            outcome = reproduce_results(recorded, counts, partial(_compare, execution))
    for line in _describe_outcome(outcome):
        print_line(line)
    return int(not outcome.is_reproduced)


def _compare(execution: Mapping[str, Any], counts: Counts, **options: Any) -> Results:
    """Return the results by recorded options; those of other versions are left out, as all their keys are."""
    known = {name: options[name] for name in SelectionOptions.__annotations__.keys() & options.keys()}
    return compare_with_options([counts], cast("SelectionOptions", {**execution, **known}))


def _read_recorded(what: str, name: str | None) -> RecordedResults:
    """Return the recorded results to reproduce, from a signature or a file; `name` selects a test set."""
    if what.strip().startswith("test:"):
        return RecordedResults((RecordedResult(Signature.parse(what)),))
    recorded = read(Path(what))
    names = ", ".join(recorded.test_sets)
    if name is None and len(recorded.test_sets) > 1:
        raise InputError(f"{what}: results of several test sets: {names}", remedy="choose one with --name")
    if name is not None and name not in recorded.test_sets:
        raise InputError(f"--name {name}: {what} has the test sets {names}")
    return recorded if name is None else recorded.select_test_set(name)


def _describe_outcome(outcome: ReproduceOutcome) -> Iterator[str]:
    """Yield lines on which results were reproduced and which differ."""
    n = format_count(len(outcome.repeated) + len(outcome.changed), "result")
    differing = [repeated for repeated in outcome.repeated if repeated.differences]
    messages = [f"other data: {text}" for text in outcome.changed]
    messages += [f"not the same: {text}" for text in outcome.differences]
    messages += [f"not the same: {found.recorded.label}: {'; '.join(found.differences)}" for found in differing]
    yield from messages[:MAX_SHOWN]
    if len(messages) > MAX_SHOWN:
        yield f"and {len(messages) - MAX_SHOWN:,} more"
    for repeated in outcome.repeated:
        if not repeated.recorded.values:
            r = repeated.result
            scores = f"{format_score(r.score_a)} and {format_score(r.score_b)}"
            yield f"{r.metric}, {r.a} and {r.b}: {scores}; {describe_p(r, 0.05)}"
    if outcome.is_reproduced:
        what = "every count and p-value" if outcome.repeated[0].recorded.values else "data and settings"
        yield f"reproduced: {what} ({n})"
        yield from (f"not compared ({reason}): {', '.join(names)}" for reason, names in outcome.not_compared.items())
    else:
        yield f"not reproduced: {len(differing) + len(outcome.changed):,} of {n}"
    yield from (f"note: {text}" for text in outcome.notes)
