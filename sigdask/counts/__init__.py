"""The aligned data that every reader returns: items x systems x named count fields.

A field is an array over items, and a metric is a function of sums of fields. Integer fields are exact. Float fields
become multiples of a small step for each pair of systems (`sigdask.statistics.lattice`), so the step of a system does
not depend on the other systems. Candidates to be ranked are data of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import checks
from sigdask.counts.fields import (
    Array,
    LabelFields,
    LazyColumns,
    LazyOutputs,
    build_set_fields,
    join_labels,
    list_labels,
    split_labels,
    to_object_array,
)
from sigdask.counts.precision import ExactNumbers, ScoreMatrix, check_lengths, convert_scores, list_notes, read_fields
from sigdask.counts.texts import ScopeNote, Texts, check_unique, to_integers
from sigdask.errors import InputError
from sigdask.interface import suggest_group_file
from sigdask.options import READING_OPTIONS, Missing


def check_names(systems: Sequence[str], minimum: int = 2) -> None:
    """Raise if there are fewer than `minimum` systems, or if two names are the same."""
    if len(systems) < minimum:
        names = f"only {systems[0]!r}" if systems else "none"
        raise InputError(
            f"a comparison needs two systems or more, found {names}", remedy="give the outputs of another system"
        )
    check_unique(systems, "system name")


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Outputs:
    """Whole outputs, for metrics that need them.

    Attributes
    ----------
    systems : sequence of object arrays, shape (n_items,) each
        Output of each system for each item.
    gold : object array, shape (n_items,), or None
        The gold standard.
    asked : sequence, length n_items, or None
        Inputs to show: source texts, prompts. Metrics do not use them.
    """

    systems: Sequence[Array]
    gold: Array | None = None
    asked: Sequence[Any] | None = None


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of systems, or raters or prompts, that are a sample of all possible ones.

    Attributes
    ----------
    column : str
        Column that names them, such as "seed". "run" if they are files.
    names : tuple of str
        Their names. Replicate k belongs to run k modulo their number.
    is_shared : bool
        Whether all systems have the same ones, such as the same seeds.
    """

    column: str
    names: tuple[str, ...]
    is_shared: bool = False


