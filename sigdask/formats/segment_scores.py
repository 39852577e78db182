"""Segment scores of any metrics, in the output formats of the metrics' own tools.

Test-set folders of mt-metrics-eval (WMT metrics tasks): human and metric scores of all segments.

`human-scores/en-de.mqm.seg.score` is the metric `mqm`, and `metric-scores/en-de/COMET-22-refA.seg.score` is
`COMET-22-refA`. A row has system and score, with the segments of a system in order and `None` for a missing score.
Human scores are compared by default. Documents and domains (`documents/en-de.docs`) are possible units.

Scores of metrics beside human scores of systems' segments: tables, and test-set folders of WMT's metrics tasks.

Several files or language pairs are sets, over which agreement is averaged. An item is a cell: a segment of a system.

COMET's JSON (`comet-score --to_json`): scores of segments, with one system for each file of translations.

Segments are paired by position. Their sources must be the same in all systems.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigdask import metrics
from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote, Texts
from sigdask.errors import InputError
from sigdask.formats.reading import files
from sigdask.formats.reading.files import name_by_difference
from sigdask.formats.reading.json_records import load_json, parse_number
from sigdask.formats.reading.options import Options, Source, distinguish_names, list_row_systems
from sigdask.formats.reading.replicates import build_score_counts
from sigdask.formats.reading.signatures import COMET, HUMAN, METRIC
from sigdask.formats.reading.tables import FileTable, build_table, read_table
from sigdask.formats.roles import build_roles_error, resolve_roles
from sigdask.interface import spell
from sigdask.metrics.regression import SET_COLUMN
from sigdask.text import describe_items, format_count, format_list

ENDING = ".seg.score"
SHOWN = 12

Floats = NDArray[np.float64]


class PairScores(NamedTuple):
    """Scores of the segments of one language pair.

    Attributes
    ----------
    systems : list of str
        All systems that have a score.
    scores : dict of str to float64 array, shape (n_segments, n_systems)
        Scores by metric; NaN where there is none.
    groups : dict of str to list of str
        Document and domain of each segment, if the folder has them.
    """

    systems: list[str]
    scores: dict[str, Floats]
    groups: dict[str, list[str]]

    def select(self, names: Collection[str]) -> PairScores:
        """Return the systems that have all of these scores."""
        has_all = np.logical_and.reduce([~np.isnan(self.scores[name]).all(axis=0) for name in names])
        systems = [system for system, is_in in zip(self.systems, has_all, strict=True) if is_in]
        return PairScores(systems, {name: scores[:, has_all] for name, scores in self.scores.items()}, self.groups)


def read_directory(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read the segment scores of one language pair from a test-set folder of mt-metrics-eval."""
    path = sources[0].path
    if len(sources) > 1:
        raise InputError("is a second folder", file=sources[1].path, remedy="give the folder of one test set")
    pair = select_pair(path, options.own.get("pair"))
    human = [name for name, file in find_score_files(path, pair).items() if file.parent.name == HUMAN]
    names = [*dict.fromkeys((*list_names(options), *options.metrics))] or human
    read = read_pair(path, pair, names)
    selected = read.select(names)
    if not selected.systems:
        raise InputError(f"no system has scores in all of {', '.join(names)}", file=path)
    omitted = [system for system in read.systems if system not in selected.systems]
    notes = [f"{path}: {describe_items(omitted, 'system')} without scores in every metric: left out"] if omitted else []
    return build_score_counts(
        selected.scores, selected.systems, None, groups=read.groups, options=options, warnings=notes
    )


def list_names(options: Options) -> list[str]:
    """Return the scores that the format's option `scores=NAME+NAME` names."""
    return [name for name in options.own.get("scores", "").split("+") if name]


def list_pairs(path: Path) -> list[str]:
    """Return the language pairs of a test set."""
    human = (file.name.partition(".")[0] for file in (path / HUMAN).glob(f"*{ENDING}"))
    metric = (file.parent.name for file in (path / METRIC).glob(f"*/*{ENDING}"))
    return sorted({*human, *metric})


def select_pair(path: Path, requested: str | None) -> str:
    """Return the requested language pair, or the only one."""
    pairs = list_pairs(path)
    if not pairs:
        problem = f"no scores of segments in folders {HUMAN} and {METRIC}"
        raise InputError(problem, file=path, remedy="give the folder of one test set")
    if requested in pairs or (requested is None and len(pairs) == 1):
        return requested or pairs[0]
    problem = f"no language pair {requested!r}" if requested else "several language pairs"
    remedy = f"choose with {spell('format', f'mt-metrics-eval:pair={pairs[0]}')}: {', '.join(pairs)}"
    raise InputError(problem, file=path, remedy=remedy)


