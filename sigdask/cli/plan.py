"""The commands on plans: check, run, submit, status, history, report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from sigdask.cli.declared_options import papers
from sigdask.cli.output.figures import check_figures, drawing, write_figures
from sigdask.cli.output.progress import files_of, progress
from sigdask.cli.output.write import (
    LOG,
    be_quiet,
    check_outputs,
    note,
    say,
    say_data,
    say_json,
    width,
    write_data,
    write_json,
)
from sigdask.errors import InputError, UnfinishedError
from sigdask.options import PRINTED, HowPrinted
from sigdask.text import count_noun, printable

if TYPE_CHECKING:
    from sigdask.nightly.plan import Plan
    from sigdask.nightly.run import Outcome
    from sigdask.nightly.store.status import PlanReport


@click.command()
@click.argument("plan", metavar="PLAN.toml", required=False)
@click.option("--schema", is_flag=True, help="Print the JSON schema of plans, for editors, and leave.")
def check(plan: str | None, *, schema: bool) -> None:
    """Validate a plan, read its data and say what it would cost; nothing is compared."""
    from sigdask.nightly import plan as plans

    if schema:
        click.echo(plans.schema_text(), nl=False)
        return
    if plan is None:
        raise InputError("check: expected a plan file, such as plan.toml")
    from sigdask.nightly.report.cost import render
    from sigdask.nightly.run.estimate import estimate, n_threads

    loaded = plans.load_plan(plan)
    with progress() as steps, steps.reading(_files(loaded)):
        costs = estimate(loaded, steps.extracting)
    stops = loaded.stopping is not None
    say(render(loaded.name, costs, n_threads(loaded), gate=loaded.gate, stops=stops, width=width()))


@click.command()
@click.argument("plan_file", metavar="PLAN.toml")
@click.option("--store", metavar="FILE|URL", help="Where counts and results are kept.  [default: beside the plan]")
@click.option("--cluster", help="As in `compare`, instead of the plan's.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Threads or processes to start.")
@click.option("--deadline", metavar="TIME", help="Stop in time: 06:00 (the next one), 90m, 1h30m.")
@click.option("-v", "--verbose", is_flag=True, help="Show what each p stands on: runs, checks, dependence.")
@click.option("--all", "everything", is_flag=True, help="Show every comparison.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the results, and what changed, as JSON.")
@papers
@drawing
@click.option("-q", "--quiet", is_flag=True, help="Say nothing beside results, warnings and errors.")
def run(plan_file: str, everything: bool, verbose: bool, json_file: str | None, **options: Any) -> int:
    """Run a plan: count what is missing, and report.

    Again after a stop it goes on; when nothing is missing it counts nothing.
    """
    from sigdask.nightly.plan import load_plan
    from sigdask.nightly.run import parse_deadline, run_plan

    deadline = parse_deadline(options["deadline"]) if options["deadline"] is not None else None
    tables = _PaperTables.of(options, json_file)
    check_figures(options["figures"], options["figure_format"])
    plan = load_plan(plan_file)
    if options["quiet"]:
        be_quiet()
    with progress(quiet=options["quiet"]) as steps, steps.reading(_files(plan)):
        outcome = run_plan(
            plan, store=options["store"], cluster=options["cluster"], workers=options["workers"],
            deadline=deadline, progress=steps, note=note,
        )  # fmt: skip
    from sigdask.nightly.report.plots import of_report

    status = _tell(outcome, json_file, tables, everything=everything, verbose=verbose)
    if outcome.report is not None:
        write_figures(options["figures"], options["figure_format"], of_report(outcome.report))
    return status


@click.command()
@click.argument("plan", type=click.Path(path_type=Path), metavar="PLAN.toml")
@click.option("--cluster", required=True, type=click.Path(path_type=Path), metavar="FILE.toml", help="Of class slurm.")
@click.option("--store", metavar="FILE|URL", help="As in `run`.")
@click.option("--deadline", metavar="TIME", help="As in `run`.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and send nothing.")
def submit(plan: Path, cluster: Path, store: str | None, deadline: str | None, *, dry_run: bool) -> None:
    """Send the driver itself to Slurm as a batch job that comes back until the plan is done."""
    import shlex

    from sigdask.execution.clusters.queues.submission import prepare

    given = {"--store": store, "--deadline": None if deadline is None else _fixed(deadline)}
    options = [word for key, value in given.items() if value is not None for word in (key, value)]
    ready = prepare(plan, cluster, options=options)
    if dry_run:
        say_data(f"{shlex.join(ready.arguments)} <<'END'\n{ready.script}END\n")
        return
    say(printable(f"submitted as job {ready.send()}; `sigdask status {shlex.quote(str(plan))}` follows it"))


@click.command()
@click.argument("where", metavar="PLAN.toml|STORE")
@click.option("--store", metavar="FILE|URL", help="Instead of the plan's.")
@click.option("--plan", "name", help="Which plan, where a store has several.")
@click.option("--json", "in_json", is_flag=True, help="Write JSON.")
def status(where: str, store: str | None, name: str | None, in_json: bool) -> None:
    """Show how far a plan is, while it runs or after."""
    from sigdask.nightly.report.text import status_dict, status_text
    from sigdask.nightly.store import status as views
    from sigdask.text import as_json

    found = views.status(*store_and_plan(where, store, name))
    if in_json:
        say_json(as_json(status_dict(found)))
    else:
        say(status_text(found, time.time(), width=width()))


@click.command()
@click.argument("where", metavar="PLAN.toml|STORE")
@click.option("--store", metavar="FILE|URL", help="Instead of the plan's.")
@click.option("--plan", "name", help="Which plan, where a store has several.")
@click.option("--last", type=click.IntRange(min=1), default=30, show_default=True, metavar="N", help="How many runs.")
def history(where: str, store: str | None, name: str | None, last: int) -> None:
    """List the runs of a plan."""
    from sigdask.nightly.report.text import history_text
    from sigdask.nightly.store import status as views

    say(history_text(views.runs(*store_and_plan(where, store, name), last), width=width()))


@click.command()
@click.argument("where", metavar="PLAN.toml|STORE")
@click.option("--store", metavar="FILE|URL", help="Instead of the plan's.")
@click.option("--plan", "name", help="Which plan, where a store has several.")
@click.option("--run", "number", type=int, metavar="N", help="After this run.  [default: the latest]")
@click.option("-v", "--verbose", is_flag=True, help="Show what each p stands on: runs, checks, dependence.")
@click.option("--all", "everything", is_flag=True, help="Show every comparison and change.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write JSON.")
@papers
@click.option("--html", "html_file", metavar="FILE", help="Write a page that needs nothing else.")
@drawing
def report(
    where: str,
    store: str | None,
    name: str | None,
    number: int | None,
    verbose: bool,
    everything: bool,
    json_file: str | None,
    html_file: str | None,
    figures: str | None,
    figure_format: str,
    **options: Any,
) -> None:
    """Show what a plan has found, and what changed since the run before."""
    from sigdask.nightly.report.gate import recorded_text
    from sigdask.nightly.report.plots import of_report
    from sigdask.nightly.report.text import report_json, report_text, write_report
    from sigdask.nightly.store import status as views

    tables = _PaperTables.of(options, json_file, html=html_file)
    check_figures(figures, figure_format)
    found = views.report(*store_and_plan(where, store, name), number)
    if "-" not in (json_file, *tables.files.values()):
        if (kept := found.run.details.get("verdict")) is not None:
            say(f"{recorded_text(kept)}\n")
        say(report_text(found, everything=everything, verbose=verbose, width=width()))
    write_json(json_file, lambda: report_json(found))
    tables.write(found)
    if html_file is not None:
        write_report(Path(html_file), found)
    write_figures(figures, figure_format, of_report(found))


@dataclass(frozen=True, slots=True)
class _PaperTables:
    """Tables for papers that a command writes.

    Attributes
    ----------
    files : dict of str to str or None
        By "markdown" and "latex".
    printed : dict
        How they are laid out.
    """

    files: dict[str, str | None]
    printed: HowPrinted

    @staticmethod
    def of(options: dict[str, Any], json_file: str | None, **others: str | None) -> _PaperTables:
        """Take what is asked for, refused where it cannot be written."""
        files = {name: options[f"{name}_file"] for name in ("markdown", "latex")}
        check_outputs(json=json_file, **files, **others)
        for name, printed in PRINTED.items():
            printed.check(name, options[name])
        return _PaperTables(files, cast("HowPrinted", {name: options[name] for name in PRINTED}))

    def write(self, found: PlanReport) -> None:
        """Write what is asked for."""
        from sigdask.nightly.report.text import report_latex, report_markdown

        for name, parts in (("markdown", report_markdown), ("latex", report_latex)):
            if (file := self.files[name]) is not None:
                write_data(file, parts(found, **self.printed), f"--{name}")


def _files(plan: Plan) -> Iterator[Path]:
    """Yield what a plan reads."""
    for test_set in plan.test_sets:
        yield from filter(None, (test_set.gold, *files_of(test_set.sources)))
    yield from (one.path for one in plan.rankings)
    yield from (path for one in plan.independence for path in one.files())


def _fixed(deadline: str) -> str:
    """Return a deadline that means the same whenever it is read: a job may start late, and again."""
    from datetime import datetime

    from sigdask.nightly.run import parse_deadline

    return datetime.fromtimestamp(parse_deadline(deadline)).astimezone().isoformat(timespec="seconds")


def store_and_plan(where: str, store: str | None, name: str | None) -> tuple[str, str | None]:
    """Return the store and the plan's name that a plan file, or a store, stands for."""
    if not where.endswith(".toml"):
        return store or where, name
    from sigdask.nightly.plan import peek

    kept, called = peek(where)
    return store or kept, name or called


