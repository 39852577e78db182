"""Word pairs: each word with its morphs (or its form, or its phones), tab-separated.

The morphs that are right are those of a longest common subsequence with the gold morphs, as the
scorer of the SIGMORPHON 2022 shared task counts them; the edit distance is of the morphs joined by
`|`, character by character. Of sentences (first cells of several words) blanks part words and ` @@` parts
morphs: words are compared one by one, as that scorer does at its level "sentence"; of words both part morphs.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sigdask.counts import Counts, Outputs
from sigdask.counts.checks import canonical
from sigdask.counts.fields import objects
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import NEARLY, nearly_alike
from sigdask.formats.reading.files import empty, head_lines, open_text
from sigdask.formats.reading.listings import named
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.rows import repeated_id
from sigdask.formats.spans.pair_counts import morph_fields
from sigdask.text import count_noun, some

WORD_NAMES = ("word", "form", "lemma", "input", "source", "grapheme")
TARGET_NAMES = ("segmentation", "segments", "segmented", "morphs", "morphemes", "target", "output", "prediction",
                "gold", "form", "inflected", "phonemes", "pronunciation")  # fmt: skip
MARK = " @@"
"""Before each morph but the first."""

BPE = "@@ "
"""After each morph but the last, as byte-pair encoders write it."""

SEPARATORS = {"": " ", "space": " ", "blank": " ", "@@": MARK}
"""What the option `separator` may be called."""

FEATURES = re.compile(r"[A-Z0-9][\w.+/{}(),-]*(;[\w.+/{}(),!:*-]+)*|\w+=\w+(,\w+=[\w/]+)*")
"""A bundle of UniMorph's features (V;IND;PST), or of the tasks before it (pos=V,tense=PST)."""


@dataclass(frozen=True, slots=True)
class PairRows:
    """The rows of one file.

    Attributes
    ----------
    path : Path
        The file.
    words : list of str
        The first column; empty where the file has one column only.
    targets : list of str
        Morphs of each word, joined by `|`.
    rest : list of str
        Further columns, joined by tabs.
    first : int
        The line of the first row.
    n_marked, n_blank : int
        Rows parted by ` @@`, and by blanks alone, although the word has none.
    """

    path: Path
    words: list[str]
    targets: list[str]
    rest: list[str]
    first: int
    n_marked: int = 0
    n_blank: int = 0


