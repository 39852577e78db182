"""Logs of Inspect: `.json`, and `.eval`, a zip of one JSON file a sample."""

from __future__ import annotations

import hashlib
import json
import lzma
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.files import open_bytes
from sigdask.formats.reading.json.records import load
from sigdask.formats.reading.json.rows import Record, lookup, number
from sigdask.formats.reading.options import Options
from sigdask.formats.samples.log_dates import moment
from sigdask.formats.samples.sample import SampleFile, ScoredSample, Value
from sigdask.io.compression import check_unpacked

VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "no": 0.0}
"""What Inspect's letters and words count (correct, partial, incorrect, no answer)."""

WITHIN = ("metadata",)
ZIP = b"PK\x03\x04"
DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(OSError, EOFError, ValueError, RuntimeError, OverflowError),
)
"""What `zipfile` raises for a zip that cannot be read: encrypted, cut off, or packed in an unknown way."""
HEADER = re.compile(r'^\s*\{\s*"version":\s*\d+\s*,\s*"status":|^\s*\{\s*"status":.*"eval":\s*\{', re.DOTALL)


def is_log(path: Path) -> bool:
    """Whether a file is a log of Inspect."""
    try:
        with open_bytes(path) as stream:
            start = stream.read(4096)
        if start.startswith(ZIP):
            with zipfile.ZipFile(path) as packed:
                return any(name == "header.json" or name.startswith("_journal/") for name in packed.namelist())
    except (InputError, *DAMAGED):
        return path.suffix == ".eval" and path.is_file()
    text = start.decode("utf-8-sig", errors="replace")
    return HEADER.match(text) is not None and '"eval"' in text


def open_log(path: Path) -> SampleFile:
    """Return a log: its task, its model, and whether it came to its end."""
    with open_bytes(path) as stream:
        packed = stream.read(4) == ZIP
    if packed or path.suffix == ".eval":
        header = _header(path)
        samples = partial(_packed, path)
    else:
        header = load(path)
        samples = partial(_listed, path)
    run = header.get("eval") if isinstance(header, dict) else None
    if not isinstance(run, dict):
        raise InputError(f"{path}: no 'eval' in this log, expected a log of Inspect")
    status = str(header.get("status", "started"))
    return SampleFile(
        path,
        partial(_samples, path, samples, str(run.get("task", ""))),
        task=str(run.get("task", "")),
        variant=json.dumps(run.get("task_args") or {}, sort_keys=True),
        model=str(run.get("model", "")) or None,
        moment=moment(str(run.get("created", ""))) or moment(path.name),
        is_whole=status == "success",
        notes=[*_notes(path, status, run)],
    )


def _notes(path: Path, status: str, run: Record) -> Iterator[str]:
    if status != "success":
        yield f"{path}: the run has status {status!r}; its samples may be incomplete"
    config = run.get("config")
    reducers = config.get("epochs_reducer") if isinstance(config, dict) else None
    if reducers and reducers != ["mean"]:
        yield f"{path}: its epochs are reduced by {', '.join(map(str, reducers))}; here they are averaged"


def _samples(path: Path, samples: Any, task: str, options: Options) -> Iterator[ScoredSample]:
    found = False
    for where, record in samples():
        found = True
        yield _sample(where, record, task, options)
    if not found:
        raise InputError(f"{path}: no samples in this log; write it with samples (log_samples)")


def _sample(where: str, record: Record, task: str, options: Options) -> ScoredSample:
    name = options.id_column or "id"
    item = lookup(record, name, *WITHIN)
    if not item:
        raise InputError(f"{where}: no {name!r} in this sample; fields: {', '.join(record)}")
    scores = record.get("scores")
    if not isinstance(scores, dict) or not scores:
        scores = {"score": record.get("score")}  # logs of 2024 have one score
    asked = json.dumps(_text_of(record.get("input")), sort_keys=True).encode()
    return ScoredSample(
        where=where,
        task=task,
        item=item,
        scores=dict(_scores(scores)),
        record=record,
        within=WITHIN,
        input=hashlib.md5(asked, usedforsecurity=False).hexdigest(),
    )


def _text_of(asked: Any) -> Any:
    """Return what was asked without the ids that every run gives its messages anew."""
    if isinstance(asked, list):
        return [m.get("content") if isinstance(m, dict) and isinstance(m.get("content"), str) else None for m in asked]
    return asked


def _scores(scores: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict | list):
            parts = value.items() if isinstance(value, dict) else enumerate(value)
            yield from ((f"{scorer}.{key}", found) for key, part in parts if (found := _value(part)) is not None)
        elif (found := _value(value)) is not None:
            yield scorer, found


def _value(value: Any) -> Value | None:
    """Return what a value counts as Inspect's own means count it; text that counts nothing as it is."""
    if isinstance(value, str):
        found = VALUES.get(value, VALUES.get(value.lower(), number(value)))
        return value if found is None else found
    found = number(value)
    return None if found is None or math.isnan(found) else found


def _listed(path: Path) -> Iterator[tuple[str, Record]]:
    for number_, record in enumerate(load(path).get("samples") or [], start=1):
        if not isinstance(record, dict):
            raise InputError(f"{path}, sample {number_}: found {str(record)[:40]}, expected an object")
        yield f"{path}, sample {number_}", record


def _header(path: Path) -> Any:
    names = _names(path)
    name = next((n for n in ("header.json", "_journal/start.json") if n in names), None)
    if name is None:
        raise InputError(f"{path}: neither header.json nor _journal/start.json in this zip, expected a log of Inspect")
    return next(_members(path, [name]))[1]


def _packed(path: Path) -> Iterator[tuple[str, Record]]:
    yield from _members(path, [name for name in _names(path) if name.startswith("samples/") and name.endswith(".json")])


def _names(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as packed:
            return sorted(set(packed.namelist()))
    except DAMAGED as error:
        raise _damaged(path, error) from None


def _members(path: Path, names: list[str]) -> Iterator[tuple[str, Record]]:
    try:
        with zipfile.ZipFile(path) as packed:
            check_unpacked(path, sum(packed.getinfo(name).file_size for name in names), path.stat().st_size)
            for name in names:
                record = json.loads(packed.read(name))
                if not isinstance(record, dict):
                    raise InputError(f"{path}, {name}: expected a JSON object")
                yield f"{path}, {name}", record
    except NotImplementedError:
        raise InputError(
            f"{path}: packed by zstd, which Python's zipfile lacks here; convert it: inspect log convert --to json"
        ) from None
    except RecursionError:
        raise InputError(f"{path}, {name}: JSON nested too deeply") from None
    except DAMAGED as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(f"{path}: damaged .eval log ({error}); expected a zip as Inspect writes it")
