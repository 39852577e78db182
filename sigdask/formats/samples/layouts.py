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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading import files
from sigdask.formats.reading.json_records import Record, is_json, iter_records, load_json, read_keys
from sigdask.io.compression import check_unpacked_size

Places = Iterator[tuple[str, Record]]
"""Records with the places where they stand, for errors."""


@dataclass(slots=True)
class Run:
    """The records of one model in a file, with what the file says about the run."""

    records: Callable[[], Places]
    task: str = ""
    model: str | None = None
    date: str = ""
    variant: str = ""
    is_whole: bool = True
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LogLayout:
    """How a tool writes its logs.

    Attributes
    ----------
    tool : str
        Name of the tool.
    keys, one_of : tuple of str
        Dotted keys of the first record or document: it has all of `keys`, and one of `one_of` if there are any. `*`
        stands for any key.
    read : callable
        Function of a path that returns the runs in the file.
    item : tuple of str
        Fields of the item's id, of which the first present is taken.
    scores : mapping of str to str
        Fields of scores by metric. The metric `*` stands for every number in the field.
    listed : str
        Field with the list of the record's metrics. Records without it have scores in fields named after metrics.
    sample : str
        Field that numbers the samples of an item. `*` is any records of one id, however many.
    left_out : mapping of str to tuple
        Fields of records that are left out, with the values that say so; () stands for any value.
    input : tuple of str
        Fields that hold the input or its hash, of which the first present is taken.
    within : tuple of str
        Objects in records whose fields belong to the sample as well.
    fields : tuple of str
        Other fields of a record that are no scores.
    metrics : tuple of str
        Fields that are scores, in records without a list of metrics, besides those named after known metrics.
    """

    tool: str
    keys: tuple[str, ...]
    read: Callable[[Path], list[Run]]
    item: tuple[str, ...]
    scores: Mapping[str, str] = field(default_factory=dict)
    one_of: tuple[str, ...] = ()
    listed: str = ""
    sample: str = ""
    left_out: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    input: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()

    def fits(self, paths: set[str]) -> bool:
        """Return whether the keys of a file are those of this layout."""
        has_one = not self.one_of or any(_has_key(paths, key) for key in self.one_of)
        return has_one and all(_has_key(paths, key) for key in self.keys)


def _has_key(paths: set[str], key: str) -> bool:
    if "*" not in key:
        return key in paths
    pattern = re.compile(re.escape(key).replace(r"\*", ".+"))
    return any(pattern.fullmatch(path) for path in paths)


def find_layout(path: Path) -> LogLayout | None:
    """Return the layout of a log, or None for other files."""
    if _is_inspect_zip(path):
        return INSPECT
    paths = {*read_keys(path)} if is_json(path) else set()
    return next((layout for layout in LAYOUTS if layout.fits(paths)), None)


def _get_records(path: Path, value: Any, place: str) -> Places:
    """Yield the objects of a list; raise if it holds anything else."""
    for number, record in enumerate(value if isinstance(value, list) else [value], start=1):
        if not isinstance(record, dict):
            raise InputError(f"{path}, {place} {number}: found {str(record)[:40]!r}, expected an object")
        yield f"{path}, {place} {number}", record


def _read_records(path: Path) -> list[Run]:
    """Read a file of records that already are in flat form."""
    return [Run(partial(iter_records, path))]


def _read_results(path: Path) -> list[Run]:
    """Read the harness's results with samples inside, by task."""

    def iterate() -> Places:
        for task, samples in load_json(path)["samples"].items():
            for where, record in _get_records(path, samples, f"task {task}, record"):
                yield where, {"task": task, **record}

    return [Run(iterate)]


ZIP = b"PK\x03\x04"
ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(OSError, EOFError, ValueError, RuntimeError, OverflowError),
)
"""Errors of `zipfile` for an unreadable zip: encrypted, truncated or with an unknown compression."""


def _is_inspect_zip(path: Path) -> bool:
    try:
        if not files.read_head(path).start.startswith(ZIP):
            return path.suffix == ".eval" and path.is_file()
        with zipfile.ZipFile(path) as packed:
            return any(name == "header.json" or name.startswith("_journal/") for name in packed.namelist())
    except (InputError, *ZIP_ERRORS):
        return path.suffix == ".eval" and path.is_file()


