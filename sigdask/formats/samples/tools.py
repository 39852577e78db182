"""Logs of single samples that tools write in JSON of their own: HELM, promptfoo, OpenAI evals and EvalPlus.

Each tool is a `Layout`: how its files begin, and the runs that a file holds. A run has a model, and records that are
read alike: an id, scores by metric, and fields to group by.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading import json_records
from sigdask.formats.reading.options import Options
from sigdask.formats.samples.sample import SampleFile, ScoredSample, ScoreValue, digest_input, find_item, parse_date


@dataclass(frozen=True, slots=True)
class Run:
    """The samples of one model in a file."""

    samples: list[ScoredSample] = field(default_factory=list)
    task: str = ""
    model: str | None = None
    date: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tool writes its logs.

    Attributes
    ----------
    tool : str
        Name of the tool.
    start : pattern
        Pattern of the beginning of its files.
    read : callable
        Function of a path that returns the runs in the file.
    within : tuple of str
        Objects in records whose fields belong to the sample as well.
    """

    tool: str
    start: re.Pattern[str]
    read: Callable[[Path], list[Run]]
    within: tuple[str, ...] = ()


def find_layout(path: Path) -> Layout | None:
    """Return the layout of a tool's log, or None for other files."""
    head = json_records.read_head(path)
    return next((layout for layout in LAYOUTS if layout.start.match(head)), None)


def open_logs(path: Path, layout: Layout) -> list[SampleFile]:
    """Return the runs of a log, one for each model."""
    runs = layout.read(path)
    if not any(run.samples for run in runs):
        raise InputError(f"no sample with a score in this log of {layout.tool}", file=path)
    return [
        SampleFile(
            path,
            partial(_iter_log_samples, run, layout),
            task=run.task,
            model=run.model,
            moment=parse_date(run.date),
            notes=[*run.notes],
        )
        for run in runs
    ]


def _iter_log_samples(run: Run, layout: Layout, options: Options) -> Iterator[ScoredSample]:
    for sample in run.samples:
        item = find_item(sample.where, sample.record, layout.within, options, sample.item)
        yield replace(sample, task=run.task, item=item, within=layout.within)


def _parse_scores(values: Mapping[str, Any]) -> dict[str, ScoreValue]:
    """Return the values that are finite numbers, or truth values."""
    numbers = ((name, json_records.parse_number(value)) for name, value in values.items())
    return {name: value for name, value in numbers if value is not None and math.isfinite(value)}


def _get_records(path: Path, value: Any, place: str) -> list[json_records.Record]:
    """Return a list of objects; raise if the value is anything else."""
    records = value if isinstance(value, list) else [value]
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise InputError(f"{path}, {place} {number}: found {str(record)[:40]!r}, expected an object")
    return records


HELM_COSTS = re.compile(r"(num|training|inference|finish_reason|max|batch)_.*|prompt_truncated|logprob|predicted_index")
"""Statistics of HELM that are not scores: numbers of tokens, references and trials, times, log-likelihoods."""

HELM_MODEL = re.compile(r"[:,]?model=([^,]+)")


def _read_helm(path: Path) -> list[Run]:
    """Read per_instance_stats.json; the run's folder or its run_spec.json names model and scenario."""
    spec_path = path.with_name("run_spec.json")
    spec = json_records.load_json(spec_path) if spec_path.is_file() else {}
    name = str(spec.get("name") or path.resolve().parent.name) if isinstance(spec, dict) else ""
    model = HELM_MODEL.search(name)
    run = Run(task=HELM_MODEL.sub("", name) if model else "", model=model[1] if model else None)
    n_perturbed = 0
    for number, record in enumerate(_get_records(path, json_records.load_json(path), "instance"), start=1):
        where = f"{path}, instance {number}"
        if record.get("perturbation") is not None:
            n_perturbed += 1
            continue
        scores: dict[str, Any] = {}
        for stat in _get_records(path, record.get("stats", []), f"instance {number}, statistic"):
            key = stat.get("name")
            if not isinstance(key, dict) or "name" not in key:
                remedy = "expected statistics as in per_instance_stats.json of HELM"
                raise InputError(f"{where}: a statistic has no `name`; {remedy}")
            if key.get("perturbation") is None and not HELM_COSTS.fullmatch(str(key["name"])):
                scores[str(key["name"])] = stat.get("mean")
        split = next((stat["name"].get("split") for stat in record.get("stats", [])), None)
        item = str(record.get("instance_id", ""))
        run.samples.append(ScoredSample(where, "", item, _parse_scores(scores), {**record, "split": split}))
    if n_perturbed:
        run.notes.append(f"{path}: {n_perturbed:,} perturbed instances are left out")
    return [run]


PROMPTFOO_ERROR = 2
"""`failureReason` of a test that gave no answer."""


