"""Checks for formats and metrics of other packages, to call in their tests."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.formats import read
from sigdask.formats.reading.options import DEFAULTS, Options
from sigdask.formats.registry import FORMATS, add_installed_formats
from sigdask.metrics import BlackBox, Metric


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

    Each system has its expected score. A second call repeats it.

    Parameters
    ----------
    metric : str, Metric or BlackBox
        The metric, or its name.
    counts : Counts
        Two or more systems on one test set.
    expected : mapping of str to float
        The score of each system.
    tolerance : float
        Maximum difference from an expected score.

    Raises
    ------
    AssertionError
        A score differs from the expected one.
    InputError
        The metric fails, or gives another score when it is called again.
    """
    settings: Any = {"method": "randomization", "trials": 1, "second_run": False, "interval": "none"}
    results = compare_all(counts, metrics=[metric], pairs=[*pairwise(counts.systems)], **settings)
    scores = {name: score for r in results for name, score in ((r.a, r.score_a), (r.b, r.score_b))}
    for system, score in expected.items():
        assert abs(scores[system] - score) <= tolerance, f"{metric} of {system}: {scores[system]}, expected {score}"
