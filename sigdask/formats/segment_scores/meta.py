"""Scores of metrics beside human scores of systems' segments: tables, and test-set folders of WMT's metrics tasks.

Several files or language pairs are sets, over which agreement is averaged. An item is a cell: a segment of a system.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask import metrics
from sigdask.counts import Counts
from sigdask.counts.factors import Factor
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.files import name_by_difference
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.tables import FileTable, read_table
from sigdask.formats.roles import describe_columns, name_role
from sigdask.formats.segment_scores import mt_metrics_eval as folders
from sigdask.interface import spell
from sigdask.metrics.agreement import SET_COLUMN
from sigdask.text import describe_items, format_count, format_list

COLUMN_NAMES = {
    "gold": ("human", "gold", "mqm", "esa", "da", "human_score", "mqm_score", "esa_score", "da_score", "rating"),
    "system": ("system", "sys", "system_id", "system_name", "model"),
    "item": ("segment", "seg", "segment_id", "seg_id", "globalsegid", "item", "id"),
    "set": ("language_pair", "lp", "langpair", "lang_pair", "testset", "test_set", "dataset"),
}  # fmt: skip
"""Names of columns by their role, compared without case; "-" and blanks are read as "_"."""

HUMAN_WORDS = frozenset({"human", "mqm", "esa", "sqm", "rater", "annotator"})
"""Words in names of human scores, such as mqm_accuracy. Beside the column that is compared with, they are left out."""

DIMENSIONS = frozenset({"accuracy", "adequacy", "fluency", "coherence", "consistency", "relevance", "faithfulness",
                        "informativeness", "grammar", "style", "terminology", "overall", "quality"})  # fmt: skip
"""Names of what people rate, and metrics may as well. They are refused unless the user says which of the two it is."""

GROUP_NAMES = frozenset({"document", "doc", "doc_id", "document_id", "domain", "talk", "line", "rater",
                         "annotator"})  # fmt: skip
"""Names of columns of groups, besides those whose role is unit, subset, run or text."""

SUGGESTED = ("meta-pearson",)

CORRELATION = re.compile(r"(meta-(?:pearson|spearman|kendall)):(?:.*,)?group=(item|system)(?:,.*)?")
"""Metrics that are averages of correlations within groups."""

EQUAL = 1e-9
"""Means of systems that differ by less are equal."""

Array = NDArray[Any]
Column = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ScoredCells:
    """Human and metric scores of one set: columns over cells.

    Attributes
    ----------
    path : Path
        File of the scores.
    human : float64 array, shape (n_cells,)
        NaN where there is none.
    scores : mapping of str to float64 array, shape (n_cells,)
        By the metric, more being better.
    groups : mapping of str to object array, shape (n_cells,)
        The columns "system" and "segment", and further ones.
    """

    path: Path
    human: Column
    scores: Mapping[str, Column]
    groups: Mapping[str, Array]

    def select(self, mask: NDArray[np.bool_]) -> ScoredCells:
        """Return some of the cells."""
        scores, groups = ({name: column[mask] for name, column in part.items()} for part in (self.scores, self.groups))
        return replace(self, human=self.human[mask], scores=scores, groups=groups)


def read_meta(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read the scores of metrics and people: tables, one row per system and segment, or folders of mt-metrics-eval."""
    sets: dict[str, ScoredCells] = {}
    notes: list[str] = []
    names = name_by_difference([source.path for source in sources]) if len(sources) > 1 else {}
    for source in sources:
        name = source.name or names.get(source.path, source.path.stem)
        if source.path.is_dir():
            parts = _read_folder(source.path, options)
        else:
            parts = _read_table(read_table(source.path, options.ignore, options.decimal), options, notes)
        for part, cells in parts.items():
            key = part if len(sources) == 1 or source.path.is_dir() else f"{name} {part}".strip()
            key = key or name
            if key in sets:
                raise InputError(
                    f"test set {key!r} is in {sets[key].path} already",
                    file=source.path,
                    remedy="name the two NAME=PATH",
                )
            sets[key] = cells
    metric_names = _list_shared_metrics(sets, options, notes)
    if len(metric_names) < 2:
        remedy = "a comparison needs columns of two metrics"
        raise InputError(f"only the metric {metric_names[0]!r} has scores; {remedy}", file=sources[0].path)
    complete = {name: _select_complete(cells, metric_names, notes) for name, cells in sets.items()}
    return _build_counts(complete, metric_names, options, notes)


