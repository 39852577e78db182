"""`sigdask power`: estimates how many units a difference needs, or which difference can be detected."""

from __future__ import annotations

from typing import Any

from sigdask import options as declared
from sigdask.analysis.power import check_question
from sigdask.cli import declare
from sigdask.cli.compare import SYSTEMS, read_systems
from sigdask.cli.streams import LOG, show_progress
from sigdask.cli.write import present_analysis
from sigdask.execution import clusters
from sigdask.options import PowerOptions, fill_options, select_options
from sigdask.report import analyses

GROUPS = {
    "Question": declare.options(declared.PowerQuestionOptions),
    "Files": declare.FILES,
    "What to compare": (*declare.options(declared.PowerOptions, "metrics", "pairs", "baseline"), declare.NAME),
    "The test": declare.options(declared.PowerTestOptions),
    "Where to run": (*declare.RUN, *declare.CACHE),
    "Output": (*declare.output("json", "markdown", "latex"), declare.everything("pair"), declare.QUIET),
}

EXAMPLES = (
    "sigdask power scores.csv --difference 0.01",
    "sigdask power new.txt old.txt --gold reference.txt -m BLEU --units 2000 --power 0.9",
    "sigdask power runs.csv --baseline base --difference 0.02 --adjust holm --json power.json",
)


@declare.command(SYSTEMS, groups=GROUPS, examples=EXAMPLES)
def command(**options: Any) -> None:
    """Find how many units a test needs to detect a difference, or which difference it can detect.

    SYSTEM is as in `compare`. Power is simulated: samples are drawn from the observed pairs of units, reweighted so
    that the systems differ by D, and the test is applied to each sample. For scores of 0 and 1, such as accuracy,
    power is computed exactly.
    """
    clusters.check_cluster(options["cluster"])
    selected = select_options(PowerOptions, options)
    check_question(fill_options(PowerOptions, selected))
    with show_progress() as steps:
        steps.counting = ("simulating", "samples", "simulating")
        counts = read_systems(options)
        for warning in counts.notices:
            LOG.warning(warning)
        results = analyses.power(counts, **selected | {"progress": steps})
    present_analysis(options["outputs"], results, everything=options["everything"])
