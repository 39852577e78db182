"""Labelled spans of documents: JSON, brat folders, PubTator, tables of offsets; and slots filled by entities.

A span is right if a gold span has the same offsets and label (exact match). If labels are slots that are filled by
entities, which are lists of alternative mentions, entities are matched one to one within document and slot (CEAF, Luo
2005; strict as in GRIT, Du et al. 2021), and the matches are summed.

In JSON a span is [start, end, label], an object, or text alone. Lines of brat are `T1<tab>LABEL 0 5;8 12<tab>text`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sigdask.counts import Counts
from sigdask.counts.checks import describe_foreign_types
from sigdask.errors import InputError
from sigdask.formats.reading import listings
from sigdask.formats.reading.files import check_filled, enumerate_lines, parse_header, read_delimited_rows
from sigdask.formats.reading.json_records import find_id_keys, get_id_parts, is_json, read_head, read_records
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.spans.matching import build_list_counts, count_entity_matches, count_exact_matches, count_labelled
from sigdask.formats.spans.relations import (
    Span,
    SpanPosition,
    collect_relations,
    describe_foreign,
    get_docred_facts,
    iter_json_relations,
    parse_ann_span,
    read_ann_relations,
)
from sigdask.interface import spell
from sigdask.metrics.labels import RELATION_MATCHES

START_NAMES = ("start", "start_offset", "start_char", "char_start", "startoffset", "start_index", "start_pos",
               "begin", "begin_offset", "begin_char", "beginoffset", "off0")  # fmt: skip
END_NAMES = ("end", "end_offset", "end_char", "char_end", "endoffset", "end_index", "end_pos", "stop",
             "off1")  # fmt: skip
LABEL_NAMES = ("label", "labels", "type", "entity_type", "entity_group", "entity_label", "ner_label", "entity", "tag",
               "category", "class", "mark", "role")  # fmt: skip
TEXT_NAMES = ("text", "surface", "word", "mention", "name", "span", "term", "string", "phrase")
FRAGMENT_NAMES = ("offsets", "fragments", "spans", "span", "indices", "position", "positions", "offset")

NESTED_NAMES = ("annotations", "result")
"""Names of fields whose lists hold spans one level deeper: passages of BioC, annotations of Label Studio."""


Entities = dict[str, tuple[frozenset[str], ...]]
"""Entities by slot. Each is the set of its mentions."""


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
        nested = _find(element, NESTED_NAMES) if isinstance(element, dict) else None
        if isinstance(nested, list):
            yield from iter_spans(nested, where, label)
        elif isinstance(element, list) and all(isinstance(part, list) for part in element):
            yield from iter_spans(element, where, label)
        else:
            yield _parse_span(element, where, label)


def _find(fields: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value of the first of some names that a record has, or None."""
    return next((fields[name] for name in names if name in fields), None)


def parse_row_span(record: Mapping[str, str], where: str) -> list[Any]:
    """Return the span of a table row as a list of one [offsets, label], or an empty list if the row has no offsets."""
    cells = {name.lower(): text for name, text in record.items()}
    start, end = _find(cells, START_NAMES), _find(cells, END_NAMES)
    if not start and not end:
        return []
    label = _find(cells, LABEL_NAMES) or ""
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
        for entity in filter(None, entities or []):
            mentions = set()
            for part in entity if isinstance(entity, list) else [entity]:
                if (mention := _get_mention_text(part)) is None:
                    raise InputError(
                        f"{where}, {slot!r}: found {str(part)[:40]}, expected a mention: a text, or text and offset"
                    )
                mentions.add(" ".join(listings.normalize_words(mention)))
            slots[name] = (*slots.get(name, ()), frozenset(mentions))
        slots.setdefault(name, ())
    return slots


