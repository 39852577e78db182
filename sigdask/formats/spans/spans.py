"""Labelled spans of documents: JSON, brat folders, PubTator, tables of offsets; and slots filled by entities.

A span is right if a gold span has the same offsets and label (exact match). If labels are slots that are filled by
entities, which are lists of alternative mentions, entities are matched one to one within document and slot (CEAF, Luo
2005; strict as in GRIT, Du et al. 2021), and the matches are summed. MUC's templates are such data.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading import listings
from sigdask.formats.reading.files import check_filled, enumerate_lines, parse_header, read_delimited_rows
from sigdask.formats.reading.json_records import JsonRecord, find_id_keys, get_id_parts, is_json, read_head
from sigdask.formats.reading.listings import FileListing
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.types_of_gold import check_types
from sigdask.formats.spans import layouts
from sigdask.formats.spans.layouts import END_NAMES, START_NAMES, normalize_name, parse_span
from sigdask.formats.spans.matching import (
    build_list_counts,
    count_entity_matches,
    count_exact_matches,
    count_labelled,
)
from sigdask.formats.spans.relations import (
    DOCRED_KEYS,
    GOLD_RELATION_KEYS,
    PREDICTED_RELATION_KEYS,
    RELATION_KEYS,
    Span,
    collect_relations,
    get_relation_name,
    iter_json_relations,
    parse_ann_span,
    read_ann_relations,
    read_docred,
)
from sigdask.interface import spell
from sigdask.metrics.labels import RELATION_MATCHES

SUFFIXES = (".ann", ".a2")
"""Endings of annotations in brat's notation; the second comes with `.a1`, which has the given entities."""

LINK_LINES = {"R": "relations", "*": "relations", "E": "events"}
"""Meaning of lines of relations, by their first letter. Attributes, normalizations and notes are never scored."""

LINKS = ("relations", "events")
"""Annotations that metrics of entities do not score, although users may expect it."""

PUBTATOR = re.compile(r"([^|\t\s]+)\|[ta]\|")
"""Beginning of a line of text in PubTator."""

SIGNATURE = re.compile(
    r'"(spans|entities|ents|ner|entity_mentions|\w+_(spans|entities|ner|extracts)|extracts)"\s*:\s*[\[{]'
    r'|^\s*\[\s*(\[\s*\]\s*,\s*)*\[\s*\{[^{}]*"(start|end)(_offset)?"'
    r'|"labels?"\s*:\s*\{\s*"[^"]*"\s*:\s*(\{\s*"[^"]*"\s*:\s*)?\[\s*\[\s*\d'
    r'|"annotations"\s*:\s*\[\s*\{[^\[]*"(result|value|start_offset)"|"locations"\s*:'
    r'|"(labels?|annotations?|predictions?)"\s*:\s*\[\s*(\[\s*("[^"]*"\s*,\s*)?\d+\s*,\s*\d+|\{[^{}]*"(start|end)(_offset)?")'
    rf'|"({"|".join(RELATION_KEYS + PREDICTED_RELATION_KEYS)})"\s*:\s*\[\s*\{{[^{{}}]*"(head|tail)"\s*:|"h_idx"\s*:'
)
"""JSON of a declared layout: keys of spans, or keys that other formats have, too, with offsets within."""

Parse = Callable[[Any, str], Any]


