"""Declared layouts of span annotations: which key of a JSON record holds the spans, and how a span is written.

In JSON a span is [start, end, label], an object, or text alone. A file whose keys fit no layout, or two of them, is
refused: the values do not decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sigdask.errors import InputError
from sigdask.formats.reading.json_records import JsonRecord
from sigdask.formats.reading.listings import LeftOut, normalize_words
from sigdask.formats.reading.options import Options
from sigdask.formats.spans.relations import Span, SpanPosition
from sigdask.interface import spell
from sigdask.text import format_count, format_list


class SpanLayout(NamedTuple):
    """The key of the spans in the records of a tool. The key `beside` is in each record; that of the spans may lack."""

    tool: str
    spans: str
    beside: str


TOOL_LAYOUTS = (
    SpanLayout("Label Studio", "annotations", "data"),
    SpanLayout("Label Studio JSON-MIN", "label", "annotation_id"),
    SpanLayout("Prodigy", "spans", "answer"),
    SpanLayout("Prodigy", "spans", "_input_hash"),
    SpanLayout("BioC", "passages", "infons"),
    SpanLayout("BigBio", "entities", "coreferences"),
)
"""Layouts that a key beside that of the spans tells from others."""

SPAN_KEYS = ("spans", "entities", "ents", "ner", "entity_mentions", "annotations", "extracts", "passages", "label",
             "labels")  # fmt: skip
"""Keys of spans: spaCy and Prodigy, doccano and pipelines, Doc.to_json, DyGIE++, ACE, doccano, MUC, BioC, doccano."""

GOLD_KEYS = ("gold_spans", "gold_entities", "gold_ner", "gold_extracts", "annotation")
PREDICTED_KEYS = ("predicted_spans", "pred_spans", "predicted_entities", "pred_entities", "predicted_ner", "pred_ner",
                  "pred_extracts", "predictions", "prediction")  # fmt: skip
"""Keys of spans in records that hold gold and predicted spans; `annotation` and `prediction` are Argilla's."""

SLOT_KEYS = frozenset({"extracts", "gold_extracts", "pred_extracts"})
"""Keys of MUC's templates, whose slots are filled by entities."""

START_NAMES = frozenset({"start", "startoffset", "startchar", "charstart", "startindex", "startpos", "begin",
                         "beginoffset", "beginchar", "off0"})  # fmt: skip
END_NAMES = frozenset({"end", "endoffset", "endchar", "charend", "endindex", "endpos", "stop", "off1"})
LABEL_NAMES = frozenset({"label", "labels", "type", "entitytype", "entitygroup", "entitylabel", "nerlabel", "entity",
                         "tag", "category", "class", "mark", "role"})  # fmt: skip
TEXT_NAMES = frozenset({"text", "surface", "word", "mention", "span", "term", "string", "phrase"})
FRAGMENT_NAMES = ("offsets", "fragments", "span", "position", "positions", "offset")
"""Names of a span's fields, in lower case without underscores."""

Entities = dict[str, tuple[frozenset[str], ...]]
"""Entities by slot. Each is the set of its mentions."""


def find_span_key(path: Path, records: Sequence[JsonRecord], column: str | None, options: Options, role: str) -> str:
    """Return the key of the spans in a file's records, or "" if no layout fits.

    Parameters
    ----------
    path : Path
        The file.
    records : sequence of JsonRecord
        Its records.
    column : str or None
        The key that the user names for this role.
    options : Options
        Their option `spans` names the key of those files that have it.
    role : {"gold", "prediction", "both"}
        What the file holds; "both" for gold spans in a system's file.

    Raises
    ------
    InputError
        Several keys may be that of the spans, or the named one is none.
    """
    dicts = [record.value for record in records if isinstance(record.value, dict)]
    keys = {key: None for record in dicts for key, value in record.items() if isinstance(value, list | dict)}
    given = [name for name in (column, options.own.get("spans")) if name is not None]
    for requested in given:
        if any(requested in record for record in dicts):
            return requested
        if dicts and requested == column:
            remedy = f"choose one of its keys: {', '.join(keys)}"
            raise InputError(f"no record has a key {requested!r}", file=path, remedy=remedy)
    own = [key for key in (PREDICTED_KEYS if role == "prediction" else GOLD_KEYS) if key in keys]
    for layout in TOOL_LAYOUTS:
        if dicts and all(layout.beside in record for record in dicts) and layout.spans in keys:
            # Label Studio writes the models' outputs beside the annotations, mostly as an empty list
            has_both = role == "prediction" and any(record.get("predictions") for record in dicts)
            own, found = (["predictions"], [layout.spans]) if has_both else ([], [layout.spans])
            return _get_only_key(path, [*own, *found], role)
    found = own or ([] if role == "both" else [key for key in SPAN_KEYS if key in keys])
    return _get_only_key(path, found, role) if found else ""


