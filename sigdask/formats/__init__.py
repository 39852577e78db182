"""Read files into `Counts`. A new format is one reader function and one line in `FORMATS`."""

from __future__ import annotations

import difflib
import errno
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from sigdask import metrics
from sigdask.counts import Counts
from sigdask.counts.checks import are_sentences, suggest_group_file
from sigdask.counts.factors import Factor
from sigdask.errors import InputError, MissingColumnError, RefusedFileError, UnknownFormatError
from sigdask.formats.grouping import add_file_groups, list_group_files, remove_file_groups
from sigdask.formats.reading import files, json_records, replicates, runs
from sigdask.formats.reading.averages_only import is_metric_name
from sigdask.formats.reading.columns import MISSING, PERCENT_PROBLEM, NotANumberError, is_number, is_percent, to_numbers
from sigdask.formats.reading.converted import describe_unused_sheet, find_dataset
from sigdask.formats.reading.declared import use_table_reader
from sigdask.formats.reading.options import (
    DEFAULTS,
    Options,
    Source,
    distinguish_names,
    parse_columns,
    parse_format,
    parse_map,
    parse_maps,
    parse_source,
)
from sigdask.formats.reading.tables import (
    HEADER_NAMES,
    SCORE_NAMES,
    FileTable,
    cache_tables,
    describe_unknown_columns,
    read_table,
)
from sigdask.formats.registry import FOLDER_FORMATS, FORMATS, FORMATS_BY_METRIC, REFERENCES, add_installed_formats
from sigdask.formats.segment_scores.columns import share_metrics
from sigdask.formats.tables import bookkeeping
from sigdask.formats.tables.labels import ANSWER_NAMES, GOLD_NAMES, find_gold_column, has_label_lists, infer_gold_column
from sigdask.formats.tables.notation import convert_scores, find_row_score
from sigdask.formats.tables.scores import FALSE_WORDS, TRUE_WORDS, are_same_scores, read_plain_scores
from sigdask.formats.texts import fairseq
from sigdask.interface import spell, spell_in
from sigdask.io import addresses, as_path, prefetch_files
from sigdask.io.compression import set_variable, use_options
from sigdask.metrics import retrieval
from sigdask.metrics.agreement import PREFIX
from sigdask.options import Missing

__all__ = ["DETECTED", "FORMATS", "Options", "Source", "cache_tables", "detect", "may_have_metric", "parse_columns",
           "parse_format", "parse_map", "parse_maps", "parse_source", "read"]  # fmt: skip

Reader = Callable[[Sequence[Source], Path | None, Options], Counts]


SNIFFING_ORDER = ("mt-metrics-eval", "fairseq", "ref-hyp", "samples", "battles", "ratings", "squad", "spans", "terms",
                  "metrics", "pairs", "trees", "conllu", "conllx", "conll", "mbt", "timbl", "trec", "speech",
                  "segments")  # fmt: skip
"""Order in which formats are tried on a file, before tables. Plain prose comes after all formats with a recognizable
shape.
"""

TABLE_FORMATS = ("responses", "labels", "numbers", "wide", "long", "meta")
"""Formats of tables that `read_table` reads."""

TABLE = "table"
"""Format whose layout is one of the tables', recognised by its columns."""

DETECTED = ("auto", TABLE)
"""Formats that stand for those that are detected."""

CASEFOLDED_METRICS = frozenset(map(str.casefold, metrics.METRICS))

ZERO_FORMATS = frozenset({"trec", "squad", "spans", "terms", "pairs"})
"""Formats in which an item that a system lacks counts as an empty output, unless `missing` says otherwise."""

LINE_FORMATS = frozenset({"segments", "speech"})
"""Formats with one text a line, as opposed to JSON, Parquet and columns."""

