"""Layouts of logs of samples: how each tool's files are recognised, and where their records say what.

`LAYOUTS` declares each tool once. A file has a layout if its first JSON value has all of the layout's keys.
`sample.SampleFile` reads the records of all tools alike.
"""

from __future__ import annotations

import json
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading import json_records
from sigdask.formats.reading.json_records import Record, iter_records
from sigdask.io import check_unpacked_size
from sigdask.text import format_count

Places = Iterator[tuple[str, Any]]
"""Records with the places where they stand, for errors."""


@dataclass(frozen=True, slots=True)
class Run:
    """The records of a log, with what it says about the run."""

    records: Callable[[], Places]
    task: str = ""
    model: str = ""
    date: str = ""
    variant: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogLayout:
    """How a tool writes its logs.

    Attributes
    ----------
    tool : str
        Name of the tool.
    keys : tuple of str
        Dotted keys of the first record or document: `a|b` is one of two, `*` any text.
    item : tuple of str
        Fields of the item's id, of which the first present is taken.
    read : callable
        Function of a path that returns the run in the file.
    flatten : callable
        Function of a record that returns its fields in flat form.
    scores : tuple of str
        Fields that are scores, or objects of scores by metric.
    is_flat : bool
        Whether other fields are scores too: those that the list `metrics` names, or those named after metrics.
    may_repeat : bool
        Whether items may have different numbers of samples.
    input : tuple of str
        Fields that hold the input or its hash, of which the first present is taken.
    within : tuple of str
        Objects in records whose fields belong to the sample as well.
    """

    tool: str
    keys: tuple[str, ...]
    item: tuple[str, ...]
    read: Callable[[Path], Run]
    flatten: Callable[[Any], Record] = dict
    scores: tuple[str, ...] = ("scores", "metrics")
    is_flat: bool = False
    may_repeat: bool = False
    input: tuple[str, ...] = ()
    within: tuple[str, ...] = ()

    def fits(self, paths: set[str]) -> bool:
        """Return whether the keys of a file are those of this layout."""
        return all(any(fnmatchcase(path, key) for key in keys.split("|") for path in paths) for keys in self.keys)


def find_layout(path: Path) -> LogLayout | None:
    """Return the layout of a log, or None for other files."""
    if path.suffix == ARCHIVE and path.is_file():
        return INSPECT
    paths = {*json_records.read_keys(path)} if json_records.is_json(path) else set()
    return next((layout for layout in LAYOUTS if layout.fits(paths)), None)


def _read_records(path: Path) -> Run:
    """Read a file of records."""
    return Run(partial(iter_records, path))


ARCHIVE = ".eval"
ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(OSError, EOFError, ValueError, RuntimeError, OverflowError),
)
"""Errors of `zipfile` for an unreadable zip: encrypted, truncated or with an unknown compression."""


def _iter_members(path: Path, pattern: str) -> Places:
    """Yield the parsed members of a zip whose names fit a pattern, in the order of their names."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted({name for name in archive.namelist() if re.fullmatch(pattern, name)})
            check_unpacked_size(path, sum(archive.getinfo(name).file_size for name in names), path.stat().st_size)
            for name in names:
                where = f"{path}, {name}"
                yield where, json_records.parse_json(where, archive.read(name).decode())
    except NotImplementedError:
        remedy = "convert it: inspect log convert --to json"
        raise InputError("is compressed with zstd, which this Python cannot read", file=path, remedy=remedy) from None
    except ZIP_ERRORS as error:
        raise InputError(f"damaged .eval log ({error}); expected a zip as Inspect writes it", file=path) from None


def _iter_samples(path: Path, log: Record) -> Places:
    for number, sample in enumerate(log.get("samples") or (), start=1):
        yield f"{path}, sample {number}", sample


def _read_inspect(path: Path) -> Run:
    """Read an Inspect log, JSON or a zip with one JSON file for each sample."""
    records: Callable[[], Places]
    if path.suffix == ARCHIVE:
        _, header = [("", None), *_iter_members(path, r"header\.json|_journal/start\.json")][-1]
        records = partial(_iter_members, path, r"samples/.*\.json")
    else:
        header = json_records.load_json(path)
        records = partial(_iter_samples, path, header)
    run = header.get("eval") if isinstance(header, dict) else None
    if not isinstance(run, dict):
        raise InputError("has no key 'eval', so it is no log of Inspect", file=path)
    notes = []
    if (status := header.get("status", "started")) != "success":
        notes.append(f"{path}: the run has status {status!r}; its samples may be incomplete")
    config = run.get("config")
    reducer = config.get("epochs_reducer") if isinstance(config, dict) else None
    if reducer not in (None, "mean", ["mean"]):
        notes.append(f"{path}: its epochs are reduced by {reducer}; here they are averaged")
    return Run(
        records,
        task=str(run.get("task", "")),
        model=str(run.get("model", "")),
        date=str(run.get("created", "")),
        variant=json.dumps(run.get("task_args") or {}, sort_keys=True),
        notes=tuple(notes),
    )


GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "no": 0.0}
"""Scores of Inspect's letters and words (correct, partial, incorrect, no answer)."""


