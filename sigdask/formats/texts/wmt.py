"""WMT documents with source, references by translator and system outputs, segment by segment.

XML as wmt-format-tools writes it: dataset / collection / doc / src, ref, hyp / p / seg; or the SGML of
mteval, a file a set (see `sgml`). Segment ids start again in each document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.errors import InputError, build_extra_error
from sigdask.formats.reading.files import get_stem, open_bytes
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.texts import sgml
from sigdask.formats.texts.parallel import build_text_counts

ROOT = re.compile(
    rb"(?:\s|<\?xml[^>]*+>|(?><!--.*?-->)|(?><!DOCTYPE[^>\[]*+(?:>|\[.*?\]\s*+>)))*+<dataset\b", re.DOTALL
)
LINE_ENDS = re.compile(r"(?<![^\S\n])[^\S\n]*+\n\s*+")
"""With the blanks around them."""

UNNAMED = "ref"
"""What a reference without a translator is called."""

Texts = dict[str, str]
"""Segment id to text."""


@dataclass(slots=True)
class Document:
    """A document with its segment order, source, references and outputs from all files."""

    attributes: dict[str, str]
    order: dict[str, None] = field(default_factory=dict)
    source: Texts = field(default_factory=dict)
    references: dict[str, Texts] = field(default_factory=dict)
    outputs: dict[str, Texts] = field(default_factory=dict)


def is_marked_up(path: Path) -> bool:
    """Return whether a file is WMT XML or SGML, by its first element; unreadable files are neither."""
    return is_xml(path) or sgml.is_sgml(path)


def is_xml(path: Path) -> bool:
    """Return whether a file is WMT XML, by its first element."""
    try:
        with open_bytes(path) as stream:
            return ROOT.match(stream.read(65536).removeprefix(b"\xef\xbb\xbf")) is not None
    except InputError:
        return False


def read_wmt(sources: Sequence[Source], gold: Path | None, options: Options, suggested: tuple[str, ...]) -> Counts:
    """Read systems and references from one or more XML or SGML files.

    Parameters
    ----------
    sources : sequence of Source
        The files; systems are named inside, but a file of one system may be named NAME=FILE.
    gold : Path, optional
        A file of references; or the name of a translator.
    options : Options
        Own options: `reference`, translators joined by "+"; `collection`, the collection or test
        suite to read, or "all". By default test suites and further collections, which are no part
        of the test set proper, are left out.
    suggested : tuple of str
        Metrics.
    """
    options.check_format_options("segments", reference=(), collection=())
    if options.documents or (options.references and is_xml(sources[0].path)):
        raise InputError(
            f"{sources[0].path}: WMT's XML and SGML hold references and documents; choose with --format "
            "segments:reference=TRANSLATOR and --unit document"
        )
    requested = options.own.get("reference")
    if gold is not None and not gold.exists():
        requested, gold = requested or str(gold), None
    warnings: list[str] = []
    documents = _read_documents([*([Source(gold)] if gold else []), *map(Source, options.references), *sources])
    documents = _select_collection(documents, options.own.get("collection"), sources[0].path, warnings)
    translators = _select_translators(documents, requested, sources[0].path, warnings, every=bool(options.references))
    systems = dict.fromkeys(name for document in documents.values() for name in document.outputs)
    if not systems:
        raise InputError(f"{sources[0].path}: no output (<hyp system=...>) or <tstset> in any document")
    items = _list_items(documents, translators)
    left_out = sum(len(d.order) for d in documents.values()) - len(items)
    if not items:
        raise InputError(f"{sources[0].path}: no segment has a reference of {' or '.join(translators)}")
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
        source_texts=[documents[d].source.get(s) for d, s in items]
        if any(d.source for d in documents.values())
        else None,
    )


def _read_documents(sources: Sequence[Source]) -> dict[str, Document]:
    """Read the documents of all files and merge those with the same id."""
    documents: dict[str, Document] = {}
    files = list({source.path: source for source in sources}.values())
    for source in files:
        if not sgml.is_sgml(source.path):
            _add_xml(documents, source.path)
    _add_sgml(documents, [source for source in files if sgml.is_sgml(source.path)])
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
        raise InputError(f"{path}: no document (<doc>)")


def _add_sgml(documents: dict[str, Document], sources: Sequence[Source]) -> None:
    """Add the sets of SGML files; systems or translators with repeated names are named after files."""
    files = [(source, list(sgml.iter_documents(source.path))) for source in sources]
    sets_by_file = [
        {(sgml_document.kind, sgml_document.name) for sgml_document in sgml_documents} for _, sgml_documents in files
    ]
    is_ambiguous = sum(map(len, sets_by_file)) > len(set().union(*sets_by_file))
    for (source, sgml_documents), file_sets in zip(files, sets_by_file, strict=True):
        file_name = source.name or (get_stem(source.path) if is_ambiguous else None)
        for sgml_document in sgml_documents:
            name = (file_name if len(file_sets) == 1 else None) or sgml_document.name or get_stem(source.path)
            document = documents.setdefault(
                sgml_document.document, Document({"collection": "", **sgml_document.attributes})
            )
            document.order.update(dict.fromkeys(sgml_document.texts))
            if sgml_document.kind == "src":
                document.source.update(sgml_document.texts)
            else:
                texts_by_name = document.references if sgml_document.kind == "ref" else document.outputs
                if sgml_document.texts.keys() & texts_by_name.get(name, {}).keys():
                    location = f"{source.path}, document {sgml_document.document!r}"
                    raise InputError(
                        f"{location}: {sgml_document.kind}set of {name!r} occurs twice; name files NAME=FILE"
                    )
                texts_by_name.setdefault(name, {}).update(sgml_document.texts)


def _select_collection(
    documents: dict[str, Document], requested: str | None, path: Path, warnings: list[str]
) -> dict[str, Document]:
    """Select documents of one collection or test suite, by default the first translated collection."""
    collections = {name: d.attributes.get("testsuite") or d.attributes["collection"] for name, d in documents.items()}
    available = ", ".join(filter(None, dict.fromkeys(collections.values()))) or "none"
    if requested == "all":
        return documents
    if requested is not None and requested not in collections.values():
        raise InputError(f"{path}: no collection or test suite {requested!r}; there are: {available}, all")
    translated = [name for name, d in documents.items() if d.outputs and d.references] or list(documents)
    proper = [name for name in translated if "testsuite" not in documents[name].attributes]
    collection = requested if requested is not None else collections[(proper or translated)[0]]
    selected = {name: d for name, d in documents.items() if collections[name] == collection}
    left_out = dict.fromkeys(collections[name] for name in translated if name not in selected)
    if left_out and requested is None:
        warnings.append(
            f"{path}: documents of {', '.join(map(repr, left_out))} are left out; choose with --format "
            "segments:collection=NAME, or all"
        )
    return selected


def _iter_elements(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each document element with its collection, and clear it afterwards."""
    try:
        from defusedxml import DefusedXmlException
        from defusedxml.ElementTree import ParseError, iterparse
    except ImportError:
        raise build_extra_error("defusedxml", "mt", "WMT XML") from None
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
        raise InputError(f"{path}: {error}; entities and external parts are refused, write the text itself") from None
    except (ParseError, LookupError, ValueError) as error:
        raise InputError(f"{path}: invalid XML ({error})") from None