def _read_inspect(path: Path) -> list[Run]:
    """Read an Inspect log, JSON or a zip with one JSON file for each sample."""
    records: Callable[[], Places]
    if _is_inspect_zip(path):
        with zipfile.ZipFile(path) if zipfile.is_zipfile(path) else _open_damaged(path) as packed:
            names = sorted({*packed.namelist()})
        name = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
        if name is None:
            raise InputError("neither header.json nor _journal/start.json, expected a log of Inspect", file=path)
        header: Any = next(_iter_members(path, [name]))[1]
        members = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
        records = partial(_iter_members, path, members)
    else:
        header = load_json(path)
        records = lambda: _get_records(path, load_json(path).get("samples") or [], "sample")  # noqa: E731
    run = header.get("eval") if isinstance(header, dict) else None
    if not isinstance(run, dict):
        raise InputError("has no key 'eval', so it is no log of Inspect", file=path)
    status, notes = str(header.get("status", "started")), []
    if status != "success":
        notes.append(f"{path}: the run has status {status!r}; its samples may be incomplete")
    reducers = run["config"].get("epochs_reducer") if isinstance(run.get("config"), dict) else None
    if reducers and reducers != ["mean"]:
        notes.append(f"{path}: its epochs are reduced by {', '.join(map(str, reducers))}; here they are averaged")
    return [
        Run(
            lambda: ((where, _flatten_inspect(record)) for where, record in records()),
            task=str(run.get("task", "")),
            model=str(run.get("model", "")) or None,
            date=str(run.get("created", "")),
            variant=json.dumps(run.get("task_args") or {}, sort_keys=True),
            is_whole=status == "success",
            notes=notes,
        )
    ]


def _open_damaged(path: Path) -> zipfile.ZipFile:
    raise InputError("damaged .eval log; expected a zip as Inspect writes it", file=path)


def _iter_members(path: Path, names: list[str]) -> Places:
    try:
        with zipfile.ZipFile(path) as packed:
            check_unpacked_size(path, sum(packed.getinfo(name).file_size for name in names), path.stat().st_size)
            for name in names:
                record = json.loads(packed.read(name))
                if not isinstance(record, dict):
                    raise InputError(
                        file=path, place=name, found=str(record)[:40], expected="a JSON object",
                        remedy="write the log again",
                    )  # fmt: skip
                yield f"{path}, {name}", record
    except RecursionError:
        raise InputError("JSON nested too deeply", file=path) from None
    except NotImplementedError:
        remedy = "convert it: inspect log convert --to json"
        raise InputError("is compressed with zstd, which this Python cannot read", file=path, remedy=remedy) from None
    except ZIP_ERRORS as error:
        raise InputError(f"damaged .eval log ({error}); expected a zip as Inspect writes it", file=path) from None


GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "no": 0.0}
"""Scores of Inspect's letters and words (correct, partial, incorrect, no answer)."""


def _flatten_inspect(record: Record) -> Record:
    """Return a sample with the value of each scorer, and with the texts of its messages as input."""
    scores = record.get("scores")
    if not isinstance(scores, dict) or not scores:
        scores = {"score": record.get("score")}  # logs of 2024 have one score
    values: dict[str, Any] = {}
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        parts = {"": value}
        if isinstance(value, dict | list):
            entries = value.items() if isinstance(value, dict) else enumerate(value)
            parts = {f".{key}": part for key, part in entries}
        for key, part in parts.items():
            values[scorer + key] = GRADES.get(part, GRADES.get(part.lower(), part)) if isinstance(part, str) else part
    messages = record.get("input")
    if isinstance(messages, list):  # ids of messages differ in every run
        messages = [message.get("content") if isinstance(message, dict) else None for message in messages]
        messages = [content if isinstance(content, str) else None for content in messages]
    return {**record, "scores": values, "asked": messages}


HELM_MODEL = re.compile(r"[:,]?model=([^,]+)")
HELM_SCORES = ("exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match", "exact_match@5",
               "quasi_exact_match@5", "f1_score", "rouge_1", "rouge_2", "rouge_l", "bleu_1", "bleu_4", "RR@10",
               "NDCG@10", "NDCG@20", "math_equiv", "math_equiv_chain_of_thought", "code_eval_acc", "pass",
               "test_avg", "strict_acc", "ifeval_strict_accuracy", "chain_of_thought_correctness",
               "final_num_exact_match", "safety_score", "wildbench_score", "wildbench_score_rescaled",
               "omni_math_accuracy")  # fmt: skip
"""Statistics of HELM that are metrics. The others count tokens, trials and seconds."""


