"""One log, and one sample of it: its item, scores and status, read as its layout says."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.json_records import Record, find_field, parse_number
from sigdask.formats.reading.options import Options
from sigdask.formats.roles import name_role, split_columns
from sigdask.formats.samples.layouts import LogLayout, Run
from sigdask.interface import spell
from sigdask.text import format_list

ScoreValue = float | list[bool]
"""A number (NaN if there is none), or truth values to be pooled."""

TASK_NAMES = ("task", "task_name", "dataset")
SHOWN = 6


@dataclass(frozen=True, slots=True)
class ScoredSample:
    """One sample of a log: its task, id and scores, and the whole record.

    Attributes
    ----------
    where : str
        File and line, for errors.
    task, item : str
        Task and id of the sample.
    scores : mapping of str to Value
        Scores by metric.
    record : mapping
        The whole sample, in which groups are looked up.
    layout : LogLayout
        Where its fields are.
    sample : str
        Number of the sample among those of its item; empty if the log does not number them.
    filter : str
        How the answer was extracted from the response.
    input : str
        A digest of the question.
    status : str
        Why the sample has no score; empty if it has one.
    """

    where: str
    task: str
    item: str
    scores: Mapping[str, ScoreValue]
    record: Record
    layout: LogLayout
    sample: str = ""
    filter: str = ""
    input: str = ""
    status: str = ""

    @property
    def has_score(self) -> bool:
        """Whether a metric has a value for the sample."""
        return any(not isinstance(value, float) or not math.isnan(value) for value in self.scores.values())

    def get_group(self, name: str) -> str:
        """Return a field of the sample that groups samples; its task is the subject of samples that name none."""
        value = self.task if name == "task" else find_field(self.record, name, *self.layout.within)
        value = self.task if value is None and name == "subject" else value
        if value is None:
            raise InputError(f"{self.where}: no field {name!r}; fields: {', '.join(self.record)}")
        return value


@dataclass(slots=True)
class SampleFile:
    """A log file, and the system that it belongs to.

    Attributes
    ----------
    path : Path
        The file.
    layout : LogLayout
        How the file's tool writes logs.
    run : Run
        Its records, model, task and notes.
    system : str
        The system that the log belongs to.
    task : str
        Task of the log. Empty if the samples name it themselves, or nothing does.
    folder : Path
        Folder of the log within the folder of its system.
    moment : datetime or None
        The date of the log.
    """

    path: Path
    layout: LogLayout
    run: Run
    system: str = ""
    task: str = ""
    folder: Path = Path()
    moment: datetime | None = None

    def iter_samples(self, options: Options) -> Iterator[ScoredSample]:
        """Yield the samples of the log."""
        is_empty = True
        for where, record in self.run.records():
            is_empty = False
            yield build_sample(where, record, self.layout, self.task, options)
        if is_empty:
            problem = f"no sample with a score in this log of {self.layout.tool}"
            raise InputError(problem, file=self.path, remedy="write it with its samples, or leave it out")


def build_sample(where: str, record: Record, layout: LogLayout, task: str, options: Options) -> ScoredSample:
    """Return a sample, read as its layout says."""
    names = layout.item if options.id_column is None else (options.id_column,)
    found = (find_field(record, name, *layout.within) for name in names)
    item = next((text for text in found if text is not None), None)
    if not item:
        raise InputError(
            f"{where}: no {' or '.join(names[:2])}, which identifies the sample; fields: {', '.join(record)}",
            remedy=f"name another field with {spell('columns', 'item=COLUMN')}",
        )
    status = next((name for name, values in layout.left_out.items() if _is_set(record.get(name), values)), "")
    asked = next((record[name] for name in layout.input if record.get(name) is not None), None)
    return ScoredSample(
        where=where,
        task=task or next((str(record[name]) for name in TASK_NAMES if isinstance(record.get(name), str)), ""),
        item=item,
        scores={} if status else read_scores(where, record, layout, options),
        record=record,
        layout=layout,
        sample=find_field(record, layout.sample) or "" if layout.sample else "",
        filter=str(record.get("filter", "")),
        input="" if asked is None else _digest(asked),
        status=status,
    )


def _is_set(value: Any, values: tuple[Any, ...]) -> bool:
    """Return whether a status field says that there is no score: one of the values or, for (), any value."""
    return value in values if values else value not in (None, False, "")


def _digest(value: Any) -> str:
    return hashlib.md5(json.dumps(value, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def read_scores(where: str, record: Record, layout: LogLayout, options: Options) -> dict[str, ScoreValue]:
    """Return the scores of a record: those that its layout declares or the record lists, or those asked for."""
    fields = {name: record[name] for name in layout.metrics if name in record}
    for holder in (record.get("scores"), record.get("metrics")):
        fields |= holder if isinstance(holder, dict) else {}
    if layout.is_flat and not fields:
        fields = _find_metrics(where, record, layout, options)
    if options.score_column is not None:
        for name in split_columns(options.score_column, fields):
            fields.setdefault(name, record.get(name, find_field(record, name)))
    scores: dict[str, ScoreValue] = {}
    for name, value in _flatten_scores(fields):
        number = parse_number(value)
        if name in options.ignore or (number is None and not isinstance(value, str) and not _is_truth_list(value)):
            continue  # such as the texts that a metric of the whole set needs
        if number is None and isinstance(value, list):
            scores[name] = [part in (True, "True") for part in value]
        elif number is None or math.isinf(number) or (layout.is_flat and math.isnan(number)):
            problem = f"{name} is {str(value)[:40]!r}, expected a finite number"
            raise InputError(f"{where}: {problem}", remedy=f"write a number, or add {spell('ignore', name)}")
        else:
            scores[name] = number
    return scores


def _find_metrics(where: str, record: Record, layout: LogLayout, options: Options) -> dict[str, Any]:
    """Return the fields that the list `metrics` names or, without a list, those named after metrics.

    Other numbers are refused unless the user chose or ignored them.
    """
    listed = record.get("metrics")
    if isinstance(listed, list) and listed:
        named = {name: record[name] for name in map(str, listed) if name in record}
        if not named and options.score_column is None and options.missing not in {"pairwise", "zero"}:
            problem = f"its list `metrics` ({format_list([*map(str, listed)], SHOWN)}) names no field"
            raise InputError(f"{where}: {problem}", remedy=f"name a field with {spell('columns', 'score=COLUMN')}")
        return named
    known = {*layout.item, *TASK_NAMES, "target", layout.sample, *layout.left_out, *options.ignore}
    values = {name: value for name, value in record.items() if name not in known and _is_score(value)}
    metrics = {name: value for name, value in values.items() if "score" in name_role(name)}
    unknown = {name: value for name, value in values.items() if name not in metrics and name not in options.groups}
    if unknown and options.score_column is None and options.id_column not in unknown:
        shown = format_list([f"{name} = {value}" for name, value in unknown.items()], SHOWN)
        ignore = " ".join(spell("ignore", name) for name in unknown)
        raise InputError(
            f"{where}: no list `metrics` says which fields are scores, and these may be: {shown}",
            remedy=f"{spell('columns', 'score=' + '+'.join(values))} if they are, or {ignore} if not",
        )
    return metrics


def _is_truth_list(value: Any) -> bool:
    parts = value if isinstance(value, list) else []
    return bool(parts) and all(isinstance(part, bool) or part in ("True", "False") for part in parts)


def _is_score(value: Any) -> bool:
    return isinstance(value, bool | int | float) or value in ("True", "False") or _is_truth_list(value)


def _flatten_scores(fields: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record, with dotted names for those in objects."""
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from _flatten_scores(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


DATE = re.compile(
    r"(?<!\d)(?P<day>(?:19|20)\d\d-?[01]\d-?[0-3]\d)"
    r"(?:[T ](?P<time>\d\d[-:]?\d\d[-:]?\d\d(?:\.\d+)?)(?P<zone>[+-]\d\d[-:]?\d\d)?|(?!\d))"
)
"""Pattern of dates and times in logs of Inspect and in names of files and folders."""


def parse_date(name: str) -> datetime | None:
    """Return the date in a name, in UTC unless it names another zone, or None if there is no date.

    If there are several, it is the last one with a time of day, or else the last one. The name of a task may contain a
    day.

    Examples
    --------
    >>> (str(parse_date("samples_gsm8k_2024-05-01T12-00-00.5.jsonl")),
    ...  str(parse_date("2024-05-01T12-00-00+02-00_arc_x.eval")))
    ('2024-05-01 12:00:00.500000+00:00', '2024-05-01 10:00:00+00:00')
    >>> str(parse_date("night-20240501.jsonl")), parse_date("mmlu_2024.jsonl")
    ('2024-05-01 00:00:00+00:00', None)
    """
    match = _find_date(name)
    return None if match is None else _parse_match(match)


def remove_date(name: str) -> str:
    """Return a name without its date, and without the punctuation that is then left at its ends.

    Examples
    --------
    >>> remove_date("gsm8k_2024-05-01"), remove_date("live_2024-06-24_2024-08-01T12-00-00"), remove_date("2024-05-01")
    ('gsm8k', 'live_2024-06-24', '')
    """
    match = _find_date(name)
    return name if match is None else (name[: match.start()] + name[match.end() :]).strip("_-. ")


def _find_date(name: str) -> re.Match[str] | None:
    dates = [match for match in DATE.finditer(name) if _parse_match(match) is not None]
    return next(reversed([match for match in dates if match["time"]] or dates), None)


def _parse_match(match: re.Match[str]) -> datetime | None:
    time, zone = ((match[part] or "").replace("-", ":") for part in ("time", "zone"))
    zone = f"{match['zone'][0]}{zone[1:]}" if zone else "+00:00"
    try:
        return datetime.fromisoformat(f"{match['day']}T{time or '00:00:00'}{zone}").astimezone(UTC)
    except ValueError:
        return None
