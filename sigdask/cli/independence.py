"""`sigdask independence`: tests whether two labellings of the same items are independent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sigdask.api import independence_all
from sigdask.cli.compare import read_systems
from sigdask.cli.output.progress import show_progress
from sigdask.cli.output.say import LOG, be_quiet, log_note, output_columns, print_text
from sigdask.cli.output.write import check_outputs, write_json, write_tables
from sigdask.errors import InputError, UnfinishedError
from sigdask.execution import clusters
from sigdask.formats import parse_source
from sigdask.options import PERMUTATION_OPTIONS, IndependenceOptions, fill_permutation_options
from sigdask.report.terminal.independence import render
from sigdask.text import format_count

if TYPE_CHECKING:
    from sigdask.counts import Counts


UNUSED_OPTIONS = {
    "unit": (), "by": None, "system_column": None, "score_column": None, "decimal": None, "missing": None,
    "min_items": None, "references": (), "documents": None,
}  # fmt: skip
"""What is said of files by other commands."""


def independence(**options: Any) -> None:
    """Test the labellings for independence, and print and write the results."""
    files = {name: options[f"{name}_file"] for name in ("json", "markdown", "latex")}
    check_outputs(**files)
    settings = _build_settings(options)
    if options["quiet"]:
        be_quiet()
    with show_progress(quiet=options["quiet"]) as steps:
        counts, reference = _read_labellings(options, steps)
        settings["progress"] = steps
        try:
            results = independence_all(
                counts, metrics=options["metrics"], reference=reference, within=options["within"], **settings
            )
        except KeyboardInterrupt:
            raise UnfinishedError("interrupted; nothing was written") from None
    for warning in results.warnings:
        LOG.warning(warning)
    if "-" not in files.values():
        print_text(render(results, width=output_columns()))
    write_json(files["json"], results.json_parts)
    write_tables(files, results.paper_tables)


def _build_settings(options: dict[str, Any]) -> IndependenceOptions:
    """Return the settings of the tests of independence; raise if an option is invalid."""
    clusters.check_cluster(options["cluster"])
    named = {name: options[name] for name in PERMUTATION_OPTIONS if options.get(name) is not None}
    return fill_permutation_options(IndependenceOptions(**named, second_run=not options["no_second_run"]))  # type: ignore[typeddict-item]


def _read_labellings(options: dict[str, Any], steps: Any) -> tuple[Counts, str]:
    """Return the labellings to test, and the name of the reference labelling."""
    files, gold = options["files"], options["gold"]
    reference = options["gold_column"] or "gold"
    if gold is not None:
        reference = parse_source(gold).system
    elif len(files) > 1:
        *files, last = files
        source = parse_source(last)
        gold, reference = str(source.path), source.system
    if gold is not None and options["gold_column"] is None and not files:
        raise InputError("no labelling given beside --gold; name a file")
    within = () if options["within"] is None else (options["within"],)
    counts, format_ = read_systems({**UNUSED_OPTIONS, **options, "systems": files, "gold": gold, "unit": within}, steps)
    log_note(
        f"read as {format_}: {format_count(counts.n_systems, 'labelling')}, {format_count(counts.n_items, 'item')}"
    )
    return counts, reference
