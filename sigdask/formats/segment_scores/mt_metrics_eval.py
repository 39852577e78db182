"""Test-set folders of mt-metrics-eval (WMT metrics tasks): human and metric scores of all segments.

`human-scores/en-de.mqm.seg.score` is the metric `mqm`, and `metric-scores/en-de/COMET-22-refA.seg.score` is
`COMET-22-refA`. A row has system and score, with the segments of a system in order and `None` for a missing score.
Human scores are compared by default. Documents and domains (`documents/en-de.docs`) are possible units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.columns import NotANumberError, to_numbers
from sigdask.formats.reading.files import open_text
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.replicates import build_score_counts
from sigdask.interface import spell
from sigdask.text import describe_items, format_list

HUMAN, METRIC, DOCUMENTS = "human-scores", "metric-scores", "documents"
ENDING = ".seg.score"
SHOWN = 12

Scores = dict[str, NDArray[np.float64]]
"""Scores of the segments, by system."""


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether a folder is a test set of mt-metrics-eval, or holds several."""
    path = sources[0].path
    return path.is_dir() and (_is_test_set(path) or bool(_list_test_sets(path)))


def _is_test_set(path: Path) -> bool:
    return (path / HUMAN).is_dir() or (path / METRIC).is_dir()


def _list_test_sets(path: Path) -> list[str]:
    return sorted(inner.name for inner in path.iterdir() if inner.is_dir() and _is_test_set(inner))


def read_directory(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read the segment scores of one language pair from a test-set folder of mt-metrics-eval."""
    if len(sources) > 1:
        remedy = "give the folder of one test set, which holds all systems"
        raise InputError(f"a second folder; {remedy}", file=sources[1].path)
    path = sources[0].path
    if not path.is_dir():
        raise InputError(
            f"{'is no folder' if path.exists() else 'no such folder'}; expected one with {HUMAN}", file=path
        )
    if not _is_test_set(path):
        test_sets = _list_test_sets(path)
        hint = f"; give one of the test sets in it: {', '.join(test_sets)}" if test_sets else ""
        raise InputError(f"has neither {HUMAN} nor {METRIC}{hint}", file=path)
    pair = select_pair(path, options.own.get("pair"))
    files = find_score_files(path, pair)
    scores_by_metric = {name: read_scores(files[name]) for name in _select_metrics(path, pair, files, options)}
    groups = read_documents(path / DOCUMENTS / f"{pair}.docs")
    lengths = [len(column) for scores in scores_by_metric.values() for column in scores.values()]
    n = len(groups["document"]) if groups else max(lengths)
    for name, scores in scores_by_metric.items():
        check_lengths(files[name], scores, n)
    systems, notes = _select_systems(path, scores_by_metric)
    return build_score_counts(
        {name: np.column_stack([scores[system] for system in systems]) for name, scores in scores_by_metric.items()},
        systems,
        None,
        groups=groups,
        options=options,
        warnings=notes,
    )


def check_lengths(path: Path, scores: Scores, n: int) -> None:
    """Raise an error for a system without a score for each of `n` segments."""
    for system, system_scores in scores.items():
        if len(system_scores) != n:
            raise InputError(
                f"system {system!r} has {len(system_scores):,} scores, but there are {n:,} segments",
                file=path,
                remedy="write one line per segment",
            )


def list_pairs(path: Path) -> list[str]:
    """Return the language pairs of a test set."""
    human = (file.name.partition(".")[0] for file in (path / HUMAN).glob(f"*{ENDING}"))
    metric = (file.parent.name for file in (path / METRIC).glob(f"*/*{ENDING}"))
    return sorted({*human, *metric})


def select_pair(path: Path, requested: str | None) -> str:
    """Return the requested language pair, or the only one."""
    pairs = list_pairs(path)
    if requested is None and len(pairs) == 1:
        return pairs[0]
    if requested in pairs:
        return str(requested)
    if not pairs:
        raise InputError("no scores of segments", file=path)
    problem = f"no language pair {requested!r}" if requested else "several language pairs"
    raise InputError(
        f"{problem}",
        file=path,
        remedy=f"choose with {spell('format', f'mt-metrics-eval:pair={pairs[0]}')}: {', '.join(pairs)}",
    )


def find_score_files(path: Path, pair: str) -> dict[str, Path]:
    """Return the score files by metric; human scores replace metrics of the same name."""
    human = sorted((path / HUMAN).glob(f"{pair}.*{ENDING}"))
    metric = sorted((path / METRIC / pair).glob(f"*{ENDING}"))
    human_files = {file.name.removeprefix(f"{pair}.").removesuffix(ENDING): file for file in human}
    return {file.name.removesuffix(ENDING): file for file in metric} | human_files


def _select_metrics(path: Path, pair: str, files: Mapping[str, Path], options: Options) -> list[str]:
    """Return the metrics requested by --metric or scores=NAME+NAME, else the human scores."""
    listed_names = [name for name in options.own.get("scores", "").split("+") if name]
    human = [name for name, file in files.items() if file.parent.name == HUMAN]
    requested = list(dict.fromkeys((*listed_names, *options.metrics))) or human
    unknown = [name for name in requested if name not in files]
    if unknown or not requested:
        problem = f"no scores {unknown[0]!r}" if unknown else "no human scores"
        raise InputError(
            f"{problem} of {pair}", file=path, remedy=f"choose with {spell('metrics')}: {format_list([*files], SHOWN)}"
        )
    return requested


def read_scores(path: Path) -> Scores:
    """Read rows of system and score from one file.

    Raises
    ------
    InputError
        A row does not have two cells, or a score is not a number.
    """
    with open_text(path) as text:
        rows = [(number, line.split()) for number, line in enumerate(text, start=1) if line.strip()]
    for number, row in rows:
        if len(row) != 2:
            raise InputError(file=path, line=number, found=f"{len(row)} cells", expected="a system and its score")
    try:
        values = to_numbers([row[1] for _, row in rows])
    except NotANumberError as error:
        raise InputError(f"{error}", file=path, line=rows[error.index][0]) from None
    if not rows:
        raise InputError("is empty, expected a system and its score on each line", file=path)
    rows_by_system: dict[str, list[int]] = {}
    for k, (_, row) in enumerate(rows):
        rows_by_system.setdefault(row[0], []).append(k)
    return {system: values[system_rows] for system, system_rows in rows_by_system.items()}


def read_documents(path: Path) -> dict[str, list[str]]:
    """Return document and domain of each segment; empty if the file does not exist."""
    if not path.exists():
        return {}
    with open_text(path) as text:
        rows = [line.split(maxsplit=1) for line in text if line.strip()]
    return {"document": [row[-1].strip() for row in rows], "domain": [row[0] for row in rows]}


def _select_systems(path: Path, scores_by_metric: Mapping[str, Scores]) -> tuple[list[str], list[str]]:
    """Return the systems with scores in every metric, and a note on the others."""
    having = {
        name: {system for system, system_scores in scores.items() if not np.isnan(system_scores).all()}
        for name, scores in scores_by_metric.items()
    }
    every = dict.fromkeys(system for scores in scores_by_metric.values() for system in scores)
    systems = [system for system in every if all(system in system_scores for system_scores in having.values())]
    omitted = [system for system in every if system not in systems]
    if not systems:
        raise InputError(f"no system has scores in all of {', '.join(scores_by_metric)}", file=path)
    notes = [f"{path}: {describe_items(omitted, 'system')} without scores in every metric: left out"] if omitted else []
    return systems, notes
