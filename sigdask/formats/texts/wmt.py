"""WMT's XML documents with source, references by translator and outputs of systems, segment by segment.

The files are those of wmt-format-tools: dataset / collection / doc / src, ref, hyp / p / seg. Segment ids start again
in each document. Files that define entities are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading import files
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.texts.parallel import build_text_counts
from sigdask.interface import spell

ROOT = re.compile(rb"(?s)(?:\s|<\?xml[^>]*+>|(?><!--.*?-->)|(?><!DOCTYPE[^>\[]*+(?:>|\[.*?\]\s*+>)))*+<dataset\b")
LINE_ENDS = re.compile(r"(?<![^\S\n])[^\S\n]*+\n\s*+")
"""Pattern of line ends with surrounding blanks."""

UNNAMED = "ref"
"""Name of a reference without a translator."""

Item = tuple[str, str]
"""Ids of a document and of a segment in it."""

Texts = dict[Item, str]


AUTHORS = {"src": "", "ref": "translator", "hyp": "system"}
"""Attributes that name who wrote the source, a reference or an output."""


@dataclass(slots=True)
class WmtTexts:
    """The texts of all documents: by kind (src, ref or hyp), author and item."""

    items: dict[Item, None] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    texts: dict[str, dict[str, Texts]] = field(default_factory=lambda: {kind: {} for kind in AUTHORS})

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


def is_xml(path: Path) -> bool:
    """Return whether a file is WMT XML, by its first element."""
    return ROOT.match(files.read_head(path).start.removeprefix(files.BOM)) is not None


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
    if not is_xml(path):
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
