"""The command line: reads options, wires nothing twice, turns errors into one line and a status."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from sigdask.errors import InputError, SigdaskError, UnfinishedError

if TYPE_CHECKING:
    from sigdask.clusters import Cluster
    from sigdask.counts import Counts
    from sigdask.engine import Progress
    from sigdask.overnight import Outcome
    from sigdask.overnight.look import Report
    from sigdask.plan import Plan
    from sigdask.results import Results

INTERRUPTED = 3

LOG = logging.getLogger("sigdask")


def main() -> NoReturn:
    """Run a command; leave with its exit status and never with a traceback."""
    from sigdask.logs import to_stderr

    to_stderr(as_json="--log-json" in sys.argv)
    try:
        status = commands.main(standalone_mode=False)
    except SigdaskError as error:
        _fail(str(error), error.exit_status)
    except click.exceptions.Abort:
        _fail("interrupted", INTERRUPTED)
    except click.ClickException as error:
        _fail(f"{error.format_message()} (see sigdask --help)", 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # the last resort: a line instead of a traceback
        if os.environ.get("SIGDASK_DEBUG"):
            raise
        _fail(f"internal error, please report it (SIGDASK_DEBUG=1 shows where): {type(error).__name__}: {error}", 70)
    sys.exit(status or 0)


def _fail(message: str, status: int) -> NoReturn:
    LOG.error(message, extra={"status": status})
    sys.exit(status)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="sigdask", prog_name="sigdask")
@click.option("--log-json", is_flag=True, help="Log lines as JSON, one object a line; also SIGDASK_LOG=json.")
def commands(*, log_json: bool) -> None:
    """Is a difference in score real? Approximate-randomization tests at any scale, on dask."""
    from sigdask.logs import to_stderr

    to_stderr(as_json=log_json)


@commands.command()
@click.argument("systems", nargs=-1, required=True, metavar="[NAME=]SYSTEM...")
@click.option("--gold", metavar="FILE", help="File of what is right.")
@click.option("--format", "format_", default="auto", show_default=True, help="See `sigdask formats`.")
@click.option("--metric", "metrics", multiple=True, metavar="M", help="See `sigdask metrics`; may be repeated.")
@click.option("--unit", "units", multiple=True, metavar="COLUMN",
              help="What is exchanged as a whole; of several nested ones the coarsest.  [default: item]")  # fmt: skip
@click.option("--by", metavar="COLUMN", help="Compare within each value of a column.")
@click.option("--together", is_flag=True, help="With --by: judge each pair over all subsets as well.")
@click.option("--pair", "pairs", nargs=2, multiple=True, metavar="A B", help="Compare these two; may be repeated.")
@click.option("--baseline", metavar="NAME", help="Compare every system with this one only, which becomes B.")
@click.option("--alternative", type=click.Choice(["two-sided", "greater", "less"]), default="two-sided",
              show_default=True, help="Of score A - score B.")  # fmt: skip
@click.option("--method", type=click.Choice(["auto", "randomization", "exact", "both"]), default="auto",
              show_default=True, help="auto enumerates 20 or fewer discordant units.")  # fmt: skip
@click.option("--trials", type=int, metavar="N", help="Random trials.  [default: 1048576; black boxes 10000]")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Level of the verdicts.")
@click.option("--adjust",
              type=click.Choice(["none", "holm", "hochberg", "bh", "by", "max-t", "single-step-max-t", "tukey"]),
              help="For many comparisons.  [default: max-t for three systems and more, else none]")  # fmt: skip
@click.option("--no-second-run", is_flag=True, help="Leave out the cross-check by a second run.")
@click.option("--name", default="", metavar="TESTSET", help="The test set's name; part of the address of its shuffles.")
@click.option("--id", "id_column", metavar="COLUMN", help="Column of item ids.")
@click.option("--gold-column", metavar="COLUMN", help="Column of what is right.")
@click.option("--prediction-column", metavar="COLUMN", help="Column of the answer, in files of one system.")
@click.option("--system-column", metavar="COLUMN", help="Column of the system, in long tables.")
@click.option("--score-column", metavar="COLUMN", help="Column of the score, in long tables.")
@click.option("--map", "maps", multiple=True, metavar="TO=FROM,FROM", help="Read labels as another; may be repeated.")
@click.option("--ignore", multiple=True, metavar="COLUMN", help="Leave a column out; may be repeated.")
@click.option("--align", type=click.Choice(["auto", "id", "position"]), default="auto", show_default=True,
              help="How rows of several files belong together.")  # fmt: skip
@click.option("--missing", type=click.Choice(["error", "pairwise", "zero"]),
              help="What an absent score means.  [default: error; zero for topics of runs]")  # fmt: skip
@click.option("--reference", "references", multiple=True, metavar="FILE", help="Further references of segments.")
@click.option("--documents", metavar="FILE", help="The document of each segment, one a line (--unit document).")
@click.option("--cluster", default="auto", show_default=True,
              help="auto, none, threads, local, tcp://…, tls://…, SCHEDULER.json or FILE.toml.")  # fmt: skip
@click.option("--workers", type=int, metavar="N", help="Threads or processes to start.  [default: one a core]")
@click.option("--performance-report", metavar="FILE.html", help="Write dask's report of the run.")
@click.option("--all", "everything", is_flag=True, help="Show every comparison.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the results as JSON.")
@click.option("--html", "html_file", metavar="FILE", help="Write the results as a page that needs nothing else.")
def compare(**options: Any) -> None:
    """Compare systems on one test set.

    SYSTEM is a file of one system's outputs or scores, or a table with one column a system. Several
    files under one NAME are its replicates (optimizer runs, seeds): its score is the mean of theirs.
    """
    counts, format_ = _read(options)
    metrics = options["metrics"] or counts.suggested
    json_file = options["json_file"]
    _check_outputs(json=json_file, html=options["html_file"])
    times = f" x {len(counts.replicates)} replicates" if counts.replicates else ""
    _note(f"read as {format_}: {counts.n_systems} systems{times}, {counts.of_one.n_items:,} items")
    if not options["metrics"]:
        _note(f"metric: {', '.join(metrics)} (choose with --metric)")
    for warning in counts.warnings:
        LOG.warning(warning)
    results = _compare(counts, metrics, options)
    for warning in results.warnings:
        if warning not in counts.warnings:
            LOG.warning(warning)
    if json_file != "-":
        _show(results, everything=options["everything"])
    _write_json(json_file, results.to_json)
    if options["html_file"] is not None:
        _write_page(Path(options["html_file"]), {options["name"]: results}, options["name"] or format_)


@commands.command()
@click.argument("plan", metavar="PLAN.toml", required=False)
@click.option("--schema", is_flag=True, help="Print the JSON schema of plans, for editors, and leave.")
def check(plan: str | None, *, schema: bool) -> None:
    """Validate a plan, read its data and say what it would cost; nothing is compared."""
    from sigdask import plan as plans

    if schema:
        click.echo(plans.schema_text(), nl=False)
        return
    if plan is None:
        raise InputError("check: expected a plan file, such as plan.toml")
    from sigdask.estimate import estimate, n_threads
    from sigdask.report.cost import render

    loaded = plans.load_plan(plan)
    click.echo(render(loaded.name, estimate(loaded), n_threads(loaded), width=_width()))


@commands.command()
@click.argument("plan_file", metavar="PLAN.toml")
@click.option("--store", metavar="FILE|URL", help="Where counts and results are kept.  [default: beside the plan]")
@click.option("--cluster", help="As in `compare`, instead of the plan's.")
@click.option("--workers", type=int, metavar="N", help="Threads or processes to start.")
@click.option("--deadline", metavar="TIME", help="Stop in time: 06:00 (the next one), 90m, 1h30m.")
@click.option("--all", "everything", is_flag=True, help="Show every comparison.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the results, and what changed, as JSON.")
def run(plan_file: str, everything: bool, json_file: str | None, **options: Any) -> int:
    """Run a plan: count what is missing, and report.

    Again after a stop it goes on; when nothing is missing it counts nothing.
    """
    from sigdask.overnight import parse_deadline, run_plan
    from sigdask.plan import load_plan

    deadline = parse_deadline(options["deadline"]) if options["deadline"] else None
    _check_outputs(json=json_file)
    plan = load_plan(plan_file)
    with _progress() as progress:
        outcome = run_plan(
            plan, store=options["store"], cluster=options["cluster"], workers=options["workers"],
            deadline=deadline, progress=progress, note=_note,
        )  # fmt: skip
    _tell(plan, outcome, everything=everything, json_file=json_file)
    return outcome.exit_status or _gate(plan, outcome, options, deadline, quiet=json_file == "-")


@commands.command()
@click.argument("where", metavar="PLAN.toml|STORE")
@click.option("--store", metavar="FILE|URL", help="Instead of the plan's.")
@click.option("--plan", "name", help="Which plan, where a store has several.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def status(where: str, store: str | None, name: str | None, as_json: bool) -> None:
    """Show how far a plan is, while it runs or after."""
    import json

    from sigdask.overnight import look
    from sigdask.report.overnight import status_dict, status_text

    found = look.status(*_store_and_plan(where, store, name))
    click.echo(json.dumps(status_dict(found), indent=1) if as_json else status_text(found, time.time()))


@commands.command()
@click.argument("where", metavar="PLAN.toml|STORE")
@click.option("--store", metavar="FILE|URL", help="Instead of the plan's.")
@click.option("--plan", "name", help="Which plan, where a store has several.")
@click.option("--last", type=int, default=30, show_default=True, metavar="N", help="How many runs.")
def history(where: str, store: str | None, name: str | None, last: int) -> None:
    """List the runs of a plan."""
    from sigdask.overnight import look
    from sigdask.report.overnight import history_text

    click.echo(history_text(look.runs(*_store_and_plan(where, store, name), last)))


@commands.command()
@click.argument("where", metavar="PLAN.toml|STORE")
@click.option("--store", metavar="FILE|URL", help="Instead of the plan's.")
@click.option("--plan", "name", help="Which plan, where a store has several.")
@click.option("--run", "number", type=int, metavar="N", help="After this run.  [default: the latest]")
@click.option("--all", "everything", is_flag=True, help="Show every comparison and change.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write JSON.")
@click.option("--html", "html_file", metavar="FILE", help="Write a page that needs nothing else.")
def report(
    where: str,
    store: str | None,
    name: str | None,
    number: int | None,
    everything: bool,
    json_file: str | None,
    html_file: str | None,
) -> None:
    """Show what a plan has found, and what changed since the run before."""
    from sigdask.overnight import look
    from sigdask.report.overnight import report_json, report_text

    _check_outputs(json=json_file, html=html_file)
    found = look.report(*_store_and_plan(where, store, name), number)
    if json_file != "-":
        click.echo(report_text(found, everything=everything, width=_width()))
    _write_json(json_file, lambda: report_json(found))
    if html_file is not None:
        _write_page(Path(html_file), found.results, found.run.plan)


@commands.command()
@click.option("--cluster", default="local", show_default=True, help="Where counts are held against this process.")
@click.option("--workers", type=int, metavar="N")
def verify(cluster: str, workers: int | None) -> int:
    """Audit the program itself: streams, Yeh's example, sampled against exact, this cluster."""
    from sigdask.verify import audits

    failed = 0
    for name, passed, detail in audits(cluster, workers):
        click.echo(f"{'ok    ' if passed else 'FAILED'}  {name}: {detail}")
        failed += not passed
    click.echo(f"\n{failed} of the audits failed" if failed else "\nall audits passed")
    return 1 if failed else 0


