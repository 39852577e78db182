"""Parsing one span from the forms that files use: [start, end, label], objects, or text alone."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from typing import Any

from sigdask.errors import InputError

START_NAMES = ("start", "start_offset", "start_char", "char_start", "startoffset", "start_index", "start_pos",
               "begin", "begin_offset", "begin_char", "beginoffset", "off0")  # fmt: skip
END_NAMES = ("end", "end_offset", "end_char", "char_end", "endoffset", "end_index", "end_pos", "stop",
             "off1")  # fmt: skip
LABEL_NAMES = ("label", "labels", "type", "entity_type", "entity_group", "entity_label", "ner_label", "entity", "tag",
               "category", "class", "mark", "role")  # fmt: skip
TEXT_NAMES = ("text", "surface", "word", "mention", "name", "span", "term", "string", "phrase")
FRAGMENT_NAMES = ("offsets", "fragments", "spans", "span", "indices", "position", "positions", "offset")

NESTED_NAMES = ("annotations", "result")
"""Of what holds spans within a list: passages of BioC, annotations of Label Studio."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)

SpanPosition = tuple[Any, ...] | str
Span = tuple[str, SpanPosition]
"""Label and place; the place is (start, end), a tuple of such pairs, or a text without offsets."""

Entities = dict[str, tuple[frozenset[str], ...]]
"""Slot to entities, each the set of its mentions."""


def iter_spans(value: Any, where: str, label: str = "") -> Iterator[Span]:
    """Yield the spans of a document.

    Parameters
    ----------
    value : object
        A list of spans; a list of such lists (one a sentence); an object of label to list; None.
    where : str
        File and place, for errors.
    label : str
        Of spans that have none of their own.

    Examples
    --------
    >>> list(iter_spans([[0, 5, "LOC"], {"start": 7, "end": 9, "label": "PER"}], "x"))
    [('LOC', (0, 5)), ('PER', (7, 9))]
    >>> list(iter_spans({"LOC": [[0, 5]], "PER": {"Ann": [[7, 9]]}}, "x"))
    [('LOC', (0, 5)), ('PER', (7, 9))]
    """
    if value is None:
        return
    if isinstance(value, dict):
        for key, part in value.items():
            for inner in part.values() if isinstance(part, dict) else (part,):
                yield from iter_spans(inner, where, label=str(key))
        return
    if not isinstance(value, list):
        raise InputError(f"{where}: found {str(value)[:40]}, expected a list of spans")
    for element in value:
        if isinstance(element, dict) and (nested := _get_nested_spans(element)) is not None:
            yield from iter_spans(nested, where, label)
        elif isinstance(element, list) and all(isinstance(part, list) for part in element):
            yield from iter_spans(element, where, label)
        else:
            yield _parse_span(element, where, label)


def _get_nested_spans(element: dict[str, Any]) -> list[Any] | None:
    """Return the list of spans that an object contains, or None."""
    inner = next((element[name] for name in NESTED_NAMES if name in element), None)
    return inner if isinstance(inner, list) else None


def parse_row_span(record: Mapping[str, str], where: str) -> list[Any]:
    """Return the span of a table row as a list of one [offsets, label], or an empty list if the row has no offsets."""
    cells = {name.lower(): text for name, text in record.items()}
    start, end = (next(cells[n] for n in names if n in cells) for names in (START_NAMES, END_NAMES))
    if not start and not end:
        return []
    label = next((cells[name] for name in LABEL_NAMES if name in cells), "")
    return [[[_parse_offset(start, where), _parse_offset(end, where)], label]]


def has_entities(value: Any) -> bool:
    """Return whether a document's value maps slots to entities, each a list of mentions.

    Examples
    --------
    >>> has_entities({"Victim": [["a man", "he"]]}), has_entities({"LOC": [[0, 5]]}), has_entities([[0, 5]])
    (True, False, False)
    """
    if not isinstance(value, dict):
        return False
    entities = (entity for part in value.values() if isinstance(part, list) for entity in part)
    return any(isinstance(entity, list) and entity and _get_mention_text(entity[0]) is not None for entity in entities)


