"""Segment scores in the outputs of metrics' own tools, one column for each metric: `score[NAME]`.

- bert-score: what `bert-score -s` prints (a line of means, then precision, recall and F1 of each segment), and what its
  users keep of `evaluate`: lists `precision`, `recall` and `f1` with a `hashcode`, or a record of a segment each.
- comet-score: what it prints, and its JSON (`--to_json`). Both may hold several systems, named by their files.
- MetricX: JSON lines with `hypothesis` and `prediction`.

Segments are paired by their id if all records have one, else by position. Sources must then be the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
from sigdask.text import describe_items

N_HEAD_LINES = 200
"""Number of first lines in which printed scores may begin, after messages of libraries."""

MEANS = re.compile(r".{0,200} P: -?\d+\.\d+ R: -?\d+\.\d+ F1: -?\d+\.\d+")
"""Pattern of the line of means that bert-score prints first."""

SEGMENT = re.compile(r"(?P<file>[^\t]+)\tSegment \d+\tscore: (?P<score>\S+)")
"""Pattern of a line of a segment that comet-score prints."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The scores of one segment of a system, with the record of other fields that the file has."""

    where: str
    scores: Mapping[str, Any]
    record: Record = field(default_factory=dict)


Systems = dict[str, list[Segment]]
"""Segments by the name that the file gives their system; "" if it gives none."""


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool writes the scores of segments: its keys of JSON, or a pattern of a line."""

    name: str
    read: Callable[[Path], Systems]
    keys: tuple[str, ...] = ()
    line: re.Pattern[str] | None = None

    def fits(self, paths: set[str], lines: Sequence[str]) -> bool:
        """Return whether a file with these keys and first lines is an output of the tool."""
        if self.line is not None:
            return any(self.line.fullmatch(line.rstrip()) for line in lines)
        return all(any(re.fullmatch(key, path) for path in paths) for key in self.keys)


def find_tool(path: Path) -> Tool | None:
    """Return the tool that wrote a file, or None."""
    paths = {*read_keys(path)} if is_json(path) else set()
    lines = files.read_head_lines(path)[:N_HEAD_LINES]
    return next((tool for tool in TOOLS if tool.fits(paths, lines)), None)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first file is the output of a metric's tool."""
    return not sources[0].path.is_dir() and find_tool(sources[0].path) is not None


def _read_printed_bert_score(path: Path) -> Systems:
    segments: list[Segment] = []
    is_begun = False
    for number, line in files.enumerate_lines(path):
        cells = line.rstrip("\r\n").split("\t")
        if not is_begun:
            is_begun = MEANS.fullmatch(line.rstrip()) is not None
        elif len(cells) == 3:
            segments.append(Segment(f"{path}, line {number}", dict(zip(("P", "R", "F1"), cells, strict=True))))
        elif line.strip():
            expected = "P, R and F1 of a segment, separated by tabs"
            raise InputError(file=path, line=number, found=f"{line.strip()[:40]!r}", expected=expected)
    if not segments:
        raise InputError("bert-score printed only its means", file=path, remedy="run it with -s (--seg_level)")
    return {"": segments}


BERT_SCORE = ("precision", "recall", "f1")


def _read_bert_score(path: Path) -> Systems:
    """Read lists of scores, or records of one segment each, in which scores may be lists of one."""
    segments: list[Segment] = []
    for where, record in iter_records(path):
        lists = [value if isinstance(value := record.get(name), list) else [value] for name in BERT_SCORE]
        if len({len(values) for values in lists}) > 1:
            raise InputError(f"{where}: {', '.join(BERT_SCORE)} are not of the same length")
        for k, values in enumerate(zip(*lists, strict=True), start=1):
            segments.append(Segment(f"{where}, segment {k}", dict(zip(BERT_SCORE, values, strict=True))))
    return {"": segments}


def _read_printed_comet(path: Path) -> Systems:
    systems: Systems = {}
    for number, line in files.enumerate_lines(path):
        if match := SEGMENT.fullmatch(line.rstrip()):
            segment = Segment(f"{path}, line {number}", {"COMET": match["score"]})
            systems.setdefault(match["file"], []).append(segment)
    return _rename(systems)


def _read_comet(path: Path) -> Systems:
    systems: Systems = {}
    for key, records in load_json(path).items():
        for k, record in enumerate(records if isinstance(records, list) else [records], start=1):
            where = f"{path}, {key!r}, segment {k}"
            if not isinstance(record, dict) or record.get("COMET") is None:
                raise InputError(f"{where}: found {str(record)[:40]}, expected an object with a score COMET")
            systems.setdefault(key, []).append(Segment(where, {"COMET": record["COMET"]}, record))
    return _rename(systems)


def _rename(systems: Systems) -> Systems:
    """Name systems by their files or, if these names repeat, by the parts of the paths that differ."""
    if len(systems) == 1:
        return {"": next(iter(systems.values()))}
    names = {path: files.get_stem(Path(path)) for path in systems}
    if len(set(names.values())) < len(systems):
        by_path = files.name_by_difference([Path(path) for path in systems])
        names = {path: by_path[Path(path)] for path in systems}
    return {names[path]: segments for path, segments in systems.items()}


def _read_metricx(path: Path) -> Systems:
    records = iter_records(path)
    return {"": [Segment(where, {"MetricX": record.get("prediction")}, record) for where, record in records]}