@commands.command()
@click.argument("plan", type=click.Path(path_type=Path), metavar="PLAN.toml")
@click.option("--cluster", required=True, type=click.Path(path_type=Path), metavar="FILE.toml", help="Of class slurm.")
@click.option("--store", metavar="FILE|URL", help="As in `run`.")
@click.option("--deadline", metavar="TIME", help="As in `run`.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and send nothing.")
def submit(plan: Path, cluster: Path, store: str | None, deadline: str | None, *, dry_run: bool) -> None:
    """Send the driver itself to Slurm as a batch job that comes back until the plan is done."""
    import shlex

    from sigdask.submission import prepare

    given = {"--store": store, "--deadline": deadline}
    options = [word for key, value in given.items() if value is not None for word in (key, value)]
    ready = prepare(plan, cluster, options=options)
    if dry_run:
        click.echo(f"{shlex.join(ready.arguments)} <<'END'\n{ready.script}END")
        return
    click.echo(f"submitted as job {ready.send()}; `sigdask status {shlex.quote(str(plan))}` follows it")


@commands.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--days", type=float, default=14.0, show_default=True, help="How long they are valid.")
def certificates(folder: Path, days: float) -> None:
    """Make an authority and certificates for scheduler, workers and clients that speak TLS.

    Name FOLDER in a cluster file ([security] folder) and give it to `dask scheduler` and `dask worker`.
    """
    from sigdask.clusters.certificates import make

    if not 0 < days <= 398:
        raise InputError(f"--days {days:g}: must be more than 0, at most 398")
    files = make(folder, days=days)
    _note(f"valid for {days:g} days, readable by their owner only: {', '.join(path.name for path in files)}")


