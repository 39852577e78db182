"""Output of the memory-based tools: TiMBL's classified instances, Mbt's tagged sentences.

Both write the gold class and the predicted one side by side, and then what their option +v asks for:
a confidence in brackets, a distribution in braces, a distance, a match depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.fields import LabelFields
from sigdask.errors import InputError
from sigdask.formats.reading.files import empty, head_lines, open_text
from sigdask.formats.reading.options import Options, Source, system_names
from sigdask.formats.reading.tables import FileTable
from sigdask.formats.tables.labels import from_tables
from sigdask.formats.tagging.sentences import (
    UTTERANCE_END,
    Codes,
    SentenceCollector,
    SentenceFields,
    TaggedFile,
    altered_tokens,
    check_gold,
    check_structure,
    groups_of,
    outputs_of,
)

NUMBER = r"-?(?:(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?|nan|inf)"
PLAIN = r"\[[^\[\]]*+\]|\{\}|\d++:[LN]"
"""A confidence, an empty distribution, the depth of a leaf."""

AFTER = rf"(?:\s++(?:{PLAIN}|{NUMBER})(?!\S))*+"
FAR = rf"(?:(?:\s++(?:{PLAIN})|(?:\s\s++|(?<=[}}\]])\s){NUMBER})(?!\S))*+"
"""After blanks as separators, a single blank before a number would make it a class."""

SPARSE = r"\(\d+\s*,.*\)\s*+"
"""Features as (number,value)(number,value)."""

SEPARATORS = ("comma", "tab", "blank")
ENDS = {False: r"\s*+\Z", True: r"\s++\{(?: |\Z)"}
"""The end of a line, and of one with a distribution, `{ class number, ... }`: its beginning."""

LINES = {
    (name, distributed): re.compile(rf"{features}({classes}){end}")
    for name, features, classes in (
        ("comma", rf"(?:{SPARSE}|.*,)?", rf"([^,\s]{{1,1000}}+),([^,\s]++){AFTER}"),
        ("tab", r"(?:.*\t)?", rf"([^\t\s]++)\t([^\t\s]++){AFTER}"),
    )
    for distributed, end in ENDS.items()
}
"""Lines whose features end in the last separator that two classes follow."""

WORDS = re.compile(rf"(?:^|(?<= ))((\S++) ++(\S++){FAR})")
"""Two classes among words, and what may follow them."""

BEHIND = {name: re.compile(rf"{FAR if name == 'blank' else AFTER}\s*+") for name in SEPARATORS}
"""What follows a distribution."""

NEIGHBOURS = re.compile(r"# k=|#\t")
SNIFFED = 50
"""Lines looked at to tell separator and format."""

KNOWN = ("/", "//")
"""Mbt's marks of known and unknown words."""


