"""`sigdask power`: how many units a difference needs, and which difference the present ones find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sigdask import api
from sigdask.analysis.power.find import PowerSettings, checked
from sigdask.analysis.power.search import PowerQuestion
from sigdask.cli.compare import read_systems
from sigdask.cli.output.progress import ProgressSteps, progress
from sigdask.cli.output.say import LOG, be_quiet, note, say, width
from sigdask.cli.output.write import check_outputs, write_json, write_tables
from sigdask.errors import InputError, UnfinishedError
from sigdask.execution import clusters
from sigdask.options import OPTIONS, POWER
from sigdask.report.terminal.power import render
from sigdask.text import count_noun

if TYPE_CHECKING:
    from sigdask.report.presentable import Powers


def power(**options: Any) -> None:
    """Estimate power, and print and write the results."""
    _check(options)
    if options["quiet"]:
        be_quiet()
    with progress(quiet=options["quiet"]) as steps:
        found = _found(options, steps)
    files = {name: options[f"{name}_file"] for name in ("json", "markdown", "latex")}
    if "-" not in files.values():
        say(render(found, everything=options["everything"], width=width()))
    write_json(files["json"], found.json_parts)
    write_tables(files, found.paper_tables)


def _check(options: dict[str, Any]) -> None:
    """Refuse, before anything is read, what makes no sense or cannot be written."""
    check_outputs(**{name: options[f"{name}_file"] for name in ("json", "markdown", "latex")})
    clusters.check(options["cluster"])
    for declared in (OPTIONS, POWER):
        for name in declared.keys() & options.keys() - {"metrics", "adjust"}:
            declared[name].check(name, options[name] if options[name] != () else None)
    if options["difference"] is not None and options["units"] is not None:
        raise InputError("--difference and --units: give one of them; the other is what is found")
    sought = PowerQuestion(options["power"], options["difference"], options["units"])
    checked(sought, PowerSettings(options["alternative"], options["alpha"], options["adjust"], options["samples"]))


def _found(options: dict[str, Any], steps: ProgressSteps) -> Powers:
    counts, format_ = read_systems({**options, "by": None}, steps)
    note(f"read as {format_}: {count_noun(counts.n_systems, 'system')}, {count_noun(counts.of_one.n_items, 'item')}")
    if not options["metrics"]:
        note(f"metric: {', '.join(counts.suggested)} (choose with --metric)")
    for warning in counts.notices:
        LOG.warning(warning)
    asked = ("difference", "units", "power", "baseline", "alternative", "alpha", "adjust", "samples", "seed", "workers")
    try:
        return api.power(
            counts,
            **{name: options[name] for name in asked},
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
    """Shows samples, and outputs that are extracted before.

    Parameters
    ----------
    steps : ProgressSteps
        Of the command.
    """

    def __init__(self, steps: ProgressSteps) -> None:
        self._steps = steps
        self.extracting = steps.extracting

    def __call__(self, done: int, total: int) -> None:
        """Show samples."""
        self._steps.sampling(done, total)
