"""COMET's JSON (`comet-score --to_json`): scores of segments, with one system for each file of translations.

Segments are paired by position. Their sources must be the same in all systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.json_records import is_json, load_json, parse_number, read_keys
from sigdask.formats.reading.options import Options, Source, distinguish_names, list_row_systems
from sigdask.formats.reading.replicates import build_score_counts

METRIC = "COMET"

Segments = list[dict[str, Any]]


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first file is COMET's JSON."""
    path = sources[0].path
    keys = read_keys(path) if not path.is_dir() and is_json(path) else ()
    return all(any(fnmatchcase(key, pattern) for key in keys) for pattern in ("*.mt", f"*.{METRIC}"))


def read_metrics(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read COMET's scores of segments, from one file per system or from files of several systems."""
    path_by_system: dict[str, Path] = {}
    systems: dict[str, Segments] = {}
    for source in sources:
        read = _read_file(source.path)
        own = [s.system for s in distinguish_names([Source(Path(name)) for name in read])]
        names = own if len(read) > 1 else [source.system]
        names_of_file = list_row_systems(source, names, path_by_system, is_only_file=len(sources) == 1)
        systems |= dict(zip(names_of_file, read.values(), strict=True))
    (first_name, first), *others = systems.items()
    for name, segments in others:
        pairs = zip_longest(segments, first, fillvalue={"src": None})  # None is no source
        for number, (segment, other) in enumerate(pairs, start=1):
            if any(segment.get(key, "") != other.get(key, "") for key in ("src", "ref")):
                problem = f"segment {number} of system {name!r} has another source than in {first_name!r}"
                raise InputError(problem, file=path_by_system[name], remedy="compare files of one test set")
    scores = np.array([[segment[METRIC] for segment in segments] for segments in systems.values()], np.float64)
    return build_score_counts({METRIC: scores.T}, list(systems), None, groups={}, options=options)


def _read_file(path: Path) -> dict[str, Segments]:
    """Return the segments of each file of translations, whose scores are numbers."""
    document = load_json(path)
    systems: dict[str, Segments] = {}
    for name, segments in document.items() if isinstance(document, dict) else ():
        for number, segment in enumerate(segments if isinstance(segments, list) else [segments], start=1):
            value = segment.get(METRIC) if isinstance(segment, dict) else None
            score = None if isinstance(value, bool) else parse_number(value)
            if score is None or not np.isfinite(score):
                place, expected = f"{name!r}, segment {number}", f"an object with a number {METRIC}"
                raise InputError(file=path, place=place, found=str(segment)[:40], expected=expected)
            systems.setdefault(name, []).append({**segment, METRIC: score})
    if not systems or len(systems) < len(document):
        raise InputError("expected an object with the segments of each file of translations", file=path)
    return systems