class ItemArguments(TypedDict, total=False):
    """Arguments that all constructors of `Counts` take."""

    ids: Sequence[str] | None
    groups: Mapping[str, Sequence[str]]
    name: str
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Systems on one test set, aligned item by item.

    Attributes
    ----------
    systems : tuple of str
        Names, in the order given.
    fields : mapping of str to array, shape (n_items, n_systems) or (n_items, 1)
        Contributions of each item. A field that all systems share, such as gold counts, has one column. Integers are
        exact counts, floats are real scores. Values may be computed on access.
    n_items : int
        Items of the test set.
    name : str
        Name of the test set. It also determines the random stream.
    ids : Texts, or None
        Item ids, given as any sequence of str. None if items are identified by position.
    groups : mapping of str to Texts
        Further columns of the items (document, topic, kind), given as any sequences of str. They can be units or
        subsets.
    unit : str
        Unit that is swapped as a whole: "item" or a name in `groups`.
    labels : tuple of str
        Labels (types) of the gold data, sorted. Per-label and macro metrics need them.
    predicted_labels : tuple of str
        Labels that only systems use, sorted.
    present : bool array, shape (n_items, n_systems), or None
        Whether each system has each item. None if no item is missing.
    held : mapping of str to bool array, shape (n_items, n_systems)
        By field, whether each system has a value for each item, for fields that some items lack (such as a metric of
        only some tasks).
    outputs : Outputs or None
        Whole outputs, which metrics computed by a function need.
    suggested : tuple of str
        Names of metrics that fit these data, used by default.
    warnings : tuple of str
        Warnings of the reader.
    scope : tuple of str
        Sentences on what is scored, left out, averaged or aligned. Reports print them before the answer. Warnings of
        the type `ScopeNote` are moved here.
    format : str
        Format of the files that were read. Empty for data of Python, and for your own reader's.
    roles : str
        The column of each role, and what was left out, in words. Empty if the files have no columns.
    files : tuple of Path
        Files that were read, if folders or patterns were given.
    replicates : tuple of Counts
        Counts of each replicate, if systems have several (optimizer runs, seeds). A score is the mean over
        replicates. The items are those of one replicate, swapped in all replicates together, or those of all
        replicates, one after the other.
    runs : Runs or None
        What the replicates are, if they are runs of the systems. None if they are samples of each item.
    extracted : mapping of str to array, shape (n_items, n_systems, n_statistics)
        Statistics that metrics extracted from the outputs, such as n-gram counts, by kind
        (`sigdask.metrics.extraction`).

    Examples
    --------
    >>> counts = Counts.from_labels(["x", "y", "x"], {"a": ["x", "x", "x"], "b": ["x", "y", "y"]})
    >>> counts.systems, counts.n_items, counts.labels
    (('a', 'b'), 3, ('x', 'y'))
    """

    systems: tuple[str, ...]
    fields: Mapping[str, Array]
    n_items: int
    name: str = ""
    ids: Sequence[str] | None = None
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unit: str = "item"
    labels: tuple[str, ...] = ()
    predicted_labels: tuple[str, ...] = ()
    present: NDArray[np.bool_] | None = None
    held: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    outputs: Outputs | None = None
    suggested: tuple[str, ...] = ()
    warnings: Sequence[str] = ()
    files: tuple[Path, ...] = ()
    replicates: tuple[Counts, ...] = ()
    runs: Runs | None = None
    extracted: Mapping[str, Array] = field(default_factory=dict)
    scope: tuple[str, ...] = ()
    format: str = ""
    roles: str = ""

    def __post_init__(self) -> None:
        check_names(self.systems, minimum=1)
        if self.n_items == 0:
            raise InputError(f"test set {self.name!r}: no items" if self.name else "no items: the data are empty")
        ids = None if self.ids is None else Texts.from_values(self.ids).decode()
        groups = {name: Texts.from_values(column).encode() for name, column in (self.groups or {}).items()}
        lengths = {"items": self.n_items} | {f"column {name!r}": len(column) for name, column in groups.items()}
        check_lengths(lengths if ids is None else lengths | {"ids": len(ids)})
        if ids is not None:
            check_unique(ids, "item id")
        fields, notes = read_fields(self.fields) if type(self.fields) is dict else (self.fields, [])
        scope_notes = [str(text) for text in self.warnings if isinstance(text, ScopeNote)]
        warnings = (*(text for text in self.warnings if not isinstance(text, ScopeNote)), *notes)
        scope = tuple(dict.fromkeys((*self.scope, *scope_notes)))
        changed = {"ids": ids, "groups": groups, "fields": fields, "warnings": warnings, "scope": scope}
        for name, value in changed.items():
            object.__setattr__(self, name, value)
        if self.unit != "item":
            self.group(self.unit)

    @property
    def n_systems(self) -> int:
        """Number of systems."""
        return len(self.systems)

    @property
    def notices(self) -> tuple[str, ...]:
        """The scope and the warnings."""
        return (*self.scope, *self.warnings)

    @property
    def of_one(self) -> Counts:
        """Counts of the first replicate, or these counts if there are no replicates."""
        return self.replicates[0] if self.replicates else self

    @property
    def apart(self) -> bool:
        """Whether each replicate of an item is swapped separately."""
        return self.n_items != self.of_one.n_items

    def field(self, name: str) -> Array:
        """Return one field, shape (n_items, n_systems) or (n_items, 1).

        Raises
        ------
        InputError
            The data have no field of this name. The message lists all.

        Examples
        --------
        >>> Counts.from_scores({"a": [1, 2], "b": [3, 4]}).field("score").tolist()
        [[1, 3], [2, 4]]
        """
        try:
            return self.fields[name]
        except KeyError:
            names = ", ".join(self.fields) or "none"
            raise InputError(f"these data have no field {name!r}; fields: {names}") from None

    def group(self, column: str) -> Texts:
        """Return the grouping column of this name, with a value for each item.

        Raises
        ------
        InputError
            There is none of this name. The message lists all.
        """
        if column not in self.groups:
            known = ", ".join(self.groups) or "none"
            hint = suggest_group_file(column)
            raise InputError(f"no column {column!r} to group items by; columns: {known}. {hint}")
        return Texts.from_values(self.groups[column]).encode()

    def in_common(
        self, systems: Sequence[int], subset: NDArray[np.bool_] | None = None, held: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """Return which items of a subset all given systems have, shape (n_items,).

        Parameters
        ----------
        systems : sequence of int
            Indices of systems.
        subset : bool array, shape (n_items,), optional
            The items that are considered, by default all.
        held : bool array, shape (n_items, n_systems), optional
            Which items each system has in one metric (`BoundMetric.held`). Only these count.
        """
        mask = np.ones(self.n_items, np.bool_) if subset is None else subset
        masks = [has_item[:, s] for has_item in (self.present, held) if has_item is not None for s in systems]
        return np.asarray(np.logical_and.reduce([mask, *masks])) if masks else mask

    def held_in(self, fields: Sequence[str]) -> NDArray[np.bool_] | None:
        """Return which items each system has in all given fields, (n_items, n_systems). None if none is missing."""
        masks = [self.held[name] for name in fields if name in self.held]
        return np.asarray(np.logical_and.reduce(masks)) if masks else None

    def with_unit(self, unit: str) -> Counts:
        """Return counts in which whole groups of the column `unit` are swapped instead of single items.

        Raises
        ------
        InputError
            There is no such column in `groups`.
        """
        return self if unit == self.unit else replace(self, unit=unit)

    @staticmethod
    def from_scores(
        scores: Mapping[str, Sequence[float] | Array] | ScoreMatrix,
        *,
        missing: Missing = "error",
        few_in_common: bool = False,
        **items: Unpack[ItemArguments],
    ) -> Counts:
        """Make counts from one number per item and system.

        Parameters
        ----------
        scores : mapping of system name to sequence of float, length n_items
            Item scores. NaN stands for an item that the system does not have.
        missing : {"error", "pairwise", "zero"}
            How a missing score is handled: as an error, by leaving out the item in the pairs of this system only, or as
            the score 0.
        few_in_common : bool
            Whether two systems may have less than 5 % of their items in common.
        ids : sequence of str, optional
            Item ids, by default positions.
        groups : mapping of str to sequence of str, optional
            Further columns of the items, such as documents. They can be units or subsets.
        name : str
            Name of the test set, by default empty. It also determines the random stream.
        warnings : sequence of str
            Warnings to show with results.

        Returns
        -------
        Counts
            Give them to `compare_all`, `compare_sets` or `power`.

        Raises
        ------
        InputError
            A score is missing (see `missing`) or is not a number, lengths differ, names are not distinct, or two
            systems have too few items in common.

        Examples
        --------
        >>> Counts.from_scores({"new": [4, 5, None], "old": [1, 1, 2]}, missing="pairwise").present.tolist()
        [[True, True], [True, True], [False, True]]
        """
        READING_OPTIONS["missing"].check("missing", missing)
        matrix = ScoreMatrix.from_scores(scores)
        n_items, present, ids = len(matrix.numbers), matrix.present, items.get("ids")
        if present is not None and not few_in_common:
            checks.check_common_items(present, matrix.names, missing, ids)
        is_zero_best = present is not None and bool(matrix.numbers.min() < 0 >= matrix.numbers.max())
        if present is not None and (missing == "error" or (missing == "zero" and is_zero_best)):
            checks.check_complete(present, matrix.names, ids, zero=None if is_zero_best else "")
        if missing == "zero":
            matrix = replace(matrix, present=None)
        ones = np.broadcast_to(np.ones((1, 1), np.int64), (n_items, 1))
        columns = {"score": matrix.columns}
        items["warnings"] = (*items.get("warnings", ()), *list_notes(columns.values()))
        return Counts(
            systems=matrix.names,
            fields=ExactNumbers.from_columns(columns, {"score": matrix.numbers, "items": ones}),
            n_items=n_items,
            present=matrix.present,
            outputs=Outputs(LazyOutputs(len(matrix.names), matrix.get_column)),
            suggested=("mean",),
            **items,
        )

    def in_order(self, ids: Sequence[str]) -> Counts:
        """Return the same items in the order of the given ids; unchanged if items have no ids."""
        from pyarrow import compute

        if self.ids is None or self.ids == Texts.from_values(ids):
            return self
        known, wanted = Texts.from_values(self.ids), Texts.from_values(ids)
        order = to_integers(compute.index_in(wanted.array, value_set=known.array))
        outputs, rounding = self.outputs, getattr(self.fields, "rounding", {})
        if outputs is not None:
            gold = None if outputs.gold is None else outputs.gold[order]
            prompts = None if outputs.asked is None else [outputs.asked[k] for k in order.tolist()]
            outputs = Outputs([column[order] for column in outputs.systems], gold, prompts)
        return replace(
            self,
            fields=LazyColumns([*self.fields], lambda name: np.asarray(self.fields[name][order]), rounding),
            ids=wanted,
            groups={name: self.group(name)[order] for name in self.groups},
            present=None if self.present is None else self.present[order],
            held={name: values[order] for name, values in self.held.items()},
            outputs=outputs,
            extracted={key: values[order] for key, values in self.extracted.items()},
        )

    @staticmethod
    def of_replicates(replicates: Sequence[Counts], *, apart: bool = False) -> Counts:
        """Make counts of systems that have several replicates each, such as runs with different seeds.

        Parameters
        ----------
        replicates : sequence of Counts
            Counts of the same systems and items, once for each replicate. An item is missing if any replicate lacks it.
        apart : bool
            Swap each replicate of an item separately, as MultEval does. The column "segment" still shows which belong
            together. By default all replicates of an item are swapped together.

        Returns
        -------
        Counts
            Their scores are means over the replicates.

        Raises
        ------
        InputError
            The systems or items of the replicates differ.
        """
        first = replicates[0]
        if len(replicates) == 1:
            return first
        for r, replicate in enumerate(replicates[1:], start=2):
            _check_replicate(first, replicate, r)
        ordered = [first, *(r if first.ids is None else r.in_order(first.ids) for r in replicates[1:])]
        masks = [r.present for r in ordered if r.present is not None]
        present = np.logical_and.reduce(masks) if masks else None
        times = len(ordered) if apart else 1
        n_items = first.n_items * times
        groups: dict[str, Sequence[str]] = {name: tuple(column) * times for name, column in first.groups.items()}
        ids = first.ids
        if apart:
            names = tuple(first.ids or (str(k) for k in range(1, first.n_items + 1)))
            groups.setdefault("segment", names * times)
            ids = tuple(f"{name} {r}" for r in range(1, times + 1) for name in names)
        return replace(
            first,
            fields={"items": np.ones((n_items, 1), np.int64)},
            n_items=n_items,
            ids=ids,
            groups=groups,
            present=None if present is None else np.tile(present, (times, 1)),
            held={},
            outputs=None,
            extracted={},
            warnings=tuple(dict.fromkeys(w for r in ordered for w in r.warnings)),
            scope=tuple(dict.fromkeys(text for r in ordered for text in r.scope)),
            files=tuple(dict.fromkeys(f for r in ordered for f in r.files)),
            replicates=tuple(ordered),
            runs=Runs("run", tuple(map(str, range(1, len(ordered) + 1)))),
        )

    def split_runs(self) -> list[Counts]:
        """Return the counts of each run, with the items and the unit of all."""
        n = len(self.runs.names) if self.runs and self.replicates and not self.apart else 0
        parts = [Counts.of_replicates(self.replicates[k::n]) for k in range(n)]
        return [replace(part, present=self.present, groups=self.groups, unit=self.unit, runs=None) for part in parts]

    def with_runs_as_units(self, *columns: str) -> Counts:
        """Return counts in which whole runs can be swapped, if one of the columns names the runs; else unchanged."""
        if not self.runs or not self.replicates or not {"run", self.runs.column} & {*columns} or self.apart:
            return self
        counts, names = Counts.of_replicates(self.replicates, apart=True), self.runs.names
        runs = [names[k % len(names)] for k in range(len(self.replicates)) for _ in range(self.n_items)]
        groups = {name: counts.groups[name] for name in self.groups} | dict.fromkeys(("run", self.runs.column), runs)
        return replace(
            counts, groups=groups, name=self.name, scope=self.scope, warnings=self.warnings, format=self.format
        )

    @staticmethod
    def from_labels(
        gold: Sequence[Any] | Array,
        predictions: Mapping[str, Sequence[Any] | Array],
        **items: Unpack[ItemArguments],
    ) -> Counts:
        """Make counts from one label per item: gold and each system's prediction.

        Parameters
        ----------
        gold : sequence of str, length n_items
            Gold labels.
        predictions : mapping of system name to sequence of str, length n_items
            Predicted labels.
        ids : sequence of str, optional
            Item ids, by default positions.
        groups : mapping of str to sequence of str, optional
            Further columns of the items, such as documents. They can be units or subsets.
        name : str
            Name of the test set, by default empty. It also determines the random stream.
        warnings : sequence of str
            Warnings to show with results.

        Returns
        -------
        Counts
            Give them to `compare_all`, `compare_sets` or `power`.

        Raises
        ------
        InputError
            Lengths differ, or ids or names are not distinct.

        Examples
        --------
        >>> from sigdask import compare_all
        >>> counts = Counts.from_labels(["x", "y", "x"], {"new": ["x", "y", "x"], "old": ["x", "x", "y"]})
        >>> [(r.metric, r.score_a, r.score_b) for r in compare_all(counts, metrics="accuracy")]
        [('accuracy', 1.0, 0.3333333333333333)]
        """
        columns = [Texts.from_values(column).encode() for column in (gold, *predictions.values())]
        return _build_label_counts(columns, tuple(predictions), are_sets=False, **items)

    @staticmethod
    def from_numbers(
        gold: Sequence[float] | Array,
        predictions: Mapping[str, Sequence[float] | Array],
        **items: Unpack[ItemArguments],
    ) -> Counts:
        """Make counts from one number per item: the gold value and each system's prediction.

        Parameters
        ----------
        gold : sequence of float, length n_items
            Gold values.
        predictions : mapping of system name to sequence of float, length n_items
            Predicted numbers. None may be missing.
        ids : sequence of str, optional
            Item ids, by default positions.
        groups : mapping of str to sequence of str, optional
            Further columns of the items, such as documents. They can be units or subsets.
        name : str
            Name of the test set, by default empty. It also determines the random stream.
        warnings : sequence of str
            Warnings to show with results.

        Returns
        -------
        Counts
            Give them to `compare_all`, `compare_sets` or `power`.

        Raises
        ------
        InputError
            A number is missing or is not a number, lengths differ, or ids or names are not distinct.

        Examples
        --------
        >>> from sigdask import compare_all
        >>> counts = Counts.from_numbers([1.0, 2.0, 4.0], {"new": [1.0, 2.5, 4.0], "old": [2.0, 3.0, 3.0]})
        >>> [(r.score_a, r.score_b) for r in compare_all(counts, metrics="MSE")]
        [(0.08333333333333333, 1.0)]
        """
        columns = {}
        for key, values in (("gold values", gold), *predictions.items()):
            columns[key] = numbers = np.asarray(convert_scores(values, key), np.float64)
            if not np.isfinite(numbers).all():
                position = int(np.argmin(np.isfinite(numbers))) + 1
                raise InputError(f"{key}: the item at position {position} has no finite number; every item needs one")
        n_items = check_lengths({key: len(values) for key, values in columns.items()})
        gold_values, *systems = (to_object_array(values.tolist()) for values in columns.values())
        return Counts(
            systems=tuple(predictions),
            fields={"items": np.ones((n_items, 1), np.int64)},
            outputs=Outputs(tuple(systems), gold_values),
            suggested=("MAE", "RMSE"),
            n_items=n_items,
            **items,
        )

    @staticmethod
    def from_texts(
        references: Sequence[str] | Sequence[Sequence[str]],
        systems: Mapping[str, Sequence[str]],
        **items: Unpack[ItemArguments],
    ) -> Counts:
        """Make counts from texts, such as translations or transcripts, and their references.

        Parameters
        ----------
        references : sequence of str, length n_items, or sequence of such sequences
            A reference text for each item, or several such lists, as for sacrebleu.
        systems : mapping of system name to sequence of str, length n_items
            Text of each item.
        ids : sequence of str, optional
            Item ids, by default positions.
        groups : mapping of str to sequence of str, optional
            Further columns of the items, such as documents. They can be units or subsets.
        name : str
            Name of the test set, by default empty. It also determines the random stream.
        warnings : sequence of str
            Warnings to show with results.

        Returns
        -------
        Counts
            Give them to `compare_all`, `compare_sets` or `power`.

        Raises
        ------
        InputError
            A value is not a text, lengths differ, or ids or names are not distinct.

        Examples
        --------
        >>> from sigdask import compare_all
        >>> counts = Counts.from_texts(["a cat sat", "it is here"], {"x": ["a cat sat", "here"], "y": ["cat", "it"]})
        >>> [(r.metric, r.score_a, r.score_b) for r in compare_all(counts, metrics="WER")]
        [('WER', 0.3333333333333333, 0.6666666666666666)]
        """
        texts = {key: checks.check_texts(column, f"{key!r}") for key, column in systems.items()}
        is_single = isinstance(references, str) or all(isinstance(value, str) for value in references)
        columns = {"gold": references} if is_single else {f"gold[{k}]": own for k, own in enumerate(references)}
        gold = {label: checks.check_texts(column, label) for label, column in columns.items()}
        n_items = check_lengths({label: len(column) for label, column in (*gold.items(), *texts.items())})
        ones = np.ones((n_items, 1), np.int64)
        return Counts(
            systems=tuple(systems),
            fields={"segments": ones, "items": ones},
            outputs=Outputs(
                tuple(map(to_object_array, texts.values())), to_object_array([*zip(*gold.values(), strict=True)])
            ),
            suggested=("BLEU", "chrF"),
            n_items=n_items,
            **items,
        )

    @staticmethod
    def from_label_sets(
        gold: Sequence[Iterable[Any]] | Texts,
        predictions: Mapping[str, Sequence[Iterable[Any]] | Texts],
        **items: Unpack[ItemArguments],
    ) -> Counts:
        """Make counts from any number of labels per item: gold and each system's prediction.

        Parameters
        ----------
        gold : sequence of iterables of str, length n_items
            Gold labels of each item, which may be empty. Or encoded `Texts` of cells of `join_labels`.
        predictions : mapping of system name to sequence of iterables of str, length n_items
            Predicted labels.
        ids : sequence of str, optional
            Item ids, by default positions.
        groups : mapping of str to sequence of str, optional
            Further columns of the items, such as documents. They can be units or subsets.
        name : str
            Name of the test set, by default empty. It also determines the random stream.
        warnings : sequence of str
            Warnings to show with results.

        Returns
        -------
        Counts
            Give them to `compare_all`, `compare_sets` or `power`.

        Raises
        ------
        InputError
            Lengths differ, or ids or names are not distinct.

        Examples
        --------
        >>> from sigdask import compare_all
        >>> gold = [["x", "y"], [], ["y"]]
        >>> counts = Counts.from_label_sets(gold, {"new": [["x", "y"], [], ["x"]], "old": [["x"], ["y"], ["x"]]})
        >>> [(r.score_a, r.score_b) for r in compare_all(counts, metrics="micro-f1")]
        [(0.6666666666666666, 0.3333333333333333)]
        """
        columns = [
            column if isinstance(column, Texts) else Texts.from_values(map(join_labels, column)).encode()
            for column in (gold, *predictions.values())
        ]
        return _build_label_counts(columns, tuple(predictions), are_sets=True, **items)

    @staticmethod
    def from_responses(
        of_interest: Sequence[bool] | Array,
        found: Mapping[str, Sequence[bool] | Array],
        **items: Unpack[ItemArguments],
    ) -> Counts:
        """Make counts from responses: which are right, and which each system gave.

        Parameters
        ----------
        of_interest : sequence of bool, length n_items
            Whether each response (relation, term, document) is right. Gold items that no system found are rows as
            well.
        found : mapping of system name to sequence of bool, length n_items
            Whether the system gave each response.
        ids : sequence of str, optional
            Item ids, by default positions.
        groups : mapping of str to sequence of str, optional
            Further columns of the items, such as documents. They can be units or subsets.
        name : str
            Name of the test set, by default empty. It also determines the random stream.
        warnings : sequence of str
            Warnings to show with results.

        Returns
        -------
        Counts
            Give them to `compare_all`, `compare_sets` or `power`.

        Raises
        ------
        InputError
            Lengths differ, or ids or names are not distinct.

        Examples
        --------
        >>> from sigdask import compare_all
        >>> counts = Counts.from_responses([1, 1, 1, 0], {"new": [1, 1, 0, 0], "old": [1, 0, 0, 1]})
        >>> [(r.metric, r.score_a, r.score_b) for r in compare_all(counts, metrics="precision")]
        [('precision', 1.0, 0.5)]
        """
        n_items = check_lengths({"of interest": len(of_interest), **{s: len(f) for s, f in found.items()}})
        gold = np.asarray(of_interest, dtype=bool).astype(np.int8)[:, None]  # (n_items, 1)
        predicted = np.column_stack([np.asarray(f, dtype=bool) for f in found.values()]).astype(np.int8)
        return Counts(
            systems=tuple(found),
            fields={"tp": predicted * gold, "predicted": predicted, "gold": gold},
            outputs=Outputs(tuple(predicted.astype(bool).T.astype(object)), gold[:, 0].astype(bool).astype(object)),
            suggested=("recall", "precision", "f1"),
            n_items=n_items,
            **items,
        )


def _build_label_counts(
    columns: Sequence[Texts], systems: tuple[str, ...], *, are_sets: bool, **items: Unpack[ItemArguments]
) -> Counts:
    """Return counts of a column of gold labels and one of each system; labels that only systems use come last."""
    gold, *predictions = columns
    n_items = check_lengths(dict(zip(("gold", *systems), map(len, columns), strict=True)))
    gold_labels, *labels_of_systems = ({*(list_labels(c) if are_sets else c.levels)} for c in columns)
    labels = tuple(sorted(gold_labels))
    extra_labels = tuple(sorted(set().union(*labels_of_systems) - gold_labels))
    build_fields = build_set_fields if are_sets else LabelFields.from_columns
    get_output = partial(_get_labels, columns, split_labels if are_sets else str)
    return Counts(
        systems=systems,
        fields=build_fields(gold, predictions, labels + extra_labels),
        n_items=n_items,
        labels=labels,
        predicted_labels=extra_labels,
        outputs=Outputs(LazyOutputs(len(predictions), get_output), get_output(-1)),
        suggested=("micro-f1", "macro-f1", "subset-accuracy") if are_sets else ("accuracy",),
        **items,
    )


def _get_labels(columns: Sequence[Texts], convert: Callable[[str], Any], system: int) -> Array:
    """Return the labels, or sets of labels, of a system's items; those of gold for -1."""
    column = columns[system + 1]
    return np.asarray(to_object_array([convert(cell) for cell in column.levels])[column.codes])


