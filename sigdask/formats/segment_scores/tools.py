"""Segment scores in the outputs of metrics' own tools, one column for each metric: `score[NAME]`.

- comet-score: what it prints, and its JSON (`--to_json`). Both may hold several systems, named by their files.
- MetricX: JSON lines with `hypothesis` and `prediction`.

Segments are paired by position. Their sources must be the same in all systems.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading import files
from sigdask.formats.reading.json_records import Record, find_field, is_json, iter_records, load_json, read_keys
from sigdask.formats.reading.options import Options, Source, list_row_systems
from sigdask.formats.reading.replicates import build_score_counts
from sigdask.interface import spell

N_HEAD_LINES = 200
"""Number of first lines in which printed scores may begin, after messages of libraries."""

SEGMENT = re.compile(r"(?P<file>[^\t]+)\tSegment \d+\tscore: (?P<score>\S+)")
"""Pattern of a line of a segment that comet-score prints."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The score of one segment of a system, with the record of other fields that the file has."""

    where: str
    score: Any
    record: Record = field(default_factory=dict)

    @property
    def source(self) -> list[Any]:
        """The id, source and reference of the segment, as far as the file has them."""
        return [self.record.get(name) for name in ("id", "src", "source", "ref", "reference")]

    def parse_score(self) -> float:
        """Return the score as a number; raise an error for anything else."""
        try:
            number = float(self.score)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise InputError(f"{self.where}: found {str(self.score)[:40]!r}, expected a number")
        return number


Systems = dict[str, list[Segment]]
"""Segments by the name that the file gives their system; "" if it gives none."""


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool writes the scores of its metric: its keys of JSON, or a pattern of a line."""

    name: str
    metric: str
    read: Callable[[Path], Systems]
    keys: tuple[str, ...] = ()
    line: re.Pattern[str] | None = None

    def fits(self, paths: set[str], lines: Sequence[str]) -> bool:
        """Return whether a file with these keys and first lines is an output of the tool."""
        if self.line is not None:
            return any(self.line.fullmatch(line.rstrip()) for line in lines)
        return all(any(fnmatchcase(path, choice) for choice in key.split("|") for path in paths) for key in self.keys)


def find_tool(path: Path) -> Tool | None:
    """Return the tool that wrote a file, or None."""
    paths = {*read_keys(path)} if is_json(path) else set()
    lines = files.read_head_lines(path)[:N_HEAD_LINES]
    return next((tool for tool in TOOLS if tool.fits(paths, lines)), None)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first file is the output of a metric's tool."""
    return not sources[0].path.is_dir() and find_tool(sources[0].path) is not None


def _read_printed_comet(path: Path) -> Systems:
    systems: Systems = {}
    for number, line in files.enumerate_lines(path):
        if match := SEGMENT.fullmatch(line.rstrip()):
            systems.setdefault(match["file"], []).append(Segment(f"{path}, line {number}", match["score"]))
    return _name_by_files(systems)


def _read_comet(path: Path) -> Systems:
    systems: Systems = {}
    for key, records in load_json(path).items():
        for k, record in enumerate(records if isinstance(records, list) else [records], start=1):
            where = f"{path}, {key!r}, segment {k}"
            if not isinstance(record, dict):
                raise InputError(f"{where}: found {str(record)[:40]}, expected an object with a score COMET")
            systems.setdefault(key, []).append(Segment(where, record.get("COMET"), record))
    return _name_by_files(systems)


def _name_by_files(systems: Systems) -> Systems:
    """Name systems by their files or, if these names repeat, by the parts of the paths that differ."""
    if len(systems) == 1:
        return {"": next(iter(systems.values()))}
    names = {path: files.get_stem(Path(path)) for path in systems}
    if len(set(names.values())) < len(systems):
        by_path = files.name_by_difference([Path(path) for path in systems])
        names = {path: by_path[Path(path)] for path in systems}
    return {names[path]: segments for path, segments in systems.items()}


def _read_metricx(path: Path) -> Systems:
    return {"": [Segment(where, record.get("prediction"), record) for where, record in iter_records(path)]}


TOOLS = (
    Tool("comet-score", "COMET", _read_printed_comet, line=SEGMENT),
    Tool("COMET's JSON", "COMET", _read_comet, keys=("*.mt", "*.COMET")),
    Tool("MetricX", "MetricX", _read_metricx, keys=("hypothesis", "prediction", "source|reference")),
)
"""Tools whose outputs are recognised."""


def read_metrics(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read segment scores of one metric, from one file per system or COMET's files of several systems."""
    path_by_system: dict[str, Path] = {}
    systems: Systems = {}
    metrics: dict[str, None] = {}
    for source in sources:
        with files.open_text(source.path) as text:
            files.check_filled(source.path, text.read(1000).strip())
        if (tool := find_tool(source.path)) is None:
            names = ", ".join(tool.name for tool in TOOLS)
            remedy = f"leave out {spell('format')}: tables of scores are read by the names of their columns"
            raise InputError(f"no output of {names}", file=source.path, remedy=remedy)
        metrics[tool.metric] = None
        read = tool.read(source.path)
        row_names = [*read] if len(read) > 1 else [source.system]
        names_of_file = list_row_systems(source, row_names, path_by_system, is_only_file=len(sources) == 1)
        systems |= dict(zip(names_of_file, read.values(), strict=True))
    if len(metrics) > 1:
        raise InputError(f"files have different metrics: {', '.join(metrics)}; give files of one metric")
    _check_segments(systems)
    first = next(iter(systems.values()))
    columns = [[segment.parse_score() for segment in segments] for segments in systems.values()]
    return build_score_counts(
        {next(iter(metrics)): np.array(columns, np.float64).T},
        list(systems),
        None,
        groups={name: [_get_group(segment, name) for segment in first] for name in options.groups},
        options=options,
    )


def _check_segments(systems: Mapping[str, Sequence[Segment]]) -> None:
    """Raise if systems have other numbers of segments or other sources."""
    (first_name, first), *others = systems.items()
    ids: set[Any] = set()
    for segment in first:
        id_ = segment.record.get("id")
        if id_ is not None and id_ in ids:
            raise InputError(f"{segment.where}: id {id_!r} is there already", remedy="give each item once")
        ids.add(id_)
    for name, segments in others:
        if len(segments) != len(first):
            problem = f"system {name!r} has {len(segments):,} segments, and {first_name!r} {len(first):,}"
            raise InputError(problem, remedy="score the same segments of both")
        for segment, other in zip(segments, first, strict=True):
            if segment.source != other.source:
                problem = f"{segment.where}: another source than in {first_name!r}"
                raise InputError(problem, remedy="compare files of one test set")


def _get_group(segment: Segment, name: str) -> str:
    value = find_field(segment.record, name)
    if value is None:
        raise InputError(f"{segment.where}: no field {name!r}; fields: {', '.join(segment.record) or 'none'}")
    return value