def _get_only_key(path: Path, found: Sequence[str], role: str) -> str:
    if len(found) == 1:
        return found[0]
    column = "prediction" if role == "prediction" else "gold"
    choices = " or ".join(spell("columns", f"{column}={key}") for key in found)
    raise InputError(f"{format_list(found)} may hold the spans", file=path, remedy=f"choose: {choices}")


def is_optional(key: str, records: Sequence[JsonRecord]) -> bool:
    """Return whether a record without the key of the spans has no spans, as in the exports of tools."""
    return any(key == layout.spans and all(layout.beside in record.value for record in records)
               for layout in TOOL_LAYOUTS)  # fmt: skip


def select_annotation(value: Any, options: Options, where: str) -> Any:
    """Return the spans of a Label Studio task, those of its only annotation that counts; other values as they are.

    Raises
    ------
    InputError
        A task has several annotations.
    """
    if not isinstance(value, list) or not all(isinstance(part, dict) and "result" in part for part in value):
        return value  # written by another tool
    counted = [part for part in value if not part.get("was_cancelled")]
    if not counted:
        return LeftOut("no annotation that counts (skipped or cancelled)")
    names = [_list_annotators(part) for part in counted]
    annotator = options.own.get("annotator")
    if annotator is not None:
        counted = [part for part, own in zip(counted, names, strict=True) if annotator in own]
        if not counted:
            return LeftOut(f"no annotation of {annotator}")
    if len(counted) > 1:
        known = list(dict.fromkeys(name for own in names for name in own))
        choices = " or ".join(spell("format", f"spans:annotator={name}") for name in known)
        problem = f"{where}: {format_count(len(counted), 'annotation')} of one task"
        raise InputError(problem, remedy=f"choose whose count: {choices}" if known else "keep one of each task")
    return [part for part in counted[0]["result"] if _is_span_result(part)]


def _list_annotators(annotation: Mapping[str, Any]) -> list[str]:
    """Return the names by which an annotation can be chosen: its annotator or model, and "ground_truth"."""
    person = annotation.get("completed_by", annotation.get("model_version"))
    if isinstance(person, dict):
        person = person.get("email", person.get("id"))
    return [*([] if person is None else [str(person)]), *(["ground_truth"] if annotation.get("ground_truth") else [])]


def _is_span_result(part: Any) -> bool:
    """Return whether a result of Label Studio is a span, and no relation, choice or rating."""
    value = part.get("value") if isinstance(part, dict) else None
    return not isinstance(part, dict) or part.get("type") == "labels" or (isinstance(value, dict) and "start" in value)


def iter_spans(value: Any, where: str, label: str = "") -> Iterator[Span]:
    """Yield the spans of a document.

    Parameters
    ----------
    value : object
        A list of spans; a list of such lists (one per sentence); an object of label to list; None.
    where : str
        File and place, for errors.
    label : str
        Label of spans without one.

    Examples
    --------
    >>> list(iter_spans([[0, 5, "LOC"], {"start": 7, "end": 9, "label": "PER"}], "x"))
    [('LOC', (0, 5)), ('PER', (7, 9))]
    >>> list(iter_spans({"LOC": [[0, 5]], "PER": {"Ann": [[7, 9]]}}, "x"))
    [('LOC', (0, 5)), ('PER', (7, 9))]
    """
    if isinstance(value, dict):
        for key, part in value.items():
            for inner in part.values() if isinstance(part, dict) else (part,):
                yield from iter_spans(inner, where, label=str(key))
        return
    if not isinstance(value, list | None):
        raise InputError(f"{where}: no list of spans, found {str(value)[:40]}")
    for element in value or ():
        if isinstance(element, dict) and isinstance(element.get("annotations"), list):  # a passage of BioC
            yield from iter_spans(element["annotations"], where, label)
        elif isinstance(element, list) and all(isinstance(part, list) for part in element):
            yield from iter_spans(element, where, label)
        else:
            yield parse_span(element, where, label)


def parse_span(element: Any, where: str, label: str = "") -> Span:
    """Return a span: text, an object, [start, end(, label)], [label, start, end], [[start, end], label]."""
    match element:
        case str():
            return label, element
        case dict():
            return _parse_object(element, where, label)
        case [list(fragments)]:
            return label, _parse_fragments(fragments, where)
        case [list(fragments), str(name)] | [str(name), list(fragments)]:
            return name, _parse_fragments(fragments, where)
        case [str(name), int() | float() as start, int() | float() as end, *_]:
            return name, _parse_offsets(start, end, where)
        case [int() | float() as start, int() | float() as end, *rest]:
            return str(rest[0]) if rest and rest[0] is not None else label, _parse_offsets(start, end, where)
    raise build_span_error(element, where)


