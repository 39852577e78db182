"""Relations between labelled spans: lines R, * and E of brat, and lists of relations in JSON.

A relation is its type and its two arguments, each with the type and offsets of a span, so ids may differ from those of
the gold file. Roles of arguments are names, as in brat: their order in a line has no meaning. The arguments of an event
are relations from its trigger, with the role as their type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.files import enumerate_lines
from sigdask.formats.reading.json_records import read_records
from sigdask.formats.reading.listings import FileListing
from sigdask.metrics.labels import RELATION_MATCHES

SpanPosition = tuple[Any, ...] | str
Span = tuple[str, SpanPosition]
"""Label and place. The place is (start, end), a tuple of such pairs, or a text without offsets."""

ParseSpan = Callable[[Any, str], Span]
"""Function from the JSON of a span, and its file and place, to the span."""

Relation = tuple[Any, ...]
"""Type, first and second argument, and both roles if they differ from Arg1 and Arg2."""

RelationSets = dict[str, frozenset[Any]]
"""Distinct relations of a document, by how arguments are matched ("strict", "boundaries")."""

SPAN_LINE = re.compile(r"(T[^\t]*)\t(\S+) (\d+ \d+(?:;\d+ \d+)*)(?:\t|$)")
ARGUMENT = re.compile(r"(\S+?):(\S+)")
EQUIVALENCE = "*"
DEFAULT_ROLES = ("Arg1", "Arg2")

RELATION_KEYS = ("relations", "relation", "rels", "triples")
GOLD_RELATION_KEYS = ("gold_relations", "relations_gold")
PREDICTED_RELATION_KEYS = ("predicted_relations", "pred_relations", "relations_pred")
"""Keys of relations in JSON records. The last two stand in records that hold gold and predicted relations."""

DOCRED_KEYS = ("vertexSet", "h_idx")
"""Of a gold document, and of a predicted fact."""

HEAD_NAMES = ("head_span", "head", "arg1", "subject", "subj", "h", "source", "from", "from_id", "head_id")
TAIL_NAMES = ("child_span", "tail", "arg2", "object", "obj", "t", "target", "to", "to_id", "tail_id")
TYPE_NAMES = ("type", "label", "relation", "relation_type", "predicate", "rel", "name")


def parse_ann_span(line: str, where: str) -> tuple[str, list[Any]]:
    """Return the id of a T line of brat, and its span as [fragments, label]."""
    match = SPAN_LINE.match(line.rstrip("\r\n"))
    if match is None:
        raise InputError(f"{where}: found {line.strip()[:40]!r}, expected T1<tab>LABEL START END<tab>text")
    return match[1], [[[int(offset) for offset in part.split(" ")] for part in match[3].split(";")], match[2]]


def read_ann_relations(path: Path, parse: ParseSpan, given: Path | None = None) -> list[Relation]:
    """Return the relations of a brat file, in the order of its lines.

    Parameters
    ----------
    path : Path
        The file.
    parse : callable
        Reads a span.
    given : Path, optional
        A file with spans that the relations may name. BioNLP's tasks have entities in `.a1` and events in `.a2`. Their
        lines `*` are other names of an entity and no relations.

    Raises
    ------
    InputError
        A line has another form, an id is repeated, or an argument is not in the file. The message names the line.
    """
    spans: dict[str, Span] = {}
    triggers: dict[str, str] = {}
    links: list[tuple[str, ...]] = []  # where, type, ids of the arguments, roles
    lines = [(file, *numbered) for file in (given, path) if file is not None for numbered in enumerate_lines(file)]
    for file, number, line in lines:
        where = f"{file}, line {number}"
        if line.startswith("T"):
            name, span = parse_ann_span(line, where)
            if name in spans:
                raise InputError(f"{where}: the id {name} occurs twice", remedy="give each relation its own id")
            spans[name] = parse(span, where)
        elif line[:1] in {"R", "E"} or (line[:1] == EQUIVALENCE and path.suffix == ".ann"):
            links += _parse_links(line, where, triggers)
    return [
        (label, *(_find_span(name, spans, triggers, where) for name in names[:2]), *names[2:])
        for where, label, *names in links
    ]


def _parse_links(line: str, where: str, triggers: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield the relations of a line, with arguments in the order of their roles; remember the trigger of an event."""
    name, _, rest = line.strip().partition("\t")
    label, *words = rest.split() or [""]
    arguments = [match.groups() for word in words if (match := ARGUMENT.fullmatch(word)) is not None]
    if name == EQUIVALENCE and len(words) > 1:
        pairs = ((a, b) for k, a in enumerate(words) for b in words[k + 1 :])
        yield from ((where, f"{EQUIVALENCE}{label}", a, b) for a, b in pairs)
    elif name[0] == "R" and len(words) == len(arguments) == 2:
        roles, ids = zip(*sorted(arguments), strict=True)
        yield where, label, *ids, *(roles if roles != DEFAULT_ROLES else ())
    elif name[0] == "E" and len(words) == len(arguments) and (head := ARGUMENT.fullmatch(label)):
        triggers[name] = head[2]
        yield from ((where, role.rstrip("0123456789") or role, name, argument) for role, argument in arguments)
    else:
        form = {"R": "R1<tab>TYPE Arg1:T1 Arg2:T2", "E": "E1<tab>TYPE:T1 ROLE:T2"}.get(name[:1], "*<tab>TYPE T1 T2")
        raise InputError(f"{where}: found {line.strip()[:60]!r}, expected {form}")


