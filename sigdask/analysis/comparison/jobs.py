"""Comparisons by swaps of one kind of unit, the jobs that count them, and the positions of their counts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.exact import list_exact_jobs
from sigdask.analysis.comparison.pairs import (
    RUN_KINDS,
    CompareSpec,
    Comparisons,
    ComparisonSettings,
    CountedCells,
    Places,
    list_comparisons,
    list_pairs,
)
from sigdask.counts import Counts
from sigdask.counts.factors import group_rows, number_rows, scatter_rows
from sigdask.counts.fields import Integers
from sigdask.counts.precision import Lattice
from sigdask.errors import InputError
from sigdask.options import Method
from sigdask.randomization.panels import AnyPanel, ComparedPanel
from sigdask.randomization.panels.digests import format_hash, hash_code, hash_fields
from sigdask.randomization.panels.sums import EnumeratedPairs, Panel, SwapUnits
from sigdask.randomization.slabs import Job
from sigdask.results.columns import CodedColumn, Columns, Hashes
from sigdask.statistics.bounds import count_second_trials

Enumerated = tuple[Integers, AnyPanel]
"""Comparisons, and the panel whose rows are all their arrangements."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonJobs:
    """Comparisons by swaps of one kind of unit, and the jobs that count them.

    Attributes
    ----------
    spec : ComparisonSettings
        The requested settings.
    comparisons : Comparisons
        The comparisons.
    cells : list of CountedCells
        The comparisons' counts, in the order of the jobs.
    signs : int64 array, shape (n_comparisons, 2)
        Wins and losses if the exact p is a binomial tail, otherwise -1.
    """

    spec: ComparisonSettings
    comparisons: Comparisons
    cells: list[CountedCells]
    signs: Integers

    @staticmethod
    def from_spec(counts: Counts, spec: CompareSpec, *, second_run: bool) -> ComparisonJobs:
        """Return the comparisons of a test set with the jobs that count them, including those of exact p-values."""
        jobs = ComparisonJobs._from_spec(counts, spec, second_run=second_run)
        if jobs.comparisons.enumerated.all():
            return jobs
        signs, cells = list_exact_jobs(jobs.comparisons, spec.method, spec.exact_limit)
        return replace(jobs, signs=signs, cells=[*jobs.cells, *cells])

    @staticmethod
    def build_contrast(counts: Counts, spec: CompareSpec) -> ComparisonJobs:
        """Return the comparisons by a contrast unit with their jobs, without second runs and exact p-values."""
        method: Method = "randomization" if spec.method == "randomization" else "auto"
        return ComparisonJobs._from_spec(counts, replace(spec, method=method), second_run=False)

    @staticmethod
    def _from_spec(counts: Counts, spec: CompareSpec, *, second_run: bool) -> ComparisonJobs:
        resolved = ComparisonSettings(
            counts=counts,
            units=SwapUnits.from_counts(counts, spec.seed),
            pairs=list_pairs(counts, spec.pairs, spec.baseline),
            method=spec.method,
            trials=spec.trials,
            exact_limit=spec.exact_limit,
            seed=spec.seed,
            family_trials=spec.family_trials,
        )
        comparisons = list_comparisons(resolved, spec.find_metrics(counts), spec.by)
        if len(resolved.pairs) and not len(comparisons):
            raise InputError(
                f"{counts.name or 'these data'}: no two systems have an item in common, so there is nothing to "
                "compare. Check that all systems use the same ids"
            )
        no_signs = np.full((len(comparisons), 2), -1, np.int64)
        return ComparisonJobs(resolved, comparisons, [*list_cells(comparisons, second_run=second_run)], no_signs)

    @property
    def jobs(self) -> list[Job]:
        """The jobs to count."""
        return [part.job for part in self.cells]


def list_cells(comparisons: Comparisons, *, second_run: bool) -> Iterator[CountedCells]:
    """Yield the jobs that sample or enumerate comparisons, with the cells of the comparisons' counts."""
    for group in _group_by_columns(np.flatnonzero(comparisons.sampled), comparisons.panel):
        used, pair_index = np.unique(comparisons.row[group].astype(np.int64), return_inverse=True)
        sampled_panel, n_trials = comparisons.get_panel(group[0]).select(used), int(comparisons.n_trials[group[0]])
        for run, kind in enumerate(RUN_KINDS[: 1 + second_run]):
            label, n = _describe_comparisons(comparisons, group), count_second_trials(n_trials) if run else n_trials
            job = Job(sampled_panel, n, run, label=label)
            yield CountedCells(kind, job, group, pair_index, comparisons.column[group])
    for group in _group_by_columns(np.flatnonzero(comparisons.enumerated), comparisons.metric):
        for selected, panel in _merge_enumerations(_iter_enumerations(comparisons, group)):
            n_arrangements = 2 ** int(comparisons.n_discordant[selected[0]])
            job = Job(panel, n_arrangements, label=_describe_comparisons(comparisons, selected))
            rows, columns = np.arange(len(selected)), np.zeros(len(selected), np.int64)
            yield CountedCells("all arrangements", job, selected, rows, columns)


