"""`sigdask compare`: compares systems on one test set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from sigdask import formats
from sigdask import options as declared
from sigdask.analysis.details import ComparisonDetails
from sigdask.api import compare_opened, compare_with_options
from sigdask.cli import declare, write
from sigdask.cli.progress import ProgressSteps, show_analysis
from sigdask.cli.streams import LOG, is_json_log, log_note, output_columns, print_text
from sigdask.counts import Counts
from sigdask.counts.checks import list_group_columns
from sigdask.errors import InputError, RefusedFileError
from sigdask.execution import clusters
from sigdask.formats import DETECTED, Source
from sigdask.formats.grouping import GROUP, GroupFile
from sigdask.io import as_path, is_present
from sigdask.metrics import METRICS, check_name
from sigdask.options import ReadingOptions, SelectionOptions, fill_options, select_options
from sigdask.report.files import FORMAT_BY_ENDING
from sigdask.report.presentable import Results, list_result_texts
from sigdask.report.screen import render, select_warnings
from sigdask.results.record import CHANGES_VERDICTS
from sigdask.statistics import classical
from sigdask.text import format_count, format_list, is_url

ALL_FORMATS = tuple(dict.fromkeys(FORMAT_BY_ENDING.values()))

OUTPUT = (
    declare.output(*ALL_FORMATS),
    declare.JSON,
    declare.option("--items FILE", "Write the scores of each unit and its contribution to the difference as .csv "
                   "or .parquet.", dest="items_file"),
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


def compare(prepare: Callable[[Counts], Counts] | None = None, **options: Any) -> None:
    """Read the systems, compare them, and print and write the results; `prepare` is given the data before that."""
    clusters.check_cluster(options["cluster"])
    classical.parse_tests(options["tests"])
    spec = fill_options(SelectionOptions, select_options(SelectionOptions, options))
    outputs = write.list_outputs(options, *ALL_FORMATS)
    write.check_units(options["items_file"])
    if outputs:
        read_paths = [*_list_paths(options), *map(as_path, filter(None, [options["gold"]]))]
        write.check_overwriting(outputs, dict.fromkeys(read_paths, "a file that is read"))
    has_page = any(output.format == "html" for output in outputs)
    with show_analysis(quiet=options["quiet"]) as steps:
        results, details = _read_and_compare(spec, options, steps, prepare, has_page=has_page)
    is_printed = write.is_printed(outputs)
    log_warnings(results, verbose=options["verbose"], is_printed=is_printed)
    if is_printed:
        everything, verbose = options["everything"], options["verbose"]
        print_text(render(results, everything=everything, verbose=verbose, width=output_columns()))
    texts = list_result_texts(results)
    texts["html"] = lambda: [write.build_page(results, details, name=options["name"])]
    write.write_outputs(outputs, texts)
    write.write_units(options["items_file"], results.iter_units)


def _read_and_compare(
    spec: SelectionOptions,
    options: dict[str, Any],
    steps: ProgressSteps,
    prepare: Callable[[Counts], Counts] | None,
    *,
    has_page: bool,
) -> tuple[Results, Sequence[ComparisonDetails]]:
    """Read and compare the systems. For a page, also return details of comparisons."""
    counts = read_systems(options)
    counts = counts if prepare is None else prepare(counts)
    spec["progress"] = steps
    try:
        if not has_page:
            return compare_with_options([counts], spec), ()
        return compare_opened([counts], **spec)
    except InputError:
        for warning in counts.notices:  # otherwise they are logged with the results
            LOG.warning(warning)
        raise


CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "columns": formats.parse_columns,
    "label_map": formats.parse_maps,
    "references": lambda paths: tuple(map(as_path, paths)),
    "documents": as_path,
    "group_file": as_path,
}
"""Conversions of the texts of reading options to values."""


def read_systems(options: dict[str, Any], noun: str = "system") -> Counts:
    """Read the files that a command's options name, and log how they were read."""
    counts, format_name = _read_files(options)
    times = f" x {len(counts.replicates)} replicates" if counts.replicates and not counts.scope else ""
    noun = "metric" if format_name == "meta" else noun
    log_note(
        f"read as {format_name}: {format_count(counts.n_systems, noun)}{times}, "
        f"{format_count(counts.of_one.n_items, 'item')}{f' ({counts.roles})' if counts.roles else ''}"
    )
    if unused := _find_unused_group_file(options):
        LOG.warning(unused)
    if not options["metrics"]:
        log_note(f"metric: {', '.join(counts.suggested)} (choose with --metric)")
    return counts


