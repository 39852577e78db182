"""Labelled spans of documents: JSON, brat folders, tables of offsets; and slots filled by entities.

A span is right where its offsets and its label are those of a gold span (exact match). Where labels
are slots filled by entities, lists of alternative mentions, entities are matched one to one within
document and slot (CEAF, Luo 2005; strict as in GRIT, Du et al. 2021) and the matches are summed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import to_object_array
from sigdask.errors import InputError
from sigdask.formats.reading.json.records import find_id_keys, get_id_parts, is_json, read_head
from sigdask.formats.reading.listings import (
    FileListing,
    align_listings,
    iter_folder,
    list_first_files,
    read_by_system,
    read_listing,
)
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.rows import parse_header, read_delimited_rows
from sigdask.formats.spans.annotations import SUFFIX, is_pubtator, read_ann, read_pubtator
from sigdask.formats.spans.items import (
    END_NAMES,
    START_NAMES,
    Span,
    has_entities,
    iter_spans,
    parse_entities,
    parse_row_span,
)
from sigdask.formats.spans.matching import ListFields, count_entity_matches, count_exact_matches

PREDICTED_NAMES = ("pred_extracts", "predicted_ner", "predicted_spans", "predicted_entities", "pred_spans",
                   "pred_entities", "pred_ner", "predictions", "prediction", "predicted", "preds", "pred",
                   "output", "response")  # fmt: skip
GOLD_NAMES = ("gold_spans", "gold_entities", "gold_ner", "gold_extracts", "gold")
SPAN_NAMES = ("spans", "entities", "ents", "ner", "entity_mentions", "mentions", "extracts", "annotations", "labels",
              "label", "tags", "passages")  # fmt: skip

LINKS = ("relations", "events")
"""What may be meant by whoever compares such files, and is not scored."""

OTHER_ANNOTATIONS = ("attributes", "normalizations")
"""What else annotates spans and is not scored."""

_OFFSETS = (
    rf'"({"|".join(START_NAMES)}|offsets?|span)"\s*:\s*\[?\s*"?[\[\d]|\[\s*(\[\s*)+("[^"]*"\s*,\s*)?\d+\s*,\s*\d+'
)


def read_spans(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read spans of documents or sentences."""
    options.check_format_options("spans", spans=(), match=("auto", "exact", "ceaf"))
    gold_names = GOLD_NAMES if gold is None else (*GOLD_NAMES, *SPAN_NAMES)
    if gold is None and not _has_gold(sources[0].path, options):
        raise InputError("format spans: no gold spans; give --gold FILE or FOLDER")
    gold_listing = _read_listing(options, options.gold_column, gold_names, gold or sources[0].path)
    has_slots = _are_slots(options, gold_listing)
    parse_items = _build_parser(options, slots=has_slots)
    gold_listing = gold_listing.convert_values(parse_items)
    names = (*PREDICTED_NAMES, *SPAN_NAMES)
    systems = read_by_system(
        sources, lambda path: _read_listing(options, options.prediction_column, names, path).convert_values(parse_items)
    )
    scope, notes = _describe_unscored([gold_listing, *systems.values()], options)
    aligned = align_listings(gold_listing, systems, options, {} if has_slots else frozenset())
    count_matches = count_entity_matches if has_slots else count_exact_matches
    fields = ListFields.from_outputs(aligned.gold, list(aligned.systems.values()), count_matches)
    return Counts(
        systems=tuple(systems),
        fields=fields,
        n_items=aligned.n_items,
        name=options.name,
        ids=aligned.ids,
        groups=aligned.groups,
        labels=fields.labels,
        predicted_labels=fields.others,
        present=aligned.present,
        outputs=Outputs(
            tuple(to_object_array(column) for column in aligned.systems.values()), to_object_array(aligned.gold)
        ),
        suggested=("f1", "macro-f1") if fields.labels else ("f1",),
        warnings=(*aligned.warnings, *notes),
        scope=scope,
    )


def _describe_unscored(listings: Sequence[FileListing], options: Options) -> tuple[tuple[str, ...], list[str]]:
    """Return a sentence on relations and events that are not scored, and warnings on other unscored annotations.

    Raises
    ------
    InputError
        Where files hold relations or events and no metric is named: whoever compares such files may mean these.
    """
    texts = {kind: text for kind in (*LINKS, *OTHER_ANNOTATIONS) if (text := _describe_count(kind, listings))}
    links = " and ".join(texts[kind] for kind in LINKS if kind in texts)
    if links and not options.metrics:
        raise InputError(
            f"{links}: sigdask does not score these. Name a metric to compare the entities alone (--metric f1, "
            f"precision or recall; in a plan metrics), or remove them from the files"
        )
    kinds = " and ".join(kind for kind in LINKS if kind in texts).capitalize()
    scope = (f"{kinds} are not scored, the scores are of entities alone: the files hold {links}",) if links else ()
    return scope, [f"not scored: {texts[kind]}" for kind in OTHER_ANNOTATIONS if kind in texts]