def _group_by_columns(selected: Integers, *columns: NDArray[np.int32]) -> list[Integers]:
    """Return groups of the selected comparisons with equal values in the columns."""
    return [selected[rows] for rows in group_rows(number_rows(*(column[selected] for column in columns)))]


def _describe_comparisons(comparisons: Comparisons, selected: Integers) -> str:
    """Return the names of the first comparison and the number of other comparisons, for errors."""
    suffix = f" and {len(selected) - 1} more" if len(selected) > 1 else ""
    return comparisons.describe(int(selected[0])) + suffix


def _iter_enumerations(comparisons: Comparisons, group: Integers) -> Iterator[Enumerated]:
    """Yield the comparisons of a group under one metric, with panels whose rows are all their arrangements."""
    for in_panel in _group_by_columns(group, comparisons.panel):
        row = comparisons.row[in_panel].astype(np.int64)
        comparison_of_row = np.zeros(int(row.max()) + 1, np.int64)
        comparison_of_row[row] = in_panel
        panel, column = comparisons.get_panel(in_panel[0]), int(comparisons.column[in_panel[0]])
        for rows, arrangements in panel.iter_enumerations(row, column):
            yield comparison_of_row[rows], arrangements


def _merge_enumerations(enumerations: Iterable[Enumerated]) -> Iterator[Enumerated]:
    """Yield enumerations, merged into larger panels where possible, because many subsets give many small panels."""
    waiting: dict[Hashable, list[tuple[Integers, EnumeratedPairs]]] = {}
    for selected, panel in enumerations:
        shared = panel.sharing_key if isinstance(panel, EnumeratedPairs) else None
        if not isinstance(panel, EnumeratedPairs) or shared is None:
            yield selected, panel
            continue
        if sum(len(batch) for batch, _ in waiting.get(shared, ())) + len(selected) > panel.max_pairs:
            yield from _merge_batch(waiting.pop(shared, []))
        waiting.setdefault(shared, []).append((selected, panel))
    for batch in waiting.values():
        yield from _merge_batch(batch)


def _merge_batch(batch: list[tuple[Integers, EnumeratedPairs]]) -> Iterator[Enumerated]:
    """Yield the enumeration merged from a batch; nothing if the batch is empty."""
    if batch:
        (_, first), *rest = batch
        panel = first.join([panel for _, panel in rest]) if rest else first
        yield np.concatenate([selected for selected, _ in batch]), panel


@dataclass(frozen=True, slots=True, eq=False)
class FamilyComparisons:
    """Comparisons that are judged together, from one or several test sets: arrays of shape (n,).

    Attributes
    ----------
    comparison_jobs : tuple of ComparisonJobs
        Jobs of each test set.
    set_index : int64
        Index of the test set in `comparison_jobs`.
    row : int64
        Index among that test set's comparisons.
    """

    comparison_jobs: tuple[ComparisonJobs, ...]
    set_index: Integers
    row: Integers

    @staticmethod
    def from_jobs(*comparison_jobs: ComparisonJobs) -> FamilyComparisons:
        """Return all comparisons of some test sets, one test set after another."""
        sizes = [len(jobs.comparisons) for jobs in comparison_jobs]
        row = np.concatenate([np.arange(n) for n in (0, *sizes)])
        return FamilyComparisons(comparison_jobs, np.repeat(np.arange(len(sizes)), sizes), row)

    def __len__(self) -> int:
        return len(self.row)

    def select(self, selected: Integers) -> FamilyComparisons:
        """Return some of the comparisons, given their indices."""
        if len(selected) == len(self):
            return self
        return replace(self, set_index=self.set_index[selected], row=self.row[selected])

    def get_column(self, name: str) -> Integers:
        """Return the values of a column of `Comparisons`."""
        values = np.zeros(len(self), np.int64)
        for k, jobs in enumerate(self.comparison_jobs):
            in_set, column = self.set_index == k, getattr(jobs.comparisons, name)
            values[in_set] = (column.codes if isinstance(column, CodedColumn) else column)[self.row[in_set]]
        return values

    @property
    def methods(self) -> set[Method]:
        """Methods of the test sets of the comparisons."""
        return {self.comparison_jobs[k].spec.method for k in np.unique(self.set_index)}

    @property
    def subset(self) -> Integers:
        """Codes of the comparisons' subsets; different test sets may use one code for different subsets."""
        return self.get_column("subset")

    @property
    def panel(self) -> Integers:
        """Indices of the comparisons' panels in `panels`."""
        offsets = np.cumsum([0, *(len(jobs.comparisons.panels) for jobs in self.comparison_jobs)])
        return np.asarray(self.get_column("panel") + offsets[self.set_index])

    @property
    def panels(self) -> list[ComparedPanel]:
        """Panels of all test sets, one test set after another."""
        return [panel for jobs in self.comparison_jobs for panel in jobs.comparisons.panels]

    @property
    def metric(self) -> Integers:
        """Codes of the comparisons' metric names, shared by all test sets."""
        names = [[m.name for m in jobs.comparisons.metrics] for jobs in self.comparison_jobs]
        return self._encode_names(names, "metric")

    def encode_systems(self, side: str) -> Integers:
        """Return codes of the names of systems on the side "a" or "b"; both sides and all test sets share the codes."""
        return self._encode_names([list(jobs.spec.counts.systems) for jobs in self.comparison_jobs], side)

    def _encode_names(self, names: list[list[str]], column: str) -> Integers:
        """Return codes of the names to which the indices in a column of `Comparisons` refer."""
        codes: dict[str, int] = {}
        all_codes = [codes.setdefault(name, len(codes)) for set_names in names for name in set_names]
        offsets = np.cumsum([0, *map(len, names)])
        return np.asarray(np.array(all_codes, np.int64)[self.get_column(column) + offsets[self.set_index]])

    def get_metric_name(self, k: int) -> str:
        """Return the name of the metric of comparison `k`."""
        return self.comparison_jobs[int(self.set_index[k])].comparisons.get_metric(self.row[k]).name

    def get_system_names(self, k: int) -> tuple[str, str]:
        """Return the names of the systems of comparison `k`."""
        comparisons, row = self.comparison_jobs[int(self.set_index[k])].comparisons, self.row[k]
        systems = comparisons.counts.systems
        return systems[int(comparisons.a[row])], systems[int(comparisons.b[row])]


