"""Logs of single samples of language models, in the layouts of the tools that write them.

A system is a file or a folder of files (one per task). A single folder has a system in each of its folders, or a system
for each model in its logs. Every metric of the samples is a column of scores, `score[NAME]`. Under several filters it
is called `NAME,FILTER`, as in lm-evaluation-harness's own tables.

- Samples are identified by task and id, or by the id alone if there is one task. Units are `--unit task`, `--unit
  subject`, or any field of the sample, its document or its metadata.
- Where the same id has other inputs in other systems, samples are paired by `doc_hash`, or refused without one.
- Several samples of one id in a log (epochs, seeds) are averaged exactly, if all items have equally many, or if the
  log numbers them.
- A metric that is a list of truth values (IFEval's instructions) is the share of all their parts.
- Samples that a status field marks (error, cancelled, skipped) are left out, with a count. A log in which other samples
  have no score is refused, and a metric that only some systems have is never zero.
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
from sigdask.formats.roles import split_columns
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
    samples = GatheredSamples(options, notes=[*notes])
    samples.add_logs(logs)
    if options.id_column is None and samples.have_unlike_inputs:
        by_id = spell("columns", f"item={logs[0].layout.item[0]}")
        samples.check_hashes(by_id)
        notes.append(
            f"ids number other documents in other systems, so samples are paired by {HASH} ({by_id} pairs ids)"
        )
        options = options.with_columns(item=HASH)
        samples = GatheredSamples(options, notes=[*notes])
        samples.add_logs(logs)
    counts = samples.build_counts()
    lookup = LogTextLookup(tuple(logs), options, one_task=len({*counts.group("task").levels}) == 1)
    return replace(counts, files=tuple(log.path for log in logs), telling=lookup)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first file or folder holds logs of samples."""
    first = next(iter(list_source_files(sources[0])), None)
    return first is not None and find_layout(first) is not None