JSON_START = re.compile(r"\s*(\{\s*(\"|$)|\[\s*([\[{\"\d]|$))")


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
        "conll:scheme=IOBES". Every format has the option replicates=together (items may have different numbers of
        samples) or replicates=paired (the files of all systems share seeds, in their order). Name your own reader as
        MODULE:FUNCTION.
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
    sources = _find_datasets([s if isinstance(s, Source) else parse_source(s) for s in listed])
    gold_path = None if gold is None else find_dataset(as_path(gold))
    if is_address(format):
        table_groups = list_group_files(options)
        reader = addresses.load_object(format, "format")
        counts = reader(sources, gold_path, remove_file_groups(options, table_groups))
        if not isinstance(counts, Counts):
            raise InputError(f"format {format!r}: returned {type(counts).__name__}, expected sigdask.counts.Counts")
        return add_file_groups(counts, table_groups, options)
    prefetch_files(_list_files(sources, gold_path, options))
    format_name, format_options = parse_format(format)
    if format_options:
        options = options.with_format_options(format_options)
    with cache_tables(), _limit_resources(sources, options, format_name):
        return _read_with_shortcut(sources, gold_path, format_name, options)


def _find_datasets(sources: Sequence[Source]) -> list[Source]:
    """Return the sources with the Arrow files of folders of Hugging Face datasets, named after their folders."""
    paths = [find_dataset(source.path) for source in sources]
    return [
        source if path == source.path else replace(source, path=path, apart=source.path.resolve().name)
        for source, path in zip(sources, paths, strict=True)
    ]


@contextmanager
def _limit_resources(sources: Sequence[Source], options: Options, format_: str = "auto") -> Iterator[None]:
    """Limit the size of unpacked data, and raise an error for nesting that is too deep."""
    with use_options({"format": format_, **options.own}):
        try:
            yield
        except RecursionError:
            raise _build_read_error(sources, "objects or lists are nested too deeply") from None
        except MemoryError:
            raise _build_read_error(sources, "more than the memory of this machine holds") from None
        except RuntimeError:  # of pathlib up to Python 3.12
            if not any(_is_link_loop(source.path) for source in sources):
                raise
            raise _build_read_error(sources, "cannot be read (links that lead to themselves)") from None
        except OSError as error:  # as for a name that is too long
            path = files.shorten_path(Path(str(error.filename)))
            raise InputError(f"cannot be read ({error.strerror})", file=path) from None


def _is_link_loop(path: Path) -> bool:
    """Return whether a path is a symbolic link that leads to itself."""
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _build_read_error(sources: Sequence[Source], reason: str) -> InputError:
    return InputError(f"{', '.join(str(source.path) for source in sources)}: {reason}")


def _read_sources(sources: Sequence[Source], gold: Path | None, format_: str, options: Options) -> Counts:
    name = format_
    run_names = {*replicates.RUN_NAMES, options.columns.get("run")}
    groups = tuple(group for group in options.groups if group not in run_names)
    if groups != options.groups:  # as columns of runs, or of items if there are no runs
        with suppress(InputError):
            counts = _read_sources(sources, gold, format_, replace(options, groups=groups))
            if counts.runs:
                return counts
    if format_ in DETECTED:
        options = replace(options, is_detected=True)
        name = detect(sources, gold, options, format_)
    if name not in FORMATS:
        close = difflib.get_close_matches(name, [TABLE, *FORMATS], 1)
        hint = f"did you mean {close[0]!r}? The" if close else "the"
        raise InputError(f"unknown format {name!r}: {hint} formats are {', '.join([TABLE, *FORMATS])}")
    if "table" in FORMATS[name].traits:
        return _read_declared_tables(sources, gold, name, options)
    reader: Reader = FORMATS[name].load()
    choice = options.own.get("replicates") and options.get_choice("replicates", runs.CHOICES)
    options = replace(options, own={key: value for key, value in options.own.items() if key != "replicates"})
    FORMATS[name].check(name, gold, options)
    table_groups = list_group_files(options)

    def read_files(run_sources: Sequence[Source], run_options: Options) -> Counts:
        reader_options = remove_file_groups(run_options, table_groups)
        with _suggest_group_file(reader_options):
            return add_file_groups(reader(run_sources, gold, reader_options), table_groups, run_options)

    convention: Missing = "zero" if name in ZERO_FORMATS else "error"
    counts = runs.read_runs(read_files, sources, options, format_=name, convention=convention, replicates=choice)
    warnings = (*counts.warnings, *_iter_input_warnings(name, sources, gold, options, counts.n_systems))
    return replace(counts, name=options.name, format=name, warnings=warnings)