def _find_span(name: str, spans: Mapping[str, Span], triggers: Mapping[str, str], where: str) -> Span:
    """Return the span of a T id, or of an event's trigger."""
    span = spans.get(triggers.get(name, name))
    if span is None:
        raise InputError(
            f"{where}: a relation names {triggers.get(name, name)}, but the file has no line "
            f"{triggers.get(name, name)} with this entity"
        )
    return span


def read_docred(path: Path, *, has_documents: bool) -> FileListing:
    """Return the facts of each document of DocRED: functions that return them."""
    listing = FileListing(path, {}, {}, complete=has_documents)
    facts: dict[str, list[Any]] = {}
    for record in read_records(path, lambda value: not value.keys().isdisjoint(DOCRED_KEYS)):
        where = f"{path}, {record.place}"
        found = get_docred_facts(record.value, where) if isinstance(record.value, dict) else None
        if found is None or "title" not in record.value:
            raise InputError(
                f"{where}: expected objects of DocRED: gold documents of title, vertexSet and labels, or predicted "
                "facts of title, h_idx, t_idx and r"
            )
        title = str(record.value["title"])
        if listing.complete or title not in facts:
            facts[title] = []
            listing.add(title, lambda _where, found=facts[title]: found, record.place)
        facts[title] += found
    return listing


def get_docred_facts(record: Mapping[str, Any], where: str) -> list[Relation] | None:
    """Return the facts of a record of DocRED, a gold document or one predicted fact; None for other records.

    Entities are numbers of the document's list, so that types and offsets of their mentions do not count.

    Examples
    --------
    >>> get_docred_facts({"title": "A", "h_idx": 0, "t_idx": 2, "r": "P17"}, "x")
    [('P17', ('', (0,)), ('', (2,)))]
    """
    if "h_idx" in record:
        facts, names, n_entities = [record], ("r", "h_idx", "t_idx"), math.inf
    elif "vertexSet" in record and isinstance(record.get("labels"), list):
        facts, names, n_entities = record["labels"], ("r", "h", "t"), len(record["vertexSet"])
    else:
        return None
    relations: list[Relation] = []
    for fact in facts:
        label, *ends = (fact.get(name) if isinstance(fact, dict) else None for name in names)
        if not isinstance(label, str) or not all(type(k) is int and 0 <= k < n_entities for k in ends):
            raise InputError(
                f"{where}: found {str(fact)[:60]}, expected a fact: an object of {', '.join(names)}, a relation and "
                "two entities of the document by their numbers from 0"
            )
        relations.append((label, *(("", (k,)) for k in ends)))
    return relations


