"""WMT documents with source, references by translator and system outputs, segment by segment.

The files are XML as wmt-format-tools writes it (dataset / collection / doc / src, ref, hyp / p / seg), or SGML of
mteval with one file per set (`<refset>`, `<tstset>`, `<srcset>`), as used by WMT until 2020, IWSLT and NIST. Segment
ids start again in each document.

SGML files are rarely well-formed: tags are in either case, attributes have quotes or not, and ampersands are not
escaped. So the reader searches for tags, as the scoring scripts do, and does not parse.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.errors import InputError, explain_missing
from sigdask.formats.reading import files
from sigdask.formats.reading.files import get_stem, open_bytes, open_text
from sigdask.formats.reading.json_records import read_head
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.texts.parallel import build_text_counts
from sigdask.interface import spell

ROOT = re.compile(rb"(?s)(?:\s|<\?xml[^>]*+>|(?><!--.*?-->)|(?><!DOCTYPE[^>\[]*+(?:>|\[.*?\]\s*+>)))*+<dataset\b")
START = re.compile(r"(?:\s|<\?xml[^>]*+>|(?><!--.*?-->)|<!DOCTYPE[^>]*+>|<mteval\b[^>]*+>)*+<(?:ref|tst|src)set\b",
                   re.DOTALL | re.IGNORECASE)  # fmt: skip
TAG = re.compile(r"<(?P<name>refset|tstset|srcset|doc|seg)\b", re.IGNORECASE)
SEGMENT_EDGE = re.compile(r"<seg\b|(?P<end></seg\s*+>)", re.IGNORECASE)
ATTRIBUTE = re.compile(r"(?<![\w:-])([\w:-]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]++))")
ENTITY = re.compile(r"&(amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});")

LINE_ENDS = re.compile(r"(?<![^\S\n])[^\S\n]*+\n\s*+")
"""Pattern of line ends with surrounding blanks."""

UNNAMED = "ref"
"""Name of a reference without a translator."""

Texts = dict[str, str]
"""Texts by segment id."""


@dataclass(slots=True)
class Document:
    """A document with its segment order, source, references and outputs from all files."""

    attributes: dict[str, str]
    order: dict[str, None] = field(default_factory=dict)
    source: Texts = field(default_factory=dict)
    references: dict[str, Texts] = field(default_factory=dict)
    outputs: dict[str, Texts] = field(default_factory=dict)

    def add(self, kind: str, name: str, texts: Texts) -> bool:
        """Add the segments of a source, reference or output; return False if it has one of them already."""
        self.order.update(dict.fromkeys(texts))
        if kind == "src":
            self.source.update(texts)
            return True
        present = (self.references if kind == "ref" else self.outputs).setdefault(name, {})
        is_new = texts.keys().isdisjoint(present)
        if is_new:
            present.update(texts)
        return is_new


@dataclass(slots=True)
class SgmlDocument:
    """One document of a source, reference or system set.

    Attributes
    ----------
    kind : str
        "src", "ref" or "tst".
    document : str
        Id of the document.
    name : str or None
        The system or the translator that wrote it.
    attributes : dict of str to str
        Other attributes of the document.
    texts : dict of str to str
        Texts by segment id.
    """

    kind: str
    document: str
    name: str | None
    attributes: dict[str, str]
    texts: dict[str, str] = field(default_factory=dict)


def is_sgml(path: Path) -> bool:
    """Return whether a file begins with a set of segments."""
    return START.match(read_head(path)) is not None


def iter_documents(path: Path) -> Iterator[SgmlDocument]:
    """Yield the documents of a file, in file order.

    Raises
    ------
    InputError
        A segment is outside a document, occurs twice, or has no end.
    """
    with open_text(path) as stream:
        content = stream.read()
    kind, set_attributes, document, n_documents = "", {"": ""}, None, 0
    for where, tag, attributes, text in _iter_tags(path, content):
        if tag == "doc":
            if document is not None:
                yield document
            n_documents += 1
            name_key = {"ref": "refid", "tst": "sysid", "src": ""}[kind]
            name = attributes.pop("sysid", None) or set_attributes.get(name_key) or set_attributes.get("sysid")
            key = attributes.pop("docid", None) or attributes.pop("id", None)
            document = SgmlDocument(kind, key or str(n_documents), name, attributes)
        elif tag == "seg":
            if document is None:
                raise InputError(f"{where}: a segment is outside of a document", remedy="put it into <doc docid=...>")
            segment = attributes.get("id") or str(len(document.texts) + 1)
            if segment in document.texts:
                raise InputError(f"{where}: segment {segment!r} of document {document.document!r} occurs twice")
            document.texts[segment] = ENTITY.sub(lambda match: unescape(match[0]), " ".join(text.split()))
        else:
            kind, set_attributes = tag.removesuffix("set"), attributes
    if document is None:
        raise InputError("no document (<doc docid=...>)", file=path)
    yield document


def _iter_tags(path: Path, content: str) -> Iterator[tuple[str, str, dict[str, str], str]]:
    """Yield location, name in small letters, attributes and, of segments, text of the tags of sets and documents."""
    position, line, counted = 0, 1, 0
    while (match := TAG.search(content, position)) is not None:
        line, counted = line + content.count("\n", counted, match.start()), match.start()
        where, name, text = f"{path}, line {line}", match["name"].lower(), ""
        if (position := content.find(">", match.end()) + 1) == 0:
            raise InputError(f"{where}: the tag <{name} is not closed by >")
        found = ATTRIBUTE.findall(content[match.end() : position - 1])
        attributes = {key.lower(): quoted or single or bare for key, quoted, single, bare in found}
        if name == "seg":
            edge = SEGMENT_EDGE.search(content, position)
            if edge is None or edge["end"] is None:
                raise InputError(f"{where}: a segment is not closed by </seg>")
            text, position = content[position : edge.start()], edge.end()
        yield where, name, attributes, text


def is_xml(path: Path) -> bool:
    """Return whether a file is WMT XML, by its first element."""
    return ROOT.match(files.read_head(path).start.removeprefix(files.BOM)) is not None


def read_wmt(sources: Sequence[Source], gold: Path | None, options: Options, suggested: tuple[str, ...]) -> Counts:
    """Read systems and references from one or more XML or SGML files.

    Parameters
    ----------
    sources : sequence of Source
        The files; systems are named inside, but a file of one system may be named NAME=FILE.
    gold : Path, optional
        A file of references, or the name of a translator.
    options : Options
        Options, with two of this format: `reference`, translators joined by "+", and `collection`, the collection or
        test suite to read, or "all". By default test suites and further collections are left out, because they are not
        part of the main test set.
    suggested : tuple of str
        Names of the metrics that are used by default.
    """
    if options.documents or (options.references and is_xml(sources[0].path)):
        remedy = f"choose with {spell('format', 'segments:reference=TRANSLATOR')} and {spell('unit', 'document')}"
        raise InputError(f"WMT's XML and SGML hold references and documents; {remedy}", file=sources[0].path)
    requested = options.own.get("reference")
    if gold is not None and not gold.exists():
        requested, gold = requested or str(gold), None
    warnings: list[str] = []
    documents = _read_documents([*([Source(gold)] if gold else []), *map(Source, options.references), *sources])
    documents = _select_collection(documents, options.own.get("collection"), sources[0].path, warnings)
    translators = _select_translators(documents, requested, sources[0].path, warnings, every=bool(options.references))
    systems = dict.fromkeys(name for document in documents.values() for name in document.outputs)
    if not systems:
        raise InputError(
            "no output of a system (<hyp system=...> or <tstset>) in any document",
            file=sources[0].path,
            remedy="give a file that has the outputs",
        )
    items = [
        (name, segment)
        for name, document in documents.items()
        for segment in document.order
        if any(segment in document.references.get(translator, {}) for translator in translators)
    ]
    left_out = sum(len(d.order) for d in documents.values()) - len(items)
    if not items:
        raise InputError(f"no segment has a reference of {' or '.join(translators)}", file=sources[0].path)
    has_sources = any(d.source for d in documents.values())
    if left_out:
        warnings.append(f"{left_out} segments without a reference are left out")
    return build_text_counts(
        {name: [documents[d].outputs.get(name, {}).get(s) for d, s in items] for name in systems},
        [[documents[d].references.get(name, {}).get(s) for d, s in items] for name in translators],
        options,
        ids=[f"{d}:{s}" for d, s in items],
        groups=_build_groups(documents, items),
        suggested=suggested,
        warnings=warnings,
        source_texts=[documents[d].source.get(s) for d, s in items] if has_sources else None,
    )


def _read_documents(sources: Sequence[Source]) -> dict[str, Document]:
    """Read the documents of all files and merge those with the same id."""
    documents: dict[str, Document] = {}
    files = list({source.path: source for source in sources}.values())
    for source in files:
        if not is_sgml(source.path):
            _add_xml(documents, source.path)
    _add_sgml(documents, [source for source in files if is_sgml(source.path)])
    return documents


def _add_xml(documents: dict[str, Document], path: Path) -> None:
    used_names: set[str] = set()
    for number, (collection, element) in enumerate(_iter_elements(path), start=1):
        name = element.get("id") or element.get("docid") or str(number)
        while name in used_names:  # another document of the same id, as in another collection
            name += "'"
        used_names.add(name)
        attributes = {key: value for key, value in element.attrib.items() if key not in {"id", "docid"}}
        document = documents.setdefault(name, Document({"collection": collection, **attributes}))
        _add_texts(document, element, f"{path}, document {name!r}")
    if not used_names:
        raise InputError("no document (<doc>)", file=path)


def _add_sgml(documents: dict[str, Document], sources: Sequence[Source]) -> None:
    """Add the sets of SGML files; systems or translators with repeated names are named after files."""
    files = [(source, list(iter_documents(source.path))) for source in sources]
    sets_by_file = [{(document.kind, document.name) for document in documents} for _, documents in files]
    is_ambiguous = sum(map(len, sets_by_file)) > len(set().union(*sets_by_file))
    for (source, sgml_documents), file_sets in zip(files, sets_by_file, strict=True):
        file_name = source.name or (get_stem(source.path) if is_ambiguous else None)
        for sgml_document in sgml_documents:
            name = (file_name if len(file_sets) == 1 else None) or sgml_document.name or get_stem(source.path)
            new = Document({"collection": "", **sgml_document.attributes})
            document = documents.setdefault(sgml_document.document, new)
            if not document.add(sgml_document.kind, name, sgml_document.texts):
                raise InputError(
                    f"{source.path}, document {sgml_document.document!r}: {sgml_document.kind}set of {name!r} occurs "
                    "twice; if these are two systems, name their files NAME=FILE"
                )


def _select_collection(
    documents: dict[str, Document], requested: str | None, path: Path, warnings: list[str]
) -> dict[str, Document]:
    """Select documents of one collection or test suite, by default the first translated collection."""
    collections = {name: d.attributes.get("testsuite") or d.attributes["collection"] for name, d in documents.items()}
    available = ", ".join(filter(None, dict.fromkeys(collections.values()))) or "none"
    if requested == "all":
        return documents
    if requested is not None and requested not in collections.values():
        raise InputError(
            f"no collection or test suite {requested!r}", file=path, remedy=f"choose one of {available}, or all"
        )
    translated = [name for name, d in documents.items() if d.outputs and d.references] or list(documents)
    proper = [name for name in translated if "testsuite" not in documents[name].attributes]
    collection = requested if requested is not None else collections[(proper or translated)[0]]
    selected = {name: d for name, d in documents.items() if collections[name] == collection}
    left_out = dict.fromkeys(collections[name] for name in translated if name not in selected)
    if left_out and requested is None:
        hint = f"choose with {spell('format', 'segments:collection=NAME')}, or all"
        warnings.append(f"{path}: documents of {', '.join(map(repr, left_out))} are left out; {hint}")
    return selected


def _iter_elements(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each document element with its collection, and clear it afterwards."""
    with explain_missing("defusedxml", "mt", "WMT XML"):
        from defusedxml import DefusedXmlException
        from defusedxml.ElementTree import ParseError, iterparse
    collection, parents = "", []
    try:
        with open_bytes(path) as stream:
            for event, element in iterparse(stream, events=("start", "end")):
                if event == "start":
                    parents.append(element)
                    collection = element.get("id", "") if element.tag == "collection" else collection
                    continue
                parents.pop()
                if element.tag == "doc":
                    yield collection, element
                    element.clear()
                    if parents:
                        parents[-1].remove(element)
    except DefusedXmlException as error:
        raise InputError(
            f"{error}; XML entities and external files are not read", file=path, remedy="write their text into the file"
        ) from None
    except (ParseError, LookupError, ValueError) as error:
        hint = "" if path.suffix == ".xml" else ". If it holds references, leave it out: the XML file has its own"
        raise InputError(f"invalid XML ({error}){hint}", file=path) from None


