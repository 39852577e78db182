"""Labelled spans of documents: JSON, brat folders, tables of offsets; and slots filled by entities.

A span is right if a gold span has the same offsets and label (exact match). If labels are slots that are filled by
entities, which are lists of alternative mentions, entities are matched one to one within document and slot (CEAF, Luo
2005; strict as in GRIT, Du et al. 2021), and the matches are summed. MUC's templates are such data.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading import listings
from sigdask.formats.reading.files import parse_header, read_delimited_rows
from sigdask.formats.reading.json_records import JsonRecord, find_id_keys, get_id_parts, is_json, read_head
from sigdask.formats.reading.listings import FileListing
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.types_of_gold import check_types
from sigdask.formats.spans import layouts
from sigdask.formats.spans.layouts import END_NAMES, START_NAMES, TOOL_KEYS, Span, normalize_name
from sigdask.formats.spans.matching import build_list_counts, count_entity_matches, count_exact_matches, count_labelled
from sigdask.formats.spans.relations import (
    RELATION_KEYS,
    Relation,
    RelationSets,
    collect_relations,
    get_relation_name,
    parse_relations,
    read_ann,
)
from sigdask.interface import spell
from sigdask.metrics.labels import RELATION_MATCHES

SUFFIX = ".ann"
"""Ending of annotations in brat's notation."""

SIGNATURE = re.compile(
    r'"(spans|entities|ents|gold_extracts|pred_extracts|extracts)"\s*:\s*[\[{]'
    r'|"annotations"\s*:\s*\[\s*\{[^\[]*"result"'
    r'|"labels?"\s*:\s*\[\s*(\[\s*\d+\s*,\s*\d+|\{[^{}]*"(start|end)(_offset)?")'
    r'|"(gold_|predicted_)?relations"\s*:\s*\[\s*\{[^{}]*"(head|tail|from_id)"\s*:'
)
"""JSON of a declared layout: keys of spans, or keys that other formats have, too, with offsets within."""


