"""Tagged sentences in JSON: lists of tags, or records with tags and tokens under keys with documented names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from sigdask.counts.factors import Codes
from sigdask.errors import InputError
from sigdask.formats.reading import json_records
from sigdask.formats.reading.options import DEFAULTS, Options
from sigdask.formats.tagging.chunks import is_chunk_tag
from sigdask.formats.tagging.sentences import FileColumns, SentenceCollector, TaggedFile
from sigdask.interface import spell

TOKEN_KEYS = ("tokens", "words", "token", "sentence", "text")
PREDICTED_KEYS = ("predictions", "prediction", "predicted", "pred", "preds", "pred_tags", "predicted_tags",
                  "pred_ner_tags", "predicted_ner_tags", "pred_labels", "predicted_labels", "y_pred", "output",
                  "hypothesis")  # fmt: skip
GOLD_KEYS = ("gold", "gold_tags", "gold_labels", "gold_ner_tags", "references", "reference", "y_true", "true_labels",
             "true_tags", "target", "targets")  # fmt: skip
TAG_KEYS = ("ner_tags", "tags", "labels", "ner", "tag_sequence", "bio_tags", "bio", "iob", "iob_tags", "chunk_tags",
            "pos_tags", "pos", "upos", "xpos", "label", "tag")  # fmt: skip
"""Names of the lists of tags: predicted, gold, and either."""

N_SNIFFED = 100
"""Records read to recognize the format."""

_START = re.compile(r'\s*+[\[{]++(?:\[?\s*+\]\s*+,\s*+\[?)*+(?:\r?\n\s*+[\[{]*+)*+"(?:[^"\\]|\\.)*+"\s*+[,:\]]')
"""Beginning of JSON that no line of columns has: only brackets, then a whole string."""


@dataclass(frozen=True, slots=True)
class TaggedRecord:
    """The tags of a sentence from JSON, with gold tags and tokens if the record has them.

    Attributes
    ----------
    place : str
        Position for error messages.
    number : int
        The line, or the count of records.
    tags : list
        Tags of the sentence.
    gold, tokens : list or None
        Gold tags and tokens, if the record has them.
    id, document : str or None
        Id of the record, and name of its document.
    keys : tuple of str
        Keys of the tags and of the gold tags.
    """

    place: str
    number: int
    tags: list[Any]
    gold: list[Any] | None = None
    tokens: list[Any] | None = None
    id: str | None = None
    document: str | None = None
    keys: tuple[str, ...] = ()


class SeveralKeysError(InputError):
    """Two keys of a record may hold the tags."""


class TagKeys(NamedTuple):
    """Groups of keys of tags and of gold tags. A group is used if a record has none of the groups before it."""

    label: Sequence[Sequence[str]]
    gold: Sequence[Sequence[str]]


def choose_keys(options: Options, *, has_gold: bool, only_gold: bool = False) -> TagKeys:
    """Return which keys hold the tags in a system's file (with or without gold tags) or in a gold file."""
    label = options.own.get("column") or options.prediction_column
    gold = options.own.get("gold-column") or options.gold_column
    golds = [[gold]] if gold else [GOLD_KEYS, TAG_KEYS]
    labels = [[label]] if label else [PREDICTED_KEYS, *([] if has_gold else [TAG_KEYS])]
    return TagKeys(golds, []) if only_gold else TagKeys(labels, golds if has_gold else [])


def is_json_file(path: Path) -> bool:
    """Return whether a file is JSON, damaged or not; a line of columns may also begin with a bracket."""
    start = json_records.read_head(path).lstrip()
    if not start.startswith(("{", "[")):
        return False
    if _START.match(start):
        return True
    try:
        _, end = json.JSONDecoder().raw_decode(start)
    except (ValueError, RecursionError):
        return False
    return start[end:].lstrip(" ")[:1] in {"", "\r", "\n"}


def sniff_records(path: Path, gold: Path | None, options: Options) -> bool:
    """Return whether the first records have lists of tags: chunk tags, or labels for as many tokens."""
    if _is_one_sentence(path):
        return '"B-' in json_records.read_head(path)
    records = _read_first(path, choose_keys(options, has_gold=gold is None))
    if gold is not None and is_json_file(gold) and not _is_one_sentence(gold):
        golds = _read_first(gold, choose_keys(options, has_gold=False, only_gold=True))
        if _are_chunk_tags(golds):
            return not records or _are_chunk_tags(records)  # if it finds none, the reader reports why
        return bool(records) and (_have_tokens(golds) or _have_tokens(records))
    return _are_chunk_tags(records) or (gold is None and _have_tokens(records))