def _read_table(table: FileTable, options: Options, notes: list[str]) -> dict[str, ScoredCells]:
    """Return the sets of a table: the values of a column of language pairs, or one without a name."""
    system = _find_column(table, "system", options.system_column)
    segment = _find_column(table, "item", options.id_column)
    human = _find_column(table, "gold", options.gold_column)
    set_column = next((name for name in table.columns if _normalize(name) in COLUMN_NAMES["set"]), None)
    note = f"{table.path.name}: human scores in {human!r}, systems in {system!r}, segments in {segment!r}"
    notes.append(ScopeNote(note))
    scored, groups = _sort_columns(table, {system, segment, human, set_column}, options, notes)
    numbers = {name: _read_numbers(table, name) for name in (human, *scored)}
    lower = _list_lower(options, numbers)
    if turned := [name for name in numbers if name in lower]:
        notes.append(f"{table.path}: lower is better in {describe_items(turned, 'column')}: the sign is reversed")
    numbers = {name: -column if name in lower else column for name, column in numbers.items()}
    set_names = list(table.get_column(set_column)) if set_column else [""] * table.n_rows
    columns = {"system": list(table.get_column(system)), "segment": list(table.get_column(segment))}
    _check_cells(table, set_names, columns, (system, segment))
    columns |= {name: list(table.get_column(name)) for name in groups}
    scores = {name: numbers[name] for name in scored}
    cells = ScoredCells(table.path, numbers[human], scores, _as_columns(columns))
    values = np.array(set_names)
    return {str(value): cells.select(values == value) for value in dict.fromkeys(set_names)}


def _normalize(name: str) -> str:
    return re.sub(r"[ -]", "_", name.strip().lower())


def _find_column(table: FileTable, role: str, requested: str | None) -> str:
    """Return the column of a role: the one that the user names, or the only one with a name of the role."""
    if requested is not None:
        table.get_column(requested)  # raises if there is none
        return requested
    claims = [name for name in table.columns if _normalize(name) in COLUMN_NAMES[role]]
    if not claims and role == "gold":
        claims = [name for name in table.columns if _is_human(name)]
    if len(claims) == 1 and _normalize(claims[0]) in COLUMN_NAMES[role]:
        return claims[0]
    noun = {"gold": "human scores", "system": "systems", "item": "segments"}[role]
    problem = f"several columns may hold the {noun}" if len(claims) > 1 else f"no column of {noun}"
    ways = [spell("columns", f"{role}={name}") for name in claims or ["COLUMN"]]
    raise InputError(
        f"{problem}; columns:\n{describe_columns(table)}\n", file=table.path, remedy=f"choose {' or '.join(ways)}"
    )


def _is_human(name: str) -> bool:
    return not HUMAN_WORDS.isdisjoint(_normalize(name).split("_"))


def _sort_columns(
    table: FileTable, known: set[str | None], options: Options, notes: list[str]
) -> tuple[list[str], list[str]]:
    """Return the columns of metrics and those of groups; other human scores are left out with a note."""
    listed = [name for name in options.own.get("scores", "").split("+") if name]
    others = [name for name in table.columns if name not in known and name not in options.ignore]
    group_roles = {"unit", "subset", "run", "text"}
    groups = [
        name
        for name in others
        if name not in listed
        and (name in options.groups or _normalize(name) in GROUP_NAMES or group_roles & {*name_role(name)})
    ]
    human = [name for name in others if name not in {*listed, *groups} and _is_human(name)]
    rest = [name for name in others if name not in {*groups, *human}]
    if not listed and (unclear := [name for name in rest if _normalize(name) in DIMENSIONS]):
        ignore = " ".join(spell("ignore", name) for name in unclear)
        raise InputError(
            f"{describe_items(unclear, 'column')} may be of people or of a metric",
            file=table.path,
            remedy=f"choose {spell('format', 'meta:scores=' + '+'.join(rest))} if metrics, or {ignore} if not",
        )
    if human:
        notes.append(f"{table.path}: other human scores left out: {describe_items(human, 'column')}")
    scored = listed or rest
    if not scored:
        raise InputError("no column of a metric", file=table.path, remedy="add one for each metric")
    return scored, [name for name in groups if name not in {"system", "segment", *table.nested}]