def read_spans(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read spans of documents or sentences, relations between them, or both, as the metrics ask for."""
    if gold is None and not _has_gold(sources[0].path, options):
        raise InputError("format spans: no gold spans", remedy=f"give {spell('gold', 'FILE')} or FOLDER")
    are_of_relations = [metric.lower().startswith("relation-") for metric in options.metrics]
    if not any(are_of_relations):
        return _read_entities(sources, gold, options, scores_relations=False)
    relations = _read_relations(sources, gold, options)
    if all(are_of_relations):
        return relations
    entities = _read_entities(sources, gold, options, scores_relations=True)
    return replace(entities, fields={**entities.fields, **relations.fields})


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Return whether the first file has keys of spans or columns of offsets, is brat's, or has MUC's keys and gold."""
    path = sources[0].path
    if any(file.name.endswith((SUFFIX, f"{SUFFIX}.gz")) for file in (path.rglob("*") if path.is_dir() else [path])):
        return True
    if gold is None:
        return _has_gold(path, options) and '_extracts"' in read_head(path)
    if path.is_dir():
        return False
    start = read_head(path)
    if start.lstrip().startswith(("{", "[")):
        return SIGNATURE.search(start) is not None
    return _has_offsets(parse_header(start))


def _has_gold(path: Path, options: Options) -> bool:
    """Return whether a system's file also holds the gold standard."""
    if path.is_dir() or not is_json(path):
        return False
    start = read_head(path)
    return any(f'"{name}"' in start for name in (options.gold_column, *layouts.OWN_KEYS["gold"]) if name)


def _has_offsets(columns: Sequence[str]) -> bool:
    names = {*map(normalize_name, columns)}
    return not names.isdisjoint(START_NAMES) and not names.isdisjoint(END_NAMES)


def _read_entities(sources: Sequence[Source], gold: Path | None, options: Options, *, scores_relations: bool) -> Counts:
    links = Counter[str]()
    gold_listing, gold_key = _read_listing(options, links, "both" if gold is None else "gold", gold or sources[0].path)
    given = listings.read_by_system(sources, partial(_read_listing, options, links, "prediction"))
    requested = options.own.get("spans")
    if requested is not None and requested not in {gold_key, *(key for _, key in given.values())}:
        raise InputError(f"spans={requested}: no file has this key", remedy="name a key or column of one of them")
    has_slots = options.own.get("match", "ceaf" if gold_key in layouts.SLOT_KEYS else "exact") == "ceaf"
    label_map = options.label_mapping

    def parse(value: Any, where: str) -> Any:
        if has_slots:
            return layouts.parse_entities(value, where, label_map)
        spans = value if isinstance(value, frozenset) else layouts.parse_spans(value, where)
        return frozenset((label_map.get(label, label), position) for label, position in spans)

    gold_listing = gold_listing.convert_values(parse)
    systems = {name: listing.convert_values(parse) for name, (listing, _) in given.items()}
    scope = _describe_links(links, options, scores_relations=scores_relations)
    aligned = listings.align_listings(gold_listing, systems, options, {} if has_slots else frozenset())
    list_types = _list_slots if has_slots else _list_labels
    notes = check_types(
        gold_listing.path,
        list_types(aligned.gold),
        {name: list_types(column) for name, column in aligned.systems.items()},
        "entities" if has_slots else "spans",
    )
    count_matches = count_entity_matches if has_slots else count_exact_matches
    fields, labels, others = count_labelled(aligned.gold, list(aligned.systems.values()), count_matches)
    if not labels:
        notes.append(ScopeNote("The spans have no labels, so offsets alone are compared"))
    return build_list_counts(
        aligned,
        fields,
        labels=labels,
        predicted_labels=others,
        suggested=("f1", "macro-f1") if labels else ("f1",),
        warnings=(*aligned.warnings, *notes),
        scope=scope,
    )


def _list_labels(column: Sequence[frozenset[Any]]) -> list[str]:
    return [label for spans in column for label, _ in spans]


def _list_slots(column: Sequence[Mapping[str, Sequence[Any]]]) -> list[str]:
    return [slot for slots in column for slot, entities in slots.items() for _ in entities]


def _describe_links(links: Counter[str], options: Options, *, scores_relations: bool) -> tuple[str, ...]:
    """Return a sentence on relations and events that are not scored.

    Raises
    ------
    InputError
        Files hold some and no metric is named. The user may want to compare these.
    """
    unscored = {kind: n for kind, n in links.items() if n and not (kind == "relations" and scores_relations)}
    if not unscored:
        return ()
    found = " and ".join(f"{n:,} {kind}" for kind, n in unscored.items())
    if not options.metrics:
        raise InputError(
            f"the files hold {found}: name a metric. {spell('metrics', 'relation-f1')} compares relations, and "
            f"{spell('metrics', 'f1')}, precision or recall compares only the entities (in a plan: metrics)"
        )
    return (f"{' and '.join(unscored).capitalize()} are not scored: the files hold {found}",)


def _read_listing(options: Options, links: Counter[str], role: str, path: Path) -> tuple[FileListing, str]:
    """Read the values that hold spans, without parsing them; and their key, or the column of labels, if any."""
    if _is_brat(path):
        return _read_brat(path, links, lambda spans, _: frozenset(spans)), ""
    if not is_json(path):
        return _read_rows(FileListing(path, {}, {}, complete=False), options)
    known = {*layouts.SPAN_KEYS, *layouts.SLOT_KEYS, *options.columns.values(), options.own.get("spans")}
    records = listings.list_records(path, lambda record: not known.isdisjoint(record))
    key = layouts.find_span_key(path, records, options, role)

    def get_value(record: dict[str, Any], place: str) -> Any:
        if key not in record and TOOL_KEYS.isdisjoint(record):
            raise listings.build_key_error(path, JsonRecord(place, None, record, 0), "spans")
        relations = record.get("relations")
        links["relations"] += len(relations) if isinstance(relations, list) else 0
        value = record.get(key)
        if value is None and key in record and role != "prediction":
            return listings.LeftOut("no annotation (null)")
        return layouts.select_annotation(value, options, f"{path}, {place}") if value or "data" in record else value

    return listings.read_listing(path, records, key or None, "spans", options, get_value), key


def _is_brat(path: Path) -> bool:
    return path.is_dir() or path.name.removesuffix(".gz").endswith(SUFFIX)


def _read_brat(path: Path, links: Counter[str], choose: Callable[[list[Span], list[Relation]], Any]) -> FileListing:
    """Read a folder of .ann files, or a single one; add up its lines that link spans."""
    listing = FileListing(path, {}, {}, has_ids=path.is_dir())
    for item, file in listings.iter_folder(path, (SUFFIX,)) if path.is_dir() else [("1", path)]:
        spans, relations, numbers = read_ann(file)
        links.update(numbers)
        listing.add(item, choose(spans, relations), f"file {file.name}")
    return listing


def _read_rows(listing: FileListing, options: Options) -> tuple[FileListing, str]:
    """Read one span per row, and the column of labels; the header names the document, start, end and label."""
    path = listing.path
    rows = read_delimited_rows(path)
    names = [name.strip() for name in next(rows)[1]]
    if not _has_offsets(names):
        raise InputError(f"found columns {', '.join(names)}; expected a document's id, start, end and label", file=path)
    ids = find_id_keys(dict.fromkeys(names), options)
    if not ids:
        remedy = f"give {spell('columns', 'item=COLUMN')}"
        raise InputError(f"which column names the document? Columns: {', '.join(names)}", file=path, remedy=remedy)
    label = _find_label_column(path, [name for name in names if name not in ids], options)
    for line, cells in rows:
        record = dict(zip(names, (cell.strip() for cell in cells), strict=True))
        parts = get_id_parts(path, f"line {line}", record, ids)
        if "/".join(parts) not in listing.items:
            listing.add_parts(ids, parts, [], f"line {line}")
        fields = {normalize_name(name): cell for name, cell in record.items()}
        start, end = (layouts.find_field(fields, bounds) for bounds in (START_NAMES, END_NAMES))
        if start or end:  # a row without offsets says that a document has no spans
            where = f"{path}, line {line}"
            span = [layouts.parse_offset(offset, where) for offset in (start, end)]
            listing.items["/".join(parts)].append([*span, record[label] if label else ""])
    return listing, label or ""


def _find_label_column(path: Path, names: Sequence[str], options: Options) -> str | None:
    """Return the column of labels, None if there is no other column than offsets and texts."""
    if (requested := options.own.get("spans")) in names:
        return requested
    remedy = f"name it: {spell('format', 'spans:spans=COLUMN')}"
    label = layouts.find_label_name(names, str(path), remedy)
    known = START_NAMES | END_NAMES | layouts.TEXT_NAMES
    if label is None and any(normalize_name(name) not in known for name in names):
        remedy += ". If spans have no labels, leave other columns out"
        raise InputError(f"which column has the labels? Columns: {', '.join(names)}", file=path, remedy=remedy)
    return label


def _read_relations(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read the relations of documents, with fields for each way to match their arguments."""
    symmetric = options.own["symmetric"].split("+") if "symmetric" in options.own else []
    types: dict[str, None] = {}
    events = Counter[str]()

    def collect(value: Any, where: str) -> RelationSets:
        relations = value if isinstance(value, list) else parse_relations(value[0], value[1], where)
        types.update((str(kind), None) for kind, *_ in relations)
        return collect_relations(relations, options.label_mapping, symmetric)

    def read(role: str, path: Path) -> FileListing:
        return _read_relation_listing(path, role, options, events).convert_values(collect)

    gold_listing = read("gold" if gold is not None else "both", gold or sources[0].path)
    systems = listings.read_by_system(sources, partial(read, "prediction"))
    unknown = [kind for kind in symmetric if kind not in types]
    if unknown and len(unknown) == len(symmetric):
        remedy = f"choose among the types of relations: {', '.join(types)}"
        raise InputError(f"symmetric: no relation is a {unknown[0]!r}", file=gold_listing.path, remedy=remedy)
    aligned = listings.align_listings(gold_listing, systems, options, collect_relations((), {}, ()))
    fields: dict[str, Any] = {}
    for match in RELATION_MATCHES:
        columns = [[sets[match] for sets in column] for column in aligned.systems.values()]
        counted, _, _ = count_labelled([sets[match] for sets in aligned.gold], columns, count_exact_matches)
        fields |= {f"relation-{match}-{name}": counted[name] for name in counted}
    strict = replace(
        aligned,
        gold=[sets["strict"] for sets in aligned.gold],
        systems={name: [sets["strict"] for sets in column] for name, column in aligned.systems.items()},
    )
    names = {name: _list_relations(column) for name, column in strict.systems.items()}
    notes = check_types(gold_listing.path, _list_relations(strict.gold), names, "relations", "types and roles")
    notes += [f"symmetric: no relation is a {kind!r}" for kind in unknown]
    scope = _describe_links(events, options, scores_relations=True)
    return build_list_counts(
        strict, fields, suggested=("relation-f1",), warnings=(*aligned.warnings, *notes), scope=scope
    )


def _list_relations(column: Sequence[frozenset[Any]]) -> list[str]:
    return [get_relation_name(relation) for relations in column for relation in relations]


def _read_relation_listing(path: Path, role: str, options: Options, events: Counter[str]) -> FileListing:
    """Return the listing of relations: for each document a list of them, or the JSON of relations and entities."""
    if _is_brat(path):
        return _read_brat(path, events, lambda _, relations: relations)
    if not is_json(path):
        raise InputError("has no relations: they are read only from .ann files of brat, and from JSON", file=path)
    own_key = RELATION_KEYS["prediction" if role == "prediction" else "gold"]
    known = {own_key, "relations", options.own.get("relations")}
    records = listings.list_records(path, lambda record: not known.isdisjoint(record))
    keys = {key for record in records if isinstance(record.value, dict) for key in record.value}
    key = options.own.get("relations") or (own_key if own_key in keys or role == "both" else "relations")
    span_key = layouts.find_span_key(path, records, options, role)

    def get_value(record: dict[str, Any], place: str) -> Any:
        if key not in record:
            raise listings.build_key_error(path, JsonRecord(place, None, record, 0), "relations")
        return record[key], record.get(span_key) or ()

    return listings.read_listing(path, records, key, "relations", options, get_value)