def _read_first(path: Path, keys: TagKeys) -> list[TaggedRecord]:
    """Return the first sentences of a file, or none if they cannot be read as JSON."""
    try:
        first_records = list(islice(iter_sentences(path, keys, DEFAULTS), N_SNIFFED))
    except SeveralKeysError:
        raise
    except InputError:
        return []
    return first_records if any(sentence.tags for sentence in first_records) else []


def _are_chunk_tags(tag_records: Sequence[TaggedRecord]) -> bool:
    """Return whether the tags are O and chunk tags, some with a type."""
    tags = {str(tag) for sentence in tag_records for tag in sentence.tags}
    return all(map(is_chunk_tag, tags)) and ("O" in tags or any("-" in tag for tag in tags))


def _have_tokens(tag_records: Sequence[TaggedRecord]) -> bool:
    have_as_many = (s.tokens is not None and len(s.tokens) == len(s.tags) for s in tag_records)
    return len(tag_records) > 0 and all(have_as_many)


def read_tagged_records(path: Path, keys: TagKeys, options: Options, labels: Codes, tokens: Codes) -> TaggedFile:
    """Read tagged sentences from a JSON file.

    Raises
    ------
    InputError
        A record has no tags, tags are numbers, or the numbers of tokens, gold tags and tags differ.
    """
    collector = SentenceCollector(path, labels, tokens)
    ids: list[str] = []
    columns, unit, are_tokens = None, "line", True
    for sentence in iter_sentences(path, keys, options):
        _check_tags(path, sentence)
        if not sentence.tags:
            continue  # a sentence without tokens, in all files
        if columns is None and sentence.keys:
            names = tuple(map(repr, sentence.keys))
            columns = FileColumns(path, names, 4, 0, 1 if len(names) > 1 else None, None, numbered=False)
        unit = sentence.place.partition(" ")[0]
        if sentence.document is not None:
            collector.start_document(sentence.document)
        are_tokens = are_tokens and sentence.tokens is not None
        blanks: list[Any] = [None] * len(sentence.tags)
        words = map(str, sentence.tokens) if sentence.tokens is not None and are_tokens else blanks
        for tag, gold_tag, word in zip(sentence.tags, sentence.gold or blanks, words, strict=True):
            collector.add_token(sentence.number, tag, gold_tag, word)
        collector.end_sentence()
        ids += [] if sentence.id is None else [sentence.id]
    tagged = collector.build_file(columns)
    unique_ids = tuple(ids) if len(ids) == len(tagged.starts) and len({*ids}) == len(ids) else None
    return replace(tagged, ids=unique_ids, unit="line" if unit == "line" else "record")


def iter_sentences(path: Path, keys: TagKeys, options: Options) -> Iterator[TaggedRecord]:
    """Yield the sentences of a JSON file."""
    if _is_one_sentence(path):
        remedy = "write [[...], [...]]"
        raise InputError(f"is one list of tags, but expected one list per sentence; {remedy}", file=path)
    if (columns := _read_by_columns(path, keys)) is not None:
        yield from columns
        return
    names: tuple[str, ...] | None = None
    chosen: tuple[str | None, ...] = ()
    for record in json_records.read_records(path, lambda value: _find_key(path, value, keys.label) is not None):
        value = record.value
        if isinstance(value, list):
            is_nested = bool(value) and all(isinstance(part, list) for part in value)
            for part in value if is_nested else [value]:
                yield TaggedRecord(record.place, record.number, part, id=None if is_nested else record.key)
            continue
        if not isinstance(value, dict):
            raise InputError(file=path, place=record.place, found=f"{str(value)[:40]}", expected="a list of tags")
        if names is None:
            names = json_records.find_id_keys(value, options)
            chosen = tuple(_find_key(path, value, known) for known in (keys.label, keys.gold))
        label, gold = (as_list(value.get(key)) if key is not None else None for key in chosen)
        _check_keys(path, record.place, value, label, gold if keys.gold else [])
        yield TaggedRecord(
            place=record.place,
            number=record.number,
            tags=label or [],
            gold=gold,
            tokens=next((value[key] for key in TOKEN_KEYS if _is_plain_list(value.get(key))), None),
            id="/".join(json_records.get_id_parts(path, record.place, value, names)) or record.key,
            document=next((str(value[name]) for name in value if name.lower() in json_records.DOCUMENT_NAMES), None),
            keys=tuple(key for key in chosen if key is not None),
        )


