"""Separate annotation files: brat standoff (`T1<tab>LABEL 0 5;8 12<tab>text`) and PubTator."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import build_empty_error, open_text
from sigdask.formats.reading.listings import FileListing

SUFFIX = ".ann"
_SPAN_LINE = re.compile(r"T[^\t]*\t(\S+) (\d+ \d+(?:;\d+ \d+)*)(?:\t|$)")

UNSCORED = {
    "R": "relations",
    "*": "relations",
    "E": "events",
    "A": "attributes",
    "M": "attributes",
    "N": "normalizations",
}
"""First letter of a line that is no span, to what it holds; of notes (#) nothing is counted."""


def read_ann(path: Path) -> tuple[list[list[object]], Counter[str]]:
    """Return spans as [fragments, label], and the numbers of relations, events and other annotations.

    Raises
    ------
    InputError
        For a T line of another form.
    """
    spans: list[list[object]] = []
    unscored = Counter[str]()
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            if not line.startswith("T"):
                if kind := UNSCORED.get(line[:1]):
                    unscored[kind] += 1
                continue
            match = _SPAN_LINE.match(line.rstrip("\r\n"))
            if match is None:
                raise InputError(
                    f"{path}, line {number}: found {line.strip()[:40]!r}, expected T1<tab>LABEL START END<tab>text"
                )
            fragments = [[int(offset) for offset in part.split(" ")] for part in match[2].split(";")]
            spans.append([fragments, match[1]])
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


def read_pubtator(listing: FileListing) -> FileListing:
    """Add the documents of a PubTator file to the listing, with [start, end, type] for each annotation.

    Raises
    ------
    InputError
        For a line that is neither text nor annotation nor relation.
    """
    path = listing.path
    relations = Counter[str]()
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
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
                    f"{path}, line {number}: found {line.strip()[:40]!r}, expected ID, START, END, text, TYPE by tabs"
                )
            listing.items[item].append([int(cells[1]), int(cells[2]), cells[4]])
    if not listing.items:
        raise build_empty_error(path)
    for n_relations in relations.values():
        listing.add_unscored({"relations": n_relations})
    return listing