def _get_mention_text(part: Any) -> str | None:
    """Return the text of a mention: a text, [text, offset] or an object with a text."""
    if isinstance(part, list) and part:
        part = part[0]
    if isinstance(part, dict):
        part = _find(part, TEXT_NAMES)
    return part if isinstance(part, str) else None


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
    start, end = _find(lowered, START_NAMES), _find(lowered, END_NAMES)
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
    match element:
        case [list(fragments), *rest]:
            return str(rest[0]) if rest else label, _parse_fragments(fragments, where)
        case [str(name), list(fragments)]:
            return name, _parse_fragments(fragments, where)
        case [str(text), str(name)]:
            return name, text
        case [str(start), str(end), str(name), *_] | [str(name), start, end, *_]:
            return name, _parse_offsets(start, end, where)
        case [start, end, *rest] if not isinstance(start, str):
            return str(rest[0]) if rest and rest[0] is not None else label, _parse_offsets(start, end, where)
    raise _span_error(element, where)


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


SUFFIXES = (".ann", ".a2")
"""Endings of annotations in brat's notation; the second comes with `.a1`, which has the given entities."""

UNSCORED = {"R": "relations", "*": "relations", "E": "events", "A": "attributes", "M": "attributes",
            "N": "normalizations"}  # fmt: skip
"""Meaning of lines that hold no span, by their first letter. Notes (#) are ignored."""


def read_ann(path: Path) -> tuple[list[list[object]], Counter[str]]:
    """Return spans as [fragments, label], and the numbers of relations, events and other annotations.

    Raises
    ------
    InputError
        A T line has another form.
    """
    spans: list[list[object]] = []
    unscored = Counter[str]()
    for number, line in enumerate_lines(path):
        if line.startswith("T"):
            spans.append(parse_ann_span(line, f"{path}, line {number}")[1])
        elif kind := UNSCORED.get(line[:1]):
            unscored[kind] += 1
    return spans, unscored


_TEXT_LINE = re.compile(r"([^|\t\s]+)\|[ta]\|")


def is_pubtator(start: str) -> bool:
    """Return whether the beginning of a file looks like PubTator.

    Examples
    --------
    >>> is_pubtator("1234|t|A title"), is_pubtator("a|b|c")
    (True, False)
    """
    return _TEXT_LINE.match(start.lstrip()) is not None


def read_pubtator(listing: listings.FileListing) -> listings.FileListing:
    """Add the documents of a PubTator file to the listing, with [start, end, type] for each annotation.

    Raises
    ------
    InputError
        A line is neither text nor annotation nor relation.
    """
    path = listing.path
    relations = Counter[str]()
    for number, line in enumerate_lines(path):
        if not line.strip():
            continue
        cells = line.rstrip("\r\n").split("\t")
        match = _TEXT_LINE.match(line)
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


PREDICTED_NAMES = ("pred_extracts", "predicted_ner", "predicted_spans", "predicted_entities", "pred_spans",
                   "pred_entities", "pred_ner", "predictions", "prediction", "predicted", "preds", "pred",
                   "output", "response")  # fmt: skip
GOLD_NAMES = ("gold_spans", "gold_entities", "gold_ner", "gold_extracts", "gold")
SPAN_NAMES = ("spans", "entities", "ents", "ner", "entity_mentions", "mentions", "extracts", "annotations", "labels",
              "label", "tags", "passages")  # fmt: skip

RELATION_NAMES = ("relations", "relation", "rels", "triples")
PREDICTED_RELATION_NAMES = ("predicted_relations", "pred_relations", "relations_pred")
GOLD_RELATION_NAMES = ("gold_relations", "relations_gold")

LINKS = ("relations", "events")
"""Annotations that metrics of entities do not score, although users may expect it."""

OTHER_ANNOTATIONS = ("attributes", "normalizations")
"""Other annotations of spans that are not scored."""

DOCRED_KEYS = ("vertexSet", "h_idx")
"""Of a gold document, and of a predicted fact."""

_OFFSETS = (
    rf'"({"|".join(START_NAMES)}|offsets?|span)"\s*:\s*\[?\s*"?[\[\d]|\[\s*(\[\s*)+("[^"]*"\s*,\s*)?\d+\s*,\s*\d+'
)

