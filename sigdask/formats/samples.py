"""Logs of single samples, as harnesses that evaluate language models write them.

Layouts of logs of samples: how each tool's files are recognised, and where their records say what.

`LAYOUTS` declares each tool once. A file has a layout by its keys (`signatures.LOG_KEYS`).
`sample.SampleFile` reads the records of all tools alike.

One log, and one sample of it: its item, scores and status, read as its layout says.

Logs of samples: finding them, the system that each belongs to, and the newest of several with dates in their names.

Where logs accumulate night after night, an average over the nights would hide a loss of the last one.

Logs of single samples of language models, in the layouts of the tools that write them.

A system is a file or a folder of files (one per task). A single folder has a system in each of its folders, or a system
for each model in its logs. Every metric of the samples is a column of scores, `score[NAME]`. Under several filters it
is called `NAME,FILTER`, as in lm-evaluation-harness's own tables.

- Samples are identified by task and id, or by the id alone if there is one task. Units are `--unit task`, `--unit
  subject`, or any field of the sample, its document or its metadata.
- Where the same id has other inputs in other systems, samples are paired by `doc_hash`, or refused without one.
- Several samples of one id in a log (epochs, seeds) are averaged exactly, if all items have equally many, or if the
  tool numbers them.
- Samples that a status field marks (error, cancelled, skipped) are left out, with a count. A log in which other samples
  have no score is refused, and a metric that only some systems have is never zero.
"""

from __future__ import annotations

import json
import lzma
import math
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading import json_records
from sigdask.formats.reading.files import get_stem
from sigdask.formats.reading.json_records import Record, find_field, iter_records, load_json, parse_number
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.replicates import Cells, Key, add_value, build_averaged_counts, count_repeated
from sigdask.formats.reading.signatures import ARCHIVE, LOG_NAME, find_log_kind, list_logs, list_source_files
from sigdask.formats.roles import name_role, split_columns
from sigdask.interface import spell
from sigdask.io import check_unpacked_size
from sigdask.text import format_count, format_list

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
    item: tuple[str, ...]
    read: Callable[[Path], Run]
    flatten: Callable[[Any], Record] = dict
    scores: tuple[str, ...] = ("scores", "metrics")
    is_flat: bool = False
    may_repeat: bool = False
    input: tuple[str, ...] = ()
    within: tuple[str, ...] = ()


def find_layout(path: Path) -> LogLayout | None:
    """Return the layout of a log, or None for other files."""
    kind = find_log_kind(path)
    return None if kind is None else LAYOUTS[kind]


def _read_records(path: Path) -> Run:
    """Read a file of records."""
    return Run(partial(iter_records, path))


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


LAYOUTS = {
    "lm-evaluation-harness": LogLayout(
        "lm-evaluation-harness", ("doc_id",), _read_records,
        is_flat=True, input=("doc_hash", "doc"), within=("doc", "metadata"),
    ),
    "Inspect": LogLayout(
        "Inspect", ("id",), _read_inspect, _flatten_inspect,
        scores=("scores",), may_repeat=True, input=("asked",), within=("metadata",),
    ),
    "HELM": LogLayout("HELM", ("instance_id",), _read_helm, _flatten_helm, scores=HELM_SCORES, may_repeat=True),
    "SWE-bench": LogLayout("SWE-bench", ("instance_id",), _read_swe_instances, _flatten_swe, scores=("resolved",)),
    "SWE-bench run": LogLayout("SWE-bench", ("instance_id",), _read_swe_run, scores=("resolved",)),
    "HumanEval": LogLayout("HumanEval", ("task_id",), _read_records, scores=("passed",), may_repeat=True),
}  # fmt: skip
"""How the logs of each tool of `signatures.LOG_KEYS` are read."""

PLAIN = LogLayout(
    "records", ("doc_id", "sample_id", "item_id", "example_id", "question_id", "task_id", "id", "item"),
    _read_records, is_flat=True, input=("doc_hash", "doc"), within=("doc", "metadata"),
)  # fmt: skip
"""Records that only `--format samples` reads."""

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
        ignore = spell("ignore", *unknown)
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


