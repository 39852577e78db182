"""SGML of mteval, as WMT to 2020, IWSLT and NIST have it: `<refset>`, `<tstset>`, `<srcset>` of documents' segments.

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
from sigdask.formats.reading.json.records import head

START = re.compile(r"(?:\s|<\?xml[^>]*+>|(?><!--.*?-->)|<!DOCTYPE[^>]*+>|<mteval\b[^>]*+>)*+<(?:ref|tst|src)set\b",
                   re.DOTALL | re.IGNORECASE)  # fmt: skip
TAG = re.compile(r"<(?P<name>refset|tstset|srcset|doc|seg)\b", re.IGNORECASE)
SEGMENT_EDGE = re.compile(r"<seg\b|(?P<end></seg\s*+>)", re.IGNORECASE)
ATTRIBUTE = re.compile(r"(?<![\w:-])([\w:-]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]++))")
ENTITY = re.compile(r"&(amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});")
ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


@dataclass(slots=True)
class SgmlDocument:
    """One document of one set.

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
    """A tag of a set, a document or a segment: its name in small letters, and where it stands."""

    name: str
    attributes: dict[str, str]
    text: str
    start: int


def is_sgml(path: Path) -> bool:
    """Whether a file begins as a set of segments."""
    return START.match(head(path)) is not None


def read_parts(path: Path) -> Iterator[SgmlDocument]:
    """Yield the documents of a file, in its order.

    Raises
    ------
    InputError
        For a segment outside a document, one that occurs twice, and one without an end.
    """
    with open_text(path) as stream:
        content = stream.read()
    kind, of_set, part, n_documents = "", {"": ""}, None, 0
    for tag in _tags(path, content):
        if tag.name == "doc":
            if part is not None:
                yield part
            n_documents += 1
            part = _part(kind, of_set, tag.attributes, n_documents)
        elif tag.name == "seg":
            if part is None:
                raise InputError(f"{_at(path, content, tag.start)}: segment outside a document (<doc docid=...>)")
            name = tag.attributes.get("id") or str(len(part.texts) + 1)
            if name in part.texts:
                raise InputError(
                    f"{_at(path, content, tag.start)}: segment {name!r} of document {part.document!r} occurs twice"
                )
            part.texts[name] = ENTITY.sub(_entity, " ".join(tag.text.split()))
        else:
            kind, of_set = tag.name.removesuffix("set"), tag.attributes
    if part is None:
        raise InputError(f"{path}: no document (<doc docid=...>)")
    yield part


def _tags(path: Path, content: str) -> Iterator[SgmlTag]:
    """Yield the tags of sets, documents and segments, those with what they enclose."""
    at = 0
    while (match := TAG.search(content, at)) is not None:
        name, start = match["name"].lower(), match.start()
        if (at := content.find(">", match.end()) + 1) == 0:
            raise InputError(f"{_at(path, content, start)}: tag <{name}> without its end (>)")
        attributes, text = _attributes(content[match.end() : at - 1]), ""
        if name == "seg":
            edge = SEGMENT_EDGE.search(content, at)
            if edge is None or edge["end"] is None:
                raise InputError(f"{_at(path, content, start)}: segment without its end (</seg>)")
            text, at = content[at : edge.start()], edge.end()
        yield SgmlTag(name, attributes, text, start)


def _part(kind: str, of_set: dict[str, str], of_doc: dict[str, str], number: int) -> SgmlDocument:
    own = {"ref": "refid", "tst": "sysid", "src": ""}[kind]
    name = of_doc.pop("sysid", None) or of_set.get(own) or of_set.get("sysid")
    document = of_doc.pop("docid", None) or of_doc.pop("id", None) or str(number)
    return SgmlDocument(kind, document, name, of_doc)


def _attributes(text: str) -> dict[str, str]:
    return {name.lower(): quoted or single or bare for name, quoted, single, bare in ATTRIBUTE.findall(text)}


def _entity(match: re.Match[str]) -> str:
    name = match[1]
    if not name.startswith("#"):
        return ENTITIES[name]
    number = int(name[1:], 10) if name[1].isdecimal() else int(f"0{name[1:]}", 0)
    return chr(number) if number < 0x110000 else match[0]


def _at(path: Path, content: str, start: int) -> str:
    return f"{path}, line {content.count(chr(10), 0, start) + 1}"
