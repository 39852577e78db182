"""Messages and their translations in the gettext catalogues of wheels."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

CATALOGUE = re.compile(r"(.*)/locale/de/LC_MESSAGES/\w+\.po")
KEYWORD = re.compile(r'(msg\w+(?:\[\d\])?) "(.*)"')


def translated(wheel: Path) -> dict[str, list[tuple[str, str]]]:
    """Return pairs of English and German, by the package's part that they stand in."""
    found: dict[str, list[tuple[str, str]]] = {}
    with zipfile.ZipFile(wheel) as packed:
        for name in sorted(packed.namelist()):
            if part := CATALOGUE.fullmatch(name):
                found.setdefault(part[1], []).extend(_messages(packed.read(name).decode("utf-8")))
    return found


def _messages(text: str) -> list[tuple[str, str]]:
    pairs = []
    for block in text.split("\n\n"):
        if ", fuzzy" in block:
            continue
        values, key = {"msgid": "", "msgstr": ""}, ""
        for line in block.split("\n"):
            if first := KEYWORD.fullmatch(line):
                key, values[first[1]] = first[1], first[2]
            elif line.startswith('"') and key:
                values[key] += line[1:-1]
        if values["msgid"] and values["msgstr"]:
            pairs.append((_plain(values["msgid"]), _plain(values["msgstr"])))
    return pairs


def _plain(text: str) -> str:
    """Return a message as one line of text."""
    return " ".join(re.sub(r"\\[nt]", " ", text).replace('\\"', '"').split())
