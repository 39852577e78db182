"""One span in the forms that files give it: [start, end, label], objects of many names, text alone."""

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

Place = tuple[Any, ...] | str
Span = tuple[str, Place]
"""Label and place; the place is (start, end), a tuple of such pairs, or a text without offsets."""

Entities = dict[str, tuple[frozenset[str], ...]]
"""Slot to entities, each the set of its mentions."""


def spans_of(value: Any, where: str, label: str = "") -> Iterator[Span]:
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
    >>> list(spans_of([[0, 5, "LOC"], {"start": 7, "end": 9, "label": "PER"}], "x"))
    [('LOC', (0, 5)), ('PER', (7, 9))]
    >>> list(spans_of({"LOC": [[0, 5]], "PER": {"Ann": [[7, 9]]}}, "x"))
    [('LOC', (0, 5)), ('PER', (7, 9))]
    """
    if value is None:
        return
    if isinstance(value, dict):
        for key, part in value.items():
            for inner in part.values() if isinstance(part, dict) else (part,):
                yield from spans_of(inner, where, label=str(key))
        return
    if not isinstance(value, list):
        raise InputError(f"{where}: found {str(value)[:40]}, expected a list of spans")
    for element in value:
        if isinstance(element, dict) and (nested := _nested(element)) is not None:
            yield from spans_of(nested, where, label)
        elif isinstance(element, list) and all(isinstance(part, list) for part in element):
            yield from spans_of(element, where, label)
        else:
            yield _span(element, where, label)


def _nested(element: dict[str, Any]) -> list[Any] | None:
    """Return the list of spans that an object holds, if it does."""
    inner = next((element[name] for name in NESTED_NAMES if name in element), None)
    return inner if isinstance(inner, list) else None


def span_of_row(record: Mapping[str, str], where: str) -> list[Any]:
    """Return the span of a table's row, in a list; an empty one where the row has no offsets."""
    cells = {name.lower(): text for name, text in record.items()}
    start, end = (next(cells[n] for n in names if n in cells) for names in (START_NAMES, END_NAMES))
    if not start and not end:
        return []
    label = next((cells[name] for name in LABEL_NAMES if name in cells), "")
    return [[[_offset(start, where), _offset(end, where)], label]]


def holds_entities(value: Any) -> bool:
    """Whether a document's value is slot to entities, each a list of mentions.

    Examples
    --------
    >>> holds_entities({"Victim": [["a man", "he"]]}), holds_entities({"LOC": [[0, 5]]}), holds_entities([[0, 5]])
    (True, False, False)
    """
    if not isinstance(value, dict):
        return False
    entities = (entity for part in value.values() if isinstance(part, list) for entity in part)
    return any(isinstance(entity, list) and entity and _mention(entity[0]) is not None for entity in entities)


def entities_of(value: Any, where: str, mapped: Mapping[str, str]) -> Entities:
    """Return slot to entities; mentions without case, punctuation and articles.

    Examples
    --------
    >>> entities_of({"Victim": [[["The Priests", 12], ["priests", 40]]]}, "x", {})
    {'Victim': (frozenset({'priests'}),)}
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{where}: found {str(value)[:40]}, expected an object of slot to list of entities")
    slots: Entities = {}
    for slot, listed in value.items():
        name = mapped.get(str(slot), str(slot))
        if not isinstance(listed, list | None):
            raise InputError(f"{where}, {slot!r}: found {str(listed)[:40]}, expected a list of entities")
        slots[name] = slots.get(name, ()) + tuple(
            _entity(entity, f"{where}, {slot!r}") for entity in listed or [] if entity
        )
    return slots


def _entity(entity: Any, where: str) -> frozenset[str]:
    mentions = []
    for part in entity if isinstance(entity, list) else [entity]:
        mention = _mention(part)
        if mention is None:
            raise InputError(f"{where}: found {str(part)[:40]}, expected a mention: a text, or text and offset")
        mentions.append(normal_mention(mention))
    return frozenset(mentions)


def _mention(part: Any) -> str | None:
    """Return the text of a mention: a text, [text, offset] or an object with a text."""
    if isinstance(part, list) and part:
        part = part[0]
    if isinstance(part, dict):
        part = next((part[name] for name in TEXT_NAMES if name in part), None)
    return part if isinstance(part, str) else None


def normal_mention(text: str) -> str:
    """Return a mention as the scorer of MUC-4 entities compares it.

    Examples
    --------
    >>> normal_mention("The  F.M.L.N. guerrillas")
    'fmln guerrillas'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _span(element: Any, where: str, label: str) -> Span:
    if isinstance(element, str):
        return label, element
    if isinstance(element, dict):
        return _of_object(element, where, label)
    if isinstance(element, list) and element:
        return _of_list(element, where, label)
    raise _not_a_span(element, where)


