"""`sigdask rankings`: evaluates measures that rank candidates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sigdask import options as declared
from sigdask.analysis import candidate_rankings
from sigdask.analysis.candidate_rankings import RepeatedSamples
from sigdask.cli import declare
from sigdask.cli.streams import LOG, show_progress
from sigdask.cli.write import present_analysis
from sigdask.errors import InputError
from sigdask.execution import clusters
from sigdask.formats import candidates
from sigdask.formats.candidates import CandidateColumns
from sigdask.formats.reading.files import name_by_difference
from sigdask.formats.reading.options import parse_columns
from sigdask.options import CandidateFileOptions, RankingOptions, select_options
from sigdask.report import analyses
from sigdask.report.analyses import Evaluation

GROUPS = {
    "File": declare.options(declared.CandidateFileOptions),
    "What to compare": (
        *declare.options(declared.RankingChoiceOptions),
        declare.option("--name NAME", "Name of the list. It also determines the "
            "random stream.", default=""),
    ),
    "The tests": declare.options(declared.RankingTestOptions),
    "Samples": (
        declare.option("--validate", "Treat the files as repeated samples, and test whether "
            "precision varies among them as the binomial model predicts."),
        declare.option("--cutoff MEASURE SCORE", "For --validate, accept candidates with at least this score. "
            "May be repeated.", dest="cutoffs", multiple=True, type=(str, float)),
    ),
    "Where to run": declare.RUN,
    "Output": (
        *declare.output("json", "csv", "markdown", "latex", "text"),
        declare.everything("n and every difference"), declare.QUIET,
    ),
}  # fmt: skip

EXAMPLES = (
    "sigdask rankings candidates.tsv --n 50,100,200",
    "sigdask rankings pairs.ds.gz --columns gold=b.TP --baseline am.log.likelihood -o curve.json",
    "sigdask rankings part*.tsv --cutoff G2 32.5 --validate",
)

CANDIDATES = click.argument("files", nargs=-1, required=True, metavar="CANDIDATES...")


@declare.command(CANDIDATES, groups=GROUPS, examples=EXAMPLES)
def command(**options: Any) -> None:
    """Evaluate rankings of candidates: precision of the n best, and which measure is better.

    CANDIDATES is a table with one row per candidate: a column gold (is it true?) and a column of scores for each
    measure. It can also be a data set of UCS (.ds).
    """
    evaluation = _validate(options) if options["validate"] else _evaluate(options)
    for text in evaluation.notes:
        LOG.info(text)
    present_analysis(options["outputs"], evaluation, everything=options["everything"])


def _evaluate(options: dict[str, Any]) -> Evaluation:
    """Read the candidates, return the evaluation of their rankings, and log its notes."""
    if len(options["files"]) > 1:
        raise InputError(
            f"{len(options['files'])} files of candidates: give one file, or add --validate if they are repeated "
            "samples"
        )
    if options["cutoffs"]:
        raise InputError("--cutoff needs --validate; to evaluate the n best candidates, give --n")
    clusters.check_cluster(options["cluster"])
    settings = select_options(RankingOptions, options)
    with show_progress() as settings["progress"]:
        read = candidates.read(options["files"][0], _build_columns(options), name=options["name"])
        return analyses.rankings(read, **settings)


def _validate(options: dict[str, Any]) -> RepeatedSamples:
    """Read repeated samples of candidates and return how well the binomial model predicts their variation."""
    if options["n"] is not None:
        raise InputError("--validate takes --cutoff MEASURE SCORE, not --n")
    cutoffs = dict(options["cutoffs"])
    columns = _build_columns(options)
    columns = replace(columns, one_of_many=True, measures=columns.measures or tuple(cutoffs))
    if len({*options["files"]}) < len(options["files"]):
        raise InputError("the same file is given twice; each sample needs a file of its own")
    names = name_by_difference([Path(file) for file in options["files"]])
    samples = {names[Path(file)]: candidates.read(file, columns) for file in options["files"]}
    return candidate_rankings.validate(samples, cutoffs=cutoffs, confidence=options["confidence"])


def _build_columns(options: dict[str, Any]) -> CandidateColumns:
    columns: dict[str, Any] = {**select_options(CandidateFileOptions, options)}
    columns["columns"] = parse_columns(columns.get("columns", ()), candidates.ROLES)
    return CandidateColumns(**columns)
