"""`sigdask meta`: compares evaluation metrics by their agreement with human judgements.

It is `compare` of format `meta` under a metric of agreement, so results, stores and signatures are those of `compare`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from sigdask.analysis.comparison.pairs import bind_metric
from sigdask.cli.compare import compare
from sigdask.cli.streams import log_note
from sigdask.errors import InputError
from sigdask.metrics import find_metric
from sigdask.metrics.agreement import PREFIX
from sigdask.metrics.base import BoundAgreement
from sigdask.options import AgreementOptions, check_options, select_options
from sigdask.randomization.panels.cells import sort_metrics

if TYPE_CHECKING:
    from sigdask.counts import Counts

UNREAD = {
    "label_map": (), "align": "auto", "missing": None, "references": (), "documents": None, "group_file": None,
    "gold": None, "together": False,
}  # fmt: skip
"""Options of `compare` that `meta` lacks, at their defaults."""

OWN = ("human", "language_pair", "scores", "lower", "statistic", "level", "group", "undefined", "permute", "threshold",
       "signs")  # fmt: skip


def meta(**options: Any) -> None:
    """Read the scores, compare the metrics, and print and write the results."""
    check_options(AgreementOptions, select_options(AgreementOptions, options))
    metric, unit = name_metric(options), find_unit(options)
    find_metric(metric)  # a wrong one before files are read
    parts = {
        "pair": options["language_pair"],
        "scores": "+".join(options["scores"]),
        "lower": "+".join(options["lower"]),
    }
    own = [f"{key}={value}" for key, value in parts.items() if value]
    shared = {name: value for name, value in options.items() if name not in OWN}
    name, colon, given = options["format_"].partition(":")
    if name != "meta":
        raise InputError(f"--format {name}: meta reads only tables and folders of its own format, meta")
    format_ = ":".join(filter(None, (name, ",".join([*own, given] if colon else own))))
    if not options["quiet"]:
        log_note(f"equivalent command: sigdask compare --format {format_} --metric {metric} --unit {unit}")
    human = () if options["human"] is None else (f"gold={options['human']}",)
    read = {"format_": format_, "columns": (*options["columns"], *human), "metrics": (metric,), "unit": (unit,)}
    compare(partial(_sort_metrics, metric), **{**UNREAD, **shared, **read})


def _sort_metrics(metric: str, counts: Counts) -> Counts:
    """Return the data with the best metric first, so that differences are of the better one and a worse one."""
    bound = bind_metric(find_metric(metric), counts)
    assert isinstance(bound, BoundAgreement)
    return sort_metrics(counts, bound)


def name_metric(options: dict[str, Any]) -> str:
    """Return the name of the metric of agreement that the options describe."""
    statistic, permute = options["statistic"], options["permute"]
    if options["threshold"] and (statistic, permute) != ("accuracy", "pairs"):
        raise InputError(
            "--threshold: applies only to --statistic accuracy --permute pairs; acc-eq calibrates its threshold"
        )
    if permute == "pairs" and statistic not in {"accuracy", "acc-eq"}:
        raise InputError(
            f"--permute pairs: swaps decisions on pairs, but {statistic} is not a share of pairs; use "
            f"--statistic accuracy"
        )
    if statistic == "spa" and (options["level"] == "segment" or options["group"] != "none"):
        raise InputError("--statistic spa: applies to systems; leave out --level segment and --group")
    parts = {
        "level": options["level"] if options["level"] == "system" and statistic != "spa" else None,
        "group": options["group"] if options["group"] != "none" else None,
        "undefined": options["undefined"] if options["undefined"] != "omit" and statistic != "spa" else None,
        "permute": "pairs" if permute == "pairs" else None,
        "epsilon": f"{options['threshold']:.17g}" if options["threshold"] else None,
        "signs": options["signs"] if statistic == "spa" and options["signs"] != 1000 else None,
    }
    text = ",".join(f"{key}={value}" for key, value in parts.items() if value is not None)
    return f"{PREFIX}{statistic}{':' * bool(text)}{text}"


def find_unit(options: dict[str, Any]) -> str:
    """Return the swapped unit: cells, or the column of systems or segments."""
    swaps_systems = options["level"] == "system" and options["statistic"] != "spa"
    if options["permute"] == "scores" and swaps_systems:
        return "system"
    return {"segments": "segment", "systems": "system"}.get(options["permute"], "item")
