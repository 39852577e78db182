"""WMT's documents with source, references by translator and outputs of systems, segment by segment.

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
from sigdask.errors import InputError, missing_extra
from sigdask.formats.reading.files import open_bytes, stem
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.texts import sgml
from sigdask.formats.texts.parallel import text_counts

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
    """One document of all files: the order of its segments, and who gave what for them."""

    attributes: dict[str, str]
    order: dict[str, None] = field(default_factory=dict)
    source: Texts = field(default_factory=dict)
    references: dict[str, Texts] = field(default_factory=dict)
    outputs: dict[str, Texts] = field(default_factory=dict)


def is_marked_up(path: Path) -> bool:
    """Whether a file is WMT XML or SGML, by its first element; a file that cannot be read is none."""
    return is_xml(path) or sgml.is_sgml(path)


def is_xml(path: Path) -> bool:
    """Whether a file is WMT XML, by its first element."""
    try:
        with open_bytes(path) as stream:
            return ROOT.match(stream.read(65536).removeprefix(b"\xef\xbb\xbf")) is not None
    except InputError:
        return False


def read_wmt(sources: Sequence[Source], gold: Path | None, options: Options, suggested: tuple[str, ...]) -> Counts:
    """Read systems and references out of one or several XML or SGML files.

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
    options.only("segments", reference=(), collection=())
    if options.documents or (options.references and is_xml(sources[0].path)):
        raise InputError(
            f"{sources[0].path}: WMT's XML and SGML hold references and documents; choose with --format "
            "segments:reference=TRANSLATOR and --unit document"
        )
    asked = options.own.get("reference")
    if gold is not None and not gold.exists():
        asked, gold = asked or str(gold), None
    warnings: list[str] = []
    documents = _documents([*([Source(gold)] if gold else []), *map(Source, options.references), *sources])
    documents = _of_collection(documents, options.own.get("collection"), sources[0].path, warnings)
    translators = _translators(documents, asked, sources[0].path, warnings, every=bool(options.references))
    systems = dict.fromkeys(name for document in documents.values() for name in document.outputs)
    if not systems:
        raise InputError(f"{sources[0].path}: no output (<hyp system=...>) or <tstset> in any document")
    items = _items(documents, translators)
    left_out = sum(len(d.order) for d in documents.values()) - len(items)
    if not items:
        raise InputError(f"{sources[0].path}: no segment has a reference of {' or '.join(translators)}")
    if left_out:
        warnings.append(f"{left_out} segments without a reference are left out")
    return text_counts(
        {name: [documents[d].outputs.get(name, {}).get(s) for d, s in items] for name in systems},
        [[documents[d].references.get(name, {}).get(s) for d, s in items] for name in translators],
        options,
        ids=[f"{d}:{s}" for d, s in items],
        groups=_groups(documents, items),
        suggested=suggested,
        warnings=warnings,
        asked=[documents[d].source.get(s) for d, s in items] if any(d.source for d in documents.values()) else None,
    )


def _documents(sources: Sequence[Source]) -> dict[str, Document]:
    """Read the documents of all files, those of one id together."""
    documents: dict[str, Document] = {}
    files = list({source.path: source for source in sources}.values())
    for source in files:
        if not sgml.is_sgml(source.path):
            _add_xml(documents, source.path)
    _add_sgml(documents, [source for source in files if sgml.is_sgml(source.path)])
    return documents


def _add_xml(documents: dict[str, Document], path: Path) -> None:
    before: set[str] = set()
    for number, (collection, element) in enumerate(_elements(path), start=1):
        name = element.get("id") or element.get("docid") or str(number)
        while name in before:  # another document of the same id, as in another collection
            name += "'"
        before.add(name)
        attributes = {key: value for key, value in element.attrib.items() if key not in {"id", "docid"}}
        document = documents.setdefault(name, Document({"collection": collection, **attributes}))
        _add(document, element, f"{path}, document {name!r}")
    if not before:
        raise InputError(f"{path}: no document (<doc>)")


def _add_sgml(documents: dict[str, Document], sources: Sequence[Source]) -> None:
    """Take the sets of SGML files; where files call their systems or translators alike, the files name them."""
    files = [(source, list(sgml.read_parts(source.path))) for source in sources]
    inside = [{(part.kind, part.name) for part in parts} for _, parts in files]
    alike = sum(map(len, inside)) > len(set().union(*inside))
    for (source, parts), written in zip(files, inside, strict=True):
        own = source.name or (stem(source.path) if alike else None)
        for part in parts:
            name = (own if len(written) == 1 else None) or part.name or stem(source.path)
            document = documents.setdefault(part.document, Document({"collection": "", **part.attributes}))
            document.order.update(dict.fromkeys(part.texts))
            if part.kind == "src":
                document.source.update(part.texts)
            else:
                given = document.references if part.kind == "ref" else document.outputs
                if part.texts.keys() & given.get(name, {}).keys():
                    place = f"{source.path}, document {part.document!r}"
                    raise InputError(f"{place}: {part.kind}set of {name!r} occurs twice; name files NAME=FILE")
                given.setdefault(name, {}).update(part.texts)


