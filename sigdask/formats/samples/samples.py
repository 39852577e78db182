"""Logs of single samples of language models, in the layouts of the tools that write them.

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

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.json_records import find_field
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.replicates import Cells, Key, add_value, build_averaged_counts, count_repeated
from sigdask.formats.roles import split_columns
from sigdask.formats.samples.files import list_source_files, open_logs, select_logs
from sigdask.formats.samples.layouts import find_layout
from sigdask.formats.samples.sample import HASH, Sample, SampleFile
from sigdask.interface import spell
from sigdask.text import format_count


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


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first file or folder holds logs of samples."""
    first = next(iter(list_source_files(sources[0])), None)
    return first is not None and find_layout(first) is not None


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