def find_score_files(path: Path, pair: str) -> dict[str, Path]:
    """Return the score files by metric; human scores replace metrics of the same name."""
    human = sorted((path / HUMAN).glob(f"{pair}.*{ENDING}"))
    metric = sorted((path / METRIC / pair).glob(f"*{ENDING}"))
    human_files = {file.name.removeprefix(f"{pair}.").removesuffix(ENDING): file for file in human}
    return {file.name.removesuffix(ENDING): file for file in metric} | human_files


def read_pair(path: Path, pair: str, names: Sequence[str]) -> PairScores:
    """Return the named scores of a language pair."""
    known = find_score_files(path, pair)
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        problem = f"no scores {unknown[0]!r}" if unknown else "no human scores"
        remedy = f"choose with {spell('metrics')}: {format_list([*known], SHOWN)}"
        raise InputError(f"{problem} of {pair}", file=path, remedy=remedy)
    read = {name: _read_scores(known[name]) for name in names}
    groups = _read_documents(path / "documents" / f"{pair}.docs")
    sizes = [len(column) for scores in read.values() for column in scores.values()]
    n = len(groups["document"]) if groups else max(sizes)
    for name, scores in read.items():
        for system, column in scores.items():
            if len(column) != n:
                problem = f"system {system!r} has {len(column):,} scores, but there are {n:,} segments"
                raise InputError(problem, file=known[name], remedy="write one line per segment")
    systems = [*dict.fromkeys(system for scores in read.values() for system in scores)]
    matrices = {
        name: np.column_stack([scores.get(system, np.full(n, np.nan)) for system in systems])
        for name, scores in read.items()
    }
    return PairScores(systems, matrices, groups)


def _read_scores(path: Path) -> Mapping[str, Floats]:
    """Read rows of system and score from one file, and return the scores of each system's segments."""
    rows = [(number, line.split()) for number, line in files.enumerate_lines(path) if line.strip()]
    files.check_filled(path, rows)
    table = build_table(path, [(0, ["system", "score"]), *files.check_widths(path, iter(rows), 2)])
    systems, values = np.array([*table.columns["system"]], object), table.get_numbers("score")
    return {system: values[systems == system] for system in dict.fromkeys(systems)}


def _read_documents(path: Path) -> dict[str, list[str]]:
    """Return document and domain of each segment; empty if the file does not exist."""
    if not path.exists():
        return {}
    rows = [line.split(maxsplit=1) for _, line in files.enumerate_lines(path) if line.strip()]
    return {"document": [row[-1].strip() for row in rows], "domain": [row[0] for row in rows]}


HUMAN_NAMES = ("human", "gold", "mqm", "esa", "da", "human_score", "mqm_score", "esa_score", "da_score", "rating")
SET_NAMES = ("language_pair", "lp", "langpair", "lang_pair", "testset", "test_set", "dataset")
"""Names of columns, compared without case; "-" and blanks are read as "_". The others are as in `roles`."""

HUMAN_WORDS = frozenset({"human", "mqm", "esa", "sqm", "rater", "annotator"})
DIMENSIONS = frozenset({"accuracy", "adequacy", "fluency", "coherence", "consistency", "relevance", "faithfulness",
                        "informativeness", "grammar", "style", "terminology", "overall", "quality"})  # fmt: skip
"""Words in names of human scores, such as mqm_accuracy, and names of what people rate, and metrics may as well. Beside
the column that is compared with, they are refused unless the user says what they are.
"""

MIN_CELLS = 3
"""Number of systems, and of segments of each, from which a correlation between them says something."""

Array = NDArray[Any]
Column = NDArray[np.float64]


class ScoredCells(NamedTuple):
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
        return ScoredCells(self.path, self.human[mask], scores, groups)


