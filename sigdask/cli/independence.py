"""`sigdask independence`: labellings of one test set beside another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sigdask.api import independence_all
from sigdask.cli.compare import read_systems
from sigdask.cli.output.progress import progress
from sigdask.cli.output.say import LOG, be_quiet, note, say, width
from sigdask.cli.output.write import check_outputs, write_json, write_tables
from sigdask.errors import InputError, UnfinishedError
from sigdask.execution import clusters
from sigdask.formats import parse_source
from sigdask.options import PERMUTING, HowPermuted, filled_permuted
from sigdask.report.terminal.independence import render
from sigdask.text import count_noun

if TYPE_CHECKING:
    from sigdask.counts import Counts


UNUSED = {
    "unit": (), "by": None, "system_column": None, "score_column": None, "decimal": None, "missing": None,
    "min_items": None, "references": (), "documents": None,
}  # fmt: skip
"""What is said of files by other commands."""


def independence(**options: Any) -> None:
    """Test the labellings for independence, and print and write the results."""
    files = {name: options[f"{name}_file"] for name in ("json", "markdown", "latex")}
    check_outputs(**files)
    how = _how(options)
    if options["quiet"]:
        be_quiet()
    with progress(quiet=options["quiet"]) as steps:
        counts, reference = _read(options, steps)
        how["progress"] = steps
        try:
            found = independence_all(
                counts, metrics=options["metrics"], reference=reference, within=options["within"], **how
            )
        except KeyboardInterrupt:
            raise UnfinishedError("interrupted; nothing was written") from None
    for warning in found.warnings:
        LOG.warning(warning)
    if "-" not in files.values():
        say(render(found, width=width()))
    write_json(files["json"], found.json_parts)
    write_tables(files, found.paper_tables)


def _how(options: dict[str, Any]) -> HowPermuted:
    """Return what is asked of the test; refused before anything is read where it cannot be."""
    clusters.check(options["cluster"])
    given = {name: options[name] for name in PERMUTING if options.get(name) is not None}
    return filled_permuted(HowPermuted(**given, second_run=not options["no_second_run"]))  # type: ignore[typeddict-item]


def _read(options: dict[str, Any], steps: Any) -> tuple[Counts, str]:
    """Read the labellings; return them and what they are held against is called."""
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
    counts, format_ = read_systems({**UNUSED, **options, "systems": files, "gold": gold, "unit": within}, steps)
    note(f"read as {format_}: {count_noun(counts.n_systems, 'labelling')}, {count_noun(counts.n_items, 'item')}")
    return counts, reference
