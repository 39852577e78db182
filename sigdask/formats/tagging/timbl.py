"""Output of the memory-based tools: TiMBL's classified instances and Mbt's tagged sentences.

Both write the gold class and the predicted class next to each other, and then what option +v adds: a confidence in
brackets, a distribution in braces, a distance, a match depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.factors import Codes
from sigdask.counts.fields import LabelFields, LazyColumns
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled, enumerate_lines, open_text, read_head_lines
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.tables import FileTable
from sigdask.formats.tables.labels import build_label_counts
from sigdask.formats.tables.predictions import join_tables
from sigdask.formats.tagging import sentences
from sigdask.interface import spell, spell_map

NUMBER = r"-?(?:(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?|nan|inf)"
ANNOTATION = r"\[[^\[\]]*+\]|\{\}|\d++:[LN]"
"""Pattern of a confidence, an empty distribution or the depth of a leaf."""

TRAILER = rf"(?:\s++(?:{ANNOTATION}|{NUMBER})(?!\S))*+"
BLANK_TRAILER = rf"(?:(?:\s++(?:{ANNOTATION})|(?:\s\s++|(?<=[}}\]])\s){NUMBER})(?!\S))*+"
"""`TRAILER` for columns separated by blanks, where a single blank before a number would make it a class."""

SPARSE = r"\(\d+\s*,.*\)\s*+"
"""Pattern of features written as (number,value)(number,value)."""

SEPARATORS = ("comma", "tab", "blank")
ENDS = {False: r"\s*+\Z", True: r"\s++\{(?: |\Z)"}
"""Pattern of the end of a line, and of the beginning of a distribution, `{ class number, ... }`."""

CLASS_LINES = {
    (name, distributed): re.compile(rf"{features}({classes}){end}")
    for name, features, classes in (
        ("comma", rf"(?:{SPARSE}|.*,)?", rf"([^,\s]{{1,1000}}+),([^,\s]++){TRAILER}"),
        ("tab", r"(?:.*\t)?", rf"([^\t\s]++)\t([^\t\s]++){TRAILER}"),
    )
    for distributed, end in ENDS.items()
}
"""Pattern of lines whose features end in the last separator before two classes."""

CLASS_WORDS = re.compile(rf"(?:^|(?<= ))((\S++) ++(\S++){BLANK_TRAILER})")
"""Pattern of two classes among words, and what may follow them."""

TRAILERS = {name: re.compile(rf"{BLANK_TRAILER if name == 'blank' else TRAILER}\s*+") for name in SEPARATORS}
"""Pattern of what follows a distribution."""

NEIGHBOUR_LINE = re.compile(r"# k=|#\t")
N_SNIFFED = 50
"""Lines read to find separator and format."""

WORD_MARKS = ("/", "//")
"""Mbt's marks of known and unknown words."""