def _add_texts(document: Document, element: Any, location: str) -> None:
    """Add the texts of one document element."""
    for child in element:
        if child.tag not in {"src", "ref", "hyp"}:
            continue
        texts = _read_segments(child, location)
        document.order.update(dict.fromkeys(texts))
        if child.tag == "src":
            document.source.update(texts)
            continue
        texts_by_name = document.references if child.tag == "ref" else document.outputs
        name = child.get("translator", UNNAMED) if child.tag == "ref" else child.get("system")
        if not name:
            raise InputError(f"{location}: <hyp> has no attribute system; it should name the system")
        if texts.keys() & texts_by_name.get(name, {}).keys():
            if child.tag == "ref" and all(texts_by_name[name].get(key, text) == text for key, text in texts.items()):
                continue
            raise InputError(f"{location}: {child.tag} of {name!r} occurs twice")
        texts_by_name.setdefault(name, {}).update(texts)


def _read_segments(element: Any, location: str) -> Texts:
    texts: Texts = {}
    for number, segment in enumerate(element.iter("seg"), start=1):
        name = segment.get("id") or str(number)
        if name in texts:
            raise InputError(f"{location}: segment {name!r} of <{element.tag}> occurs twice")
        texts[name] = LINE_ENDS.sub(" ", "".join(segment.itertext()).strip("\n"))
    return texts


def _select_translators(
    documents: dict[str, Document], requested: str | None, path: Path, warnings: list[str], *, every: bool = False
) -> list[str]:
    """Return the requested references, all if `every` is true, or the one with the most segments."""
    sizes: dict[str, int] = {}
    for document in documents.values():
        for name, texts in document.references.items():
            sizes[name] = sizes.get(name, 0) + len(texts)
    available = ", ".join(sizes) or "none"
    if requested is not None:
        names = list(dict.fromkeys(requested.split("+")))
        for name in names:
            if name not in sizes:
                raise InputError(f"{path}: no reference of translator {name!r}; there are: {available}")
        return names
    if not sizes:
        raise InputError(f"{path}: no reference (<ref>) in any document; give --gold FILE")
    if every:
        return list(sizes)
    largest = max(sizes, key=lambda name: sizes[name])
    if len(sizes) > 1:
        warnings.append(
            f"{path}: references of {available}; {largest} is taken, choose with --format segments:reference=NAME "
            "(A+B: both)"
        )
    return [largest]


def _list_items(documents: dict[str, Document], translators: Sequence[str]) -> list[tuple[str, str]]:
    return [
        (name, segment)
        for name, document in documents.items()
        for segment in document.order
        if any(segment in document.references.get(translator, {}) for translator in translators)
    ]


def _build_groups(documents: dict[str, Document], items: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the document of each segment and the document attributes (collection, origlang, domain)."""
    names = dict.fromkeys(key for document in documents.values() for key in document.attributes)
    groups = {name: [documents[d].attributes.get(name, "") for d, _ in items] for name in names}
    return {name: column for name, column in groups.items() if any(column)} | {"document": [d for d, _ in items]}
