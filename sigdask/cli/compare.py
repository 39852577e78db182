"""`sigdask compare`: compares systems on one test set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigdask import formats
from sigdask.api import compare_all, compare_opened
from sigdask.cli.declared.compare import FORMAT_BY_ENDING
from sigdask.cli.output import figures
from sigdask.cli.output.page import list_local_files, write_results_page
from sigdask.cli.output.progress import ProgressSteps, list_source_paths, show_progress
from sigdask.cli.output.say import LOG, be_quiet, log_note, output_columns, print_data, print_text
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
from sigdask.execution.clusters import connect, monitoring, resolve_active
from sigdask.io import as_path, is_url
from sigdask.metrics import check_name
from sigdask.options import OPTIONS, PRINT_OPTIONS, SelectionOptions, fill_options
from sigdask.report.methods import text as methods
from sigdask.report.plots.folder import iter_null_pictures, iter_result_pictures
from sigdask.report.terminal import render, select_warnings
from sigdask.results.schema import read_schema
from sigdask.statistics.classical import names
from sigdask.text import format_count

if TYPE_CHECKING:
    from sigdask.analysis.details.details import ComparisonDetails
    from sigdask.counts import Counts
    from sigdask.execution.clusters import Cluster
    from sigdask.formats import Source
    from sigdask.report.presentable import Results


def print_schema() -> None:
    """Print the JSON schema of the results."""
    print_data(read_schema())


def compare(**options: Any) -> None:
    """Read the systems, compare them, and print and write the results."""
    spec = _build_spec(options)
    files = _output_files(options)
    figures.check_figures(options["figures"], options["figure_format"])
    if options["quiet"]:
        be_quiet()
    with show_progress(quiet=options["quiet"]) as steps:
        compared = _read_and_compare(
            spec, options, steps, is_opened=files["html"] is not None or options["figures"] is not None
        )
    results = compared.results
    is_printed = "-" not in (file for name, file in files.items() if name != "html")
    if is_printed:
        print_text(
            _render_results(
                results, everything=options["everything"], verbose=options["verbose"], width=output_columns()
            )
        )
    _log_warnings(results, verbose=options["verbose"], is_printed=is_printed)
    write_json(files["json"], results.json_parts)
    write_csv(files["csv"], results.table)
    write_parquet(files["parquet"], results.table)
    _write_tables(results, files, options)
    if files["txt"] is not None:
        write_text(files["txt"], _render_results(results, everything=True))
    if files["html"] is not None:
        write_results_page(
            files["html"], results, compared.details, name=options["name"], files=compared.files,
        )  # fmt: skip
    if options["figures"] is not None:
        pictures = (*iter_result_pictures([results]), *iter_null_pictures(results.table, compared.details))
        figures.write_figures(options["figures"], options["figure_format"], pictures)


def _write_tables(results: Results, files: dict[str, str | None], options: dict[str, Any]) -> None:
    """Write the paper tables that were requested."""
    write_tables(files, lambda: results.paper_tables(**{name: options[name] for name in PRINT_OPTIONS}))
    if (file := files["bibtex"]) is not None:
        write_data(file, [methods.build_methods(methods.Facts.from_results(results)).bibtex, "\n"], "--bibtex")


@dataclass(frozen=True, slots=True)
class _ComparedResults:
    """Results of a comparison with what their page needs: the files read, and details of comparisons."""

    results: Results
    files: Sequence[Path] = ()
    details: Sequence[ComparisonDetails] = ()


def _read_and_compare(
    spec: SelectionOptions, options: dict[str, Any], steps: ProgressSteps, *, is_opened: bool
) -> _ComparedResults:
    """Read and compare the systems, and log what was read; `is_opened` adds what a page needs."""
    counts, format_ = read_systems(options, steps)
    metrics = options["metrics"] or counts.suggested
    times = f" x {len(counts.replicates)} replicates" if counts.replicates and not counts.scope else ""
    log_note(
        f"read as {format_}: {format_count(counts.n_systems, 'system')}{times}, "
        f"{format_count(counts.of_one.n_items, 'item')}"
    )
    if not options["metrics"]:
        log_note(f"metric: {', '.join(metrics)} (choose with --metric)")
    try:
        results, details = _run_comparison(counts, spec, options, steps, is_opened=is_opened)
    except InputError:
        for warning in counts.notices:  # else they stand below the results
            LOG.warning(warning)
        raise
    sources = list_source_paths(
        source for text in options["systems"] for source in _find_sources(text, options["format_"])
    )
    return _ComparedResults(results, list_local_files(options, sources, counts.files) if is_opened else (), details)


def _output_files(options: dict[str, Any]) -> dict[str, str | None]:
    """Return the file to write for each kind of output; raise if one cannot be written or is requested twice."""
    files = {name: options.get(f"{name}_file") for name in dict.fromkeys(FORMAT_BY_ENDING.values())}
    check_outputs(**files)
    for file in options["outputs"]:
        name = FORMAT_BY_ENDING.get(Path(file).suffix.lower())
        if name is None:
            raise InputError(f"-o {file}: expected a file that ends in {', '.join(FORMAT_BY_ENDING)}")
        if files[name] is not None:
            raise InputError(f"-o {file}: {files[name]} is to hold the same; give one of them")
        check_output(name, file, "-o")
        files[name] = file
    return files


def read_systems(options: dict[str, Any], steps: ProgressSteps) -> tuple[Counts, str]:
    """Read the files that a command's options name; return the data and the name of the format."""
    reading = formats.Options(
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
        references=tuple(as_path(path) for path in options["references"]),
        documents=as_path(options["documents"]) if options["documents"] else None,
        group_file=as_path(options["group_file"]) if options["group_file"] else None,
        name=options["name"],
        metrics=options["metrics"],
        most_unpacked=options["most_unpacked"],
    )
    sources = [source for text in options["systems"] for source in _find_sources(text, options["format_"])]
    gold = as_path(options["gold"]) if options["gold"] else None
    requested, format_options = formats.parse_format(options["format_"])
    for metric in options["metrics"]:
        check_name(metric, of_data=formats.may_have_metric(metric, options["format_"].partition(":")[0], gold))
    with formats.cache_tables(), steps.reading(filter(None, (gold, *list_source_paths(sources)))):
        format_name = requested if requested != "auto" else formats.detect(sources, gold, reading)
        for metric in options["metrics"]:
            of_data = formats.may_have_metric(metric, format_name, gold)
            check_name(metric, of_data=of_data, of_rankings=format_name == "trec")
        try:
            reading = replace(reading.with_format_options(format_options), is_detected=requested == "auto")
            return formats.read(*sources, gold=gold, format=format_name, options=reading), format_name
        except InputError as error:
            if requested != "auto" or isinstance(error, RefusedFileError):
                raise
            raise InputError(f"{error} [read as {format_name}; choose with --format]") from None


