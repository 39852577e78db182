"""Files to `Counts`: one file a format family; a new one is one reader and one line in `FORMATS`."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.counts.factors import Factor
from sigdask.errors import InputError, RefusedFileError
from sigdask.formats.by_metric import format_of, is_lines, is_of_format
from sigdask.formats.grouping import group_files, grouped, without_names
from sigdask.formats.reading import replicates
from sigdask.formats.reading.files import head_lines, keeping, open_bytes, shown
from sigdask.formats.reading.json.records import check_folder
from sigdask.formats.reading.numbers import MISSING, PERCENT_SIGNS, is_percent
from sigdask.formats.reading.options import DEFAULTS, Options, Source, parse_format, parse_map, parse_source, told_apart
from sigdask.formats.reading.summaries import without_summaries
from sigdask.formats.reading.tables import SCORE_NAMES, FileTable, read_table, reading_once
from sigdask.formats.segment_scores.columns import share_metrics
from sigdask.formats.tables.bookkeeping import check_gold_beside, check_rows, is_real_valued, without_bookkeeping
from sigdask.formats.tables.label_sets import holds_lists
from sigdask.formats.tables.labels import ANSWER_NAMES, GOLD_NAMES, gold_among, gold_beside
from sigdask.formats.tables.notation import in_numbers
from sigdask.formats.tables.responses import FALSE, TRUE
from sigdask.io import addresses, fetch, place
from sigdask.io.compression import unpacking_at_most

__all__ = [
    "FORMATS",
    "Options",
    "Source",
    "detect",
    "may_bring",
    "parse_format",
    "parse_map",
    "parse_source",
    "read",
    "reading_once",
]

Reader = Callable[[Sequence[Source], Path | None, Options], Counts]

FORMATS: dict[str, tuple[str, str]] = {
    "responses": (
        "sigdask.formats.tables.responses:read_responses",
        "one row a response: id, gold (is it of interest: 1/0), one column a system (did it give it: 1/0)",
    ),
    "labels": (
        "sigdask.formats.tables.labels:read_labels",
        "one label an item, or sets (lists, labels:separator=|): a gold column and one a system; or --gold FILE, files",
    ),
    "wide": (
        "sigdask.formats.tables.scores:read_wide",
        "scores, one row an item and one column a system (systems=A+B names them); or a file of numbers a system",
    ),
    "segments": (
        "sigdask.formats.texts.segments:read_segments",
        "translations, one a line; --gold REFERENCE, --reference for more, --documents for units; or WMT XML, SGML",
    ),
    "speech": (
        "sigdask.formats.texts.speech:read_speech",
        "transcripts, NIST trn `words (speaker-utterance)`, Kaldi `id words` or plain lines; --gold REFERENCE",
    ),
    "terms": (
        "sigdask.formats.spans.terms:read_terms",
        "lists of terms a sentence or document: JSON with a term list, rows of id and term, or a folder of lists",
    ),
    "spans": (
        "sigdask.formats.spans.spans:read_spans",
        "labelled spans: JSON lines, brat folders of .ann files, rows of offsets; slots filled by entities (MUC)",
    ),
    "pairs": (
        "sigdask.formats.spans.pairs:read_pairs",
        "a word and its morphs (form, phones) a line, tab-separated; --gold FILE and a file a system",
    ),
    "long": ("sigdask.formats.tables.long:read_long", "scores, rows of system, item, score"),
    "conll": (
        "sigdask.formats.tagging.conll:read_conll",
        "tagged tokens, --gold FILE or a gold column: chunks; options scheme, column, gold-column, tokens, docstart",
    ),
    "timbl": (
        "sigdask.formats.tagging.timbl:read_timbl",
        "TiMBL's output: features, class, predicted class; distributions and distances are passed over",
    ),
    "mbt": (
        "sigdask.formats.tagging.timbl:read_mbt",
        "Mbt's output on a tagged test file: word, tag, predicted tag; sentences end with <utt>",
    ),
    "trec": (
        "sigdask.formats.trec:read_trec",
        "runs, a file a system, --gold QRELS; or what trec_eval -q prints; missing=zero|intersect|pairwise|error",
    ),
    "ratings": (
        "sigdask.formats.ratings.ratings:read_ratings",
        "people's ratings (MQM, ESA, DA), rows of system, segment, score or errors; raters averaged",
    ),
    "samples": (
        "sigdask.formats.samples.samples:read_samples",
        "logs of single samples, of lm-evaluation-harness and Inspect; files or folders, of dated ones the newest",
    ),
    "metrics": (
        "sigdask.formats.segment_scores.columns:read_metrics",
        "scores of several metrics, a file a system: JSON lines, JSON of lists (BERTScore, evaluate), COMET's output",
    ),
    "mt-metrics-eval": (
        "sigdask.formats.segment_scores.mt_metrics_eval:read_directory",
        "a test set's folder of WMT's metrics tasks: human and metric scores; options pair=en-de, scores=NAME+NAME",
    ),
    "squad": (
        "sigdask.formats.texts.answers.squad:read_squad",
        "answers to questions, JSON of id to answer; --gold SQuAD (v1.1, v2.0, or of Hugging Face's datasets)",
    ),
    "fairseq": (
        "sigdask.formats.texts.fairseq:read_fairseq",
        "logs of fairseq-generate, a system each: hypotheses (D-, H-) and targets (T-), or --gold REFERENCE",
    ),
    "battles": (
        "sigdask.formats.ratings.battles:read_battles",
        "wins, ties and losses of two models (Arena, MT-bench, AlpacaEval annotations); a tie is half a win",
    ),
}
"""Name to where its reader stands and what it reads."""

OF_NUMBERS = ("wide", "long", "ratings", "metrics")
"""Formats of columns of scores, whose decimals may be parted by commas."""

OF_FOLDERS = ("samples", "spans", "terms", "mt-metrics-eval")
"""Formats that read folders."""

OF_METRICS = ("ratings", "samples", "metrics", "squad", "battles", "trec", "pairs", "mt-metrics-eval")
"""Formats whose files bring metrics of their own."""

Sniffer = Callable[[Sequence[Source], Path | None, Options], bool]

SNIFFERS: dict[str, str] = {
    "mt-metrics-eval": "sigdask.formats.segment_scores.mt_metrics_eval:sniff",
    "fairseq": "sigdask.formats.texts.fairseq:sniff",
    "samples": "sigdask.formats.samples.samples:sniff",
    "battles": "sigdask.formats.ratings.battles:sniff",
    "ratings": "sigdask.formats.ratings.ratings:sniff",
    "squad": "sigdask.formats.texts.answers.squad:sniff",
    "spans": "sigdask.formats.spans.spans:sniff",
    "terms": "sigdask.formats.spans.terms:sniff",
    "metrics": "sigdask.formats.segment_scores.columns:sniff",
    "pairs": "sigdask.formats.spans.pairs:sniff",
    "conll": "sigdask.formats.tagging.heads:sniff",
    "mbt": "sigdask.formats.tagging.timbl:sniff_mbt",
    "timbl": "sigdask.formats.tagging.timbl:sniff_timbl",
    "trec": "sigdask.formats.trec:sniff",
    "speech": "sigdask.formats.texts.speech:sniff",
    "segments": "sigdask.formats.texts.segments:sniff",  # plain prose: after all that has a shape of its own
}
"""Name to the function that knows the format by its files; tried in this order, before tables."""


def read(
    *systems: Source | Path | str,
    gold: Path | str | None = None,
    format: str = "auto",  # noqa: A002  # as on the command line
    options: Options = DEFAULTS,
) -> Counts:
    """Read system outputs or scores into aligned counts.

    Parameters
    ----------
    *systems : Source, Path or "NAME=PATH"
        Files of one or more systems: TSV, CSV, JSON lines or Parquet; gz, BOM and CRLF as they are.
        Here as everywhere a path may be a URL that fsspec knows: s3://BUCKET/FILE.
        Several files under one NAME are replicates of a system (optimizer runs, seeds): its score
        is the mean of theirs.
    gold : Path, optional
        File of what is right.
    format : str
        A name in `FORMATS`, or "auto" (see `detect`); options of one format follow its name, as in
        "conll:scheme=IOBES". Every format takes replicates=together (swap all replicates of an
        item as one, the default) or replicates=each (each for itself). A reader of your own is named
        MODULE:FUNCTION.
    options : Options
        Columns, alignment, missing scores.

    Raises
    ------
    InputError
        Naming the file, the line or id, what was found and what was expected.
    """
    if not systems:
        raise InputError("no file given; expected a table, or one file a system")
    sources = [s if isinstance(s, Source) else parse_source(s) for s in systems]
    gold_path = None if gold is None else place(gold)
    if is_address(format):
        beside = group_files(options)
        return grouped(_read_own(format, sources, gold_path, without_names(options, beside)), beside, options)
    _fetch(sources, gold_path, options)
    asked, own = parse_format(format)
    with reading_once(), _bounded(sources, options):
        return _read(sources, gold_path, asked, options.with_own(own))


@contextmanager
def _bounded(sources: Sequence[Source], options: Options) -> Iterator[None]:
    """Keep what is unpacked within its limit; what is nested beyond what can be followed is an error."""
    with unpacking_at_most(options.most_unpacked):
        try:
            yield
        except RecursionError:
            raise _refused(sources, "objects or lists are nested too deeply") from None
        except MemoryError:
            raise _refused(sources, "more than the memory of this machine holds") from None
        except RuntimeError as error:
            if "Symlink loop" not in str(error):  # as pathlib says it up to Python 3.12
                raise
            raise _refused(sources, "cannot be read (links that lead to themselves)") from None
        except OSError as error:  # as for a name that is too long
            raise InputError(f"{shown(Path(str(error.filename)))}: cannot be read ({error.strerror})") from None


def _refused(sources: Sequence[Source], why: str) -> InputError:
    return InputError(f"{', '.join(str(source.path) for source in sources)}: {why}")


def _read(sources: Sequence[Source], gold: Path | None, asked: str, options: Options) -> Counts:
    name = asked
    if asked == "auto":
        options = replace(options, is_detected=True)
        name = detect(sources, gold, options)
    if name not in FORMATS:
        close = difflib.get_close_matches(name, FORMATS, 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise InputError(f"unknown format {name!r}: {hint}There are: {', '.join(FORMATS)}")
    if options.decimal is not None and name not in OF_NUMBERS:
        raise InputError(f"--decimal {options.decimal}: format {name} holds no columns of scores; leave it out")
    reader: Reader = _load(FORMATS[name][0])
    may_differ = "replicates" in options.own
    apart, options = _apart(options)
    beside = group_files(options)
    own = without_names(options, beside)
    replicated = replicates.by_replicate(told_apart(sources))
    with replicates.reading_samples(name, may_differ=may_differ) as samples:
        parts = [grouped(reader(files, gold, own), beside, options) for files in replicated]
        for number in range(1, samples.n_samples):
            samples.current = number
            parts += [grouped(reader(files, gold, own), beside, options) for files in replicated]
    return _with_samples(Counts.of_replicates(parts, apart=apart), samples, apart=apart)


def is_address(format_: str) -> bool:
    """Say whether a format is named MODULE:FUNCTION.

    Examples
    --------
    >>> is_address("mine:read"), is_address("conll:scheme=IOBES"), is_address("wide")
    (True, False, False)
    """
    name, colon, rest = format_.partition(":")
    return bool(colon and rest) and "=" not in rest and name not in FORMATS


def _read_own(address: str, sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    counts = addresses.load(address, "format")(sources, gold, options)
    if not isinstance(counts, Counts):
        raise InputError(f"format {address!r}: returned {type(counts).__name__}, expected sigdask.counts.Counts")
    return counts


def may_bring(metric: str, format_: str, gold: Path | None) -> bool:
    """Say whether files may bring a metric of their own, as far as that is known before they are read.

    Examples
    --------
    >>> may_bring("loss", "auto", None), may_bring("loss", "auto", Path("gold.txt")), may_bring("loss", "metrics", None)
    (True, False, True)
    """
    if format_ == "auto":
        return gold is None or is_of_format(metric)
    return is_address(format_) or format_ in OF_METRICS or format_ not in FORMATS


def detect(sources: Sequence[Source], gold: Path | None = None, options: Options = DEFAULTS) -> str:
    """Say what format the files are in, by the metrics asked for, their columns and cells.

    Raises
    ------
    InputError
        Where none fits, or more than one.
    """
    _fetch(sources, gold, options)
    with keeping(), _bounded(sources, options):
        return _detected(replicates.by_replicate(sources)[0], gold, options)


def _detected(sources: Sequence[Source], gold: Path | None, options: Options) -> str:
    if options.references or _are_texts(sources, gold, options):
        return "segments"
    asked = None if gold is None else format_of(options.metrics, [source.path for source in sources], gold)
    if asked is not None:
        return asked
    for name, address in SNIFFERS.items():
        sniff: Sniffer = _load(address)
        if sniff(sources, gold, options):
            return name
    table = _table(sources[0].path, options)
    if options.system_column is not None:
        table.column(options.system_column)
    if gold is not None:
        lists = len(table.columns) == 1 and _is_list(_table(gold, options), table)
        return "responses" if lists else "labels"
    return _of_columns(table, options, sources)


def detect_layout(table: FileTable, options: Options = DEFAULTS) -> str:
    """Say what format a table that is no file is in, as of a file: wide, long, labels or responses."""
    try:
        return _of_columns(without_summaries(table, options), options, [Source(table.path)])
    except InputError as error:
        if "cannot tell the format" not in str(error):
            raise
    return "wide"  # whose reader says which column holds no scores


def _are_texts(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Whether files whose documents are given are lines of text: no columns, and gold lines that hardly repeat."""
    if options.documents is None or gold is None or not all(map(is_lines, (gold, *(s.path for s in sources)))):
        return False
    lines = [line for line in head_lines(gold) if line]
    return 2 * len(set(lines)) > len(lines)


