"""XML of mwetoolkit (mwetoolkit-candidates.dtd): candidates with measures and gold-standard classes.

The document type may be named, and is not fetched; a file that declares entities is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from sigdask.errors import InputError
from sigdask.formats.candidates.columns import Conventions
from sigdask.formats.reading.files import open_bytes
from sigdask.formats.reading.json.records import read_head
from sigdask.formats.reading.tables import FileTable

START = re.compile(
    r"(?:\s|<\?[^>]*+>|(?><!--.*?-->)|(?><!DOCTYPE[^>\[]*+(?:>|\[.*?\]\s*+>)))*+<candidates\b", re.DOTALL
)

CANDIDATE = "candidate"
"""Column of ids."""


def is_xml(path: Path) -> bool:
    """Return whether a file begins as an XML list of candidates."""
    return START.match(read_head(path)) is not None


def read_table(path: Path) -> tuple[FileTable, Conventions]:
    """Read candidates as rows, each with the line it begins on, and a column per feature and class.

    Returns
    -------
    FileTable
    Conventions
        Which columns are classes, and which features are declared as real numbers.

    Raises
    ------
    InputError
        The file is no XML, declares entities, or has something twice.
    """
    reader = _CandidateParser(path)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = reader.start_element, reader.end_element
    parser.EntityDeclHandler = parser.SkippedEntityHandler = parser.ExternalEntityRefHandler = reader.refuse_entity
    reader.parser = parser
    try:
        with open_bytes(path) as stream:
            parser.ParseFile(stream)
    except expat.ExpatError as error:
        raise InputError(f"{path}, line {error.lineno}: invalid XML ({expat.errors.messages[error.code]})") from None
    except (LookupError, ValueError) as error:
        raise InputError(f"{path}: invalid XML ({error})") from None
    if not reader.lines:
        raise InputError(f"{path}: no candidate (<cand>)")
    names = list(dict.fromkeys([CANDIDATE, *reader.features, *reader.classes]))
    columns = {name: [cells.get(name, "") for cells in reader.rows] for name in names}
    real = tuple(name for name in reader.features if reader.types.get(name) == "real")
    return FileTable(path, columns, reader.lines), Conventions(
        gold=tuple(reader.classes), measures=real or tuple(reader.features), ids=(CANDIDATE,)
    )


@dataclass(slots=True)
class _CandidateParser:
    """Collects candidates during parsing.

    Attributes
    ----------
    path : Path
    rows : list of dict
        Of each candidate, its id, features and classes.
    lines : list of int
        Where each begins.
    features, classes, types : dict
        Names in the order in which they are met, and the declared types of features.
    """

    path: Path
    parser: Any = None
    rows: list[dict[str, str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    features: dict[str, None] = field(default_factory=dict)
    classes: dict[str, None] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    _words: list[str] = field(default_factory=list)

    def start_element(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Record the attributes of a start tag."""
        inside = self._open[-1] if self._open else ""
        self._open.append(tag)
        if tag == "metafeat":
            self.types[attributes.get("name", "")] = attributes.get("type", "")
        elif tag == "cand":
            self.rows.append({CANDIDATE: attributes.get("candid", "")})
            self.lines.append(self.parser.CurrentLineNumber)
            self._words = []
        elif tag == "w" and self._open[-3:-1] == ["cand", "ngram"]:
            self._words.append(attributes.get("lemma") or attributes.get("surface") or attributes.get("pos", ""))
        elif tag == "feat" and inside == "features":
            self._add_value(attributes, tag, self.features)
        elif tag == "tpclass" and inside == "cand":
            self._add_value(attributes, tag, self.classes)

    def end_element(self, tag: str) -> None:
        """Handle an end tag; a candidate without an id gets its words as its id."""
        self._open.pop()
        if tag == "cand" and not self.rows[-1][CANDIDATE]:
            self.rows[-1][CANDIDATE] = " ".join(self._words)

    def _add_value(self, attributes: Mapping[str, str], tag: str, names: dict[str, None]) -> None:
        name = attributes.get("name", "")
        if not name or "value" not in attributes:
            raise InputError(f"{self._location}: <{tag}> without {'a value' if name else 'a name'}")
        if name in self.rows[-1]:
            raise InputError(f"{self._location}: {tag} {name!r} occurs twice in one candidate")
        names[name] = None
        self.rows[-1][name] = attributes["value"].strip()

    @property
    def _location(self) -> str:
        return f"{self.path}, line {self.parser.CurrentLineNumber}"

    def refuse_entity(self, *_: Any) -> int:
        """Raise an error for an XML entity or a reference to an external file."""
        raise InputError(f"{self._location}: entities and external parts are refused, write the text itself")