def _flatten_inspect(sample: Any) -> Record:
    """Return a sample with the value of each scorer, and with the texts of its messages as input."""
    scores = {name: _grade(score["value"]) for name, score in (sample.get("scores") or {}).items()}
    asked = sample.get("input")
    if isinstance(asked, list):  # ids of messages differ in every run
        contents = [message.get("content") for message in asked]
        asked = [content if isinstance(content, str) else None for content in contents]
    return {**sample, "scores": scores, "asked": asked}


def _grade(value: Any) -> Any:
    """Return a score of Inspect with numbers for its letters; lists become objects by position."""
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        return {str(key): _grade(part) for key, part in parts}
    return GRADES.get(value, GRADES.get(value.lower(), value)) if isinstance(value, str) else value


HELM_MODEL = re.compile(r"[:,]?model=([^,]+)")
HELM_SCORES = ("exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match", "f1_score",
               "rouge_2", "rouge_l", "bleu_4", "math_equiv", "chain_of_thought_correctness", "final_num_exact_match",
               "ifeval_strict_accuracy", "wildbench_score", "omni_math_accuracy")  # fmt: skip
"""Statistics of HELM that are metrics. The others count tokens, trials and seconds."""


def _read_helm(path: Path) -> Run:
    """Read per_instance_stats.json; its folder names scenario and model."""
    folder = path.resolve().parent.name
    model = HELM_MODEL.search(folder)
    return Run(partial(iter_records, path), HELM_MODEL.sub("", folder), model[1]) if model else _read_records(path)


def _flatten_helm(instance: Any) -> Record:
    """Return an instance with the mean of each statistic."""
    return {**{stat["name"]["name"]: stat.get("mean") for stat in instance["stats"]}, **instance}


def _read_swe_instances(path: Path) -> Run:
    """Read report.json of SWE-bench: an object for each instance."""
    records = partial(json_records.read_records, path, lambda _: False)
    return Run(lambda: ((f"{path}, {record.place}", record) for record in records()))


def _flatten_swe(record: json_records.JsonRecord) -> Record:
    return {"instance_id": record.key, **record.value}


def _read_swe_run(path: Path) -> Run:
    """Read the report of a run of SWE-bench.

    As in its leaderboard, errors, empty patches and instances that were not submitted are not resolved.
    """
    rows: dict[str, bool] = {}
    n_lost = 0
    for where, report in iter_records(path):
        lists: list[Any] = [report.get("submitted_ids"), report.get("resolved_ids")]
        lists += [report.get(name) or [] for name in ("incomplete_ids", "error_ids")]
        if not all(isinstance(ids, list) and all(isinstance(part, str) for part in ids) for ids in lists):
            raise InputError(f"{where}: submitted_ids, resolved_ids, incomplete_ids and error_ids are lists of texts")
        submitted, resolved, incomplete, errors = map(frozenset[str], lists)
        if not resolved <= submitted:
            raise InputError(f"{where}: resolved_ids has {min(resolved - submitted)!r}, which is not in submitted_ids")
        rows |= {name: name in resolved for name in (*lists[0], *lists[2])}
        n_lost += len(incomplete | errors)
    note = f"{path}: {format_count(n_lost, 'instance')} with an error or without a submission count as not resolved"
    records = [(f"{path}, instance {name!r}", {"instance_id": name, "resolved": rows[name]}) for name in rows]
    return Run(lambda: iter(records), notes=(note,) if n_lost else ())


INSPECT = LogLayout(
    "Inspect", ("status", "eval"), ("id",), _read_inspect, _flatten_inspect,
    scores=("scores",), may_repeat=True, input=("asked",), within=("metadata",),
)  # fmt: skip

LAYOUTS = (
    LogLayout(
        "lm-evaluation-harness", ("doc_id", "resps|filtered_resps|doc_hash|prompt_hash|target_hash"), ("doc_id",),
        _read_records, is_flat=True, input=("doc_hash", "doc"), within=("doc", "metadata"),
    ),
    INSPECT,
    LogLayout(
        "HELM", ("instance_id", "stats.name"), ("instance_id",), _read_helm, _flatten_helm,
        scores=HELM_SCORES, may_repeat=True,
    ),
    LogLayout(
        "SWE-bench", ("*.patch_exists", "*.resolved"), ("instance_id",), _read_swe_instances, _flatten_swe,
        scores=("resolved",),
    ),
    LogLayout("SWE-bench", ("submitted_ids", "resolved_ids"), ("instance_id",), _read_swe_run, scores=("resolved",)),
    LogLayout(
        "HumanEval", ("task_id", "passed"), ("task_id",), _read_records, scores=("passed",), may_repeat=True,
    ),
)  # fmt: skip
"""Tools whose logs are recognised."""

PLAIN = LogLayout(
    "records", (), ("doc_id", "sample_id", "item_id", "example_id", "question_id", "task_id", "id", "item"),
    _read_records, is_flat=True, input=("doc_hash", "doc"), within=("doc", "metadata"),
)  # fmt: skip
"""Records that only `--format samples` reads."""
