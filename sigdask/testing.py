"""Checks for formats and metrics of other packages, to call in their tests."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.formats import read
from sigdask.formats.reading.options import DEFAULTS, Options
from sigdask.formats.registry import FORMATS, add_installed_formats
from sigdask.metrics import BlackBox, Metric, find_metric
from sigdask.metrics.base import BoundMetric

__all__ = ["check_metric", "check_reader"]


def check_reader(name: str, *files: Path | str, gold: Path | str | None = None, options: Options = DEFAULTS) -> Counts:
    """Check a format of another package on example files, and return what they are read as.

    The signature, if there is one, recognises the files.

    Parameters
    ----------
    name : str
        Name of the entry point in the group `sigdask.formats`.
    *files : Path or "NAME=PATH"
        Files of text in this format, one of each system.
    gold : Path, optional
        Gold-standard file.
    options : Options
        Options of reading.

    Returns
    -------
    Counts
        What `read` makes of the files. Compare its `systems`, `ids` and `fields` with values that you know.

    Raises
    ------
    AssertionError
        A check fails. The message says which.
    """
    add_installed_formats()
    assert name in FORMATS, f"there is no format {name!r}; is the package with its entry point installed?"
    declared = FORMATS[name]
    counts = read(*files, gold=gold, format=name, options=options)
    if declared.signature:
        found = read(*files, gold=gold, options=options).format
        assert found == name, f"the signature does not recognise its files: they are read as {found}"
    return counts


def check_metric(
    metric: str | Metric | BlackBox, counts: Counts, expected: Mapping[str, float], *, tolerance: float = 1e-9
) -> None:
    """Check a metric of another package on data whose scores are known.

    Each system has its expected score. A second call repeats it. Its formula scores many sums at once
    as one by one. Workers can import it.

    Parameters
    ----------
    metric : str, Metric or BlackBox
        The metric, or its name.
    counts : Counts
        Systems on one test set.
    expected : mapping of str to float
        The score of each system.
    tolerance : float
        Maximum difference from an expected score.

    Raises
    ------
    AssertionError
        A check fails. The message says which.
    """
    found = find_metric(metric, counts) if isinstance(metric, str) else metric
    if isinstance(found, BlackBox):
        scores = [_score_outputs(found, counts) for _ in range(2)]
        assert scores[0] == scores[1], f"{found.name}: a second call returns {scores[1]}, the first {scores[0]}"
        pickle.dumps(found)  # as workers receive it
    else:
        scores = [_score_sums(found, counts)]
    for system, score in expected.items():
        value = scores[0][counts.systems.index(system)]
        assert abs(value - score) <= tolerance, f"{found.name} of {system}: {value}, expected {score}"


def _score_outputs(metric: BlackBox, counts: Counts) -> list[float]:
    assert counts.outputs is not None, f"{metric.name}: these data have no outputs"
    gold = None if counts.outputs.gold is None else [*counts.outputs.gold]
    return [float(metric.function([*outputs], gold)) for outputs in counts.outputs.systems]


def _score_sums(metric: Metric, counts: Counts) -> list[float]:
    bound = metric.bind(counts)
    assert isinstance(bound, BoundMetric), f"{metric.name}: only metrics of sums are checked"
    shape = counts.n_items, counts.n_systems
    rows = np.stack([np.broadcast_to(bound.get_field(name, counts), shape) for name in bound.fields], axis=-1)
    totals = rows.sum(axis=0)
    at_once = np.asarray(bound.form.score(np.stack([totals, totals])))[0]
    single = np.array([float(bound.form.score(total)) for total in totals])
    assert np.isfinite(at_once).all(), f"{metric.name}: a score is not finite: {at_once.tolist()}"
    assert (at_once == single).all(), f"{metric.name}: scores of arrays differ from those of their rows"
    return [float(score) for score in single]