def _read_numbers(table: FileTable, name: str) -> Column:
    try:
        return np.asarray(table.get_numbers(name), np.float64)
    except InputError as error:
        raise error.add_hint(f"leave the column out with {spell('ignore', name)} if it is no metric") from None


def _check_cells(
    table: FileTable, set_names: Sequence[str], columns: Mapping[str, list[str]], names: tuple[str, str]
) -> None:
    """Raise for a row without a system or segment, and for two rows of one segment of a system."""
    for name, column in zip(names, columns.values(), strict=True):
        if "" in column:
            line = table.lines[column.index("")]
            raise InputError(
                f"column {name!r} is empty", file=table.path, line=line, remedy="name it, or remove the row"
            )
    line_by_cell: dict[tuple[str, ...], int] = {}
    for line, *cell in zip(table.lines, set_names, *columns.values(), strict=True):
        first = line_by_cell.setdefault(tuple(cell), line)
        if first != line:
            raise InputError(
                f"system {cell[1]!r}, segment {cell[2]!r} is on line {first} already; expected one row per system "
                "and segment",
                file=table.path,
                line=line,
            )


def _list_lower(options: Options, numbers: Mapping[str, Column]) -> set[str]:
    """Return the columns in which less is better: those requested, or inferred from their names."""
    named = options.own.get("lower")
    if named is None:
        human = options.gold_column
        return {name for name in numbers if metrics.is_lower_better(name) and name != human}
    names = {name for name in named.split("+") if name and name != "none"}
    if unknown := sorted(names - numbers.keys()):
        raise InputError(f"lower={named}: no column {unknown[0]!r}; columns of scores: {', '.join(numbers)}")
    return names


def _read_folder(path: Path, options: Options) -> dict[str, ScoredCells]:
    """Return the language pairs of a test-set folder of mt-metrics-eval that have the human scores asked for."""
    pairs, human = folders.list_pairs(path), options.gold_column
    if (requested := options.own.get("pair")) is not None:
        pairs = [folders.select_pair(path, requested)]
    found: dict[str, ScoredCells] = {}
    for pair in pairs:
        files = folders.find_score_files(path, pair)
        names = [name for name, file in files.items() if file.parent.name == folders.HUMAN]
        if human is not None and human not in names:
            if requested is None and len(pairs) > 1:
                continue
            raise InputError(f"no human scores {human!r} of {pair}; there are: {', '.join(names) or 'none'}", file=path)
        if not names:
            continue
        if human is None and len(names) > 1:
            raise InputError(
                f"several human scores of {pair}: {', '.join(names)}",
                file=path,
                remedy=f"choose one with {spell('columns', 'gold=NAME')}",
            )
        found[pair] = _read_pair(path, pair, files, human or names[0], options)
    if not found:
        problem = f"no human scores {human!r}" if human else "no human scores"
        raise InputError(
            f"{problem} in any of {', '.join(pairs) or 'its files'}; expected files NAME.seg.score in its folder "
            "human-scores",
            file=path,
        )
    return found