def read_meta(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read the scores of metrics and people: tables, one row per system and segment, or folders of mt-metrics-eval."""
    sets: dict[str, ScoredCells] = {}
    notes: list[str] = []
    names = name_by_difference([source.path for source in sources]) if len(sources) > 1 else {}
    for source in sources:
        name = source.name or names.get(source.path, source.path.stem)
        is_folder = source.path.is_dir()
        parts = _read_folder(source.path, options) if is_folder else _read_table(source.path, options, notes)
        for part, cells in parts.items():
            key = (part if len(sources) == 1 or is_folder else f"{name} {part}".strip()) or name
            sets[f"{name} {part}" if key in sets else key] = cells  # two folders may have one language pair
    metric_names = _list_shared_metrics(sets, options, notes)
    if len(metric_names) < 2:
        remedy = "a comparison needs columns of two metrics"
        raise InputError(f"only the metric {metric_names[0]!r} has scores; {remedy}", file=sources[0].path)
    complete = {name: _select_complete(cells, metric_names, notes) for name, cells in sets.items()}
    return _build_counts(complete, metric_names, notes)


def _read_table(path: Path, options: Options, notes: list[str]) -> dict[str, ScoredCells]:
    """Return the sets of a table: the values of a column of language pairs, or one without a name."""
    table = read_table(path, options.ignore)
    human = _find_human(table, options)
    roles = resolve_roles(table, replace(options.with_columns(gold=human), groups=()))
    for role in ("system", "item"):
        if role not in roles:
            raise build_roles_error(table, f"no {role} column", [spell("columns", f"{role}=COLUMN")])
    system, segment = roles.columns["system"][0], roles.columns["item"][0]
    notes.append(ScopeNote(f"{path.name}: human scores in {human!r}, systems in {system!r}, segments in {segment!r}"))
    subsets = [name for name in roles.list_all("subset") if _normalize(name) in SET_NAMES][:1]
    groups = [name for name in (*options.groups, *roles.list_all("unit", "subset", "run")) if name in table.columns]
    known = {system, segment, human, *subsets, *groups, *roles.left_out}
    scored = _list_scored(table, [name for name in table.columns if name not in known], options)
    numbers = {name: np.asarray(table.get_numbers(name), np.float64) for name in (human, *scored)}
    lower = _list_lower(options, numbers)
    if turned := [name for name in numbers if name in lower]:
        notes.append(f"{path}: lower is better in {describe_items(turned, 'column')}: the sign is reversed")
    numbers = {name: -column if name in lower else column for name, column in numbers.items()}
    columns = {"system": table.get_column(system), "segment": table.get_column(segment)}
    set_names = [*table.get_column(subsets[0])] if subsets else [""] * table.n_rows
    _check_cells(table, (system, segment), (*columns.values(), set_names))
    columns |= {name: table.get_column(name) for name in groups if name not in columns}
    cells = ScoredCells(path, numbers.pop(human), numbers, _as_columns(columns))
    values = np.array(set_names, object)
    return {value: cells.select(values == value) for value in dict.fromkeys(set_names)}


def _normalize(name: str) -> str:
    return re.sub(r"[ -]", "_", name.strip().lower())


def _is_human(name: str) -> bool:
    word = _normalize(name)
    return word in HUMAN_NAMES or word in DIMENSIONS or not HUMAN_WORDS.isdisjoint(word.split("_"))


def _find_human(table: FileTable, options: Options) -> str:
    """Return the column of human scores: the one that the user names, or the only one with such a name."""
    if options.gold_column is not None:
        table.get_column(options.gold_column)  # raises if there is none
        return options.gold_column
    claims = [name for name in table.columns if _normalize(name) in HUMAN_NAMES]
    if len(claims) == 1:
        return claims[0]
    problem = "several columns may hold the human scores" if claims else "no column of human scores"
    known = [name for name in table.columns if _is_human(name)]
    rest = {name: [spell("ignore", other) for other in known if other != name] for name in claims or known}
    ways = [" ".join((spell("columns", f"gold={name}"), *others)) for name, others in rest.items()]
    raise build_roles_error(table, problem, ways or [spell("columns", "gold=COLUMN")])


def _list_scored(table: FileTable, others: list[str], options: Options) -> list[str]:
    """Return the columns of metrics, which the user names, or whose names are not of human scores."""
    if listed := list_names(options):
        return listed
    if unclear := [name for name in others if _is_human(name)]:
        ignore = spell("ignore", *unclear)
        ways = [ignore, f"{spell('format', 'meta:scores=' + '+'.join(others))} if these are metrics"]
        raise build_roles_error(table, f"{describe_items(unclear, 'column')} may be of people or of a metric", ways)
    if not others:
        raise InputError("no column of a metric", file=table.path, remedy="add one for each metric")
    return others


def _check_cells(table: FileTable, names: tuple[str, str], columns: Sequence[Sequence[str]]) -> None:
    """Raise for a row without a system or segment, and for two rows of one segment of a system."""
    lines: dict[tuple[str, ...], int] = {}
    for line, *cell in zip(table.lines, *columns, strict=True):
        if "" in cell[:2]:
            problem = f"column {names[cell.index('')]!r} is empty"
            raise InputError(problem, file=table.path, line=line, remedy="name it, or remove the row")
        if (first := lines.setdefault(tuple(cell), line)) != line:
            problem = f"system {cell[0]!r}, segment {cell[1]!r} is on line {first} already"
            raise InputError(problem, file=table.path, line=line, remedy="give each segment of a system one row")


def _list_lower(options: Options, numbers: Mapping[str, Column]) -> set[str]:
    """Return the columns in which less is better: those requested, or inferred from their names."""
    named = options.own.get("lower")
    if named is None:
        return {name for name in numbers if metrics.is_lower_better(name) and name != options.gold_column}
    names = {name for name in named.split("+") if name and name != "none"}
    if unknown := sorted(names - numbers.keys()):
        raise InputError(f"lower={named}: no column {unknown[0]!r}; columns of scores: {', '.join(numbers)}")
    return names


def _read_folder(path: Path, options: Options) -> dict[str, ScoredCells]:
    """Return the language pairs of a test-set folder of mt-metrics-eval that have the human scores asked for."""
    requested, human = options.own.get("pair"), options.gold_column
    sets: dict[str, ScoredCells] = {}
    for pair in list_pairs(path) if requested is None else [select_pair(path, requested)]:
        files = find_score_files(path, pair)
        names = [name for name, file in files.items() if file.parent.name == HUMAN]
        if human is None and len(names) > 1:
            problem = f"several human scores of {pair}: {', '.join(names)}"
            raise InputError(problem, file=path, remedy=f"choose one with {spell('columns', 'gold=NAME')}")
        if names and human in {None, *names}:
            scored = list_names(options) or [name for name in files if name not in names]
            sets[pair] = _read_pair(path, pair, human or names[0], scored)
    if not sets:
        remedy = "choose NAME of a file human-scores/PAIR.NAME.seg.score"
        raise InputError(f"no human scores {human or ''} of any language pair", file=path, remedy=remedy)
    return sets


def _read_pair(path: Path, pair: str, human: str, names: Sequence[str]) -> ScoredCells:
    read = read_pair(path, pair, [*dict.fromkeys((human, *names))]).select([human])
    columns = {name: scores.T.ravel() for name, scores in read.scores.items()}
    n = len(read.scores[human])
    cells: dict[str, Any] = {"system": np.repeat(read.systems, n)}
    cells |= {"segment": [str(k + 1) for k in range(n)] * len(read.systems)}
    cells |= {name: [*column] * len(read.systems) for name, column in read.groups.items()}
    return ScoredCells(path, columns.pop(human), columns, _as_columns(cells))


def _as_columns(groups: Mapping[str, Any]) -> dict[str, Array]:
    return {name: np.array([*column], object) for name, column in groups.items()}


def _list_shared_metrics(sets: Mapping[str, ScoredCells], options: Options, notes: list[str]) -> list[str]:
    """Return the metrics that have scores of most cells with human scores, in every set; the others are left out."""
    every = dict.fromkeys(name for cells in sets.values() for name in cells.scores)
    shared = [*every]
    for set_name, cells in sets.items():
        rated = ~np.isnan(cells.human)
        if not rated.any():
            raise InputError(f"{set_name}: no human scores", file=cells.path)
        shares = {name: np.isnan(column[rated]).mean() for name, column in cells.scores.items()}
        shared = [name for name in shared if shares.get(name, 1) <= 1 / 2]
    absent = [name for name in every if name not in shared]
    problem = f"{describe_items(absent, 'metric')} lack scores for most of the human scores"
    if not shared or {*absent} & {*list_names(options)}:
        raise InputError(problem, remedy="leave them out, or name systems and segments alike in all files")
    if absent:
        notes.append(f"{problem}, and are left out")
    return shared


def _select_complete(cells: ScoredCells, metric_names: Sequence[str], notes: list[str]) -> ScoredCells:
    """Return the cells that people and all metrics scored."""
    rated = cells.select(~np.isnan(cells.human))
    is_complete = np.logical_and.reduce([~np.isnan(rated.scores[name]) for name in metric_names])
    if n_incomplete := int((~is_complete).sum()):
        problem = "left out, because a metric has no score there"
        notes.append(f"{cells.path}: {format_count(n_incomplete, 'human score')} {problem}")
    if n := len(cells.human) - len(rated.human):
        notes.append(ScopeNote(f"{cells.path}: {format_count(n, 'cell')} without human scores: not used"))
    selected = rated.select(is_complete)
    if not len(selected.human):
        remedy = f"name fewer metrics with {spell('metrics')}"
        raise InputError("no cell has a human score and scores of all metrics", file=cells.path, remedy=remedy)
    return selected


def _build_counts(sets: Mapping[str, ScoredCells], names: Sequence[str], notes: list[str]) -> Counts:
    is_many, parts = len(sets) > 1, [*sets.values()]
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
    n_systems = format_count(max(len({*cells.groups["system"]}) for cells in parts), "system")
    described = f"{format_count(len(ids), 'cell')} (a segment of a system) with human scores"
    notes.append(ScopeNote(f"{n_systems}{' or fewer in each set' * is_many}, {described}"))
    for name, cells in sets.items():
        notes += _describe_size(f" of {name}" * is_many, cells)
    return Counts(
        systems=tuple(names),
        fields={
            "human": np.concatenate([cells.human for cells in parts])[:, None],
            "score": np.column_stack([np.concatenate([cells.scores[m] for cells in parts]) for m in names]),
        },
        n_items=len(ids),
        ids=ids,
        groups={name: Texts.from_values(column).encode() for name, column in columns.items()},
        suggested=("meta-pearson",),
        warnings=tuple(notes),
    )


def _describe_size(place: str, cells: ScoredCells) -> list[ScopeNote]:
    """Return notes on a set of one or two systems or segments; raise for constant human scores."""
    if np.ptp(cells.human) == 0:
        problem = f"all human scores{place} are {cells.human[0]:g}, so no metric can agree with them"
        raise InputError(problem, file=cells.path, remedy="choose other human scores, or leave this data out")
    sizes = {group: len({*cells.groups[group]}) for group in ("system", "segment")}
    limit = "a correlation between them is always 1 or -1, or undefined"
    return [ScopeNote(f"only {format_count(n, group)}{place}: {limit}") for group, n in sizes.items() if n < MIN_CELLS]


Segments = list[dict[str, Any]]


def read_metrics(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read COMET's scores of segments, from one file per system or from files of several systems."""
    path_by_system: dict[str, Path] = {}
    systems: dict[str, Segments] = {}
    for source in sources:
        read = _read_file(source.path)
        own = [s.system for s in distinguish_names([Source(Path(name)) for name in read])]
        names = own if len(read) > 1 else [source.system]
        names_of_file = list_row_systems(source, names, path_by_system, is_only_file=len(sources) == 1)
        systems |= dict(zip(names_of_file, read.values(), strict=True))
    (first_name, first), *others = systems.items()
    for name, segments in others:
        pairs = zip_longest(segments, first, fillvalue={"src": None})  # None is no source
        for number, (segment, other) in enumerate(pairs, start=1):
            if any(segment.get(key, "") != other.get(key, "") for key in ("src", "ref")):
                problem = f"segment {number} of system {name!r} has another source than in {first_name!r}"
                raise InputError(problem, file=path_by_system[name], remedy="compare files of one test set")
    scores = np.array([[segment[COMET] for segment in segments] for segments in systems.values()], np.float64)
    return build_score_counts({COMET: scores.T}, list(systems), None, groups={}, options=options)


def _read_file(path: Path) -> dict[str, Segments]:
    """Return the segments of each file of translations, whose scores are numbers."""
    document = load_json(path)
    systems: dict[str, Segments] = {}
    for name, segments in document.items() if isinstance(document, dict) else ():
        for number, segment in enumerate(segments if isinstance(segments, list) else [segments], start=1):
            value = segment.get(COMET) if isinstance(segment, dict) else None
            score = None if isinstance(value, bool) else parse_number(value)
            if score is None or not np.isfinite(score):
                place, expected = f"{name!r}, segment {number}", f"an object with a number {COMET}"
                raise InputError(file=path, place=place, found=str(segment)[:40], expected=expected)
            systems.setdefault(name, []).append({**segment, COMET: score})
    if not systems or len(systems) < len(document):
        raise InputError("expected an object with the segments of each file of translations", file=path)
    return systems