def _read_declared_tables(sources: Sequence[Source], gold: Path | None, name: str, options: Options) -> Counts:
    """Read files by a format of another package, whose reader returns tables, as tables of these columns."""
    FORMATS[name].check(name, gold, options)
    with use_table_reader(FORMATS[name].load()):
        return replace(_read_sources(sources, gold, TABLE, replace(options, own={})), format=name)


def _iter_input_warnings(
    name: str, sources: Sequence[Source], gold: Path | None, options: Options, n_systems: int
) -> Iterator[str]:
    """Yield remarks on files that have two roles, and on options that none of the files needs."""
    if gold is not None and any(source.path.resolve() == gold.resolve() for source in sources if not source.parts):
        yield f"{gold}: is the gold standard and also a system, so this system's score is perfect; leave it out"
    used = FORMATS[name].roles
    given = {f"{spell('columns', role)}": role for role in options.columns}
    given |= {f"{spell('label_map')}": "label_map"} if options.label_map else {}
    given |= {f"{spell('ignore')}": "ignore"} if options.ignore else {}
    for flag, need in given.items():
        if need not in used and need not in {"run", "unit", "subset", "text"}:
            yield f"{flag} has no effect: format {name} has no such columns or labels; leave it out"
    if options.prediction_column and "prediction" in used and len(sources) < n_systems:
        yield f"{spell('columns', 'prediction')} has no effect: a file has several systems; leave it out"
    if options.ignore and name in TABLE_FORMATS and not any(source.parts for source in sources):
        paths = [path for path in (gold, *(source.path for source in sources)) if path and not path.is_dir()]
        tables = [read_table(path, options.ignore, options.decimal) for path in paths]
        yield from describe_unknown_columns(options.ignore, [name for t in tables for name in (*t.columns, *t.nested)])
    if unused := describe_unused_sheet(options.sheet, _list_files(sources, gold, options)):
        yield unused


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


def is_address(format_: str) -> bool:
    """Return whether a format is given as MODULE:FUNCTION, the address of a reader.

    Examples
    --------
    >>> is_address("mine:read"), is_address("conll:scheme=IOBES"), is_address("wide")
    (True, False, False)
    """
    name, colon, function = format_.partition(":")
    return bool(colon and function) and "=" not in function and name not in FORMATS


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
    return format_ not in FORMATS or "metrics" in FORMATS[format_].traits


def detect(
    sources: Sequence[Source], gold: Path | None = None, options: Options = DEFAULTS, format_: str = "auto"
) -> str:
    """Return the name of the format, judged by the requested metrics, the columns and the cells.

    With the format `TABLE`, it is one of the layouts of tables.

    Raises
    ------
    InputError
        No format fits, or several.
    """
    add_installed_formats()
    prefetch_files(_list_files(sources, gold, options))  # several at a time
    sources, gold = _find_datasets(sources), gold and find_dataset(gold)
    with _limit_resources(sources, options, format_):
        first_sources = [files_[0] for files_ in runs.group_by_name(distinguish_names(sources)).values()]
        return (_detect_table if format_ == TABLE else _detect_format)(first_sources, gold, options)


def _detect_format(sources: Sequence[Source], gold: Path | None, options: Options) -> str:
    if options.references or _are_texts(sources, gold, options):
        return "segments"
    if options.metrics and all(name.startswith(PREFIX) for name in options.metrics):
        return "meta"
    metric_format = None if gold is None else find_format(options.metrics, [source.path for source in sources], gold)
    if metric_format is not None:
        return metric_format
    known = _known_tables.get()
    shown = None if known is None else _describe_score_table(sources, gold, options)
    alike = _KnownTables() if known is None or shown is None else known.setdefault(shown.kind, _KnownTables())
    if shown is None or not shown.shapes <= alike.sniffed:
        for name in dict.fromkeys((*SNIFFING_ORDER, *(name for name in FORMATS if FORMATS[name].signature))):
            if FORMATS[name].can_be_detected(gold) and FORMATS[name].fits(sources, gold, options):
                return name
        alike.sniffed |= set() if shown is None else shown.shapes
    return _detect_table(sources, gold, options)


