"""`sigdask power`: estimates how many units a difference needs, or which difference can be detected."""

from __future__ import annotations

from typing import Any

from sigdask.analysis.power import build_question
from sigdask.cli.compare import read_systems
from sigdask.cli.progress import show_analysis
from sigdask.cli.streams import LOG
from sigdask.cli.write import list_outputs, present_analysis
from sigdask.errors import InputError
from sigdask.execution import clusters
from sigdask.options import PowerOptions, fill_options, select_options
from sigdask.report import analyses


def power(**options: Any) -> None:
    """Estimate power, and print and write the results."""
    outputs = list_outputs(options, "json", "markdown", "latex")
    clusters.check_cluster(options["cluster"])
    selected = select_options(PowerOptions, options)
    if options["difference"] is not None and options["units"] is not None:
        raise InputError("--difference and --units: give only one of them; sigdask computes the other")
    build_question(fill_options(PowerOptions, selected))
    with show_analysis(quiet=options["quiet"]) as steps:
        steps.counting = ("simulating", "samples", "simulating")
        counts = read_systems(options)
        for warning in counts.notices:
            LOG.warning(warning)
        results = analyses.power(counts, **selected | {"progress": steps})
    present_analysis(outputs, results, everything=options["everything"])
