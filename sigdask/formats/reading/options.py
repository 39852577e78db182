"""What the user says about the input: which files, which columns, what to make of gaps."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import differing, stem
from sigdask.io import is_there, is_url, place, redacted
from sigdask.options import READING, Align, Decimal, Missing

LabelMap = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Source:
    """One file of one or more systems.

    Attributes
    ----------
    path : Path
        Where it lies.
    name : str or None
        The system's name; None takes it from the file, by its column or its own name.
    apart : str
        What to call the file instead of its own name, where another file is called so too.
    parts : tuple of Path
        Files and folders of logs that together are the source, found by a pattern; all lie in `path`.
    """

    path: Path
    name: str | None = None
    apart: str = ""
    parts: tuple[Path, ...] = ()

    @property
    def system(self) -> str:
        """What a file of one system is called: by its name, else after the file."""
        name = self.name or self.apart or stem(self.path)
        if not name.isascii():
            try:
                name.encode()
            except UnicodeEncodeError:
                raise InputError(
                    f"{str(self.path)!r}: the file's name is not UTF-8, and the system is called after it; rename the "
                    "file, or give the system a name: NAME=FILE, in a plan NAME = PATTERN"
                ) from None
        return name


@dataclass(frozen=True, slots=True)
class Options:
    """How to read the files of one test set.

    Attributes
    ----------
    id_column : str or None
        Column of item ids; None takes the first conventional name.
    gold_column : str or None
        Column of what is right; None takes "gold".
    prediction_column : str or None
        Column of the answer, in files of one system.
    system_column, score_column : str or None
        Columns of a long table; None takes conventional names.
    groups : tuple of str
        Columns to swap or subset by (`--unit`, `--by`); kept as `Counts.groups`, never systems.
    ignore : tuple of str
        Columns left out.
    label_map : tuple of (str, tuple of str)
        Labels to be read as another: (target, sources).
    align : {"auto", "id", "position"}
        How rows of several files belong together; "auto" takes ids where every file has them.
    decimal : {".", ","}, or None
        What parts the decimals of scores; None finds it where it cannot be mistaken.
    missing : {"error", "pairwise", "zero"}, or None
        What an absent score means; see `Counts.from_scores`. None is what the format's users expect:
        an error, but 0 for a topic that a run lacks.
    min_items : int or None
        Items in common that are enough for two systems; None asks for 5 % of the items of both.
    references : tuple of Path
        Further reference files, besides the gold file.
    documents : Path or None
        File of the document of each segment, one a line; of each item, in any format.
    group_file : Path or None
        Table of items and the groups they are in.
    name : str
        The test set's name.
    metrics : tuple of str
        Metrics that will be asked for: one that a single format has tells the format.
    most_unpacked : int or None
        Bytes that a packed file may become; None is 50 times its size, at least 256 MB.
    own : mapping of str to str
        What one format alone takes, written after its name: `conll:scheme=IOBES,column=3`.
    is_detected : bool
        Whether the files tell the format, and the user did not: real numbers are no labels then.
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
    most_unpacked: int | None = None
    own: Mapping[str, str] = field(default_factory=dict)
    is_detected: bool = False

    @property
    def missing_policy(self) -> Missing:
        """What an absent score means where the format has no custom of its own: an error."""
        return self.missing or "error"

    def __post_init__(self) -> None:
        for name, option in READING.items():
            option.check(name, getattr(self, name))
        for name in sorted({*self.groups} & {*self.ignore}):
            raise InputError(f"column {name!r} is both a unit or subset and ignored: choose one")

    def with_own(self, own: Mapping[str, str]) -> Options:
        """Return these options with what one format alone takes."""
        return replace(self, own={**self.own, **own})

    @property
    def mapped(self) -> dict[str, str]:
        """What each label of the label map is read as."""
        return {source: target for target, sources in self.label_map for source in sources}

    def unmapped(self, known: Collection[str]) -> list[str]:
        """Return a warning for each label of the label map that does not occur."""
        return [f"--map: no label {source!r} in gold or systems" for source in self.mapped if source not in known]

    def only(self, format_: str, **choices: tuple[str, ...]) -> None:
        """Refuse own options that a format does not have; empty choices take any value."""
        for key, value in self.own.items():
            if key not in choices:
                close = difflib.get_close_matches(key, choices, 1)
                hint = f"; did you mean {close[0]!r}?" if close else f"; it has: {', '.join(choices) or 'none'}"
                raise InputError(f"format {format_}: no option {key!r}{hint}")
            if choices[key]:
                _check_choice(f"format {format_}: {key}", value, choices[key])

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        """Return an own option that every format takes; by default the first choice."""
        value = self.own.get(key, choices[0])
        _check_choice(key, value, choices)
        return value


