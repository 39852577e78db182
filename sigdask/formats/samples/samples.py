"""Logs of single samples of language models: lm-evaluation-harness, Inspect, and plain records.

A system is a file or a folder of files (one per task). A single folder has a system in each of its folders
(lm-evaluation-harness), or a system for each model in its logs (Inspect). Every numeric metric of the samples is a
column of scores, `score[NAME]`. Under several filters it is called `NAME,FILTER`, as in the harness's own tables
(`samples:filter=strict-match` takes one).

- Samples are identified by task and id, or by the id alone if there is one task. Units are `--unit task`, `--unit
  subject`, or any field of the sample, its document or its metadata.
- Of several logs of a task with dates in their names, the newest is used. Several samples of one id in it (epochs,
  seeds) are averaged exactly.
- A metric that is a list of truth values (IFEval's instructions) is the share of all their parts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.averages_only import describe_summary_items
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.replicates import Key, ScoreColumn, add_value, build_averaged_counts, count_repeated
from sigdask.formats.samples.files import is_log, list_source_files, open_logs, select_logs
from sigdask.formats.samples.sample import LogTextLookup, SampleFile, ScoredSample
from sigdask.formats.tables.bookkeeping import CLOCK_NAMES
from sigdask.interface import spell
from sigdask.text import format_count


def read_samples(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read logs of samples, and return counts of their scores under each metric."""
    logs, notes = select_logs(open_logs(sources, options), options)
    gathered = GatheredSamples(options, notes=notes)
    n_logs = Counter((log.system, log.task) for log in logs if log.moment is not None)
    for log in logs:
        gathered.notes.extend(log.notes)
        checked_log = log if "logs" not in options.own and n_logs[log.system, log.task] > 1 else None
        for sample in log.samples(options):
            gathered.add(log.system or sample.system, sample)
            if checked_log is not None:
                gathered.check_log(checked_log, sample)
    counts = gathered.build_counts()
    lookup = LogTextLookup(tuple(logs), options, one_task=len({*counts.group("task").levels}) == 1)
    return replace(counts, files=tuple(log.path for log in logs), telling=lookup)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first file or folder holds logs of samples."""
    first = next(iter(list_source_files(sources[0])), None)
    return first is not None and is_log(first)


@dataclass(slots=True)
class GatheredSamples:
    """The scores of the samples of all systems, by metric, system, task and id."""

    options: Options
    columns: dict[tuple[str, str], ScoreColumn] = field(default_factory=dict)
    systems: dict[str, None] = field(default_factory=dict)
    groups: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    inputs: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    logs: dict[tuple[str | None, str, str], Path] = field(default_factory=dict)
    non_numbers: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, system: str, sample: ScoredSample) -> None:
        """Add the scores of a sample."""
        self.systems[system] = None
        key = (sample.task, sample.item)
        self._add_groups(key, sample)
        inputs = self.inputs.setdefault(key, {}) if sample.input else {}
        if inputs.setdefault(system, sample.input) != sample.input:
            raise InputError(
                f"{sample.where}: sample {sample.item!r} has another input than an earlier sample with this id",
                remedy=f"give files of one task, or name a field with unique values: {spell('columns', 'item=KEY')}",
            )
        for metric, value in sample.scores.items():
            column = self.columns.setdefault((metric, sample.filter), ScoreColumn())
            if isinstance(value, str):
                self.non_numbers.setdefault(metric, f"{value!r} ({sample.where})")
            elif isinstance(value, list):
                if column.sizes.setdefault(key, len(value)) != len(value):
                    raise InputError(
                        f"{sample.where}: sample {sample.item!r} has {len(value)} parts, elsewhere {column.sizes[key]}"
                    )
                self._add_score(column, system, key, float(sum(value)), sample)
            elif not math.isnan(value):
                self._add_score(column, system, key, value + 0.0, sample)

    def check_log(self, log: SampleFile, sample: ScoredSample) -> None:
        """Raise if another dated log of the system has the same sample: the two would be averaged."""
        first_path = self.logs.setdefault((log.system, sample.task, sample.item), log.path)
        if first_path != log.path:
            raise InputError(
                f"{sample.where}: sample {sample.item!r} of system {log.system!r} is in {first_path} too, where the "
                "task had other arguments; keep the two logs in separate folders; "
                f"{spell('format', 'samples:logs=all')} averages them"
            )

    def build_counts(self) -> Counts:
        """Return the counts of all samples that at least one system has a score for."""
        options = self.options
        columns = self._name_columns()
        if not columns:
            reason = f"; {self._describe_non_numbers()}" if self.non_numbers else ""
            raise InputError(f"no metric in {format_count(len(self.groups), 'sample')}{reason}")
        scored: set[Key] = set().union(*(cells for column in columns.values() for cells in column.cells.values()))
        keys = [key for key in self.groups if key in scored]
        summary_notes = describe_summary_items([item for _, item in keys])
        has_one_task = len({task for task, _ in keys}) == 1
        ids: dict[Key, str] = {key: key[1] if has_one_task else ":".join(key) for key in keys}
        notes = [*self.notes, *summary_notes, *self._iter_notes(columns, len(keys))]
        groups = {name: [self.groups[key][k] for key in keys] for k, name in enumerate(self._list_group_names())}
        systems = list(self.systems)
        counts = build_averaged_counts(columns, systems, ids, groups=groups, options=options, warnings=notes)
        scores = tuple(name for name in counts.suggested if not CLOCK_NAMES.fullmatch(name))
        return replace(counts, suggested=scores or counts.suggested)

    def _list_group_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(("task", *self.options.groups)))

    def _add_groups(self, key: tuple[str, str], sample: ScoredSample) -> None:
        values = []
        for name in self._list_group_names():
            value = sample.task if name == "task" else sample.get_field(name)
            if value is None and name == "subject":
                value = sample.task
            if value is None:
                raise InputError(f"{sample.where}: no field {name!r}; fields: {', '.join(sample.list_fields())}")
            values.append(value)
        group = tuple(values)
        if (known := self.groups.setdefault(key, group)) != group:
            raise InputError(
                f"{sample.where}: sample {sample.item!r} is in {group}, but in {known} elsewhere",
                remedy="give the sample the same group everywhere",
            )

    def _add_score(self, column: ScoreColumn, system: str, key: Key, value: float, sample: ScoredSample) -> None:
        if self.options.own.get("repeats") == "error" and key in column.cells.get(system, {}):
            raise InputError(
                f"{sample.where}: sample {sample.item!r} of system {system!r} has a score already",
                remedy="leave out repeats=error to average them",
            )
        add_value(column.cells, system, key, value)

    def _name_columns(self) -> dict[str, ScoreColumn]:
        """Return the score columns by metric or, for a metric with several filters, by metric and filter."""
        filter_name = self.options.own.get("filter")
        filters: dict[str, list[str]] = {}
        for metric, filter_ in self.columns:
            filters.setdefault(metric, []).append(filter_)
        known_filters = {filter_ for names in filters.values() for filter_ in names}
        if filter_name is not None and filter_name not in known_filters:
            raise InputError(f"format samples: no filter {filter_name!r}; filters: {', '.join(sorted(known_filters))}")
        columns = {}
        for (metric, filter_), column in self.columns.items():
            if metric in self.non_numbers or not column.cells or filter_name not in {None, filter_}:
                continue
            name = metric if filter_name or len(filters[metric]) == 1 else f"{metric},{filter_}"
            if not {name, metric} & {*self.options.ignore}:
                columns[name] = column
        score_column = self.options.score_column
        if score_column is not None and score_column not in columns:
            raise InputError(f"no metric {score_column!r} in these samples; metrics: {', '.join(columns) or 'none'}")
        return columns if score_column is None else {score_column: columns[score_column]}

    def _describe_non_numbers(self) -> str:
        return "; ".join(f"{metric} is no number: {example}" for metric, example in self.non_numbers.items())

    def _iter_notes(self, columns: Mapping[str, ScoreColumn], n_items: int) -> Iterator[str]:
        if n_absent := len(self.groups) - n_items:
            yield f"{n_absent:,} of {len(self.groups):,} samples have no score in any system and are left out"
        for name, column in columns.items():
            n_values, n_repeated = count_repeated(column.cells)
            if n_values:
                samples = f"{format_count(n_repeated, 'sample')} taken more than once"
                yield ScopeNote(f"{name}: {n_values:,} values of {samples} are averaged")
            if (n_scored := len(set().union(*column.cells.values()))) < n_items:
                yield f"{name} is on {n_scored:,} of {n_items:,} samples"
        if self.non_numbers:
            yield f"left out: {self._describe_non_numbers()}"
        n_unlike = sum(len(set(inputs.values())) > 1 for inputs in self.inputs.values())
        if n_unlike:
            yield f"the input of {format_count(n_unlike, 'sample')} differs between systems although ids are the same"
