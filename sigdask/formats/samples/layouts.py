"""Layouts of logs of samples: how each tool's files are recognised, and where their records say what.

`LAYOUTS` declares each tool once. A file has a layout if its first JSON value has all of the layout's keys. The readers
below only bring the records of a tool into flat form. `sample.build_sample` reads all of them alike.
"""

from __future__ import annotations

import json
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.json_records import Record, is_json, iter_records, load_json, read_keys
from sigdask.io.compression import check_unpacked_size
from sigdask.text import format_count

Places = Iterator[tuple[str, Record]]
"""Records with the places where they stand, for errors."""


@dataclass(slots=True)
class Run:
    """The records of a log, with what it says about the run."""

    records: Callable[[], Places]
    task: str = ""
    model: str | None = None
    date: str = ""
    variant: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LogLayout:
    """How a tool writes its logs. Scores by metric are in the object `scores` or `metrics` of a record.

    Attributes
    ----------
    tool : str
        Name of the tool.
    keys : tuple of str
        Dotted keys of the first record or document: `a|b` is one of two, `*` any text.
    read : callable
        Function of a path that returns the run in the file.
    item : tuple of str
        Fields of the item's id, of which the first present is taken.
    metrics : tuple of str
        Fields that are scores themselves.
    is_flat : bool
        Whether other fields are scores too: those that the list `metrics` names, or those named after metrics.
    sample : str
        Field that numbers the samples of an item. `*` is any records of one id, however many.
    left_out : mapping of str to tuple
        Fields of records that are left out, with the values that say so; () stands for any value.
    input : tuple of str
        Fields that hold the input or its hash, of which the first present is taken.
    within : tuple of str
        Objects in records whose fields belong to the sample as well.
    """

    tool: str
    keys: tuple[str, ...]
    read: Callable[[Path], Run]
    item: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    is_flat: bool = False
    sample: str = ""
    left_out: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    input: tuple[str, ...] = ()
    within: tuple[str, ...] = ()

    def fits(self, paths: set[str]) -> bool:
        """Return whether the keys of a file are those of this layout."""
        return all(any(fnmatchcase(path, key) for key in keys.split("|") for path in paths) for keys in self.keys)


def find_layout(path: Path) -> LogLayout | None:
    """Return the layout of a log, or None for other files."""
    if path.suffix == ARCHIVE and path.is_file():
        return INSPECT
    paths = {*read_keys(path)} if is_json(path) else set()
    return next((layout for layout in LAYOUTS if layout.fits(paths)), None)


def _check_object(value: Any, where: str) -> Record:
    if not isinstance(value, dict):
        raise InputError(f"{where}: found {str(value)[:40]!r}, expected an object")
    return value


def _load_object(path: Path) -> Record:
    return _check_object(load_json(path), str(path))


def _get_records(path: Path, values: Any, place: str) -> Places:
    """Yield the objects of a list."""
    for number, value in enumerate(values if isinstance(values, list) else [values], start=1):
        where = f"{path}, {place} {number}"
        yield where, _check_object(value, where)


def _read_records(path: Path) -> Run:
    """Read a file of records that already are in flat form."""
    return Run(partial(iter_records, path))


ARCHIVE = ".eval"
ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(OSError, EOFError, ValueError, RuntimeError, OverflowError),
)
"""Errors of `zipfile` for an unreadable zip: encrypted, truncated or with an unknown compression."""


@contextmanager
def _open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip; errors of unpacking are raised as errors of the input."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except NotImplementedError:
        remedy = "convert it: inspect log convert --to json"
        raise InputError("is compressed with zstd, which this Python cannot read", file=path, remedy=remedy) from None
    except ZIP_ERRORS as error:
        raise InputError(f"damaged .eval log ({error}); expected a zip as Inspect writes it", file=path) from None


def _iter_members(path: Path, names: list[str]) -> Places:
    with _open_archive(path) as archive:
        check_unpacked_size(path, sum(archive.getinfo(name).file_size for name in names), path.stat().st_size)
        for name in names:
            yield f"{path}, {name}", _check_object(json.loads(archive.read(name)), f"{path}, {name}")


def _read_inspect(path: Path) -> Run:
    """Read an Inspect log, JSON or a zip with one JSON file for each sample."""
    records: Callable[[], Places]
    if path.suffix == ARCHIVE:
        with _open_archive(path) as archive:
            names = sorted({*archive.namelist()})
        name = next((name for name in ("header.json", "_journal/start.json") if name in names), "header.json")
        header: Any = next(_iter_members(path, [name]))[1] if name in names else {}
        members = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
        records = partial(_iter_members, path, members)
    else:
        header = _load_object(path)
        records = partial(_get_records, path, header.get("samples") or [], "sample")
    run = header.get("eval")
    if not isinstance(run, dict):
        raise InputError("has no key 'eval', so it is no log of Inspect", file=path)
    status, notes = str(header.get("status", "started")), []
    if status != "success":
        notes.append(f"{path}: the run has status {status!r}; its samples may be incomplete")
    reducers = run["config"].get("epochs_reducer") if isinstance(run.get("config"), dict) else None
    reducers = reducers if isinstance(reducers, list) else [reducers]
    if any(reducer and reducer != "mean" for reducer in reducers):
        notes.append(f"{path}: its epochs are reduced by {', '.join(map(str, reducers))}; here they are averaged")
    return Run(
        lambda: ((where, _flatten_inspect(record)) for where, record in records()),
        task=str(run.get("task", "")),
        model=str(run.get("model", "")) or None,
        date=str(run.get("created", "")),
        variant=json.dumps(run.get("task_args") or {}, sort_keys=True),
        notes=notes,
    )


GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "no": 0.0}
"""Scores of Inspect's letters and words (correct, partial, incorrect, no answer)."""


def _flatten_inspect(record: Record) -> Record:
    """Return a sample with the value of each scorer, and with the texts of its messages as input."""
    scores = record.get("scores")
    scores = scores if isinstance(scores, dict) else {}
    values = {name: _grade(score.get("value") if isinstance(score, dict) else score) for name, score in scores.items()}
    messages = record.get("input")
    if isinstance(messages, list):  # ids of messages differ in every run
        messages = [message.get("content") if isinstance(message, dict) else None for message in messages]
        messages = [content if isinstance(content, str) else None for content in messages]
    return {**record, "scores": values, "asked": messages}


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

    def iterate() -> Places:
        for where, record in _get_records(path, load_json(path), "instance"):
            stats = [stat for _, stat in _get_records(path, record.get("stats") or [], "statistic")]
            means = {str(_check_object(stat.get("name"), where).get("name")): stat.get("mean") for stat in stats}
            yield where, {**means, **record}

    return Run(iterate, task=HELM_MODEL.sub("", folder) if model else "", model=model[1] if model else None)


def _read_swe_instances(path: Path) -> Run:
    """Read report.json of SWE-bench: an object for each instance."""

    def iterate() -> Places:
        for instance, report in _load_object(path).items():
            where = f"{path}, instance {instance!r}"
            yield where, {"instance_id": instance, **_check_object(report, where)}

    return Run(iterate)


def _read_swe_run(path: Path) -> Run:
    """Read the report of a run of SWE-bench.

    As in its leaderboard, errors, empty patches and instances that were not submitted are not resolved.
    """
    report = _load_object(path)
    names = ("submitted_ids", "resolved_ids", "incomplete_ids", "error_ids")
    submitted, resolved, incomplete, errors = (dict.fromkeys(_get_ids(path, report, name)) for name in names)
    if strange := [name for name in resolved if name not in submitted]:
        raise InputError(f"resolved_ids has {strange[0]!r}, which is not among submitted_ids", file=path)
    rows = [{"instance_id": name, "resolved": name in resolved} for name in submitted | incomplete]
    lost = {"with an error": len(errors), "without a submission": len(incomplete)}
    found = " and ".join(f"{format_count(n, 'instance')} {kind}" for kind, n in lost.items() if n)
    notes = [f"{path}: {found} count as not resolved"] * bool(found)
    return Run(partial(_get_records, path, rows, "instance"), notes=notes)


def _get_ids(path: Path, report: Record, name: str) -> list[str]:
    """Return a list of ids; those of errors and of instances that were not submitted may be absent or null."""
    ids = report.get(name)
    if ids is None and name in {"error_ids", "incomplete_ids"}:
        return []
    if not isinstance(ids, list) or not all(isinstance(part, str) for part in ids):
        raise InputError(file=path, place=name, found=str(ids)[:40], expected="a list of ids, which are texts")
    return ids


ERRORS: Mapping[str, tuple[Any, ...]] = {"error": (), "skipped": (True,), "cancelled": (True,)}

INSPECT = LogLayout(
    "Inspect", ("status", "eval"), _read_inspect, ("id",),
    sample="epoch", left_out={"error": ()}, input=("asked",), within=("metadata",),
)  # fmt: skip

LAYOUTS = (
    LogLayout(
        "lm-evaluation-harness", ("doc_id", "resps|filtered_resps|doc_hash|prompt_hash|target_hash"), _read_records,
        ("doc_id",), is_flat=True, left_out=ERRORS, input=("doc_hash", "doc"), within=("doc", "metadata"),
    ),
    INSPECT,
    LogLayout(
        "HELM", ("instance_id", "stats.name"), _read_helm, ("instance_id",), metrics=HELM_SCORES,
        sample="train_trial_index", left_out={"perturbation": ()},
    ),
    LogLayout(
        "SWE-bench", ("*.patch_exists", "*.resolved"), _read_swe_instances, ("instance_id",), metrics=("resolved",),
    ),
    LogLayout("SWE-bench", ("submitted_ids", "resolved_ids"), _read_swe_run, ("instance_id",), metrics=("resolved",)),
    LogLayout("HumanEval", ("task_id", "passed"), _read_records, ("task_id",), metrics=("passed",), sample="*"),
)  # fmt: skip
"""Tools whose logs are recognised."""

PLAIN = LogLayout(
    "records", (), _read_records,
    ("doc_id", "sample_id", "item_id", "example_id", "question_id", "task_id", "id", "item"),
    is_flat=True, sample="epoch", left_out={**ERRORS, "status": ("error", "skipped", "cancelled")},
    input=("doc_hash", "doc"), within=("doc", "metadata"),
)  # fmt: skip
"""Records that only `--format samples` reads."""
