"""Labelled spans of documents and relations between them: JSON, brat folders, tables of offsets; and filled slots.

A span is right if a gold span has the same offsets and label (exact match). If labels are slots that are filled by
entities, which are lists of alternative mentions, entities are matched one to one within document and slot (CEAF, Luo
2005; strict as in GRIT, Du et al. 2021), and the matches are summed. MUC's templates are such data.

Declared layouts of span annotations: which key of a JSON record holds the spans, and how a span is written.

A span is [start, end, label] or an object. A file whose keys fit no layout, or two of them, is refused: the values do
not decide.

Counts of list elements that match the gold standard: exactly, or one to one as entities do.

Relations between labelled spans: lines R of brat, and lists of relations in JSON.

A relation is its type and its two arguments, each with the type and offsets of a span, so ids may differ from those of
the gold file. Roles of arguments are names, as in brat: their order in a line has no meaning.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import Array, MatchFields, to_object_array
from sigdask.counts.texts import Codes, ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading import listings
from sigdask.formats.reading.alignment import check_types
from sigdask.formats.reading.files import enumerate_lines, read_head
from sigdask.formats.reading.json_records import JsonRecord, find_id_keys, get_id_parts, iter_records
from sigdask.formats.reading.listings import AlignedListings, FileListing, LeftOut, normalize_words
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.signatures import BRAT, END_NAMES, START_NAMES, find_offsets, is_brat, normalize_name
from sigdask.interface import spell
from sigdask.metrics.labels import RELATION_MATCHES
from sigdask.text import format_count, format_list

SPAN_KEYS = ("spans", "entities", "ents", "annotations", "extracts", "label", "labels")
"""Keys of spans: Prodigy, doccano and spaCy's training data, spaCy's Doc.to_json, Label Studio, MUC, doccano."""

OWN_KEYS = {"gold": "gold_extracts", "prediction": "pred_extracts"}
"""Keys of spans in records that hold gold and predicted spans, by the role of the file."""

SLOT_KEYS = frozenset({"extracts", "gold_extracts", "pred_extracts"})
"""Keys of MUC's templates, whose slots are filled by entities."""

TOOL_KEYS = frozenset({"data", "answer", "_input_hash"})
"""Keys of all records of Label Studio and Prodigy, in which the key of the spans may lack if there are none."""

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


MatchCounter = Callable[[Any, Any], Mapping[str, int]]
"""Function from gold and predicted elements to the number of matches of each label; all of a list match itself."""


def count_exact_matches(gold: frozenset[Any], predicted: frozenset[Any]) -> Mapping[str, int]:
    """Count predicted spans that are gold spans, by label."""
    return Counter(span[0] for span in gold & predicted)


def count_entity_matches(
    gold: Mapping[str, Sequence[frozenset[str]]], predicted: Mapping[str, Sequence[frozenset[str]]]
) -> Mapping[str, int]:
    """Return, by slot, how many predicted entities match gold entities one-to-one.

    A given entity fits a gold one if all its mentions are mentions of it.

    Examples
    --------
    >>> gold = {"Victim": [frozenset({"he", "ann"}), frozenset({"ann"})]}
    >>> count_entity_matches(gold, {"Victim": [frozenset({"ann"}), frozenset({"he"})]})
    {'Victim': 2}
    """
    sizes: dict[str, int] = {}
    for slot, entities in predicted.items():
        fits = np.array([[candidate <= entity for entity in gold.get(slot, ())] for candidate in entities], np.bool_)
        if fits.any():
            partners = scipy.sparse.csgraph.maximum_bipartite_matching(scipy.sparse.csr_matrix(fits))
            sizes[slot] = int(np.count_nonzero(partners >= 0))
    return sizes


def count_labelled(
    gold: Sequence[Any], systems: Sequence[Sequence[Any]], match: MatchCounter
) -> tuple[MatchFields, tuple[str, ...], tuple[str, ...]]:
    """Count the matches of each system's list with gold, for each item and label.

    Returns
    -------
    MatchFields
        The fields.
    tuple of str
        Labels of the gold data; none where there is only "".
    tuple of str
        Labels that only systems use.
    """
    rows: dict[str, list[tuple[int, int, int, int]]] = {"tp": [], "predicted": [], "gold": []}
    codes = Codes()

    def add(kind: str, system: int, firsts: Sequence[Any], seconds: Sequence[Any]) -> None:
        for item, pair in enumerate(zip(firsts, seconds, strict=True)):
            rows[kind] += [(item, system, codes[label], number) for label, number in match(*pair).items()]

    add("gold", 0, gold, gold)
    for system, column in enumerate(systems):
        add("tp", system, gold, column)
        add("predicted", system, column, column)
    names = list(codes)
    labels, used = ({names[row[2]] for row in rows[kind]} for kind in ("gold", "predicted"))
    if names == [""]:
        names, labels, used = [], set(), set()
    entries = {kind: np.array(found, np.int64).reshape(-1, 4) for kind, found in rows.items()}
    fields = MatchFields(entries, tuple(names), (len(gold), len(systems)), {})
    return fields, tuple(sorted(labels)), tuple(sorted(used - labels))