_RELATIONS = (
    rf'"({"|".join(RELATION_NAMES + PREDICTED_RELATION_NAMES)})"\s*:\s*\[\s*\{{[^{{}}]*"(head|tail)"\s*:|"h_idx"\s*:'
)


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


def _read_relations(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read the relations of documents, with fields for each way to match their arguments."""
    label_map = options.label_mapping
    symmetric = options.own.get("symmetric", "").split("+")

    def read(path: Path, names: Sequence[str], span_names: Sequence[str]) -> listings.FileListing:
        listing = _read_relation_listing(path, names, span_names, options, gold)
        return listing.convert_values(lambda value, where: collect_relations(value(where), label_map, symmetric))

    gold_names = (*GOLD_RELATION_NAMES, *RELATION_NAMES) if gold is not None else GOLD_RELATION_NAMES
    gold_listing = read(gold or sources[0].path, gold_names, (*GOLD_NAMES, *SPAN_NAMES))
    names, span_names = (*PREDICTED_RELATION_NAMES, *RELATION_NAMES), (*PREDICTED_NAMES, *SPAN_NAMES)
    systems = listings.read_by_system(sources, lambda path: read(path, names, span_names))
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
    notes = describe_foreign(strict.gold, strict.systems)
    return build_list_counts(strict, fields, suggested=("relation-f1",), warnings=(*aligned.warnings, *notes))


def _read_relation_listing(
    path: Path, names: Sequence[str], span_names: Sequence[str], options: Options, gold: Path | None
) -> listings.FileListing:
    """Return the listing of relations: for each document a function that reads them and names a location in errors."""

    def parse(value: Any, where: str) -> Span:
        return _parse_span(value, where, "")

    def get_relations(record: Mapping[str, Any], key: str) -> Any:
        span_key = _find_key(record, options.own.get("spans"), span_names)
        entities = list(_iter_elements(record[span_key])) if span_key is not None else []
        return lambda where: iter_json_relations(record[key], entities, parse, where)

    listing = listings.FileListing(path, {}, {})
    if path.is_dir() or _is_annotation_file(path):
        folder = listings.iter_folder(path, SUFFIXES) if path.is_dir() else [("1", path)]
        for item, file in folder:
            relations = read_ann_relations(file, parse, _find_given_entities(file, item, gold))
            location = f"file {file.name}" if path.is_dir() else "line 1"
            listing.add(item, lambda _where, relations=relations: relations, location)
        return replace(listing, has_ids=path.is_dir())
    if not is_json(path):
        raise InputError(
            "has no relations: they are read only from .ann or .a2 files of brat, and from JSON", file=path
        )
    if (facts := _read_docred(path)) is not None:
        return facts
    find_key = partial(_find_key, requested=options.own.get("relations"), names=names)
    return listings.read_listing(path, find_key, "relations", options, get_value=get_relations)


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


def _read_docred(path: Path) -> listings.FileListing | None:
    """Return the facts of each document of DocRED, or None for other files."""
    if not _is_docred(path):
        return None
    listing = listings.FileListing(path, {}, {}, complete='"vertexSet"' in read_head(path))
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


def _iter_elements(value: Any) -> Iterator[Any]:
    """Yield the entities of a record, of all its sentences."""
    for element in value if isinstance(value, list) else ():
        if isinstance(element, list) and all(isinstance(part, list) for part in element):
            yield from _iter_elements(element)
        else:
            yield element


def _read_entities(sources: Sequence[Source], gold: Path | None, options: Options, *, scores_links: bool) -> Counts:
    gold_names = GOLD_NAMES if gold is None else (*GOLD_NAMES, *SPAN_NAMES)
    gold_listing = _read_listing(options, options.gold_column, gold_names, gold or sources[0].path)
    match = options.own.get("match", "auto")
    has_slots = match == "ceaf" if match != "auto" else any(map(has_entities, gold_listing.items.values()))
    label_map = options.label_mapping

    def parse(value: Any, where: str) -> Any:
        if has_slots:
            return parse_entities(value, where, label_map)
        return collect_spans(iter_spans(value, where), label_map)

    gold_listing = gold_listing.convert_values(parse)
    names = (*PREDICTED_NAMES, *SPAN_NAMES)
    read = partial(_read_listing, options, options.prediction_column, names)
    systems = listings.read_by_system(sources, lambda path: read(path).convert_values(parse))
    scope, notes = _describe_unscored([gold_listing, *systems.values()], options, scores_links=scores_links)
    aligned = listings.align_listings(gold_listing, systems, options, {} if has_slots else frozenset())
    count_matches = count_entity_matches if has_slots else count_exact_matches
    fields, labels, others = count_labelled(aligned.gold, list(aligned.systems.values()), count_matches)
    if others and not has_slots:
        given = {name: [label for spans in column for label, *_ in spans] for name, column in aligned.systems.items()}
        notes = [*notes, *describe_foreign_types(labels, given)]
    return build_list_counts(
        aligned,
        fields,
        labels=labels,
        predicted_labels=others,
        suggested=("f1", "macro-f1") if labels else ("f1",),
        warnings=(*aligned.warnings, *notes),
        scope=scope,
    )


def _describe_unscored(
    all_listings: Sequence[listings.FileListing], options: Options, *, scores_links: bool
) -> tuple[tuple[str, ...], list[str]]:
    """Return a sentence on relations and events that are not scored, and warnings on other unscored annotations.

    Raises
    ------
    InputError
        Files hold relations or events and no metric is named. The user may want to compare these.
    """
    kinds_to_count = OTHER_ANNOTATIONS if scores_links else (*LINKS, *OTHER_ANNOTATIONS)
    texts = {kind: text for kind in kinds_to_count if (text := _describe_count(kind, all_listings))}
    links = " and ".join(texts[kind] for kind in LINKS if kind in texts)
    if links and not options.metrics:
        raise InputError(
            f"{links}: name a metric. {spell('metrics', 'relation-f1')} compares these, and "
            f"{spell('metrics', 'f1')}, precision or recall compares only the entities (in a plan: metrics)"
        )
    kinds = " and ".join(kind for kind in LINKS if kind in texts).capitalize()
    scope = (f"{kinds} are not scored, the scores are of entities alone: the files hold {links}",) if links else ()
    return scope, [f"not scored: {texts[kind]}" for kind in OTHER_ANNOTATIONS if kind in texts]


def _describe_count(kind: str, all_listings: Sequence[listings.FileListing]) -> str:
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


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Return whether the first file holds spans: .ann files, offsets in JSON, columns of offsets."""
    path = sources[0].path
    if gold is None:
        return _has_gold(path, options) and '_extracts"' in read_head(path)
    if path.is_dir():
        return any(_is_annotation_file(file) for file in listings.list_first_files(path))
    if _is_annotation_file(path):
        return True
    start = read_head(path)
    if not start.lstrip().startswith(("{", "[")):
        return is_pubtator(start) or _has_offsets(parse_header(start))
    requested = (options.own.get("spans"), options.prediction_column)
    names = "|".join(re.escape(name) for name in (*requested, *PREDICTED_NAMES, *SPAN_NAMES) if name)
    if re.search(rf'"({names})"\s*:\s*[\[{{]', start) is None:
        return re.search(_RELATIONS, start) is not None
    heads = start if gold.is_dir() else start + read_head(gold)
    return re.search(_OFFSETS, heads) is not None or re.search(r'"(pred_)?extracts"\s*:\s*\{', start) is not None


def _is_annotation_file(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(SUFFIXES)


def _read_listing(options: Options, column: str | None, names: Sequence[str], path: Path) -> listings.FileListing:
    """Read the values that hold spans, without parsing the spans."""
    listing = listings.FileListing(path, {}, {})
    if path.is_dir() or _is_annotation_file(path):
        folder = listings.iter_folder(path, SUFFIXES) if path.is_dir() else [("1", path)]
        for item, file in folder:
            spans, unscored = read_ann(file)
            listing.add(item, spans, f"file {file.name}" if path.is_dir() else "line 1")
            listing.add_unscored(unscored)
        return replace(listing, has_ids=path.is_dir())
    if is_pubtator(read_head(path)):
        return read_pubtator(listing)
    requested = column or options.own.get("spans")
    if is_json(path):
        if requested is None and _is_docred(path):
            raise InputError(
                "has facts of DocRED, which need a metric of relations",
                file=path,
                remedy=f"add {spell('metrics', 'relation-f1')}",
            )

        def find_key(record: Mapping[str, Any]) -> str | None:
            key = _find_key(record, requested, names)
            if key is None and not record.keys().isdisjoint(RELATION_NAMES + PREDICTED_RELATION_NAMES):
                raise InputError(
                    "has relations, but no list of entities. To compare the relations, add "
                    f"{spell('metrics', 'relation-f1')} (in a plan: metrics). Else name the key of the entities: "
                    f"{spell('format', 'spans:spans=KEY')}",
                    file=path,
                )
            return key

        return listings.read_listing(path, find_key, "spans", options, by_label=True, count_unscored=count_unscored)
    return _read_rows(listing, options)


def _has_gold(path: Path, options: Options) -> bool:
    """Return whether a system's file also holds the gold standard."""
    if path.is_dir() or not is_json(path):
        return False
    start = read_head(path)
    return any(f'"{name}"' in start for name in (options.gold_column, *GOLD_NAMES) if name)


def collect_spans(spans: Iterator[Span], label_map: Mapping[str, str]) -> frozenset[Any]:
    """Return distinct spans; spans without offsets are numbered if they occur several times."""
    distinct: set[Any] = set()
    repeated: dict[Any, int] = {}
    for label, position in spans:
        span = (label_map.get(label, label), position)
        if isinstance(position, str):
            repeated[span] = repeated.get(span, 0) + 1
            distinct.add((*span, repeated[span]))
        else:
            distinct.add(span)
    return frozenset(distinct)


def _find_key(record: Mapping[str, Any], requested: str | None, names: Sequence[str]) -> str | None:
    """Return the key of the spans: the requested key, or the first conventional key that has a list."""
    if requested is not None and requested in record:
        return requested
    return next((name for name in names if name in record and isinstance(record[name], list | dict | None)), None)


def _has_offsets(columns: Sequence[str]) -> bool:
    """Return whether the columns include a start and an end."""
    lowered = {column.lower() for column in columns}
    return not lowered.isdisjoint(START_NAMES) and not lowered.isdisjoint(END_NAMES)


def _read_rows(listing: listings.FileListing, options: Options) -> listings.FileListing:
    """Read one span per row; the header names the document, start, end and label."""
    path = listing.path
    rows = read_delimited_rows(path)
    _, header = next(rows)
    names = [name.strip() for name in header]
    if not _has_offsets(names):
        raise InputError(f"found columns {', '.join(names)}; expected a document's id, start, end and label", file=path)
    ids = find_id_keys(dict.fromkeys(names), options)
    if not ids:
        raise InputError(
            f"which column names the document? Columns: {', '.join(names)}",
            file=path,
            remedy=f"give {spell('columns', 'item=COLUMN')}",
        )
    for line, cells in rows:
        record = dict(zip(names, (cell.strip() for cell in cells), strict=True))
        parts = get_id_parts(path, f"line {line}", record, ids)
        if "/".join(parts) not in listing.items:
            listing.add_parts(ids, parts, [], f"line {line}")
        listing.items["/".join(parts)] += parse_row_span(record, f"{path}, line {line}")
    return replace(listing, complete=False)
