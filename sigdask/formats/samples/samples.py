"""Logs of single samples of language models, in the layouts of the tools that write them.

A system is a file or a folder of files (one per task). A single folder has a system in each of its folders, or a system
for each model in its logs. Every metric of the samples is a column of scores, `score[NAME]`. Under several filters it
is called `NAME,FILTER`, as in lm-evaluation-harness's own tables (`samples:filter=strict-match` takes one).

- Samples are identified by task and id, or by the id alone if there is one task. Units are `--unit task`, `--unit
  subject`, or any field of the sample, its document or its metadata.
- Where the same id has other inputs in other systems, samples are paired by `doc_hash`, or refused without one.
- Several samples of one id in a log (epochs, seeds) are averaged exactly, if all items have equally many, or if the
  log numbers them.
- A metric that is a list of truth values (IFEval's instructions) is the share of all their parts.
- Samples that a status field marks (error, cancelled, skipped) are left out, with a count. A log without a single
  score, and a metric that only some systems have, are never zeros.
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
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.replicates import Key, ScoreColumn, add_value, build_averaged_counts, count_repeated
from sigdask.formats.samples.files import list_source_files, open_logs, select_logs
from sigdask.formats.samples.layouts import find_layout
from sigdask.formats.samples.sample import SampleFile, ScoredSample
from sigdask.formats.samples.texts import LogTextLookup
from sigdask.interface import spell
from sigdask.text import describe_items, format_count

HASH = "doc_hash"


def read_samples(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read logs of samples, and return counts of their scores under each metric."""
    logs, notes = select_logs(open_logs(sources, options), options)
    gathered = _gather(logs, options, notes)
    if options.id_column is None and gathered.count_unlike_inputs():
        gathered.check_hashes()
        by_id = spell("columns", f"item={gathered.id_name}")
        note = f"{gathered.id_name} numbers other documents in other systems, so samples are paired by {HASH}"
        notes = [*notes, f"{note} ({by_id} pairs them by {gathered.id_name})"]
        options = options.with_columns(item=HASH)
        gathered = _gather(logs, options, notes)
    counts = gathered.build_counts()
    lookup = LogTextLookup(tuple(logs), options, one_task=len({*counts.group("task").levels}) == 1)
    return replace(counts, files=tuple(log.path for log in logs), telling=lookup)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first file or folder holds logs of samples."""
    first = next(iter(list_source_files(sources[0])), None)
    return first is not None and find_layout(first) is not None


def _gather(logs: Sequence[SampleFile], options: Options, notes: Sequence[str]) -> GatheredSamples:
    gathered = GatheredSamples(options, notes=[*notes])
    for log in logs:
        gathered.add_log(log)
    return gathered


@dataclass(slots=True)
class GatheredSamples:
    """The scores of the samples of all systems, by metric, system, task and id."""

    options: Options
    columns: dict[tuple[str, str], ScoreColumn] = field(default_factory=dict)
    systems: dict[str, None] = field(default_factory=dict)
    groups: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    inputs: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    hashes: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    logs: dict[tuple[str, str, str], Path] = field(default_factory=dict)
    numbered: set[tuple[str, ...]] = field(default_factory=set)
    are_numbered: bool = True
    repeated: dict[str, str] = field(default_factory=dict)
    id_name: str = ""
    non_numbers: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add_log(self, log: SampleFile) -> None:
        """Add the samples of a log, which must have a score for at least one of them."""
        self.notes.extend(log.run.notes)
        self.id_name = log.layout.item[0]
        n_scored, n_samples, statuses = 0, 0, Counter[str]()
        for sample in log.iter_samples(self.options):
            self.add(log, sample)
            n_samples += 1
            n_scored += bool(sample.scores)
            statuses[sample.status] += 1
        del statuses[""]
        for status, n in statuses.items():
            self.notes.append(f"{log.path}: {format_count(n, 'sample')} left out ({status} is set)")
        if not n_scored:
            raise InputError(
                f"none of {format_count(n_samples, 'sample')} of system {log.system!r} has a score",
                file=log.path,
                remedy="score the log, or leave it out",
            )

    def add(self, log: SampleFile, sample: ScoredSample) -> None:
        """Add the scores of a sample."""
        system, key = log.system, (sample.task, sample.item)
        self.systems[system] = None
        self._add_groups(key, sample)
        if sample.status:
            return
        self._check_repeated(log, sample)
        inputs = self.inputs.setdefault(key, {}) if sample.input and self.options.id_column is None else {}
        if inputs.setdefault(system, sample.input) != sample.input:
            raise InputError(
                f"{sample.where}: sample {sample.item!r} has another input than an earlier sample with this id",
                remedy=f"give files of one task, or name a unique field with {spell('columns', 'item=COLUMN')}",
            )
        if isinstance(digest := sample.record.get(HASH), str) and inputs:
            self.hashes.setdefault((system, sample.task), {})[sample.item] = digest
        for metric, value in sample.scores.items():
            column = self.columns.setdefault((metric, sample.filter), ScoreColumn())
            if isinstance(value, str):
                self.non_numbers.setdefault(metric, f"{value!r} ({sample.where})")
            elif isinstance(value, list):
                if column.sizes.setdefault(key, len(value)) != len(value):
                    raise InputError(
                        f"{sample.where}: sample {sample.item!r} has {len(value)} parts, elsewhere {column.sizes[key]}"
                    )
                add_value(column.cells, system, key, float(sum(value)))
            elif not math.isnan(value):
                add_value(column.cells, system, key, value + 0.0)

    def _check_repeated(self, log: SampleFile, sample: ScoredSample) -> None:
        """Raise if another log of the system has the same sample, or the log has its number twice."""
        self.are_numbered &= bool(sample.sample) or log.layout.sample == "*"
        repeats = self.options.own.get("repeats")
        if self.options.own.get("logs") == "all" or repeats == "mean":
            return
        first = self.logs.setdefault((log.system, sample.task, sample.item), log.path)
        key = (log.system, sample.task, sample.item, sample.filter, sample.sample)
        if first == log.path and (key not in self.numbered or not (sample.sample or repeats == "error")):
            if key in self.numbered:
                self.repeated.setdefault(log.system, f"{sample.where}: sample {sample.item!r}")
            self.numbered.add(key)
            return
        option = "logs=all" if first != log.path else "repeats=mean"
        raise InputError(
            f"{sample.where}: sample {sample.item!r} of system {log.system!r} "
            + (f"is in {first} too" if first != log.path else "has a score already"),
            remedy=f"keep only one of them; {spell('format', f'samples:{option}')} averages all",
        )

    def count_unlike_inputs(self) -> int:
        """Return the number of samples that have the same id, and other inputs in other systems."""
        return sum(len({*inputs.values()}) > 1 for inputs in self.inputs.values())

    def check_hashes(self) -> None:
        """Raise unless samples can be paired by a hash of their document that the logs of all systems have."""
        n_unlike = self.count_unlike_inputs()
        problem = f"{format_count(n_unlike, 'sample')} of the same id have other inputs in other systems"
        by_id = f"{spell('columns', f'item={self.id_name}')} pairs them nevertheless"
        for (system, task), hashes in self.hashes.items():
            if len({*hashes.values()}) < len(hashes):
                remedy = f"{spell('columns', f'item={HASH}')} averages samples of one document; {by_id}"
                raise InputError(
                    f"{problem}, and system {system!r} has the same {HASH} under several ids in {task!r}",
                    remedy=remedy,
                )
        documents: dict[str, set[tuple[str, str]]] = {}
        for (system, task), hashes in self.hashes.items():
            documents.setdefault(system, set()).update((task, digest) for digest in hashes.values())
        n_hashed = sum(map(len, self.hashes.values()))
        if n_hashed < sum(map(len, self.inputs.values())) or not set.intersection(*documents.values()):
            raise InputError(f"{problem}, and no {HASH} says which belong together", remedy=by_id)

    def build_counts(self) -> Counts:
        """Return the counts of all samples that at least one system has a score for."""
        columns = self._name_columns()
        scored: set[Key] = set().union(*(cells for column in columns.values() for cells in column.cells.values()))
        keys = [key for key in self.groups if key in scored]
        has_one_task = len({task for task, _ in keys}) == 1
        ids: dict[Key, str] = {key: key[1] if has_one_task else ":".join(key) for key in keys}
        groups = {name: [self.groups[key][k] for key in keys] for k, name in enumerate(self._list_group_names())}
        notes = [*self.notes, *self._iter_notes(columns, len(keys))]
        return build_averaged_counts(
            columns, list(self.systems), ids, groups=groups, options=self.options, warnings=notes
        )

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

    def _name_columns(self) -> dict[str, ScoreColumn]:
        """Return the score columns by metric or, for a metric with several filters, by metric and filter."""
        filter_name = self.options.own.get("filter")
        filters: dict[str, list[str]] = {}
        for metric, filter_ in self.columns:
            filters.setdefault(metric, []).append(filter_)
        known_filters = {filter_ for names in filters.values() for filter_ in names}
        if filter_name is not None and filter_name not in known_filters:
            raise InputError(f"format samples: no filter {filter_name!r}; filters: {', '.join(sorted(known_filters))}")
        columns: dict[str, ScoreColumn] = {}
        for (metric, filter_), column in self.columns.items():
            if metric in self.non_numbers or not column.cells or filter_name not in {None, filter_}:
                continue
            name = metric if filter_name or len(filters[metric]) == 1 else f"{metric},{filter_}"
            if not {name, metric} & {*self.options.ignore}:
                columns[name] = column
        columns = self._select_requested(columns)
        shared = {name: column for name, column in columns.items() if column.cells.keys() >= self.systems.keys()}
        if not shared:
            reason = f": {', '.join(columns)}" if columns else ""
            reason += f"; {self._describe_non_numbers()}" if self.non_numbers else ""
            raise InputError(f"no metric that all systems have{reason}")
        if self.options.missing == "pairwise":
            shared = columns
        if partial := [name for name in columns if name not in shared]:
            self._check_no_item_is_lost(shared, {name: columns[name] for name in partial})
            self.notes.append(f"{describe_items(partial, 'metric')} not in every system: left out")
        self._check_numbers(shared)
        return shared

    def _check_no_item_is_lost(self, shared: Mapping[str, ScoreColumn], partial: Mapping[str, ScoreColumn]) -> None:
        """Raise if a metric that is left out is the only one of some items."""
        kept = {item for column in shared.values() for values in column.cells.values() for item in values}
        for name, column in partial.items():
            lacking = next(system for system in self.systems if system not in column.cells)
            for values in column.cells.values():
                if lost := [item for item in values if item not in kept]:
                    raise InputError(
                        f"system {lacking!r} has no score {name!r}, the only one of {format_count(len(lost), 'item')}",
                        remedy=f"give its samples, {spell('missing', 'pairwise')} or {spell('ignore', name)}",
                    )

    def _select_requested(self, columns: dict[str, ScoreColumn]) -> dict[str, ScoreColumn]:
        if self.options.score_column is None:
            return columns
        names = [self.options.score_column]
        names = names if names[0] in columns else names[0].split("+")
        if absent := [name for name in names if name not in columns]:
            raise InputError(f"no metric {absent[0]!r} in these samples; metrics: {', '.join(columns) or 'none'}")
        return {name: columns[name] for name in names}

    def _check_numbers(self, columns: Mapping[str, ScoreColumn]) -> None:
        """Raise if samples of an item are not numbered, and items of a system have other numbers of them."""
        if self.are_numbered or self.options.own.get("repeats") or self.options.own.get("logs") == "all":
            return
        for name, column in columns.items():
            for system, values in column.cells.items():
                numbers = {len(value) if isinstance(value, list) else 1 for value in values.values()}
                if len(numbers) > 1:
                    raise InputError(
                        f"{self.repeated.get(system)} is repeated, and items of system {system!r} have between "
                        f"{min(numbers)} and {max(numbers)} scores {name!r}",
                        remedy=f"give each item once or equally often; {spell('format', 'samples:repeats=mean')} "
                        "averages what there is of each",
                    )

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