@dataclass(slots=True)
class GatheredSamples:
    """The scores of the samples of all systems, by metric, system, task and id."""

    options: Options
    notes: list[str]
    columns: dict[tuple[str, str], ScoreColumn] = field(default_factory=dict)
    systems: dict[str, None] = field(default_factory=dict)
    groups: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    inputs: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    hashes: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    logs: dict[tuple[str, str, str], Path] = field(default_factory=dict)
    numbered: set[tuple[str, ...]] = field(default_factory=set)
    repeated: dict[str, str] = field(default_factory=dict)

    def add_logs(self, logs: Sequence[SampleFile]) -> None:
        """Add the samples of logs; raise if samples of a log have no score, and no status says why."""
        for log in logs:
            self.notes.extend(log.run.notes)
            n_scored, statuses = 0, Counter[str]()
            for sample in log.iter_samples(self.options):
                self.add(log, sample)
                n_scored += sample.has_score
                statuses[sample.status] += 1
            n_samples, n_unmarked = statuses.total(), statuses.pop("", 0)
            for status, n in statuses.items():
                self.notes.append(f"{log.path}: {format_count(n, 'sample')} left out ({status} is set)")
            if not n_scored or (n_scored < n_unmarked and self.options.missing not in {"pairwise", "zero"}):
                number = f"only {n_scored:,}" if n_scored else "none"
                problem = f"{number} of {format_count(n_samples, 'sample')} of system {log.system!r} have a score"
                way = f" or {spell('missing', 'pairwise')}, which leaves these samples out" if n_scored else ""
                raise InputError(problem, file=log.path, remedy=f"score the log, or leave it out{way}")

    def add(self, log: SampleFile, sample: ScoredSample) -> None:
        """Add the scores of a sample."""
        system, key = log.system, (sample.task, sample.item)
        self.systems[system] = None
        group = tuple(map(sample.get_group, self._list_group_names()))
        if (known := self.groups.setdefault(key, group)) != group:
            raise InputError(
                f"{sample.where}: sample {sample.item!r} is in {group}, but in {known} elsewhere",
                remedy="give the sample the same group everywhere",
            )
        if sample.status:
            return
        self._check_repeated(log, sample)
        if sample.input and self.options.id_column is None:
            self._check_input(system, sample)
        for metric, value in sample.scores.items():
            column = self.columns.setdefault((metric, sample.filter), ScoreColumn())
            if isinstance(value, list):
                if column.sizes.setdefault(key, len(value)) != len(value):
                    problem = f"sample {sample.item!r} has {len(value)} parts, elsewhere {column.sizes[key]}"
                    raise InputError(f"{sample.where}: {problem}")
                add_value(column.cells, system, key, float(sum(value)))
            elif not math.isnan(value):
                add_value(column.cells, system, key, value + 0.0)

    def _list_group_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(("task", *self.options.groups)))

    def _check_input(self, system: str, sample: ScoredSample) -> None:
        """Raise if samples of one id in a system have several inputs."""
        inputs = self.inputs.setdefault((sample.task, sample.item), {})
        if inputs.setdefault(system, sample.input) != sample.input:
            raise InputError(
                f"{sample.where}: sample {sample.item!r} has another input than an earlier sample with this id",
                remedy=f"give files of one task, or name a unique field with {spell('columns', 'item=COLUMN')}",
            )
        self.hashes.setdefault((system, sample.task), {})[sample.item] = str(sample.record.get(HASH, ""))

    def _check_repeated(self, log: SampleFile, sample: ScoredSample) -> None:
        """Raise if another log of the system has the same sample."""
        if self.options.own.get("logs") == "all" or "repeats" in self.options.own:
            return
        first = self.logs.setdefault((log.system, sample.task, sample.item), log.path)
        if first != log.path:
            raise InputError(
                f"{sample.where}: sample {sample.item!r} of system {log.system!r} is in {first} too",
                remedy=f"keep only one of them; {spell('format', 'samples:logs=all')} averages all",
            )
        key = (log.system, sample.task, sample.item, sample.filter, sample.sample)
        if key in self.numbered and log.layout.sample != "*":
            self.repeated.setdefault(log.system, f"{sample.where}: sample {sample.item!r}")
        self.numbered.add(key)

    @property
    def have_unlike_inputs(self) -> bool:
        """Whether samples of the same id have other inputs in other systems."""
        return any(len({*inputs.values()}) > 1 for inputs in self.inputs.values())

    def check_hashes(self, by_id: str) -> None:
        """Raise unless samples can be paired by a hash of their document that all logs have, once for each sample."""
        documents = {place: {*hashes.values()} for place, hashes in self.hashes.items()}
        if any("" in documents[place] or len(documents[place]) < len(self.hashes[place]) for place in documents):
            raise InputError(
                f"samples of the same id have other inputs in other systems, and not every one has its own {HASH}",
                remedy=f"{by_id} pairs them nevertheless",
            )

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

    def _name_columns(self) -> dict[str, ScoreColumn]:
        """Return the score columns by metric or, for a metric with several filters, by metric and filter."""
        read = {place: column for place, column in self.columns.items() if column.cells}
        n_filters = Counter(metric for metric, _ in read)
        columns = {m if n_filters[m] == 1 else f"{m},{filter_}": column for (m, filter_), column in read.items()}
        if self.options.score_column is not None:
            names = split_columns(self.options.score_column, columns)
            if absent := [name for name in names if name not in columns]:
                raise InputError(f"no metric {absent[0]!r} in these samples; metrics: {', '.join(columns) or 'none'}")
            columns = {name: columns[name] for name in names}
        return self._select_shared(columns)

    def _select_shared(self, columns: Mapping[str, ScoreColumn]) -> dict[str, ScoreColumn]:
        """Return the metrics that all systems have; raise if another one is the only metric of some items."""
        shared = {name: column for name, column in columns.items() if column.cells.keys() >= self.systems.keys()}
        if not shared:
            raise InputError(f"no metric that all systems have: {', '.join(columns)}")
        shared = dict(columns) if self.options.missing == "pairwise" else shared
        kept = {item for column in shared.values() for values in column.cells.values() for item in values}
        partial = [name for name in columns if name not in shared]
        for name in partial:
            lacking = next(system for system in self.systems if system not in columns[name].cells)
            lost = {item for values in columns[name].cells.values() for item in values} - kept
            if lost:
                problem = f"system {lacking!r} has no score {name!r}, the only one of {format_count(len(lost), 'item')}"
                remedy = f"give its samples, {spell('missing', 'pairwise')} or {spell('ignore', name)}"
                raise InputError(problem, remedy=remedy)
        if partial:
            self.notes.append(f"{describe_items(partial, 'metric')} not in every system: left out")
        for name, column in shared.items():
            self._check_numbers(name, column)
        return shared

    def _check_numbers(self, name: str, column: ScoreColumn) -> None:
        """Raise if samples of an item are not numbered, and items of a system have other numbers of them."""
        for system in self.repeated:
            values = column.cells.get(system, {})
            numbers = {len(value) if isinstance(value, list) else 1 for value in values.values()}
            if len(numbers) > 1:
                raise InputError(
                    f"{self.repeated[system]} is repeated, and items of system {system!r} have between "
                    f"{min(numbers)} and {max(numbers)} scores {name!r}",
                    remedy=f"give each item once or equally often; {spell('format', 'samples:repeats=mean')} "
                    "averages what there is of each",
                )

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
