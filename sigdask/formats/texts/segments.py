"""Segments, one per line (LF only), in a file per system and reference files; or WMT XML.

Lines with tabs may hold a column of text, or several references, or tabs may be part of the text. Nothing of this is
guessed: files in which most lines have tabs are refused until the user chooses.

Build counts from texts and their references, for both translations and transcripts.

WMT's XML documents with source, references by translator and outputs of systems, segment by segment.

The files are those of wmt-format-tools: dataset / collection / doc / src, ref, hyp / p / seg. Segment ids start again
in each document. Files that define entities are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.checks import check_common_items, check_complete
from sigdask.counts.fields import to_object_array
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading import files
from sigdask.formats.reading.alignment import describe_missing
from sigdask.formats.reading.files import check_filled, open_text
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.signatures import is_wmt_xml
from sigdask.interface import spell
from sigdask.text import format_count

Texts = Sequence[str | None]
"""One text for each item, None if it is missing."""


def build_text_counts(
    systems: Mapping[str, Texts],
    references: Sequence[Texts],
    options: Options,
    *,
    ids: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    suggested: tuple[str, ...],
    warnings: Sequence[str] = (),
    source_texts: Texts | None = None,
) -> Counts:
    """Return the counts of systems' texts and their references.

    Parameters
    ----------
    systems : mapping of str to sequence of str or None
        Output for each item, by system. None if it is missing.
    references : sequence of sequence of str
        One or more reference texts for each item.
    options : Options
        Options, with the test set's name and the handling of missing texts: as an error, by leaving out the item in the
        pairs of this system, or ("zero") as an empty text.
    ids, groups, suggested, warnings
        As in `Counts`.
    source_texts : sequence of str, optional
        Source text of each item, to be shown.
    """
    n_items = len(references[0])
    notes = [*warnings, *_check_texts(systems, references)]
    present = np.array([[text is not None for text in texts] for texts in systems.values()]).T
    if not options.few_in_common:
        check_common_items(present, tuple(systems), options.missing_policy, ids)
    if options.missing_policy == "error":
        check_complete(present, tuple(systems), ids, "text", " (an empty text)")
    notes += describe_missing(present, [*systems], options)
    ones = np.ones((n_items, 1), np.int64)
    return Counts(
        systems=tuple(systems),
        fields={"segments": ones, "items": ones},
        n_items=n_items,
        ids=None if ids is None else tuple(ids),
        groups={name: tuple(column) for name, column in (groups or {}).items()},
        present=None if present.all() or options.missing_policy == "zero" else present,
        outputs=Outputs(
            tuple(to_object_array([text or "" for text in texts]) for texts in systems.values()),
            to_object_array(list(zip(*references, strict=True))),
            source_texts,
        ),
        suggested=suggested,
        warnings=tuple(notes),
    )


def _check_texts(systems: Mapping[str, Texts], references: Sequence[Texts]) -> list[ScopeNote]:
    """Raise an error if all references or all texts of a system are empty; return a note on empty references."""
    for name, texts in systems.items():
        if not any(text and text.strip() for text in texts):
            problem = f"all {len(texts):,} outputs of system {name!r} are empty"
            raise InputError(problem, remedy="leave out the system, or its file")
    n_items = len(references[0])
    n_empty = sum(not any(text and text.strip() for text in texts) for texts in zip(*references, strict=True))
    if n_empty == n_items:
        raise InputError(f"all {n_items:,} references are empty", remedy=f"check the files of {spell('gold')}")
    note = ScopeNote(f"{n_empty:,} of {format_count(n_items, 'reference')} are empty: any output is an error")
    return [note] if n_empty else []


OTHER_LAYOUTS = {
    r"<(\?xml|tmx|xliff|(tst|ref|src)set)\b": "XML",
    r"WEBVTT\b|\d+\r?\n\d+:\d\d:\d\d[,.]\d+ -->": "subtitles with times",
    r"(;;.*\n)*((\d*[^\W\d]\S* \S+ \S+ \d+\.\d+ \d+\.\d+ .*)(\n|$))+$": "STM, with times and speakers",
    r"(;;.*\n)*((\d*[^\W\d]\S* \S+ \d+\.\d+ \d+\.\d+ \S+( [\d.]+)?)(\n|$))+$": "CTM, with the time of each word",
}
"""Patterns of the first lines of files that hold more than texts."""


def read_text_lines(path: Path) -> list[str]:
    """Return the lines of a file, split only at LF; str.splitlines also splits at U+2028 and U+0085."""
    with open_text(path) as text:
        lines = text.read().removesuffix("\n").split("\n")
    check_filled(path, any(lines))
    head = "\n".join(lines[:20])
    if (layout := next((name for pattern, name in OTHER_LAYOUTS.items() if re.match(pattern, head)), None)) is not None:
        raise InputError(f"is {layout}, expected one segment on each line", file=path, remedy="write only the texts")
    return [line.removesuffix("\r") for line in lines]


LINE_ENDS = re.compile(r"(?<![^\S\n])[^\S\n]*+\n\s*+")
"""Pattern of line ends with surrounding blanks."""

UNNAMED = "ref"
"""Name of a reference without a translator."""

Item = tuple[str, str]
"""Ids of a document and of a segment in it."""

ItemTexts = dict[Item, str]


AUTHORS = {"src": "", "ref": "translator", "hyp": "system"}
"""Attributes that name who wrote the source, a reference or an output."""


@dataclass(slots=True)
class WmtTexts:
    """The texts of all documents: by kind (src, ref or hyp), author and item."""

    items: dict[Item, None] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    texts: dict[str, dict[str, ItemTexts]] = field(default_factory=lambda: {kind: {} for kind in AUTHORS})

    def add_document(self, path: Path, collection: str, document: str, element: Any) -> None:
        """Add the texts of a document; raise for a segment that has two different texts of one author."""
        attributes = {key: value for key, value in element.attrib.items() if key != "id"}
        self.attributes.setdefault(document, {"collection": collection, **attributes})
        for part in (part for part in element if part.tag in AUTHORS):
            name = part.get(AUTHORS[part.tag], UNNAMED if part.tag == "ref" else "")
            if part.tag == "hyp" and not name:
                raise InputError(f"{path}, document {document!r}: <hyp> has no attribute system")
            texts = self.texts[part.tag].setdefault(name, {})
            for number, segment in enumerate(part.iter("seg"), start=1):
                item = document, segment.get("id") or str(number)
                text = LINE_ENDS.sub(" ", "".join(segment.itertext()).strip("\n"))
                self.items[item] = None
                if texts.setdefault(item, text) != text:
                    where = f"{path}, document {document!r}: segment {item[1]!r} of <{part.tag}> {name}"
                    raise InputError(f"{where} has two texts")


def read_wmt(sources: Sequence[Source], gold: Path | None, options: Options, suggested: tuple[str, ...]) -> Counts:
    """Read systems and references from one or more XML files.

    Parameters
    ----------
    sources : sequence of Source
        The files; systems are named inside.
    gold : Path, optional
        A further file with references.
    options : Options
        Options, with two of this format: `reference`, translators joined by "+", and `collection`, the collection or
        test suite to read. A file with several needs the choice.
    suggested : tuple of str
        Names of the metrics that are used by default.
    """
    if options.documents or options.references:
        remedy = f"choose with {spell('format', 'segments:reference=TRANSLATOR')} and {spell('unit', 'document')}"
        raise InputError(f"WMT's XML holds references and documents; {remedy}", file=sources[0].path)
    paths = dict.fromkeys([*([gold] if gold else []), *(source.path for source in sources)])
    found = _read_texts(list(paths), options.own.get("collection"))
    (sources_by_author, references, outputs), path = found.texts.values(), sources[0].path
    if not references:
        raise InputError("no reference (<ref>)", file=path, remedy=f"give {spell('gold', 'FILE')} with references")
    translators = _choose([*references], options.own.get("reference"), "reference", path)
    if not outputs:
        raise InputError("no output of a system (<hyp system=...>)", file=path, remedy="give a file with outputs")
    items = [item for item in found.items if any(item in references[name] for name in translators)]
    n_left_out = len(found.items) - len(items)
    names = dict.fromkeys(key for attributes in found.attributes.values() for key in attributes)
    groups = {name: [found.attributes[document].get(name, "") for document, _ in items] for name in names}
    source_texts = sources_by_author.get("", {})
    return build_text_counts(
        {name: [texts.get(item) for item in items] for name, texts in outputs.items()},
        [[references[name].get(item) for item in items] for name in translators],
        options,
        ids=[f"{document}:{segment}" for document, segment in items],
        groups={
            **{name: column for name, column in groups.items() if any(column)},
            "document": [document for document, _ in items],
        },
        suggested=suggested,
        warnings=[f"{n_left_out} segments without a reference are left out"] if n_left_out else [],
        source_texts=[source_texts.get(item) for item in items] if source_texts else None,
    )


def _read_texts(paths: Sequence[Path], requested: str | None) -> WmtTexts:
    """Read the documents of the requested collection or test suite; the only one needs no request."""
    documents = [(path, *document) for path in paths for document in _iter_documents(path)]
    collections = list(dict.fromkeys(collection for _, collection, _, _ in documents))
    (chosen,) = _choose(collections, requested, "collection", paths[0])
    texts = WmtTexts()
    for path, collection, name, element in documents:
        if collection == chosen:
            texts.add_document(path, collection, name, element)
    return texts


def _iter_documents(path: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield collection (or test suite), id and element of each document."""
    from xml.etree import ElementTree as ET  # which few files need

    if not is_wmt_xml(path):
        raise InputError("is no XML of WMT", file=path, remedy="give files that begin with <dataset>")
    if b"<!ENTITY" in (content := files.read_content(path)):
        raise InputError("defines XML entities, which are not read", file=path, remedy="write their text into the file")
    try:
        root = ET.fromstring(content)  # noqa: S314  # it defines no entities
    except (ET.ParseError, LookupError, ValueError) as error:
        raise InputError(f"invalid XML ({error})", file=path) from None
    n = 0
    for parent in root.iter():
        for element in parent.findall("doc"):
            n += 1
            collection = parent.get("id", "")
            yield element.get("testsuite", collection), element.get("id") or str(n), element
    if not n:
        raise InputError("no document (<doc>)", file=path)