def _of_object(element: Mapping[str, Any], where: str, label: str) -> Span:
    inner = element.get("value")
    fields = {**element, **inner} if isinstance(inner, dict) else element
    lowered = {str(name).lower(): value for name, value in fields.items()}
    own = next((lowered[name] for name in LABEL_NAMES if lowered.get(name) is not None), label)
    if isinstance(own, list):
        own = own[0] if len(own) == 1 else "+".join(map(str, own))
    start, end = (next((lowered[n] for n in names if n in lowered), None) for names in (START_NAMES, END_NAMES))
    if start is not None and end is not None:
        return str(own), _pair(start, end, where)
    if isinstance(lowered.get("locations"), list) and lowered["locations"]:
        return _of_bioc(lowered, where, label)
    for name in FRAGMENT_NAMES:
        if isinstance(lowered.get(name), list) and lowered[name]:
            return str(own), _fragments(lowered[name], where)
    text = next((lowered[name] for name in TEXT_NAMES if isinstance(lowered.get(name), str)), None)
    if text is None or start is not None or end is not None:
        raise _not_a_span(element, where)
    return str(own), text


def _of_bioc(fields: Mapping[str, Any], where: str, label: str) -> Span:
    """Read an annotation of BioC JSON: locations of offset and length, the type among its infons."""
    infons = fields.get("infons")
    own = infons.get("type", label) if isinstance(infons, dict) else label
    pairs = []
    for part in fields["locations"]:
        if not isinstance(part, dict) or "offset" not in part or "length" not in part:
            raise _not_a_span(part, where)
        first = _offset(part["offset"], where)
        pairs.append([first, first + _offset(part["length"], where)])
    return str(own), _fragments(pairs, where)


def _of_list(element: list[Any], where: str, label: str) -> Span:
    """Read [start, end], [start, end, label], [label, start, end], [[start, end], label], [text, label]."""
    if isinstance(element[0], list):
        return str(element[1]) if len(element) > 1 else label, _fragments(element[0], where)
    if not isinstance(element[0], str):
        if len(element) < 2:
            raise _not_a_span(element, where)
        own = element[2] if len(element) > 2 and element[2] is not None else label
        return str(own), _pair(element[0], element[1], where)
    if len(element) == 2 and isinstance(element[1], list):
        return element[0], _fragments(element[1], where)
    if len(element) == 2 and isinstance(element[1], str):
        return element[1], element[0]
    if len(element) < 3:
        raise _not_a_span(element, where)
    if all(isinstance(part, str) for part in element[:3]):
        return element[2], _pair(element[0], element[1], where)
    return element[0], _pair(element[1], element[2], where)


def _fragments(value: list[Any], where: str) -> Place:
    pairs = value if value and isinstance(value[0], list) else [value]
    if any(not isinstance(pair, list) or len(pair) != 2 for pair in pairs):
        raise _not_a_span(value, where)
    fragments = tuple(sorted(_pair(start, end, where) for start, end in pairs))
    return fragments if len(fragments) > 1 else fragments[0]


def _pair(start: Any, end: Any, where: str) -> tuple[int, int]:
    if type(start) is int and type(end) is int and 0 <= start <= end:
        return start, end
    first, last = _offset(start, where), _offset(end, where)
    if last < first:
        raise InputError(f"{where}: a span from {first} to {last} ends before it starts")
    return first, last


def _offset(value: Any, where: str) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*\d+\s*", value):
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1 and value >= 0:
        return int(value)
    raise InputError(f"{where}: found {str(value)[:40]!r}, expected an offset, a whole number of 0 or more")


def _not_a_span(element: Any, where: str) -> InputError:
    return InputError(
        f"{where}: found {str(element)[:60]}, expected a span: [start, end, label] or an object with start, end, label"
    )