def build_input_digests(sets: Sequence[ComparisonJobs], seed: int, version: str) -> Columns:
    """Return the digests of the inputs of results, without the digests of families, which are added later.

    Parameters
    ----------
    sets : sequence of ComparisonJobs
        The comparisons of each test set.
    seed : int
        Seed of the random stream.
    version : str
        Version of sigdask.
    """
    sizes = [len(jobs.comparisons) for jobs in sets]
    n = sum(sizes)
    data: Hashes = np.broadcast_to(np.uint64(0), (n, 2))
    alike: dict[tuple[tuple[Lattice, ...], tuple[int, ...]], list[tuple[Integers, Panel, Places]]] = {}
    for start, jobs in zip(np.cumsum([0, *sizes])[:-1].tolist(), sets, strict=True):
        comparisons = jobs.comparisons
        for panel, column, rows in comparisons.iter_panels():
            row = comparisons.row[rows]
            if len(sets) > 1 and type(panel) is Panel:
                key = panel.lattices, panel.metrics[column].fields
                alike.setdefault(key, []).append((start + rows, panel, row))
            else:
                hashes = panel.hash_contents(column)
                data = scatter_rows(data, start + rows, hashes[row])
    for (lattices, fields), entries in alike.items():
        hashes = hash_fields(np.concatenate([panel.contents for _, panel, _ in entries]), lattices, fields)
        n_before = np.cumsum([0, *(len(panel.contents) for _, panel, _ in entries)]).tolist()
        pairs = [panel.pairs[row] + n for (_, panel, row), n in zip(entries, n_before, strict=False)]
        data = data if data.flags.writeable else data.copy()
        data[np.concatenate([rows for rows, _, _ in entries])] = hashes[np.concatenate(pairs)]
    codes = [CodedColumn(jobs.comparisons.metric, tuple(map(hash_code, jobs.comparisons.metrics))) for jobs in sets]
    methods = [CodedColumn.from_constant(s.spec.method_and_limit, k) for s, k in zip(sets, sizes, strict=True)]
    units = [CodedColumn.from_constant(format_hash(s.spec.units.content), k) for s, k in zip(sets, sizes, strict=True)]
    return {
        "origins.seed": np.broadcast_to(np.int64(seed), n),
        "origins.version": CodedColumn.from_constant(version, n),
        "origins.method": CodedColumn.join(methods),
        "origins.units": CodedColumn.join(units),
        "origins.data_a": _encode_digests(data[:, 0]),
        "origins.data_b": _encode_digests(data[:, 1]),
        "origins.code": CodedColumn.join(codes),
    }


def _encode_digests(bits: Hashes) -> CodedColumn[str]:
    distinct, codes = np.unique(bits, return_inverse=True)
    return CodedColumn(codes.astype(np.int32), tuple(map(format_hash, distinct.tolist())))
