"""The jobs that count comparisons, the positions of their counts, and comparisons of several test sets together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.exact import list_exact_jobs
from sigdask.analysis.comparison.pairs import (
    RUN_KINDS,
    CompareSpec,
    Comparisons,
    CountedCells,
    list_comparisons,
)
from sigdask.counts import Counts
from sigdask.counts.fields import Integers
from sigdask.counts.texts import Texts
from sigdask.options import Method
from sigdask.randomization.panels import AnyPanel, ComparedPanel
from sigdask.randomization.panels.digests import format_hash, hash_code
from sigdask.randomization.panels.sums import EnumeratedPairs
from sigdask.randomization.slabs import Job
from sigdask.results.columns import Columns, encode, join_columns, repeat
from sigdask.statistics.bounds import count_second_trials
from sigdask.statistics.numbering import group_rows, number_rows

Enumerated = tuple[Integers, AnyPanel]
"""Comparisons, and the panel whose rows are all their arrangements."""


def plan_jobs(counts: Counts, spec: CompareSpec) -> Comparisons:
    """Return the comparisons of a test set with the jobs that count them, including those of exact p-values."""
    comparisons = list_comparisons(counts, spec)
    signs, cells = list_exact_jobs(comparisons)
    return replace(comparisons, signs=signs, cells=[*list_cells(comparisons), *cells])


def list_cells(comparisons: Comparisons) -> Iterator[CountedCells]:
    """Yield the jobs that sample or enumerate comparisons, with the cells of the comparisons' counts."""
    for group in _group_by_columns(np.flatnonzero(comparisons.sampled), comparisons.panel):
        used, pair_index = np.unique(comparisons.row[group].astype(np.int64), return_inverse=True)
        sampled_panel, n_trials = comparisons.get_panel(group[0]).select(used), int(comparisons.n_trials[group[0]])
        for run, kind in enumerate(RUN_KINDS[: 1 + comparisons.spec.second_run]):
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
    alike: dict[Hashable, list[tuple[Integers, EnumeratedPairs]]] = {}
    for selected, panel in enumerations:
        if isinstance(panel, EnumeratedPairs) and panel.sharing_key is not None:
            alike.setdefault(panel.sharing_key, []).append((selected, panel))
        else:
            yield selected, panel
    for batch in alike.values():
        n_before = np.cumsum([0, *(len(selected) for selected, _ in batch)])[:-1]
        for part in group_rows(n_before // batch[0][1].max_pairs):
            indices, (first, *rest) = zip(*(batch[k] for k in part), strict=True)
            yield np.concatenate(indices), first.join(rest) if rest else first


@dataclass(frozen=True, eq=False)
class JoinedComparisons:
    """Comparisons of one or several test sets that are judged together.

    Attributes
    ----------
    sets : tuple of Comparisons
        All comparisons of each test set.
    index : int64 array, shape (n,)
        The comparisons, among those of all test sets one after another.
    """

    sets: tuple[Comparisons, ...]
    index: Integers

    @staticmethod
    def from_sets(*sets: Comparisons) -> JoinedComparisons:
        """Return all comparisons of some test sets, one test set after another."""
        return JoinedComparisons(sets, np.arange(sum(map(len, sets))))

    def __len__(self) -> int:
        return len(self.index)

    def select(self, selected: Integers) -> JoinedComparisons:
        """Return some of the comparisons, given their indices."""
        return self if len(selected) == len(self) else replace(self, index=self.index[selected])

    def get_column(self, name: str) -> Any:
        """Return the values of a column of `Comparisons`; places of subsets and others differ between test sets."""
        arrays = [getattr(comparisons, name) for comparisons in self.sets]
        values = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        return values if len(values) == len(self) else values[self.index]

    @cached_property
    def set_index(self) -> Integers:
        """Index of each comparison's test set."""
        return np.asarray(np.repeat(np.arange(len(self.sets)), [*map(len, self.sets)])[self.index])

    @cached_property
    def row(self) -> Integers:
        """Index of each comparison among those of its test set."""
        return np.asarray(self.index - np.cumsum([0, *map(len, self.sets)])[self.set_index])

    @property
    def methods(self) -> set[Method]:
        """Methods of the test sets of the comparisons."""
        return {self.sets[k].spec.method for k in np.unique(self.set_index)}

    @property
    def panel(self) -> Integers:
        """Indices of the comparisons' panels in `panels`."""
        offsets = np.cumsum([0, *(len(comparisons.panels) for comparisons in self.sets)])
        return np.asarray(self.get_column("panel") + offsets[self.set_index])

    @property
    def panels(self) -> list[ComparedPanel]:
        """Panels of all test sets, one test set after another."""
        return [panel for comparisons in self.sets for panel in comparisons.panels]

    def encode_names(self, column: str) -> Integers:
        """Return codes of the names in the column "a", "b" or "metric"; sides and test sets share the codes."""
        codes: dict[str, int] = {}
        names = [[m.name for m in c.metrics] if column == "metric" else c.counts.systems for c in self.sets]
        all_codes = [codes.setdefault(name, len(codes)) for set_names in names for name in set_names]
        offsets = np.cumsum([0, *map(len, names)])
        return np.asarray(np.array(all_codes, np.int64)[self.get_column(column) + offsets[self.set_index]])

    def describe(self, k: int) -> str:
        """Return the names of the systems and the metric of comparison `k`, for errors."""
        return self.sets[int(self.set_index[k])].describe(int(self.row[k]))

    def get_system_names(self, k: int) -> tuple[str, str]:
        """Return the names of the systems of comparison `k`."""
        comparisons, row = self.sets[int(self.set_index[k])], self.row[k]
        a, b = (comparisons.counts.systems[int(side[row])] for side in (comparisons.a, comparisons.b))
        return a, b


def build_input_digests(sets: Sequence[Comparisons], version: str) -> Columns:
    """Return the digests of the inputs of results, without the digests of families, which are added later."""
    parts = []
    for comparisons in sets:
        n, spec = len(comparisons), comparisons.spec
        data = np.zeros((n, 2), np.uint64)
        for panel, column, rows in comparisons.iter_panels():
            data[rows] = panel.hash_contents(column)[comparisons.row[rows]]
        limits_exact = spec.exact_limit is not None and spec.method in {"auto", "both"}
        method = f"{spec.method}:{float(spec.exact_limit or 0)!r}" if limits_exact else spec.method
        parts.append({
            "origins.seed": np.full(n, spec.seed),
            "origins.version": repeat(version, n),
            "origins.method": repeat(method, n),
            "origins.units": repeat(format_hash(comparisons.units.content), n),
            "origins.data_a": _encode_digests(data[:, 0]),
            "origins.data_b": _encode_digests(data[:, 1]),
            "origins.code": encode(map(hash_code, comparisons.metrics), comparisons.metric),
        })  # fmt: skip
    return join_columns(parts)


def _encode_digests(bits: NDArray[np.uint64]) -> Texts:
    distinct, codes = np.unique(bits, return_inverse=True)
    return encode(map(format_hash, distinct.tolist()), codes)
