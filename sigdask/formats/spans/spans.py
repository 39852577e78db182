"""Labelled spans of documents and relations between them: JSON, brat folders, tables of offsets; and filled slots.

A span is right if a gold span has the same offsets and label (exact match). If labels are slots that are filled by
entities, which are lists of alternative mentions, entities are matched one to one within document and slot (CEAF, Luo
2005; strict as in GRIT, Du et al. 2021), and the matches are summed. MUC's templates are such data.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading import listings
from sigdask.formats.reading.files import parse_header, read_head
from sigdask.formats.reading.json_records import (
    JsonRecord,
    find_id_keys,
    get_id_parts,
    is_json,
    iter_records,
)
from sigdask.formats.reading.listings import AlignedListings, FileListing
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.types_of_gold import check_types
from sigdask.formats.spans import layouts
from sigdask.formats.spans.layouts import END_NAMES, LABEL_NAMES, START_NAMES, TEXT_NAMES, TOOL_KEYS
from sigdask.formats.spans.matching import build_list_counts, count_entity_matches, count_exact_matches, count_labelled
from sigdask.formats.spans.relations import (
    RELATION_KEYS,
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
    has_slots, label_map = key in layouts.SLOT_KEYS, options.label_mapping
    scope = () if wants_relations else _describe_relations((gold_listing, *systems.values()), options)

    def parse(value: Any, where: str) -> Document:
        spans, relations = value if isinstance(value, Document) else (value, ())
        parsed: Any = frozenset()
        if wants_spans and has_slots:
            parsed = layouts.parse_entities(spans, where, label_map)
        elif wants_spans:
            found = layouts.parse_spans(spans, where)
            parsed = frozenset((label_map.get(label, label), position) for label, position in found)
        links = parse_relations(relations, spans or (), where) if wants_relations else []
        return Document(parsed, collect_relations(links, label_map))

    gold_listing = gold_listing.convert_values(parse)
    parsed_systems = {name: listing.convert_values(parse) for name, listing in systems.items()}
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


def sniff(sources: Sequence[Source], gold: Path | None, _: Options) -> bool:  # noqa: ARG001
    """Return whether the first file or folder is brat's, or has keys of spans or columns of offsets."""
    path = sources[0].path
    if path.is_dir():
        return any(map(_is_brat, path.rglob("*")))
    start = read_head(path).text
    if start.lstrip().startswith(("{", "[")):
        return SIGNATURE.search(start) is not None
    return _is_brat(path) or len(_find_offsets(parse_header(start))) >= 2


def _is_brat(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(SUFFIX)


def _find_offsets(names: Iterable[str]) -> list[str]:
    """Return the columns of offsets."""
    return [name for name in names if layouts.normalize_name(name) in {*START_NAMES, *END_NAMES}]


def _read_documents(options: Options, role: str, path: Path) -> tuple[FileListing, str | None]:
    """Read what a file has for each document, and the key of its spans; nothing of JSON is parsed yet."""
    if path.is_dir() or _is_brat(path):
        listing = FileListing(path, {}, {}, has_ids=path.is_dir())
        for item, file in listings.iter_folder(path, (SUFFIX,)) if path.is_dir() else [("1", path)]:
            listing.add(item, Document(*read_ann(file)), f"file {file.name}")
        return listing, None
    if not is_json(path):
        return _read_rows(path, options), None
    known = {*layouts.SPAN_KEYS, *layouts.SLOT_KEYS, *RELATION_KEYS[role], *options.columns.values()}
    records = listings.list_records(path, lambda record: not known.isdisjoint(record))
    keys = {key for record in records if isinstance(record.value, dict) for key in record.value}
    key = layouts.find_span_key(path, records, options, role)
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
            value = layouts.select_annotation(value, f"{path}, {place}")
        return value if isinstance(value, listings.LeftOut) else Document(value, relations or ())

    return listings.read_listing(path, records, key or relation_key, "spans", options, get_value), key


def _read_rows(path: Path, options: Options) -> FileListing:
    """Read one span per row; the header names the document, start, end and label."""
    listing = FileListing(path, {}, {}, complete=False)
    ids: Sequence[str] = ()
    for where, record in iter_records(path):
        offsets = _find_offsets(record)
        ids = ids or find_id_keys(record, options)
        others = {layouts.normalize_name(name) for name in record if name not in {*ids, *offsets}} - TEXT_NAMES
        if not ids or len(offsets) != 2 or (others and others.isdisjoint(LABEL_NAMES)):
            expected = f"a document's id, start, end and label; {spell('columns', 'item=COLUMN')} names that of the id"
            raise InputError(file=path, found=f"columns {', '.join(record)}", expected=expected)
        place = where.removeprefix(f"{path}, ")
        parts = get_id_parts(path, place, record, ids)
        if "/".join(parts) not in listing.items:
            listing.add_parts(ids, parts, Document([]), place)
        if any(record[name] for name in offsets):  # a row without offsets says that a document has no spans
            listing.items["/".join(parts)].spans.append(layouts.parse_span(record, where))
    return listing
