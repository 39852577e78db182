"""User settings on the input: files, columns, alignment, and missing scores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import get_stem, name_by_difference
from sigdask.io import as_path, is_present
from sigdask.options import READING_OPTIONS, Align, Decimal, Missing
from sigdask.text import format_list, is_url, redact, suggest_name

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
        if not name.isascii():
            try:
                name.encode()
            except UnicodeEncodeError:
                raise InputError(
                    f"{str(self.path)!r}: the file's name, which is also the system's, is not UTF-8; rename the file, "
                    "or name the system: NAME=FILE, in a plan NAME = PATTERN"
                ) from None
        return name


@dataclass(frozen=True, slots=True)
class Options:
    """Options for reading the files of one test set, for `sigdask.read`.

    Attributes
    ----------
    id_column : str or None
        Column of item ids. None takes the first column with a usual name, such as "id".
    gold_column : str or None
        Column of the gold standard. None takes a column with a usual name, such as "gold".
    prediction_column : str or None
        Column of the prediction, in files of one system.
    system_column, score_column : str or None
        Columns of a long table. None takes columns with usual names.
    groups : tuple of str
        Columns of groups of items, for the options `unit` and `by`. They become `Counts.groups`, and are never systems.
    ignore : tuple of str
        Columns left out.
    label_map : tuple of (str, tuple of str)
        Labels that are replaced by another one: (new label, labels that it replaces).
    align : {"auto", "id", "position"}
        How rows of several files are matched. "auto" takes ids if every file has them, else positions.
    decimal : {".", ","}, or None
        Decimal separator of scores. None detects it if it is unambiguous.
    missing : {"error", "pairwise", "zero"}, or None
        How missing scores are handled, as in `Counts.from_scores`. None is the format's convention: "zero" for TREC
        runs, SQuAD 1.1, and lists of spans or terms, "error" for others.
    min_items : int or None
        Smallest number of items that two systems must have in common. None requires 5 % of all items of the two.
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
    sheet : str or None
        Sheet of a workbook. None takes the only one with data.
    most_unpacked : int or None
        Largest size of a decompressed file, in bytes. None is 100 times its compressed size, at least 32 MB.
    own : mapping of str to str
        Options of a single format, which follow its name: `conll:scheme=IOBES,column=3`.
    is_detected : bool
        Whether the format is detected and not stated by the user. Then real numbers are not read as labels.
    """

    id_column: str | None = None
    gold_column: str | None = None
    prediction_column: str | None = None
    system_column: str | None = None
    score_column: str | None = None
    groups: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    label_map: LabelMap = ()
    align: Align = "auto"
    decimal: Decimal | None = None
    missing: Missing | None = None
    min_items: int | None = None
    references: tuple[Path, ...] = ()
    documents: Path | None = None
    group_file: Path | None = None
    name: str = ""
    metrics: tuple[str, ...] = ()
    sheet: str | None = None
    most_unpacked: int | None = None
    own: Mapping[str, str] = field(default_factory=dict)
    is_detected: bool = False

    @property
    def missing_policy(self) -> Missing:
        """How to treat missing scores: as the user requests, by default as an error."""
        return self.missing or "error"

    def __post_init__(self) -> None:
        for name, option in READING_OPTIONS.items():
            option.check(name, getattr(self, name))
        for name in sorted({*self.groups} & {*self.ignore}):
            raise InputError(
                f"column {name!r} cannot be ignored, because it is also a unit or subset; remove it from one of the "
                "options"
            )

    def with_format_options(self, format_options: Mapping[str, str]) -> Options:
        """Return a copy with additional options of one format."""
        return replace(self, own={**self.own, **format_options})

    @property
    def label_mapping(self) -> dict[str, str]:
        """The label map as a dict of label to the label that replaces it."""
        return {source: target for target, sources in self.label_map for source in sources}

    def describe_unused_labels(self, labels: Collection[str]) -> list[str]:
        """Return a warning for each label that the label map replaces but that is not among `labels`."""
        unused = [source for source in self.label_mapping if source not in labels]
        return [f"--map: no label {name!r} in gold or systems; labels: {format_list([*labels])}" for name in unused]

    def check_format_options(self, format_: str, **choices: tuple[str, ...]) -> None:
        """Raise an error for an option that the format lacks, or a value not allowed; empty choices allow any."""
        for key, value in self.own.items():
            if key not in choices:
                hint = suggest_name(key, choices, f"; it has: {', '.join(choices) or 'none'}")
                raise InputError(f"format {format_}: no option {key!r}{hint}")
            if choices[key]:
                _check_choice(f"format {format_}: {key}", value, choices[key])

    def get_choice(self, key: str, choices: tuple[str, ...]) -> str:
        """Return the value of an option with fixed choices, of which the first is the default."""
        value = self.own.get(key, choices[0])
        _check_choice(key, value, choices)
        return value


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


def list_system_names(sources: Sequence[Source]) -> list[str]:
    """Return the names of systems with one file each; they must be unique.

    Raises
    ------
    InputError
        Two systems have the same name.
    """
    names = [source.system for source in sources]
    check_names(sources, names)
    return names


def check_names(sources: Sequence[Source], names: Sequence[str]) -> None:
    """Raise an error for two systems of one name."""
    seen: dict[str, Path] = {}
    for source, name in zip(sources, names, strict=True):
        if name in seen:
            remedy = "name them NAME=FILE"
            raise InputError(f"{seen[name]} and {source.path} would both be system {name!r}; {remedy}")
        seen[name] = source.path


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
        f"{path}: system {system!r} is also in {other_path}; to compare the two, give each a name of its own "
        "(NAME=FILE). If they are parts of one system's results, join the files"
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
    """Parse NAME or NAME:KEY=VALUE,KEY=VALUE.

    Examples
    --------
    >>> parse_format("conll:scheme=IOBES,column=3")
    ('conll', {'scheme': 'IOBES', 'column': '3'})
    """
    name, _, assignments = text.partition(":")
    format_options: dict[str, str] = {}
    for assignment in filter(None, assignments.split(",")):
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise InputError(f"format {text!r}: expected NAME:OPTION=VALUE, found {assignment!r}")
        format_options[key.strip()] = value.strip()
    return name.strip(), format_options


def parse_map(text: str) -> tuple[str, tuple[str, ...]]:
    """Parse TARGET=SOURCE,SOURCE, one entry of `Options.label_map`.

    Examples
    --------
    >>> parse_map("non-entailment=neutral,contradiction")
    ('non-entailment', ('neutral', 'contradiction'))
    """
    target, equals, source_list = text.partition("=")
    sources = tuple(source.strip() for source in source_list.split(","))
    if not equals or not target.strip() or not all(sources):
        raise InputError(
            f"label map {text!r}: expected TARGET=LABEL,LABEL, such as non-entailment=neutral,contradiction"
        )
    return target.strip(), sources


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{option} = {value!r}: must be one of {', '.join(choices)}")


DEFAULTS = Options()
