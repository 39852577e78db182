"""Relations between labelled spans: lines R of brat, and lists of relations in JSON.

A relation is its type and its two arguments, each with the type and offsets of a span, so ids may differ from those of
the gold file. Roles of arguments are names, as in brat: their order in a line has no meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.files import enumerate_lines
from sigdask.formats.spans.layouts import Span, parse_span
from sigdask.metrics.labels import RELATION_MATCHES

Relation = tuple[Any, ...]
"""Type, first and second argument, and both roles if they differ from Arg1 and Arg2."""

RelationSets = dict[str, frozenset[Any]]
"""Distinct relations of a document, by how arguments are matched ("strict", "boundaries")."""

SPAN_LINE = re.compile(r"(T[^\t]*)\t(\S+) (\d{1,18} \d{1,18}(?:;\d{1,18} \d{1,18})*)(?:\t|$)")
RELATION_LINE = re.compile(r"R[^\t]*\t(\S+) +(\S+?):(\S+) +(\S+?):(\S+)")
DEFAULT_ROLES = ("Arg1", "Arg2")

RELATION_KEYS = {"gold": ("gold_relations", "relations"), "prediction": ("predicted_relations", "relations")}
"""Keys of relations by the role of the file. Records may hold gold and predicted relations."""

FIELD_NAMES = (
    ("head", "arg1", "subject", "from_id"),
    ("tail", "arg2", "object", "to_id"),
    ("type", "label", "relation", "predicate"),
)
"""Names of a relation's first and second argument and type."""


def read_ann(path: Path) -> tuple[list[Span], list[Relation]]:
    """Return the spans and relations of a brat file; its other lines are never scored.

    Raises
    ------
    InputError
        A line has another form, an id is repeated, or an argument is not in the file. The message names the line.
    """
    spans: dict[str, Span] = {}
    links: list[tuple[str, re.Match[str]]] = []
    for number, text in enumerate_lines(path):
        where, line = f"{path}, line {number}", text.rstrip()
        if line[:1] == "R":
            if (match := RELATION_LINE.fullmatch(line)) is None:
                raise InputError(f"{where}: found {line[:60]!r}, expected R1<tab>TYPE Arg1:T1 Arg2:T2")
            links.append((where, match))
        elif line[:1] == "T":
            if (match := SPAN_LINE.match(line)) is None:
                raise InputError(f"{where}: found {line[:60]!r}, expected T1<tab>LABEL START END<tab>text")
            if match[1] in spans:
                raise InputError(f"{where}: the id {match[1]} occurs twice", remedy="give each span its own id")
            pairs = sorted(tuple(map(int, part.split(" "))) for part in match[3].split(";"))
            spans[match[1]] = match[2], tuple(pairs) if len(pairs) > 1 else pairs[0]
    return list(spans.values()), [_resolve_link(*link, spans) for link in links]


def _resolve_link(where: str, match: re.Match[str], spans: Mapping[str, Span]) -> Relation:
    """Return the relation of a line R, with arguments in the order of their roles."""
    roles, ids = zip(*sorted([(match[2], match[3]), (match[4], match[5])]), strict=True)
    for name in ids:
        if name not in spans:
            raise InputError(f"{where}: a relation names {name}, but the file has no line {name} with this entity")
    return match[1], *(spans[name] for name in ids), *(roles if roles != DEFAULT_ROLES else ())


def parse_relations(value: Any, entities: Sequence[Any], where: str) -> list[Relation]:
    """Return the relations of a record: objects of head, tail and type.

    Parameters
    ----------
    value : object
        The list of relations.
    entities : sequence of object
        The record's entities, which heads and tails name by index or id.
    where : str
        File and place, for errors.

    Examples
    --------
    >>> parse_relations([{"head": 0, "tail": [4, 6, "ORG"], "type": "at"}], [[0, 2, "PER"]], "x")
    [('at', ('PER', (0, 2)), ('ORG', (4, 6)))]
    """
    if not isinstance(value, list | tuple | None) or not isinstance(entities, list | tuple):
        raise InputError(f"{where}: found {str(value)[:40]}, expected a list of relations, and one of entities")
    ids = {str(entity["id"]): entity for entity in entities if isinstance(entity, dict) and "id" in entity}
    by_name = ids or {str(k): entity for k, entity in enumerate(entities)}
    types = {position: kind for kind, position in (parse_span(entity, where) for entity in entities)}
    relations: list[Relation] = []
    for element in value or ():
        if isinstance(element, tuple):  # of brat
            relations.append(element)
            continue
        fields = element if isinstance(element, dict) else {}
        head, tail, label = (next((fields[n] for n in names if n in fields), None) for names in FIELD_NAMES)
        if head is None or tail is None or label is None:
            raise InputError(
                f"{where}: found {str(element)[:60]}, expected a relation: an object with head, tail and type"
            )
        arguments = [part if isinstance(part, list | dict) else by_name.get(str(part)) for part in (head, tail)]
        if None in arguments:
            missing = (head, tail)[arguments.index(None)]
            raise InputError(
                f"{where}: a relation names entity {missing!r}, which is not among its {len(entities)} entities"
            )
        spans = [parse_span(part, where) for part in arguments]
        # an argument of offsets alone has the type of the entity there
        relations.append((str(label), *((kind or types.get(position, ""), position) for kind, position in spans)))
    return relations


def collect_relations(relations: Sequence[Relation], label_map: Mapping[str, str]) -> RelationSets:
    """Return the distinct relations of a document, by how their arguments are matched.

    Arguments of the same role have no order.
    """
    sets: dict[str, set[Any]] = {match: set() for match in RELATION_MATCHES}
    for label, first, second, *roles in relations:
        mapped = [(label_map.get(kind, kind), position) for kind, position in (first, second)]
        has_order = len(set(roles)) != 1
        for match, found in sets.items():
            arguments: list[Any] = mapped if match == "strict" else [position for _, position in mapped]
            arguments = arguments if has_order else sorted(arguments, key=repr)
            found.add((label_map.get(label, label), *arguments, *(roles if has_order else ())))
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
