"""Read files into `Counts`. The formats are declared in `registry`, the roles of columns in `roles`."""

from __future__ import annotations

import difflib
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.errors import InputError, MissingColumnError, RefusedFileError
from sigdask.formats import folders
from sigdask.formats.grouping import list_group_files, read_with_groups
from sigdask.formats.reading import runs
from sigdask.formats.reading.files import cache_files
from sigdask.formats.reading.options import (
    DEFAULTS,
    Options,
    Source,
    distinguish_names,
    parse_columns,
    parse_format,
    parse_maps,
    parse_source,
)
from sigdask.formats.reading.tables import TABLE_FORMATS, read_table, use_table_reader
from sigdask.formats.registry import (
    FOLDER_FORMATS,
    FORMATS,
    FORMATS_BY_METRIC,
    SCORED_FORMATS,
    TABLE,
    add_installed_formats,
    describe_reading,
    resolve_format,
)
from sigdask.interface import spell, suggest_group_file
from sigdask.io import as_path, use_options
from sigdask.text import is_url, suggest_name

__all__ = ["DETECTED", "FOLDER_FORMATS", "FORMATS", "TABLE", "Options", "Source", "cache_files", "detect",
           "may_have_metric", "parse_columns", "parse_format", "parse_maps", "parse_source",
           "read"]  # fmt: skip

Reader = Callable[[Sequence[Source], Path | None, Options], Counts]

TABLES_OF_ROLES = (*TABLE_FORMATS, "meta")
"""Formats whose files are read as one table or several, by the roles of their columns."""

DETECTED = ("auto", TABLE)
"""Formats that stand for those that are detected."""


def read(
    *systems: Source | Path | str | list[Any] | tuple[Any, ...],
    gold: Path | str | None = None,
    format: str = "auto",  # noqa: A002  # as on the command line
    options: Options = DEFAULTS,
) -> Counts:
    """Read system outputs or scores into aligned counts.

    Parameters
    ----------
    *systems : Source, Path or "NAME=PATH", or lists of these
        Files of one or more systems, such as TSV, CSV, JSON lines or Parquet, also gzipped. A path may be a URL that
        fsspec supports, such as s3://BUCKET/FILE. Several files under one NAME are replicates of a system (optimizer
        runs, seeds), whose scores are averaged.
    gold : Path, optional
        Gold-standard file.
    format : str
        A name in `FORMATS`, or "auto" (see `detect`). Options of a format follow its name, such as
        "conll:scheme=IOBES". Every format has the option replicates=paired (the files of all systems share seeds, in
        their order).
    options : Options
        Options of reading, such as columns, alignment and missing scores: `sigdask.formats.reading.options.Options`.

    Returns
    -------
    Counts
        The systems, aligned item by item. Give it to `compare_all` or `power`.

    Raises
    ------
    InputError
        The files cannot be read. The message names the file, the line or id, and what was found and expected.

    Examples
    --------
    >>> from importlib.resources import files
    >>> counts = read(files("sigdask.examples") / "yeh2000.tsv")
    >>> counts.systems, counts.n_items
    (('I', 'II'), 160)
    """
    add_installed_formats()
    listed = [s for given in systems for s in (given if isinstance(given, list | tuple) else [given])]
    if not listed:
        raise InputError("no file given; expected a table, or one file per system")
    sources = [s if isinstance(s, Source) else parse_source(s) for s in listed]
    gold_path = None if gold is None else as_path(gold)
    return _shorten_notes(_read_as(format, sources, gold_path, options), sources, gold_path, options)


