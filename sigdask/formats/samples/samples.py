"""Logs of single samples of language models: of lm-evaluation-harness, of Inspect, and plain records.

A system is a file or a folder of files (one a task). A folder given alone holds a system in each of
its folders (lm-evaluation-harness), or a system for each model in its logs (Inspect). Every numeric
metric of the samples is a column of scores, `score[NAME]`; under several filters it is called
`NAME,FILTER`, as in the harness's own tables (`samples:filter=strict-match` takes one).

- Samples are known by task and id (the id alone where there is one task); `--unit task`,
  `--unit subject`, or any field of the sample, of its document or of its metadata.
- Of the logs of a task with dates in their names the newest is taken; several samples of one id
  within it (epochs, seeds) are averaged exactly.
- A metric that is a list of truth values (IFEval's instructions) is the share of all their parts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sigdask.counts import Counts
from sigdask.counts.shown import FirstLine
from sigdask.errors import InputError
from sigdask.formats.reading.averages import Key, ScoreColumn, add, averaged, repeated
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.summaries import summary_keys
from sigdask.formats.samples import harness, inspect
from sigdask.formats.samples.files import files_of, named_logs
from sigdask.formats.samples.newest import LOGS, chosen
from sigdask.formats.samples.sample import SampleFile, ScoredSample
from sigdask.formats.samples.told import FromLogs
from sigdask.formats.tables.bookkeeping import CLOCK
from sigdask.text import count_noun

REPEATS = ("mean", "error")


def read_samples(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read logs of samples; see above."""
    options.only("samples", filter=(), repeats=REPEATS, logs=LOGS)
    if gold is not None:
        raise InputError(f"--gold {gold}: format samples holds scores and takes no gold file")
    logs, notes = chosen(named_logs(sources, options), options)
    found = GatheredSamples(options, notes=notes)
    logs_of = Counter((log.system, log.task) for log in logs if log.moment is not None)
    for log in logs:
        found.notes.extend(log.notes)
        apart = log if "logs" not in options.own and logs_of[log.system, log.task] > 1 else None
        for sample in log.samples(options):
            found.add(log.system or sample.system, sample)
            if apart is not None:
                found.check_log(apart, sample)
    counts = found.counts()
    telling = FromLogs(tuple(logs), options, one_task=len({*counts.group("task").levels}) == 1)
    return replace(counts, files=tuple(log.path for log in logs), telling=telling)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Say whether the first file or folder holds logs of samples."""
    if gold is not None:
        return False
    first = next(iter(files_of(sources[0])), None)
    return first is not None and (harness.is_log(first) or inspect.is_log(first))


@dataclass(slots=True)
class GatheredSamples:
    """Samples of all systems, by metric, system, task and id."""

    options: Options
    columns: dict[tuple[str, str], ScoreColumn] = field(default_factory=dict)
    systems: dict[str, None] = field(default_factory=dict)
    groups: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    inputs: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    logs: dict[tuple[str | None, str, str], Path] = field(default_factory=dict)
    odd: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, system: str, sample: ScoredSample) -> None:
        """Add a sample's scores."""
        self.systems[system] = None
        place = (sample.task, sample.item)
        self._group(place, sample)
        self._check_input(system, place, sample)
        for metric, value in sample.scores.items():
            column = self.columns.setdefault((metric, sample.filter), ScoreColumn())
            if isinstance(value, str):
                self.odd.setdefault(metric, f"{value!r} ({sample.where})")
            elif isinstance(value, list):
                self._add_parts(column, system, place, value, sample)
            elif not math.isnan(value):
                self._add(column, system, place, value + 0.0, sample)

    def check_log(self, log: SampleFile, sample: ScoredSample) -> None:
        """Refuse a sample that another dated log of its system has too: the two would be averaged."""
        first = self.logs.setdefault((log.system, sample.task, sample.item), log.path)
        if first != log.path:
            raise InputError(
                f"{sample.where}: sample {sample.item!r} of system {log.system!r} is in {first} too, where the task "
                "was given other arguments; keep the two in folders of their own; samples:logs=all averages them"
            )

    def counts(self) -> Counts:
        """Return the counts of all samples that some system has a score of."""
        options = self.options
        columns = self._columns()
        if not columns:
            odd = f"; {self._odd()}" if self.odd else ""
            raise InputError(f"no metric in {count_noun(len(self.groups), 'sample')}{odd}")
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

    def _group(self, place: tuple[str, str], sample: ScoredSample) -> None:
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

    def _check_input(self, system: str, place: tuple[str, str], sample: ScoredSample) -> None:
        if not sample.input:
            return
        seen = self.inputs.setdefault(place, {})
        if seen.setdefault(system, sample.input) != sample.input:
            raise InputError(
                f"{sample.where}: sample {sample.item!r} has another input than an earlier one of this id; keep the "
                "files of several tasks apart (a folder a system), or give --id the field that tells samples apart"
            )

    def _add(self, column: ScoreColumn, system: str, place: Key, value: float, sample: ScoredSample) -> None:
        if self.options.own.get("repeats") == "error" and place in column.cells.get(system, {}):
            raise InputError(f"{sample.where}: sample {sample.item!r} of system {system!r} has a score already")
        add(column.cells, system, place, value)

    def _add_parts(
        self, column: ScoreColumn, system: str, place: Key, parts: Sequence[bool], sample: ScoredSample
    ) -> None:
        if column.sizes.setdefault(place, len(parts)) != len(parts):
            raise InputError(
                f"{sample.where}: sample {sample.item!r} has {len(parts)} parts, elsewhere {column.sizes[place]}"
            )
        self._add(column, system, place, float(sum(parts)), sample)

    def _columns(self) -> dict[str, ScoreColumn]:
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

    def _remarks(self, columns: Mapping[str, ScoreColumn], n_items: int) -> Iterator[str]:
        if absent := len(self.groups) - n_items:
            yield f"{absent:,} of {len(self.groups):,} samples have no score in any system and are left out"
        for name, column in columns.items():
            n_values, n_repeated = repeated(column.cells)
            if n_values:
                yield FirstLine(
                    f"{name}: {n_values:,} values of {count_noun(n_repeated, 'sample')} taken more than once "
                    "are averaged"
                )
            if (n_own := len(set().union(*column.cells.values()))) < n_items:
                yield f"{name} is on {n_own:,} of {n_items:,} samples"
        if self.odd:
            yield f"left out: {self._odd()}"
        unlike = sum(len(set(seen.values())) > 1 for seen in self.inputs.values())
        if unlike:
            yield f"the input of {count_noun(unlike, 'sample')} differs between systems although ids are the same"
