"""Logs of single samples of language models: of lm-evaluation-harness, of Inspect, and plain records.

A system is a file or a folder of files (one a task). A folder given alone holds a system in each of
its folders (lm-evaluation-harness), or a system for each model in its logs (Inspect). Every numeric
metric of the samples is a column of scores, `score[NAME]`; under several filters it is called
`NAME,FILTER`, as in the harness's own tables (`samples:filter=strict-match` takes one).

- Samples are known by task and id (the id alone where there is one task); `--unit task`,
  `--unit subject`, or any field of the sample, of its document or of its metadata.
- Several samples of one id (epochs, seeds, runs) are averaged exactly.
- A metric that is a list of truth values (IFEval's instructions) is the share of all their parts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats import harness, inspect_logs
from sigdask.formats.files import stem
from sigdask.formats.options import Options, Source
from sigdask.formats.repeats import Column, Key, add, averaged, repeated
from sigdask.formats.sample import Log, Sample
from sigdask.formats.summaries import summary_keys

CLOCK = re.compile(
    r"(.*[_. -])?(t_?stamp|time_?stamp|date_?time|(start|end|run|wall)?_?time|date|created|updated|seed)"
    r"([_ -](at|on|s|ms|sec|seconds|id))?",
    re.IGNORECASE,
)
"""Names of columns that say when and how a sample was taken; no metrics unless asked for."""

REPEATS = ("mean", "error")
SHOWN = 3


def read_samples(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read logs of samples; see above."""
    options.only("samples", filter=(), repeats=REPEATS)
    if gold is not None:
        raise InputError(f"--gold {gold}: format samples holds scores and takes no gold file")
    found = Gathered(options)
    for log in named_logs(sources):
        found.notes.extend(log.notes)
        for sample in log.samples(options):
            found.add(log.system or sample.system, sample)
    return found.counts()


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Say whether the first file or folder holds logs of samples."""
    if gold is not None:
        return False
    path = sources[0].path
    if not path.is_dir():
        return harness.is_log(path) or inspect_logs.is_log(path)
    first = next(iter(log_files(path)), None)
    return first is not None and (harness.is_log(first) or inspect_logs.is_log(first))


def log_files(folder: Path) -> list[Path]:
    """Return the logs in a folder and below it, by name; hidden files and summaries are none."""
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    named = [path for path in files if harness.FILE.match(path.name)]
    logs = [path for path in files if path.suffix == ".eval" or (path.suffix == ".json" and inspect_logs.is_log(path))]
    return named or logs or [path for path in files if path.name.removesuffix(".gz").endswith(".jsonl")]


def named_logs(sources: Sequence[Source]) -> list[Log]:
    """Return the logs of all sources, with the systems they belong to."""
    groups = [_logs_of(source, alone=len(sources) == 1) for source in sources]
    single = [logs[0] for source, logs in zip(sources, groups, strict=True) if _is_unnamed_file(source)]
    _name_files(single)
    _check_names(sources, groups)
    return [log for logs in groups for log in logs]


def _is_unnamed_file(source: Source) -> bool:
    return source.name is None and not source.path.is_dir()


def _logs_of(source: Source, *, alone: bool) -> list[Log]:
    path = source.path
    if not path.is_dir():
        return [_log(path, source.name, in_folder=False)]
    files = log_files(path)
    if not files:
        raise InputError(
            f"{path}: no logs in this folder; expected samples_*.jsonl of lm-evaluation-harness, .eval or .json logs "
            "of Inspect, or .jsonl files"
        )
    logs = [_log(file, source.name, in_folder=True) for file in files]
    logs = [log for log in logs if log.is_whole] or logs
    if source.name is None:
        homes = {file: file.relative_to(path).parts[0] for file in files}
        in_folders = all(len(file.relative_to(path).parts) > 1 for file in files)
        for log in logs:
            if log.model is None:
                log.system = homes[log.path] if alone and in_folders else path.resolve().name
            else:
                log.system = log.model if alone else path.resolve().name
    _check_one_model(path, logs)
    return logs


def _log(path: Path, name: str | None, *, in_folder: bool) -> Log:
    log = inspect_logs.open_log(path) if inspect_logs.is_log(path) else harness.open_log(path, in_folder=in_folder)
    log.system = name
    return log


def _check_one_model(path: Path, logs: Sequence[Log]) -> None:
    models: dict[str | None, set[str]] = {}
    for log in logs:
        if log.model is not None:
            models.setdefault(log.system, set()).add(log.model)
    for system, found in models.items():
        if len(found) > 1:
            raise InputError(
                f"{path}: logs of {len(found)} models ({', '.join(sorted(found)[:SHOWN])}) for system {system!r}; give "
                "the folder alone, without a name, to compare them, or a folder a model"
            )


def _name_files(logs: Sequence[Log]) -> None:
    """Name files that have no name: after the model in them, or their folder, or themselves, what tells them apart."""
    models = {log.model for log in logs}
    homes = {log.path.resolve().parent for log in logs}
    by_model = None not in models and len(models) > 1 and len({(log.model, log.task) for log in logs}) == len(logs)
    by_home = len({home.name for home in homes}) == len(homes) > 1 and all(
        harness.FILE.match(l.path.name) for l in logs
    )
    for log in logs:
        if by_model:
            log.system = log.model
        else:
            log.system = log.path.resolve().parent.name if by_home else stem(log.path)


def _check_names(sources: Sequence[Source], groups: Sequence[Sequence[Log]]) -> None:
    """Refuse two files that happen to have one name; files named alike, or of one folder, are one system."""
    homes: dict[str, tuple[Path, Path]] = {}
    for source, logs in zip(sources, groups, strict=True):
        if source.name is not None or logs[0].model == logs[0].system:
            continue
        system = logs[0].system or ""
        home = source.path.resolve() if source.path.is_dir() else source.path.resolve().parent
        first = homes.setdefault(system, (home, source.path))
        if first[1] != source.path and (first[0] != home or stem(source.path) == system):
            raise InputError(f"{source.path}: system {system!r} is {first[1]} already; name them NAME=FILE")


@dataclass(slots=True)
class Gathered:
    """Samples of all systems, by metric, system, task and id."""

    options: Options
    columns: dict[tuple[str, str], Column] = field(default_factory=dict)
    systems: dict[str, None] = field(default_factory=dict)
    groups: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    inputs: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    odd: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, system: str, sample: Sample) -> None:
        """Add a sample's scores."""
        self.systems[system] = None
        place = (sample.task, sample.item)
        self._group(place, sample)
        self._check_input(system, place, sample)
        for metric, value in sample.scores.items():
            column = self.columns.setdefault((metric, sample.filter), Column())
            if isinstance(value, str):
                self.odd.setdefault(metric, f"{value!r} ({sample.where})")
            elif isinstance(value, list):
                self._add_parts(column, system, place, value, sample)
            elif not math.isnan(value):
                self._add(column, system, place, value + 0.0, sample)

    def counts(self) -> Counts:
        """Return the counts of all samples that some system has a score of."""
        options = self.options
        columns = self._columns()
        if not columns:
            odd = f"; {self._odd()}" if self.odd else ""
            raise InputError(f"no metric in {len(self.groups):,} samples{odd}")
        scored: set[Key] = set().union(*(own for column in columns.values() for own in column.cells.values()))
        values = [own for column in columns.values() for own in column.cells.values()]
        summaries, said = summary_keys({place: place[1] for place in self.groups if place in scored}, values)
        places = [place for place in self.groups if place in scored and place not in summaries]
        one_task = len({task for task, _ in places}) == 1
        ids: dict[Key, str] = {place: place[1] if one_task else ":".join(place) for place in places}
        notes = [*self.notes, *said, *self._remarks(columns, len(places) + len(summaries))]
        groups = {name: [self.groups[place][k] for place in places] for k, name in enumerate(self._group_names())}
        counts = averaged(
            columns,
            list(self.systems),
            ids,
            groups=groups,
            options=options,
            warnings=notes,
        )
        scores = tuple(name for name in counts.suggested if not CLOCK.fullmatch(name))
        return replace(counts, suggested=scores or counts.suggested)

    def _group_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(("task", *self.options.groups)))

    def _group(self, place: tuple[str, str], sample: Sample) -> None:
        values = []
        for name in self._group_names():
            value = sample.task if name == "task" else sample.group(name)
            if value is None and name == "subject":
                value = sample.task
            if value is None:
                raise InputError(f"{sample.where}: no field {name!r}; fields: {', '.join(sample.fields())}")
            values.append(value)
        if self.groups.setdefault(place, tuple(values)) != tuple(values):
            raise InputError(
                f"{sample.where}: sample {sample.item!r} is in {tuple(values)}, elsewhere in {self.groups[place]}"
            )

    def _check_input(self, system: str, place: tuple[str, str], sample: Sample) -> None:
        if not sample.input:
            return
        seen = self.inputs.setdefault(place, {})
        if seen.setdefault(system, sample.input) != sample.input:
            raise InputError(
                f"{sample.where}: sample {sample.item!r} has another input than an earlier one of this id; keep the "
                "files of several tasks apart (a folder a system), or give --id the field that tells samples apart"
            )

    def _add(self, column: Column, system: str, place: Key, value: float, sample: Sample) -> None:
        if self.options.own.get("repeats") == "error" and place in column.cells.get(system, {}):
            raise InputError(f"{sample.where}: sample {sample.item!r} of system {system!r} has a score already")
        add(column.cells, system, place, value)

    def _add_parts(self, column: Column, system: str, place: Key, parts: Sequence[bool], sample: Sample) -> None:
        if column.sizes.setdefault(place, len(parts)) != len(parts):
            raise InputError(
                f"{sample.where}: sample {sample.item!r} has {len(parts)} parts, elsewhere {column.sizes[place]}"
            )
        self._add(column, system, place, float(sum(parts)), sample)

    def _columns(self) -> dict[str, Column]:
        """Name the columns: by metric, and by filter too where a metric has several."""
        wanted = self.options.own.get("filter")
        filters: dict[str, list[str]] = {}
        for metric, own in self.columns:
            filters.setdefault(metric, []).append(own)
        known = {own for found in filters.values() for own in found}
        if wanted is not None and wanted not in known:
            raise InputError(f"format samples: no filter {wanted!r}; filters: {', '.join(sorted(known))}")
        columns = {}
        for (metric, own), column in self.columns.items():
            if metric in self.odd or not column.cells or wanted not in {None, own}:
                continue
            name = metric if wanted or len(filters[metric]) == 1 else f"{metric},{own}"
            if not {name, metric} & {*self.options.ignore}:
                columns[name] = column
        chosen = self.options.score_column
        if chosen is not None and chosen not in columns:
            raise InputError(f"no metric {chosen!r} in these samples; metrics: {', '.join(columns) or 'none'}")
        return columns if chosen is None else {chosen: columns[chosen]}

    def _odd(self) -> str:
        return "; ".join(f"{metric} is no number: {found}" for metric, found in self.odd.items())

    def _remarks(self, columns: Mapping[str, Column], n_items: int) -> Iterator[str]:
        if absent := len(self.groups) - n_items:
            yield f"{absent:,} of {len(self.groups):,} samples have no score in any system and are left out"
        for name, column in columns.items():
            n_values, n_repeated = repeated(column.cells)
            if n_values:
                yield f"{name}: {n_values:,} values of {n_repeated:,} samples taken more than once are averaged"
            if (n_own := len(set().union(*column.cells.values()))) < n_items:
                yield f"{name} is on {n_own:,} of {n_items:,} samples"
        if self.odd:
            yield f"left out: {self._odd()}"
        unlike = sum(len(set(seen.values())) > 1 for seen in self.inputs.values())
        if unlike:
            yield f"{unlike:,} samples differ in their input between systems although their ids are the same"
