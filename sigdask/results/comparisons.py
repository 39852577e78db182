"""All results of one call, with their stable JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any, Self, overload

import pyarrow as pa

from sigdask.errors import InputError
from sigdask.formats.frames import build_frame_from_data
from sigdask.randomization.stream import SCHEME
from sigdask.results.export import UNIT_SCHEMA
from sigdask.results.fields import build_frame_data, get_result, iter_json_lines, iter_results
from sigdask.results.ranking import SystemRanking, build_rankings
from sigdask.results.record import NamedValues, Note, Result, build_named, list_dicts, read_note
from sigdask.results.table import Table
from sigdask.text import format_list, iter_array, iter_json, suggest_name, to_plain

VERSION = 1
"""Version of the JSON. It increases when a key is removed or changes its meaning, but not for new keys."""


@cache
def get_version() -> str:
    """Return the version of sigdask."""
    return version("sigdask")


class FamilyNote(NamedValues):
    """How the p-values of a family were adjusted: method, number of comparisons, trials and resamples.

    Attributes
    ----------
    adjust : str
        The method, as in the option `adjust`.
    n_comparisons : int
        Number of comparisons judged together.
    n_trials : int or None
        Trials (or arrangements) counted for the whole family; None if the adjustment needs only p-values.
    exact : bool
        Whether all arrangements were counted.
    n_resamples : int or None
        Number of resamples of the studentised bootstrap for p-values or simultaneous intervals. None without it.
    """


class ResultAcrossSets(NamedValues):
    """One comparison over several test sets or subsets, by the mean of the differences.

    Attributes
    ----------
    a, b, metric : str
        Names of the systems and of the metric.
    n_sets : int
        Number of test sets or subsets.
    difference : float
        Mean over sets of score_a - score_b.
    n_trials, n_extreme : int
        Number of trials, which swap within each set, and of those whose mean difference is at least as extreme.
    p_value : float
        p of the mean difference.
    p_adjusted : float or None
        p adjusted by step-down max-T over all pairs, for each metric. None if there is only one.
    p_adjusted_interval : tuple of float, or None
        As in `Result`.
    method : {"approximate", "exact"}
        Whether random trials or all arrangements were counted.
    equal_scores : NamedValues or None
        The equal-score test of the mean difference.
    interval : tuple of float, or None
        t interval of the mean difference, with confidence 1 - alpha. None if no unit differs.
    """


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonResults(Sequence[Result]):
    """All results of one call, with what is needed to reproduce them; a sequence of `Result`.

    Attributes as in `sigdask.Results`, which shows them.
    """

    table: Table
    seed: int
    alpha: float
    notes: tuple[Note, ...] = ()
    family: FamilyNote | None = None
    together: tuple[ResultAcrossSets, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    units: Any = field(default=None, repr=False)

    @classmethod
    def from_document(cls, table: Table, document: Mapping[str, Any]) -> Self:
        """Return the results of a table and of the keys of `around` that the table does not determine."""
        return cls(
            table,
            document["seed"],
            document["alpha"],
            tuple(map(read_note, document.get("notes", ()))),
            FamilyNote(**document["family"]) if document.get("family") else None,
            tuple(
                ResultAcrossSets(**vars(build_named(verdict)) | {"difference": verdict["difference"]})
                for verdict in document.get("together", ())
            ),
            document.get("options") or {},
        )

    @overload
    def __getitem__(self, index: int | tuple[str, ...]) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Result]: ...
    def __getitem__(self, index: int | slice | tuple[str, ...]) -> Result | Sequence[Result]:
        if isinstance(index, slice):
            return tuple(iter_results(self.table.take(index)))
        if isinstance(index, tuple):
            return self._find(*index)
        return get_result(self.table, range(len(self))[index])

    def _find(self, a: str, b: str, *others: str) -> Result:
        """Return the comparison of two systems with the metric, test set or subset as further names."""
        self._check_systems(a, b)
        pairs = enumerate(zip(self.table.a.tolist(), self.table.b.tolist(), strict=True))
        results = [get_result(self.table, row) for row, pair in pairs if {*pair} == {a, b}]
        names = [{r.metric, r.test_set, r.subset["value"] if r.subset else ""} for r in results]
        chosen = [result for result, own in zip(results, names, strict=True) if {*others} <= own]
        if len(chosen) == 1:
            return chosen[0]
        known = format_list(sorted(map(repr, set().union(*names) - {""})), 20)
        raise InputError(f"results[{a!r}, {b!r}, …]: {len(chosen)} comparisons; add one of {known or 'none'}")

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[Result]:
        return iter_results(self.table)

    def __eq__(self, other: object) -> bool:
        """Return whether the JSON texts of both are equal."""
        return isinstance(other, ComparisonResults) and self.to_json() == other.to_json()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without units, whose outputs may be large and whose metrics may be functions that cannot be."""
        return type(self), (self.table, self.seed, self.alpha, self.notes, self.family, self.together, self.options)

    __hash__ = None  # type: ignore[assignment]

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of the notes on all results."""
        return tuple(note.text for note in self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the object of `to_json` as a dictionary of plain Python values."""
        return dict(json.loads(self.to_json()))

    def around(self) -> dict[str, Any]:
        """Return the object of `to_dict` without the comparisons: its "results" are an empty list."""
        return {
            "sigdask": get_version(),
            "schema_version": VERSION,
            "scheme": SCHEME,
            "seed": self.seed,
            "alpha": self.alpha,
            "options": to_plain(self.options) or None,
            "warnings": list(self.warnings),
            "notes": to_plain(list_dicts(self.notes)),
            "family": to_plain(self.family),
            "results": [],
            "rankings": [ranking.as_dict() for ranking in self.rankings()],
            "together": to_plain(self.together),
        }

    def rankings(self) -> Sequence[SystemRanking]:
        """Rank the systems of each test set, subset and metric of which all pairs were compared, two-sided.

        Returns
        -------
        tuple of SystemRanking
            Each has the attribute `systems`, the best one first, with scores and with letters: systems that share a
            letter are not significantly different.

        Examples
        --------
        >>> from sigdask import compare_all
        >>> results = compare_all({"a": [4, 5, 4], "b": [1, 1, 2], "c": [4, 4, 4]}, interval="none")
        >>> [[ranked.system for ranked in ranking.systems] for ranking in results.rankings()]
        [['a', 'c', 'b']]
        """
        return build_rankings(self.table) if len(self) > 2 else ()  # all pairs of three systems

    def to_json(self) -> str:
        """Return the results as JSON text, as `sigdask compare --json` writes it."""
        return "".join(self.json_parts())

    def json_parts(self) -> Iterator[str]:
        """Yield the text of `to_json()` in parts of some thousand results."""
        return iter_json(self.around() | {"results": iter_array(iter_json_lines(self.table))})

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame, one row per comparison.

        Parameters
        ----------
        library : str
            "pandas" (`sigdask[frame]`), "polars" or "pyarrow".

        Returns
        -------
        data frame
            Its columns are the attributes of `Result` that are numbers or names. Parts of an attribute have columns of
            their own, such as interval_low.

        Raises
        ------
        InputError
            The library is another one or not installed.

        Examples
        --------
        >>> from sigdask import compare_all
        >>> results = compare_all({"new": [4, 5, 4], "old": [1, 1, 2]})
        >>> results.to_frame("pyarrow")["p_value"].to_pylist()
        [0.25]
        """
        return build_frame_from_data(build_frame_data(self.table), library)

    def iter_units(self) -> Iterator[pa.Table]:
        """Yield the units of all comparisons, as `sigdask compare --items` writes them.

        Raises
        ------
        InputError
            The results were read from a file or a store, which have no scores of units.
        """
        yield from self._get_units()()

    def unit_table(self, a: str, b: str, library: str = "pandas") -> Any:
        """Return a data frame with both systems' scores on each unit and its contribution to their difference.

        Only results that were computed in this process have it, because they hold the data.

        Parameters
        ----------
        a, b : str
            Two systems. Differences are of the first minus the second.
        library : str
            "pandas" (`sigdask[frame]`), "polars" or "pyarrow".

        Returns
        -------
        data frame
            The columns are test_set, subset, unit, metric, a, b, id, n_items, score_a, score_b, difference,
            contribution, contribution_kind and note. Scores are those of the unit alone, missing if they are 0/0.
            Contributions of the kind "share" add up to the difference of the two systems. Those of the kind
            "swap" are half of what that difference loses if only this unit is swapped. Metrics that are not computed
            from sums over units, such as rank correlations, have none.

        Raises
        ------
        InputError
            There is no such system, or the results were read from a file or a store.

        Examples
        --------
        >>> from sigdask import compare_all
        >>> results = compare_all({"new": [4, 5, 4], "old": [1, 1, 2]})
        >>> table = results.unit_table("new", "old")
        >>> table[["id", "score_a", "score_b", "difference", "contribution"]].round(4)
          id  score_a  score_b  difference  contribution
        0  1      4.0      1.0         3.0        1.0000
        1  2      5.0      1.0         4.0        1.3333
        2  3      4.0      2.0         2.0        0.6667
        """
        units = self._get_units()
        self._check_systems(a, b)
        return build_frame_from_data(pa.concat_tables([UNIT_SCHEMA.empty_table(), *units((a, b))]), library)

    def _check_systems(self, *names: str) -> None:
        known = [*dict.fromkeys([*self.table.a.tolist(), *self.table.b.tolist()])]
        for name in names:
            if name not in known:
                systems = f"; systems: {format_list([*map(repr, known)]) or 'none'}"
                raise InputError(f"no system {name!r}{suggest_name(str(name), known, systems)}")

    def _get_units(self) -> Any:
        if self.units is None:
            raise InputError(
                "these results have no scores of units: they come from a file, a store or a pickle",
                remedy="compare the outputs again",
            )
        return self.units
