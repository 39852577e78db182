"""Word pairs: each word with its morphs, its form or its phones, tab-separated.

Right morphs are those of a longest common subsequence with the gold morphs, as in the scorer of the SIGMORPHON 2022
shared task. The edit distance is that of the characters of the morphs joined by `|`. If first cells have several words,
the rows are sentences: blanks separate words, ` @@` separates morphs, and words are compared one by one, as in that
scorer at its level "sentence". Otherwise both separate morphs.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from sigdask.counts import Counts, Outputs
from sigdask.counts.checks import canonicalize
from sigdask.counts.fields import to_object_array
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import MIN_SHARE_ALIKE, align, describe_differences
from sigdask.formats.reading.files import check_filled, enumerate_lines, read_head_lines
from sigdask.formats.reading.listings import read_by_system
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.tables import FileTable
from sigdask.formats.spans.matching import compute_morph_fields
from sigdask.interface import spell
from sigdask.text import format_count

WORD_NAMES = ("word", "form", "lemma", "input", "source", "grapheme")
TARGET_NAMES = ("segmentation", "segments", "segmented", "morphs", "morphemes", "target", "output", "prediction",
                "gold", "form", "inflected", "phonemes", "pronunciation")  # fmt: skip
MORPH_MARK = " @@"
"""Mark before each morph except the first."""

BPE_MARK = "@@ "
"""Mark after each morph except the last, as byte-pair encoders write it."""

SEPARATORS = {"": " ", "space": " ", "blank": " ", "@@": MORPH_MARK}
"""Names of the values of the option `separator`."""

FEATURES = re.compile(r"[A-Z0-9][\w.+/{}(),-]*(;[\w.+/{}(),!:*-]+)*|\w+=\w+(,\w+=[\w/]+)*")
"""Pattern of UniMorph's features (V;IND;PST), and of those of older shared tasks (pos=V,tense=PST)."""


@dataclass(frozen=True, slots=True)
class PairRows:
    """The rows of one file of words and their morphs.

    Attributes
    ----------
    path : Path
        The file.
    words : list of str
        The first column; empty if the file has only one column.
    targets : list of str
        Morphs of each word, joined by `|`.
    rest : list of str
        Further columns, joined by tabs.
    first : int
        The line of the first row.
    n_marked, n_blank : int
        Numbers of rows separated by ` @@`, and only by blanks, although the word has none.
    """

    path: Path
    words: list[str]
    targets: list[str]
    rest: list[str]
    first: int
    n_marked: int
    n_blank: int


