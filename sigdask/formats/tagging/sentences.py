"""Tagged sentences of several files, aligned by position: one label per token, as integer codes.

Tagged sentences in JSON: records with a list of tags, mostly beside a list of tokens.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Outputs
from sigdask.counts.fields import to_object_array
from sigdask.counts.texts import Codes
from sigdask.errors import InputError
from sigdask.formats.reading import json_records
from sigdask.formats.reading.alignment import build_sentence_groups
from sigdask.formats.reading.files import check_filled
from sigdask.formats.reading.options import Options
from sigdask.formats.reading.signatures import TOKEN_KEYS, is_plain_list, is_tagged_record, list_tag_keys
from sigdask.interface import spell
from sigdask.text import format_count

Integers = NDArray[np.int32]

NONE = -1
"""Code of a gold label or a token that a file does not have."""


class Token(NamedTuple):
    """A token of a file: its line (or record), its label, its gold label and its text, if the file has them."""

    line: int
    label: str
    gold: str | None = None
    text: str | None = None


Event = Token | str | None
"""A token; the name of a document that begins, "" for one without a name; or the end of a sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class TaggedFile:
    """The sentences of a file.

    Attributes
    ----------
    path : Path
        The file.
    starts : int32 array, shape (n_sentences,)
        First token of each sentence. No sentence is empty.
    lines, labels, gold, tokens : int32 array, shape (n_tokens,)
        Line of each token, and the codes of its label, of its gold label and of its text. The labels of a gold file are
        those that predictions are compared with.
    documents : tuple of str, or None
        Document of each sentence, if the file marks documents.
    ids : tuple of str
        Ids of the sentences. Empty if they have none.
    scored : str
        The columns that are read as labels, if the file has others, too.
    unit : str
        Unit of `lines`: lines, or records of JSON.
    """

    path: Path
    starts: Integers
    lines: Integers
    labels: Integers
    gold: Integers
    tokens: Integers
    documents: tuple[str, ...] | None
    ids: tuple[str, ...] = ()
    scored: str = ""
    unit: str = "line"

    @property
    def lengths(self) -> Integers:
        """Number of tokens of each sentence, shape (n_sentences,)."""
        return np.diff(self.starts, append=np.int32(len(self.lines)))

    def get_place(self, token: int) -> str:
        """Return the line or JSON record of a token, for errors."""
        return f"{self.unit} {self.lines[token]}"

    def get_location(self, sentence: int) -> str:
        """Return the path and the beginning of a sentence, or the end of the file, for errors."""
        has_it = sentence < len(self.starts)
        return f"{self.path}, {self.get_place(self.starts[sentence]) if has_it else 'at its end'}"