def _read_pair(path: Path, pair: str, files: Mapping[str, Path], human: str, options: Options) -> ScoredCells:
    listed = [name for name in options.own.get("scores", "").split("+") if name]
    names = listed or [name for name, file in files.items() if file.parent.name != folders.HUMAN]
    if other := [name for name in names if name not in files]:
        raise InputError(
            f"no scores {other[0]!r} of {pair}; there are: {format_list([*files], folders.SHOWN)}", file=path
        )
    by_name = {name: folders.read_scores(files[name]) for name in (human, *names)}
    systems = [system for system, scores in by_name[human].items() if not np.isnan(scores).all()]
    if not systems:
        raise InputError(f"{files[human]}: no human score; expected a number for some segment")
    n = len(by_name[human][systems[0]])
    columns: dict[str, Column] = {}
    for name, scores in by_name.items():
        folders.check_lengths(files[name], {system: scores[system] for system in systems if system in scores}, n)
        columns[name] = np.concatenate([scores.get(system, np.full(n, np.nan)) for system in systems])
    groups = folders.read_documents(path / folders.DOCUMENTS / f"{pair}.docs")
    if groups and len(groups["document"]) != n:
        raise InputError(
            f"{len(groups['document']):,} lines of documents, but {n:,} segments of {pair}",
            file=path,
            remedy="name the document of each",
        )
    cells: dict[str, Any] = {"system": np.repeat(systems, n), "segment": [str(k + 1) for k in range(n)] * len(systems)}
    cells |= {name: [*column] * len(systems) for name, column in groups.items()}
    scores = {name: columns[name] for name in names if name != human}
    return ScoredCells(path, columns[human], scores, _as_columns(cells))


def _as_columns(groups: Mapping[str, Any]) -> dict[str, Array]:
    return {name: np.array(column, object) for name, column in groups.items()}


def _list_shared_metrics(sets: Mapping[str, ScoredCells], options: Options, notes: list[str]) -> list[str]:
    """Return the metrics that have scores of most cells with human scores, in every set; the others are left out."""
    every = dict.fromkeys(name for cells in sets.values() for name in cells.scores)
    absent: dict[str, str] = {}
    for set_name, cells in sets.items():
        rated = ~np.isnan(cells.human)
        if not rated.any():
            raise InputError(f"{cells.path}{f', {set_name}' * bool(set_name)}: no human scores")
        for name in every:
            scores = cells.scores.get(name)
            if scores is None or 2 * np.isnan(scores[rated]).sum() > rated.sum():
                absent.setdefault(name, set_name)
    shared = [name for name in every if name not in absent]
    if absent:
        notes.append(
            f"{describe_items([*absent], 'metric')} lack scores for most of the human scores, and are left out"
        )
    if not shared:
        raise InputError(
            "no metric has scores for most of the human scores; are systems and segments called the same in both?"
        )
    for name in options.own.get("scores", "").split("+"):
        if name in absent:
            raise InputError(
                f"metric {name!r} lacks scores for most of the human scores",
                remedy=f"leave it out of {spell('metrics')}",
            )
    return shared


def _select_complete(cells: ScoredCells, metric_names: Sequence[str], notes: list[str]) -> ScoredCells:
    """Return the cells that people and all metrics scored."""
    rated = cells.select(~np.isnan(cells.human))
    is_complete = np.logical_and.reduce([~np.isnan(rated.scores[name]) for name in metric_names])
    if not is_complete.all():
        worst = max(metric_names, key=lambda name: int(np.isnan(rated.scores[name]).sum()))
        n = int((~is_complete).sum())
        notes.append(
            f"{cells.path}: {format_count(n, 'human score')} left out, because a metric ({worst}, ...) has no score "
            "there"
        )
    selected = rated.select(is_complete)
    if (n := len(cells.human) - len(rated.human)) and len(rated.human):
        notes.append(ScopeNote(f"{cells.path}: {format_count(n, 'cell')} without human scores: not used"))
    if not len(selected.human):
        remedy = f"name fewer metrics with {spell('metrics')}"
        raise InputError(f"no cell has a human score and scores of all metrics; {remedy}", file=cells.path)
    return selected