def told_apart(sources: Sequence[Source]) -> list[Source]:
    """Call files without a name that would be called alike by the parts of their paths that differ.

    Examples
    --------
    >>> [s.system for s in told_apart([Source(Path(p)) for p in ("x.out1", "x.out2", "y.out1")])]
    ['x.out1', 'x.out2', 'y']
    >>> [s.system for s in told_apart([Source(Path(p)) for p in ("runs/a/test.txt", "runs/b/test.txt")])]
    ['a', 'b']
    """
    alike: dict[str, list[Path]] = {}
    for source in sources:
        if source.name is None:
            alike.setdefault(source.system, []).append(source.path)
    apart = {path: name for paths in alike.values() if len(paths) > 1 for path, name in differing(paths).items()}
    return [source if source.name else replace(source, apart=apart.get(source.path, "")) for source in sources]


def system_names(sources: Sequence[Source]) -> list[str]:
    """Return what files of one system each are called, each once.

    Raises
    ------
    InputError
        For two of the same name.
    """
    names = [source.system for source in sources]
    check_names(sources, names)
    return names


def check_names(sources: Sequence[Source], names: Sequence[str]) -> None:
    """Refuse two systems of one name."""
    seen: dict[str, Path] = {}
    for source, name in zip(sources, names, strict=True):
        if name in seen:
            raise InputError(f"{source.path}: system {name!r} is in {seen[name]} already; name the two NAME=FILE")
        seen[name] = source.path


def systems_inside(source: Source, inside: Sequence[str], homes: dict[str, Path], *, alone: bool) -> Sequence[str]:
    """Return the system of each row of a file that names systems inside, each in one file alone.

    NAME of NAME=FILE is the name of a file of one system; of several it stands before each, unless the file is alone.

    Parameters
    ----------
    source : Source
        The file.
    inside : sequence of str
        What the system of each row is called.
    homes : dict of str to Path
        The file of each system so far; those of this file are added.
    alone : bool
        Whether no other file is read with it.

    Raises
    ------
    InputError
        A system is in another file already.
    """
    names = {name: name for name in inside}
    if source.name is not None and len(names) == 1:
        names = dict.fromkeys(names, source.name)
    elif source.name is not None and not alone:
        names = {name: f"{source.name}:{name}" for name in names}
    for name in names.values():
        if homes.setdefault(name, source.path) != source.path:
            raise twice(source.path, name, homes[name])
    return [names[name] for name in inside]


def twice(path: Path, system: str, other: Path) -> InputError:
    """Return the error for a system that is in two files, which would be taken for one."""
    return InputError(
        f"{path}: system {system!r} is in {other} already; name the two NAME=FILE to compare them, or join the files "
        "where they are parts of one system's results"
    )


def parse_source(given: str | Path) -> Source:
    """Read PATH or NAME=PATH; a URL, and a path that exists, wins over the split.

    Examples
    --------
    >>> parse_source("bert=runs/bert.tsv").name
    'bert'
    >>> parse_source("runs/bert.tsv").name is None
    True
    """
    if is_url(text := str(given)):
        return Source(place(given))
    name, equals, path = text.partition("=")
    if not equals or is_there(Path(text).exists):
        return Source(Path(text))
    if not name.strip() or not path:
        raise InputError(f"system {redacted(text)!r}: expected PATH or NAME=PATH, with neither side empty")
    return Source(place(path), name.strip())


def parse_format(text: str) -> tuple[str, dict[str, str]]:
    """Read NAME or NAME:KEY=VALUE,KEY=VALUE.

    Examples
    --------
    >>> parse_format("conll:scheme=IOBES,column=3")
    ('conll', {'scheme': 'IOBES', 'column': '3'})
    """
    name, _, listed = text.partition(":")
    own: dict[str, str] = {}
    for part in filter(None, listed.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise InputError(f"format {text!r}: expected NAME:OPTION=VALUE, found {part!r}")
        own[key.strip()] = value.strip()
    return name.strip(), own


def parse_map(text: str) -> tuple[str, tuple[str, ...]]:
    """Read TARGET=SOURCE,SOURCE, one entry of `Options.label_map`.

    Examples
    --------
    >>> parse_map("non-entailment=neutral,contradiction")
    ('non-entailment', ('neutral', 'contradiction'))
    """
    target, equals, listed = text.partition("=")
    sources = tuple(source.strip() for source in listed.split(","))
    if not equals or not target.strip() or not all(sources):
        raise InputError(
            f"label map {text!r}: expected TARGET=LABEL,LABEL, such as non-entailment=neutral,contradiction"
        )
    return target.strip(), sources


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{option} = {value!r}: must be one of {', '.join(choices)}")


DEFAULTS = Options()
