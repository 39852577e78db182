"""Word pairs: each word with its morphs, its form or its phones, tab-separated.

Right morphs are those of a longest common subsequence with the gold morphs, as in the scorer of the SIGMORPHON 2022
shared task. The edit distance is that of the characters of the morphs joined by `|`. With `level=sentence` the rows are
sentences: blanks separate words, ` @@` separates morphs, and words are compared one by one, as in that scorer at its
level "sentence". Otherwise both separate morphs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sigdask.counts import Counts, Outputs
from sigdask.counts.checks import canonicalize
from sigdask.counts.fields import to_object_array
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.files import build_repeated_id_error, check_filled, enumerate_lines, read_head_lines
from sigdask.formats.reading.listings import read_by_system
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.spans.matching import compute_morph_fields
from sigdask.interface import spell
from sigdask.text import describe_items, format_count

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
    is_marked : bool
        Whether morphs are separated by ` @@`.
    """

    path: Path
    words: list[str]
    targets: list[str]
    rest: list[str]
    first: int
    is_marked: bool


def read_pairs(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read words and their morphs, from a gold file and one file per system."""
    assert gold is not None
    gold_rows = _read_file(options, gold)
    if "separator" not in options.own and "level" not in options.own:
        _check_level(gold_rows)
    files = read_by_system(sources, partial(_read_file, options))
    warnings: list[str] = []
    has_rest = all(file.words and file.rest[0] for file in (gold_rows, *files.values()))
    with_rest = has_rest and len({*gold_rows.words}) < len(gold_rows.words)
    keys = _build_keys(gold_rows, with_rest=with_rest)
    outputs = {
        name: [file.targets[row] for row in _order_rows(gold_rows, file, keys, options, warnings, with_rest=with_rest)]
        for name, file in files.items()
    }
    columns = list(outputs.values())
    are_forms = _find_features(gold) is not None and "separator" not in options.own and "column" not in options.own
    is_bag = options.own.get("match") == "bag"
    is_sentence = options.own.get("level") == "sentence"
    categories = tuple(rest.split("\t", 1)[0] for rest in gold_rows.rest)  # as text: 001 keeps its zeros
    return Counts(
        systems=tuple(outputs),
        fields=compute_morph_fields(gold_rows.targets, columns, bag=is_bag, sentences=is_sentence),
        n_items=len(keys),
        ids=tuple(keys) if len({canonicalize(key) for key in keys}) == len(keys) else None,
        groups={"category": categories} if all(categories) else {},
        outputs=Outputs(tuple(map(to_object_array, columns)), to_object_array(gold_rows.targets)),
        # in forms with features a blank separates words, not morphs
        suggested=("accuracy", "edit-distance") if are_forms else ("f1", "accuracy", "edit-distance"),
        warnings=tuple(warnings),
    )


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Return whether the gold file has UniMorph's features, a header of words and morphs, or marks ` @@` of morphs."""
    if gold is None or options.own or sources[0].path.is_dir() or gold.is_dir():
        return False
    lines = [line.split("\t") for line in read_head_lines(gold) if line.strip()]
    if not lines or not all(2 <= len(cells) <= 4 for cells in lines):
        return False
    return (
        any(MORPH_MARK in cells[1] or BPE_MARK in cells[1] for cells in lines)
        or any(_is_header(lines[0], k) for k in range(1, len(lines[0])))
        or _find_features(gold) is not None
    )


def _find_features(path: Path) -> int | None:
    """Return the index of the column in which all rows have features of UniMorph, if there is one, or None."""
    rows = [line.split("\t") for line in read_head_lines(path)[:100] if line.strip()]
    rows = rows[1:] if len(rows) > 1 and any(_is_header(rows[0], k) for k in range(1, len(rows[0]))) else rows
    for column in (1, 2):
        cells = [cells[column] for cells in rows if len(cells) > 2]
        if len(cells) == len(rows) and cells and all(map(FEATURES.fullmatch, cells)):
            return column if any(";" in cell or "=" in cell for cell in cells) else None
    return None


def _check_level(gold_rows: PairRows) -> None:
    """Raise if words have blanks and morphs marks, so that rows may be words or sentences."""
    n = sum(" " in word.strip() for word in gold_rows.words)
    if n and gold_rows.is_marked:
        raise InputError(
            f"the first column has blanks in {n:,} of {format_count(len(gold_rows.words), 'row')}: are rows words or "
            "sentences?",
            file=gold_rows.path,
            remedy=f"choose {spell('format', 'pairs:level=word')} or {spell('format', 'pairs:level=sentence')}",
        )


def _read_file(options: Options, path: Path) -> PairRows:
    target = _find_morph_column(options, path)
    separator = options.own.get("separator")
    sentences = options.own.get("level") == "sentence"
    words, targets, rest = list[str](), list[str](), list[str]()
    width = first = 0
    is_marked = False
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
        is_marked |= MORPH_MARK in text or BPE_MARK in text
        rest.append(sys.intern("\t".join(cells[1:target] + cells[target + 1 :])))
        first = first or number
    check_filled(path, targets)
    return PairRows(path, words, targets, rest, first, is_marked)


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
    text = options.own.get("column") or ("3" if _find_features(path) == 1 else "2")
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


def _build_keys(file: PairRows, *, with_rest: bool) -> list[str]:
    """Return what identifies the rows: words, with all further columns if words repeat; numbers if there are none."""
    if not file.words:
        return [str(k) for k in range(len(file.targets))]
    pairs = zip(file.words, file.rest, strict=True)
    return [f"{word} {rest}" for word, rest in pairs] if with_rest else file.words


def _order_rows(
    gold_rows: PairRows,
    file: PairRows,
    expected: Sequence[str],
    options: Options,
    warnings: list[str],
    *,
    with_rest: bool,
) -> Iterable[int]:
    """Return the row of a system's file for each gold row: by position if the words agree in order, else by word."""
    keys = _build_keys(file, with_rest=with_rest)
    has_words = bool(file.words and gold_rows.words)
    if options.align == "id" and not has_words:
        raise InputError(
            f"{spell('align', 'id')} needs the words in every file",
            file=file.path,
            remedy=f"write word TAB morphs, or add {spell('align', 'position')}",
        )
    if has_words and options.align != "position" and keys != expected:
        warnings.append(
            f"{file.path}: the words stand in another order than in {gold_rows.path}; rows are aligned by word"
        )
        gold_places, places = _find_places(gold_rows, expected), _find_places(file, keys)
        remedy = f"give a row for each gold word, or align rows by position: {spell('align', 'position')}"
        if lacking := [key for key in expected if key not in places]:
            problem = f"lacks {describe_items(lacking, 'word')} of {gold_rows.path}"
            raise InputError(problem, file=file.path, remedy=remedy)
        if extra := [key for key in keys if key not in gold_places]:
            problem = f"{describe_items(extra, 'word')} not among those of {gold_rows.path}"
            raise InputError(problem, file=file.path, line=file.first + places[extra[0]], remedy=remedy)
        return [places[key] for key in expected]
    if len(keys) != len(expected):
        raise InputError(
            f"{format_count(len(keys), 'row')}, but {gold_rows.path} has {len(expected)}. Rows are aligned "
            "by position, so give a row for each gold row",
            file=file.path,
        )
    if has_words and (n := sum(a != b for a, b in zip(keys, expected, strict=True))):
        problem = f"{n:,} of {len(keys):,} words are not those of {gold_rows.path}"
        warnings.append(ScopeNote(f"{file.path}: {problem}; rows are aligned by position nevertheless"))
    return range(len(keys))


def _find_places(file: PairRows, keys: Sequence[str]) -> dict[str, int]:
    """Return the row of each key; raise for a repeated one."""
    places: dict[str, int] = {}
    for row, key in enumerate(keys):
        if (earlier := places.setdefault(key, row)) != row:
            location = f"{file.path}, line {file.first + row}"
            raise build_repeated_id_error(location, repr(key), f"on line {file.first + earlier}")
    return places