def parse_entities(value: Any, where: str, label_map: Mapping[str, str]) -> Entities:
    """Return the entities of each slot; mentions lose case, punctuation and articles.

    Examples
    --------
    >>> parse_entities({"Victim": [[["The Priests", 12], ["priests", 40]]]}, "x", {})
    {'Victim': (frozenset({'priests'}),)}
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{where}: found {str(value)[:40]}, expected an object of slot to list of entities")
    slots: Entities = {}
    for slot, entities in value.items():
        name = label_map.get(str(slot), str(slot))
        if not isinstance(entities, list | None):
            raise InputError(f"{where}, {slot!r}: found {str(entities)[:40]}, expected a list of entities")
        slots[name] = slots.get(name, ()) + tuple(
            _parse_entity(entity, f"{where}, {slot!r}") for entity in entities or [] if entity
        )
    return slots


def _parse_entity(entity: Any, where: str) -> frozenset[str]:
    mentions = []
    for part in entity if isinstance(entity, list) else [entity]:
        mention = _get_mention_text(part)
        if mention is None:
            raise InputError(f"{where}: found {str(part)[:40]}, expected a mention: a text, or text and offset")
        mentions.append(normalize_mention(mention))
    return frozenset(mentions)


def _get_mention_text(part: Any) -> str | None:
    """Return the text of a mention: a text, [text, offset] or an object with a text."""
    if isinstance(part, list) and part:
        part = part[0]
    if isinstance(part, dict):
        part = next((part[name] for name in TEXT_NAMES if name in part), None)
    return part if isinstance(part, str) else None


def normalize_mention(text: str) -> str:
    """Return a mention without case, punctuation and articles, as the scorer of MUC-4 compares mentions.

    Examples
    --------
    >>> normalize_mention("The  F.M.L.N. guerrillas")
    'fmln guerrillas'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _parse_span(element: Any, where: str, label: str) -> Span:
    if isinstance(element, str):
        return label, element
    if isinstance(element, dict):
        return _parse_object(element, where, label)
    if isinstance(element, list) and element:
        return _parse_list(element, where, label)
    raise _span_error(element, where)


def _parse_object(element: Mapping[str, Any], where: str, label: str) -> Span:
    inner = element.get("value")
    fields = {**element, **inner} if isinstance(inner, dict) else element
    lowered = {str(name).lower(): value for name, value in fields.items()}
    span_label = next((lowered[name] for name in LABEL_NAMES if lowered.get(name) is not None), label)
    if isinstance(span_label, list):
        span_label = span_label[0] if len(span_label) == 1 else "+".join(map(str, span_label))
    start, end = (next((lowered[n] for n in names if n in lowered), None) for names in (START_NAMES, END_NAMES))
    if start is not None and end is not None:
        return str(span_label), _parse_offsets(start, end, where)
    if isinstance(lowered.get("locations"), list) and lowered["locations"]:
        return _parse_bioc(lowered, where, label)
    for name in FRAGMENT_NAMES:
        if isinstance(lowered.get(name), list) and lowered[name]:
            return str(span_label), _parse_fragments(lowered[name], where)
    text = next((lowered[name] for name in TEXT_NAMES if isinstance(lowered.get(name), str)), None)
    if text is None or start is not None or end is not None:
        raise _span_error(element, where)
    return str(span_label), text


def _parse_bioc(fields: Mapping[str, Any], where: str, label: str) -> Span:
    """Parse an annotation of BioC JSON: locations with offset and length, and a type in its infons."""
    infons = fields.get("infons")
    span_label = infons.get("type", label) if isinstance(infons, dict) else label
    pairs = []
    for location in fields["locations"]:
        if not isinstance(location, dict) or "offset" not in location or "length" not in location:
            raise _span_error(location, where)
        start = _parse_offset(location["offset"], where)
        pairs.append([start, start + _parse_offset(location["length"], where)])
    return str(span_label), _parse_fragments(pairs, where)


def _parse_list(element: list[Any], where: str, label: str) -> Span:
    """Parse [start, end(, label)], [label, start, end], [[start, end], label] or [text, label]."""
    if isinstance(element[0], list):
        return str(element[1]) if len(element) > 1 else label, _parse_fragments(element[0], where)
    if not isinstance(element[0], str):
        if len(element) < 2:
            raise _span_error(element, where)
        span_label = element[2] if len(element) > 2 and element[2] is not None else label
        return str(span_label), _parse_offsets(element[0], element[1], where)
    if len(element) == 2 and isinstance(element[1], list):
        return element[0], _parse_fragments(element[1], where)
    if len(element) == 2 and isinstance(element[1], str):
        return element[1], element[0]
    if len(element) < 3:
        raise _span_error(element, where)
    if all(isinstance(part, str) for part in element[:3]):
        return element[2], _parse_offsets(element[0], element[1], where)
    return element[0], _parse_offsets(element[1], element[2], where)


def _parse_fragments(value: list[Any], where: str) -> SpanPosition:
    pairs = value if value and isinstance(value[0], list) else [value]
    if any(not isinstance(pair, list) or len(pair) != 2 for pair in pairs):
        raise _span_error(value, where)
    fragments = tuple(sorted(_parse_offsets(start, end, where) for start, end in pairs))
    return fragments if len(fragments) > 1 else fragments[0]


def _parse_offsets(start: Any, end: Any, where: str) -> tuple[int, int]:
    if type(start) is int and type(end) is int and 0 <= start <= end:
        return start, end
    first, last = _parse_offset(start, where), _parse_offset(end, where)
    if last < first:
        raise InputError(f"{where}: a span from {first} to {last} ends before it starts")
    return first, last


def _parse_offset(value: Any, where: str) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*\d+\s*", value):
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1 and value >= 0:
        return int(value)
    raise InputError(f"{where}: found {str(value)[:40]!r}, expected an offset, a whole number of 0 or more")


def _span_error(element: Any, where: str) -> InputError:
    return InputError(
        f"{where}: found {str(element)[:60]}, expected a span: [start, end, label] or an object with start, end, label"
    )
