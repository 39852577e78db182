"""Samples of lm-evaluation-harness (`samples_TASK_DATE.jsonl`), and plain records with numbers in them."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.files import stem
from sigdask.formats.reading.json.records import load
from sigdask.formats.reading.json.rows import Record, first_record, lookup, number, records
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import ROW_NAMES
from sigdask.formats.samples.log_dates import moment, undated
from sigdask.formats.samples.sample import SampleFile, ScoredSample, Value

FILE = re.compile(r"samples_(?P<task>.+)\.jsonl?(?:\.gz)?$")
"""What the harness calls its files; a date follows the task."""

ID_NAMES = (
    "doc_id",
    "sample_id",
    "item_id",
    "example_id",
    "question_id",
    "task_id",
    "id",
    "uid",
    "idx",
    "index",
    "item",
)
TASK_NAMES = ("task", "task_name", "dataset")
NO_METRICS = frozenset({
    *ID_NAMES, *TASK_NAMES, "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash",
    "prompt_hash", "target_hash", "epoch", "seed", "repeat", "run", "model", "metadata", "input", "output", "prompt",
    "response", "prediction", "gold", "answer", "timestamp", "subject", "line", "turn", "level", "num_fewshot",
    "bypass", "tstamp", "time_stamp", "created", "created_at", "updated_at", "date", "datetime", "random_seed",
})  # fmt: skip
"""Fields of a record that are numbers and no scores."""

WITHIN = ("doc", "metadata")


def is_log(path: Path) -> bool:
    """Whether a file's first record is a sample of the harness, or a file of its results with samples in it."""
    record = first_record(path)
    if record is None:
        return False
    if isinstance(record.get("samples"), dict) and "results" in record:
        return True
    marks = {"resps", "filtered_resps", "doc_hash", "prompt_hash", "target_hash"} & record.keys()
    return "doc_id" in record and (bool(marks) or isinstance(record.get("doc"), dict))


def open_log(path: Path, *, in_folder: bool) -> SampleFile:
    """Return a file of samples; its task is in its name, by which plain files in a folder are told apart too."""
    named = FILE.match(path.name)
    written = named["task"] if named else stem(path)
    task = undated(written) if named or in_folder else ""
    return SampleFile(path, partial(_samples, path, task), task=task, moment=moment(written))


def model_beside(path: Path) -> str | None:
    """Return the model that the results of the same run, in the same folder, name; None where there are none.

    The harness writes the samples of every model into one folder where it was given a file to write to.
    """
    for stamp in _STAMP.findall(path.name):
        for results in sorted(path.parent.glob(f"*_{stamp}.json")):
            try:
                found = load(results)
            except InputError:
                continue
            model = found.get("model_name") if isinstance(found, dict) else None
            if isinstance(model, str) and model:
                return model
    return None


_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?")


def _samples(path: Path, task: str, options: Options) -> Iterator[ScoredSample]:
    for where, record in records(path):
        if isinstance(record.get("samples"), dict) and "doc_id" not in record:
            for own, listed in record["samples"].items():
                for number_, sample in enumerate(listed, start=1):
                    yield _sample(f"{path}, task {own}, record {number_}", sample, own, options)
        else:
            yield _sample(where, record, task, options)


def _sample(where: str, record: Record, task: str, options: Options) -> ScoredSample:
    return ScoredSample(
        where=where,
        task=task or _first(record, TASK_NAMES) or "",
        item=_item(where, record, options),
        scores=_scores(where, record),
        record=record,
        within=WITHIN,
        filter=str(record.get("filter", "")),
        input=_digest(record),
    )


def _item(where: str, record: Record, options: Options) -> str:
    name = options.id_column
    item = _first(record, ID_NAMES) if name is None else lookup(record, name, *WITHIN)
    if not item:
        expected = f"no field {name!r}" if name else f"no id ({', '.join(ID_NAMES[:4])}, ...)"
        raise InputError(f"{where}: {expected}; fields: {', '.join(record)}; name it with --id")
    return item


def _first(record: Record, names: tuple[str, ...]) -> str | None:
    return next((lookup(record, name) for name in names if name in record), None)


def _digest(record: Record) -> str:
    if "doc_hash" in record:
        return str(record["doc_hash"])
    if "doc" not in record:
        return ""
    return hashlib.md5(json.dumps(record["doc"], sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def _scores(where: str, record: Record) -> dict[str, Value]:
    listed = record.get("metrics")
    named: Mapping[str, Any]
    if isinstance(listed, list) and listed and all(isinstance(name, str) for name in listed):
        named = {name: record[name] for name in listed if name in record}
    elif isinstance(listed, dict):
        named = listed
    else:
        named = record
    found = dict(_flat(named, strict=not isinstance(listed, list)))
    for name, value in found.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(
                f"{where}: {name} is {value}, expected a finite number; correct it, or leave the field out"
            )
    return found


def _flat(named: Mapping[str, Any], prefix: str = "", *, strict: bool) -> Iterator[tuple[str, Value]]:
    """Yield the scores of a record, those of objects under dotted names; what holds none is passed over.

    Numbers in text are scores where the record lists its metrics; elsewhere only truth values are.
    """
    for name, value in named.items():
        if name.lower() in NO_METRICS or ROW_NAMES.fullmatch(name):
            continue
        truth = isinstance(value, str) and value in {"True", "False"}
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.", strict=strict)
        elif isinstance(value, list):
            if value and all(isinstance(part, bool) or part in ("True", "False") for part in value):
                yield f"{prefix}{name}", [part in (True, "True") for part in value]
        elif isinstance(value, bool | int | float) or truth or not strict:
            found = number(value)
            if found is not None:
                yield f"{prefix}{name}", found