@commands.command()
def metrics() -> None:
    """List the metrics."""
    from sigdask.metrics import METRICS

    for name, (_, text) in METRICS.items():
        click.echo(f"{name:16}{text}")
    click.echo(f"{'MODULE:NAME':16}your own: a @sigdask.metric of summed counts, or any f(outputs, gold) -> float")


@commands.command()
def formats() -> None:
    """List the file formats."""
    from sigdask.formats import FORMATS

    for name, (_, text) in FORMATS.items():
        click.echo(f"{name:16}{text}")


def _store_and_plan(where: str, store: str | None, name: str | None) -> tuple[str, str | None]:
    """Return the store and the plan's name that a plan file, or a store, stands for."""
    if not where.endswith(".toml"):
        return store or where, name
    from sigdask.plan import peek

    kept, called = peek(where)
    return store or kept, name or called


def _tell(plan: Plan, outcome: Outcome, *, everything: bool, json_file: str | None) -> None:
    """Report a run: results and changes as the store has them, or why there are none."""
    from sigdask.overnight import look
    from sigdask.report.overnight import report_json, report_text

    if outcome.number and outcome.results:
        found = look.report(outcome.where, plan.name, outcome.number)
        if json_file != "-":
            click.echo(report_text(found, everything=everything, width=_width()))
        _write_json(json_file, lambda: report_json(found))
        _write_files(plan, found)
    _note(
        f"{outcome.n_counted:,} trials counted, {outcome.n_changed:,} results new or otherwise; kept in {outcome.where}"
    )
    for problem in outcome.problems:
        LOG.error(problem)
    if outcome.stopped:
        _note(f"stopped by {outcome.stopped}; run it again to go on from what is kept")