def _detect_table(sources: Sequence[Source], gold: Path | None, options: Options) -> str:
    """Return the layout of a table."""
    table = _read_table_to_detect(sources[0].path, options)
    if options.system_column is not None:
        table.get_column(options.system_column)
    if gold is not None:
        lists = len(table.columns) == 1 and _are_id_lists(_read_table_to_detect(gold, options), table)
        return "responses" if lists else "labels"
    return _detect_by_columns(table, options, sources)


@dataclass(slots=True)
class _KnownTables:
    """Properties of score tables that look alike.

    Attributes
    ----------
    sniffed : set of str
        Shapes of rows in tables that no format but a table's claimed.
    plain : set of str or None
        Shapes of rows in tables that `read_plain_scores` reads as all of `read` does; None if it reads one otherwise.
    """

    sniffed: set[str] = field(default_factory=set)
    plain: set[str] | None = field(default_factory=set)


_known_tables: ContextVar[dict[str, _KnownTables] | None] = ContextVar("known_tables", default=None)

SCORE_ROW = re.compile(r"([^,;\t\"']*)([,;\t])-?\d+(?:\.\d+)?(?:\2-?\d+(?:\.\d+)?)*")
"""A row of a table of scores: an id without quotation marks, and numbers."""

DIGITS, WORDS = re.compile(r"\d+"), re.compile(r"[a-z]{3,}")
"""Patterns of what may differ between rows that look alike. Formats are recognized by shorter words and by capitals
(Q0, D-1), so these are kept.
"""


def remember_shapes() -> AbstractContextManager[None]:
    """Ask the formats only once about small tables of scores that look alike, inside the `with` block."""
    return set_variable(_known_tables, {})


class _ScoreTable(NamedTuple):
    """Features of a small table of scores by which formats recognize it.

    Attributes
    ----------
    kind : str
        Its header with the options and the ending of its name.
    shapes : set of str
        Its rows with each number as 0 and each word as a.
    text : str
        All of it, with line feeds.
    """

    kind: str
    shapes: set[str]
    text: str


def _describe_score_table(sources: Sequence[Source], gold: Path | None, options: Options) -> _ScoreTable | None:
    """Return the features of a small table of scores in which no id is repeated; None for other files."""
    path = sources[0].path
    if len(sources) != 1 or gold is not None or sources[0].parts or options.sheet is not None:
        return None
    if metrics.is_lower_better(path.name):
        return None  # whose name raises a doubt
    lines = files.read_head_lines(path, whole=True) or [""]
    if len(lines) > 1 and not lines[-1]:  # after the last line break
        lines.pop()
    header, *rows = lines
    delimiter = files.find_delimiter(rows[0]) if rows else None
    if delimiter is None or len({row.partition(delimiter)[0] for row in rows}) < len(rows):
        return None
    if delimiter == "\t" and header.count("\t") == 2:
        return None  # the order of the numbers may show what trec_eval prints
    shapes = {*WORDS.sub("a", DIGITS.sub("0", "\n".join(rows))).split("\n")}
    if not all(map(SCORE_ROW.fullmatch, shapes)):
        return None
    settings = [getattr(options, name) for name in Options.__slots__ if name != "name"]
    return _ScoreTable(f"{path.suffix}\n{header}\n{settings}", shapes, "\n".join(lines))


def _read_with_shortcut(sources: Sequence[Source], gold: Path | None, format_: str, options: Options) -> Counts:
    """Read files; a small table of scores that looks like one before it is read as that one was."""
    known_tables = _known_tables.get()
    table = None
    if known_tables is not None and format_ in {"auto", "wide"}:
        table = _describe_score_table(sources, gold, options)
    if known_tables is None or table is None:
        return _read_sources(sources, gold, format_, options)
    known = known_tables.setdefault(f"{format_}\n{table.kind}", _KnownTables())
    is_known = known.plain is not None and table.shapes <= known.plain
    if is_known and (plain := read_plain_scores(table.text, table.shapes, options)) is not None:
        object.__setattr__(plain, "format", "wide")  # a copy would check everything again
        return plain
    counts = _read_sources(sources, gold, format_, options)
    if known.plain is not None and not is_known:
        plain = read_plain_scores(table.text, table.shapes, options)
        if plain is not None and are_same_scores(plain, counts):
            known.plain |= table.shapes
        elif plain is not None:
            known.plain = None
    return counts


