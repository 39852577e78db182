"""`sigdask rankings`: evaluates measures that rank candidates."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from sigdask.analysis import candidate_rankings
from sigdask.analysis.candidate_rankings import RepeatedSamples
from sigdask.cli import write
from sigdask.cli.progress import show_analysis
from sigdask.cli.streams import be_quiet, log_note
from sigdask.errors import InputError
from sigdask.execution import clusters
from sigdask.formats import candidates
from sigdask.formats.candidates import CandidateColumns
from sigdask.formats.reading.files import name_by_difference
from sigdask.formats.reading.options import parse_columns
from sigdask.options import CandidateFileOptions, RankingOptions, select_options
from sigdask.report import analyses
from sigdask.report.analyses import Evaluation


def rankings(**options: Any) -> None:
    """Evaluate rankings of candidates, and print and write the results."""
    formats = ("json", "csv", "text") if options["validate"] else ("json", "csv", "markdown", "latex", "text")
    outputs = write.list_outputs(options, *formats)
    if options["quiet"]:
        be_quiet()
    evaluation = _validate(options) if options["validate"] else _evaluate(options)
    write.present_analysis(outputs, evaluation, everything=options["everything"])


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
    with show_analysis(quiet=options["quiet"]) as steps:
        settings["progress"] = steps
        evaluation = analyses.rankings(
            candidates.read(options["files"][0], _build_columns(options), name=options["name"]), **settings
        )
    for text in evaluation.notes:
        log_note(text)
    return evaluation


def _validate(options: dict[str, Any]) -> RepeatedSamples:
    """Read repeated samples of candidates and return how well the binomial model predicts their variation."""
    cutoffs = dict(_parse_cutoff(text) for text in options["cutoffs"])
    columns = _build_columns(options)
    columns = replace(columns, one_of_many=True, measures=columns.measures or tuple(cutoffs))
    if len({*options["files"]}) < len(options["files"]):
        raise InputError("the same file is given twice; each sample needs a file of its own")
    names = name_by_difference([Path(file) for file in options["files"]])
    samples = {names[Path(file)]: candidates.read(file, columns) for file in options["files"]}
    validation = candidate_rankings.validate(samples, cutoffs=cutoffs, n=options["n"], confidence=options["confidence"])
    for text in validation.notes:
        log_note(text)
    return validation


def _parse_cutoff(text: str) -> tuple[str, float]:
    measure, equals, score = text.rpartition("=")
    try:
        value = float(score)
    except ValueError:
        value = float("nan")
    if not equals or not measure or not math.isfinite(value):
        raise InputError(f"--cutoff {text}: expected MEASURE=SCORE, such as G2=32.5")
    return measure, value


def _build_columns(options: dict[str, Any]) -> CandidateColumns:
    columns: dict[str, Any] = {**select_options(CandidateFileOptions, options)}
    columns["columns"] = parse_columns(columns.get("columns", ()), candidates.ROLES)
    return CandidateColumns(**columns)