def _find_sources(text: str, format_: str) -> Iterator[Source]:
    """Yield the sources that one SYSTEM argument names; patterns are expanded only in URLs, as shells expand others."""
    name, equals, url = text.partition("=") if not is_url(text) else ("", "", text)
    if not is_url(url):
        yield formats.parse_source(text)
        return

    from sigdask.nightly.plan import paths  # loads pydantic

    if not paths.is_pattern(url):
        yield formats.parse_source(text)
        return
    for source in paths.find_sources({name.strip(): url} if equals else url, Path.cwd(), format_):
        if isinstance(source, InputError):
            raise source
        yield source


def _build_spec(options: dict[str, Any]) -> SelectionOptions:
    """Return the comparison that the options describe; raise if they are invalid."""
    for name, printed in PRINT_OPTIONS.items():
        printed.check(name, options.get(name))
    clusters.check_cluster(options["cluster"])
    names.parse_tests(options["tests"])
    settings = {name: options[name] for name in OPTIONS if options.get(name) not in {None, ()}}
    settings |= {"second_run": not options["no_second_run"], "cache": not options["no_cache"]}
    return fill_options(SelectionOptions(**settings))  # type: ignore[typeddict-item]


def _run_comparison(
    counts: Counts, spec: SelectionOptions, options: dict[str, Any], steps: ProgressSteps, *, is_opened: bool
) -> tuple[Results, Sequence[ComparisonDetails]]:
    with _open_cluster(options) as cluster:
        try:
            spec["cluster"], spec["progress"] = cluster, steps
            return compare_opened([counts], **spec) if is_opened else (compare_all(counts, **spec), ())
        except KeyboardInterrupt:
            raise UnfinishedError("interrupted; nothing was written") from None


@contextmanager
def _open_cluster(options: dict[str, Any]) -> Iterator[str | Cluster]:
    """Yield the cluster's name or, if a performance report was requested, a connection that records it."""
    report = options["performance_report"]
    if report is None:
        yield options["cluster"]
        return

    check_writable(report, "--performance-report")
    available = resolve_active(options["cluster"])
    name = "local" if available == "auto" else available  # only a dask cluster has a report
    with (
        connect(name, workers=options["workers"]) as cluster,
        monitoring.write_performance_report(cluster, Path(report)),
    ):
        yield cluster


def _render_results(results: Results, *, everything: bool, verbose: bool = False, width: int | None = None) -> str:
    return render(results, everything=everything, verbose=verbose, width=width)


def _log_warnings(results: Results, *, verbose: bool, is_printed: bool) -> None:
    """Log the warnings of results and, where these are not printed, also the notes on what was scored."""
    scope = [] if is_printed else [note for note in results.notes if note.kind == "scope"]
    for warning in (*scope, *select_warnings(results, verbose=verbose)):
        LOG.warning(warning.text)