DATE = re.compile(
    r"(?<!\d)(?:19|20)\d\d-?[01]\d-?[0-3]\d(?:[T ]\d\d[-:]?\d\d[-:]?\d\d(?:\.\d+)?(?:[+-]\d\d[-:]?\d\d)?|(?!\d))"
)
"""Pattern of dates and times in names of files and folders."""


def split_date(name: str) -> tuple[str, str]:
    """Return a name without its last date, and the digits of that date; the name of a task may have another date.

    Examples
    --------
    >>> split_date("live_2024-06-24_2024-08-01T12-00-00"), split_date("2024-05-01"), split_date("mmlu_2024")
    (('live_2024-06-24', '20240801120000'), ('', '20240501'), ('mmlu_2024', ''))
    """
    *_, match = [None, *DATE.finditer(name)]
    if match is None:
        return name, ""
    return (name[: match.start()] + name[match.end() :]).strip("_-. "), re.sub(r"\D", "", match[0])


def are_one_system(paths: Sequence[Path], *, are_logs: bool) -> bool:
    """Return whether the matches of a pattern are logs of one system rather than replicates of it.

    This holds for files with names as from the harness, logs that name their model or have a date in their names, and
    folders of logs. With `are_logs`, they are logs whatever their contents.
    """
    first = paths[0]
    if first.is_dir():
        logs = list_logs(first)
        return bool(logs) and (are_logs or find_layout(logs[0]) is not None)
    layout = find_layout(first)
    if LOG_NAME.fullmatch(first.name) or (layout is not None and layout.tool == "Inspect"):
        return True
    return split_date(first.name)[1] != "" and (are_logs or layout is not None)


def open_logs(sources: Sequence[Source]) -> list[SampleFile]:
    """Return the logs of all sources, with the systems that they belong to."""
    logs: list[SampleFile] = []
    are_files = [not source.parts and not source.path.is_dir() for source in sources]
    for source, is_file in zip(sources, are_files, strict=True):
        path = source.path
        if not (files := list_source_files(source)):
            tools = ", ".join(dict.fromkeys(layout.tool for layout in LAYOUTS.values()))
            raise InputError("no logs in this folder", file=path, remedy=f"expected logs of {tools}, or .jsonl files")
        system = source.name or source.apart or (get_stem(path) if is_file else path.resolve().name)
        home = path.parent if is_file else path
        logs += [_open_file(file, home, system, in_folder=not is_file) for file in files]
    if all(are_files) and all(source.name is None for source in sources):
        _name_files(logs)
    elif len(sources) == 1 and sources[0].name is None:
        _name_logs(logs)
    _check_models(logs)
    return logs


def _open_file(path: Path, home: Path, system: str, *, in_folder: bool) -> SampleFile:
    """Return the log in a file; its name gives the task of files with the harness's names and of files in folders."""
    layout = find_layout(path) or PLAIN
    run = layout.read(path)
    is_named = LOG_NAME.fullmatch(path.name) is not None
    rest, date = split_date(get_stem(path))
    task = rest.removeprefix("samples_") if is_named or (in_folder and layout.is_flat) else ""
    folder = path.relative_to(home).parent
    with suppress(ValueError):
        date = re.sub(r"\D", "", datetime.fromisoformat(run.date).astimezone(UTC).isoformat())
    date = date or next((digits for _, digits in map(split_date, folder.parts) if digits), "")
    return SampleFile(path, layout, run, run.task or task, folder, date, system)


def find_model(log: SampleFile) -> str:
    """Return the model of a log, which lm-evaluation-harness names in the results of the run, in the same folder."""
    name = LOG_NAME.fullmatch(log.path.name)
    for results in sorted(log.path.parent.glob(f"*_{name['stamp']}.json")) if name and name["stamp"] else ():
        content = load_json(results)
        if isinstance(content, dict) and isinstance(model := content.get("model_name"), str):
            return model
    return log.run.model