def _shorten_notes(counts: Counts, sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Return counts whose notes name files without the folders that all of them share: pages show these notes."""
    others = (gold, options.documents, options.group_file, *options.references)
    paths = [part for source in sources for part in source.parts or (source.path,)]
    paths = [path for path in (*paths, *others) if path is not None and path.is_absolute() and not is_url(str(path))]
    if not paths or not (counts.warnings or counts.scope):
        return counts
    home = Path(os.path.commonpath([path.parent for path in paths]))
    shown = {p.parent: p.parent.relative_to(home) if home != home.parent else Path(p.parent.name) for p in paths}

    def hide(text: str) -> str:
        for folder in sorted(shown, key=lambda folder: -len(folder.parts)):
            text = type(text)(text.replace(f"{folder}/", f"{shown[folder]}/".removeprefix("./")))
        return text

    return replace(counts, warnings=(*map(hide, counts.warnings),), scope=(*map(hide, counts.scope),))


def _read_as(format_: str, sources: Sequence[Source], gold_path: Path | None, options: Options) -> Counts:
    format_name, format_options = parse_format(format_)
    if format_options:
        options = options.with_format_options(format_options)
    if _are_folders(sources, gold_path, format_name):
        own = replace(options, groups=tuple(name for name in options.groups if name != folders.FILE))
        parts = folders.match_folders(sources, gold_path)
        return folders.read_folders(lambda p: read(p[0], gold=p[1], format=format_name, options=own), parts)
    with cache_files(), _limit_resources(sources, options, format_name):
        return _read_sources(sources, gold_path, format_name, options)


@contextmanager
def _limit_resources(sources: Sequence[Source], options: Options, format_: str = "auto") -> Iterator[None]:
    """Limit the size of unpacked data, and raise an error for nesting that is too deep."""
    with use_options({"format": format_, **options.own}):
        try:
            yield
        except RecursionError:
            raise InputError("has objects or lists that are nested too deeply", file=sources[0].path) from None
        except MemoryError:
            raise InputError("needs more than the memory of this machine", file=sources[0].path) from None
        except (OSError, RuntimeError) as error:  # pathlib up to Python 3.12 raises RuntimeError for loops of links
            if isinstance(error, RuntimeError) and "loop" not in str(error):
                raise
            path = getattr(error, "filename", None) or sources[0].path
            raise InputError(f"cannot be read ({getattr(error, 'strerror', None) or error})", file=path) from None


def _read_sources(sources: Sequence[Source], gold: Path | None, format_: str, options: Options) -> Counts:
    name = format_
    if format_ in DETECTED:
        options = replace(options, is_detected=True)
        name = detect(sources, gold, options, format_)
    if name not in FORMATS:
        close = difflib.get_close_matches(name, [TABLE, *FORMATS], 1)
        hint = f"did you mean {close[0]!r}? The" if close else "the"
        raise InputError(f"unknown format {name!r}: {hint} formats are {', '.join([TABLE, *FORMATS])}")
    if FORMATS[name].is_of_package:
        FORMATS[name].check(name, gold, options)  # of another package, whose reader returns tables
        with use_table_reader(FORMATS[name].load()):
            return replace(_read_sources(sources, gold, TABLE, replace(options, own={})), format=name)
    reader: Reader = FORMATS[name].load()
    FORMATS[name].check(name, gold, options)

    def read_files(run_sources: Sequence[Source], run_options: Options) -> Counts:
        with _suggest_group_file(run_options):
            return read_with_groups(partial(reader, run_sources, gold), run_options)

    try:
        counts = runs.read_runs(read_files, sources, options, format_=name, has_gold=gold is not None)
    except InputError as error:
        if not options.is_detected or isinstance(error, RefusedFileError):
            raise
        way = f", or give {spell('gold', 'FILE')} for outputs of a system" if name == "wide" and gold is None else ""
        raise error.add_hint(f"read as {name}; choose with {spell('format')}{way}") from None
    warnings = (*counts.warnings, *_iter_input_warnings(name, sources, gold, options))
    roles = describe_reading(sources, gold, options) if name in TABLES_OF_ROLES else ""
    return replace(counts, name=options.name, format=name, warnings=warnings, roles=roles)


def _iter_input_warnings(name: str, sources: Sequence[Source], gold: Path | None, options: Options) -> Iterator[str]:
    """Yield remarks on files that have two roles, and on options that none of the files needs."""
    if gold is not None and any(source.path.resolve() == gold.resolve() for source in sources if not source.parts):
        yield f"{gold}: is the gold standard and also a system, so this system's score is perfect; leave it out"
    given = {spell("columns", f"{role}={column}"): role for role, column in options.columns.items()}
    changed = (key for key in ("align", "label_map", "ignore") if getattr(options, key) != getattr(DEFAULTS, key))
    given |= {spell(key): key for key in changed}
    used = {*FORMATS[name].roles, *(("run", "unit", "subset", "text") if name in TABLES_OF_ROLES else ())}
    for flag in (flag for flag, need in given.items() if need not in used):
        yield f"{flag} has no effect: format {name} has no such columns, labels or rows; leave it out"
    paths = [*(source.path for source in sources), *([] if gold is None else [gold])]
    named = {spell("ignore", column): column for column in options.ignore}
    named |= {spell("columns", f"{k}={v}"): v for k, v in options.columns.items() if v not in options.groups}
    if named and name in TABLES_OF_ROLES and not any(source.parts for source in sources):
        tables = [read_table(path, options.ignore) for path in paths if not path.is_dir()]
        known = [name for table in tables for name in (*table.columns, *table.nested)]
        for flag, text in named.items():
            if text not in known and not all(part.partition(".")[0] in known for part in text.split("+")):
                yield f"{flag} has no effect: there is no such column{suggest_name(text, known, '; leave it out')}"
    if "sheet" in options.own and not any(path.is_dir() or zipfile.is_zipfile(path) for path in paths):
        yield f"sheet={options.own['sheet']}: not used, as no file is an Excel workbook; leave it out"


@contextmanager
def _suggest_group_file(options: Options) -> Iterator[None]:
    """Add to an error about a missing column of groups the option that takes groups from a file."""
    try:
        yield
    except MissingColumnError as error:
        if error.name not in options.groups:
            raise
        columns = " ".join(file.describe_columns() for file in list_group_files(options))
        raise error.add_hint(columns or suggest_group_file(error.name)) from None


def may_have_metric(metric: str, format_: str, gold: Path | None) -> bool:
    """Return whether files of a format may hold scores under the name of a metric; the files are not read.

    Examples
    --------
    >>> (may_have_metric("loss", "auto", None), may_have_metric("loss", "auto", Path("gold.txt")),
    ...  may_have_metric("loss", "metrics", None))
    (True, False, True)
    """
    if format_ in DETECTED:
        return gold is None or metric.casefold() in FORMATS_BY_METRIC
    return format_ not in FORMATS or format_ in SCORED_FORMATS


def detect(
    sources: Sequence[Source], gold: Path | None = None, options: Options = DEFAULTS, format_: str = "auto"
) -> str:
    """Return the name of the format, by the declared signatures, the names of columns and the metrics.

    With the format `TABLE`, it is one of the shapes of tables.

    Raises
    ------
    InputError
        No format fits, or several.
    """
    add_installed_formats()
    if _are_folders(sources, gold, format_):
        sources, gold = next(iter(folders.match_folders(sources, gold).values()))
    with cache_files(), _limit_resources(sources, options, format_):
        first_sources = [files_[0] for files_ in runs.group_by_name(distinguish_names(sources)).values()]
        return resolve_format(first_sources, gold, options, format_)


def _are_folders(sources: Sequence[Source], gold: Path | None, format_: str) -> bool:
    """Return whether sources are several folders that their format does not read itself."""
    are_several = len(sources) > 1 and not any(s.parts or is_url(str(s.path)) for s in sources)
    if not are_several or format_ in FOLDER_FORMATS or not all(s.path.is_dir() for s in sources):
        return False
    detected = FOLDER_FORMATS if format_ in DETECTED else ()
    return not any(FORMATS[name].fits(sources, gold) for name in detected)
