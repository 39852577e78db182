"""Test-set folders of mt-metrics-eval (WMT metrics tasks): human and metric scores of all segments.

`human-scores/en-de.mqm.seg.score` is the metric `mqm`, and `metric-scores/en-de/COMET-22-refA.seg.score` is
`COMET-22-refA`. A row has system and score, with the segments of a system in order and `None` for a missing score.
Human scores are compared by default. Documents and domains (`documents/en-de.docs`) are possible units.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading import files
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.replicates import build_score_counts
from sigdask.formats.reading.tables import build_table
from sigdask.interface import spell
from sigdask.text import describe_items, format_list

HUMAN, METRIC, DOCUMENTS = "human-scores", "metric-scores", "documents"
ENDING = ".seg.score"
SHOWN = 12

Floats = NDArray[np.float64]


class PairScores(NamedTuple):
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

    def select(self, names: Collection[str]) -> PairScores:
        """Return the systems that have all of these scores."""
        has_all = np.logical_and.reduce([~np.isnan(self.scores[name]).all(axis=0) for name in names])
        systems = [system for system, is_in in zip(self.systems, has_all, strict=True) if is_in]
        return PairScores(systems, {name: scores[:, has_all] for name, scores in self.scores.items()}, self.groups)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether a folder is a test set of mt-metrics-eval, or holds several."""
    path = sources[0].path
    return path.is_dir() and any(any(path.glob(f"{deep}{name}")) for deep in ("", "*/") for name in (HUMAN, METRIC))


def read_directory(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read the segment scores of one language pair from a test-set folder of mt-metrics-eval."""
    path = sources[0].path
    if len(sources) > 1:
        raise InputError("is a second folder", file=sources[1].path, remedy="give the folder of one test set")
    pair = select_pair(path, options.own.get("pair"))
    human = [name for name, file in find_score_files(path, pair).items() if file.parent.name == HUMAN]
    names = [*dict.fromkeys((*list_names(options), *options.metrics))] or human
    read = read_pair(path, pair, names)
    selected = read.select(names)
    if not selected.systems:
        raise InputError(f"no system has scores in all of {', '.join(names)}", file=path)
    omitted = [system for system in read.systems if system not in selected.systems]
    notes = [f"{path}: {describe_items(omitted, 'system')} without scores in every metric: left out"] if omitted else []
    return build_score_counts(
        selected.scores, selected.systems, None, groups=read.groups, options=options, warnings=notes
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
        problem = f"no scores of segments in folders {HUMAN} and {METRIC}"
        raise InputError(problem, file=path, remedy="give the folder of one test set")
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
    known = find_score_files(path, pair)
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        problem = f"no scores {unknown[0]!r}" if unknown else "no human scores"
        remedy = f"choose with {spell('metrics')}: {format_list([*known], SHOWN)}"
        raise InputError(f"{problem} of {pair}", file=path, remedy=remedy)
    read = {name: _read_scores(known[name]) for name in names}
    groups = _read_documents(path / DOCUMENTS / f"{pair}.docs")
    sizes = [len(column) for scores in read.values() for column in scores.values()]
    n = len(groups["document"]) if groups else max(sizes)
    for name, scores in read.items():
        for system, column in scores.items():
            if len(column) != n:
                problem = f"system {system!r} has {len(column):,} scores, but there are {n:,} segments"
                raise InputError(problem, file=known[name], remedy="write one line per segment")
    systems = [*dict.fromkeys(system for scores in read.values() for system in scores)]
    matrices = {
        name: np.column_stack([scores.get(system, np.full(n, np.nan)) for system in systems])
        for name, scores in read.items()
    }
    return PairScores(systems, matrices, groups)


def _read_scores(path: Path) -> Mapping[str, Floats]:
    """Read rows of system and score from one file, and return the scores of each system's segments."""
    rows = [(number, line.split()) for number, line in files.enumerate_lines(path) if line.strip()]
    files.check_filled(path, rows)
    table = build_table(path, [(0, ["system", "score"]), *files.check_widths(path, iter(rows), 2)])
    systems, values = np.array([*table.columns["system"]], object), table.get_numbers("score")
    return {system: values[systems == system] for system in dict.fromkeys(systems)}


def _read_documents(path: Path) -> dict[str, list[str]]:
    """Return document and domain of each segment; empty if the file does not exist."""
    if not path.exists():
        return {}
    rows = [line.split(maxsplit=1) for _, line in files.enumerate_lines(path) if line.strip()]
    return {"document": [row[-1].strip() for row in rows], "domain": [row[0] for row in rows]}