def _name_logs(logs: Sequence[SampleFile]) -> None:
    """Set the system of each log in the only folder: the model that it names, its subfolder, or its model's results.

    Folders of nights do not name systems if there are folders within them.
    """
    nights = all(len(log.folder.parts) > 1 and not split_date(log.folder.parts[0])[0] for log in logs)
    in_folders = all(log.folder.parts for log in logs)
    for log in logs:
        parts = log.folder.parts[int(nights) :]
        if not log.run.model and in_folders:
            log.system, parts = parts[0], parts[1:]
        else:
            log.system = find_model(log) or log.system
        log.folder = Path(*parts)


def _name_files(logs: Sequence[SampleFile]) -> None:
    """Name files by their models or, for logs of the harness, by their folders, if these distinguish them."""
    models = {log.run.model for log in logs}
    homes = [log.path.resolve().parent.name for log in logs]
    by_model = len(models) > 1 and len({(log.run.model, log.task, log.date) for log in logs}) == len(logs)
    by_home = len({*homes}) == len(logs) > 1 and all(LOG_NAME.fullmatch(log.path.name) for log in logs)
    for log, home in zip(logs, homes, strict=True):
        log.system = log.run.model if by_model and "" not in models else home if by_home else log.system


def _check_models(logs: Sequence[SampleFile]) -> None:
    """Raise if logs of several models would be one system."""
    models: dict[str, dict[str, Path]] = {}
    for log in logs:
        if model := find_model(log):
            models.setdefault(log.system, {})[model] = log.path
    for system, paths in models.items():
        if len(paths) > 1:
            problem = f"logs of {len(paths)} models ({format_list(sorted(paths))}) for system {system!r}"
            remedy = "give the folder without NAME=, or one folder per model"
            raise InputError(problem, file=[*paths.values()][-1], remedy=remedy)


def select_logs(logs: Sequence[SampleFile]) -> tuple[list[SampleFile], list[str]]:
    """Return the newest log of each system and task, and notes on the logs that are left out.

    Logs without a date are parts of one run, which share no samples.
    """
    groups: dict[tuple[str, str, str], list[SampleFile]] = {}
    for log in logs:
        groups.setdefault((log.system, log.task, log.run.variant), []).append(log)
    newest = ([_find_newest(group)] if any(log.date for log in group) else group for group in groups.values())
    kept = {id(log) for group in newest for log in group}
    selected, older = ([log for log in logs if (id(log) in kept) == is_kept] for is_kept in (True, False))
    notes = []
    if older:
        paths = format_list([str(log.path) for log in sorted(older, key=lambda log: log.date, reverse=True)])
        is_one = "one is" if len(older) == 1 else "ones are"
        notes.append(
            f"of each system and task the newest log is taken; {len(older):,} older {is_one} left out: {paths}"
        )
    for system in dict.fromkeys(log.system for log in older):
        end = max(log.date for log in older if log.system == system)
        if stale := sorted(log.task for log in selected if log.system == system and "" < log.date <= end):
            rest = f"taken as they were before: {format_list(stale)}"
            notes.append(f"{system}: not run again with its other tasks, and {rest}")
    return selected, notes


def _find_newest(logs: Sequence[SampleFile]) -> SampleFile:
    """Return the newest of the logs of one system and task; raise unless they have dates and share folder and model."""
    *_, before, last = [None, *sorted(logs, key=lambda log: log.date)]
    homes = {tuple(part for part in log.folder.parts if split_date(part)[0]) for log in logs}
    if before is not None and (len(homes) > 1 or not all(log.date for log in logs) or before.date == last.date):
        owner = f"system {last.system!r}{f', task {last.task!r}' if last.task else ''}"
        raise InputError(
            f"{len(logs)} logs of {owner}, and it is not known which is the newest: {before.path}, {last.path}",
            remedy="remove all but one; or give the folders that they are in as systems, or as runs of one system "
            "(NAME=FOLDER NAME=FOLDER)",
        )
    return last