TOOLS = (
    Tool("bert-score", _read_printed_bert_score, line=MEANS),
    Tool("BERTScore of evaluate", _read_bert_score, keys=(*BERT_SCORE, "hashcode")),
    Tool("comet-score", _read_printed_comet, line=SEGMENT),
    Tool("COMET's JSON", _read_comet, keys=(r".+\.mt", r".+\.(src|ref)", r".+\.COMET")),
    Tool("MetricX", _read_metricx, keys=("hypothesis", "prediction", "source|reference")),
)
"""Tools whose outputs are recognised."""


def read_metrics(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read segment scores of one or more metrics, from one file per system or COMET's files of several systems."""
    path_by_system: dict[str, Path] = {}
    systems: Systems = {}
    for source in sources:
        with files.open_text(source.path) as text:
            files.check_filled(source.path, text.read(1000).strip())
        if (tool := find_tool(source.path)) is None:
            names = ", ".join(tool.name for tool in TOOLS)
            remedy = f"leave out {spell('format')}: tables of scores are read by the names of their columns"
            raise InputError(f"no output of {names}", file=source.path, remedy=remedy)
        found = tool.read(source.path)
        row_names = [*found] if len(found) > 1 else [source.system]
        names_of_file = list_row_systems(source, row_names, path_by_system, is_only_file=len(sources) == 1)
        systems |= dict(zip(names_of_file, found.values(), strict=True))
    return _build_counts(systems, options)


def _build_counts(systems: Systems, options: Options) -> Counts:
    """Return counts of the metrics that all systems have."""
    items = {name: _list_items(segments, options) for name, segments in systems.items()}
    has_ids = all(ids is not None for ids in items.values())
    rows = {
        name: {id_: k for k, id_ in enumerate(ids)} if has_ids and (ids := items[name]) else _list_positions(segments)
        for name, segments in systems.items()
    }
    keys = dict.fromkeys(key for positions in rows.values() for key in positions)
    _check_inputs(systems, rows, options)
    metrics = [dict.fromkeys(name for segment in segments for name in segment.scores) for segments in systems.values()]
    shared = [name for name in metrics[0] if all(name in names for names in metrics) and name not in options.ignore]
    if options.score_column is not None:
        shared = [name for name in shared if name == options.score_column]
    if not shared:
        listed = ", ".join(dict.fromkeys(name for names in metrics for name in names))
        raise InputError(f"no metric {options.score_column or 'that all files have'}; metrics: {listed}")
    left_out = sorted({name for names in metrics for name in names} - {*shared, *options.ignore})
    matrices = {
        metric: np.array(
            [
                [_parse(systems[name][row[key]], metric) if key in row else math.nan for name, row in rows.items()]
                for key in keys
            ],
            np.float64,
        )
        for metric in shared
    }
    first = next(iter(systems.values()))
    return build_score_counts(
        matrices,
        list(systems),
        [str(key) for key in keys] if has_ids else None,
        groups={name: [_get_group(segment, name) for segment in first] for name in options.groups},
        options=options,
        warnings=[f"{describe_items(left_out, 'metric')} not in every file or not asked for: left out"]
        * bool(left_out),
    )


def _list_items(segments: Sequence[Segment], options: Options) -> list[str] | None:
    """Return the ids of segments, or None if some have none."""
    names = ("id", "segment_id", "seg_id") if options.id_column is None else (options.id_column,)
    name = next((name for name in names if find_field(segments[0].record, name)), None)
    if name is None and options.id_column is None:
        return None
    ids = [find_field(segment.record, name or names[0]) for segment in segments]
    seen: set[str] = set()
    for segment, id_ in zip(segments, ids, strict=True):
        if not id_ or id_ in seen:
            problem = f"id {id_!r} is there already" if id_ else f"no field {name or names[0]!r}"
            raise InputError(f"{segment.where}: {problem}", remedy="give each item once, with an id of its own")
        seen.add(id_)
    return [id_ for id_ in ids if id_]


def _list_positions(segments: Sequence[Segment]) -> dict[str, int]:
    return {str(k + 1): k for k in range(len(segments))}


def _check_inputs(systems: Systems, rows: Mapping[str, Mapping[str, int]], options: Options) -> None:
    """Raise if systems have other numbers of segments or other sources."""
    (first_name, first), *others = systems.items()
    for name, segments in others:
        if len(segments) != len(first) and options.missing is None:
            raise InputError(
                f"system {name!r} has {len(segments):,} segments, and {first_name!r} {len(first):,}",
                remedy="score the same segments of both",
            )
        for key, k in rows[name].items():
            segment = segments[k]
            source = _get_source(segment)
            if key in rows[first_name] and source != _get_source(first[rows[first_name][key]]):
                raise InputError(
                    f"{segment.where}: another source than in {first_name!r}", remedy="compare files of one test set"
                )


def _get_source(segment: Segment) -> Any:
    return next((segment.record[key] for key in ("src", "source", "ref", "reference") if segment.record.get(key)), None)


def _get_group(segment: Segment, name: str) -> str:
    value = find_field(segment.record, name)
    if value is None:
        raise InputError(f"{segment.where}: no field {name!r}; fields: {', '.join(segment.record) or 'none'}")
    return value


def _parse(segment: Segment, metric: str) -> float:
    value = segment.scores.get(metric)
    try:
        number = math.nan if value is None else float(value)
    except (TypeError, ValueError):
        number = math.inf
    if math.isinf(number):
        raise InputError(f"{segment.where}: {metric} is {str(value)[:40]!r}, expected a number")
    return number
