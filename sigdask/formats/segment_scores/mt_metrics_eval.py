"""Test-set folders of mt-metrics-eval (WMT metrics tasks): human and metric scores of all segments.

`human-scores/en-de.mqm.seg.score` is the metric `mqm`, and `metric-scores/en-de/COMET-22-refA.seg.score` is
`COMET-22-refA`. A row has system and score, with the segments of a system in order and `None` for a missing score.
Human scores are compared by default. Documents and domains (`documents/en-de.docs`) are possible units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.columns import NotANumberError, to_numbers
from sigdask.formats.reading.files import check_filled, open_text
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.replicates import build_score_counts
from sigdask.interface import spell
from sigdask.text import describe_items, format_list

HUMAN, METRIC, DOCUMENTS = "human-scores", "metric-scores", "documents"
ENDING = ".seg.score"
SHOWN = 12

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairScores:
    """Scores of the segments of one language pair.

    Attributes
    ----------
    systems : list of str
        All systems that have a score.
    scores : dict of str to float64 array, shape (n_segments, n_systems)
        Scores by metric; NaN where there is none.
    groups : dict of str to list of str
        Document and domain of each segment, if the folder has them.
    """

    systems: list[str]
    scores: dict[str, Floats]
    groups: dict[str, list[str]]


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether a folder is a test set of mt-metrics-eval, or holds several."""
    path = sources[0].path
    return path.is_dir() and (_is_test_set(path) or any(map(_is_test_set, path.iterdir())))


def _is_test_set(path: Path) -> bool:
    return (path / HUMAN).is_dir() or (path / METRIC).is_dir()


def read_directory(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read the segment scores of one language pair from a test-set folder of mt-metrics-eval."""
    path = sources[0].path
    if len(sources) > 1 or not _is_test_set(path):
        inner = [part.name for part in sorted(path.iterdir()) if _is_test_set(part)] if path.is_dir() else []
        remedy = f"give the folder of one test set{f': {format_list(inner)}' if inner else ''}"
        problem = "is a second folder" if len(sources) > 1 else f"has neither {HUMAN} nor {METRIC}"
        raise InputError(problem, file=sources[-1].path, remedy=remedy)
    pair = select_pair(path, options.own.get("pair"))
    files = find_score_files(path, pair)
    human = [name for name, file in files.items() if file.parent.name == HUMAN]
    read = read_pair(path, pair, [*dict.fromkeys((*list_names(options), *options.metrics))] or human)
    is_scored = np.logical_and.reduce([~np.isnan(scores).all(axis=0) for scores in read.scores.values()])
    systems = [system for system, is_in in zip(read.systems, is_scored, strict=True) if is_in]
    if not systems:
        raise InputError(f"no system has scores in all of {', '.join(read.scores)}", file=path)
    omitted = [system for system in read.systems if system not in systems]
    note = f"{path}: {describe_items(omitted, 'system')} without scores in every metric: left out"
    return build_score_counts(
        {name: scores[:, is_scored] for name, scores in read.scores.items()},
        systems,
        None,
        groups=read.groups,
        options=options,
        warnings=[note] * bool(omitted),
    )


def list_names(options: Options) -> list[str]:
    """Return the scores that the format's option `scores=NAME+NAME` names."""
    return [name for name in options.own.get("scores", "").split("+") if name]


def list_pairs(path: Path) -> list[str]:
    """Return the language pairs of a test set."""
    human = (file.name.partition(".")[0] for file in (path / HUMAN).glob(f"*{ENDING}"))
    metric = (file.parent.name for file in (path / METRIC).glob(f"*/*{ENDING}"))
    return sorted({*human, *metric})


def select_pair(path: Path, requested: str | None) -> str:
    """Return the requested language pair, or the only one."""
    pairs = list_pairs(path)
    if not pairs:
        raise InputError("no scores of segments", file=path)
    if requested in pairs or (requested is None and len(pairs) == 1):
        return requested or pairs[0]
    problem = f"no language pair {requested!r}" if requested else "several language pairs"
    remedy = f"choose with {spell('format', f'mt-metrics-eval:pair={pairs[0]}')}: {', '.join(pairs)}"
    raise InputError(problem, file=path, remedy=remedy)


def find_score_files(path: Path, pair: str) -> dict[str, Path]:
    """Return the score files by metric; human scores replace metrics of the same name."""
    human = sorted((path / HUMAN).glob(f"{pair}.*{ENDING}"))
    metric = sorted((path / METRIC / pair).glob(f"*{ENDING}"))
    human_files = {file.name.removeprefix(f"{pair}.").removesuffix(ENDING): file for file in human}
    return {file.name.removesuffix(ENDING): file for file in metric} | human_files


def read_pair(path: Path, pair: str, names: Sequence[str]) -> PairScores:
    """Return the named scores of a language pair."""
    files = find_score_files(path, pair)
    unknown = [name for name in names if name not in files]
    if unknown or not names:
        problem = f"no scores {unknown[0]!r}" if unknown else "no human scores"
        remedy = f"choose with {spell('metrics')}: {format_list([*files], SHOWN)}"
        raise InputError(f"{problem} of {pair}", file=path, remedy=remedy)
    read = {name: _read_scores(files[name]) for name in names}
    groups = _read_documents(path / DOCUMENTS / f"{pair}.docs")
    n = (
        len(groups["document"])
        if groups
        else max(len(column) for scores in read.values() for column in scores.values())
    )
    for name, scores in read.items():
        for system, column in scores.items():
            if len(column) != n:
                problem = f"system {system!r} has {len(column):,} scores, but there are {n:,} segments"
                raise InputError(problem, file=files[name], remedy="write one line per segment")
    systems = [*dict.fromkeys(system for scores in read.values() for system in scores)]
    matrices = {
        name: np.column_stack([scores.get(system, np.full(n, np.nan)) for system in systems])
        for name, scores in read.items()
    }
    return PairScores(systems, matrices, groups)


def _read_scores(path: Path) -> Mapping[str, Floats]:
    """Read rows of system and score from one file, and return the scores of each system's segments."""
    with open_text(path) as text:
        rows = [(number, line.split()) for number, line in enumerate(text, start=1) if line.strip()]
    check_filled(path, rows)
    for number, row in rows:
        if len(row) != 2:
            raise InputError(file=path, line=number, found=f"{len(row)} cells", expected="a system and its score")
    try:
        values = to_numbers([row[1] for _, row in rows])
    except NotANumberError as error:
        raise InputError(f"{error}", file=path, line=rows[error.index][0]) from None
    rows_by_system: dict[str, list[int]] = {}
    for k, (_, row) in enumerate(rows):
        rows_by_system.setdefault(row[0], []).append(k)
    return {system: values[system_rows] for system, system_rows in rows_by_system.items()}


def _read_documents(path: Path) -> dict[str, list[str]]:
    """Return document and domain of each segment; empty if the file does not exist."""
    if not path.exists():
        return {}
    with open_text(path) as text:
        rows = [line.split(maxsplit=1) for line in text if line.strip()]
    return {"document": [row[-1].strip() for row in rows], "domain": [row[0] for row in rows]}