def _build_counts(sets: Mapping[str, ScoredCells], names: Sequence[str], options: Options, notes: list[str]) -> Counts:
    is_many = len(sets) > 1
    parts = [*sets.values()]
    columns: dict[str, Array] = {}
    for name in parts[0].groups:
        if all(name in cells.groups for cells in parts):
            values = [f"{key}/" * is_many + cells.groups[name] for key, cells in sets.items()]
            columns.setdefault(name, np.concatenate(values))
        if is_many and name == "segment":
            columns[SET_COLUMN] = np.repeat([*sets], [len(cells.human) for cells in parts])
    if is_many:
        note = f"agreement is the mean over {format_count(len(sets), 'set')}: {format_list([*sets], 12)}"
        notes.append(ScopeNote(note))
    ids = [f"{system}\t{segment}" for system, segment in zip(columns["system"], columns["segment"], strict=True)]
    n_systems = [len({*cells.groups["system"]}) for cells in parts]
    where = "" if not is_many else " in each set" if len({*n_systems}) == 1 else " in the largest set"
    n_cells = format_count(len(ids), "cell")
    note = f"{format_count(max(n_systems), 'system')}{where}, {n_cells} (a segment of a system) with human scores"
    notes.append(ScopeNote(note))
    notes += [*_note_little_information(sets, names), *_note_constant_groups(sets, options)]
    return Counts(
        systems=tuple(names),
        fields={
            "human": np.concatenate([cells.human for cells in parts])[:, None],
            "score": np.column_stack([np.concatenate([cells.scores[m] for cells in parts]) for m in names]),
        },
        n_items=len(ids),
        ids=ids,
        groups={name: Factor.from_values(column) for name, column in columns.items()},
        suggested=SUGGESTED,
        warnings=tuple(notes),
    )


def _note_little_information(sets: Mapping[str, ScoredCells], metric_names: Sequence[str]) -> list[str]:
    """Return notes on sets of one or two systems or segments, and on equal scores; constant human scores raise."""
    notes: list[str] = []
    for name, cells in sets.items():
        place = f" of {name}" * (len(sets) > 1)
        if np.ptp(cells.human) == 0:
            raise InputError(
                f"all human scores{place} are {cells.human[0]:g}, so no metric can agree with them",
                file=cells.path,
                remedy="choose other human scores, or leave this data out",
            )
        if (n_systems := len({*cells.groups["system"]})) < 3:
            limit = "between them (of systems, or within a segment) a correlation is always 1 or -1"
            if n_systems == 1:
                limit = "agreement can only be measured between its segments, not between systems"
            notes.append(ScopeNote(f"only {format_count(n_systems, 'system')}{place}: {limit}"))
        if (n_segments := len({*cells.groups["segment"]})) < 3:
            limit = "in its segments (within a system) a correlation is always 1 or -1, or undefined"
            notes.append(ScopeNote(f"only {format_count(n_segments, 'segment')}{place} of each system: {limit}"))
        if constant := [metric for metric in metric_names if np.ptp(cells.scores[metric]) == 0]:
            effect = (
                "their correlation counts as 0, and their accuracy is only the share of pairs that people call ties"
            )
            names = describe_items(constant, "metric")
            notes.append(ScopeNote(f"constant scores{place} in {names}: {effect}; leave such metrics out"))
        _, codes, sizes = np.unique(cells.groups["system"], return_inverse=True, return_counts=True)
        means = {m: np.bincount(codes, cells.scores[m]) / sizes for m in metric_names if m not in constant}
        if flat := [m for m, values in means.items() if n_systems > 1 and np.ptp(values) < EQUAL]:
            effect = (
                "such metrics cannot distinguish systems, and their correlation at the level of systems counts as 0"
            )
            names = describe_items(flat, "metric")
            notes.append(ScopeNote(f"all systems{place} have the same mean in {names}: {effect}"))
    return notes


def _note_constant_groups(sets: Mapping[str, ScoredCells], options: Options) -> Iterator[str]:
    """Yield a note for each requested correlation within groups if human scores are constant in some groups."""
    for group in dict.fromkeys(filter(None, map(CORRELATION.fullmatch, options.metrics))):
        column, n, n_constant = ("segment" if group[2] == "item" else "system"), 0, 0
        for cells in sets.values():
            _, codes = np.unique(cells.groups[column], return_inverse=True)
            low, high = np.full(codes.max() + 1, np.inf), np.full(codes.max() + 1, -np.inf)
            np.minimum.at(low, codes, cells.human)
            np.maximum.at(high, codes, cells.human)
            n, n_constant = n + len(low), n_constant + int((low == high).sum())
        if n_constant:
            average = "counts them as 0" if "undefined=zero" in group[0] else "leaves them out"
            yield ScopeNote(
                f"{group[1]}: {n_constant:,} of {n:,} {column}s have only equal human scores, so that their "
                f"correlation is undefined; the average over {column}s {average}"
            )
