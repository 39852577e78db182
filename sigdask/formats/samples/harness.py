"""Read logs of lm-evaluation-harness (`samples_TASK_DATE.jsonl`), and plain records with numeric scores."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading import json_records
from sigdask.formats.reading.files import get_stem
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.tables import ROW_NAMES, SAMPLE_NAMES
from sigdask.formats.samples import sample
from sigdask.formats.samples.sample import SampleFile, ScoredSample, ScoreValue

LOG_NAME = re.compile(r"samples_(?P<task>.+)\.jsonl?(?:\.gz)?$")
"""Pattern of the harness's file names. A date follows the task."""

ID_NAMES = ("doc_id", "sample_id", "item_id", "example_id", "question_id", "task_id", "id", "uid", "idx", "index",
            "item")  # fmt: skip
TASK_NAMES = ("task", "task_name", "dataset")
NON_METRICS = frozenset({
    *ID_NAMES, *TASK_NAMES, *SAMPLE_NAMES, "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
    "doc_hash", "prompt_hash", "target_hash", "model", "metadata", "input", "output", "prompt", "response",
    "prediction", "gold", "answer", "timestamp", "subject", "line", "turn", "level", "num_fewshot", "bypass", "tstamp",
    "time_stamp", "created", "created_at", "updated_at", "date", "datetime", "random_seed",
})  # fmt: skip
"""Numeric fields of a record that are not scores."""

NESTED_KEYS = ("doc", "metadata")


def is_log(path: Path) -> bool:
    """Return whether the first record is a sample of lm-evaluation-harness, or results that contain samples."""
    record = json_records.read_first_record(path)
    if record is None:
        return False
    if isinstance(record.get("samples"), dict) and "results" in record:
        return True
    marks = {"resps", "filtered_resps", "doc_hash", "prompt_hash", "target_hash"} & record.keys()
    return "doc_id" in record and (bool(marks) or isinstance(record.get("doc"), dict))


def open_log(path: Path, *, in_folder: bool) -> SampleFile:
    """Return a file of samples; its name gives the task, except for plain files outside folders."""
    match = LOG_NAME.match(path.name)
    dated_task = match["task"] if match else get_stem(path)
    task = sample.remove_date(dated_task) if match or in_folder else ""
    return SampleFile(path, partial(_iter_samples, path, task), task=task, moment=sample.parse_date(dated_task))


def find_model(path: Path) -> str | None:
    """Return the model named in the results of the same run in the same folder, or None.

    The harness writes the samples of all models into one folder if its output path is a file.
    """
    stamps = _STAMP.findall(path.name)
    for results in (file for stamp in stamps for file in sorted(path.parent.glob(f"*_{stamp}.json"))):
        with suppress(InputError):
            content = json_records.load_json(results)
            model = content.get("model_name") if isinstance(content, dict) else None
            if isinstance(model, str) and model:
                return model
    return None


_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?")


def _iter_samples(path: Path, task: str, options: Options) -> Iterator[ScoredSample]:
    for where, record in json_records.iter_records(path):
        if not isinstance(record.get("samples"), dict) or "doc_id" in record:
            yield _build_sample(where, record, task, options)
            continue
        for task_name, samples in record["samples"].items():
            for number, entry in enumerate(samples, start=1):
                yield _build_sample(f"{path}, task {task_name}, record {number}", entry, task_name, options)


def _build_sample(where: str, record: json_records.Record, task: str, options: Options) -> ScoredSample:
    digest = str(record["doc_hash"]) if "doc_hash" in record else sample.digest_input(record.get("doc"))
    return ScoredSample(
        where=where,
        task=task or _find_field(record, TASK_NAMES) or "",
        item=sample.find_item(where, record, NESTED_KEYS, options, _find_field(record, ID_NAMES)),
        scores=_read_scores(where, record),
        record=record,
        within=NESTED_KEYS,
        filter=str(record.get("filter", "")),
        input=digest if "doc_hash" in record or "doc" in record else "",
    )


def _find_field(record: json_records.Record, names: tuple[str, ...]) -> str | None:
    return next((json_records.find_field(record, name) for name in names if name in record), None)


def _read_scores(where: str, record: json_records.Record) -> dict[str, ScoreValue]:
    metrics = record.get("metrics")
    fields: Mapping[str, Any] = metrics if isinstance(metrics, dict) else record
    if isinstance(metrics, list) and metrics and all(isinstance(name, str) for name in metrics):
        fields = {name: record[name] for name in metrics if name in record}
    scores = dict(_flatten_scores(fields, strict=not isinstance(metrics, list)))
    for name, value in scores.items():
        if isinstance(value, float) and not math.isfinite(value):
            problem = f"{name} is {value}, expected a finite number"
            raise InputError(f"{where}: {problem}", remedy="write a number, or remove the field")
    return scores


def _flatten_scores(fields: Mapping[str, Any], prefix: str = "", *, strict: bool) -> Iterator[tuple[str, ScoreValue]]:
    """Yield the scores of a record, with dotted names for those in objects; skip other fields.

    Numbers in texts are scores if the record lists its metrics. Otherwise, of texts, only truth values are scores.
    """
    for name, value in fields.items():
        if name.lower() in NON_METRICS or ROW_NAMES.fullmatch(name):
            continue
        truth = isinstance(value, str) and value in {"True", "False"}
        if isinstance(value, dict):
            yield from _flatten_scores(value, f"{prefix}{name}.", strict=strict)
        elif isinstance(value, list):
            if value and all(isinstance(part, bool) or part in ("True", "False") for part in value):
                yield f"{prefix}{name}", [part in (True, "True") for part in value]
        elif isinstance(value, bool | int | float) or truth or not strict:
            score = json_records.parse_number(value)
            if score is not None:
                yield f"{prefix}{name}", score