def _describe_count(kind: str, listings: Sequence[FileListing]) -> str:
    """Return how many relations (or another kind) the files hold and in how many places, or ""."""
    listings = [listing for listing in listings if kind in listing.unscored]
    if not listings:
        return ""
    numbers = [number for listing in listings for number in listing.unscored[kind]]
    container = "file" if any(listing.path.is_dir() or _is_ann(listing.path) for listing in listings) else "document"
    per_file = ", ".join(f"{sum(listing.unscored[kind]):,} in {listing.path}" for listing in listings)
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
                counts[kind] = counts.get(kind, 0) + sum(map(_count_links, value))
    return counts


def _count_links(element: Any) -> int:
    """Return the number of relations in an element: 1, or the length if the element is a list of relations."""
    is_list_of_lists = isinstance(element, list) and all(isinstance(part, list) for part in element)
    return len(element) if is_list_of_lists else 1


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Return whether the first file holds spans: .ann files, offsets in JSON, columns of offsets."""
    path = sources[0].path
    if gold is None:
        return _has_gold(path, options) and '_extracts"' in read_head(path)
    if path.is_dir():
        return any(_is_ann(file) for file in list_first_files(path))
    if _is_ann(path):
        return True
    start = read_head(path)
    if not start.lstrip().startswith(("{", "[")):
        return is_pubtator(start) or _has_offsets(parse_header(start))
    requested = (options.own.get("spans"), options.prediction_column)
    names = "|".join(re.escape(name) for name in (*requested, *PREDICTED_NAMES, *SPAN_NAMES) if name)
    if re.search(rf'"({names})"\s*:\s*[\[{{]', start) is None:
        return False
    heads = start if gold.is_dir() else start + read_head(gold)
    return re.search(_OFFSETS, heads) is not None or re.search(r'"(pred_)?extracts"\s*:\s*\{', start) is not None


def _is_ann(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(SUFFIX)


def _read_listing(options: Options, column: str | None, names: Sequence[str], path: Path) -> FileListing:
    """Read the values that hold spans, without parsing the spans."""
    listing = FileListing(path, {}, {})
    if path.is_dir():
        for item, file in iter_folder(path, (SUFFIX,)):
            spans, unscored = read_ann(file)
            listing.add(item, spans, f"file {file.name}")
            listing.add_unscored(unscored)
        return listing
    if _is_ann(path):
        spans, unscored = read_ann(path)
        listing.add("1", spans, "line 1")
        listing.add_unscored(unscored)
        return replace(listing, has_ids=False)
    if is_pubtator(read_head(path)):
        return read_pubtator(listing)
    requested = column or options.own.get("spans")
    if is_json(path):
        return read_listing(
            path,
            lambda record: _find_key(record, requested, names),
            "spans",
            options,
            by_label=True,
            count_unscored=count_unscored,
        )
    return _read_rows(listing, options)


def _has_gold(path: Path, options: Options) -> bool:
    """Return whether a system's file also holds the gold standard."""
    if path.is_dir() or not is_json(path):
        return False
    start = read_head(path)
    return any(f'"{name}"' in start for name in (options.gold_column, *GOLD_NAMES) if name)


def _are_slots(options: Options, gold: FileListing) -> bool:
    """Return whether labels are slots filled by entities, as the options say or else the gold data show."""
    match = options.own.get("match", "auto")
    if match != "auto":
        return match == "ceaf"
    return any(has_entities(value) for value in gold.items.values())


def _build_parser(options: Options, *, slots: bool) -> Callable[[Any, str], Any]:
    """Return a function that parses an item's value into spans, or into entities by slot."""
    label_map = {source: target for target, sources in options.label_map for source in sources}

    def read(value: Any, where: str) -> Any:
        return parse_entities(value, where, label_map) if slots else collect_spans(iter_spans(value, where), label_map)

    return read


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


def _read_rows(listing: FileListing, options: Options) -> FileListing:
    """Read one span per row; the header names the document, start, end and label."""
    path = listing.path
    rows = read_delimited_rows(path)
    _, header = next(rows)
    names = [name.strip() for name in header]
    if not _has_offsets(names):
        raise InputError(f"{path}: found columns {', '.join(names)}; expected a document's id, start, end and label")
    ids = find_id_keys(dict.fromkeys(names), options)
    if not ids:
        raise InputError(f"{path}: which column names the document? Columns: {', '.join(names)}; give --id COLUMN")
    for line, cells in rows:
        record = dict(zip(names, (cell.strip() for cell in cells), strict=True))
        parts = get_id_parts(path, f"line {line}", record, ids)
        if "/".join(parts) not in listing.items:
            listing.add_parts(ids, parts, [], f"line {line}")
        listing.items["/".join(parts)] += parse_row_span(record, f"{path}, line {line}")
    return replace(listing, complete=False)
