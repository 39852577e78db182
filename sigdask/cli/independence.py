"""`sigdask independence`: tests whether two labellings of the same items are independent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sigdask import formats
from sigdask.cli.compare import read_systems
from sigdask.cli.progress import show_analysis
from sigdask.cli.streams import LOG
from sigdask.cli.write import list_outputs, present_analysis
from sigdask.errors import InputError
from sigdask.execution import clusters
from sigdask.options import IndependenceOptions, fill_options, select_options
from sigdask.report.analyses import independence_all

if TYPE_CHECKING:
    from sigdask.counts import Counts


def independence(**options: Any) -> None:
    """Test the labellings for independence, and print and write the results."""
    outputs = list_outputs(options, "json", "markdown", "latex")
    clusters.check_cluster(options["cluster"])
    settings = fill_options(IndependenceOptions, select_options(IndependenceOptions, options))
    with show_analysis(quiet=options["quiet"]) as steps:
        counts, reference = _read_labellings(options)
        settings["progress"] = steps
        results = independence_all(
            counts, metrics=options["metrics"], reference=reference, within=options["within"], **settings
        )
    for warning in results.warnings:
        LOG.warning(warning)
    present_analysis(outputs, results)


def _read_labellings(options: dict[str, Any]) -> tuple[Counts, str]:
    """Return the labellings to test, and the name of the reference labelling."""
    files, gold = options["files"], options["gold"]
    gold_column = formats.parse_columns(options["columns"]).get("gold")
    reference = gold_column or "gold"
    if gold is not None:
        reference = formats.parse_source(gold).system
    elif len(files) > 1:
        *files, last = files
        source = formats.parse_source(last)
        gold, reference = str(source.path), source.system
    if gold is not None and gold_column is None and not files:
        raise InputError("--gold is the only labelling", remedy="name a file to compare with it")
    within = () if options["within"] is None else (options["within"],)
    counts = read_systems({**options, "systems": files, "gold": gold, "unit": within}, noun="labelling")
    return counts, reference
