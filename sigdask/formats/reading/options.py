"""User settings on the input: files, columns, alignment, and missing scores."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import get_stem, name_by_difference
from sigdask.formats.roles import ROLES, check_roles
from sigdask.interface import spell
from sigdask.io import as_path, is_present, read_names
from sigdask.options import READING_OPTIONS, Align, Missing
from sigdask.text import format_count, format_list, is_url, redact, suggest_name

LabelMap = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Source:
    """One file, of one or more systems.

    Attributes
    ----------
    path : Path
        Path of the file.
    name : str or None
        Name of the system. None takes it from a column of the file, or from the name of the file.
    apart : str
        Name to use if another file has the same name.
    parts : tuple of Path
        Files and folders of logs that together are the source, found by a pattern. All are in `path`.
    """

    path: Path
    name: str | None = None
    apart: str = ""
    parts: tuple[Path, ...] = ()

    @property
    def system(self) -> str:
        """Name of the system in a file of one system, by default the file's name without its ending."""
        name = self.name or self.apart or get_stem(self.path)
        try:
            name.encode()
        except UnicodeEncodeError:
            problem = f"{str(self.path)!r}: the file's name, which is also the system's, is not UTF-8"
            remedy = "rename the file, or name the system: NAME=FILE, in a plan NAME = PATTERN"
            raise InputError(problem, remedy=remedy) from None
        return name