def iter_json_relations(value: Any, entities: Sequence[Any], parse: ParseSpan, where: str) -> Iterator[Relation]:
    """Yield the relations of a record: objects of head, tail and type, [head, tail, type], or four offsets and a type.

    Parameters
    ----------
    value : object
        The list of relations, or one list for each sentence.
    entities : sequence of object
        The record's entities, which heads and tails name by index or id.
    parse : callable
        Reads a span.
    where : str
        File and place, for errors.

    Examples
    --------
    >>> parse = lambda span, where: (span[2], (span[0], span[1]))
    >>> list(iter_json_relations([{"head": 0, "tail": [4, 6, "ORG"], "type": "at"}], [[0, 2, "PER"]], parse, "x"))
    [('at', ('PER', (0, 2)), ('ORG', (4, 6)))]
    """
    if not isinstance(value, list | None):
        raise InputError(f"{where}: found {str(value)[:40]}, expected a list of relations")
    all_parts: list[list[Any]] = []
    for element in value or ():
        if isinstance(element, list) and all(isinstance(part, list) for part in element):
            yield from iter_json_relations(element, entities, parse, where)
            continue
        if isinstance(element, dict):
            fields = {str(name).lower(): part for name, part in element.items()}
            names = [next((n for n in group if n in fields), "") for group in (HEAD_NAMES, TAIL_NAMES, TYPE_NAMES)]
            parts = [fields.get(name) for name in names]
        elif isinstance(element, list) and len(element) >= 5 and all(type(part) is int for part in element[:4]):
            parts = [element[:2], element[2:4], element[4]]
        else:
            parts = element if isinstance(element, list) and len(element) == 3 else [None]
        if any(part is None for part in parts):
            raise InputError(
                f"{where}: found {str(element)[:60]}, expected a relation: an object with head, tail and type"
            )
        all_parts.append(parts)
    named = _name_entities(entities, [part for parts in all_parts for part in parts[:2]])
    for head, tail, label in all_parts:
        yield str(label), *(_find_argument(part, entities, named, parse, where) for part in (head, tail))


def _name_entities(entities: Sequence[Any], references: Sequence[Any]) -> dict[Any, Any]:
    """Return entities by id if all references are ids, otherwise by index or, for references that are none, by id."""
    ids: dict[Any, Any] = {str(e["id"]): e for e in entities if isinstance(e, dict) and "id" in e}
    if all(isinstance(part, list | dict) or str(part) in ids for part in references):
        return ids
    return ids | dict(enumerate(entities))


def _find_argument(part: Any, entities: Sequence[Any], named: Mapping[Any, Any], parse: ParseSpan, where: str) -> Span:
    """Return the span that a head or tail names by index or id, or is itself."""
    if isinstance(part, list | dict):
        label, position = parse(part, where)
        if not label:  # only offsets: the type is that of the entity there
            spans = (parse(entity, where) for entity in entities)
            label = next((name for name, place in spans if place == position), "")
        return label, position
    entity = named.get(part, named.get(str(part)))
    if entity is None:
        raise InputError(f"{where}: a relation names entity {part!r}, which is not among its {len(entities)} entities")
    return parse(entity, where)


def collect_relations(
    relations: Iterator[Relation] | Sequence[Relation], label_map: Mapping[str, str], symmetric: Sequence[str]
) -> RelationSets:
    """Return the distinct relations of a document, by how their arguments are matched.

    Parameters
    ----------
    relations : iterable of Relation
        Relations. Those of brat's lines `*` have a type that begins with it.
    label_map : mapping of str to str
        Types that are read as others.
    symmetric : sequence of str
        Types whose arguments have no order.
    """
    sets: dict[str, set[Any]] = {match: set() for match in RELATION_MATCHES}
    for label, first, second, *roles in relations:
        name = label.removeprefix(EQUIVALENCE)
        mapped = [(label_map.get(kind, kind), position) for kind, position in (first, second)]
        has_order = name == label and name not in symmetric and len(set(roles)) != 1
        for match, found in sets.items():
            arguments: list[Any] = mapped if match == "strict" else [position for _, position in mapped]
            if not has_order:
                arguments = sorted(arguments, key=repr)
            found.add((label_map.get(name, name), *arguments, *(roles if has_order else ())))
    return {match: frozenset(found) for match, found in sets.items()}


def get_relation_name(relation: tuple[Any, ...]) -> str:
    """Return the type of a relation with the roles of its arguments.

    Examples
    --------
    >>> get_relation_name(("at", "x", "y")), get_relation_name(("at", "x", "y", "Person", "Place"))
    ('at(Arg1, Arg2)', 'at(Person, Place)')
    """
    label, _, _, *roles = relation
    return f"{label}({', '.join(roles or DEFAULT_ROLES)})"
