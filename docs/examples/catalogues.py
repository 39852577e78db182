"""Read messages and their translations from the gettext catalogues of wheels."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

CATALOGUE = re.compile(r"(.*)/locale/de/LC_MESSAGES/\w+\.po")
KEYWORD = re.compile(r'(msg\w+(?:\[\d\])?) "(.*)"')


def read_translations(wheel: Path) -> dict[str, list[tuple[str, str]]]:
    """Return pairs of English and German messages by part of the package."""
    translations: dict[str, list[tuple[str, str]]] = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            if match := CATALOGUE.fullmatch(name):
                translations.setdefault(match[1], []).extend(_parse_messages(archive.read(name).decode("utf-8")))
    return translations


def _parse_messages(text: str) -> list[tuple[str, str]]:
    pairs = []
    for block in text.split("\n\n"):
        if ", fuzzy" in block:
            continue
        values, key = {"msgid": "", "msgstr": ""}, ""
        for line in block.split("\n"):
            if match := KEYWORD.fullmatch(line):
                key, values[match[1]] = match[1], match[2]
            elif line.startswith('"') and key:
                values[key] += line[1:-1]
        if values["msgid"] and values["msgstr"]:
            pairs.append((_to_one_line(values["msgid"]), _to_one_line(values["msgstr"])))
    return pairs


def _to_one_line(text: str) -> str:
    """Return a message as one line of text."""
    return " ".join(re.sub(r"\\[nt]", " ", text).replace('\\"', '"').split())
