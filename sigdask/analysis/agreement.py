"""Comparisons of metrics by their agreement with people: the metric of agreement, what is swapped, and the format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sigdask.analysis.comparison.pairs import bind_metric
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.interface import spell
from sigdask.metrics import find_metric
from sigdask.metrics.base import BoundAgreement
from sigdask.metrics.regression import PREFIX
from sigdask.randomization.panels.cells import sort_metrics


def build_format(language_pair: str | None, scores: Sequence[str], lower: Sequence[str], given: str = "") -> str:
    """Return the format `meta` with its options, after which further options may be given."""
    parts = {"pair": language_pair, "scores": "+".join(scores), "lower": "+".join(lower)}
    own = [f"{key}={value}" for key, value in parts.items() if value]
    return ":".join(filter(None, ("meta", ",".join([*own, *([given] if given else [])]))))


def sort_by_agreement(metric: str, counts: Counts) -> Counts:
    """Return the data with the best metric first, so that differences are of the better one and a worse one."""
    bound = bind_metric(find_metric(metric), counts)
    assert isinstance(bound, BoundAgreement)
    return sort_metrics(counts, bound)


def name_metric(options: Mapping[str, Any]) -> str:
    """Return the name of the metric of agreement that the options describe."""
    statistic, permute = options["statistic"], options["permute"]
    if options["threshold"] and (statistic, permute) != ("accuracy", "pairs"):
        raise InputError(
            f"applies only to {spell('statistic', 'accuracy')} with {spell('permute', 'pairs')}; acc-eq calibrates "
            "its threshold",
            option=spell("threshold"),
        )
    default_level = "system" if statistic == "spa" else "segment"
    parts = {
        "level": options["level"] if options["level"] != default_level else None,
        "group": options["group"] if options["group"] != "none" else None,
        "undefined": options["undefined"] if options["undefined"] != "omit" and statistic != "spa" else None,
        "permute": "pairs" if permute == "pairs" else None,
        "epsilon": f"{options['threshold']:.17g}" if options["threshold"] else None,
        "signs": options["signs"] if statistic == "spa" and options["signs"] != 1000 else None,
    }
    text = ",".join(f"{key}={value}" for key, value in parts.items() if value is not None)
    return f"{PREFIX}{statistic}{':' * bool(text)}{text}"


def find_unit(options: Mapping[str, Any]) -> str:
    """Return the swapped unit: cells, or the column of systems or segments."""
    swaps_systems = options["level"] == "system" and options["statistic"] != "spa"
    if options["permute"] == "scores" and swaps_systems:
        return "system"
    return {"segments": "segment", "systems": "system"}.get(options["permute"], "item")