@dataclass(frozen=True, slots=True)
class Options:
    """Options for reading the files of one test set, for `sigdask.read`.

    Attributes
    ----------
    columns : mapping of str to str
        Roles of columns (`sigdask.formats.roles.ROLES`), which are otherwise recognised by their names:
        {"item": "task+nr"} joins two columns, {"score": "AP+nDCG"} names two columns of scores.
    groups : tuple of str
        Columns of groups of items, for the options `unit` and `by`. They become `Counts.groups`, and are never systems.
    ignore : tuple of str
        Columns left out.
    label_map : tuple of (str, tuple of str)
        Labels that are replaced by another one: (new label, labels that it replaces).
    align : {"auto", "id", "position"}
        How rows of several files are matched. "auto" takes ids if every file has them, else positions.
    missing : {"error", "pairwise", "zero"}, or None
        How missing scores are handled, as in `Counts.from_scores`. None is the format's convention: "zero" for TREC
        runs and SQuAD 1.1, "error" for others.
    few_in_common : bool
        Whether two systems may have less than 5 % of their items in common.
    references : tuple of Path
        Further reference files, in addition to the gold file.
    documents : Path or None
        File with the document of each segment, one on each line, or a table of item and document.
    group_file : Path or None
        Table of items and of the groups that they belong to.
    name : str
        Name of the test set. It also determines the random stream.
    metrics : tuple of str
        Metrics that you will use. A metric that only one format has determines the format.
    own : mapping of str to str
        Options of a single format, which follow its name: `conll:scheme=IOBES,column=3`. All formats of tables have
        `sheet`, the sheet of an Excel workbook, and formats of scores `decimal`, the decimal separator.
    is_detected : bool
        Whether the format is detected and not stated by the user. Then real numbers are not read as labels.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    label_map: LabelMap = ()
    align: Align = "auto"
    missing: Missing | None = None
    few_in_common: bool = False
    references: tuple[Path, ...] = ()
    documents: Path | None = None
    group_file: Path | None = None
    name: str = ""
    metrics: tuple[str, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)
    is_detected: bool = False

    @property
    def missing_policy(self) -> Missing:
        """How to treat missing scores: as the user requests, by default as an error."""
        return self.missing or "error"

    @property
    def id_column(self) -> str | None:
        """Column of the items. None takes the column with a name of this role, such as "id"."""
        return self.columns.get("item")

    @property
    def gold_column(self) -> str | None:
        """Column of the gold standard. None takes a column with a usual name, such as "gold"."""
        return self.columns.get("gold")

    @property
    def prediction_column(self) -> str | None:
        """Column of the prediction, in files of one system."""
        return self.columns.get("prediction")

    def __post_init__(self) -> None:
        check_roles(self.columns)
        named = {name for role in ("unit", "subset") for name in (self.columns.get(role, ""),) if name}
        object.__setattr__(self, "groups", (*self.groups, *sorted(named.difference(self.groups))))
        for name, option in READING_OPTIONS.items():
            option.check(name, getattr(self, name))
        for name in sorted({*self.groups} & {*self.ignore}):
            problem = f"column {name!r} cannot be ignored, because it is also a unit or subset"
            raise InputError(problem, remedy="remove it from one of the options")

    def with_format_options(self, format_options: Mapping[str, str]) -> Options:
        """Return a copy with additional options of one format."""
        return replace(self, own={**self.own, **format_options})

    def with_columns(self, **columns: str | None) -> Options:
        """Return a copy with other columns in some roles. None removes the column of a role."""
        merged = {**self.columns, **columns}
        return replace(self, columns={role: column for role, column in merged.items() if column is not None})

    @property
    def label_mapping(self) -> dict[str, str]:
        """The label map as a dict of label to the label that replaces it."""
        return {source: target for target, sources in self.label_map for source in sources}

    def check_used_labels(self, labels: Collection[str]) -> None:
        """Raise an error for labels that the label map replaces but that are not among `labels`."""
        unused = [source for source in self.label_mapping if source not in labels]
        if unused:
            raise InputError(
                f"{spell('label_map')}: {format_count(len(unused), 'label')} that neither gold nor a system has: "
                f"{', '.join(map(repr, unused[:3]))}; labels: {format_list(sorted(labels), 20)}",
                remedy="correct these labels, or leave them out",
            )

    def check_format_options(self, format_: str, choices: Mapping[str, tuple[str, ...]]) -> None:
        """Raise an error for an option that the format lacks, or a value not allowed; empty choices allow any."""
        for key, value in self.own.items():
            if key not in choices:
                hint = suggest_name(key, choices, f"; it has: {', '.join(choices) or 'none'}")
                raise InputError(f"format {format_}: no option {key!r}{hint}")
            if choices[key] and value not in choices[key]:
                option = f"format {format_}: {key}"
                raise InputError(f"must be one of {', '.join(choices[key])}", option=option, found=repr(value))


def distinguish_names(sources: Sequence[Source]) -> list[Source]:
    """Return the sources; unnamed files that would have equal names are named after the differing parts of their paths.

    Examples
    --------
    >>> [s.system for s in distinguish_names([Source(Path(p)) for p in ("x.out1", "x.out2", "y.out1")])]
    ['x.out1', 'x.out2', 'y']
    >>> [s.system for s in distinguish_names([Source(Path(p)) for p in ("runs/a/test.txt", "runs/b/test.txt")])]
    ['a', 'b']
    """
    paths_by_name: dict[str, list[Path]] = {}
    for source in sources:
        if source.name is None:
            paths_by_name.setdefault(source.system, []).append(source.path)
    repeated = [paths for paths in paths_by_name.values() if len(paths) > 1]
    names_by_path = {path: name for paths in repeated for path, name in name_by_difference(paths).items()}
    return [
        source if source.name else replace(source, apart=names_by_path.get(source.path, source.apart))
        for source in sources
    ]


def list_system_names(sources: Sequence[Source], names: Sequence[str] | None = None) -> list[str]:
    """Return the names of systems with one file each, by default those of the files.

    Raises
    ------
    InputError
        Two systems have the same name.
    """
    names = [source.system for source in sources] if names is None else names
    seen: dict[str, Path] = {}
    for source, name in zip(sources, names, strict=True):
        if name in seen:
            raise build_repeated_system_error(source.path, name, seen[name])
        seen[name] = source.path
    return [*seen]


def list_row_systems(
    source: Source, row_names: Sequence[str], path_by_system: dict[str, Path], *, is_only_file: bool
) -> Sequence[str]:
    """Return the system of each row of a file whose rows name their systems.

    NAME of NAME=FILE names the system of a file of one system. In a file of several systems it is put before the name
    of each, unless the file is the only one.

    Parameters
    ----------
    source : Source
        The file.
    row_names : sequence of str
        System of each row.
    path_by_system : dict of str to Path
        The file of each system so far; those of this file are added.
    is_only_file : bool
        Whether no other file is read with it.

    Raises
    ------
    InputError
        A system is in another file already.
    """
    names = {name: name for name in row_names}
    if source.name is not None and len(names) == 1:
        names = dict.fromkeys(names, source.name)
    elif source.name is not None and not is_only_file:
        names = {name: f"{source.name}:{name}" for name in names}
    for name in names.values():
        if path_by_system.setdefault(name, source.path) != source.path:
            raise build_repeated_system_error(source.path, name, path_by_system[name])
    return [names[name] for name in row_names]


def build_repeated_system_error(path: Path, system: str, other_path: Path) -> InputError:
    """Return the error for a system that is in two files."""
    return InputError(
        f"system {system!r} is also in {other_path}",
        file=path,
        remedy="to compare the two, give each a name of its own (NAME=FILE). If they are parts of one system's "
        "results, join the files",
    )


def parse_source(source: str | Path) -> Source:
    """Parse PATH or NAME=PATH; a URL or an existing path is never split.

    Examples
    --------
    >>> parse_source("bert=runs/bert.tsv").name
    'bert'
    >>> parse_source("runs/bert.tsv").name is None
    True
    """
    if is_url(text := str(source)):
        return Source(as_path(source))
    name, equals, path = text.partition("=")
    if not equals or is_present(Path(text).exists):
        return Source(as_path(text))
    if not name.strip() or not path:
        raise InputError(f"system {redact(text)!r}: expected PATH or NAME=PATH, with neither side empty")
    return Source(as_path(path), name.strip())


def parse_format(text: str) -> tuple[str, dict[str, str]]:
    """Parse NAME or NAME:KEY=VALUE,KEY=VALUE. The value may be a comma: `decimal=,` or, quoted, `decimal=","`.

    Examples
    --------
    >>> parse_format("conll:scheme=IOBES,column=3")
    ('conll', {'scheme': 'IOBES', 'column': '3'})
    >>> parse_format("table:sheet=May,decimal=,") == parse_format('table:sheet=May,decimal=","')
    True
    """
    name, _, assignments = text.partition(":")
    format_options: dict[str, str] = {}
    parts = assignments.replace('","', ",").split(",")
    for part, next_part in zip(parts, [*parts[1:], None], strict=True):
        key, equals, value = part.partition("=")
        if part and not (equals and key.strip()):
            raise InputError(f"format {text!r}: expected NAME:OPTION=VALUE, found {part!r}")
        if part:
            format_options[key.strip()] = value.strip() or ("," if next_part == "" else "")
    return name.strip(), format_options


def parse_columns(texts: Sequence[str], roles: Sequence[str] = tuple(ROLES)) -> dict[str, str]:
    """Parse texts of the form ROLE=COLUMN,ROLE=COLUMN. A comma ends a column's name only before another ROLE=.

    Examples
    --------
    >>> parse_columns(["item=qid,score=F1, macro", "system=name=version"])
    {'item': 'qid', 'score': 'F1, macro', 'system': 'name=version'}
    """
    columns: dict[str, str] = {}
    for text in texts:
        for part in re.split(rf",(?=\s*(?:{'|'.join(roles)})\s*=)", text):
            role, equals, column = part.partition("=")
            if not equals:
                raise InputError(f"{spell('columns')} {text}: expected ROLE=COLUMN; roles: {', '.join(roles)}")
            if role.strip() in columns:
                raise InputError(f"{spell('columns')} {text}: role {role.strip()!r} is given twice")
            columns[role.strip()] = column
    check_roles(columns, roles)
    return columns


def parse_maps(texts: Sequence[str]) -> LabelMap:
    r"""Parse entries TARGET=SOURCE,SOURCE, or @FILE with an entry on each line: TARGET and its sources between tabs.

    Tabs separate the labels of a file, since labels may contain commas and equals signs.
    """
    entries: list[tuple[str, tuple[str, ...]]] = []
    for text in texts:
        file = text[1:] if text.startswith("@") else None
        for line in [text] if file is None else read_names(file):
            target, _, source_list = line.partition("=" if file is None else "\t")
            labels = target, *source_list.split("," if file is None else "\t")
            target, *sources = map(str.strip, labels)
            if not target or not all(sources):
                expected = "TARGET=LABEL,LABEL" if file is None else "TARGET<tab>LABEL<tab>LABEL"
                raise InputError(f"label map {line!r}: expected {expected}", file=file)
            entries.append((target, tuple(sources)))
    return tuple(entries)


DEFAULTS = Options()