def _fetch(sources: Sequence[Source], gold: Path | None, options: Options) -> None:
    """Have what lies at URLs brought here, several at a time."""
    own = [path for source in sources for path in source.parts or (source.path,)]
    fetch([*own, gold, options.documents, options.group_file, *options.references])


def _table(path: Path, options: Options) -> FileTable:
    """Read what no format with a shape of its own claims; an error says that it was taken for a table."""
    if path.is_dir():
        check_folder(path)
    with open_bytes(path):
        pass  # a file that is not there is no matter of formats
    try:
        return without_summaries(read_table(path, options.ignore, options.decimal), options)
    except RefusedFileError:
        raise
    except InputError as error:
        raise InputError(f"{error} [read as a table; choose with --format]") from None


def _of_columns(table: FileTable, options: Options, sources: Sequence[Source]) -> str:
    """Say what format a table without a gold file is in."""
    system = table.system_name(options)
    if system and (options.score_column or table.conventional(SCORE_NAMES)) and table.id_name(options):
        return "long"
    named_gold = options.gold_column or table.conventional(("gold", "of_interest")) or gold_beside(table)
    if named_gold:
        return _responses_or_labels(table, named_gold, options, len(sources))
    answers = table.conventional(ANSWER_NAMES)
    if answers and not table.is_numeric(answers):
        return "labels"  # whose reader asks for gold labels
    if gold_among(table, options) or holds_lists(table, table.conventional(GOLD_NAMES)):
        return "labels"
    check_rows(table, options, alone=len(sources) == 1)
    if len(sources) == 1:
        check_gold_beside(table, options)
    table = in_numbers(without_bookkeeping(table, options, costs=len(sources) == 1), options)
    columns = table.others(table.id_name(options), *options.groups, *options.ignore)
    if columns and any(table.is_numeric(column) for column in columns):
        return "metrics" if share_metrics(sources, table, options) else "wide"
    percent = next((name for name in columns if name not in table.nested and is_percent(table.columns[name])), None)
    if percent is not None:
        of_column = f", column {percent!r}" if percent else ""
        cell = next(cell for cell in table.columns[percent] if cell not in MISSING)
        raise InputError(f"{table.path}{of_column}: found {cell!r}, {PERCENT_SIGNS}")
    found = f"columns: {', '.join(table.columns)}" if len(table.columns) > 1 or table.header else "one of text"
    raise InputError(
        f"{table.path}: cannot tell the format ({'' if table.header else 'no header; '}{found}); give --format "
        f"({', '.join(FORMATS)}), and --gold FILE where gold labels are in a file of their own"
    )