def read_pairs(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read words and their morphs, gold and a file a system."""
    options.only("pairs", separator=(), column=(), match=("lcs", "bag"), level=("word", "sentence"))
    if gold is None:
        raise InputError("format pairs: no gold pairs; give --gold FILE")
    level = options.own.get("level") or _level(gold, options)
    options = options.with_own({"level": level})
    right = _read(options, gold)
    files = named(sources, partial(_read, options))
    warnings = [note for name, file in files.items() for note in _blanks(name, file, right, options)]
    keys = _keys(right, [*files.values()])
    given = {
        name: [file.targets[row] for row in _order(right, file, keys, options, warnings)]
        for name, file in files.items()
    }
    n_items = len(right.targets)
    unique = len({canonical(key) for key in _of_row(right, keys)}) == n_items
    columns = list(given.values())
    segmented = 10 * sum("|" in target for target in right.targets) > n_items  # forms have a blank now and then
    segmented = segmented and not _are_inflected(gold, right, options)
    suggested = ("f1", "accuracy", "edit-distance") if segmented else ("accuracy", "edit-distance")
    return Counts(
        systems=tuple(given),
        fields=morph_fields(
            right.targets, columns, bag=options.own.get("match") == "bag", sentences=level == "sentence"
        ),
        n_items=n_items,
        name=options.name,
        ids=tuple(_of_row(right, keys)) if unique else None,
        groups=_groups(right),
        outputs=Outputs(tuple(objects(column) for column in columns), objects(right.targets)),
        suggested=suggested,
        warnings=tuple(warnings),
    )


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:
    """Whether gold and first file are words with morphs marked by ` @@` or spaces, or forms of words."""
    if gold is None or options.own or sources[0].path.is_dir() or gold.is_dir():
        return False
    heads = [_head(path) for path in (sources[0].path, gold)]
    if _are_bare_forms(*heads):
        return True
    if not all(head and all(2 <= len(cells) <= 4 for cells in head) for head in heads):
        return False
    rows = [cells for head in heads for cells in head]
    marked = any(MARK in cells[1] or BPE in cells[1] for cells in rows)
    spelled = all(cells[1].replace(" ", "") == cells[0] for cells in rows) and any(" " in cells[1] for cells in rows)
    forms = all(map(_are_forms, heads)) and (len(rows[0]) > 2 or (_share_words(*heads) and not _has_sentences(gold)))
    return marked or spelled or forms


def _are_forms(head: list[list[str]]) -> bool:
    """Whether rows are words and forms with features beside, or two columns of words, unlike labels hardly repeated."""
    if len({len(cells) for cells in head}) != 1 or _is_header(head[0], 1):
        return False
    if len(head[0]) > 2:
        return _are_features(head, 1) or _are_features(head, 2)
    words, forms = zip(*head, strict=True)
    return all(word.isalpha() for word in words) and all(2 * len(set(cells)) > len(head) for cells in (words, forms))


def _are_bare_forms(own: list[list[str]], gold: list[list[str]]) -> bool:
    """Whether a file of one column holds forms of the words that the gold file has with features beside."""
    if any(len(cells) != 1 for cells in own) or not all(2 < len(cells) < 5 for cells in gold) or not _are_forms(gold):
        return False
    form = 2 if _are_features(gold, 1) else 1
    return not {cells[0] for cells in own}.isdisjoint(cells[form] for cells in gold)


def _are_inflected(gold: Path, right: PairRows, options: Options) -> bool:
    """Whether gold rows are forms with features beside: a blank within such a form parts words, not morphs."""
    head = _head(gold)
    between = any(map(partial(_are_features, head), (1, 2)))
    return between and not right.n_marked and not {"separator", "column"} & options.own.keys()


def _are_features(head: Sequence[Sequence[str]], column: int) -> bool:
    cells = [cells[column] for cells in head if len(cells) > column]
    return all(map(FEATURES.fullmatch, cells)) and any(";" in cell or "=" in cell for cell in cells)


def _share_words(one: list[list[str]], other: list[list[str]]) -> bool:
    words = [{cells[0] for cells in head} for head in (one, other)]
    return 2 * len(words[0] & words[1]) > min(map(len, words))


def _has_sentences(path: Path) -> bool:
    """Whether empty lines part the rows, as they part sentences."""
    return "\n\n" in "\n".join(head_lines(path)).strip("\n")


def _head(path: Path) -> list[list[str]]:
    """Return the first rows, without a header."""
    rows = [line.split("\t") for line in head_lines(path)[:100] if line.strip()]
    return rows[1:] if len(rows) > 1 and any(_is_header(rows[0], k) for k in range(1, len(rows[0]))) else rows


def _read(options: Options, path: Path) -> PairRows:
    target = _column(options, path)
    separator = options.own.get("separator")
    sentences = options.own.get("level") == "sentence"
    found = PairRows(path, [], [], [], 0)
    width = n_marked = n_blank = 0
    for number, cells in _rows(path):
        if not width and len(cells) > target and _is_header(cells, target):
            continue
        width = width or len(cells)
        if 1 < width <= target or len(cells) < min(width, target + 1):
            raise InputError(
                f"{path}, line {number}: found {len(cells)} column{'s' * (len(cells) > 1)}, expected word TAB morphs, "
                f"{target + 1} columns at least"
            )
        if width > 1:
            found.words.append(sys.intern(cells[0]))
        text = cells[target if width > 1 else 0]
        found.targets.append(sys.intern(morphs(text, separator, sentence=sentences)))
        n_marked += MARK in text or BPE in text
        n_blank += " " in text and "@@" not in text and " " not in cells[0]
        found.rest.append(sys.intern("\t".join(cells[1:target] + cells[target + 1 :])))
        if len(found.targets) == 1:
            found = replace(found, first=number)
    if not found.targets:
        raise empty(path)
    return replace(found, n_marked=n_marked, n_blank=n_blank)


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield lines and cells; quotes are text, and empty lines may stand at the end alone."""
    blank = 0
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            cells = line.rstrip("\r\n").split("\t")
            if cells == [""]:
                blank = blank or number
                continue
            if blank:
                raise InputError(f"{path}, line {blank}: is empty, expected word TAB morphs; complete or remove it")
            yield number, cells


def _column(options: Options, path: Path) -> int:
    """Return the column of the morphs: the one asked for, the second, or the third where features stand before it."""
    head = _head(path)
    between = bool(head) and all(len(cells) > 2 for cells in head) and _are_features(head, 1)
    text = options.own.get("column", "3" if between else "2")
    if not text.isdecimal() or int(text) < 2:
        raise InputError(f"format pairs: column = {text!r} must be a number of 2 or more")
    return int(text) - 1


def _is_header(cells: list[str], target: int) -> bool:
    return cells[0].strip().lower() in WORD_NAMES and cells[target].strip().lower() in TARGET_NAMES


def morphs(text: str, separator: str | None = None, *, sentence: bool = False) -> str:
    """Join a word's morphs by `|`; they are apart by ` @@`, `@@ `, blanks or `|` unless a separator is given.

    In a sentence blanks part words and are kept.

    Examples
    --------
    >>> morphs("un @@break @@able"), morphs("un@@ break able"), morphs("un+break", "+"), morphs("")
    ('un|break|able', 'un|break|able', 'un|break', '')
    >>> morphs("ad hoc @@ly", "@@"), morphs("un @@able", "space"), morphs("the dog @@s", sentence=True)
    ('ad hoc|ly', 'un|@@able', 'the dog|s')
    """
    if separator is not None:
        mark = SEPARATORS.get(separator, separator)
        joined = text.replace(mark, "|")
        return joined.replace(BPE, "|") if mark == MARK else joined
    joined = text.replace(MARK, "|").replace(BPE, "|")
    return " ".join(joined.split()) if sentence else joined.replace(" ", "|")


def _level(gold: Path, options: Options) -> str:
    """Say whether rows are words or sentences: most first cells hold several words, and as many as their morphs do."""
    rows = [cells for cells in _head(gold) if len(cells) > 1]
    target = _column(options, gold)
    several = [cells for cells in rows if " " in cells[0].strip() and len(cells) > target]
    marked = any("@@" in cells[target] for cells in several)
    even = all(len(cells[0].split()) == len(morphs(cells[target], sentence=True).split()) for cells in several)
    own = "separator" in options.own
    return "sentence" if marked and even and not own and 2 * len(several) > len(rows) else "word"


def _blanks(name: str, file: PairRows, right: PairRows, options: Options) -> list[str]:
    """Say that blanks of a file are taken for what the gold file marks by ` @@`, or the other way about."""
    if "separator" in options.own or options.own["level"] == "sentence":
        return []
    blank = file if file.n_blank else right
    if not blank.n_blank or not (file.n_marked or right.n_marked):
        return []
    problem = f"{blank.path}: {blank.n_blank:,} words are parted by blanks, others of {name} or gold by ' @@'"
    return [f"{problem}; both part morphs, as in SIGMORPHON's scorer; take one alone by pairs:separator=@@ or =space"]


def _keys(right: PairRows, files: Sequence[PairRows]) -> tuple[int, ...]:
    """Return the further columns that are part of a row's key, where words alone are not unique.

    They say much the same of a word in every file. When, in which order or by whom a row was made is no part of it.
    """
    n_columns = right.rest[0].count("\t")
    shared = all(file.rest[0].count("\t") == n_columns and file.rest[0] for file in (right, *files))
    if not shared or len(set(right.words)) == len(right.words):
        return ()
    keys = tuple((k,) for k in range(n_columns + 1))
    return tuple(key[0] for key in keys if all(_n_shared(file, right, key) > len(right.words) / 2 for file in files))


def _n_shared(file: PairRows, right: PairRows, keys: tuple[int, ...]) -> int:
    return (Counter(_of_row(file, keys)) & Counter(_of_row(right, keys))).total()


def _of_row(file: PairRows, keys: tuple[int, ...]) -> list[str]:
    if not keys or not file.words:
        return file.words or [str(k) for k in range(len(file.targets))]
    rest = (cells.split("\t") for cells in file.rest)
    chosen = ("\t".join(cells[k] for k in keys if k < len(cells)) for cells in rest)
    return [f"{word} {cells}" for word, cells in zip(file.words, chosen, strict=True)]


def _order(
    right: PairRows, file: PairRows, keys: tuple[int, ...], options: Options, warnings: list[str]
) -> Iterable[int]:
    """Return the row of each gold word, by position where the words stand in the same order."""
    expected, own = _of_row(right, keys), _of_row(file, keys)
    rows = range(len(own))
    if not file.words or not right.words or options.align == "position" or own == expected:
        if options.align == "id" and not (file.words and right.words):
            raise InputError(f"{file.path}: has no words to align by")
        if len(own) != len(expected):
            raise InputError(
                f"{file.path}: {count_noun(len(own), 'row')}, but {right.path} has {len(expected)}; aligned by position"
            )
        if file.words and right.words and (n := sum(a != b for a, b in zip(own, expected, strict=True))):
            warnings.append(
                f"{file.path}: {n:,} of {len(own):,} words are not those of {right.path}; by position all the same"
            )
        return rows
    n_alike = sum(a == b for a, b in zip(file.words, right.words, strict=False))
    nearly = options.align == "auto" and len(own) == len(expected) and n_alike > NEARLY * len(expected)
    if nearly and Counter(own) != Counter(expected):
        warnings.append(nearly_alike(str(file.path), str(right.path), n_alike, len(expected)))
        return rows
    place = {key: row for row, key in enumerate(own)}
    _check_unique(right, expected)
    _check_unique(file, own)
    missing = [key for key in expected if key not in place]
    if missing or len(own) != len(expected):
        extra = sorted(set(own).difference(expected))
        lacking, other = some(missing, "word"), some(extra, "word")
        what = f"{lacking} of {len(expected):,} in {right.path} missing" if missing else f"{other} not in {right.path}"
        raise InputError(f"{file.path}: {what}; align by position with --align position if rows correspond")
    at = next(k for k in rows if own[k] != expected[k])
    warnings.append(
        f"{file.path}: words stand in another order than in {right.path} (first on line {file.first + at}); aligned by "
        "word (--align position keeps the order of the file)"
    )
    return [place[key] for key in expected]


def _check_unique(file: PairRows, keys: Sequence[str]) -> None:
    """Refuse a word that stands twice where words, and not places, tell which row is which."""
    if len(set(keys)) < len(keys):
        key, n = Counter(keys).most_common(1)[0]
        first, again = (file.first + k for k in [k for k, other in enumerate(keys) if other == key][:2])
        why = f"it occurs {n} times, and words stand in another order than in the gold file"
        remedy = "Do rows correspond all the same? Then --align position. Are they samples of one word? Then give each"
        raise repeated_id(
            f"{file.path}, line {again}", repr(key), f"on line {first}", f"{why}. {remedy} sample a file (NAME=FILE)"
        )


def _groups(right: PairRows) -> dict[str, tuple[str, ...]]:
    """Keep the third column as the category; text, so 001 keeps its zeros."""
    categories = tuple(rest.split("\t", 1)[0] for rest in right.rest)
    return {"category": categories} if all(categories) else {}