def _check_replicate(first: Counts, other: Counts, r: int) -> None:
    """Raise if a replicate has other systems or other items than the first one."""
    if other.systems != first.systems:
        names = " and ".join(", ".join(counts.systems) for counts in (first, other))
        raise InputError(f"replicates 1 and {r} have different systems: {names}")
    if (first.ids != other.ids and {*(first.ids or ())} != {*(other.ids or ())}) or other.n_items != first.n_items:
        numbers = f"{first.n_items:,} and {other.n_items:,}"
        raise InputError(f"replicates 1 and {r} have different items ({numbers}); give each replicate the same items")


UNKNOWN = -1
"""Value in `gold` of a candidate without a judgement."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """A list of candidates, such as word pairs, with a judgement and the scores of measures that rank them.

    Attributes
    ----------
    gold : int8 array, shape (n_candidates,)
        1 if a candidate is true, 0 if false, `UNKNOWN` if it is not judged. Given as a sequence of bool, with None or
        NaN for candidates that are not judged.
    scores : mapping of str to float64 array, shape (n_candidates,)
        Scores of each measure, given as any sequences of float. All must be finite.
    smaller : collection of str
        Measures for which a smaller score is better.
    ids : Texts or None
        Unique ids, by default positions.
    name : str
        Name of the test set, by default empty. It also determines the random stream.
    notes : tuple of str
        Notes on how the candidates were read, for reports.

    Raises
    ------
    InputError
        The candidates cannot be ranked. The message names the problem and the candidate.
    """

    gold: Any
    scores: Mapping[str, Any]
    smaller: Collection[str] = ()
    ids: Sequence[str] | None = None
    name: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        gold = np.array([UNKNOWN if x is None or x != x else int(x) for x in self.gold], np.int8)  # noqa: PLR0124  # NaN
        scores = {measure: np.asarray(column, np.float64) for measure, column in self.scores.items()}
        lengths = {"gold": len(gold), **{measure: len(column) for measure, column in scores.items()}}
        ids = None if self.ids is None else Texts.from_values(self.ids).decode()
        for name, value in {"gold": gold, "scores": scores, "ids": ids}.items():
            object.__setattr__(self, name, value)
        if not scores:
            raise InputError("no measure: give a column of scores to rank candidates by")
        check_unique(self.measures, "measure")
        for measure in sorted({*self.smaller} - scores.keys()):
            raise InputError(f"smaller: no measure {measure!r}; measures: {', '.join(scores)}")
        check_lengths(lengths if ids is None else lengths | {"ids": len(ids)})
        if ids is not None:
            check_unique(ids, "id")
        columns: dict[str, Any] = {"gold": (gold, np.isin(gold, (0, 1, UNKNOWN)), "0 or 1")}
        columns |= {repr(m): (column, np.isfinite(column), "a finite number") for m, column in scores.items()}
        for label, (column, is_right, expected) in columns.items():
            if not is_right.all():
                k = int(np.argmin(is_right))
                item = f"candidate {k + 1}" if ids is None else f"candidate {ids[k]!r}"
                raise InputError(f"{label} of {item} is {column[k]}: must be {expected}")

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures."""
        return tuple(self.scores)

    def check_gold(self) -> None:
        """Raise InputError if no candidate is judged, or if all are true or all false."""
        for value, label in ((1, "true"), (0, "false")):
            if value not in self.gold:
                raise InputError(
                    f"none of {len(self):,} candidates is {label}: precision needs both true and false candidates",
                    remedy="check the gold column",
                )

    @property
    def oriented(self) -> dict[str, Any]:
        """Scores of each measure with signs such that larger ones are better."""
        return {measure: -column if measure in self.smaller else column for measure, column in self.scores.items()}