def _read_helm(path: Path) -> list[Run]:
    """Read per_instance_stats.json; the run's folder or its run_spec.json names model and scenario."""
    spec_path = path.with_name("run_spec.json")
    spec = load_json(spec_path) if spec_path.is_file() else {}
    name = str(spec.get("name") or path.resolve().parent.name) if isinstance(spec, dict) else ""
    model = HELM_MODEL.search(name)

    def iterate() -> Places:
        for number, (where, record) in enumerate(_get_records(path, load_json(path), "instance"), start=1):
            stats: dict[str, Any] = {}
            split = None
            for _, stat in _get_records(path, record.get("stats", []), f"instance {number}, statistic"):
                key = stat.get("name")
                if not isinstance(key, dict) or "name" not in key:
                    remedy = "expected statistics as in per_instance_stats.json of HELM"
                    raise InputError(f"{where}: a statistic has no `name`; {remedy}")
                split = split or key.get("split")
                stats |= {str(key["name"]): stat.get("mean")} if key.get("perturbation") is None else {}
            yield where, {**record, "stats": stats, "split": split}

    return [Run(iterate, task=HELM_MODEL.sub("", name) if model else "", model=model[1] if model else None)]


def _read_promptfoo(path: Path) -> list[Run]:
    """Read promptfoo's results: a system is a provider, with its prompt where there are several.

    Tests with the same variables and assertions are repetitions (`--repeat`) of one item, the first of them.
    """
    results = load_json(path)["results"]
    date, results = str(results.get("timestamp", "")), results.get("results")
    rows = [*_get_records(path, results, "result")]
    prompts: dict[str, dict[str, int]] = {}
    runs: dict[tuple[str, str], list[tuple[str, Record]]] = {}
    items: dict[str, str] = {}
    for where, record in rows:
        test = record.get("testCase") or {}
        asked = record.get("vars", test.get("vars"))
        digest = json.dumps([asked, test.get("assert"), test.get("description")], sort_keys=True)
        item = items.setdefault(digest, str(record.get("testIdx", len(items))))
        provider, prompt = _name_part(record.get("provider"), "id"), _name_part(record.get("prompt"), "raw")
        numbers = prompts.setdefault(provider, {})
        numbers.setdefault(prompt, len(numbers) + 1)
        runs.setdefault((provider, prompt), []).append((where, {**record, "item": item, "asked": asked}))
    return [
        Run(
            partial(iter, records),
            model=provider if len(prompts[provider]) == 1 else f"{provider} prompt {prompts[provider][prompt]}",
            date=date,
        )
        for (provider, prompt), records in runs.items()
    ]


def _name_part(value: Any, key: str) -> str:
    return str(value.get("label") or value.get(key) or "") if isinstance(value, dict) else str(value or "provider")


def _read_openai_evals(path: Path) -> list[Run]:
    """Read a record of OpenAI evals: events of samples, after or before a line `spec`."""
    run = Run(lambda: _iter_openai_events(path))
    for _, record in iter_records(path):
        if isinstance(spec := record.get("spec"), dict):
            models = spec.get("completion_fns") or spec.get("model_name") or spec.get("model_names") or ()
            run.model = "+".join(map(str, models)) if isinstance(models, list) else str(models or "") or None
            run.task, run.date = str(spec.get("eval_name", "")), str(spec.get("created_at", ""))
            break
    return [run]


def _iter_openai_events(path: Path) -> Places:
    for where, record in iter_records(path):
        data = record.get("data")
        if record.get("type") == "match" and isinstance(data, dict):
            yield where, {**record, "scores": {"accuracy": data.get("correct")}}
        elif record.get("type") == "metrics" and isinstance(data, dict):
            yield where, {**record, "scores": {k: v for k, v in data.items() if isinstance(v, bool | int | float)}}
        elif record.get("type") == "error":
            yield where, record


PASSES = ("pass", "success")


def _read_evalplus(path: Path) -> list[Run]:
    """Read EvalPlus's results: samples of each task; `plus` is a pass of the base tests and of the further ones."""

    def iterate() -> Places:
        for task, samples in load_json(path)["eval"].items():
            for where, sample in _get_records(path, samples, f"task {task}, sample"):
                is_base = sample.get("base_status") in PASSES
                plus = sample.get("plus_status")
                scores = {"base": is_base} | ({} if plus is None else {"plus": is_base and plus in PASSES})
                yield where, {**sample, "task_id": task, "scores": scores}

    return [Run(iterate)]


def _read_swe_instances(path: Path) -> list[Run]:
    """Read report.json of SWE-bench: an object for each instance."""

    def iterate() -> Places:
        for instance, report in load_json(path).items():
            if not isinstance(report, dict):
                raise InputError(f"{path}, instance {instance!r}: found {str(report)[:40]}, expected an object")
            yield f"{path}, instance {instance!r}", {"instance_id": instance, **report}

    return [Run(iterate)]