def read_timbl(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read classified instances, one file per setting; the gold classes of all must agree."""
    tables = [_read_instances(source.path, options) for source in sources]
    columns = replace(options.with_columns(gold="gold", prediction="predicted", item=None), align="position")
    return build_label_counts(join_tables(sources, tables, None, columns), columns)


def _read_instances(path: Path, options: Options) -> FileTable:
    with open_text(path) as text:
        head = list(islice(_iter_instances(text), N_SNIFFED))
    check_filled(path, head)
    separator = options.own.get("separator") or _detect_separator(head)
    if separator is None:
        raise InputError(
            file=path,
            line=head[0][0],
            found=f"{head[0][1][:60]!r}",
            expected="features, class and predicted class, on every line separated by commas, or by tabs, or by "
            f"blanks (choose with {spell('format', 'timbl:separator=comma')})",
        )
    gold, predicted, numbers = list[str](), list[str](), list[int]()
    classes: dict[str, str] = {}  # one string object for each class
    features = [part[0] for _, line in head if (part := _split_line(line, separator)) is not None]
    is_sparse = separator == "comma" and all(re.fullmatch(rf"{SPARSE}|(?:\d+,)*", text) for text in features)
    width = None if is_sparse else _count_features(features[0], separator) if features else 0
    with open_text(path) as text:
        for number, line in _iter_instances(text):
            parts = _split_line(line, separator)
            if parts is None or width not in {None, _count_features(parts[0], separator)}:
                raise InputError(
                    file=path,
                    line=number,
                    found=f"{line[:60]!r}",
                    expected=f"{'' if width is None else f'{width} '}features, class and predicted class "
                    f"separated by {separator}s, as on line {head[0][0]}",
                )
            gold.append(classes.setdefault(parts[1], parts[1]))
            predicted.append(classes.setdefault(parts[2], parts[2]))
            numbers.append(number)
    return FileTable(path, {"gold": gold, "predicted": predicted}, numbers)


def _iter_instances(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of instances, without lists of nearest neighbours (+v n, +v k)."""
    listing = False
    for number, line in enumerate(lines, start=1):
        listing = line.startswith("# k=") or (listing and NEIGHBOUR_LINE.match(line) is not None)
        if not listing and (stripped := line.rstrip("\r\n")).strip():
            yield number, stripped


def _split_line(line: str, separator: str) -> tuple[str, str, str, str] | None:
    """Split a line into features, gold class, predicted class, and the rest.

    Examples
    --------
    >>> _split_line("a,{,T,E { { 1.0, } 2.0 } 0.5", "comma")
    ('a,{,', 'T', 'E', ' { { 1.0, } 2.0 } 0.5')
    >>> _split_line("a b  T E  1  0.5", "blank")
    ('a b  ', 'T', 'E', '  1  0.5')
    """
    end = line.rfind(" }")
    has_distribution = end >= 0 and TRAILERS[separator].fullmatch(line, end + 2) is not None
    text = line[:end] if has_distribution else line
    if separator == "blank":  # the first two words that only a trailer or a distribution follows
        ending, position = re.compile(ENDS[has_distribution]), 0
        while (match := CLASS_WORDS.search(text, position)) is not None and not ending.match(text, match.end()):
            position = max(match.start(3), text.rfind(" ", 0, match.end()) + 1)
    else:
        match = CLASS_LINES[separator, has_distribution].match(text)
    return match and (line[: match.start(1)], match[2], match[3], line[match.end(3) :])


def _detect_separator(head: Sequence[tuple[int, str]]) -> str | None:
    """Return the first separator by which all lines have classes and, except for the comma, equally many features."""
    for name in SEPARATORS:
        parts = [_split_line(line, name) for _, line in head]
        widths = {_count_features(part[0], name) for part in parts if part is not None}
        if None not in parts and (name == "comma" or len(widths) == 1):
            return name
    return None


def _count_features(features: str, separator: str) -> int:
    return len(features.split()) if separator == "blank" else features.count({"comma": ",", "tab": "\t"}[separator])


def sniff_timbl(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether a file has classes followed by distributions or distances on every line."""
    head = list(islice(_iter_instances(read_head_lines(sources[0].path)), N_SNIFFED))
    separator = _detect_separator(head) if head else None
    if separator is None:
        return False
    parts = [_split_line(line, separator) for _, line in head]
    rests = [part[3] for part in parts if part is not None]
    return all("{" in rest or (separator == "comma" and rest.strip() != "") for rest in rests)


def read_mbt(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read tagged sentences, one file per tagger; items are sentences, labels belong to tokens."""
    labels, tokens = Codes(), Codes()
    end = options.own.get("end", sentences.UTTERANCE_END)
    files = [_read_sentences(source.path, end, labels, tokens) for source in sources]
    first, other_files = files[0], files[1:]
    sentences.check_structure(first, other_files, end)
    gold_codes = sentences.get_shared_gold(files, labels)
    options.check_used_labels(labels)
    label_map = options.label_mapping
    mapped = Codes()
    code = np.array([mapped[label_map.get(label, label)] for label in labels], np.int32)
    names = tuple(mapped)
    predicted = np.column_stack([code[file.labels] for file in files])
    of_tokens = LabelFields(code[gold_codes][:, None], predicted, names)
    gold_names = {names[k] for k in np.unique(code[gold_codes])}
    for source, tags in zip(sources, predicted.T, strict=True):
        if gold_names.isdisjoint(names[k] for k in np.unique(tags)):
            raise InputError(
                f"0 of its {len(tags):,} tags occur in gold (such as {names[tags[0]]!r}; gold has "
                f"{', '.join(sorted(gold_names)[:8])})",
                file=source.path,
                remedy=f"if tags have other names, {spell_map(min(gold_names), names[tags[0]])}",
            )
    return Counts(
        systems=tuple(list_system_names(sources)),
        fields=LazyColumns([*of_tokens], lambda name: sentences.sum_sentences(of_tokens[name], first.starts)),
        n_items=len(first.starts),
        groups=sentences.build_groups(files, options.groups),
        labels=tuple(sorted(gold_names)),
        predicted_labels=tuple(sorted(set(names) - gold_names)),
        outputs=sentences.build_outputs(code[gold_codes], list(predicted.T), first.starts, names),
        suggested=("accuracy",),
        warnings=tuple(sentences.describe_altered_tokens(first, other_files, tokens)),
    )


def _read_sentences(path: Path, end: str, labels: Codes, tokens: Codes) -> sentences.TaggedFile:
    collector = sentences.SentenceCollector(path, labels, tokens)
    for number, line in enumerate_lines(path):
        words = _split_words(line.rstrip(" \r\n"), end)
        if words is None:
            raise InputError(
                file=path,
                line=number,
                found=f"{line.strip()[:60]!r}",
                expected=f"word, tag and predicted tag separated by tabs, blanks or //, or {end}; Mbt writes "
                "gold tags if it reads a tagged file (-T, not -t)",
            )
        for word in words:
            if word == ("",):
                collector.end_sentence()
            else:
                token, gold, predicted = word
                collector.add_token(number, predicted, gold, token)
    return collector.build_file()


def _split_words(line: str, end: str) -> list[tuple[str, ...]] | None:
    r"""Return the word, gold tag and predicted tag of each word on a line, ("",) for a sentence end.

    Examples
    --------
    >>> _split_words("emissie\t//\tN\tAdj [0.9] { N 1.0 } 0.07", "<utt>")
    [('emissie', 'N', 'Adj')]
    >>> _split_words("de//Art//Art zak//N//V <utt>", "<utt>")
    [('de', 'Art', 'Art'), ('zak', 'N', 'V'), ('',)]
    >>> _split_words("de/Art zak//N", "<utt>") is None
    True
    """
    if not line.strip() or line.strip() == end:
        return [("",)]
    if "\t" in line:
        parts = line.split("\t")
        return [(parts[0], parts[-2], parts[-1].split(" ", 1)[0])] if len(parts) > 2 else None
    parts = line.split()
    if len(parts) > 3 and parts[1] in WORD_MARKS:
        return [(parts[0], parts[2], parts[3])]
    slashed = [("",) if part == end else tuple(part.rsplit("//", 2)) for part in parts]
    if all(len(word) != 2 and (len(word) == 3 or word == ("",)) for word in slashed):
        return slashed
    return [(parts[0], parts[1], parts[2])] if len(parts) == 3 and "/" not in parts[1] + parts[2] else None


def sniff_mbt(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether a file holds words with Mbt's marks of known and unknown words, and both tags."""
    head = read_head_lines(sources[0].path)[:N_SNIFFED]
    rows = [line.split() for line in head if line.strip() and line.strip() != sentences.UTTERANCE_END]
    return bool(rows) and all(len(row) > 3 and row[1] in WORD_MARKS for row in rows)