def _gate(plan: Plan, outcome: Outcome, options: dict[str, Any], deadline: float | None, *, quiet: bool) -> int:
    """Hold a finished run against its plan's gate; return the exit status."""
    if plan.gate is None:
        return 0
    from sigdask.gating import hold
    from sigdask.report.gate import render

    verdict, problems = hold(plan, outcome, cluster=options["cluster"], workers=options["workers"], deadline=deadline)
    for problem in problems:
        LOG.error(problem)
    if verdict is None:
        return 0
    click.echo(render(verdict), err=quiet)
    return 0 if verdict.passed else 1


def _write_files(plan: Plan, found: Report) -> None:
    """Write the files that the plan's [report] names."""
    from datetime import datetime

    from sigdask.report.files import write_whole
    from sigdask.report.overnight import report_json, report_text

    files = plan.report.at(datetime.fromtimestamp(found.run.started).astimezone())
    if files.json is not None:
        write_whole(files.json, report_json(found) + "\n")
    if files.text is not None:
        write_whole(files.text, report_text(found, everything=True, width=None) + "\n")
    if files.html is not None:
        _write_page(files.html, found.results, found.run.plan)


def _write_page(path: Path, sets: Mapping[str, Results], title: str) -> None:
    from datetime import datetime

    from sigdask.report.files import write_whole
    from sigdask.report.html import page

    created = f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"
    write_whole(path, page(sets, title=f"sigdask: {title}", created=created))