def read_pairs(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read words and their morphs, from a gold file and one file per system."""
    assert gold is not None
    level = options.own.get("level") or _detect_level(gold, options)
    options = options.with_format_options({"level": level})
    gold_rows = _read_file(options, gold)
    files = read_by_system(sources, partial(_read_file, options))
    warnings = [note for name, file in files.items() for note in _describe_blanks(name, file, gold_rows, options)]
    keys = _find_key_columns(gold_rows, [*files.values()])
    outputs = {
        name: [file.targets[row] for row in _order_rows(gold_rows, file, keys, options, warnings)]
        for name, file in files.items()
    }
    n_items = len(gold_rows.targets)
    unique = len({canonicalize(key) for key in _build_keys(gold_rows, keys)}) == n_items
    columns = list(outputs.values())
    segmented = 10 * sum("|" in target for target in gold_rows.targets) > n_items  # forms have a blank now and then
    # in inflected forms with features a blank separates words, not morphs
    are_inflected = any(map(partial(_are_features, _read_head(gold)), (1, 2))) and not gold_rows.n_marked
    segmented = segmented and not (are_inflected and not {"separator", "column"} & options.own.keys())
    suggested = ("f1", "accuracy", "edit-distance") if segmented else ("accuracy", "edit-distance")
    is_bag = options.own.get("match") == "bag"
    categories = tuple(rest.split("\t", 1)[0] for rest in gold_rows.rest)  # as text: 001 keeps its zeros
    return Counts(
        systems=tuple(outputs),
        fields=compute_morph_fields(gold_rows.targets, columns, bag=is_bag, sentences=level == "sentence"),
        n_items=n_items,
        ids=tuple(_build_keys(gold_rows, keys)) if unique else None,
        groups={"category": categories} if all(categories) else {},
        outputs=Outputs(tuple(map(to_object_array, columns)), to_object_array(gold_rows.targets)),
        suggested=suggested,
        warnings=tuple(warnings),
    )


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Return whether files hold words with morphs marked by ` @@` or spaces, or forms of words."""
    if gold is None or options.own or sources[0].path.is_dir() or gold.is_dir():
        return False
    heads = [_read_head(path) for path in (sources[0].path, gold)]
    if _are_bare_forms(*heads):
        return True
    if not all(head and all(2 <= len(cells) <= 4 for cells in head) for head in heads):
        return False
    rows = [cells for head in heads for cells in head]
    is_marked = any(MORPH_MARK in cells[1] or BPE_MARK in cells[1] for cells in rows)
    is_spelled = all(cells[1].replace(" ", "") == cells[0] for cells in rows) and any(" " in cells[1] for cells in rows)
    if is_marked or is_spelled or not all(map(_are_forms, heads)):
        return is_marked or is_spelled
    words = [{cells[0] for cells in head} for head in heads]
    share_words = 2 * len(words[0] & words[1]) > min(map(len, words))
    has_sentences = "\n\n" in "\n".join(read_head_lines(gold)).strip("\n")  # empty lines between rows
    return len(rows[0]) > 2 or (share_words and not has_sentences)


def _are_forms(head: list[list[str]]) -> bool:
    """Return whether rows are words, forms and features, or two columns of rarely repeated words."""
    if len({len(cells) for cells in head}) != 1 or _is_header(head[0], 1):
        return False
    if len(head[0]) > 2:
        return _are_features(head, 1) or _are_features(head, 2)
    words, forms = zip(*head, strict=True)
    return all(word.isalpha() for word in words) and all(2 * len(set(cells)) > len(head) for cells in (words, forms))


def _are_bare_forms(rows: list[list[str]], gold: list[list[str]]) -> bool:
    """Return whether a one-column file holds forms of the words in a gold file with features."""
    if any(len(cells) != 1 for cells in rows) or not all(2 < len(cells) < 5 for cells in gold) or not _are_forms(gold):
        return False
    form = 2 if _are_features(gold, 1) else 1
    return not {cells[0] for cells in rows}.isdisjoint(cells[form] for cells in gold)


def _are_features(head: Sequence[Sequence[str]], column: int) -> bool:
    cells = [cells[column] for cells in head if len(cells) > column]
    return all(map(FEATURES.fullmatch, cells)) and any(";" in cell or "=" in cell for cell in cells)


def _read_head(path: Path) -> list[list[str]]:
    """Return the first rows, without a header."""
    rows = [line.split("\t") for line in read_head_lines(path)[:100] if line.strip()]
    return rows[1:] if len(rows) > 1 and any(_is_header(rows[0], k) for k in range(1, len(rows[0]))) else rows


def _read_file(options: Options, path: Path) -> PairRows:
    target = _find_morph_column(options, path)
    separator = options.own.get("separator")
    sentences = options.own.get("level") == "sentence"
    words, targets, rest = list[str](), list[str](), list[str]()
    width = first = n_marked = n_blank = 0
    for number, cells in _iter_rows(path):
        if not width and len(cells) > target and _is_header(cells, target):
            continue
        width = width or len(cells)
        if 1 < width <= target or len(cells) < min(width, target + 1):
            raise InputError(
                file=path,
                line=number,
                found=f"{len(cells)} column{'s' * (len(cells) > 1)}",
                expected=f"at least {target + 1}: word TAB morphs",
            )
        if width > 1:
            words.append(sys.intern(cells[0]))
        text = cells[target if width > 1 else 0]
        targets.append(sys.intern(join_morphs(text, separator, sentence=sentences)))
        n_marked += MORPH_MARK in text or BPE_MARK in text
        n_blank += " " in text and "@@" not in text and " " not in cells[0]
        rest.append(sys.intern("\t".join(cells[1:target] + cells[target + 1 :])))
        first = first or number
    check_filled(path, targets)
    return PairRows(path, words, targets, rest, first, n_marked, n_blank)


def _iter_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield line numbers and cells; quotes are text, and empty lines are allowed only at the end."""
    blank = 0
    for number, line in enumerate_lines(path):
        cells = line.rstrip("\r\n").split("\t")
        if cells == [""]:
            blank = blank or number
            continue
        if blank:
            raise InputError("is empty, expected word TAB morphs; complete or remove it", file=path, line=blank)
        yield number, cells


def _find_morph_column(options: Options, path: Path) -> int:
    """Return the index of the column of morphs: the requested one, the third if features come second, or the second."""
    head = _read_head(path)
    between = bool(head) and all(len(cells) > 2 for cells in head) and _are_features(head, 1)
    text = options.own.get("column", "3" if between else "2")
    if not text.isdecimal() or int(text) < 2:
        raise InputError(f"format pairs: column = {text!r}: must be a number of 2 or more")
    return int(text) - 1


def _is_header(cells: list[str], target: int) -> bool:
    return cells[0].strip().lower() in WORD_NAMES and cells[target].strip().lower() in TARGET_NAMES


def join_morphs(text: str, separator: str | None = None, *, sentence: bool = False) -> str:
    """Join a word's morphs by `|`; they are separated by ` @@`, `@@ `, blanks, `|` or the separator.

    In a sentence blanks part words and are kept.

    Examples
    --------
    >>> join_morphs("un @@break @@able"), join_morphs("un@@ break able"), join_morphs("un+break", "+"), join_morphs("")
    ('un|break|able', 'un|break|able', 'un|break', '')
    >>> join_morphs("ad hoc @@ly", "@@"), join_morphs("un @@able", "space"), join_morphs("the dog @@s", sentence=True)
    ('ad hoc|ly', 'un|@@able', 'the dog|s')
    """
    if separator is not None:
        mark = SEPARATORS.get(separator, separator)
        joined = text.replace(mark, "|")
        return joined.replace(BPE_MARK, "|") if mark == MORPH_MARK else joined
    joined = text.replace(MORPH_MARK, "|").replace(BPE_MARK, "|")
    return " ".join(joined.split()) if sentence else joined.replace(" ", "|")


def _detect_level(gold: Path, options: Options) -> str:
    """Return "sentence" if most first cells hold several words and as many morph groups, else "word"."""
    rows = [cells for cells in _read_head(gold) if len(cells) > 1]
    target = _find_morph_column(options, gold)
    sentences = [cells for cells in rows if " " in cells[0].strip() and len(cells) > target]
    is_marked = any("@@" in cells[target] for cells in sentences)
    if not is_marked or "separator" in options.own or 2 * len(sentences) <= len(rows):
        return "word"
    lengths = [(len(cells[0].split()), len(join_morphs(cells[target], sentence=True).split())) for cells in sentences]
    return "sentence" if all(n == n_groups for n, n_groups in lengths) else "word"


def _describe_blanks(name: str, file: PairRows, gold_rows: PairRows, options: Options) -> list[str]:
    """Return a warning if morphs are separated by blanks in one file and by ` @@` in another."""
    if "separator" in options.own or options.own["level"] == "sentence":
        return []
    blank_file = file if file.n_blank else gold_rows
    if not blank_file.n_blank or not (file.n_marked or gold_rows.n_marked):
        return []
    problem = f"{blank_file.path}: {blank_file.n_blank:,} words are parted by blanks, others of {name} or gold by ' @@'"
    return [f"{problem}; both part morphs, as in SIGMORPHON's scorer; take one alone by pairs:separator=@@ or =space"]


def _find_key_columns(gold_rows: PairRows, files: Sequence[PairRows]) -> tuple[int, ...]:
    """Return the indices of columns that identify a row together with its word, if words alone are not unique.

    They are similar for a word in every file, unlike columns on when, in which order or by whom a row was made.
    """
    n_columns = gold_rows.rest[0].count("\t")
    shared = all(file.rest[0].count("\t") == n_columns and file.rest[0] for file in (gold_rows, *files))
    if not shared or len(set(gold_rows.words)) == len(gold_rows.words):
        return ()

    def is_shared(k: int) -> bool:
        gold_keys = Counter(_build_keys(gold_rows, (k,)))
        n_shared = ((Counter(_build_keys(file, (k,))) & gold_keys).total() for file in files)
        return all(2 * n > len(gold_rows.words) for n in n_shared)

    return tuple(filter(is_shared, range(n_columns + 1)))


def _build_keys(file: PairRows, keys: tuple[int, ...]) -> list[str]:
    if not keys or not file.words:
        return file.words or [str(k) for k in range(len(file.targets))]
    rest = (cells.split("\t") for cells in file.rest)
    key_cells = ("\t".join(cells[k] for k in keys if k < len(cells)) for cells in rest)
    return [f"{word} {cells}" for word, cells in zip(file.words, key_cells, strict=True)]


def _order_rows(
    gold_rows: PairRows, file: PairRows, keys: tuple[int, ...], options: Options, warnings: list[str]
) -> Iterable[int]:
    """Return the row of a system's file for each gold row: by position if the words agree in order, else by word."""
    expected, file_keys = _build_keys(gold_rows, keys), _build_keys(file, keys)
    rows = range(len(file_keys))
    if not file.words or not gold_rows.words or options.align == "position" or file_keys == expected:
        if options.align == "id" and not (file.words and gold_rows.words):
            raise InputError(
                f"{spell('align', 'id')} needs the words in every file",
                file=file.path,
                remedy=f"write word TAB morphs, or add {spell('align', 'position')}",
            )
        if len(file_keys) != len(expected):
            raise InputError(
                f"{format_count(len(file_keys), 'row')}, but {gold_rows.path} has {len(expected)}. Rows are aligned "
                "by position, so give a row for each gold row",
                file=file.path,
            )
        if file.words and gold_rows.words and (n := sum(a != b for a, b in zip(file_keys, expected, strict=True))):
            problem = f"{n:,} of {len(file_keys):,} words are not those of {gold_rows.path}"
            warnings.append(f"{file.path}: {problem}; rows are aligned by position nevertheless")
        return rows
    n_alike = sum(a == b for a, b in zip(file.words, gold_rows.words, strict=False))
    nearly = options.align == "auto" and len(file_keys) == len(expected) and n_alike > MIN_SHARE_ALIKE * len(expected)
    if nearly and Counter(file_keys) != Counter(expected):
        warnings.append(describe_differences(str(file.path), str(gold_rows.path), n_alike, len(expected)))
        return rows
    gold_table, table = (
        FileTable(part.path, {"word": words}, range(part.first, part.first + len(words)))
        for part, words in ((gold_rows, expected), (file, file_keys))
    )
    _, [order], notes = align(gold_table, [table], replace(options.with_columns(item="word"), align="id"), noun="word")
    warnings += notes
    return list(np.arange(len(file_keys))[order])
