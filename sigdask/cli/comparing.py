"""`sigdask compare`: systems on one test set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sigdask.cli.showing import (
    LOG,
    check_outputs,
    check_writable,
    note,
    progress_bar,
    say,
    width,
    write_json,
    write_page,
)
from sigdask.errors import InputError, UnfinishedError

if TYPE_CHECKING:
    from sigdask.clusters import Cluster
    from sigdask.counts import Counts
    from sigdask.results import Results


@click.command()
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
              type=click.Choice(["none", "holm", "hochberg", "bh", "by", "max-t", "max-t:raw", "single-step-max-t",
                                 "tukey"]),
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
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Threads or processes to start.  [default: one a core]"
)
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
    check_outputs(json=json_file, html=options["html_file"])
    times = f" x {len(counts.replicates)} replicates" if counts.replicates else ""
    note(f"read as {format_}: {counts.n_systems} systems{times}, {counts.of_one.n_items:,} items")
    if not options["metrics"]:
        note(f"metric: {', '.join(metrics)} (choose with --metric)")
    for warning in counts.warnings:
        LOG.warning(warning)
    results = _compare(counts, metrics, options)
    for warning in results.warnings:
        if warning not in counts.warnings:
            LOG.warning(warning)
    if json_file != "-":
        _show(results, everything=options["everything"])
    write_json(json_file, results.to_json)
    if options["html_file"] is not None:
        write_page(Path(options["html_file"]), {options["name"]: results}, options["name"] or format_)


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

    with _cluster(options) as cluster, progress_bar() as progress:
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

    check_writable(Path(report), "--performance-report")
    name = "local" if options["cluster"] == "auto" else options["cluster"]  # only a dask cluster has a report
    with (
        connect(name, workers=options["workers"]) as cluster,
        sight.performance_report(cluster, Path(report)),
    ):
        yield cluster


def _show(results: Results, *, everything: bool) -> None:
    from sigdask.report.terminal import render

    say(render(results, everything=everything, width=width()))