def read_spans(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read spans of documents or sentences, relations between them, or both, as the metrics ask for."""
    if gold is None and not _has_gold(sources[0].path, options):
        raise InputError("format spans: no gold spans", remedy=f"give {spell('gold', 'FILE')} or FOLDER")
    are_of_relations = [metric.lower().startswith("relation-") for metric in options.metrics]
    if not any(are_of_relations):
        return _read_entities(sources, gold, options, scores_links=False)
    relations = _read_relations(sources, gold, options)
    if all(are_of_relations):
        return relations
    entities = _read_entities(sources, gold, options, scores_links=True)
    return replace(entities, fields={**entities.fields, **relations.fields})


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Return whether the first file has keys of spans, columns of offsets or lines of PubTator; or MUC's with gold."""
    path = sources[0].path
    if gold is None:
        return _has_gold(path, options) and '_extracts"' in read_head(path)
    if path.is_dir():
        return False
    start = read_head(path)
    if start.lstrip().startswith(("{", "[")):
        return SIGNATURE.search(start) is not None
    return PUBTATOR.match(start.lstrip()) is not None or _has_offsets(parse_header(start))


def _has_gold(path: Path, options: Options) -> bool:
    """Return whether a system's file also holds the gold standard."""
    if path.is_dir() or not is_json(path):
        return False
    start = read_head(path)
    return any(f'"{name}"' in start for name in (options.gold_column, *layouts.GOLD_KEYS) if name)


def _is_annotation_file(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(SUFFIXES)


def _has_offsets(columns: Sequence[str]) -> bool:
    names = {normalize_name(column.strip()) for column in columns}
    return not names.isdisjoint(START_NAMES) and not names.isdisjoint(END_NAMES)


def _read_entities(sources: Sequence[Source], gold: Path | None, options: Options, *, scores_links: bool) -> Counts:
    gold_listing, gold_key = _read_listing(options, "both" if gold is None else "gold", gold or sources[0].path)
    has_slots = options.own.get("match", "ceaf" if gold_key in layouts.SLOT_KEYS else "exact") == "ceaf"
    label_map = options.label_mapping

    def parse(value: Any, where: str) -> Any:
        if has_slots:
            return layouts.parse_entities(value, where, label_map)
        return collect_spans(layouts.iter_spans(value, where), label_map)

    gold_listing = gold_listing.convert_values(parse)
    given = listings.read_by_system(sources, partial(_read_listing, options, "prediction"))
    requested = options.own.get("spans")
    if requested is not None and requested not in {gold_key, *(key for _, key in given.values())}:
        raise InputError(f"spans={requested}: no file has this key", remedy="name a key or column of one of them")
    systems = {name: listing.convert_values(parse) for name, (listing, _) in given.items()}
    scope = () if scores_links else _describe_links([gold_listing, *systems.values()], options)
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
    return [label for spans in column for label, *_ in spans]


def _list_slots(column: Sequence[Mapping[str, Sequence[Any]]]) -> list[str]:
    return [slot for slots in column for slot, entities in slots.items() for _ in entities]


def collect_spans(spans: Iterator[Span], label_map: Mapping[str, str]) -> frozenset[Any]:
    """Return distinct spans; spans without offsets are numbered if they occur several times."""
    distinct: set[Any] = set()
    repeated = Counter[Any]()
    for label, position in spans:
        span = (label_map.get(label, label), position)
        if isinstance(position, str):
            repeated[span] += 1
            span = (*span, repeated[span])  # type: ignore[assignment]
        distinct.add(span)
    return frozenset(distinct)


def _read_listing(options: Options, role: str, path: Path) -> tuple[FileListing, str]:
    """Read the values that hold spans, without parsing the spans; and their key, or the column of labels, if any."""
    if path.is_dir() or _is_annotation_file(path):
        return _read_brat(path), ""
    if PUBTATOR.match(read_head(path).lstrip()):
        return _read_pubtator(FileListing(path, {}, {})), ""
    if not is_json(path):
        return _read_rows(FileListing(path, {}, {}, complete=False), options)
    column = options.gold_column if role != "prediction" else options.prediction_column
    if column is None and "spans" not in options.own and _is_docred(path):
        remedy = f"add {spell('metrics', 'relation-f1')}"
        raise InputError("has facts of DocRED, which need a metric of relations", file=path, remedy=remedy)
    known = {*layouts.SPAN_KEYS, *layouts.GOLD_KEYS, *layouts.PREDICTED_KEYS, column, options.own.get("spans")}
    records = listings.list_records(path, lambda record: not known.isdisjoint(record))
    key = layouts.find_span_key(path, records, column, options, role)
    if not key:
        _check_no_relations(path, records)
    is_optional = bool(key) and layouts.is_optional(key, records)
    unscored: list[Mapping[str, int]] = []

    def get_value(record: dict[str, Any], place: str) -> Any:
        if key not in record and not is_optional:
            raise listings.build_key_error(path, JsonRecord(place, None, record, 0), "spans")
        unscored.append(count_unscored(record, key))
        if record.get(key) is None and key in record and role != "prediction":
            return listings.LeftOut("no annotation (null)")
        has_annotations = key in {"annotations", "predictions"} and (record.get(key) or "data" in record)
        return (
            layouts.select_annotation(record[key], options, f"{path}, {place}") if has_annotations else record.get(key)
        )

    listing = listings.read_listing(path, records, key or None, "spans", options, get_value)
    for numbers in unscored:
        listing.add_unscored(numbers)
    return listing, key


def _check_no_relations(path: Path, records: Sequence[JsonRecord]) -> None:
    """Raise for records that have relations but no spans."""
    known = {*RELATION_KEYS, *PREDICTED_RELATION_KEYS}
    if any(isinstance(record.value, dict) and not known.isdisjoint(record.value) for record in records):
        raise InputError(
            "has relations, but no list of entities. To compare the relations, add "
            f"{spell('metrics', 'relation-f1')} (in a plan: metrics). Else name the key of the entities: "
            f"{spell('format', 'spans:spans=KEY')}",
            file=path,
        )


def _iter_ann_files(path: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield the item, file and place of each .ann file of a folder, or of a single one."""
    if not path.is_dir():
        yield "1", path, "line 1"
        return
    for item, file in listings.iter_folder(path, SUFFIXES):
        yield item, file, f"file {file.name}"


def _read_brat(path: Path) -> FileListing:
    """Read the lines T of .ann files, and the numbers of their relations and events."""
    listing = FileListing(path, {}, {}, has_ids=path.is_dir())
    for item, file, place in _iter_ann_files(path):
        spans: list[list[object]] = []
        unscored = Counter[str]()
        for number, line in enumerate_lines(file):
            if line.startswith("T"):
                spans.append(parse_ann_span(line, f"{file}, line {number}")[1])
            elif kind := LINK_LINES.get(line[:1]):
                unscored[kind] += 1
        listing.add(item, spans, place)
        listing.add_unscored(unscored)
    return listing


def _read_pubtator(listing: FileListing) -> FileListing:
    """Add the documents of a PubTator file to the listing, with [start, end, type] for each annotation."""
    path = listing.path
    relations = Counter[str]()
    for number, line in enumerate_lines(path):
        if not line.strip():
            continue
        cells = line.rstrip("\r\n").split("\t")
        match = PUBTATOR.match(line)
        item = match[1] if match else cells[0]
        if item not in listing.items:
            listing.add(item, [], f"line {number}")
        if match:
            continue
        if len(cells) > 2 and not cells[1].isdecimal():
            relations[item] += 1
            continue
        if len(cells) < 5 or not cells[2].isdecimal():
            raise InputError(
                file=path,
                line=number,
                found=f"{line.strip()[:40]!r}",
                expected="ID, START, END, text and TYPE, separated by tabs",
            )
        listing.items[item].append([int(cells[1]), int(cells[2]), cells[4]])
    check_filled(path, listing.items)
    for n_relations in relations.values():
        listing.add_unscored({"relations": n_relations})
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
        raise InputError(
            f"which column names the document? Columns: {', '.join(names)}",
            file=path,
            remedy=f"give {spell('columns', 'item=COLUMN')}",
        )
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
            listing.items["/".join(parts)].append([span, record[label]] if label else [span])
    return listing, label or ""


def _find_label_column(path: Path, names: Sequence[str], options: Options) -> str | None:
    """Return the column of labels, None if there is no other column than offsets and texts."""
    if (requested := options.own.get("spans")) in names:
        return requested
    try:
        label = layouts.find_label_name(names)
    except ValueError as error:
        problem = str(error)
    else:
        known = START_NAMES | END_NAMES | layouts.TEXT_NAMES
        others = [name for name in names if normalize_name(name) not in known]
        if label is not None or not others:
            return label
        problem = "which column has the labels?"
    remedy = f"name it: {spell('format', 'spans:spans=COLUMN')}. If spans have no labels, leave other columns out"
    raise InputError(f"{problem} Columns: {', '.join(names)}", file=path, remedy=remedy)


def _read_relations(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read the relations of documents, with fields for each way to match their arguments."""
    label_map = options.label_mapping
    symmetric = options.own.get("symmetric", "").split("+")

    def read(path: Path, role: str) -> FileListing:
        listing = _read_relation_listing(path, role, options, gold)
        return listing.convert_values(lambda value, where: collect_relations(value(where), label_map, symmetric))

    gold_listing = read(gold or sources[0].path, "gold" if gold is not None else "both")
    systems = listings.read_by_system(sources, lambda path: read(path, "prediction"))
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
    return build_list_counts(strict, fields, suggested=("relation-f1",), warnings=(*aligned.warnings, *notes))


def _list_relations(column: Sequence[frozenset[Any]]) -> list[str]:
    return [get_relation_name(relation) for relations in column for relation in relations]


def _read_relation_listing(path: Path, role: str, options: Options, gold: Path | None) -> FileListing:
    """Return the listing of relations: for each document a function that reads them and names a location in errors."""
    listing = FileListing(path, {}, {}, has_ids=path.is_dir())
    if path.is_dir() or _is_annotation_file(path):
        for item, file, place in _iter_ann_files(path):
            relations = read_ann_relations(file, parse_span, _find_given_entities(file, item, gold))
            listing.add(item, lambda _where, relations=relations: relations, place)
        return listing
    if not is_json(path):
        raise InputError(
            "has no relations: they are read only from .ann or .a2 files of brat, and from JSON", file=path
        )
    if _is_docred(path):
        return read_docred(path, has_documents='"vertexSet"' in read_head(path))
    requested = options.own.get("relations")
    own = PREDICTED_RELATION_KEYS if role == "prediction" else GOLD_RELATION_KEYS
    known = {*own, *RELATION_KEYS, requested}
    records = listings.list_records(path, lambda record: not known.isdisjoint(record))
    keys = {key for record in records if isinstance(record.value, dict) for key in record.value}
    choices = [requested] if requested else [name for name in own if name in keys]
    choices = choices or [name for name in RELATION_KEYS if name in keys and role != "both"]
    if len(choices) > 1:
        remedy = f"choose: {' or '.join(spell('format', f'spans:relations={key}') for key in choices)}"
        raise InputError(f"{' and '.join(choices)} may hold the relations", file=path, remedy=remedy)
    key = choices[0] if choices else None
    column = options.prediction_column if role == "prediction" else options.gold_column
    span_key = layouts.find_span_key(path, records, column, options, role)

    def get_value(record: dict[str, Any], place: str) -> Any:
        if key not in record:
            raise listings.build_key_error(path, JsonRecord(place, None, record, 0), "relations")
        entities = list(_iter_elements(record.get(span_key)))
        return lambda where: iter_json_relations(record[str(key)], entities, parse_span, where)

    return listings.read_listing(path, records, key, "relations", options, get_value)


def _find_given_entities(file: Path, item: str, gold: Path | None) -> Path | None:
    """Return the file `.a1` that belongs to a file `.a2`, in its folder or that of gold; None for other files."""
    if file.suffix != ".a2":
        return None
    places = [file.with_suffix(".a1"), *([] if gold is None else [gold / f"{item}.a1"])]
    if (given := next(filter(Path.is_file, places), None)) is None:
        raise InputError(
            f"its entities are missing: no file {places[0].name} in this folder or that of gold",
            file=file,
            remedy="add it",
        )
    return given


def _is_docred(path: Path) -> bool:
    start = read_head(path)
    return any(f'"{key}"' in start for key in DOCRED_KEYS)


def _iter_elements(value: Any) -> Iterator[Any]:
    """Yield the entities of a record, of all its sentences."""
    for element in value if isinstance(value, list) else ():
        if isinstance(element, list) and all(isinstance(part, list) for part in element):
            yield from _iter_elements(element)
        else:
            yield element


def _describe_links(all_listings: Sequence[FileListing], options: Options) -> tuple[str, ...]:
    """Return a sentence on relations and events that are not scored.

    Raises
    ------
    InputError
        Files hold relations or events and no metric is named. The user may want to compare these.
    """
    texts = {kind: text for kind in LINKS if (text := _describe_count(kind, all_listings))}
    links = " and ".join(texts.values())
    if links and not options.metrics:
        raise InputError(
            f"{links}: name a metric. {spell('metrics', 'relation-f1')} compares these, and "
            f"{spell('metrics', 'f1')}, precision or recall compares only the entities (in a plan: metrics)"
        )
    kinds = " and ".join(texts).capitalize()
    return (f"{kinds} are not scored, the scores are of entities alone: the files hold {links}",) if links else ()


def _describe_count(kind: str, all_listings: Sequence[FileListing]) -> str:
    """Return how many relations (or another kind) the files hold and in how many places, or ""."""
    holders = [listing for listing in all_listings if kind in listing.unscored]
    if not holders:
        return ""
    numbers = [number for listing in holders for number in listing.unscored[kind]]
    has_files = any(listing.path.is_dir() or _is_annotation_file(listing.path) for listing in holders)
    container = "file" if has_files else "document"
    per_file = ", ".join(f"{sum(listing.unscored[kind]):,} in {listing.path}" for listing in holders)
    noun = kind if sum(numbers) != 1 else kind.removesuffix("s")
    return f"{sum(numbers):,} {noun} in {len(numbers):,} {container}{'s' * (len(numbers) > 1)} ({per_file})"


def count_unscored(record: Mapping[str, Any], key: str) -> dict[str, int]:
    """Count the relations and events in a record outside the scored list.

    Examples
    --------
    >>> count_unscored({"ner": [[0, 1, "PER"]], "relations": [[[0, 1, 4, 4, "at"]], []], "events": []}, "ner")
    {'relations': 1, 'events': 0}
    """
    counts: dict[str, int] = {}
    for part in (record, *(part for part in record.get("passages") or () if isinstance(part, dict))):
        for name, value in part.items():
            kind = next((kind for kind in LINKS if name.lower().endswith(kind)), None)
            if kind is not None and name != key and isinstance(value, list):
                # an element is a relation, or a list of relations
                has_lists = (isinstance(e, list) and all(isinstance(part, list) for part in e) for e in value)
                links = (len(e) if is_list else 1 for e, is_list in zip(value, has_lists, strict=True))
                counts[kind] = counts.get(kind, 0) + sum(links)
    return counts
