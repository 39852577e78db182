"""Logs of Inspect: `.json`, and `.eval`, a zip with one JSON file per sample."""

from __future__ import annotations

import json
import lzma
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.files import open_bytes
from sigdask.formats.reading.json_records import Record, find_field, load_json, parse_number
from sigdask.formats.reading.options import Options
from sigdask.formats.samples.sample import SampleFile, ScoredSample, ScoreValue, digest_input, find_item, parse_date
from sigdask.io.compression import check_unpacked_size

GRADE_VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "no": 0.0}
"""Scores of Inspect's letters and words (correct, partial, incorrect, no answer)."""

NESTED_KEYS = ("metadata",)
ZIP = b"PK\x03\x04"
ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(OSError, EOFError, ValueError, RuntimeError, OverflowError),
)
"""Errors of `zipfile` for an unreadable zip: encrypted, truncated or with an unknown compression."""
HEADER = re.compile(r'^\s*\{\s*"version":\s*\d+\s*,\s*"status":|^\s*\{\s*"status":.*"eval":\s*\{', re.DOTALL)


def is_log(path: Path) -> bool:
    """Return whether a file is a log of Inspect."""
    try:
        with open_bytes(path) as stream:
            start = stream.read(4096)
        if start.startswith(ZIP):
            with zipfile.ZipFile(path) as packed:
                return any(name == "header.json" or name.startswith("_journal/") for name in packed.namelist())
    except (InputError, *ZIP_ERRORS):
        return path.suffix == ".eval" and path.is_file()
    text = start.decode("utf-8-sig", errors="replace")
    return HEADER.match(text) is not None and '"eval"' in text


def open_log(path: Path) -> SampleFile:
    """Return a log with its task, its model and whether the run was completed."""
    with open_bytes(path) as stream:
        packed = stream.read(4) == ZIP
    if packed or path.suffix == ".eval":
        with _open_zip(path) as zipped:
            names = sorted({*zipped.namelist()})
        name = next((n for n in ("header.json", "_journal/start.json") if n in names), None)
        if name is None:
            problem = "neither header.json nor _journal/start.json in this zip, expected a log of Inspect"
            raise InputError(f"{problem}", file=path)
        header: Any = next(_iter_members(path, [name]))[1]
        members = [n for n in names if n.startswith("samples/") and n.endswith(".json")]
        samples = partial(_iter_members, path, members)
    else:
        header = load_json(path)
        samples = partial(_iter_json_samples, path)
    run = header.get("eval") if isinstance(header, dict) else None
    if not isinstance(run, dict):
        raise InputError("has no key 'eval', so it is no log of Inspect", file=path)
    status = str(header.get("status", "started"))
    return SampleFile(
        path,
        partial(_iter_samples, path, samples, str(run.get("task", ""))),
        task=str(run.get("task", "")),
        variant=json.dumps(run.get("task_args") or {}, sort_keys=True),
        model=str(run.get("model", "")) or None,
        moment=parse_date(str(run.get("created", ""))) or parse_date(path.name),
        is_whole=status == "success",
        notes=[*_iter_notes(path, status, run)],
    )


def _iter_notes(path: Path, status: str, run: Record) -> Iterator[str]:
    if status != "success":
        yield f"{path}: the run has status {status!r}; its samples may be incomplete"
    config = run.get("config")
    reducers = config.get("epochs_reducer") if isinstance(config, dict) else None
    if reducers and reducers != ["mean"]:
        yield f"{path}: its epochs are reduced by {', '.join(map(str, reducers))}; here they are averaged"


def _iter_samples(path: Path, samples: Any, task: str, options: Options) -> Iterator[ScoredSample]:
    record = None
    for where, record in samples():
        yield _build_sample(where, record, task, options)
    if record is None:
        raise InputError("no samples in this log", file=path, remedy="write it with samples (log_samples)")


def _build_sample(where: str, record: Record, task: str, options: Options) -> ScoredSample:
    scores = record.get("scores")
    if not isinstance(scores, dict) or not scores:
        scores = {"score": record.get("score")}  # logs of 2024 have one score
    messages = record.get("input")
    if isinstance(messages, list):  # the texts of messages, without their ids, which differ in every run
        contents = [message.get("content") if isinstance(message, dict) else None for message in messages]
        messages = [content if isinstance(content, str) else None for content in contents]
    return ScoredSample(
        where=where,
        task=task,
        item=find_item(where, record, NESTED_KEYS, options, find_field(record, "id", *NESTED_KEYS)),
        scores=dict(_iter_scores(scores)),
        record=record,
        within=NESTED_KEYS,
        input=digest_input(messages),
    )


def _iter_scores(scores: Mapping[str, Any]) -> Iterator[tuple[str, ScoreValue]]:
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        parts: dict[str, Any] = {scorer: value}
        if isinstance(value, dict | list):
            entries = value.items() if isinstance(value, dict) else enumerate(value)
            parts = {f"{scorer}.{key}": part for key, part in entries}
        yield from ((name, number) for name, part in parts.items() if (number := _convert_value(part)) is not None)


def _convert_value(value: Any) -> ScoreValue | None:
    """Return the number that a score counts in Inspect's means ("C" is 1); other text is unchanged, NaN is None."""
    if isinstance(value, str):
        converted = GRADE_VALUES.get(value, GRADE_VALUES.get(value.lower(), parse_number(value)))
        return value if converted is None else converted
    converted = parse_number(value)
    return None if converted is None or math.isnan(converted) else converted


def _iter_json_samples(path: Path) -> Iterator[tuple[str, Record]]:
    for number_, record in enumerate(load_json(path).get("samples") or [], start=1):
        if not isinstance(record, dict):
            raise InputError(f"{path}, sample {number_}: found {str(record)[:40]}, expected an object")
        yield f"{path}, sample {number_}", record


@contextmanager
def _open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an .eval log; errors on opening and in the body are reported as damage."""
    try:
        with zipfile.ZipFile(path) as packed:
            yield packed
    except NotImplementedError:
        remedy = "convert it: inspect log convert --to json"
        raise InputError(
            f"is compressed with zstd, which this version of Python cannot read; {remedy}", file=path
        ) from None
    except ZIP_ERRORS as error:
        raise InputError(f"damaged .eval log ({error}); expected a zip as Inspect writes it", file=path) from None


def _iter_members(path: Path, names: list[str]) -> Iterator[tuple[str, Record]]:
    with _open_zip(path) as packed:
        check_unpacked_size(path, sum(packed.getinfo(name).file_size for name in names), path.stat().st_size)
        for name in names:
            try:
                record = json.loads(packed.read(name))
            except RecursionError:
                raise InputError("JSON nested too deeply", file=path, place=name) from None
            if not isinstance(record, dict):
                raise InputError(
                    file=path,
                    place=name,
                    found=f"{str(record)[:40]}",
                    expected="a JSON object",
                    remedy="write the log again",
                )
            yield f"{path}, {name}", record
