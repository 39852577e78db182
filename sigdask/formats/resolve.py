"""Find the format of files, from their signatures, from the roles of their columns, and from the metrics.

All declared signatures are looked at, and exactly one format must fit. There is no order in which formats are tried.
Files without a signature are tables, whose shape follows from the roles of their columns, or lists of one value per
line, of which the metric says what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sigdask import metrics
from sigdask.errors import InputError, RefusedFileError
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.signatures import is_list, read_keys
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.registry import FORMATS, FORMATS_BY_METRIC
from sigdask.formats.roles import UNNAMED, Roles, build_roles_error, name_role, resolve_roles
from sigdask.formats.tables.scores import list_scores
from sigdask.interface import spell
from sigdask.metrics import retrieval
from sigdask.metrics.regression import PREFIX
from sigdask.text import format_list

TABLE = "table"
"""Format that stands for the shape of a table, which the roles of its columns decide."""

CASEFOLDED_METRICS = frozenset(map(str.casefold, metrics.METRICS))

LINE_FORMATS = {"segments": "translations", "speech:ids=none": "transcripts", "labels": "labels", "numbers": "numbers"}
"""Formats of lists of one value per line beside a gold file, with what the lines then are."""


def resolve_format(sources: Sequence[Source], gold: Path | None, options: Options, requested: str = "auto") -> str:
    """Return the one format whose signature fits files, or that the metric implies, or the shape of a table.

    Parameters
    ----------
    sources : sequence of Source
        Files, one of each system.
    gold : Path, optional
        Gold-standard file.
    options : Options
        Options of reading; their metrics may decide between formats.
    requested : {"auto", "table"}
        Whether only the shapes of tables are considered.

    Raises
    ------
    InputError
        No format fits, or several.
    """
    if options.metrics and all(name.startswith(PREFIX) for name in options.metrics):
        return "meta"
    if requested == TABLE:
        return _resolve_table(sources, gold, options)
    if options.references:
        return "segments"
    by_metric = {name for metric in options.metrics if (name := find_metric_format(metric))} if gold else set()
    fitting = _list_fitting(sources, gold)
    if len(fitting) > 1 and by_metric & {*fitting}:
        fitting = [name for name in fitting if name in by_metric]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        ways = ", or ".join(f"{spell('format', name)} ({FORMATS[name].help})" for name in fitting)
        raise InputError(f"fits the formats {format_list(fitting)}", file=sources[0].path, remedy=f"choose {ways}")
    if gold is not None and all(map(is_list, (gold, *(source.path for source in sources)))):
        return _resolve_lists(sources, gold, options, by_metric)
    return by_metric.pop() if len(by_metric) == 1 else _resolve_table(sources, gold, options)


def _list_fitting(sources: Sequence[Source], gold: Path | None) -> list[str]:
    """Return the formats whose signatures fit; an error that one raises counts if no other fits."""
    fitting, first_error = [], None
    for name, declared in FORMATS.items():
        try:
            fitting += [name] * declared.fits(sources, gold)
        except InputError as error:
            first_error = first_error or error
    if first_error is not None and not fitting:
        raise first_error
    return fitting


def find_metric_format(name: str) -> str | None:
    """Return the one format that has a metric if there is a gold file, or None."""
    try:
        base = metrics.Spec.parse(name).base.casefold()
        if base in FORMATS_BY_METRIC or base in CASEFOLDED_METRICS:
            return FORMATS_BY_METRIC.get(base)
        return "trec" if retrieval.find_measure(name) is not None else None
    except InputError:  # a metric of the user's own, or a name that is none
        return None


def _resolve_lists(sources: Sequence[Source], gold: Path, options: Options, by_metric: set[str]) -> str:
    """Return the format of lists, which the metric decides."""
    if options.documents is not None and not options.metrics:
        return "segments"
    known = by_metric or {"labels" for name in options.metrics if find_metric_format(name) is None}
    if len(known) == 1:
        return known.pop()
    if known:
        raise InputError(
            f"metrics {format_list([*options.metrics])} need different formats ({format_list(sorted(known))})",
            remedy="compare them one after the other",
        )
    if any({"gold", "prediction"} & {*name_role(read_keys(path)[0])} for path in (gold, sources[0].path)):
        return "labels"
    ways = [f"{spell('format', name)} (they are {what})" for name, what in LINE_FORMATS.items()]
    raise InputError(
        "files of one value per line may be labels, numbers or texts; a metric decides",
        file=gold,
        remedy=f"give {spell('metrics', 'bleu')} or {spell('metrics', 'accuracy')}, or say {', or '.join(ways)}",
    )


def _resolve_table(sources: Sequence[Source], gold: Path | None, options: Options) -> str:
    """Return the shape of tables, by the roles of the columns of the first one."""
    numbers = any(find_metric_format(name) == "numbers" for name in options.metrics)
    if gold is not None:
        return "numbers" if numbers else "labels"
    table = _read_table(sources[0].path, options)
    if len(table.columns) == 1 and not table.header:
        return "wide"
    roles = resolve_roles(table, options)
    if (roles.get("gold") or "").lower() == "of_interest" and "system" not in roles and len(sources) == 1:
        return "responses"
    has_metric = not {name.casefold() for name in table.columns}.isdisjoint(map(str.casefold, options.metrics))
    if "gold" not in roles and "metric" not in roles and not has_metric:
        _check_reference(table.path, options)
    has_no_labels = {"gold", "score"} <= roles.columns.keys() and not (roles.unknown or "prediction" in roles)
    if has_no_labels and not numbers and (len(sources) > 1 or "system" in roles):
        problem = "has a gold standard and scores, but no predictions"
        raise build_roles_error(table, problem, [spell("ignore", str(roles.get("gold")))])
    if "gold" in roles and "metric" not in roles:
        return "numbers" if numbers and not {*options.metrics} & {*table.columns} else "labels"
    if "system" in roles:
        return "long"
    if "prediction" in roles and "score" not in roles:
        ways = [spell("gold", "FILE"), *(spell("columns", f"gold={column}") for column in roles.unknown)]
        raise build_roles_error(table, "has predictions, but no gold standard", ways)
    if "score" in roles or len(sources) > 1 or roles.unknown or "systems" in options.own:
        return "wide"
    ways = [f"{spell('gold', 'FILE')} (for outputs of a system)", f"{spell('format', 'NAME')} ({', '.join(FORMATS)})"]
    raise build_roles_error(table, "cannot tell the format, as no column holds scores", ways)


def _read_table(path: Path, options: Options) -> FileTable:
    """Read a file as a table; an error says that it was read as one, or asks for the references of texts."""
    if is_list(path):
        _check_reference(path, options)
    try:
        return read_table(path, options.ignore)
    except RefusedFileError:
        raise
    except InputError as error:
        ways = [f"choose with {spell('format')}"]
        if not any(map(name_role, read_keys(path))):
            ways.append(f"or give {spell('gold', 'FILE')} for outputs of a system")
        raise error.add_hint(f"read as a table; {', '.join(ways)}") from None


def _check_reference(path: Path, options: Options) -> None:
    """Raise an error for metrics that compare outputs with a reference."""
    for metric in options.metrics:
        if find_metric_format(metric) is not None:
            problem = f"metric {metric} compares outputs with a reference"
            raise InputError(problem, file=path, remedy=f"give {spell('gold', 'FILE')}")


def describe_reading(sources: Sequence[Source], gold: Path | None, options: Options) -> str:
    """Return which column has which role, and what is left out, for the first line of an output; empty for no table."""
    path = sources[0].path
    if path.is_dir() or sources[0].parts or (gold is None and is_list(path)):
        return ""
    try:
        table = read_table(path, options.ignore)
        roles = resolve_roles(table, options, None if gold is None else "system")
        return _describe_roles(table, roles, options, has_scores=gold is None, are_files=len(sources) > 1)
    except InputError:  # of another kind than a table
        return ""


def _describe_roles(table: FileTable, roles: Roles, options: Options, *, has_scores: bool, are_files: bool) -> str:
    if not table.header:
        return "items by position"
    has_items = "item" in roles and options.align != "position"
    parts = [f"item {options.id_column or roles.get('item')}" if has_items else "items by position"]
    shown = ("system", "metric", "gold", "prediction", "run", "unit", "subset")
    named = [(role, roles.columns.get(role)) for role in shown]
    parts += [f"{role} {' + '.join(columns)}" for role, columns in named if columns]
    left_out = ["an unnamed index" if name.startswith(UNNAMED) else name for name in roles.left_out]
    scores = roles.columns.get("score", ())
    is_labelled = "gold" in roles or not has_scores
    if is_labelled and ("prediction" in roles or roles.unknown):
        left_out += (*roles.unknown, *scores) if "prediction" in roles else scores
        scores = ()
    elif not is_labelled and ("system" in roles or are_files):
        scores = list_scores(table, roles, options)
        left_out += [name for name in roles.unknown if name not in scores]
    if scores:
        parts.append(f"score{'s' * (len(scores) > 1)} {' + '.join(scores)}")
    return ", ".join(parts) + (f"; left out: {format_list(left_out, 10)}" if left_out else "")