def build_span_error(element: Any, where: str) -> InputError:
    """Return the error for something that is no span."""
    remedy = ""
    if isinstance(element, list) and all(isinstance(part, str) for part in element):
        remedy = f"; if it is a list of mentions of an entity, add {spell('format', 'spans:match=ceaf')}"
    expected = "a span: [start, end, label] or an object with start, end, label"
    return InputError(f"{where}: found {str(element)[:60]}, expected {expected}{remedy}")


def find_label_name(names: Sequence[str]) -> str | None:
    """Return the name of the label among fields of a span, None if there is none; raise ValueError for several."""
    known = [name for name in names if normalize_name(name) in LABEL_NAMES]
    first = [name for name in known if normalize_name(name) in {"label", "labels"}] or known
    if len(first) > 1:
        raise ValueError(f"{format_list(first)} may be the label.")
    return first[0] if first else None


def normalize_name(name: Any) -> str:
    """Return a name in lower case without underscores."""
    return str(name).lower().replace("_", "")


def _parse_object(element: Mapping[str, Any], where: str, label: str) -> Span:
    inner = element.get("value")  # of Label Studio, whose own `type` is that of its control
    given = {k: v for k, v in element.items() if k != "type"} | inner if isinstance(inner, dict) else element
    infons = given.get("infons")
    if isinstance(infons, dict):
        given = {**given, "type": infons.get("type", label)}
    try:
        name = find_label_name([key for key, value in given.items() if value is not None])
    except ValueError as error:
        raise InputError(f"{where}: {error} in {str(element)[:60]}") from None
    span_label = label if name is None else given[name]
    if isinstance(span_label, list):
        span_label = "+".join(map(str, span_label))
    fields = {normalize_name(key): value for key, value in given.items()}
    start, end = find_field(fields, START_NAMES), find_field(fields, END_NAMES)
    if start is None and "length" in fields and isinstance(fields.get("offset"), int):
        start, end = _parse_location(fields, where)
    if start is not None and end is not None:
        return str(span_label), _parse_offsets(start, end, where)
    if isinstance(locations := fields.get("locations"), list) and locations:
        return str(span_label), _parse_fragments([_parse_location(part, where) for part in locations], where)
    fragments = next((fields[key] for key in FRAGMENT_NAMES if isinstance(fields.get(key), list)), None)
    if fragments:
        return str(span_label), _parse_fragments(fragments, where)
    text = find_field(fields, TEXT_NAMES)
    if not isinstance(text, str) or start is not None or end is not None:
        raise build_span_error(element, where)
    return str(span_label), text


def find_field(fields: Mapping[str, Any], names: frozenset[str]) -> Any:
    """Return the value of the first field with one of some names, or None."""
    return next((value for name, value in fields.items() if name in names), None)


def _parse_location(location: Any, where: str) -> list[int]:
    """Return start and end of a location in BioC JSON, an offset and a length."""
    if not isinstance(location, dict) or "offset" not in location or "length" not in location:
        raise build_span_error(location, where)
    start = parse_offset(location["offset"], where)
    return [start, start + parse_offset(location["length"], where)]


def _parse_fragments(value: list[Any], where: str) -> SpanPosition:
    pairs = value if value and isinstance(value[0], list) else [value]
    if any(not isinstance(pair, list) or len(pair) != 2 for pair in pairs):
        raise build_span_error(value, where)
    fragments = tuple(sorted(_parse_offsets(start, end, where) for start, end in pairs))
    return fragments if len(fragments) > 1 else fragments[0]


def _parse_offsets(start: Any, end: Any, where: str) -> tuple[int, int]:
    first, last = parse_offset(start, where), parse_offset(end, where)
    if last < first:
        raise InputError(f"{where}: a span from {first} to {last} ends before it starts")
    return first, last


def parse_offset(value: Any, where: str) -> int:
    """Return an offset as a number; raise InputError for anything but a whole number of 0 or more."""
    if isinstance(value, str) and re.fullmatch(r"\s*\d+\s*", value):
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1 and value >= 0:
        return int(value)
    raise InputError(f"{where}: found {str(value)[:40]!r}, expected an offset, a whole number of 0 or more")


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
    """Return the text of a mention: a text, [text, offset] or an object with a text."""
    text = part[0] if isinstance(part, list) and part else part
    text = find_field(text, TEXT_NAMES) if isinstance(text, dict) else text
    if not isinstance(text, str):
        raise InputError(f"{where}: found {str(part)[:40]}, expected a mention: a text, or text and offset")
    return " ".join(normalize_words(text))