def detect_layout(table: FileTable, options: Options = DEFAULTS) -> str:
    """Return the layout of a table in memory: wide, long, labels or responses."""
    try:
        return _detect_by_columns(table, options, [Source(table.path)])
    except UnknownFormatError:
        return "wide"  # whose reader reports columns without scores


def _are_texts(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Return whether files are plain lines of text: a document file is given, and gold lines hardly repeat."""
    if options.documents is None or gold is None or not all(map(is_line_text, (gold, *(s.path for s in sources)))):
        return False
    lines = [line for line in files.read_head_lines(gold) if line]
    return 2 * len(set(lines)) > len(lines)


def _list_files(sources: Sequence[Source], gold: Path | None, options: Options) -> list[Path | None]:
    """Return all files that are read; None for files that were not given."""
    paths = [path for source in sources for path in source.parts or (source.path,)]
    return [*paths, gold, options.documents, options.group_file, *options.references]


def _read_table_to_detect(path: Path, options: Options) -> FileTable:
    """Read a file as a table, to detect its format; errors say that it was read as a table."""
    if path.is_dir():
        json_records.check_folder(path)
    with files.open_bytes(path):
        pass  # a missing file is not a question of formats
    try:
        return read_table(path, options.ignore, options.decimal)
    except RefusedFileError:
        raise
    except InputError as error:
        if _is_prose(path):
            raise _build_reference_error(path, options.metrics) or InputError(
                f"is text and no table. If it is the output of a system, {spell_in(REFERENCE_REMEDY)}. Else choose "
                f"{spell('format')} ({error})",
                file=path,
            ) from None
        raise error.add_hint(f"read as a table; choose with {spell('format')}") from None


REFERENCE_REMEDY = "give {gold=FILE} (the reference translations or transcripts, or the gold standard)"

MIN_WORDS = 3
"""Minimum average number of words of a line of prose."""


def _is_prose(path: Path) -> bool:
    """Return whether a file's first lines are phrases or sentences."""
    if path.suffix.lower() in {".csv", ".tsv"} or not is_line_text(path):
        return False
    lines = [line for line in files.read_head_lines(path)[:20] if line.strip()]
    return sum(len(line.split()) for line in lines) >= MIN_WORDS * max(len(lines), 1)


def _build_reference_error(path: Path, metric_names: Sequence[str]) -> InputError | None:
    """Return the error for metrics that compare outputs with a reference; None if all do without."""
    for metric in metric_names:
        if (needed := _find_metric_format(metric)) is not None:
            text = REFERENCES.get(needed, f"the {FORMATS[needed].content or 'gold standard'}")
            return InputError(
                f"metric {metric} compares outputs with a reference",
                file=path,
                remedy=f"give {spell('gold', 'FILE')} ({text})",
            )
    return None


def _detect_by_columns(table: FileTable, options: Options, sources: Sequence[Source]) -> str:
    """Return the format of a table without a gold file."""
    named_gold = options.gold_column or table.find_column(("gold", "of_interest")) or find_gold_column(table)
    if _is_long(table, options, has_gold=bool(named_gold)):
        return "long"
    holds_labels = bool(options.gold_column) or not bookkeeping.has_metrics(table, options)
    if named_gold and holds_labels:
        if any(_find_metric_format(name) == "numbers" and name not in table.columns for name in options.metrics):
            return "numbers"
        if table.columns.keys() >= json_records.ANSWER_LISTS and _may_be_texts(table, options):
            raise json_records.build_texts_error(table.path)
        return _detect_responses_or_labels(table, named_gold, options, len(sources))
    answers = table.find_column(ANSWER_NAMES)
    if answers and holds_labels and not table.is_numeric(answers):
        return "labels"  # whose reader asks for gold labels
    if holds_labels and (infer_gold_column(table, options) or has_label_lists(table, table.find_column(GOLD_NAMES))):
        return "labels"
    bookkeeping.check_rows(table, options, is_only_file=len(sources) == 1)
    if len(sources) == 1:
        bookkeeping.check_gold_labels(table, options)
    table = bookkeeping.remove_bookkeeping(table, options, costs=len(sources) == 1)
    table = convert_scores(table, options)
    columns = table.list_system_columns(options)
    if columns and any(table.is_numeric(column) for column in columns):
        return "metrics" if share_metrics(sources, table, options) else "wide"
    percent = next((name for name in columns if name not in table.nested and is_percent(table.columns[name])), None)
    if percent is not None:
        column_text = f", column {percent!r}" if percent else ""
        cell = next(cell for cell in table.columns[percent] if cell not in MISSING)
        raise InputError(f"{table.path}{column_text}: found {cell!r}, {PERCENT_PROBLEM}")
    raise _build_unknown_error(table, options)


def _is_long(table: FileTable, options: Options, *, has_gold: bool) -> bool:
    """Return whether a table has rows of system, item and score."""
    system = table.find_system_column(options)
    if system and (options.score_column or table.find_column(SCORE_NAMES)) and table.find_id_column(options):
        return True
    score = find_row_score(table, options)
    if score is None or not has_gold:
        return score is not None
    return is_metric_name(score) and len({*table.get_column(system or "")}) > 1  # labels of one system are compared


def _build_unknown_error(table: FileTable, options: Options) -> InputError:
    """Return the error for a file of unknown format, which names what is missing or what to choose."""
    if (error := _build_reference_error(table.path, options.metrics)) is not None:
        return error
    if (text := _describe_bad_score(table) or _describe_start(table)) is not None:
        return InputError(text)
    columns_text = f"columns: {', '.join(table.columns)}" if len(table.columns) > 1 or table.header else "lines of text"
    if columns_text == "lines of text" and _is_table_of_blanks(table):
        return InputError(
            "blanks part its columns, but it is no table of ratings (system, segment, score)",
            file=table.path,
            remedy="write it as TSV or CSV, with a header and one row per item (in R, by write.csv)",
        )
    return UnknownFormatError(
        f"{table.path}: cannot tell the format ({'' if table.header else 'no header; '}{columns_text}). Are these "
        f"outputs of a system? Then {spell_in(REFERENCE_REMEDY)}. Else choose {spell('format', 'NAME')}: "
        f"{', '.join(FORMATS)}"
    )


def _describe_bad_score(table: FileTable) -> str | None:
    """Return the error for a column in which most cells are numbers or begin like one, and some are none, or None."""
    columns = {name: list(cells) for name, cells in table.columns.items() if name not in table.nested}
    if any(re.match(r"\[(PASS|FAIL|ERROR)\]", cell) for cells in columns.values() for cell in cells[:1]):
        return f"{table.path}: {files.PROMPTFOO_PROBLEM}"
    for is_alike in (is_number, NUMBER_START.match):
        for name, cells in [*columns.items()][len(columns) > 1 :]:
            if 2 * sum(bool(is_alike(cell)) for cell in cells) <= len(cells):
                continue
            try:
                to_numbers(cells)
            except NotANumberError as error:
                column = f", column {name!r}" if name else ""
                return f"{table.path}, line {table.lines[error.index]}{column}: {error}"
    return None


NUMBER_START = re.compile(r"[-+(]?\d[\d '.,/\u202f\xa0]*\D{0,4}$")
"""Pattern of a number that is written in another way, such as 1 200, 1'200 or 12 ms."""


def _describe_start(table: FileTable) -> str | None:
    """Return the error for lines above the header of a table, or for a table with other separators, or None."""
    lines = [*next(iter(table.columns.values()))] if len(table.columns) == 1 and not table.nested else []
    for delimiter in ("\t", ";", ",", "|", "&"):
        counts = [line.count(delimiter) for line in lines]
        ((usual, n_usual),) = Counter(counts).most_common(1) or [(0, 0)]
        start = counts.index(usual) if usual and 5 * n_usual >= 4 * len(counts) else -1
        if start > 0 and delimiter in "\t;,":
            return (
                f"{table.path}, line {table.lines[start]}: is this the header? {delimiter!r} separates columns from "
                "here on; remove the lines above it"
            )
        if start >= 0 and usual > 1 and delimiter in "|&":
            return f"{table.path}: columns are separated by {delimiter!r}, which is not read; write the table as CSV"
    return None


def _is_table_of_blanks(table: FileTable) -> bool:
    """Return whether all lines have the same number of words, some of them numbers."""
    rows = [cell.split() for cell in next(iter(table.columns.values()))]
    widths = {len(row) for row in rows[1:] or rows}
    has_numbers = bool(rows) and all(any(map(is_number, row)) for row in rows[1:] or rows)
    return len(widths) == 1 and min(widths) > 1 and has_numbers


def _are_id_lists(gold: FileTable, system: FileTable) -> bool:
    """Return whether both tables are lists of ids: no cell repeats, and none is a real number or a sentence."""
    columns = [next(iter(table.columns.values())) for table in (gold, system)]
    if len(gold.columns) != 1 or any(len(set(column)) < len(column) for column in columns):
        return False
    are_real = map(bookkeeping.is_real_valued, map(Factor.from_values, columns))
    return not any(are_real) and not any(map(are_sentences, columns))


def _may_be_texts(table: FileTable, options: Options) -> bool:
    """Return whether JSON lists of predictions and references may be texts: few repeat, and no metric says more."""
    if table.nested or not json_records.read_head(table.path).lstrip().startswith("{"):
        return False
    if json_records.is_json_lines(table.path) or any(map(table.is_numeric, json_records.ANSWER_LISTS)):
        return False
    if options.metrics:
        return any(_find_metric_format(name) in REFERENCES for name in options.metrics)
    predictions, references = (Factor.from_values(table.columns[name]) for name in ("predictions", "references"))
    are_few = 2 * len(references.levels) <= len(references)
    return not are_few or not {*predictions.levels.tolist()} <= {*references.levels.tolist()}


def _detect_responses_or_labels(table: FileTable, gold: str, options: Options, n_sources: int) -> str:
    if n_sources > 1:
        return "labels"
    columns = table.list_system_columns(options)
    if table.nested.keys() & {gold, *columns}:
        return "labels"
    cells = {cell.lower() for column in {gold, *columns} for cell in table.get_column(column)}
    return "responses" if cells <= TRUE_WORDS | FALSE_WORDS else "labels"


def find_format(metric_names: Sequence[str], paths: Sequence[Path], gold: Path) -> str | None:
    """Return the one format that supports the requested metrics, or None if metrics or files do not settle it.

    Parameters
    ----------
    metric_names : sequence of str
        Metrics as users name them.
    paths : sequence of Path
        Files of systems.
    gold : Path
        Gold-standard file.
    """
    formats = {format_ for name in metric_names if (format_ := _find_metric_format(name)) is not None}
    if len(formats) != 1:
        return None
    (format_,) = formats
    has_plain_lines = all(map(is_line_text, (gold, *paths))) if format_ in LINE_FORMATS else True
    return format_ if has_plain_lines else None


def _find_metric_format(name: str) -> str | None:
    try:
        base = metrics.Spec.parse(name).base.casefold()
        if base in FORMATS_BY_METRIC or base in CASEFOLDED_METRICS:
            return FORMATS_BY_METRIC.get(base)
        return "trec" if retrieval.find_measure(name) is not None else None
    except InputError:  # a metric of the user's own, or a name that is none
        return None


def reads_folders(format_: str) -> bool:
    """Return whether a format reads folders, or may do so."""
    return is_address(format_) or format_.partition(":")[0] in FOLDER_FORMATS


def is_line_text(path: Path) -> bool:
    """Return whether a file holds plain lines of text, XML or SGML, rather than columns or JSON."""
    if path.is_dir() or files.is_parquet(path):
        return False
    lines = [line for line in files.read_head_lines(path)[:20] if line.strip()]
    if not lines or fairseq.is_log(path) or JSON_START.match(lines[0]):
        return False
    names = {name.lower() for name in files.parse_header(lines[0])}
    return len(names) < 2 or HEADER_NAMES.isdisjoint(names)