def build_list_counts(aligned: AlignedListings, fields: Mapping[str, Array], **more: Any) -> Counts:
    """Return counts of the fields of aligned lists. `more` has additional arguments of `Counts`."""
    columns = map(to_object_array, aligned.systems.values())
    return Counts(
        systems=tuple(aligned.systems),
        fields=fields,
        n_items=len(aligned.gold),
        ids=aligned.ids,
        groups=aligned.groups,
        present=aligned.present,
        outputs=Outputs(tuple(columns), to_object_array(aligned.gold)),
        **more,
    )


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


class Document(NamedTuple):
    """What a file has for a document: spans, or entities by slot, and relations."""

    spans: Any
    relations: Any = ()


def read_spans(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read spans of documents or sentences, relations between them, or both, as the metrics ask for."""
    assert gold is not None
    wants_spans, wants_relations = _list_wanted(options)
    gold_listing, key = _read_documents(options, "gold", gold)
    systems = listings.read_by_system(sources, lambda path: _read_documents(options, "prediction", path)[0])
    has_slots, label_map = key in SLOT_KEYS, options.label_mapping
    written: set[str] = set()
    scope = () if wants_relations else _describe_relations((gold_listing, *systems.values()), options)

    def parse(value: Any, where: str) -> Document:
        spans, relations = value if isinstance(value, Document) else (value, ())
        parsed: Any = frozenset()
        if wants_spans and has_slots:
            parsed = parse_entities(spans, where, label_map)
            written.update(spans or ())
        elif wants_spans:
            found = parse_spans(spans, where)
            written.update(label for label, _ in found)
            parsed = frozenset((label_map.get(label, label), position) for label, position in found)
        links = parse_relations(relations, spans or (), where) if wants_relations else []
        written.update(str(link[0]) for link in links)
        return Document(parsed, collect_relations(links, label_map))

    gold_listing = gold_listing.convert_values(parse)
    parsed_systems = {name: listing.convert_values(parse) for name, listing in systems.items()}
    options.check_used_labels(written)
    nothing = Document({} if has_slots else frozenset(), collect_relations((), {}))
    aligned = listings.align_listings(gold_listing, parsed_systems, options, nothing)
    fields: dict[str, Any] = {}
    if wants_relations:
        fields, notes = _count_relations(gold, aligned)
        aligned = replace(aligned, warnings=(*aligned.warnings, *notes))
        if not wants_spans:
            strict = _select(aligned, lambda document: document.relations["strict"])
            return build_list_counts(strict, fields, suggested=("relation-f1",), warnings=aligned.warnings)
    aligned = _select(aligned, lambda document: document.spans)
    match = count_entity_matches if has_slots else count_exact_matches
    notes = _check_types(gold, aligned, lambda found: Counter(match(found, found)).elements(), "spans")
    counted, labels, others = count_labelled(aligned.gold, list(aligned.systems.values()), match)
    if not labels:
        notes.append(ScopeNote("The spans have no labels, so offsets alone are compared"))
    return build_list_counts(
        aligned,
        {**counted, **fields} if fields else counted,
        labels=labels,
        predicted_labels=others,
        suggested=("f1", "macro-f1") if labels else ("f1",),
        warnings=(*aligned.warnings, *notes),
        scope=scope,
    )


def _list_wanted(options: Options) -> tuple[bool, bool]:
    """Return whether metrics are of spans, and of relations."""
    are_of_relations = [metric.lower().startswith("relation-") for metric in options.metrics] or [False]
    return not all(are_of_relations), any(are_of_relations)


def _select(aligned: AlignedListings, get: Callable[[Document], Any]) -> AlignedListings:
    """Return lists of one kind instead of documents."""
    systems = {name: [*map(get, column)] for name, column in aligned.systems.items()}
    return replace(aligned, gold=[*map(get, aligned.gold)], systems=systems)


def _count_relations(gold: Path, aligned: AlignedListings) -> tuple[dict[str, Any], list[str]]:
    """Return fields for each way to match the arguments of relations, and a note on foreign types."""
    fields: dict[str, Any] = {}
    for match in RELATION_MATCHES:
        chosen = _select(aligned, lambda document, match=match: document.relations[match])  # type: ignore[misc]
        counted, _, _ = count_labelled(chosen.gold, list(chosen.systems.values()), count_exact_matches)
        fields |= {f"relation-{match}-{name}": counted[name] for name in counted}
    strict = _select(aligned, lambda document: map(get_relation_name, document.relations["strict"]))
    return fields, _check_types(gold, strict, list, "relations", types="types and roles", have_roles=True)


def _check_types(
    gold: Path, aligned: AlignedListings, list_types: Callable[[Any], Iterable[str]], noun: str, **more: Any
) -> list[str]:
    """Return a note on types that gold never has."""
    known, *used = (
        [name for found in column for name in list_types(found)] for column in (aligned.gold, *aligned.systems.values())
    )
    return check_types(gold, known, dict(zip(aligned.systems, used, strict=True)), noun, **more)


def _describe_relations(files: Sequence[FileListing], options: Options) -> tuple[str, ...]:
    """Return a note on relations that are not scored; raise if no metric says whether the user wants them."""
    documents = (value for listing in files for value in listing.items.values() if isinstance(value, Document))
    n = sum(len(document.relations) for document in documents if isinstance(document.relations, list))
    if n and not options.metrics:
        raise InputError(
            f"the files hold {n:,} relations: name a metric. {spell('metrics', 'relation-f1')} compares relations, and "
            f"{spell('metrics', 'f1')}, precision or recall compares only the entities (in a plan: metrics)"
        )
    return (f"Relations are not scored: the files hold {n:,} relations",) if n else ()


def _read_documents(options: Options, role: str, path: Path) -> tuple[FileListing, str | None]:
    """Read what a file has for each document, and the key of its spans; nothing of JSON is parsed yet."""
    if path.is_dir() or is_brat(path):
        listing = FileListing(path, {}, {}, has_ids=path.is_dir())
        for item, file in listings.iter_folder(path, (BRAT,)) if path.is_dir() else [("1", path)]:
            listing.add(item, Document(*read_ann(file)), f"file {file.name}")
        return listing, None
    if not read_head(path).is_json:
        return _read_rows(path, options), None
    known = {*SPAN_KEYS, *SLOT_KEYS, *RELATION_KEYS[role], *options.columns.values()}
    records = listings.list_records(path, lambda record: not known.isdisjoint(record))
    keys = {key for record in records if isinstance(record.value, dict) for key in record.value}
    key = find_span_key(path, records, options, role)
    relation_key = next((name for name in RELATION_KEYS[role] if name in keys), None)

    wanted = zip(("spans", "relations"), (key, relation_key), _list_wanted(options), strict=True)
    needed = [(noun, name) for noun, name, is_wanted in wanted if is_wanted]

    def get_value(record: dict[str, Any], place: str) -> Any:
        for noun in (noun for noun, name in needed if name not in record and TOOL_KEYS.isdisjoint(record)):
            raise listings.build_key_error(path, JsonRecord(place, None, record, 0), noun)
        value, relations = record.get(key or ""), record.get(relation_key or "")
        if value is None and key in record and role == "gold":
            return listings.LeftOut("no annotation (null)")
        if value or "data" in record:
            value = select_annotation(value, f"{path}, {place}")
        return value if isinstance(value, listings.LeftOut) else Document(value, relations or ())

    return listings.read_listing(path, records, key or relation_key, "spans", options, get_value), key


def _read_rows(path: Path, options: Options) -> FileListing:
    """Read one span per row; the header names the document, start, end and label."""
    listing = FileListing(path, {}, {}, complete=False)
    ids: Sequence[str] = ()
    for where, record in iter_records(path):
        offsets = find_offsets(record)
        ids = ids or find_id_keys(record, options)
        others = {normalize_name(name) for name in record if name not in {*ids, *offsets}} - TEXT_NAMES
        if not ids or len(offsets) != 2 or (others and others.isdisjoint(LABEL_NAMES)):
            expected = f"a document's id, start, end and label; {spell('columns', 'item=COLUMN')} names that of the id"
            raise InputError(file=path, found=f"columns {', '.join(record)}", expected=expected)
        place = where.removeprefix(f"{path}, ")
        parts = get_id_parts(path, place, record, ids)
        if "/".join(parts) not in listing.items:
            listing.add_parts(ids, parts, Document([]), place)
        if any(record[name] for name in offsets):  # a row without offsets says that a document has no spans
            listing.items["/".join(parts)].spans.append(parse_span(record, where))
    return listing