def _choose(available: Sequence[str], requested: str | None, option: str, path: Path) -> list[str]:
    """Return the requested collection or translators (A+B); the only one needs no request."""
    names = list(available)
    if requested is not None:
        names = requested.split("+") if option == "reference" else [requested]
    if (requested is None and len(names) > 1) or not {*names} <= {*available}:
        kinds = {"collection": "collections and test suites", "reference": "references of translators"}
        remedy = f"choose {spell('format', f'segments:{option}={available[0]}')}"
        raise InputError(f"has the {kinds[option]} {', '.join(available)}", file=path, remedy=remedy)
    return list(dict.fromkeys(names))


CANARY = re.compile("canary guid|benchmark canary", re.IGNORECASE)
SUGGESTED = ("BLEU", "chrF")
ALL = "all"

Files = Mapping[Path, Sequence[str]]
"""Lines by file."""


def read_segments(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read translations and references: WMT XML, or one segment per line."""
    if is_wmt_xml(sources[0].path):
        return read_wmt(sources, gold, options, SUGGESTED)
    return read_lines(sources, gold, options, "segments", SUGGESTED)


def read_lines(
    sources: Sequence[Source], gold: Path | None, options: Options, format_: str, suggested: tuple[str, ...]
) -> Counts:
    """Read texts, references and, with `documents`, the document of each line.

    The first line of WMT files, a canary, is left out. Empty lines are outputs.
    """
    if gold is None:
        raise InputError(f"format {format_}: no reference", remedy=f"give {spell('gold', 'FILE')} (the references)")
    references, systems = [gold, *options.references], [source.path for source in sources]
    documents = [options.documents] if options.documents else []
    files = {path: read_text_lines(path) for path in (*references, *systems, *documents)}
    for path, lines in files.items():
        if len(lines) != len(files[gold]):
            problem = f"{format_count(len(lines), 'line')}, but {gold} has {len(files[gold]):,}; lines are segments"
            raise InputError(problem, file=path, remedy="give each file one line for each segment")
    notes = []
    if CANARY.search(files[gold][0]):
        notes.append(f"{gold}: line 1, a benchmark canary, is left out")
        files = {path: lines[1:] for path, lines in files.items()}
    _check_tabs(format_, files, references, systems, options)
    column = options.own.get("column")
    if options.own.get("references") == "tab":
        gold_texts = [texts for path in references for texts in _split_references(files[path])]
    else:
        gold_texts = [_take_column(path, files[path], column) for path in references]
    outputs = [_take_column(path, files[path], column) for path in systems]
    return build_text_counts(
        dict(zip(list_system_names(sources), outputs, strict=True)),
        gold_texts,
        options,
        groups=_parse_documents(files[documents[0]]) if documents else {},
        suggested=suggested,
        warnings=notes,
    )


def _parse_documents(lines: Sequence[str]) -> dict[str, Sequence[str]]:
    """Parse lines of DOCUMENT, or of DOMAIN, tab and DOCUMENT."""
    rows = [line.split("\t") for line in lines]
    has_domains = all(len(row) == 2 for row in rows)
    return {"document": lines, **({"domain": [row[0] for row in rows]} if has_domains else {})}


def has_tabs(lines: Sequence[str]) -> bool:
    """Return whether most lines with text have tabs."""
    filled = [line for line in lines if line.strip()]
    return 2 * sum("\t" in line for line in filled) > len(filled)


def _check_tabs(
    format_: str, files: Files, references: Sequence[Path], systems: Sequence[Path], options: Options
) -> None:
    """Raise for lines with tabs, with the ways to read them, unless the user chose one of them.

    The option column=N takes the Nth column of files with tabs, column=all the whole lines. references=tab takes each
    column of the files of references as one reference.
    """
    column, are_split = options.own.get("column"), "references" in options.own
    if column is not None and not re.fullmatch(rf"[1-9]\d*|{ALL}", column):
        raise InputError(f"format {format_}: column is a number from 1 on, or {ALL}", found=repr(column))
    if are_split and not any("\t" in line for path in references for line in files[path]):
        raise InputError("has no tabs between references", file=references[0], remedy="leave out references=tab")
    unclear = [path for path in (*([] if are_split else references), *systems) if has_tabs(files[path])]
    if not unclear or column is not None:
        return
    prefix = f"{format_}:references=tab," if are_split else f"{format_}:"
    ways = {f"{prefix}column=1": "the text is column 1; other columns have other numbers"}
    ways[f"{prefix}column={ALL}"] = "the whole line is the text"
    if format_ == "segments" and unclear[0] in references:
        rest = "" if {*unclear} <= {*references} else ",column=1"
        ways[f"{format_}:references=tab{rest}"] = f"each column is a reference, as files of {spell('references')} are"
    example = next(filter(str.strip, files[unclear[0]]))
    problem = f"its lines have tabs, which may separate several texts, such as {example[:80]!r}"
    remedy = "choose " + ", or ".join(f"{spell('format', way)} ({meaning})" for way, meaning in ways.items())
    raise InputError(problem, file=unclear[0], remedy=remedy)


def _take_column(path: Path, lines: Sequence[str], column: str | None) -> Texts:
    """Return a column of a file with tabs, or the whole lines."""
    if column in {None, ALL} or not has_tabs(lines):
        return lines
    k = int(str(column)) - 1
    rows = [line.split("\t") for line in lines]
    for number, row in enumerate(rows, start=1):
        if len(row) <= k and any(row):
            raise InputError(file=path, line=number, found=f"{len(row)} columns", expected=f"{k + 1}, as column= says")
    return [row[k] if len(row) > k else "" for row in rows]


def _split_references(lines: Sequence[str]) -> list[Texts]:
    """Return one list for each reference; a line may have fewer references than others."""
    rows = [line.split("\t") for line in lines]
    n = max(map(len, rows))
    return [[(row[k] if len(row) > k and (row[k].strip() or not k) else None) for row in rows] for k in range(n)]
