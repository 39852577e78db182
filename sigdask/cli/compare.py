"""`sigdask compare`: systems on one test set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigdask import formats
from sigdask.api import compare_all, compare_opened
from sigdask.cli.declared.compare import ENDINGS
from sigdask.cli.output import figures
from sigdask.cli.output.page import files_read, write_results
from sigdask.cli.output.progress import ProgressSteps, files_of, progress
from sigdask.cli.output.say import LOG, be_quiet, note, say, say_data, width
from sigdask.cli.output.write import (
    check_output,
    check_outputs,
    check_writable,
    write_csv,
    write_data,
    write_json,
    write_parquet,
    write_tables,
    write_text,
)
from sigdask.errors import InputError, RefusedFileError, UnfinishedError
from sigdask.execution import clusters
from sigdask.execution.clusters import at_hand, connect, visibility
from sigdask.io import is_url, place
from sigdask.metrics import check_name
from sigdask.options import OPTIONS, PRINTED, WhatCompared, filled
from sigdask.report.methods import text as methods
from sigdask.report.plots.folder import of_opened, of_results
from sigdask.report.terminal import render, warnings
from sigdask.results.schema import text
from sigdask.statistics.classical import names
from sigdask.text import count_noun

if TYPE_CHECKING:
    from sigdask.analysis.details.details import ComparisonDetails
    from sigdask.counts import Counts
    from sigdask.execution.clusters import Cluster
    from sigdask.formats import Source
    from sigdask.report.presentable import Results


def print_schema() -> None:
    """Print the JSON schema of the results."""
    say_data(text())


def compare(**options: Any) -> None:
    """Read the systems, compare them, and print and write the results."""
    how = _how(options)
    files = _files(options)
    figures.check_figures(options["figures"], options["figure_format"])
    if options["quiet"]:
        be_quiet()
    with progress(quiet=options["quiet"]) as steps:
        found = _found(how, options, steps, is_opened=files["html"] is not None or options["figures"] is not None)
    results = found.results
    is_printed = "-" not in (file for name, file in files.items() if name != "html")
    if is_printed:
        say(_rendered(results, everything=options["everything"], verbose=options["verbose"], width=width()))
    _warn(results, verbose=options["verbose"], is_printed=is_printed)
    write_json(files["json"], results.json_parts)
    write_csv(files["csv"], results.table)
    write_parquet(files["parquet"], results.table)
    _write_tables(results, files, options)
    if files["txt"] is not None:
        write_text(files["txt"], _rendered(results, everything=True))
    if files["html"] is not None:
        write_results(
            files["html"], results, found.opened, name=options["name"], files=found.files,
        )  # fmt: skip
    if options["figures"] is not None:
        drawn = (*of_results([results]), *of_opened(results.table, found.opened))
        figures.write_figures(options["figures"], options["figure_format"], drawn)


def _write_tables(results: Results, files: dict[str, str | None], options: dict[str, Any]) -> None:
    """Write tables for papers, where they are asked for."""
    write_tables(files, lambda: results.paper_tables(**{name: options[name] for name in PRINTED}))
    if (file := files["bibtex"]) is not None:
        write_data(file, [methods.of(methods.Facts.of(results)).bibtex, "\n"], "--bibtex")


@dataclass(frozen=True, slots=True)
class _ComparedResults:
    """What was found, and for a page what was read and the comparisons that are opened."""

    results: Results
    files: Sequence[Path] = ()
    opened: Sequence[ComparisonDetails] = ()


def _found(how: WhatCompared, options: dict[str, Any], steps: ProgressSteps, *, is_opened: bool) -> _ComparedResults:
    """Read, compare, and say what is to be said beside; open comparisons where a page is asked for."""
    counts, format_ = read_systems(options, steps)
    metrics = options["metrics"] or counts.suggested
    times = f" x {len(counts.replicates)} replicates" if counts.replicates and not counts.scope else ""
    note(
        f"read as {format_}: {count_noun(counts.n_systems, 'system')}{times}, "
        f"{count_noun(counts.of_one.n_items, 'item')}"
    )
    if not options["metrics"]:
        note(f"metric: {', '.join(metrics)} (choose with --metric)")
    try:
        results, opened = _compare(counts, how, options, steps, is_opened=is_opened)
    except InputError:
        for warning in counts.notices:  # else they stand below the results
            LOG.warning(warning)
        raise
    sources = files_of(source for text in options["systems"] for source in _sources(text, options["format_"]))
    return _ComparedResults(results, files_read(options, sources, counts.files) if is_opened else (), opened)


def _files(options: dict[str, Any]) -> dict[str, str | None]:
    """Return the files to write by what they hold; refused before anything is read where they cannot be."""
    files = {name: options.get(f"{name}_file") for name in dict.fromkeys(ENDINGS.values())}
    check_outputs(**files)
    for file in options["outputs"]:
        name = ENDINGS.get(Path(file).suffix.lower())
        if name is None:
            raise InputError(f"-o {file}: expected a file that ends in {', '.join(ENDINGS)}")
        if files[name] is not None:
            raise InputError(f"-o {file}: {files[name]} is to hold the same; give one of them")
        check_output(name, file, "-o")
        files[name] = file
    return files


def read_systems(options: dict[str, Any], steps: ProgressSteps) -> tuple[Counts, str]:
    """Read what the options of a command name; return the systems and the format that was read."""
    given = formats.Options(
        id_column=options["id_column"],
        gold_column=options["gold_column"],
        prediction_column=options["prediction_column"],
        system_column=options["system_column"],
        score_column=options["score_column"],
        groups=tuple(dict.fromkeys(name for name in (*options["unit"], options["by"]) if name not in {None, "item"})),
        ignore=options["ignore"],
        label_map=tuple(formats.parse_map(text) for text in options["label_map"]),
        align=options["align"],
        decimal=options["decimal"],
        missing=options["missing"],
        min_items=options["min_items"],
        references=tuple(place(path) for path in options["references"]),
        documents=place(options["documents"]) if options["documents"] else None,
        group_file=place(options["group_file"]) if options["group_file"] else None,
        name=options["name"],
        metrics=options["metrics"],
        most_unpacked=options["most_unpacked"],
    )
    sources = [source for text in options["systems"] for source in _sources(text, options["format_"])]
    gold = place(options["gold"]) if options["gold"] else None
    asked, own = formats.parse_format(options["format_"])
    for metric in options["metrics"]:
        check_name(metric, of_data=formats.may_bring(metric, options["format_"].partition(":")[0], gold))
    with formats.reading_once(), steps.reading(filter(None, (gold, *files_of(sources)))):
        chosen = asked if asked != "auto" else formats.detect(sources, gold, given)
        for metric in options["metrics"]:
            of_data = formats.may_bring(metric, chosen, gold)
            check_name(metric, of_data=of_data, of_rankings=chosen == "trec")
        try:
            given = replace(given.with_own(own), is_detected=asked == "auto")
            return formats.read(*sources, gold=gold, format=chosen, options=given), chosen
        except InputError as error:
            if asked != "auto" or isinstance(error, RefusedFileError):
                raise
            raise InputError(f"{error} [read as {chosen}; choose with --format]") from None


def _sources(text: str, format_: str) -> Iterator[Source]:
    """Yield what a system is given as; no shell spreads the patterns that URLs are given as."""
    name, equals, url = text.partition("=") if not is_url(text) else ("", "", text)
    if not is_url(url):
        yield formats.parse_source(text)
        return

    from sigdask.nightly.plan import paths  # loads pydantic

    if not paths.is_pattern(url):
        yield formats.parse_source(text)
        return
    for found in paths.sources({name.strip(): url} if equals else url, Path.cwd(), format_):
        if isinstance(found, InputError):
            raise found
        yield found


def _how(options: dict[str, Any]) -> WhatCompared:
    """Return what is asked of the comparison; refused before anything is read where it cannot be."""
    for name, printed in PRINTED.items():
        printed.check(name, options.get(name))
    clusters.check(options["cluster"])
    names.asked(options["tests"])
    given = {name: options[name] for name in OPTIONS if options.get(name) not in {None, ()}}
    return filled(WhatCompared(**given, second_run=not options["no_second_run"], cache=not options["no_cache"]))  # type: ignore[typeddict-item]


def _compare(
    counts: Counts, how: WhatCompared, options: dict[str, Any], steps: ProgressSteps, *, is_opened: bool
) -> tuple[Results, Sequence[ComparisonDetails]]:
    with _cluster(options) as cluster:
        try:
            how["cluster"], how["progress"] = cluster, steps
            return compare_opened([counts], **how) if is_opened else (compare_all(counts, **how), ())
        except KeyboardInterrupt:
            raise UnfinishedError("interrupted; nothing was written") from None


@contextmanager
def _cluster(options: dict[str, Any]) -> Iterator[str | Cluster]:
    """Yield the cluster as it was named; connected only where a report of it is asked for."""
    report = options["performance_report"]
    if report is None:
        yield options["cluster"]
        return

    check_writable(report, "--performance-report")
    found = at_hand(options["cluster"])
    name = "local" if found == "auto" else found  # only a dask cluster has a report
    with (
        connect(name, workers=options["workers"]) as cluster,
        visibility.performance_report(cluster, Path(report)),
    ):
        yield cluster


def _rendered(results: Results, *, everything: bool, verbose: bool = False, width: int | None = None) -> str:
    return render(results, everything=everything, verbose=verbose, width=width)


def _warn(results: Results, *, verbose: bool, is_printed: bool) -> None:
    """Warn of what results should not be read without; what is scored stands before them where they are printed."""
    scope = [] if is_printed else [note for note in results.notes if note.kind == "scope"]
    for found in (*scope, *warnings(results, verbose=verbose)):
        LOG.warning(found.text)