def _read_promptfoo(path: Path) -> list[Run]:
    """Read promptfoo's results: a system is a provider, with its prompt where there are several.

    Tests with the same variables and assertions are repetitions (`--repeat`) of one item, the first of them.
    """
    results = json_records.load_json(path).get("results")
    date = ""
    if isinstance(results, dict):
        date, results = str(results.get("timestamp", "")), results.get("results")
    records = _get_records(path, results, "result")
    names = [(_name_provider(record.get("provider")), _name_prompt(record.get("prompt"))) for record in records]
    prompts: dict[str, dict[str, int]] = {}
    for provider, prompt in names:
        prompts.setdefault(provider, {}).setdefault(prompt, len(prompts[provider]) + 1)
    runs: dict[str, Run] = {}
    items: dict[str, str] = {}
    n_errors = 0
    for number, (record, (provider, prompt)) in enumerate(zip(records, names, strict=True), start=1):
        test = record.get("testCase")
        test = test if isinstance(test, dict) else {}
        asked = record.get("vars", test.get("vars"))
        digest = digest_input([asked, test.get("assert"), test.get("description")])
        item = items.setdefault(digest, str(record.get("testIdx", len(items))))
        system = provider if len(prompts[provider]) == 1 else f"{provider} prompt {prompts[provider][prompt]}"
        named = record.get("namedScores")
        scores = {"pass": record.get("success"), "score": record.get("score")}
        n_errors += record.get("failureReason") == PROMPTFOO_ERROR
        run = runs.setdefault(system, Run(model=system, date=date))
        scores |= named if isinstance(named, dict) else {}
        digest = "" if asked is None else digest_input(asked)
        where = f"{path}, result {number}"
        run.samples.append(ScoredSample(where, "", item, _parse_scores(scores), record, input=digest))
    if n_errors and runs:
        next(iter(runs.values())).notes.append(
            f"{path}: {n_errors:,} of {len(records):,} tests ended in an error of the provider, and count as failed"
        )
    return [*runs.values()]


def _name_provider(provider: Any) -> str:
    if isinstance(provider, dict):
        provider = provider.get("label") or provider.get("id")
    return str(provider or "provider")


def _name_prompt(prompt: Any) -> str:
    return str(prompt.get("label") or prompt.get("raw") or "") if isinstance(prompt, dict) else str(prompt)


def _read_openai_evals(path: Path) -> list[Run]:
    """Read a record of OpenAI evals: events of samples after a line `spec`; `match` is its accuracy."""
    run = Run()
    for where, record in json_records.iter_records(path):
        spec = record.get("spec")
        if isinstance(spec, dict):
            models = spec.get("completion_fns") or spec.get("model_name") or spec.get("model_names") or ()
            model = "+".join(map(str, models)) if isinstance(models, list) else str(models or "")
            date = str(spec.get("created_at", ""))
            run = Run(run.samples, str(spec.get("eval_name", "")), model or None, date, run.notes)
            continue
        data, kind = record.get("data"), record.get("type")
        if kind not in {"match", "metrics"} or not isinstance(data, dict):
            continue
        scores = {"accuracy": data.get("correct")} if kind == "match" else data
        scores = {name: value for name, value in scores.items() if isinstance(value, bool | int | float)}
        run.samples.append(ScoredSample(where, "", str(record.get("sample_id", "")), _parse_scores(scores), record))
    return [run]


def _read_evalplus(path: Path) -> list[Run]:
    """Read EvalPlus's results: samples of each task; `plus` is a pass of the base tests and of the further ones."""
    run = Run()
    for task, samples in json_records.load_json(path)["eval"].items():
        for number, sample in enumerate(_get_records(path, samples, f"task {task}, sample"), start=1):
            is_base = sample.get("base_status") in {"pass", "success"}
            scores: dict[str, Any] = {"base": is_base}
            if sample.get("plus_status") is not None:
                scores["plus"] = is_base and sample["plus_status"] in {"pass", "success"}
            where = f"{path}, task {task}, sample {number}"
            run.samples.append(ScoredSample(where, "", task, _parse_scores(scores), sample))
    return [run]


LAYOUTS = (
    Layout("HELM", re.compile(r'\s*\[\s*\{\s*"instance_id":(?=.*"stats":\s*\[)', re.DOTALL), _read_helm),
    Layout(
        "promptfoo",
        re.compile(r'\s*\{\s*("evalId":.{0,200}?)?"results":\s*\{\s*"(version|timestamp)":', re.DOTALL),
        _read_promptfoo,
        ("vars", "metadata"),
    ),
    Layout(
        "OpenAI evals",
        re.compile(r'\s*\{("spec":\s*\{.*"(eval_name|completion_fns|base_eval)"|"run_id":[^\n]*"event_id":)'),
        _read_openai_evals,
        ("data",),
    ),
    Layout(
        "EvalPlus",
        re.compile(r'\s*\{.{0,400}?"eval":\s*\{\s*"[^"]+":\s*\[\s*\{.*?"base_status":', re.DOTALL),
        _read_evalplus,
    ),
)
"""Tools whose logs can be read."""
