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
from sigdask.counts.fields import objects
from sigdask.errors import InputError
from sigdask.formats.reading.json.records import head, id_names, id_of, is_json
from sigdask.formats.reading.listings import FileListing, first_files, folder, gather, named, of_records
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.rows import delimited_rows, header_of
from sigdask.formats.spans.annotations import SUFFIX, is_pubtator, read_ann, read_pubtator
from sigdask.formats.spans.items import END_NAMES, START_NAMES, Span, entities_of, holds_entities, span_of_row, spans_of
from sigdask.formats.spans.matching import ListFields, exact_matches, one_to_one

PREDICTED_NAMES = ("pred_extracts", "predicted_ner", "predicted_spans", "predicted_entities", "pred_spans",
                   "pred_entities", "pred_ner", "predictions", "prediction", "predicted", "preds", "pred",
                   "output", "response")  # fmt: skip
GOLD_NAMES = ("gold_spans", "gold_entities", "gold_ner", "gold_extracts", "gold")
SPAN_NAMES = ("spans", "entities", "ents", "ner", "entity_mentions", "mentions", "extracts", "annotations", "labels",
              "label", "tags", "passages")  # fmt: skip

LINKS = ("relations", "events")
"""What may be meant by whoever compares such files, and is not scored."""

BESIDE = ("attributes", "normalizations")
"""What else annotates spans and is not scored."""

_OFFSETS = (
    rf'"({"|".join(START_NAMES)}|offsets?|span)"\s*:\s*\[?\s*"?[\[\d]|\[\s*(\[\s*)+("[^"]*"\s*,\s*)?\d+\s*,\s*\d+'
)