def _of_collection(
    documents: dict[str, Document], asked: str | None, path: Path, warnings: list[str]
) -> dict[str, Document]:
    """Keep the documents of one collection or test suite, by default the first collection that was translated."""
    parts = {name: d.attributes.get("testsuite") or d.attributes["collection"] for name, d in documents.items()}
    known = ", ".join(filter(None, dict.fromkeys(parts.values()))) or "none"
    if asked == "all":
        return documents
    if asked is not None and asked not in parts.values():
        raise InputError(f"{path}: no collection or test suite {asked!r}; there are: {known}, all")
    translated = [name for name, d in documents.items() if d.outputs and d.references] or list(documents)
    proper = [name for name in translated if "testsuite" not in documents[name].attributes]
    part = asked if asked is not None else parts[(proper or translated)[0]]
    kept = {name: d for name, d in documents.items() if parts[name] == part}
    left_out = dict.fromkeys(parts[name] for name in translated if name not in kept)
    if left_out and asked is None:
        warnings.append(
            f"{path}: documents of {', '.join(map(repr, left_out))} are left out; choose with --format "
            "segments:collection=NAME, or all"
        )
    return kept


def _elements(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each document element with the collection it stands in; forget it afterwards."""
    try:
        from defusedxml import DefusedXmlException
        from defusedxml.ElementTree import ParseError, iterparse
    except ImportError:
        raise missing_extra("defusedxml", "mt", "WMT XML") from None
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


def _add(document: Document, element: Any, place: str) -> None:
    """Take what one file says of a document."""
    for part in element:
        if part.tag not in {"src", "ref", "hyp"}:
            continue
        texts = _segments(part, place)
        document.order.update(dict.fromkeys(texts))
        if part.tag == "src":
            document.source.update(texts)
            continue
        given = document.references if part.tag == "ref" else document.outputs
        name = part.get("translator", UNNAMED) if part.tag == "ref" else part.get("system")
        if not name:
            raise InputError(f"{place}: <hyp> has no attribute system; it should name the system")
        if texts.keys() & given.get(name, {}).keys():
            if part.tag == "ref" and all(given[name].get(key, text) == text for key, text in texts.items()):
                continue
            raise InputError(f"{place}: {part.tag} of {name!r} occurs twice")
        given.setdefault(name, {}).update(texts)


def _segments(part: Any, place: str) -> Texts:
    texts: Texts = {}
    for number, segment in enumerate(part.iter("seg"), start=1):
        name = segment.get("id") or str(number)
        if name in texts:
            raise InputError(f"{place}: segment {name!r} of <{part.tag}> occurs twice")
        texts[name] = LINE_ENDS.sub(" ", "".join(segment.itertext()).strip("\n"))
    return texts


def _translators(
    documents: dict[str, Document], asked: str | None, path: Path, warnings: list[str], *, every: bool = False
) -> list[str]:
    """Return the references asked for, all of them where `every` is, or the one of most segments."""
    sizes: dict[str, int] = {}
    for document in documents.values():
        for name, texts in document.references.items():
            sizes[name] = sizes.get(name, 0) + len(texts)
    known = ", ".join(sizes) or "none"
    if asked is not None:
        names = list(dict.fromkeys(asked.split("+")))
        for name in names:
            if name not in sizes:
                raise InputError(f"{path}: no reference of translator {name!r}; there are: {known}")
        return names
    if not sizes:
        raise InputError(f"{path}: no reference (<ref>) in any document; give --gold FILE")
    if every:
        return list(sizes)
    first = max(sizes, key=lambda name: sizes[name])
    if len(sizes) > 1:
        warnings.append(
            f"{path}: references of {known}; {first} is taken, choose with --format segments:reference=NAME (A+B: both)"
        )
    return [first]


def _items(documents: dict[str, Document], translators: Sequence[str]) -> list[tuple[str, str]]:
    return [
        (name, segment)
        for name, document in documents.items()
        for segment in document.order
        if any(segment in document.references.get(translator, {}) for translator in translators)
    ]


def _groups(documents: dict[str, Document], items: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the document of each segment and what is said of it (collection, origlang, domain)."""
    names = dict.fromkeys(key for document in documents.values() for key in document.attributes)
    groups = {name: [documents[d].attributes.get(name, "") for d, _ in items] for name in names}
    return {name: column for name, column in groups.items() if any(column)} | {"document": [d for d, _ in items]}
