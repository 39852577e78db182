"""`sigdask compare`: compares systems on one test set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from sigdask import formats
from sigdask import options as declared
from sigdask.analysis.details import ComparisonDetails
from sigdask.api import compare_opened, compare_with_options
from sigdask.cli import declare
from sigdask.cli.streams import LOG, output_columns, print_text, show_progress
from sigdask.cli.write import build_page, check_units, is_printed, write_outputs
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.execution import clusters
from sigdask.formats.grouping import GROUP, GroupFile
from sigdask.io import as_path
from sigdask.metrics import check_name
from sigdask.options import ReadingOptions, SelectionOptions, fill_options, list_group_columns, select_options
from sigdask.report.files import FORMAT_BY_ENDING, write_units
from sigdask.report.presentable import Results, list_result_texts
from sigdask.report.screen import render, select_warnings
from sigdask.report.sentences import CHANGES_VERDICTS
from sigdask.statistics import classical
from sigdask.text import format_count

OUTPUT = (
    *declare.output(*dict.fromkeys(FORMAT_BY_ENDING.values())),
    declare.option("--items FILE", "Write the scores of each unit and its contribution to the difference as .csv "
                   "or .parquet.", dest="items_file", callback=check_units),
    declare.VERBOSE,
    declare.everything("comparison"),
    declare.QUIET,
)  # fmt: skip

GROUPS = {
    "Files": declare.FILES,
    "What to compare": (
        *declare.options(declared.ChoiceOptions), *declare.options(SelectionOptions, "together"),
        declare.NAME,
    ),
    "The test": (*declare.options(SelectionOptions, "unit"), *declare.TEST),
    "Many comparisons": declare.ADJUST,
    "Where to run": (*declare.RUN, *declare.CACHE),
    "Output": OUTPUT,
}  # fmt: skip

EXAMPLES = (
    "sigdask compare scores.csv",
    "sigdask compare new.txt old.txt --gold reference.txt -m BLEU -m chrF -o results.json -o table.tex",
    "sigdask compare a.csv b.csv c.csv --gold gold.csv -m macro-f1 --baseline a --adjust holm",
    "sigdask show results.json -o page.html --digits 1",
)

SYSTEMS = click.argument("systems", nargs=-1, required=True, metavar="[NAME=]SYSTEM...")


@declare.command(SYSTEMS, groups=GROUPS, examples=EXAMPLES)
def command(**options: Any) -> None:
    """Compare systems on one test set.

    SYSTEM is a file of one system's outputs or scores, or a table with one column per system. Several files under one
    NAME are replicates of a system (optimizer runs, seeds). Its score is the mean over its replicates. `sigdask show`
    makes tables, pages and figures of the results.
    """
    compare(**options)


def compare(prepare: Callable[[Counts], Counts] = lambda counts: counts, **options: Any) -> None:
    """Read the systems, compare them, and print and write the results; `prepare` is given the data before that."""
    clusters.check_cluster(options["cluster"])
    classical.parse_tests(options.get("tests"))
    spec = fill_options(SelectionOptions, select_options(SelectionOptions, options))
    details: Sequence[ComparisonDetails] = ()
    with show_progress() as spec["progress"]:
        counts = prepare(read_systems(options))
        try:
            if any(output.format == "html" for output in options["outputs"]):
                results, details = compare_opened([counts], **spec)
            else:
                results = compare_with_options([counts], spec)
        except InputError:
            for warning in counts.notices:  # otherwise they are logged with the results
                LOG.warning(warning)
            raise
    if options["items_file"]:
        write_units(options["items_file"], results.iter_units())
    results = replace(results, units=None)  # which takes memory
    if options["outputs"]:
        texts = list_result_texts(results)
        texts["html"] = lambda: [build_page(results, details, name=options["name"])]
        write_outputs(options["outputs"], texts)
    print_results(results, options)


CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "columns": formats.parse_columns,
    "label_map": formats.parse_maps,
    "references": lambda paths: tuple(map(as_path, paths)),
    "documents": as_path,
    "group_file": as_path,
}
"""Conversions of the texts of reading options to values."""


def read_systems(options: dict[str, Any], noun: str = "system", columns: Sequence[str | None] = ()) -> Counts:
    """Read the files that a command's options name, with further columns of groups, and log how they were read."""
    given: dict[str, Any] = {**select_options(ReadingOptions, options)}
    for name in CONVERSIONS.keys() & given:
        given[name] = CONVERSIONS[name](given[name])
    groups = list_group_columns((options.get("unit"), options.get("by"), *columns), given.get("columns", {}))
    reading = formats.Options(**given, groups=groups, name=options["name"], metrics=options["metrics"])
    _check_metrics(options, options["format_"].partition(":")[0])
    counts = formats.read(*options["systems"], gold=options["gold"], format=options["format_"], options=reading)
    _check_metrics(options, counts.format)
    noun = "metric" if counts.format == "meta" else noun
    times = f" x {len(counts.replicates)} replicates" if counts.replicates and not counts.scope else ""
    LOG.info(
        f"read as {counts.format or options['format_']}: {format_count(counts.n_systems, noun)}"
        f"{times}, {format_count(counts.of_one.n_items, 'item')}{f' ({counts.roles})' if counts.roles else ''}"
    )
    if unused := _find_unused_groups(options, {*groups}, given.get("columns", {})):
        LOG.warning(unused)
    if not options["metrics"]:
        LOG.info(f"metric: {', '.join(counts.suggested)} (choose with --metric)")
    return counts


def _find_unused_groups(options: dict[str, Any], names: set[str], columns: Mapping[str, str]) -> str | None:
    """Return text on a file or column of groups that neither units nor subsets are taken from, or None."""
    given = {f"--columns {role}={columns[role]}": {columns[role]} for role in ("unit", "subset") if role in columns}
    if options.get("group_file"):
        given[f"--groups {options['group_file']}"] = {*GroupFile(as_path(options["group_file"]), GROUP).names}
    if options.get("documents"):
        given[f"--documents {options['documents']}"] = {"document", "domain"}
    unused = next((flag for flag, own in given.items() if names.isdisjoint(own)), None)
    return unused and f"{unused}: not used; name {' or '.join(sorted(given[unused]))} with --unit or --by"


def _check_metrics(options: dict[str, Any], format_: str) -> None:
    """Raise if no files of a format can have the metrics."""
    of_rankings = format_ in {*formats.DETECTED, "trec"}
    for metric in options["metrics"]:
        of_data = formats.may_have_metric(metric, format_, options["gold"])
        check_name(metric, of_data=of_data, of_rankings=of_rankings)


def print_results(results: Results, options: Mapping[str, Any]) -> None:
    """Print results unless standard output takes their JSON, and log the warnings that are not printed with them."""
    verbose = options["verbose"]
    has_text = is_printed(options["outputs"])
    printed_kinds = {"scope", *CHANGES_VERDICTS} if has_text else set()
    scope = [note for note in results.notes if note.kind == "scope"]
    for note in (*scope, *select_warnings(results, verbose=verbose)):
        if note.kind not in printed_kinds:
            LOG.warning(note.text)
    if has_text:
        print_text(render(results, everything=options["everything"], verbose=verbose, width=output_columns()))
