"""The command line: reads options, wires nothing twice, turns errors into one line and a status."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from sigdask.errors import InputError, SigdaskError, UnfinishedError

if TYPE_CHECKING:
    from sigdask.counts import Counts
    from sigdask.engine import Progress
    from sigdask.results import Results

INTERRUPTED = 3


def main() -> NoReturn:
    """Run a command; leave with its exit status and never with a traceback."""
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
    click.echo(f"sigdask: error: {message}", err=True)
    sys.exit(status)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="sigdask", prog_name="sigdask")
def commands() -> None:
    """Is a difference in score real? Approximate-randomization tests at any scale, on dask."""


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
              help="auto, none, threads, local, tcp://HOST:PORT, tls://HOST:PORT or a scheduler file.")  # fmt: skip
@click.option("--workers", type=int, metavar="N", help="Threads or processes to start.  [default: one a core]")
@click.option("--all", "everything", is_flag=True, help="Show every comparison.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the results as JSON.")
def compare(**options: Any) -> None:
    """Compare systems on one test set.

    SYSTEM is a file of one system's outputs or scores, or a table with one column a system. Several
    files under one NAME are its replicates (optimizer runs, seeds): its score is the mean of theirs.
    """
    counts, format_ = _read(options)
    metrics = options["metrics"] or counts.suggested
    json_file = options["json_file"]
    if json_file not in {None, "-"}:
        _check_writable(Path(json_file))
    times = f" x {len(counts.replicates)} replicates" if counts.replicates else ""
    _note(f"read as {format_}: {counts.n_systems} systems{times}, {counts.of_one.n_items:,} items")
    if not options["metrics"]:
        _note(f"metric: {', '.join(metrics)} (choose with --metric)")
    for warning in counts.warnings:
        _note(f"warning: {warning}")
    results = _compare(counts, metrics, options)
    for warning in results.warnings:
        if warning not in counts.warnings:
            _note(f"warning: {warning}")
    if json_file == "-":
        click.echo(results.to_json())
        return
    _show(results, everything=options["everything"])
    if json_file is not None:
        _write(Path(json_file), results.to_json() + "\n")


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

    with _progress() as progress:
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
                cluster=options["cluster"],
                workers=options["workers"],
                progress=progress,
            )
        except KeyboardInterrupt:
            raise UnfinishedError("interrupted; nothing was written") from None


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
    import shutil

    from sigdask.report.terminal import render

    width = max(shutil.get_terminal_size().columns, 100) if sys.stdout.isatty() else None
    click.echo(render(results, everything=everything, width=width))


def _note(text: str) -> None:
    click.echo(f"sigdask: {text}", err=True)


def _check_writable(path: Path) -> None:
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"--json {path}: cannot be written; give a file in a folder that exists and is writable")


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=path.name, delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    except OSError as error:
        raise UnfinishedError(f"--json {path}: cannot be written ({error.strerror})") from None