def collect_sentences(path: Path, events: Iterable[Event], labels: Codes, tokens: Codes, **more: Any) -> TaggedFile:
    """Return the sentences of a file, given what it has in its order, and further attributes."""
    cells, starts = array("i"), array("i")
    documents: list[str] = []
    document, n_documents, is_between = "0", 0, True
    for event in events:
        if isinstance(event, Token):
            if is_between:
                starts.append(len(cells) // 4)
                documents.append(document)
                is_between = False
            gold, text = NONE if event.gold is None else labels[event.gold], event.text
            cells.extend((event.line, labels[event.label], gold, NONE if text is None else tokens[text]))
            continue
        is_between = True
        if event is not None:
            n_documents += 1
            document = event or str(n_documents)
    check_filled(path, cells)
    lines, codes, gold_codes, texts = np.array(cells, np.int32).reshape(-1, 4).T.copy()
    marked = tuple(documents) if n_documents else None
    return TaggedFile(path, np.array(starts, np.int32), lines, codes, gold_codes, texts, marked, **more)


def check_structure(first: TaggedFile, others: Sequence[TaggedFile]) -> None:
    """Raise unless all files have sentences of the same ids and lengths."""
    for other in others:
        ids = zip_longest(other.ids, first.ids) if other.ids and first.ids else ()
        for name, expected in (pair for pair in ids if pair[0] != pair[1]):
            problem, remedy = f"sentence {name!r}, but {expected!r} in {first.path}", "bring both into the same order"
            raise InputError(problem, file=other.path, remedy=remedy)
        lengths = zip_longest(other.lengths.tolist(), first.lengths.tolist(), fillvalue=0)
        for k, (length, expected) in enumerate(lengths):
            if length != expected:
                numbers = " and ".join(f"{len(file.starts):,}" for file in (other, first))
                raise InputError(
                    f"{other.get_location(k)}: sentence {k + 1} has {format_count(length, 'token')}, but {expected} in "
                    f"{first.get_location(k)} (of {numbers} sentences); labels are aligned by position: give both "
                    "files the same tokens and sentence ends"
                )


def get_shared_gold(files: Sequence[TaggedFile], labels: Codes) -> Integers:
    """Return the gold labels, which must be equal in all files."""
    first = files[0]
    for other in files[1:]:
        differs = np.flatnonzero(first.gold != other.gold)
        if len(differs):
            k = differs[0]
            names = list(labels)
            raise InputError(
                f"gold {names[other.gold[k]]!r}, but {names[first.gold[k]]!r} in {first.path}, {first.get_place(k)}; "
                "the files must agree",
                file=other.path,
                place=other.get_place(k),
            )
    return first.gold


def describe_altered_tokens(first: TaggedFile, others: Sequence[TaggedFile], tokens: Codes) -> list[str]:
    """Return a warning for each file whose tokens are written differently than in the first."""
    warnings, names = [], list(tokens)
    for other in others:
        differs = np.flatnonzero((first.tokens != other.tokens) & (first.tokens != NONE) & (other.tokens != NONE))
        if len(differs):
            own, expected = (names[file.tokens[differs[0]]] for file in (other, first))
            warnings.append(
                f"{other.path}: {len(differs):,} of {len(other.lines):,} tokens differ from those of {first.path} "
                f"(first on {other.get_place(differs[0])}: {own!r} for {expected!r}); aligned by position"
            )
    return warnings


def build_groups(files: Sequence[TaggedFile], requested: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the group columns: sentence if requested, and document if a file marks documents."""
    documents = next((file.documents for file in files if file.documents is not None), None)
    return build_sentence_groups(files[0].path, len(files[0].starts), documents, requested)


def build_outputs(gold: Integers, systems: Sequence[Integers], starts: Integers, names: Sequence[str]) -> Outputs:
    """Return gold and system labels as one list per sentence, for metrics of whole outputs."""
    table = np.array(names, object)
    gold_labels, *columns = (
        to_object_array([labels.tolist() for labels in np.split(table[codes], starts[1:])])
        for codes in (gold, *systems)
    )
    return Outputs(tuple(columns), gold_labels)


def read_tagged_records(path: Path, options: Options, labels: Codes, tokens: Codes, roles: Sequence[str]) -> TaggedFile:
    """Read a file of JSON records with tags of the roles prediction, gold, or both.

    Raises
    ------
    InputError
        A record has no tags, tags are not text, or the numbers of tokens, gold tags and tags differ.
    """
    first = next(iter(json_records.read_records(path, is_tagged_record)))
    keys = [_choose_key(path, first.place, json_records.get_object(path, first), role, options) for role in roles]
    id_keys = json_records.find_id_keys(first.value, options)
    ids: list[str] = []

    def iter_events() -> Iterator[Event]:
        for record in json_records.read_records(path, is_tagged_record):
            value = json_records.get_object(path, record)
            lists = [value.get(key) or [] for key in keys]
            words = next((value[key] for key in TOKEN_KEYS if is_plain_list(value.get(key))), None)
            are_lists = all(is_plain_list(part) and all(isinstance(tag, str) for tag in part) for part in lists)
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
    found = [options.own[option]] if option in options.own else list_tag_keys(record, role)
    if len(found) != 1 or found[0] not in record:
        choices = " or ".join(spell("format", f"conll:{option}={key}") for key in found or ["KEY"])
        raise InputError(
            f"{' and '.join(map(repr, found)) or 'no list'} among the keys {', '.join(map(repr, record))} may be tags",
            file=path,
            place=place,
            remedy=f"name the key of the tags: {choices}",
        )
    return found[0]