def read_samples(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read logs of samples, and return counts of their scores under each metric."""
    logs, notes = select_logs(open_logs(sources))
    samples = GatheredSamples(options, [*notes])
    samples.add_logs(logs)
    if any(len({*inputs.values()}) > 1 for inputs in samples.inputs.values()):
        by_id = spell("columns", f"item={logs[0].layout.item[0]}")
        samples.check_hashes(by_id)
        notes.append(
            f"ids number other documents in other systems, so samples are paired by {HASH} ({by_id} pairs ids)"
        )
        options = options.with_columns(item=HASH)
        samples = GatheredSamples(options, notes)
        samples.add_logs(logs)
    return replace(samples.build_counts(), files=tuple(log.path for log in logs))


@dataclass(slots=True)
class GatheredSamples:
    """The scores of the samples of all systems, by metric, system, task and id."""

    options: Options
    notes: list[str]
    columns: dict[tuple[str, str], Cells] = field(default_factory=dict)
    systems: dict[str, None] = field(default_factory=dict)
    groups: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    inputs: dict[tuple[str, str], dict[str, str | int | None]] = field(default_factory=dict)
    logs: dict[tuple[str, Key], SampleFile] = field(default_factory=dict)

    def add_logs(self, logs: Sequence[SampleFile]) -> None:
        """Add the samples of logs; raise if samples of a log have no score, and no status says why."""
        for log in logs:
            self.notes.extend(log.run.notes)
            numbers = Counter[str]()
            for sample in log.iter_samples(self.options):
                self.add(log, sample)
                numbers[sample.status or ("scored" if sample.scores else "unscored")] += 1
            scored, unscored = numbers.pop("scored", 0), numbers.pop("unscored", 0)
            for status, n in numbers.items():
                self.notes.append(f"{log.path}: {format_count(n, 'sample')} left out ({status} is set)")
            if not scored or (unscored and self.options.missing not in {"pairwise", "zero"}):
                number = f"only {scored:,}" if scored else "none"
                total = format_count(scored + unscored + numbers.total(), "sample")
                way = f" or {spell('missing', 'pairwise')}, which leaves these samples out" if scored else ""
                problem = f"{number} of {total} of system {log.system!r} have a score"
                raise InputError(problem, file=log.path, remedy=f"score the log, or leave it out{way}")

    def add(self, log: SampleFile, sample: Sample) -> None:
        """Add the scores of a sample; raise if its group or input is another one than before, or for a second log."""
        system, key = log.system, (sample.task, sample.item)
        self.systems[system] = None
        group = tuple(_find_group(log, sample, name) for name in self._list_group_names())
        if (known := self.groups.setdefault(key, group)) != group:
            raise InputError(
                f"{sample.where}: sample {sample.item!r} is in {group}, but in {known} elsewhere",
                remedy="give the sample the same group everywhere",
            )
        if sample.status:
            return
        if (first := self.logs.setdefault((system, key), log)) is not log:
            problem = f"sample {sample.item!r} of system {system!r} is in {first.path} too"
            raise InputError(f"{sample.where}: {problem}", remedy="keep only one of them")
        is_by_id = sample.input is not None and self.options.id_column is None
        if is_by_id and self.inputs.setdefault(key, {}).setdefault(system, sample.input) != sample.input:
            raise InputError(
                f"{sample.where}: sample {sample.item!r} has another input than an earlier sample with this id",
                remedy=f"give files of one task, or name a unique field with {spell('columns', 'item=COLUMN')}",
            )
        for metric, value in sample.scores.items():
            add_value(self.columns.setdefault((metric, sample.filter), {}), system, key, value)

    def _list_group_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(("task", *self.options.groups)))

    def check_hashes(self, by_id: str) -> None:
        """Raise unless samples can be paired by a hash of their document that all logs have, once for each sample."""
        hashes = [(key[0], *entry) for key, inputs in self.inputs.items() for entry in inputs.items()]
        if len({*hashes}) < len(hashes) or not all(isinstance(value, str) for _, _, value in hashes):
            raise InputError(
                f"samples of the same id have other inputs in other systems, and not every one has its own {HASH}",
                remedy=f"{by_id} pairs them nevertheless",
            )

    def build_counts(self) -> Counts:
        """Return the counts of all samples that at least one system has a score for."""
        columns = self._name_columns()
        self._check_columns(columns)
        scored: set[Key] = set().union(*(cells for column in columns.values() for cells in column.values()))
        keys = [key for key in self.groups if key in scored]
        has_one_task = len({task for task, _ in keys}) == 1
        ids: dict[Key, str] = {key: key[1] if has_one_task else ":".join(key) for key in keys}
        groups = {name: [self.groups[key][k] for key in keys] for k, name in enumerate(self._list_group_names())}
        notes = [*self.notes, *self._iter_notes(columns, len(keys))]
        return build_averaged_counts(
            columns, list(self.systems), ids, groups=groups, options=self.options, warnings=notes
        )

    def _name_columns(self) -> dict[str, Cells]:
        """Return the score columns by metric or, for a metric with several filters, by metric and filter."""
        n_filters = Counter(metric for metric, _ in self.columns)
        columns = {m if n_filters[m] == 1 else f"{m},{filter_}": own for (m, filter_), own in self.columns.items()}
        if "score" not in self.options.columns:
            return {name: own for name, own in columns.items() if name not in self.options.ignore} or columns
        names = split_columns(self.options.columns["score"], columns)
        if absent := [name for name in names if name not in columns]:
            raise InputError(f"no metric {absent[0]!r} in these samples; metrics: {', '.join(columns) or 'none'}")
        return {name: columns[name] for name in names}

    def _check_columns(self, columns: Mapping[str, Cells]) -> None:
        """Raise for a metric that only some systems have, or for unlike numbers of samples that are not numbered."""
        for name, column in columns.items():
            lacking = [system for system in self.systems if system not in column]
            if lacking and self.options.missing != "pairwise":
                raise InputError(
                    f"system {lacking[0]!r} has no score {name!r}, which system {next(iter(column))!r} has",
                    remedy=f"give its samples, {spell('missing', 'pairwise')} or {spell('ignore', name)}",
                )
            for system, cells in column.items():
                sizes: dict[Any, int] = {key: len(own) if isinstance(own, list) else 1 for key, own in cells.items()}
                fewest, most = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
                log = self.logs[system, most]
                if sizes[fewest] < sizes[most] and not log.layout.may_repeat:
                    problem = f"sample {most[1]!r} has {sizes[most]} scores {name!r}, but {fewest[1]!r} {sizes[fewest]}"
                    raise InputError(problem, file=log.path, remedy="give each item once or equally often")

    def _iter_notes(self, columns: Mapping[str, Cells], n_items: int) -> Iterator[str]:
        if n_absent := len(self.groups) - n_items:
            yield f"{n_absent:,} of {len(self.groups):,} samples have no score in any system and are left out"
        for name, column in columns.items():
            n_values, n_repeated = count_repeated(column)
            if n_values:
                samples = f"{format_count(n_repeated, 'sample')} taken more than once"
                yield ScopeNote(f"{name}: {n_values:,} values of {samples} are averaged")
            if (n_scored := len(set().union(*column.values()))) < n_items:
                yield f"{name} is on {n_scored:,} of {n_items:,} samples"


def _find_group(log: SampleFile, sample: Sample, name: str) -> str:
    """Return a field of a sample that groups samples; its task is the subject of samples that name none."""
    value = None if name == "task" else find_field(sample.record, name, *log.layout.within)
    if value is None and name in {"task", "subject"}:
        return sample.task
    if value is None:
        raise InputError(f"{sample.where}: no field {name!r}; fields: {', '.join(sample.record)}")
    return value