def _find_unused_group_file(options: dict[str, Any]) -> str | None:
    """Return text on a file of documents or groups that neither units nor subsets are taken from, or None."""
    names = {*options["unit"], options.get("by"), options.get("within")} - {None, "item"}
    if options.get("group_file") and names.isdisjoint(GroupFile(as_path(options["group_file"]), GROUP).names):
        return f"--groups {options['group_file']}: not used; name one of its columns with --unit or --by"
    if options.get("documents") and not names & {"document", "domain"}:
        return f"--documents {options['documents']}: not used, as items are swapped one by one; add --unit document"
    return None


def _read_files(options: dict[str, Any]) -> tuple[Counts, str]:
    given: dict[str, Any] = {**select_options(ReadingOptions, options)}
    converted = {name: convert(given[name]) for name, convert in CONVERSIONS.items() if name in given}
    reading = formats.Options(
        **given | converted,
        groups=list_group_columns((*options["unit"], options.get("by")), converted.get("columns") or {}),
        name=options["name"],
        metrics=options["metrics"],
        is_detected=options["format_"].partition(":")[0] in DETECTED,
    )
    sources = _list_sources(options)
    if len(sources) > len(options["systems"]):
        log_note(f"systems: {format_list([source.path.name for source in sources], MAX_NAMES)}")
    gold = as_path(options["gold"]) if options["gold"] else None
    requested, format_options = formats.parse_format(options["format_"])
    reading = reading.with_format_options(format_options)
    for metric in options["metrics"]:
        check_name(metric, of_data=formats.may_have_metric(metric, options["format_"].partition(":")[0], gold))
    with formats.cache_files():
        format_name = formats.detect(sources, gold, reading, requested) if requested in DETECTED else requested
        for metric in options["metrics"]:
            of_data = formats.may_have_metric(metric, format_name, gold)
            check_name(metric, of_data=of_data, of_rankings=format_name == "trec")
        try:
            return formats.read(*sources, gold=gold, format=format_name, options=reading), format_name
        except InputError as error:
            if requested not in {*DETECTED, "labels"} or isinstance(error, RefusedFileError):
                raise
            raise error.add_hint(f"read as {format_name}; choose with --format") from None


def _list_sources(options: dict[str, Any]) -> list[Source]:
    """Return the sources that the SYSTEM arguments name."""
    return [source for text in options["systems"] for source in _find_sources(text, options["format_"])]


def _list_paths(options: dict[str, Any]) -> list[Path]:
    """Return the files and folders of the systems."""
    return [path for source in _list_sources(options) for path in source.parts or (source.path,)]


MAX_NAMES = 6
"""Maximum number of systems of a pattern that are named."""


def _find_sources(text: str, format_: str) -> Iterator[Source]:
    """Yield the sources that one SYSTEM argument names; patterns are expanded only in URLs, as shells expand others."""
    name, equals, url = text.partition("=") if not is_url(text) else ("", "", text)
    if not is_url(url):
        source = formats.parse_source(text)
        if text.casefold() in {*map(str.casefold, METRICS)} and not is_present(source.path.exists):
            raise InputError(f"{text}: no such file. If it is a metric, write it with an option of its own: -m {text}")
        yield source
        return

    from sigdask.nightly.plan import paths  # loads pydantic

    if not paths.is_pattern(url):
        yield formats.parse_source(text)
        return
    yield from paths.list_sources({name.strip(): url} if equals else url, Path.cwd(), format_)


def log_warnings(results: Results, *, verbose: bool, is_printed: bool) -> None:
    """Log the warnings that are not printed with the results; all, with what was scored, if results are not printed."""
    scope = [note for note in results.notes if note.kind == "scope"]
    printed_kinds = {"scope", *CHANGES_VERDICTS} if is_printed and not is_json_log() else set()
    for note in (*scope, *select_warnings(results, verbose=verbose)):
        if note.kind not in printed_kinds:
            LOG.warning(note.text)