def _apart(options: Options) -> tuple[bool, Options]:
    """Return whether replicates are swapped each for itself, and the options of the format alone."""
    how = options.choice("replicates", replicates.CHOICES)
    own = {key: value for key, value in options.own.items() if key != "replicates"}
    return how == "each", replace(options, own=own)


def _with_samples(counts: Counts, samples: replicates.SamplesRead, *, apart: bool) -> Counts:
    """Return counts whose first lines say how many samples of items were averaged."""
    if not samples.sizes:
        return counts
    if apart and not samples.are_alike:
        raise InputError(
            f"{', '.join(map(str, samples.sizes))}: items have unlike numbers of samples, which cannot be swapped each "
            "for itself; leave replicates=each out"
        )
    return replace(counts, warnings=(*samples.told, *counts.warnings[1:]))


def _load(address: str) -> Any:
    module, _, attribute = address.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _is_list(gold: FileTable, system: FileTable) -> bool:
    """Whether both are lists of ids rather than labels: no cell occurs twice, and none is a real number."""
    columns = [next(iter(table.columns.values())) for table in (gold, system)]
    unique = len(gold.columns) == 1 and all(len(set(column)) == len(column) for column in columns)
    return unique and not any(is_real_valued(Factor.of(column)) for column in columns)


def _responses_or_labels(table: FileTable, gold: str, options: Options, n_sources: int) -> str:
    if n_sources > 1:
        return "labels"
    columns = table.others(table.id_name(options), *options.groups, *options.ignore)
    if table.nested.keys() & {gold, *columns}:
        return "labels"
    cells = {cell.lower() for column in {gold, *columns} for cell in table.column(column)}
    return "responses" if cells <= TRUE | FALSE else "labels"
