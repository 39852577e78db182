"""A test set's folder of mt-metrics-eval (WMT's metrics tasks): human and metric scores of every system's segments.

`human-scores/en-de.mqm.seg.score` is the metric `mqm`, `metric-scores/en-de/COMET-22-refA.seg.score` is
`COMET-22-refA`; a row is system and score, a system's segments in their order, `None` where there is none. Human scores
are compared unless others are asked for. Documents and domains (`documents/en-de.docs`) are columns to exchange by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.averages import of_matrices
from sigdask.formats.reading.files import open_text
from sigdask.formats.reading.numbers import NotANumberError, to_numbers
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.tables.scores import no_gold
from sigdask.text import listed, some

HUMAN, METRIC, DOCUMENTS = "human-scores", "metric-scores", "documents"
ENDING = ".seg.score"
SHOWN = 12

Scores = dict[str, NDArray[np.float64]]
"""System to the scores of its segments."""


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Know the folder of a test set, or of several, by the folders in it."""
    path = sources[0].path
    return gold is None and path.is_dir() and (_is_test_set(path) or bool(_test_sets(path)))


def _is_test_set(path: Path) -> bool:
    return (path / HUMAN).is_dir() or (path / METRIC).is_dir()


def _test_sets(path: Path) -> list[str]:
    return sorted(inner.name for inner in path.iterdir() if inner.is_dir() and _is_test_set(inner))


def read_directory(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read the segments' scores of one language pair; see above."""
    options.only("mt-metrics-eval", pair=(), scores=())
    no_gold(gold, "mt-metrics-eval")
    if len(sources) > 1:
        raise InputError(
            f"{sources[1].path}: a second folder; give the folder of one test set, which holds all systems"
        )
    path = sources[0].path
    if not path.is_dir():
        raise InputError(f"{path}: {'is no folder' if path.exists() else 'no such folder'}; expected one with {HUMAN}")
    if not _is_test_set(path):
        inside = _test_sets(path)
        hint = f"; give one of the test sets in it: {', '.join(inside)}" if inside else ""
        raise InputError(f"{path}: holds neither {HUMAN} nor {METRIC}{hint}")
    pair = _pair(path, options)
    files = _files(path, pair)
    found = {name: _read(files[name]) for name in _asked(path, pair, files, options)}
    groups = _documents(path / DOCUMENTS / f"{pair}.docs")
    n = len(groups["document"]) if groups else max(len(own) for scores in found.values() for own in scores.values())
    for name, scores in found.items():
        for system, own in scores.items():
            if len(own) != n:
                raise InputError(f"{files[name]}: system {system!r} has {len(own):,} scores of {n:,} segments")
    systems, notes = _common(path, found)
    return of_matrices(
        {name: np.column_stack([scores[system] for system in systems]) for name, scores in found.items()},
        systems,
        None,
        groups=groups,
        options=options,
        warnings=notes,
    )


def _pair(path: Path, options: Options) -> str:
    """Return the language pair that is asked for, or the only one."""
    human = (file.name.partition(".")[0] for file in (path / HUMAN).glob(f"*{ENDING}"))
    metric = (file.parent.name for file in (path / METRIC).glob(f"*/*{ENDING}"))
    pairs = sorted({*human, *metric})
    asked = options.own.get("pair")
    if asked is None and len(pairs) == 1:
        return pairs[0]
    if asked in pairs:
        return str(asked)
    what = (
        f"no language pair {asked!r}"
        if asked and pairs
        else "several language pairs"
        if pairs
        else "no scores of segments"
    )
    remedy = f"; choose with --format mt-metrics-eval:pair={pairs[0]}: {', '.join(pairs)}" if pairs else ""
    raise InputError(f"{path}: {what}{remedy}")


def _files(path: Path, pair: str) -> dict[str, Path]:
    """Return the files of scores by metric, human ones first."""
    human = sorted((path / HUMAN).glob(f"{pair}.*{ENDING}"))
    metric = sorted((path / METRIC / pair).glob(f"*{ENDING}"))
    named = {file.name.removeprefix(f"{pair}.").removesuffix(ENDING): file for file in human}
    return {file.name.removesuffix(ENDING): file for file in metric} | named


def _asked(path: Path, pair: str, files: Mapping[str, Path], options: Options) -> list[str]:
    """Return the metrics asked for, by --metric or scores=NAME+NAME; else those of people."""
    own = [name for name in options.own.get("scores", "").split("+") if name]
    human = [name for name, file in files.items() if file.parent.name == HUMAN]
    asked = list(dict.fromkeys((*own, *options.metrics))) or human
    unknown = [name for name in asked if name not in files]
    if unknown or not asked:
        what = f"no scores {unknown[0]!r}" if unknown else "no human scores"
        raise InputError(f"{path}: {what} of {pair}; choose with --metric: {listed([*files], SHOWN)}")
    return asked


def _read(path: Path) -> Scores:
    """Read rows of system and score.

    Raises
    ------
    InputError
        For a row of other than two cells, and a score that is no number.
    """
    with open_text(path) as text:
        rows = [(number, line.split()) for number, line in enumerate(text, start=1) if line.strip()]
    for number, row in rows:
        if len(row) != 2:
            raise InputError(f"{path}, line {number}: found {len(row)} cells, expected a system and its score")
    try:
        values = to_numbers([row[1] for _, row in rows])
    except NotANumberError as error:
        raise InputError(f"{path}, line {rows[error.index][0]}: {error}") from None
    if not rows:
        raise InputError(f"{path}: is empty, expected a system and its score a line")
    places: dict[str, list[int]] = {}
    for k, (_, row) in enumerate(rows):
        places.setdefault(row[0], []).append(k)
    return {system: values[own] for system, own in places.items()}


def _documents(path: Path) -> dict[str, list[str]]:
    """Return domain and document of each segment, where they are known."""
    if not path.exists():
        return {}
    with open_text(path) as text:
        rows = [line.split(maxsplit=1) for line in text if line.strip()]
    return {"document": [row[-1].strip() for row in rows], "domain": [row[0] for row in rows]}


def _common(path: Path, found: Mapping[str, Scores]) -> tuple[list[str], list[str]]:
    """Return the systems that have scores in every metric, and a note of the others."""
    having = {
        name: {system for system, own in scores.items() if not np.isnan(own).all()} for name, scores in found.items()
    }
    every = dict.fromkeys(system for scores in found.values() for system in scores)
    systems = [system for system in every if all(system in own for own in having.values())]
    left = [system for system in every if system not in systems]
    if not systems:
        raise InputError(f"{path}: no system has scores in all of {', '.join(found)}")
    notes = [f"{path}: {some(left, 'system')} without scores in every metric: left out"] if left else []
    return systems, notes
