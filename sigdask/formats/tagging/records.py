"""Tagged sentences in JSON: records with a list of tags, mostly beside a list of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sigdask.counts.factors import Codes
from sigdask.errors import InputError
from sigdask.formats.reading import files, json_records
from sigdask.formats.reading.options import Options
from sigdask.formats.roles import name_role
from sigdask.formats.tagging.sentences import Event, TaggedFile, Token, collect_sentences
from sigdask.interface import spell

TOKEN_KEYS = ("tokens", "words")
TAG_KEYS = ("ner_tags", "tags", "labels", "ner", "bio_tags", "chunk_tags", "pos_tags", "pos", "upos")
"""Keys of lists. Tags may also be under a key of the role "gold" or "prediction"."""


def is_json_file(path: Path) -> bool:
    """Return whether a file begins with a JSON object; a line of columns may also begin with a bracket."""
    return re.match(r'\s*(\[\s*)?\{\s*"', files.read_head(path).text) is not None


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


def read_tagged_records(path: Path, options: Options, labels: Codes, tokens: Codes, roles: Sequence[str]) -> TaggedFile:
    """Read a file of JSON records with tags of the roles prediction, gold, or both.

    Raises
    ------
    InputError
        A record has no tags, tags are not text, or the numbers of tokens, gold tags and tags differ.
    """
    first = next(iter(json_records.read_records(path, _is_record)))
    keys = [_choose_key(path, first.place, json_records.get_object(path, first), role, options) for role in roles]
    id_keys = json_records.find_id_keys(first.value, options)
    ids: list[str] = []

    def iter_events() -> Iterator[Event]:
        for record in json_records.read_records(path, _is_record):
            value = json_records.get_object(path, record)
            lists = [value.get(key) or [] for key in keys]
            words = next((value[key] for key in TOKEN_KEYS if _is_list(value.get(key))), None)
            are_lists = all(_is_list(part) and all(isinstance(tag, str) for tag in part) for part in lists)
            if not are_lists or len({*map(len, (*lists, *([] if words is None else [words])))}) > 1:
                found = ", ".join(f"{key!r}: {str(value.get(key))[:40]}" for key in keys)
                expected = "a list of names of tags" + f", one for each of {len(words or ())} tokens" * (
                    words is not None
                )
                raise InputError(file=path, place=record.place, found=found, expected=expected)
            for k, tag in enumerate(lists[0]):
                yield Token(record.number, tag, lists[1][k] if lists[1:] else None, words and str(words[k]))
            yield None
            if lists[0] and id_keys:
                ids.append("/".join(json_records.get_id_parts(path, record.place, value, id_keys)))

    file = collect_sentences(path, iter_events(), labels, tokens, unit=first.place.partition(" ")[0])
    return replace(file, ids=tuple(ids), scored=" against ".join(map(repr, keys)))


def _choose_key(path: Path, place: str, record: Mapping[str, Any], role: str, options: Options) -> str:
    """Return the key of the tags that have a role: the requested one, or the only one with a known name."""
    option = "gold-column" if role == "gold" else "column"
    found = [options.own[option]] if option in options.own else _list_keys(record, role)
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
