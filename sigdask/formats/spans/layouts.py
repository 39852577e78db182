"""Declared layouts of span annotations: which key of a JSON record holds the spans, and how a span is written.

A span is [start, end, label] or an object. A file whose keys fit no layout, or two of them, is refused: the values do
not decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.json_records import JsonRecord
from sigdask.formats.reading.listings import LeftOut, normalize_words
from sigdask.formats.reading.options import Options
from sigdask.interface import spell
from sigdask.text import format_count, format_list

SPAN_KEYS = ("spans", "entities", "ents", "annotations", "extracts", "label", "labels")
"""Keys of spans: Prodigy, doccano and spaCy's training data, spaCy's Doc.to_json, Label Studio, MUC, doccano."""

OWN_KEYS = {"gold": "gold_extracts", "prediction": "pred_extracts"}
"""Keys of spans in records that hold gold and predicted spans, by the role of the file."""

SLOT_KEYS = frozenset({"extracts", "gold_extracts", "pred_extracts"})
"""Keys of MUC's templates, whose slots are filled by entities."""

TOOL_KEYS = frozenset({"data", "answer", "_input_hash"})
"""Keys of all records of Label Studio and Prodigy, in which the key of the spans may lack if there are none."""

START_NAMES = ("start", "startoffset", "startchar", "begin", "off0")
END_NAMES = ("end", "endoffset", "endchar", "off1")
LABEL_NAMES = ("label", "labels", "type", "entitytype", "entity", "tag", "category", "mark")
TEXT_NAMES = frozenset({"text", "word", "mention", "span"})
"""Names of a span's fields, in lower case without underscores."""

Position = tuple[Any, ...]
Span = tuple[str, Position]
"""Label and position. The position is (start, end), or several such pairs."""

Entities = dict[str, tuple[frozenset[str], ...]]
"""Entities by slot. Each is the set of its mentions."""


def find_span_key(path: Path, records: Sequence[JsonRecord], options: Options, role: str) -> str | None:
    """Return the key of the spans in a file's records, or None if no layout fits.

    Parameters
    ----------
    path : Path
        The file.
    records : sequence of JsonRecord
        Its records.
    options : Options
        Their columns name the key of a role.
    role : {"gold", "prediction"}
        What the file holds.

    Raises
    ------
    InputError
        Several keys may be that of the spans, or the named one is none.
    """
    dicts = [record.value for record in records if isinstance(record.value, dict)]
    requested = options.columns.get(role)
    if dicts and requested is not None:
        if not any(requested in record for record in dicts):
            remedy = f"choose one of its keys: {', '.join(dicts[0])}"
            raise InputError(f"no record has a key {requested!r}", file=path, remedy=remedy)
        return requested
    keys = {key for record in dicts for key, value in record.items() if isinstance(value, list | dict)}
    found = [key for key in ([OWN_KEYS[role]] if OWN_KEYS[role] in keys else SPAN_KEYS) if key in keys]
    if "annotations" in found and all("data" in record for record in dicts):
        # Label Studio writes the models' outputs beside the annotations, mostly as an empty list
        has_both = role == "prediction" and any(record.get("predictions") for record in dicts)
        found = ["annotations", *(["predictions"] if has_both else [])]
    if len(found) > 1:
        choices = " or ".join(spell("columns", f"{role}={key}") for key in found)
        raise InputError(f"{format_list(found)} may hold the spans", file=path, remedy=f"choose: {choices}")
    return found[0] if found else None


def select_annotation(value: Any, where: str) -> Any:
    """Return the spans of a Label Studio task, those of its only annotation that counts; other values as they are.

    Raises
    ------
    InputError
        A task has several annotations.
    """
    if not isinstance(value, list) or not all(
        isinstance(part, dict) and isinstance(part.get("result"), list) for part in value
    ):
        return value  # written by another tool
    counted = [part for part in value if not part.get("was_cancelled")]
    if not counted:
        return LeftOut("no annotation that counts (skipped or cancelled)")
    if len(counted) > 1:
        problem = f"{where}: {format_count(len(counted), 'annotation')} of one task"
        raise InputError(problem, remedy="leave one annotation in each task")
    return [part for part in counted[0]["result"] if _is_span_result(part)]


