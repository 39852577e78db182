"""User-defined metrics: `@metric` for summed counts, any other function on whole outputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.io import addresses
from sigdask.metrics.base import BlackBox, BoundMetric, Metric
from sigdask.metrics.forms import Formula


def metric(
    function: Callable[..., Any] | None = None,
    /,
    *,
    of: Literal["sums", "outputs"] = "sums",
    fields: tuple[str, ...] | None = None,
    name: str | None = None,
    higher_is_better: bool = True,
) -> Any:
    """Make a metric from a function, of summed counts or of whole outputs.

    A function of outputs works for any score, but is slow: it is called twice for each trial and pair. If it raises an
    exception, returns no finite number, or other numbers when it is called again, the comparison raises InputError.

    Parameters
    ----------
    function : callable
        Of sums: takes one array for each field, sums over items, of any shape, and returns scores of the same shape.
        Of outputs: takes a list of a system's outputs and a list of the gold standard (None without gold data), with
        one entry for each item, and returns a number, always the same one for the same outputs.
    of : {"sums", "outputs"}
        What the function takes, by default "sums".
    fields : tuple of str, optional
        Fields that a function of sums takes, by default the names of its parameters. `Counts.fields` lists those of
        data.
    name : str, optional
        By default `module:function`. The command line and workers import the function by this name.
    higher_is_better : bool
        Whether a higher score is better, by default True.

    Returns
    -------
    Metric or BlackBox
        Give it to `compare_all`: `metrics=[my_metric]`. If data lack a field, this raises InputError.

    Examples
    --------
    >>> @metric
    ... def fowlkes_mallows(tp, predicted, gold):
    ...     return tp / (predicted * gold) ** 0.5
    >>> fowlkes_mallows.name
    'sigdask.metrics.user:fowlkes_mallows'
    >>> metric(max, of="outputs", name="best").name
    'best'
    """
    if of not in {"sums", "outputs"}:
        raise InputError(f"of = {of!r}: must be one of sums, outputs")
    if function is None:
        return partial(metric, of=of, fields=fields, name=name, higher_is_better=higher_is_better)
    if of == "outputs":
        if fields is not None:
            raise TypeError("fields= is for a metric of sums; a metric of outputs takes outputs and gold")
        return black_box(function, name=name, higher_is_better=higher_is_better)
    title = name or f"{function.__module__}:{function.__qualname__}"
    takes = fields or tuple(inspect.signature(function).parameters)
    return Metric(title, _BindFields(title, takes, function, higher_is_better))


@dataclass(frozen=True, slots=True)
class _BindFields:
    name: str
    fields: tuple[str, ...]
    function: Callable[..., Any]
    higher_is_better: bool

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "fields", self.name, self.fields, self.function, self.higher_is_better

    def __call__(self, counts: Counts) -> BoundMetric:
        for field in self.fields:
            if field not in counts.fields:
                present_fields = ", ".join(list(counts.fields)[:8])
                raise InputError(
                    f"metric {self.name!r} needs the field {field!r}, which these data lack; their fields are "
                    f"{present_fields}"
                )
        formula = Formula(self.name, self.function)
        totals = np.stack(np.broadcast_arrays(*(counts.field(name).sum(axis=0) for name in self.fields)), axis=-1)
        check_repeatable(self.name, *(formula.score(totals).tolist() for _ in range(2)))
        return BoundMetric(self.name, self.fields, formula, self.higher_is_better)


def check_repeatable(name: str, first: object, again: object) -> None:
    """Raise InputError if a metric gave other scores when it was called again with the same arguments."""
    if first != again:
        raise InputError(
            f"metric {name!r} gives other values for the same outputs: {first}, then {again}",
            remedy="remove what is random in it, or set its seed in each call",
        )


def black_box(function: Callable[..., float], *, name: str | None = None, higher_is_better: bool = True) -> BlackBox:
    """Make a metric from a function of whole outputs, as `metric(function, of="outputs")` does."""
    title = name or f"{function.__module__}:{getattr(function, '__qualname__', function)}"
    return BlackBox(title, function, higher_is_better)


def load_metric(name: str) -> Metric | BlackBox:
    """Import the metric named `module:attribute`; a plain function becomes a metric of whole outputs.

    Modules are searched on the path and in the current folder.

    Parameters
    ----------
    name : str
        Address of the metric or function, as `module:attribute`.

    Returns
    -------
    Metric or BlackBox
        The metric, as it is in the module, or made of the function.

    Raises
    ------
    InputError
        There is no such module or attribute, or it is neither a metric nor a function.
    """
    loaded = addresses.load_object(name, "metric")
    if isinstance(loaded, (Metric, BlackBox)):
        return loaded
    if callable(loaded):
        return black_box(loaded, name=name)
    raise InputError(f"metric {name!r}: is {type(loaded).__name__}, expected a metric or a function")