def _check_keys(path: Path, place: str, record: Mapping[str, Any], label: Any, gold: Any) -> None:
    """Raise an error for a record without a list of tags or of gold tags."""
    for noun, part, option in (("tags", label, "column"), ("gold tags", gold, "gold-column")):
        if not _is_plain_list(part):
            end = "" if noun == "tags" else f", or give {spell('gold', 'FILE')}"
            raise InputError(
                f"no list of {noun} among the keys {', '.join(map(repr, record))}",
                file=path,
                place=place,
                remedy=f"name its key: {spell('format', f'conll:{option}=KEY')}{end}",
            )


def _is_one_sentence(path: Path) -> bool:
    """Return whether the file is one list of tags."""
    start = json_records.read_head(path).lstrip()
    return re.match(r'\[\s*"', start) is not None and not re.search(r"\]\s*\n\s*\[", start)


def _read_by_columns(path: Path, keys: TagKeys) -> Iterator[TaggedRecord] | None:
    """Return the sentences of an object that maps each key to a list of sentences, or None."""
    if not json_records.read_head(path).lstrip().startswith("{") or json_records.is_json_lines(path):
        return None
    content = json_records.load_json(path)
    content = content if isinstance(content, dict) else {}
    lists = {name: value for name, value in content.items() if value and isinstance(value, list)}
    lists = {name: value for name, value in lists.items() if all(map(_is_plain_list, value))}
    firsts = {name: value[0] for name, value in lists.items()}
    chosen = [_find_key(path, firsts, known) for known in (keys.label, keys.gold, [[key] for key in TOKEN_KEYS])]
    label, gold, _ = chosen
    if label is None or (keys.gold and gold is None):
        return None
    columns = [lists[name] if name is not None else [None] * len(lists[label]) for name in chosen]
    if len({*map(len, columns)}) > 1:
        numbers = ", ".join(f"{len(lists[name])} of {name!r}" for name in chosen if name is not None)
        raise InputError(
            f"the lists have different numbers of sentences: {numbers}",
            file=path,
            remedy="write an element per sentence in each",
        )
    used = tuple(name for name in (label, gold) if name is not None)
    rows = enumerate(zip(*columns, strict=True), start=1)
    return (TaggedRecord(f"record {k}", k, tags, gold_tags, words, keys=used) for k, (tags, gold_tags, words) in rows)


def _find_key(path: Path, record: Mapping[str, Any], groups: Sequence[Sequence[str]]) -> str | None:
    """Return the key of a list of single values with one of the names; raise if two have names of one group."""
    lowered = {str(name).lower(): str(name) for name in reversed(list(record))}
    for names in groups:
        found = [lowered[name.lower()] for name in names if name.lower() in lowered]
        found = [name for name in found if _is_plain_list(as_list(record[name]))]
        if len(found) > 1:
            options = "gold-column" if names is GOLD_KEYS else "column"
            ways = " or ".join(spell("format", f"conll:{options}={name}") for name in found)
            problem = f"{' and '.join(map(repr, found))} are lists, which may be the tags"
            raise SeveralKeysError(problem, file=path, remedy=f"choose {ways}")
        if found:
            return found[0]
    return None


def as_list(value: Any) -> Any:
    """Return tags that are separated by blanks as a list, and other values unchanged.

    Examples
    --------
    >>> as_list("O B-PER I-PER"), as_list("a text"), as_list(["O"])
    (['O', 'B-PER', 'I-PER'], 'a text', ['O'])
    """
    if not isinstance(value, str) or " " not in value:
        return value
    parts = value.split()
    return parts if all(map(is_chunk_tag, parts)) else value


def _is_plain_list(value: Any) -> bool:
    return isinstance(value, list) and not any(isinstance(part, dict | list) for part in value)


def _check_tags(path: Path, sentence: TaggedRecord) -> None:
    """Raise if tags are not text or lists differ in length."""
    for tags in (sentence.tags, sentence.gold or []):
        wrong = next((tag for tag in tags if not isinstance(tag, str)), None)
        if wrong is not None:
            raise InputError(
                file=path,
                place=sentence.place,
                found=f"{str(wrong)[:40]} among the tags",
                expected="names of tags (B-PER)",
                remedy="write the name of each tag instead of its number",
            )
    for noun, values in (("gold tags", sentence.gold), ("tokens", sentence.tokens)):
        if values is not None and len(values) != len(sentence.tags):
            remedy = "their numbers must be equal"
            raise InputError(
                f"{len(sentence.tags)} tags, but {len(values)} {noun}; {remedy}", file=path, place=sentence.place
            )
