"""`sigdask rankings`: candidates that measures rank."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from sigdask.cli import declared_options
from sigdask.cli.declared_options import TABLES, grouped, whole
from sigdask.cli.output import figures
from sigdask.cli.output.progress import progress
from sigdask.cli.output.write import (
    be_quiet,
    check_outputs,
    note,
    say,
    say_data,
    width,
    write_json,
    write_tables,
    write_text,
)
from sigdask.errors import InputError, UnfinishedError
from sigdask.options import CANDIDATES, RANKED

if TYPE_CHECKING:
    from sigdask.analysis.candidate_rankings import Candidates, RepeatedSamples
    from sigdask.formats.candidates import CandidateColumns
    from sigdask.report.presentable import Evaluation

asked: Callable[..., Any] = partial(declared_options.option, of=RANKED)
read: Callable[..., Any] = partial(declared_options.option, of=CANDIDATES)

GROUPS = {
    "Files": (
        read("--gold-column", metavar="COLUMN"),
        read("--positive", multiple=True, metavar="LABEL", more="May be repeated."),
        read("--id", "ids", multiple=True, metavar="COLUMN", more="May be repeated."),
        read("--measure", "measures", multiple=True, metavar="COLUMN", more="May be repeated."),
        read("--smaller", multiple=True, metavar="MEASURE", more="May be repeated."),
        read("--ignore", multiple=True, metavar="COLUMN", more="May be repeated."),
        read("--partial", is_flag=True),
        read("--decimal", metavar=".|,"),
        read("--most-unpacked", type=whole, metavar="BYTES"),
    ),
    "What to compare": (
        asked("--n", metavar="N,N|START:STOP:STEP"),
        asked("--pair", "pairs", nargs=2, multiple=True, metavar="A B", more="May be repeated."),
        asked("--baseline", metavar="MEASURE"),
        click.option("--name", default="", metavar="NAME", help="Of the list; part of the address of what is drawn."),
    ),
    "The tests": (
        asked("--ties"),
        asked("--trials", type=whole, metavar="N"),
        asked("--seed", type=int),
        asked("--alpha", type=float),
        asked("--confidence", type=float),
    ),
    "Samples": (
        asked("--samples", type=whole, metavar="K"),
        asked("--sample-size", type=whole, metavar="N"),
        click.option("--validate", is_flag=True, help="Files are repeated samples: do precisions vary as modelled?"),
        click.option("--cutoff", "cutoffs", multiple=True, metavar="MEASURE=SCORE",
                     help="Accept candidates from this score on, for --validate; else its --n best. May be repeated."),
    ),
    "Where to run": (
        asked("--cluster"),
        asked("--workers", type=click.IntRange(min=1), metavar="N"),
    ),
    "Output": (
        click.option("--json", "json_file", metavar="FILE|-", help="Write all that was found as JSON."),
        click.option("--csv", "csv_file", metavar="FILE|-", help="Write precision and recall as a CSV table."),
        *TABLES,
        click.option("--text", "text_file", metavar="FILE", help="Write what a pipe would get."),
        *figures.OPTIONS,
        click.option("--all", "everything", is_flag=True, help="Show every n and every difference."),
        click.option("-q", "--quiet", is_flag=True, help="Say nothing beside results, warnings and errors."),
    ),
}  # fmt: skip

EXAMPLES = (
    "sigdask rankings candidates.tsv --n 50,100,200",
    "sigdask rankings pairs.ds.gz --gold-column b.TP --baseline am.log.likelihood --n 50:2000:50 --json curve.json",
    "sigdask rankings candidates.tsv --samples 500 --sample-size 300",
    "sigdask rankings part*.tsv --cutoff G2=32.5 --validate",
)


@grouped(GROUPS, EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="CANDIDATES...")
def rankings(**options: Any) -> None:
    """Evaluate rankings of candidates: precision of the n best, and which measure is better.

    CANDIDATES is a table of a row a candidate: a column gold (is it true?), a column of scores for each measure; or a
    data set of UCS (.ds), or XML of mwetoolkit.
    """
    from sigdask.report.presentable import Evaluation

    files = {name: options[f"{name}_file"] for name in ("json", "csv", "markdown", "latex", "text")}
    if options["validate"] and (files["markdown"] or files["latex"]):
        raise InputError("--markdown, --latex: are for rankings, not for --validate; --text FILE has what is found")
    check_outputs(**files)
    figures.check_figures(options["figures"], options["figure_format"])
    if options["quiet"]:
        be_quiet()
    found = _validated(options) if options["validate"] else _evaluated(options)
    if "-" not in (file for name, file in files.items() if name != "text"):
        say(_rendered(found, everything=options["everything"], width=width()))
    write_json(files["json"], found.json_parts)
    if files["csv"] is not None:
        _write_csv(files["csv"], found.csv_lines())
    if isinstance(found, Evaluation):
        write_tables(files, found.paper_tables)
    if files["text"] is not None:
        write_text(files["text"], _rendered(found, everything=True))
    if options["figures"] is not None:
        from sigdask.report.plots.folder import of_evaluations

        figures.write_figures(options["figures"], options["figure_format"], of_evaluations({options["name"]: found}))


def _evaluated(options: dict[str, Any]) -> Evaluation:
    """Read, evaluate, and say what is to be said beside."""
    from sigdask.analysis.candidate_rankings.spec import RankingSpec
    from sigdask.api import evaluate
    from sigdask.execution import clusters

    if len(options["files"]) > 1:
        raise InputError(f"{len(options['files'])} files of candidates: give one, or --validate for repeated samples")
    if options["cutoffs"]:
        raise InputError("--cutoff is for --validate; --n says how many of the best are looked at")
    clusters.check(options["cluster"])
    how = {name: options[name] for name in RANKED if options.get(name) not in {None, ()}}
    RankingSpec.of(**{name: value for name, value in how.items() if name not in {"cluster", "workers"}})
    with progress(quiet=options["quiet"]) as steps:
        candidates = _read(options, options["files"][0])
        try:
            found = evaluate(candidates, **how, progress=steps)
        except KeyboardInterrupt:
            raise UnfinishedError("interrupted; nothing was written") from None
    for text in found.notes:
        note(text)
    return found


def _validated(options: dict[str, Any]) -> RepeatedSamples:
    """Read repeated samples and hold them against the model."""
    from dataclasses import replace
    from pathlib import Path

    from sigdask.analysis import candidate_rankings
    from sigdask.formats import candidates
    from sigdask.formats.reading.files import differing

    cutoffs = dict(_cutoff(text) for text in options["cutoffs"])
    columns = _columns(options)
    columns = replace(columns, one_of_many=True, measures=columns.measures or tuple(cutoffs))
    if len({*options["files"]}) < len(options["files"]):
        raise InputError("a file of samples is given twice")
    names = differing([Path(file) for file in options["files"]])
    samples = {names[Path(file)]: candidates.read(file, columns) for file in options["files"]}
    found = candidate_rankings.validate(samples, cutoffs=cutoffs, n=options["n"], confidence=options["confidence"])
    for text in found.notes:
        note(text)
    return found


def _cutoff(text: str) -> tuple[str, float]:
    measure, equals, score = text.rpartition("=")
    try:
        value = float(score)
    except ValueError:
        value = float("nan")
    if not equals or not measure or not math.isfinite(value):
        raise InputError(f"--cutoff {text}: expected MEASURE=SCORE, as G2=32.5")
    return measure, value


def _read(options: dict[str, Any], file: str) -> Candidates:
    from sigdask.formats import candidates

    return candidates.read(file, _columns(options), name=options["name"])


def _columns(options: dict[str, Any]) -> CandidateColumns:
    from sigdask.formats.candidates import CandidateColumns

    return CandidateColumns(**{("gold" if name == "gold_column" else name): options[name] for name in CANDIDATES})


def _rendered(found: Evaluation | RepeatedSamples, *, everything: bool, width: int | None = None) -> str:
    from sigdask.analysis.candidate_rankings import RepeatedSamples
    from sigdask.report.terminal import repeated_samples
    from sigdask.report.terminal.candidate_rankings import render

    if isinstance(found, RepeatedSamples):
        return repeated_samples.render(found, width=width)
    return render(found, everything=everything, width=width)


def _write_csv(file: str, lines: Iterator[str]) -> None:
    if file == "-":
        for line in lines:
            say_data(line)
        return
    from pathlib import Path

    from sigdask.report.files import write_parts

    write_parts(Path(file), lines)