def read_timbl(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read classified instances, a file a setting; the gold classes of all must agree."""
    options.only("timbl", separator=SEPARATORS)
    _no_gold("timbl", gold)
    tables = [_instances(source.path, options) for source in sources]
    columns = replace(options, gold_column="gold", prediction_column="predicted", id_column=None, align="position")
    return from_tables(sources, tables, None, columns)


def _instances(path: Path, options: Options) -> FileTable:
    with open_text(path) as text:
        head = list(islice(_instances_of(text), SNIFFED))
    if not head:
        raise empty(path)
    separator = options.own.get("separator") or _separator(head)
    if separator is None:
        raise InputError(
            f"{path}, line {head[0][0]}: found {head[0][1][:60]!r}, expected features, class and predicted class, "
            "separated alike on every line by commas, tabs or blanks (choose with timbl:separator=comma)"
        )
    gold: list[str] = []
    predicted: list[str] = []
    numbers: list[int] = []
    same: dict[str, str] = {}  # one string a class
    width = _width(head, separator)
    with open_text(path) as text:
        for number, line in _instances_of(text):
            parts = _parts(line, separator)
            if parts is None or width not in {None, _n_features(parts[0], separator)}:
                raise InputError(
                    f"{path}, line {number}: found {line[:60]!r}, expected {'' if width is None else f'{width} '}"
                    f"features, class and predicted class separated by {separator}s, as on line {head[0][0]}"
                )
            gold.append(same.setdefault(parts[1], parts[1]))
            predicted.append(same.setdefault(parts[2], parts[2]))
            numbers.append(number)
    return FileTable(path, {"gold": gold, "predicted": predicted}, numbers)


def _instances_of(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of instances, without those that list nearest neighbours (+v n, +v k)."""
    listing = False
    for number, line in enumerate(lines, start=1):
        listing = line.startswith("# k=") or (listing and NEIGHBOURS.match(line) is not None)
        if not listing and (bare := line.rstrip("\r\n")).strip():
            yield number, bare


def _parts(line: str, separator: str) -> tuple[str, str, str, str] | None:
    """Take a line apart: features, gold class, predicted class, and the rest.

    Examples
    --------
    >>> _parts("a,{,T,E { { 1.0, } 2.0 } 0.5", "comma")
    ('a,{,', 'T', 'E', ' { { 1.0, } 2.0 } 0.5')
    >>> _parts("a b  T E  1  0.5", "blank")
    ('a b  ', 'T', 'E', '  1  0.5')
    """
    end = line.rfind(" }")
    distributed = end >= 0 and BEHIND[separator].fullmatch(line, end + 2) is not None
    before = line[:end] if distributed else line
    match = _among_words(before, distributed) if separator == "blank" else LINES[separator, distributed].match(before)
    return match and (line[: match.start(1)], match[2], match[3], line[match.end(3) :])


def _among_words(line: str, distributed: bool) -> re.Match[str] | None:
    """Return the first two words that nothing follows but what may; no part of a line is looked at often."""
    end, at = re.compile(ENDS[distributed]), 0
    while (match := WORDS.search(line, at)) is not None and end.match(line, match.end()) is None:
        at = max(match.start(3), line.rfind(" ", 0, match.end()) + 1)
    return match


def _separator(head: Sequence[tuple[int, str]]) -> str | None:
    """Return the first separator that makes classes of all lines, and equal columns unless it is the comma."""
    for name in SEPARATORS:
        parts = [_parts(line, name) for _, line in head]
        widths = {_n_features(part[0], name) for part in parts if part is not None}
        if None not in parts and (name == "comma" or len(widths) == 1):
            return name
    return None


def _width(head: Sequence[tuple[int, str]], separator: str) -> int | None:
    """Return the number of features, None where they are sparse, of any number."""
    features = [part[0] for _, line in head if (part := _parts(line, separator)) is not None]
    if separator == "comma" and all(re.fullmatch(rf"{SPARSE}|(?:\d+,)*", text) for text in features):
        return None
    return _n_features(features[0], separator) if features else 0


def _n_features(features: str, separator: str) -> int:
    return len(features.split()) if separator == "blank" else features.count({"comma": ",", "tab": "\t"}[separator])


def sniff_timbl(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Say whether a file holds classes with distributions or distances after them on every line."""
    if gold is not None:
        return False
    head = list(islice(_instances_of(head_lines(sources[0].path)), SNIFFED))
    separator = _separator(head) if head else None
    if separator is None:
        return False
    parts = [_parts(line, separator) for _, line in head]
    rests = [part[3] for part in parts if part is not None]
    return all("{" in rest or (separator == "comma" and rest.strip() != "") for rest in rests)


def read_mbt(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read tagged sentences, a file a tagger; items are sentences, labels those of tokens."""
    options.only("mbt", end=())
    _no_gold("mbt", gold)
    labels, tokens = Codes(), Codes()
    end = options.own.get("end", UTTERANCE_END)
    files = [_sentences(source.path, end, labels, tokens) for source in sources]
    first, others = files[0], files[1:]
    check_structure(first, others, end)
    right = check_gold(files, labels)
    mapped = options.mapped
    names = Codes()
    code = np.array([names.of(mapped.get(label, label)) for label in labels.strings], np.int32)
    predicted = np.column_stack([code[file.labels] for file in files])
    of_gold = {names.strings[k] for k in np.unique(code[right])}
    return Counts(
        systems=tuple(system_names(sources)),
        fields=SentenceFields(LabelFields(code[right][:, None], predicted, tuple(names.strings)), first.starts),
        n_items=len(first.starts),
        name=options.name,
        groups=groups_of(files, options.groups),
        labels=tuple(sorted(of_gold)),
        predicted_labels=tuple(sorted(set(names) - of_gold)),
        outputs=outputs_of(code[right], list(predicted.T), first.starts, names.strings),
        suggested=("accuracy",),
        warnings=(*altered_tokens(first, others, tokens), *options.unmapped(labels)),
    )


def _sentences(path: Path, end: str, labels: Codes, tokens: Codes) -> TaggedFile:
    collector = SentenceCollector(path, labels, tokens)
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            words = _words(line.rstrip(" \r\n"), end)
            if words is None:
                raise InputError(
                    f"{path}, line {number}: found {line.strip()[:60]!r}, expected word, tag and predicted tag "
                    f"separated by tabs, blanks or //, or {end}; output without gold tags is written where Mbt reads "
                    "untagged text (-t): use -T"
                )
            for word in words:
                if word == ("",):
                    collector.end()
                else:
                    token, gold, predicted = word
                    collector.token(number, predicted, gold, token)
    return collector.tagged()


def _words(line: str, end: str) -> list[tuple[str, ...]] | None:
    r"""Return word, gold tag and predicted tag of the words on a line, ("",) for the end of a sentence.

    Examples
    --------
    >>> _words("emissie\t//\tN\tAdj [0.9] { N 1.0 } 0.07", "<utt>")
    [('emissie', 'N', 'Adj')]
    >>> _words("de//Art//Art zak//N//V <utt>", "<utt>")
    [('de', 'Art', 'Art'), ('zak', 'N', 'V'), ('',)]
    >>> _words("de/Art zak//N", "<utt>") is None
    True
    """
    if not line.strip() or line.strip() == end:
        return [("",)]
    if "\t" in line:
        parts = line.split("\t")
        return [(parts[0], parts[-2], parts[-1].split(" ", 1)[0])] if len(parts) > 2 else None
    parts = line.split()
    if len(parts) > 3 and parts[1] in KNOWN:
        return [(parts[0], parts[2], parts[3])]
    slashed = [("",) if part == end else tuple(part.rsplit("//", 2)) for part in parts]
    if all(len(word) != 2 and (len(word) == 3 or word == ("",)) for word in slashed):
        return slashed
    return [(parts[0], parts[1], parts[2])] if len(parts) == 3 and "/" not in parts[1] + parts[2] else None


def sniff_mbt(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Say whether a file holds words with Mbt's marks of known and unknown ones, and both tags."""
    if gold is not None:
        return False
    head = head_lines(sources[0].path)[:SNIFFED]
    rows = [line.split() for line in head if line.strip() and line.strip() != UTTERANCE_END]
    return bool(rows) and all(len(row) > 3 and row[1] in KNOWN for row in rows)


def _no_gold(format_: str, gold: Path | None) -> None:
    if gold is not None:
        raise InputError(f"format {format_}: each file holds its gold classes; leave out --gold {gold}")
