"""`sigdask meta`: compares evaluation metrics by their agreement with human judgements.

It is `compare` of format `meta` under a metric of agreement, so results, stores and signatures are those of `compare`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from sigdask.analysis.agreement import build_format, find_unit, name_metric, sort_by_agreement
from sigdask.cli.compare import compare
from sigdask.cli.streams import log_note
from sigdask.errors import InputError
from sigdask.metrics import find_metric
from sigdask.options import AgreementOptions, check_options, select_options

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
    name, _, given = options["format_"].partition(":")
    if name != "meta":
        raise InputError(f"--format {name}: meta reads only tables and folders of its own format, meta")
    format_ = build_format(options["language_pair"], options["scores"], options["lower"], given)
    shared = {name: value for name, value in options.items() if name not in OWN}
    if not options["quiet"]:
        log_note(f"equivalent command: sigdask compare --format {format_} --metric {metric} --unit {unit}")
    human = () if options["human"] is None else (f"gold={options['human']}",)
    read = {"format_": format_, "columns": (*options["columns"], *human), "metrics": (metric,), "unit": (unit,)}
    compare(partial(sort_by_agreement, metric), **{**UNREAD, **shared, **read})