def _write_json(json_file: str | None, text: Callable[[], str]) -> None:
    """Write JSON where it is asked for."""
    if json_file == "-":
        click.echo(text())
    elif json_file is not None:
        _write(Path(json_file), text() + "\n")


def _read(options: dict[str, Any]) -> tuple[Counts, str]:
    from sigdask import formats

    given = formats.Options(
        id_column=options["id_column"],
        gold_column=options["gold_column"],
        prediction_column=options["prediction_column"],
        system_column=options["system_column"],
        score_column=options["score_column"],
        groups=tuple(dict.fromkeys(name for name in (*options["units"], options["by"]) if name not in {None, "item"})),
        ignore=options["ignore"],
        label_map=tuple(formats.parse_map(text) for text in options["maps"]),
        align=options["align"],
        missing=options["missing"],
        references=tuple(Path(path) for path in options["references"]),
        documents=Path(options["documents"]) if options["documents"] else None,
        name=options["name"],
    )
    sources = [formats.parse_source(text) for text in options["systems"]]
    gold = Path(options["gold"]) if options["gold"] else None
    asked, own = formats.parse_format(options["format_"])
    chosen = asked if asked != "auto" else formats.detect(sources, gold, given)
    try:
        return formats.read(*sources, gold=gold, format=chosen, options=given.with_own(own)), chosen
    except InputError as error:
        if asked != "auto":
            raise
        raise InputError(f"{error} [read as {chosen}; choose with --format]") from None


def _compare(counts: Counts, metrics: tuple[str, ...], options: dict[str, Any]) -> Results:
    from sigdask.api import compare_all

    with _cluster(options) as cluster, _progress() as progress:
        try:
            return compare_all(
                counts,
                metrics=metrics,
                baseline=options["baseline"],
                pairs=options["pairs"] or None,
                unit=options["units"] or None,
                adjust=options["adjust"],
                together=options["together"],
                by=options["by"],
                alternative=options["alternative"],
                method=options["method"],
                trials=options["trials"],
                seed=options["seed"],
                alpha=options["alpha"],
                second_run=not options["no_second_run"],
                cluster=cluster,
                workers=options["workers"],
                progress=progress,
            )
        except KeyboardInterrupt:
            raise UnfinishedError("interrupted; nothing was written") from None


@contextmanager
def _cluster(options: dict[str, Any]) -> Iterator[str | Cluster]:
    """Yield the cluster as it was named; connected only where a report of it is asked for."""
    report = options["performance_report"]
    if report is None:
        yield options["cluster"]
        return
    from sigdask.clusters import connect, sight

    _check_writable(Path(report), "--performance-report")
    with (
        connect(options["cluster"], workers=options["workers"]) as cluster,
        sight.performance_report(cluster, Path(report)),
    ):
        yield cluster


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """Show trials done, rate and time left on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.completed:,.0f} trials"),
        BarColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, rate="")
        start = time.monotonic()

        def show(done: int, total: int) -> None:
            rate = done / max(time.monotonic() - start, 1e-9)
            bar.update(task, completed=done, total=total, rate=f"{rate:,.0f} trials/s")

        yield show


def _show(results: Results, *, everything: bool) -> None:
    from sigdask.report.terminal import render

    click.echo(render(results, everything=everything, width=_width()))


def _width() -> int | None:
    """Return the columns of the terminal, None for a pipe."""
    import shutil

    return max(shutil.get_terminal_size().columns, 100) if sys.stdout.isatty() else None


def _note(text: str) -> None:
    LOG.info(text)


def _check_outputs(*, json: str | None = None, html: str | None = None) -> None:
    """Refuse, before anything is counted, files that cannot be written."""
    if json not in {None, "-"}:
        _check_writable(Path(str(json)), "--json")
    if html is not None:
        _check_writable(Path(html), "--html")


def _check_writable(path: Path, option: str) -> None:
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"{option} {path}: cannot be written; give a file in a folder that exists and is writable")


def _write(path: Path, text: str) -> None:
    from sigdask.report.files import write_whole

    try:
        write_whole(path, text)
    except UnfinishedError as error:
        raise UnfinishedError(f"--json {error}") from None
