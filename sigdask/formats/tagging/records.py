"""Tagged sentences in JSON: records with a list of tags, mostly beside a list of tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sigdask.counts.factors import Codes
from sigdask.errors import InputError
from sigdask.formats.reading import json_records
from sigdask.formats.reading.options import Options
from sigdask.formats.roles import name_role
from sigdask.formats.tagging.sentences import SentenceCollector, TaggedFile
from sigdask.interface import spell

TOKEN_KEYS = ("tokens", "words")
TAG_KEYS = ("ner_tags", "tags", "labels", "ner", "bio_tags", "chunk_tags", "pos_tags", "pos", "upos")
"""Keys of lists. Tags may also be under a key of the role "gold" or "prediction"."""


def is_json_file(path: Path) -> bool:
    """Return whether a file begins with a JSON object; a line of columns may also begin with a bracket."""
    return re.match(r'\s*(\[\s*)?\{\s*"', json_records.read_head(path)) is not None


def has_tagged_records(path: Path) -> bool:
    """Return whether the first record has a list of tokens and a list of as many tags."""
    try:
        record = next(iter(json_records.read_records(path, _is_record)), None)
    except InputError:
        return False
    if record is None or not isinstance(record.value, dict):
        return False
    sizes = {key: len(part) for key, part in record.value.items() if _is_list(part)}
    n_tokens = {sizes[key] for key in TOKEN_KEYS if key in sizes}
    keys = (*_list_keys(record.value, "gold"), *_list_keys(record.value, "prediction"))
    return any(sizes[key] in n_tokens for key in keys)


def read_tagged_records(
    path: Path, options: Options, labels: Codes, tokens: Codes, *, has_gold: bool = False, only_gold: bool = False
) -> TaggedFile:
    """Read a file of JSON records: a system's file with or without gold tags, or a gold file.

    Raises
    ------
    InputError
        A record has no tags, tags are not text, or the numbers of tokens, gold tags and tags differ.
    """
    collector = SentenceCollector(path, labels, tokens)
    keys: list[str] = []
    ids: tuple[str, ...] = ()
    for record in json_records.read_records(path, _is_record):
        value = json_records.get_object(path, record)
        if not keys:
            roles = ["gold"] if only_gold else ["prediction", "gold"] if has_gold else ["prediction"]
            keys = [_choose_key(path, record.place, value, role, options) for role in roles]
            ids = json_records.find_id_keys(value, options)
            collector.label_name, collector.gold_name = ([*map(repr, keys), ""])[:2]
            collector.has_others, collector.unit = True, record.place.partition(" ")[0]
        tags, *gold = lists = [value.get(key) or [] for key in keys]
        words = next((value[key] for key in TOKEN_KEYS if _is_list(value.get(key))), None)
        are_lists = all(_is_list(part) and all(isinstance(tag, str) for tag in part) for part in lists)
        if not are_lists or len({*map(len, (*lists, *([] if words is None else [words])))}) > 1:
            raise InputError(
                file=path,
                place=record.place,
                found=", ".join(f"{key!r}: {str(value.get(key))[:40]}" for key in keys),
                expected=f"a list of names of tags{'' if words is None else f', one for each of {len(words)} tokens'}",
            )
        for k, tag in enumerate(tags):
            collector.add_token(record.number, tag, gold[0][k] if gold else None, words and str(words[k]))
        collector.end_sentence()
        if tags and ids:
            collector.ids.append("/".join(json_records.get_id_parts(path, record.place, value, ids)))
    return collector.build_file()


def _choose_key(path: Path, place: str, record: Mapping[str, Any], role: str, options: Options) -> str:
    """Return the key of the tags that have a role: the requested one, or the only one with a known name."""
    option = "gold-column" if role == "gold" else "column"
    requested = options.own.get(option) or options.columns.get(role)
    found = [requested] if requested else _list_keys(record, role)
    if len(found) != 1 or found[0] not in record:
        choices = " or ".join(spell("format", f"conll:{option}={key}") for key in found or ["KEY"])
        raise InputError(
            f"{' and '.join(map(repr, found)) or 'no list'} among the keys {', '.join(map(repr, record))} may be tags",
            file=path,
            place=place,
            remedy=f"name the key of the tags: {choices}",
        )
    return found[0]


def _list_keys(record: Mapping[str, Any], role: str) -> list[str]:
    """Return the keys of lists with a name of a role, or of tags in general."""
    lists = [key for key, value in record.items() if _is_list(value)]
    return [key for key in lists if role in name_role(key) and key not in TAG_KEYS] or [
        key for key in lists if key.lower() in TAG_KEYS
    ]


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and not any(isinstance(part, dict | list) for part in value)


def _is_record(value: Mapping[str, Any]) -> bool:
    return any(_is_list(part) for part in value.values())
