"""Word pairs: each word with its morphs, its form or its phones, tab-separated.

Right morphs are those of a longest common subsequence with the gold morphs, as in the scorer of the SIGMORPHON 2022
shared task for words. The edit distance is that of the characters of the morphs joined by `|`.
"""
# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import to_object_array
from sigdask.counts.texts import Codes, Texts
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import align, reorder_column
from sigdask.formats.reading.files import check_filled, enumerate_lines
from sigdask.formats.reading.listings import read_by_system
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.reading.signatures import MORPH_MARKS
from sigdask.formats.reading.tables import FileTable
from sigdask.io.caches import cached_njit


def read_pairs(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read words and their morphs, from a gold file and one file per system."""
    assert gold is not None
    files = read_by_system(sources, _read_file)
    tables = [_read_file(gold), *files.values()]
    _check_gold(tables[0])
    words = [table.columns["word"] for table in tables]
    is_by_position = options.align == "position" or all(other == words[0] for other in words)
    columns = replace(options.with_columns(item="word"), align="position" if is_by_position else options.align)
    _, orders, notes = align(tables[0], tables[1:], columns, "word")
    targets = list(tables[0].columns["target"])
    outputs = [
        reorder_column(table.columns["target"], order).tolist() for table, order in zip(tables[1:], orders, strict=True)
    ]
    categories = tuple(tables[0].columns["category"])  # as text: 001 keeps its zeros
    return Counts(
        systems=tuple(files),
        fields=_compute_fields(targets, outputs),
        n_items=len(targets),
        ids=tuple(words[0]) if Texts.from_values(words[0]).canonical.are_unique else None,
        groups={"category": categories} if all(categories) else {},
        outputs=Outputs(tuple(map(to_object_array, outputs)), to_object_array(targets)),
        suggested=("f1", "accuracy", "edit-distance"),
        warnings=tuple(notes),
    )


def _read_file(path: Path) -> FileTable:
    """Read the words, the morphs of each, joined by `|`, and the categories."""
    columns: dict[str, list[str]] = {"word": [], "target": [], "category": [], "mark": []}
    lines: list[int] = []
    for number, line in enumerate_lines(path):
        cells = line.rstrip("\r\n").split("\t")
        if cells == [""]:
            continue
        if len(cells) < 2:
            raise InputError(file=path, line=number, found="1 column", expected="at least 2: word TAB morphs")
        marks = MORPH_MARKS.findall(cells[1])
        row = (cells[0], MORPH_MARKS.sub("|", cells[1]).replace(" ", "|"), (*cells[2:], "")[0], "".join(marks[:1]))
        for column, cell in zip(columns.values(), row, strict=True):
            column.append(cell)
        lines.append(number)
    check_filled(path, lines)
    return FileTable(path, columns, lines)


def _check_gold(table: FileTable) -> None:
    """Raise if rows may be sentences, or another column may have the morphs."""
    n, has_marks = sum(" " in word.strip() for word in table.columns["word"]), any(table.columns["mark"])
    problem = f"the first column has blanks in {n:,} rows, so these may be sentences" if n and has_marks else ""
    if any(table.columns["category"]) and not has_marks:
        problem = "more than two columns, and no marks @@ of morphs"
    if problem:
        raise InputError(problem, file=table.path, remedy="leave one word a line, and the column that is compared")


def _compute_fields(gold: Sequence[str], columns: Sequence[Sequence[str]]) -> dict[str, NDArray[Any]]:
    """Return fields of each word, such as correct morphs and edit distance; `|` joins morphs."""
    codes = Codes()

    def encode(rows: Sequence[Sequence[str]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        starts = np.cumsum([0, *map(len, rows)])
        return np.array([codes[part] for row in rows for part in row], np.int64), starts

    morphs, letters = encode([target.split("|") for target in gold]), encode(gold)
    n_gold = np.diff(morphs[1])
    fields: dict[str, list[NDArray[Any]]] = {"tp": [], "predicted": [], "correct": [], "score[edit-distance]": []}
    for column in columns:
        own = encode([target.split("|") for target in column])
        n_own = np.diff(own[1])
        # with substitutions at 2, all except common morphs are deleted or inserted
        fields["tp"].append((n_gold + n_own - _compute_edit_distances(*morphs, *own, 2)) // 2)
        fields["predicted"].append(n_own)
        fields["correct"].append(np.array([a == b for a, b in zip(gold, column, strict=True)]))
        fields["score[edit-distance]"].append(_compute_edit_distances(*letters, *encode(column), 1))
    arrays = {name: np.column_stack(found).astype(np.int32) for name, found in fields.items()}
    return {**arrays, "gold": n_gold.astype(np.int32)[:, None], "items": np.ones((len(gold), 1), np.int8)}


@cached_njit()
def _compute_edit_distances(a, a_starts, b, b_starts, substitution):
    """Return the edit distance (Levenshtein) of each pair of sequences, which lie end to end in two arrays."""
    out = np.zeros(len(a_starts) - 1, np.int64)
    for k in range(len(out)):
        left, right = a[a_starts[k] : a_starts[k + 1]], b[b_starts[k] : b_starts[k + 1]]
        row = np.arange(right.shape[0] + 1)
        for i in range(left.shape[0]):
            diagonal = row[0]
            row[0] = i + 1
            for j in range(right.shape[0]):
                above = row[j + 1]
                substituted = diagonal + substitution * (left[i] != right[j])
                row[j + 1] = min(above + 1, row[j] + 1, substituted)
                diagonal = above
        out[k] = row[right.shape[0]]
    return out