def _tell(outcome: Outcome, json_file: str | None, tables: _PaperTables, *, everything: bool, verbose: bool) -> int:
    """Say how a run ended: the gate, then results and changes as the store has them, or why there are none.

    Returns the exit status.
    """
    from sigdask.nightly.report.gate import render
    from sigdask.nightly.report.text import report_json, report_text

    unwritten = [*outcome.unwritten]
    is_piped = "-" in (json_file, *tables.files.values())
    if outcome.gate is not None:
        say(f"{render(outcome.gate)}\n", beside=is_piped)
    if (found := outcome.report) is not None:
        if not is_piped:
            say(report_text(found, everything=everything, verbose=verbose, width=width()))
        try:
            write_json(json_file, lambda: report_json(found))
            tables.write(found)
        except UnfinishedError as error:
            unwritten.insert(0, error)
    for one in unwritten:
        LOG.error(str(one))
    note(
        f"{count_noun(outcome.n_counted, 'trial')} counted, {count_noun(outcome.n_changed, 'result')} new or otherwise"
        f"; kept in {outcome.where}"
    )
    for problem in outcome.problems:
        LOG.error(problem)
    if outcome.stopped:
        note(f"stopped by {outcome.stopped}; run it again to go on from what is kept")
    for word in (*outcome.untold, *([] if outcome.unjudged is None else [str(outcome.unjudged)])):
        LOG.error(word)
    return outcome.exit_status or (UnfinishedError.exit_status if unwritten else 0)