def read_spans(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read spans of documents or sentences."""
    options.only("spans", spans=(), match=("auto", "exact", "ceaf"))
    of_gold = GOLD_NAMES if gold is None else (*GOLD_NAMES, *SPAN_NAMES)
    if gold is None and not _holds_gold(sources[0].path, options):
        raise InputError("format spans: no gold spans; give --gold FILE or FOLDER")
    right = _listing(options, options.gold_column, of_gold, gold or sources[0].path)
    slots = _are_slots(options, right)
    read = _reader(options, slots=slots)
    right = right.mapped(read)
    names = (*PREDICTED_NAMES, *SPAN_NAMES)
    systems = named(sources, lambda path: _listing(options, options.prediction_column, names, path).mapped(read))
    scope, notes = _unscored([right, *systems.values()], options)
    aligned = gather(right, systems, options, {} if slots else frozenset())
    matches = one_to_one if slots else exact_matches
    fields = ListFields.of(aligned.gold, list(aligned.systems.values()), matches)
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
        outputs=Outputs(tuple(objects(column) for column in aligned.systems.values()), objects(aligned.gold)),
        suggested=("f1", "macro-f1") if fields.labels else ("f1",),
        warnings=(*aligned.warnings, *notes),
        scope=scope,
    )


def _unscored(listings: Sequence[FileListing], options: Options) -> tuple[tuple[str, ...], list[str]]:
    """Return the scope of the scores, and warnings of what else is not scored.

    Raises
    ------
    InputError
        Where files hold relations or events and no metric is named: whoever compares such files may mean these.
    """
    texts = {kind: text for kind in (*LINKS, *BESIDE) if (text := _counted(kind, listings))}
    links = " and ".join(texts[kind] for kind in LINKS if kind in texts)
    if links and not options.metrics:
        raise InputError(
            f"{links}: sigdask does not score these. Name a metric to compare the entities alone (--metric f1, "
            f"precision or recall; in a plan metrics), or remove them from the files"
        )
    kinds = " and ".join(kind for kind in LINKS if kind in texts).capitalize()
    scope = (f"{kinds} are not scored, the scores are of entities alone: the files hold {links}",) if links else ()
    return scope, [f"not scored: {texts[kind]}" for kind in BESIDE if kind in texts]


def _counted(kind: str, listings: Sequence[FileListing]) -> str:
    """Say how many relations (or another kind) the files hold, in how many places; nothing where there are none."""
    listings = [listing for listing in listings if kind in listing.unscored]
    if not listings:
        return ""
    numbers = [number for listing in listings for number in listing.unscored[kind]]
    place = "file" if any(listing.path.is_dir() or _is_ann(listing.path) for listing in listings) else "document"
    of_each = ", ".join(f"{sum(listing.unscored[kind]):,} in {listing.path}" for listing in listings)
    what = kind if sum(numbers) != 1 else kind.removesuffix("s")
    return f"{sum(numbers):,} {what} in {len(numbers):,} {place}{'s' * (len(numbers) > 1)} ({of_each})"


def unscored_of(record: Mapping[str, Any], key: str) -> dict[str, int]:
    """Return how many relations and events a record holds beside the list that is scored.

    Examples
    --------
    >>> unscored_of({"ner": [[0, 1, "PER"]], "relations": [[[0, 1, 4, 4, "at"]], []], "events": []}, "ner")
    {'relations': 1, 'events': 0}
    """
    found: dict[str, int] = {}
    for part in (record, *(part for part in record.get("passages") or () if isinstance(part, dict))):
        for name, value in part.items():
            kind = next((kind for kind in LINKS if name.lower().endswith(kind)), None)
            if kind is not None and name != key and isinstance(value, list):
                found[kind] = found.get(kind, 0) + sum(map(_n_links, value))
    return found


def _n_links(element: Any) -> int:
    """Count a relation as one, and the list of a sentence's relations as its length."""
    is_list_of_lists = isinstance(element, list) and all(isinstance(part, list) for part in element)
    return len(element) if is_list_of_lists else 1


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Whether the first file holds spans: .ann files, offsets in JSON, columns of offsets."""
    path = sources[0].path
    if gold is None:
        return _holds_gold(path, options) and '_extracts"' in head(path)
    if path.is_dir():
        return any(_is_ann(file) for file in first_files(path))
    if _is_ann(path):
        return True
    start = head(path)
    if not start.lstrip().startswith(("{", "[")):
        return is_pubtator(start) or _has_offsets(header_of(start))
    asked = (options.own.get("spans"), options.prediction_column)
    names = "|".join(re.escape(name) for name in (*asked, *PREDICTED_NAMES, *SPAN_NAMES) if name)
    if re.search(rf'"({names})"\s*:\s*[\[{{]', start) is None:
        return False
    heads = start if gold.is_dir() else start + head(gold)
    return re.search(_OFFSETS, heads) is not None or re.search(r'"(pred_)?extracts"\s*:\s*\{', start) is not None


def _is_ann(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(SUFFIX)


def _listing(options: Options, column: str | None, names: Sequence[str], path: Path) -> FileListing:
    """Read what stands for spans, not yet taken apart."""
    listing = FileListing(path, {}, {})
    if path.is_dir():
        for item, file in folder(path, (SUFFIX,)):
            spans, unscored = read_ann(file)
            listing.add(item, spans, f"file {file.name}")
            listing.add_unscored(unscored)
        return listing
    if _is_ann(path):
        spans, unscored = read_ann(path)
        listing.add("1", spans, "line 1")
        listing.add_unscored(unscored)
        return replace(listing, has_ids=False)
    if is_pubtator(head(path)):
        return read_pubtator(listing)
    wanted = column or options.own.get("spans")
    if is_json(path):
        return of_records(
            path, lambda record: _key(record, wanted, names), "spans", options, by_label=True, unscored_of=unscored_of
        )
    return _of_rows(listing, options)


def _holds_gold(path: Path, options: Options) -> bool:
    """Whether a system's file says what is right as well."""
    if path.is_dir() or not is_json(path):
        return False
    start = head(path)
    return any(f'"{name}"' in start for name in (options.gold_column, *GOLD_NAMES) if name)


def _are_slots(options: Options, gold: FileListing) -> bool:
    """Whether labels are slots filled by entities: as asked for, or as the gold data are."""
    match = options.own.get("match", "auto")
    if match != "auto":
        return match == "ceaf"
    return any(holds_entities(value) for value in gold.items.values())


def _reader(options: Options, *, slots: bool) -> Callable[[Any, str], Any]:
    """Return what takes the value of an item apart into spans, or entities by slot."""
    mapped = {source: target for target, sources in options.label_map for source in sources}

    def read(value: Any, where: str) -> Any:
        return entities_of(value, where, mapped) if slots else as_set(spans_of(value, where), mapped)

    return read


def as_set(spans: Iterator[Span], mapped: Mapping[str, str]) -> frozenset[Any]:
    """Return distinct spans; of those known by text alone, repeated ones are told apart by number."""
    found: set[Any] = set()
    repeated: dict[Any, int] = {}
    for label, place in spans:
        span = (mapped.get(label, label), place)
        if isinstance(place, str):
            repeated[span] = repeated.get(span, 0) + 1
            found.add((*span, repeated[span]))
        else:
            found.add(span)
    return frozenset(found)


def _key(record: Mapping[str, Any], wanted: str | None, names: Sequence[str]) -> str | None:
    """Return the key of the spans: the one asked for, or the first conventional one with a list."""
    if wanted is not None and wanted in record:
        return wanted
    return next((name for name in names if name in record and isinstance(record[name], list | dict | None)), None)


def _has_offsets(columns: Sequence[str]) -> bool:
    """Whether a start and an end are among the columns."""
    lowered = {column.lower() for column in columns}
    return not lowered.isdisjoint(START_NAMES) and not lowered.isdisjoint(END_NAMES)


def _of_rows(listing: FileListing, options: Options) -> FileListing:
    """Read one span a row, under a header that names document, start, end and label."""
    path = listing.path
    rows = delimited_rows(path)
    _, header = next(rows)
    names = [name.strip() for name in header]
    if not _has_offsets(names):
        raise InputError(f"{path}: found columns {', '.join(names)}; expected a document's id, start, end and label")
    ids = id_names(dict.fromkeys(names), options)
    if not ids:
        raise InputError(f"{path}: which column names the document? Columns: {', '.join(names)}; give --id COLUMN")
    for line, cells in rows:
        record = dict(zip(names, (cell.strip() for cell in cells), strict=True))
        parts = id_of(path, f"line {line}", record, ids)
        if "/".join(parts) not in listing.items:
            listing.add_parts(ids, parts, [], f"line {line}")
        listing.items["/".join(parts)] += span_of_row(record, f"{path}, line {line}")
    return replace(listing, complete=False)
