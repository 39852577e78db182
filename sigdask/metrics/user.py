"""User-defined metrics: `@metric` for summed counts, any other function on whole outputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.io import addresses
from sigdask.metrics.base import BlackBox, BoundMetric, Metric
from sigdask.metrics.forms import Formula


@overload
def metric(function: Callable[..., Any], /) -> Metric: ...
@overload
def metric(
    *, fields: tuple[str, ...] | None = None, name: str | None = None, higher_is_better: bool = True
) -> Callable[[Callable[..., Any]], Metric]: ...
def metric(
    function: Callable[..., Any] | None = None,
    /,
    *,
    fields: tuple[str, ...] | None = None,
    name: str | None = None,
    higher_is_better: bool = True,
) -> Any:
    """Make a metric from a vectorised function of summed counts.

    Parameters
    ----------
    function : callable
        Takes one array for each field: sums over items, of any shape. Returns scores of the same shape, as float.
    fields : tuple of str, optional
        Fields that the function takes, by default the names of its parameters. `Counts.fields` lists those of data.
    name : str, optional
        By default `module:function`. The command line and workers import the function by this name.
    higher_is_better : bool
        Whether a higher score is better, by default True.

    Returns
    -------
    Metric
        Give it to `compare_all` in a list: `metrics=[my_metric]`. If data lack a field, this raises InputError.

    Examples
    --------
    >>> @metric
    ... def fowlkes_mallows(tp, predicted, gold):
    ...     return tp / (predicted * gold) ** 0.5
    >>> fowlkes_mallows.name
    'sigdask.metrics.user:fowlkes_mallows'
    """
    if function is None:
        return partial(metric, fields=fields, name=name, higher_is_better=higher_is_better)
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
        return BoundMetric(self.name, self.fields, Formula(self.name, self.function), self.higher_is_better)


def black_box(function: Callable[..., float], *, name: str | None = None, higher_is_better: bool = True) -> BlackBox:
    """Make a metric from a function `f(outputs, gold) -> float` of whole outputs.

    This works for any score, but is slow: the function is called twice for each trial and pair. If it raises an
    exception or returns no finite number, the comparison raises InputError.

    Parameters
    ----------
    function : callable
        Gets a list of a system's outputs and a list of the gold standard, with one entry for each item. Without gold
        data, the second argument is None. It must return the same number for the same outputs.
    name : str, optional
        By default `module:function`. The command line and workers import the function by this name.
    higher_is_better : bool
        Whether a higher score is better, by default True.

    Returns
    -------
    BlackBox
        Give it to `compare_all` in a list: `metrics=[my_metric]`.

    Examples
    --------
    >>> black_box(max, name="best").name
    'best'
    """
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
