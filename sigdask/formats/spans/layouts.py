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

OWN_KEYS = {"gold": ("gold_extracts",), "prediction": ("pred_extracts",)}
"""Keys of spans in records that hold gold and predicted spans."""

SLOT_KEYS = frozenset({"extracts", "gold_extracts", "pred_extracts"})
"""Keys of MUC's templates, whose slots are filled by entities."""

TOOL_KEYS = frozenset({"data", "answer", "_input_hash"})
"""Keys of all records of Label Studio and Prodigy, in which the key of the spans may lack if there are none."""

START_NAMES = frozenset({"start", "startoffset", "startchar", "begin", "off0"})
END_NAMES = frozenset({"end", "endoffset", "endchar", "off1"})
LABEL_NAMES = frozenset({"label", "labels", "type", "entitytype", "entity", "tag", "category", "mark"})
TEXT_NAMES = frozenset({"text", "word", "mention", "span"})
"""Names of a span's fields, in lower case without underscores."""

Position = tuple[Any, ...]
Span = tuple[str, Position]
"""Label and position. The position is (start, end), or several such pairs."""

Entities = dict[str, tuple[frozenset[str], ...]]
"""Entities by slot. Each is the set of its mentions."""


def find_span_key(path: Path, records: Sequence[JsonRecord], options: Options, role: str) -> str:
    """Return the key of the spans in a file's records, or "" if no layout fits.

    Parameters
    ----------
    path : Path
        The file.
    records : sequence of JsonRecord
        Its records.
    options : Options
        Their columns name the key of a role, and their option `spans` that of those files that have it.
    role : {"gold", "prediction", "both"}
        What the file holds; "both" for gold spans in a system's file.

    Raises
    ------
    InputError
        Several keys may be that of the spans, or the named one is none.
    """
    dicts = [record.value for record in records if isinstance(record.value, dict)]
    column = options.prediction_column if role == "prediction" else options.gold_column
    for requested in (column, options.own.get("spans")):
        if requested is not None and any(requested in record for record in dicts):
            return requested
        if dicts and requested is not None and requested == column:
            choices = ", ".join({key: None for record in dicts for key in record})
            remedy = f"choose one of its keys: {choices}"
            raise InputError(f"no record has a key {requested!r}", file=path, remedy=remedy)
    keys = {key: None for record in dicts for key, value in record.items() if isinstance(value, list | dict)}
    found = [key for key in OWN_KEYS["prediction" if role == "prediction" else "gold"] if key in keys]
    found = found or [key for key in SPAN_KEYS if key in keys and role != "both"]
    if "annotations" in found and all("data" in record for record in dicts):
        # Label Studio writes the models' outputs beside the annotations, mostly as an empty list
        has_both = role == "prediction" and any(record.get("predictions") for record in dicts)
        found = ["annotations", *(["predictions"] if has_both else [])]
    if len(found) > 1:
        name = "prediction" if role == "prediction" else "gold"
        choices = " or ".join(spell("columns", f"{name}={key}") for key in found)
        raise InputError(f"{format_list(found)} may hold the spans", file=path, remedy=f"choose: {choices}")
    return found[0] if found else ""


def select_annotation(value: Any, options: Options, where: str) -> Any:
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
    names = [_get_annotator(part) for part in counted]
    annotator = options.own.get("annotator")
    if annotator is not None:
        counted = [part for part, name in zip(counted, names, strict=True) if name == annotator]
    if not counted:
        return LeftOut(f"no annotation that counts{f' of {annotator}' if annotator else ' (skipped or cancelled)'}")
    if len(counted) > 1:
        choices = " or ".join(spell("format", f"spans:annotator={name}") for name in dict.fromkeys(names))
        problem = f"{where}: {format_count(len(counted), 'annotation')} of one task"
        raise InputError(problem, remedy=f"choose whose count: {choices}")
    return [part for part in counted[0]["result"] if _is_span_result(part)]


def _is_span_result(part: Any) -> bool:
    """Return whether a result of Label Studio is a span, and no relation, choice or rating."""
    value = part.get("value") if isinstance(part, dict) else None
    return not isinstance(part, dict) or part.get("type") == "labels" or (isinstance(value, dict) and "start" in value)


def _get_annotator(annotation: Mapping[str, Any]) -> str:
    """Return the annotator or model of an annotation."""
    person = annotation.get("completed_by", annotation.get("model_version"))
    return str(person.get("email", person.get("id")) if isinstance(person, dict) else person)


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
    """Return a span that is written as [start, end], [start, end, label] or an object."""
    if isinstance(element, dict):
        inner = element.get("value")  # of Label Studio, whose own `type` is that of its control
        fields = {normalize_name(name): part for name, part in (inner if isinstance(inner, dict) else element).items()}
        start, end = (find_field(fields, names) for names in (START_NAMES, END_NAMES))
        names = [name for name, part in fields.items() if part is not None]
        name = find_label_name(names, where, "remove one of these fields")
        label = "" if name is None else fields[name]
    elif isinstance(element, list) and len(element) >= 2:
        start, end, label = (*element, "")[:3]
    else:
        start = end = label = None
    if start is None or end is None or isinstance(start, list | dict) or isinstance(end, list | dict):
        raise InputError(
            f"{where}: found {str(element)[:60]}, expected a span: [start, end, label] or an object with start, end, "
            "label"
        )
    first, last = parse_offset(start, where), parse_offset(end, where)
    if last < first:
        raise InputError(f"{where}: a span from {first} to {last} ends before it starts")
    return "+".join(map(str, label)) if isinstance(label, list) else str(label), (first, last)


def find_label_name(names: Sequence[str], where: str, remedy: str) -> str | None:
    """Return the name of the label among fields of a span, None if there is none; raise an error for several."""
    known = [name for name in names if normalize_name(name) in LABEL_NAMES]
    first = [name for name in known if normalize_name(name) in {"label", "labels"}] or known
    if len(first) > 1:
        raise InputError(f"{where}: {format_list(first)} may be the label", remedy=remedy)
    return first[0] if first else None


def normalize_name(name: Any) -> str:
    """Return a name in lower case without underscores."""
    return str(name).strip().lower().replace("_", "")


def find_field(fields: Mapping[str, Any], names: frozenset[str]) -> Any:
    """Return the value of the first field with one of some names, or None."""
    return next((value for name, value in fields.items() if name in names), None)


def parse_offset(value: Any, where: str) -> int:
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
