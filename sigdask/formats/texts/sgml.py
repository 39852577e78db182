"""SGML of mteval, used by WMT until 2020, IWSLT and NIST: `<refset>`, `<tstset>`, `<srcset>`.

The files are seldom well-formed: tags in either case, attributes with or without quotes, bare
ampersands. So tags are looked for, as the scoring scripts do, and nothing is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import open_text
from sigdask.formats.reading.json.records import read_head

START = re.compile(r"(?:\s|<\?xml[^>]*+>|(?><!--.*?-->)|<!DOCTYPE[^>]*+>|<mteval\b[^>]*+>)*+<(?:ref|tst|src)set\b",
                   re.DOTALL | re.IGNORECASE)  # fmt: skip
TAG = re.compile(r"<(?P<name>refset|tstset|srcset|doc|seg)\b", re.IGNORECASE)
SEGMENT_EDGE = re.compile(r"<seg\b|(?P<end></seg\s*+>)", re.IGNORECASE)
ATTRIBUTE = re.compile(r"(?<![\w:-])([\w:-]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]++))")
ENTITY = re.compile(r"&(amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});")
ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


@dataclass(slots=True)
class SgmlDocument:
    """One document of a source, reference or system set.

    Attributes
    ----------
    kind : str
        "src", "ref" or "tst".
    document : str
        Its id.
    name : str or None
        Who wrote it: the system or the translator.
    attributes : dict of str to str
        What else is said of the document.
    texts : dict of str to str
        Segment id to text.
    """

    kind: str
    document: str
    name: str | None
    attributes: dict[str, str]
    texts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SgmlTag:
    """The tag of a set, a document or a segment: its lower-case name, attributes, text and position."""

    name: str
    attributes: dict[str, str]
    text: str
    start: int


def is_sgml(path: Path) -> bool:
    """Return whether a file begins with a set of segments."""
    return START.match(read_head(path)) is not None


def iter_documents(path: Path) -> Iterator[SgmlDocument]:
    """Yield the documents of a file, in file order.

    Raises
    ------
    InputError
        For a segment outside a document, one that occurs twice, and one without an end.
    """
    with open_text(path) as stream:
        content = stream.read()
    kind, set_attributes, document, n_documents = "", {"": ""}, None, 0
    for tag in _iter_tags(path, content):
        if tag.name == "doc":
            if document is not None:
                yield document
            n_documents += 1
            document = _build_document(kind, set_attributes, tag.attributes, n_documents)
        elif tag.name == "seg":
            if document is None:
                raise InputError(
                    f"{_format_location(path, content, tag.start)}: segment outside a document (<doc docid=...>)"
                )
            name = tag.attributes.get("id") or str(len(document.texts) + 1)
            if name in document.texts:
                raise InputError(
                    f"{_format_location(path, content, tag.start)}: segment {name!r} of document "
                    f"{document.document!r} occurs twice"
                )
            document.texts[name] = ENTITY.sub(_decode_entity, " ".join(tag.text.split()))
        else:
            kind, set_attributes = tag.name.removesuffix("set"), tag.attributes
    if document is None:
        raise InputError(f"{path}: no document (<doc docid=...>)")
    yield document


def _iter_tags(path: Path, content: str) -> Iterator[SgmlTag]:
    """Yield the tags of sets, documents and segments; segment tags include the enclosed text."""
    position = 0
    while (match := TAG.search(content, position)) is not None:
        name, start = match["name"].lower(), match.start()
        if (position := content.find(">", match.end()) + 1) == 0:
            raise InputError(f"{_format_location(path, content, start)}: tag <{name}> without its end (>)")
        attributes, text = _parse_attributes(content[match.end() : position - 1]), ""
        if name == "seg":
            edge = SEGMENT_EDGE.search(content, position)
            if edge is None or edge["end"] is None:
                raise InputError(f"{_format_location(path, content, start)}: segment without its end (</seg>)")
            text, position = content[position : edge.start()], edge.end()
        yield SgmlTag(name, attributes, text, start)


def _build_document(
    kind: str, set_attributes: dict[str, str], doc_attributes: dict[str, str], number: int
) -> SgmlDocument:
    name_key = {"ref": "refid", "tst": "sysid", "src": ""}[kind]
    name = doc_attributes.pop("sysid", None) or set_attributes.get(name_key) or set_attributes.get("sysid")
    document = doc_attributes.pop("docid", None) or doc_attributes.pop("id", None) or str(number)
    return SgmlDocument(kind, document, name, doc_attributes)


def _parse_attributes(text: str) -> dict[str, str]:
    return {name.lower(): quoted or single or bare for name, quoted, single, bare in ATTRIBUTE.findall(text)}


def _decode_entity(match: re.Match[str]) -> str:
    name = match[1]
    if not name.startswith("#"):
        return ENTITIES[name]
    number = int(name[1:], 10) if name[1].isdecimal() else int(f"0{name[1:]}", 0)
    return chr(number) if number < 0x110000 else match[0]


def _format_location(path: Path, content: str, start: int) -> str:
    return f"{path}, line {content.count(chr(10), 0, start) + 1}"