def _is_span_result(part: Any) -> bool:
    """Return whether a result of Label Studio is a span, and no relation, choice or rating."""
    value = part.get("value") if isinstance(part, dict) else None
    return not isinstance(part, dict) or part.get("type") == "labels" or (isinstance(value, dict) and "start" in value)


def parse_spans(value: Any, where: str) -> list[Span]:
    """Return the spans of a document.

    Examples
    --------
    >>> parse_spans([[0, 5, "LOC"], {"start": 7, "end": 9, "label": "PER"}, [2, 3]], "x")
    [('LOC', (0, 5)), ('PER', (7, 9)), ('', (2, 3))]
    """
    if not isinstance(value, list | None):
        raise InputError(f"{where}: no list of spans, found {str(value)[:40]}")
    return [parse_span(element, where) for element in value or ()]


def parse_span(element: Any, where: str) -> Span:
    """Return a span that is written as [start, end], [start, end, label] or an object; a tuple is parsed already."""
    if isinstance(element, tuple):
        return element
    if isinstance(element, dict):
        inner = element.get("value")  # of Label Studio, whose own `type` is that of its control
        content = inner if isinstance(inner, dict) else element
        fields = {normalize_name(name): part for name, part in content.items()}
        start, end = (next((fields[n] for n in names if n in fields), None) for names in (START_NAMES, END_NAMES))
        known = [name for name in LABEL_NAMES if fields.get(name) is not None]
        known = [name for name in known if name in {"label", "labels"}] or known
        if len(known) > 1:
            raise InputError(f"{where}: {format_list(known)} may be the label", remedy="remove one of these fields")
        label = fields[known[0]] if known else ""
    elif isinstance(element, list) and len(element) >= 2:
        start, end, label = (*element, "")[:3]
    else:
        start = end = label = None
    if start is None or end is None or isinstance(start, list | dict) or isinstance(end, list | dict):
        raise InputError(
            f"{where}: found {str(element)[:60]}, expected a span: [start, end, label] or an object with start, end, "
            "label"
        )
    first, last = _parse_offset(start, where), _parse_offset(end, where)
    if last < first:
        raise InputError(f"{where}: a span from {first} to {last} ends before it starts")
    return "+".join(map(str, label)) if isinstance(label, list) else str(label), (first, last)


def normalize_name(name: str) -> str:
    """Return a name in lower case without underscores."""
    return name.strip().lower().replace("_", "")


def _parse_offset(value: Any, where: str) -> int:
    """Return an offset as a number; raise InputError for anything but a whole number of 0 or more."""
    text = str(value).strip().removesuffix(".0")
    if not re.fullmatch(r"\d{1,18}", text) or isinstance(value, bool):
        raise InputError(f"{where}: found {str(value)[:40]!r}, expected an offset, a whole number of 0 or more")
    return int(text)


def parse_entities(value: Any, where: str, label_map: Mapping[str, str]) -> Entities:
    """Return the entities of each slot; mentions lose case, punctuation and articles.

    Examples
    --------
    >>> parse_entities({"Victim": [[["The Priests", 12], ["priests", 40]]]}, "x", {})
    {'Victim': (frozenset({'priests'}),)}
    """
    if not isinstance(value, dict | None):
        raise InputError(f"{where}: found {str(value)[:40]}, expected an object of slot to list of entities")
    slots: Entities = {}
    for slot, entities in (value or {}).items():
        name = label_map.get(str(slot), str(slot))
        if not isinstance(entities, list | None):
            raise InputError(f"{where}, {slot!r}: found {str(entities)[:40]}, expected a list of entities")
        for entity in filter(None, entities or []):
            parts = entity if isinstance(entity, list) else [entity]
            mentions = frozenset(_parse_mention(part, f"{where}, {slot!r}") for part in parts)
            slots[name] = (*slots.get(name, ()), mentions)
        slots.setdefault(name, ())
    return slots


def _parse_mention(part: Any, where: str) -> str:
    """Return the text of a mention: a text, or [text, offset]."""
    text = part[0] if isinstance(part, list) and part else part
    if not isinstance(text, str):
        raise InputError(f"{where}: found {str(part)[:40]}, expected a mention: a text, or text and offset")
    return " ".join(normalize_words(text))
