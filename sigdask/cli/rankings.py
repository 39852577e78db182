"""`sigdask rankings`: candidates that measures rank."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sigdask.analysis import candidate_rankings
from sigdask.analysis.candidate_rankings import RepeatedSamples
from sigdask.analysis.candidate_rankings.spec import RankingSpec
from sigdask.api import evaluate
from sigdask.cli.output import figures
from sigdask.cli.output.progress import progress
from sigdask.cli.output.say import be_quiet, note, say, say_data, width
from sigdask.cli.output.write import check_outputs, write_json, write_tables, write_text
from sigdask.errors import InputError, UnfinishedError
from sigdask.execution import clusters
from sigdask.formats import candidates
from sigdask.formats.candidates import CandidateColumns
from sigdask.formats.reading.files import differing
from sigdask.options import CANDIDATES, RANKED
from sigdask.report.files import write_parts
from sigdask.report.plots.folder import of_evaluations
from sigdask.report.presentable import Evaluation
from sigdask.report.terminal import repeated_samples
from sigdask.report.terminal.candidate_rankings import render

if TYPE_CHECKING:
    from sigdask.analysis.candidate_rankings import Candidates


def rankings(**options: Any) -> None:
    """Evaluate rankings of candidates, and print and write the results."""
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
        figures.write_figures(options["figures"], options["figure_format"], of_evaluations({options["name"]: found}))


def _evaluated(options: dict[str, Any]) -> Evaluation:
    """Read, evaluate, and say what is to be said beside."""
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
    return candidates.read(file, _columns(options), name=options["name"])


def _columns(options: dict[str, Any]) -> CandidateColumns:
    return CandidateColumns(**{("gold" if name == "gold_column" else name): options[name] for name in CANDIDATES})


def _rendered(found: Evaluation | RepeatedSamples, *, everything: bool, width: int | None = None) -> str:
    if isinstance(found, RepeatedSamples):
        return repeated_samples.render(found, width=width)
    return render(found, everything=everything, width=width)


def _write_csv(file: str, lines: Iterator[str]) -> None:
    if file == "-":
        for line in lines:
            say_data(line)
        return
    from pathlib import Path

    write_parts(Path(file), lines)