def _add_texts(document: Document, element: Any, location: str) -> None:
    """Add the texts of one document element."""
    for child in element:
        if child.tag not in {"src", "ref", "hyp"}:
            continue
        texts: Texts = {}
        for number, segment in enumerate(child.iter("seg"), start=1):
            key = segment.get("id") or str(number)
            if key in texts:
                raise InputError(f"{location}: segment {key!r} of <{child.tag}> occurs twice")
            texts[key] = LINE_ENDS.sub(" ", "".join(segment.itertext()).strip("\n"))
        name = {"src": "", "ref": child.get("translator", UNNAMED), "hyp": child.get("system")}[child.tag]
        if not name and child.tag != "src":
            raise InputError(f"{location}: <hyp> has no attribute system", remedy="add it with the system's name")
        if not document.add(child.tag, name, texts):
            present = document.references.get(name, {}) if child.tag == "ref" else {}
            if not present or any(present.get(key, text) != text for key, text in texts.items()):
                raise InputError(f"{location}: {child.tag} of {name!r} occurs twice")


def _select_translators(
    documents: dict[str, Document], requested: str | None, path: Path, warnings: list[str], *, every: bool = False
) -> list[str]:
    """Return the requested references, all if `every` is true, or the one with the most segments."""
    sizes = Counter[str]()
    for document in documents.values():
        sizes.update({name: len(texts) for name, texts in document.references.items()})
    available = ", ".join(sizes) or "none"
    if requested is not None:
        names = list(dict.fromkeys(requested.split("+")))
        for name in names:
            if name not in sizes:
                raise InputError(f"no reference of translator {name!r}; there are: {available}", file=path)
        return names
    if not sizes:
        raise InputError(
            "no reference (<ref>) in any document",
            file=path,
            remedy=f"give {spell('gold', 'FILE')} (the reference translations)",
        )
    if every:
        return list(sizes)
    largest = max(sizes, key=lambda name: sizes[name])
    if len(sizes) > 1:
        hint = f"{largest} is taken, choose with {spell('format', 'segments:reference=NAME')} (A+B: both)"
        warnings.append(f"{path}: references of {available}; {hint}")
    return [largest]


def _build_groups(documents: dict[str, Document], items: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the document of each segment and the document attributes (collection, origlang, domain)."""
    names = dict.fromkeys(key for document in documents.values() for key in document.attributes)
    groups = {name: [documents[d].attributes.get(name, "") for d, _ in items] for name in names}
    return {name: column for name, column in groups.items() if any(column)} | {"document": [d for d, _ in items]}
