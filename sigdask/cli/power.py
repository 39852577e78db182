"""`sigdask power`: estimates how many units a difference needs, or which difference can be detected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sigdask import api
from sigdask.analysis.power.find import PowerSettings, check_question
from sigdask.analysis.power.search import PowerQuestion
from sigdask.cli.compare import read_systems
from sigdask.cli.output.progress import ProgressSteps, show_progress
from sigdask.cli.output.say import LOG, be_quiet, log_note, output_columns, print_text
from sigdask.cli.output.write import check_outputs, write_json, write_tables
from sigdask.errors import InputError, UnfinishedError
from sigdask.execution import clusters
from sigdask.options import OPTIONS, POWER_OPTIONS
from sigdask.report.terminal.power import render
from sigdask.text import format_count

if TYPE_CHECKING:
    from sigdask.report.presentable import Powers


def power(**options: Any) -> None:
    """Estimate power, and print and write the results."""
    _check_options(options)
    if options["quiet"]:
        be_quiet()
    with show_progress(quiet=options["quiet"]) as steps:
        results = _estimate_power(options, steps)
    files = {name: options[f"{name}_file"] for name in ("json", "markdown", "latex")}
    if "-" not in files.values():
        print_text(render(results, everything=options["everything"], width=output_columns()))
    write_json(files["json"], results.json_parts)
    write_tables(files, results.paper_tables)


def _check_options(options: dict[str, Any]) -> None:
    """Raise, before anything is read, if options contradict each other or a file cannot be written."""
    check_outputs(**{name: options[f"{name}_file"] for name in ("json", "markdown", "latex")})
    clusters.check_cluster(options["cluster"])
    for declared in (OPTIONS, POWER_OPTIONS):
        for name in declared.keys() & options.keys() - {"metrics", "adjust"}:
            declared[name].check(name, options[name] if options[name] != () else None)
    if options["difference"] is not None and options["units"] is not None:
        raise InputError("--difference and --units: give one of them; the other is what is found")
    question = PowerQuestion(options["power"], options["difference"], options["units"])
    check_question(
        question, PowerSettings(options["alternative"], options["alpha"], options["adjust"], options["samples"])
    )


def _estimate_power(options: dict[str, Any], steps: ProgressSteps) -> Powers:
    counts, format_ = read_systems({**options, "by": None}, steps)
    log_note(
        f"read as {format_}: {format_count(counts.n_systems, 'system')}, {format_count(counts.of_one.n_items, 'item')}"
    )
    if not options["metrics"]:
        log_note(f"metric: {', '.join(counts.suggested)} (choose with --metric)")
    for warning in counts.notices:
        LOG.warning(warning)
    passed_on = (
        "difference",
        "units",
        "power",
        "baseline",
        "alternative",
        "alpha",
        "adjust",
        "samples",
        "seed",
        "workers",
    )
    try:
        return api.power(
            counts,
            **{name: options[name] for name in passed_on},
            metrics=options["metrics"] or None,
            pairs=options["pairs"] or None,
            unit=options["unit"] or None,
            cluster=options["cluster"],
            progress=_SampleProgress(steps),
            cache=not options["no_cache"],
        )
    except KeyboardInterrupt:
        raise UnfinishedError("interrupted; nothing was written") from None


class _SampleProgress:
    """Display of the number of samples drawn, and of the extraction before that.

    Parameters
    ----------
    steps : ProgressSteps
        Of the command.
    """

    def __init__(self, steps: ProgressSteps) -> None:
        self._steps = steps
        self.extracting = steps.extracting

    def __call__(self, done: int, total: int) -> None:
        """Show how many samples are drawn."""
        self._steps.sampling(done, total)
