"""One log, and one sample of it: its item, scores and status, read as its layout says."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.json_records import Record, find_field, parse_number
from sigdask.formats.reading.options import Options
from sigdask.formats.roles import name_role, split_columns
from sigdask.formats.samples.layouts import LogLayout, Run
from sigdask.interface import spell

HASH = "doc_hash"
TASK_NAMES = ("task", "task_name", "dataset")
FLAGS = ("error", "skipped", "cancelled", "perturbation")
"""Fields that are set in records that do not count, and values of their field `status`."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a log.

    Attributes
    ----------
    where : str
        File and line, for errors.
    task, item : str
        Task and id of the sample.
    scores : mapping of str to float
        Its scores by metric.
    record : mapping
        The whole sample, in which groups are looked up.
    filter : str
        How the answer was extracted from the response.
    input : str, int or None
        The hash of the question: `doc_hash` as a text, or else our own.
    status : str
        Why the sample does not count; empty if it does.
    """

    where: str
    task: str
    item: str
    scores: Mapping[str, float]
    record: Record
    filter: str
    input: str | int | None
    status: str


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
    task : str
        Task of the log. Empty if the samples name it themselves, or nothing does.
    folder : Path
        Folder of the log within the folder of its system.
    date : str
        The digits of the log's date; empty without one.
    system : str
        The system that the log belongs to.
    """

    path: Path
    layout: LogLayout
    run: Run
    task: str
    folder: Path
    date: str
    system: str

    def iter_samples(self, options: Options) -> Iterator[Sample]:
        """Yield the samples of the log."""
        is_empty = True
        for where, record in self.run.records():
            is_empty = False
            try:
                flat = self.layout.flatten(record)
            except (AttributeError, KeyError, TypeError):
                expected = f"a sample as {self.layout.tool} writes it"
                raise InputError(f"{where}: found {str(record)[:40]!r}, expected {expected}") from None
            yield self._build_sample(where, flat, options)
        if is_empty:
            problem = f"no sample with a score in this log of {self.layout.tool}"
            raise InputError(problem, file=self.path, remedy="write it with its samples, or leave it out")

    def _build_sample(self, where: str, record: Record, options: Options) -> Sample:
        names = self.layout.item if options.id_column is None else (options.id_column,)
        found = (find_field(record, name, *self.layout.within) for name in names)
        if not (item := next((text for text in found if text is not None), "")):
            raise InputError(
                f"{where}: no {' or '.join(names[:2])}, which identifies the sample; fields: {', '.join(record)}",
                remedy=f"name another field with {spell('columns', 'item=COLUMN')}",
            )
        status = next((name for name in FLAGS if record.get(name)), "")
        status = status or ("status" if record.get("status") in FLAGS else "")
        asked = next((record[name] for name in self.layout.input if record.get(name) is not None), None)
        if asked is not None and asked is not record.get(HASH):
            asked = hash(json.dumps(asked, sort_keys=True))
        return Sample(
            where,
            self.task or next((name for name in map(record.get, TASK_NAMES) if isinstance(name, str)), ""),
            item,
            {} if status else read_scores(where, record, self.layout, options),
            record,
            filter=str(record.get("filter", "")),
            input=asked,
            status=status,
        )


def read_scores(where: str, record: Record, layout: LogLayout, options: Options) -> dict[str, float]:
    """Return the scores of a record: those that its layout declares or the record lists, or those asked for."""
    fields: dict[str, Any] = {}
    for name in layout.scores:
        value = record.get(name)
        fields |= value if isinstance(value, dict) else {} if layout.is_flat else {name: value}
    if layout.is_flat and not fields:
        fields = _find_metrics(where, record, layout, options)
    if "score" in options.columns:
        for name in split_columns(options.columns["score"], fields):
            fields.setdefault(name, record.get(name, find_field(record, name)))
    scores: dict[str, float] = {}
    for name, value in _flatten_scores(fields):
        number = parse_number(value)
        if name in options.ignore or (number is None and not isinstance(value, str)):
            continue  # such as the texts that a metric of the whole set needs
        if number is None or math.isinf(number):
            problem = f"{name} is {str(value)[:40]!r}, expected a finite number"
            raise InputError(f"{where}: {problem}", remedy=f"write a number, or add {spell('ignore', name)}")
        if not math.isnan(number):
            scores[name] = number + 0.0
    return scores


def _find_metrics(where: str, record: Record, layout: LogLayout, options: Options) -> dict[str, Any]:
    """Return the fields that the list `metrics` names or, without a list, the numbers that are named after metrics."""
    listed = record.get("metrics")
    if isinstance(listed, list):
        return {name: record.get(name) for name in map(str, listed)}
    named = {*layout.item, *FLAGS, *options.ignore, *options.groups, options.id_column, "target", "epoch"}
    numbers = [name for name, value in record.items() if name not in named and isinstance(value, bool | int | float)]
    unknown = [name for name in numbers if "score" not in name_role(name)]
    if unknown and "score" not in options.columns:
        ignore = " ".join(spell("ignore", name) for name in unknown)
        raise InputError(
            f"{where}: no list `metrics` says which fields are scores, and {', '.join(unknown)} may be",
            remedy=f"{spell('columns', 'score=' + '+'.join(numbers))} if they are, or {ignore} if not",
        )
    return {name: record[name] for name in numbers if name not in unknown}


def _flatten_scores(fields: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record, with dotted names for those in objects."""
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from _flatten_scores(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