def _read_swe_run(path: Path) -> list[Run]:
    """Read the report of a run of SWE-bench: lists of ids by outcome."""

    def iterate() -> Places:
        report = load_json(path)
        resolved, errors = ({*(report.get(key) or [])} for key in ("resolved_ids", "error_ids"))
        for instance in report["submitted_ids"]:
            error = "in error_ids" if instance in errors else None
            yield f"{path}, instance {instance!r}", {
                "instance_id": instance, "resolved": instance in resolved, "error": error
            }  # fmt: skip

    return [Run(iterate)]


HARNESS_FIELDS = ("doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash",
                  "prompt_hash", "target_hash")  # fmt: skip
HARNESS_METRICS = ("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match", "em", "f1", "mcc", "brier_score",
                   "likelihood_diff", "pct_stereotype", "bits_per_byte", "byte_perplexity", "word_perplexity",
                   "perplexity", "prompt_level_strict_acc", "prompt_level_loose_acc", "inst_level_strict_acc",
                   "inst_level_loose_acc", "bleu_acc", "rouge1_acc", "rouge2_acc", "rougeL_acc",
                   "pass_at_1")  # fmt: skip
"""Metrics of the harness, whose records did not list their metrics in its first versions."""

HARNESS = ("resps", "filtered_resps", "doc_hash", "prompt_hash", "target_hash")
HARNESS_ERRORS: Mapping[str, tuple[Any, ...]] = {"error": (), "skipped": (True,), "cancelled": (True,)}

INSPECT = LogLayout(
    "Inspect", ("status", "eval"), _read_inspect, ("id",), {"*": "scores"},
    sample="epoch", left_out={"error": ()}, input=("asked",), within=("metadata",),
)  # fmt: skip

LAYOUTS = (
    LogLayout(
        "lm-evaluation-harness", ("doc_id",), _read_records, ("doc_id",), one_of=HARNESS, listed="metrics",
        left_out=HARNESS_ERRORS, input=("doc_hash", "doc"), within=("doc", "metadata"), fields=HARNESS_FIELDS,
        metrics=HARNESS_METRICS,
    ),
    LogLayout(
        "lm-evaluation-harness (results with samples)", ("results", "samples.*.doc_id"), _read_results, ("doc_id",),
        listed="metrics", left_out=HARNESS_ERRORS, input=("doc_hash", "doc"), within=("doc", "metadata"),
        fields=HARNESS_FIELDS, metrics=HARNESS_METRICS,
    ),
    INSPECT,
    LogLayout(
        "HELM", ("instance_id", "stats.name"), _read_helm, ("instance_id",),
        {name: f"stats.{name}" for name in HELM_SCORES}, sample="train_trial_index", left_out={"perturbation": ()},
    ),
    LogLayout(
        "promptfoo", ("results.version", "results.timestamp"), _read_promptfoo, ("item",),
        {"pass": "success", "score": "score", "*": "namedScores"}, left_out={"failureReason": (2,)},
        input=("asked",), within=("vars", "metadata"),
    ),
    LogLayout(
        "OpenAI evals", (), _read_openai_evals, ("sample_id",), {"*": "scores"},
        one_of=("spec.eval_name", "spec.completion_fns", "spec.base_eval", "event_id"), left_out={"type": ("error",)},
        within=("data",),
    ),
    LogLayout("EvalPlus", ("eval.*.base_status",), _read_evalplus, ("task_id",), {"*": "scores"}, sample="*"),
    LogLayout(
        "SWE-bench", ("*.patch_exists", "*.resolved"), _read_swe_instances, ("instance_id",),
        {"resolved": "resolved"},
    ),
    LogLayout(
        "SWE-bench (report of a run)", ("submitted_ids", "resolved_ids"), _read_swe_run, ("instance_id",),
        {"resolved": "resolved"}, left_out={"error": ()},
    ),
    LogLayout("HumanEval", ("task_id", "passed"), _read_records, ("task_id",), {"passed": "passed"}, sample="*"),
)  # fmt: skip
"""Tools whose logs are recognised."""

PLAIN = LogLayout(
    "records", (), _read_records,
    ("doc_id", "sample_id", "item_id", "example_id", "question_id", "task_id", "id", "item"),
    {"*": "scores"}, listed="metrics", sample="epoch",
    left_out={**HARNESS_ERRORS, "status": ("error", "skipped", "cancelled")},
    input=("doc_hash", "doc"), within=("doc", "metadata"), fields=HARNESS_FIELDS,
)  # fmt: skip
"""Records that only `--format samples` reads: scores are the numbers in `scores` or `metrics`, and fields named after
metrics."""
