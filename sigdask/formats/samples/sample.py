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

ScoreValue = float | list[bool] | str
"""A number (NaN if there is none), truth values to be pooled, or a text that is not a score."""

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

    def get_field(self, name: str) -> str | None:
        """Return a field of the sample as text."""
        return find_field(self.record, name, *self.layout.within)

    def list_fields(self) -> list[str]:
        """Return the names of all fields that the sample can be grouped by."""
        holders = (self.record, *(self.record.get(key) for key in self.layout.within))
        names = [name for holder in holders if isinstance(holder, dict) for name in holder]
        return list(dict.fromkeys(("task", *names)))


@dataclass(slots=True)
class SampleFile:
    """The samples of one model in a log file, and the system that they belong to.

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
        Time at which it was written, in UTC, from its contents or its name.
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
    given = next((record[name] for name in layout.input if record.get(name) is not None), None)
    return ScoredSample(
        where=where,
        task=task or next((str(record[name]) for name in TASK_NAMES if isinstance(record.get(name), str)), ""),
        item=item,
        scores={} if status else read_scores(where, record, layout, options),
        record=record,
        layout=layout,
        sample=find_field(record, layout.sample) or "" if layout.sample else "",
        filter=str(record.get("filter", "")),
        input="" if given is None else digest_input(given),
        status=status,
    )


def _is_set(value: Any, values: tuple[Any, ...]) -> bool:
    """Return whether a status field says that there is no score: one of the values or, for (), any value."""
    return value in values if values else value not in (None, False, "")


def read_scores(where: str, record: Record, layout: LogLayout, options: Options) -> dict[str, ScoreValue]:
    """Return the scores of a record: those that its layout declares or the record lists, or those asked for."""
    listed = record.get(layout.listed) if layout.listed else None
    fields = _get_declared(record, layout)
    if isinstance(listed, dict):
        fields |= listed
    elif isinstance(listed, list) and listed:
        fields |= {name: record[name] for name in map(str, listed) if name in record}
    elif layout.listed and not fields:
        fields = _find_metrics(where, record, layout, options)
    if options.score_column is not None:
        for name in split_columns(options.score_column, fields):
            value = _get(record, name)
            fields.setdefault(name, _get(record, f"stats.{name}") if value is None else value)
    scores = dict(_flatten_scores(fields, are_texts_numbers=isinstance(listed, list)))
    for name, score in scores.items():
        if isinstance(score, float) and (math.isinf(score) or (layout.listed and math.isnan(score))):
            problem = f"{name} is {score}, expected a finite number"
            raise InputError(f"{where}: {problem}", remedy="write a number, or remove the field")
    return scores


def _get_declared(record: Record, layout: LogLayout) -> dict[str, Any]:
    """Return the fields of scores that the layout declares, as far as the record has them."""
    fields: dict[str, Any] = {}
    for metric, name in layout.scores.items():
        value = _get(record, name)
        if metric == "*":
            fields |= value if isinstance(value, dict) else {}
        elif value is not None:
            fields[metric] = value
    return fields


def _get(record: Record, path: str) -> Any:
    value: Any = record
    for part in [path] if path in record else path.split(".", 1):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _find_metrics(where: str, record: Record, layout: LogLayout, options: Options) -> dict[str, Any]:
    """Return the fields named after metrics; other numbers are refused unless the user chose or ignored them."""
    known = {*layout.item, *TASK_NAMES, *layout.fields, layout.sample, *layout.left_out, *options.ignore}
    values = {name: value for name, value in record.items() if name not in known and _is_score(value)}
    metrics = {name: value for name, value in values.items() if name in layout.metrics or "score" in name_role(name)}
    unknown = {name: value for name, value in values.items() if name not in metrics and name not in options.groups}
    if unknown and options.score_column is None and options.id_column not in unknown:
        shown = format_list([f"{name} = {value}" for name, value in unknown.items()], SHOWN)
        ignore = " ".join(spell("ignore", name) for name in unknown)
        raise InputError(
            f"{where}: no list `metrics` says which fields are scores, and these may be: {shown}",
            remedy=f"{spell('columns', 'score=' + '+'.join(values))} if they are, or {ignore} if not",
        )
    return metrics


def _is_score(value: Any) -> bool:
    is_truth_list = isinstance(value, list) and value and all(isinstance(part, bool) for part in value)
    return isinstance(value, bool | int | float) or value in ("True", "False") or bool(is_truth_list)


def _flatten_scores(
    fields: Mapping[str, Any], prefix: str = "", *, are_texts_numbers: bool
) -> Iterator[tuple[str, ScoreValue]]:
    """Yield the scores of a record, with dotted names for those in objects; skip other fields.

    Texts of numbers are scores if the record lists its metrics. Other texts are yielded as they are, to be reported.
    """
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from _flatten_scores(value, f"{prefix}{name}.", are_texts_numbers=are_texts_numbers)
        elif isinstance(value, list):
            if value and all(isinstance(part, bool) or part in ("True", "False") for part in value):
                yield f"{prefix}{name}", [part in (True, "True") for part in value]
        elif value is not None:
            number = parse_number(value)
            if number is not None:
                yield f"{prefix}{name}", number
            elif isinstance(value, str) and not are_texts_numbers:
                yield f"{prefix}{name}", value


def digest_input(value: Any) -> str:
    """Return a digest of the input, with which samples of one id are checked to have the same input."""
    return hashlib.md5(json.dumps(value, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


DATE = re.compile(
    r"(?<!\d)(?P<day>(?:19|20)\d\d(?P<mark>-?)(?:0[1-9]|1[0-2])(?P=mark)[0-3]\d)"
    r"(?:(?![T_ -](?:19|20)\d\d-?\d\d-?\d\d(?!\d))[T_ -]?"  # no other day
    r"(?P<time>[0-2]\d[-:.]?[0-5]\d(?:[-:.]?[0-5]\d)?)(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?:Z|(?P<zone>[+-]\d\d[-:]?\d\d))?)?(?![\d])"
)
"""Pattern of dates and times in names of files and folders: of the harness, of Inspect and of people."""


def parse_date(name: str) -> datetime | None:
    """Return the date in a name, in UTC unless it names another zone, or None if there is no date.

    If there are several, it is one with a time of day, the one at the start of the name, or else the last one. The
    name of a task may contain a day.

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
    valid = [match for match in DATE.finditer(name) if _parse_match(match) is not None]
    dates = [match for match in valid if match["time"]] or valid
    return None if not dates else dates[0] if dates[0].start() == 0 else dates[-1]


def _parse_match(match: re.Match[str]) -> datetime | None:
    day, time, zone = (re.sub(r"\D", "", match[name] or "") for name in ("day", "time", "zone"))
    sign = (match["zone"] or "+")[0]
    text = f"{day}T{(time or '0').ljust(6, '0')}.{(match['fraction'] or '0')[:6].ljust(6, '0')}{sign}{zone or '0000'}"
    try:
        return datetime.strptime(text, "%Y%m%dT%H%M%S.%f%z").astimezone(UTC)
    except ValueError:
        return None
