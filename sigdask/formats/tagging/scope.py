"""Describe which column of tagged files is scored, and which unscored columns differ between systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sigdask.errors import InputError
from sigdask.text import format_list

NER_PREFIX = "NE-"
"""Beginning of the names of label columns in historical named-entity files (HIPE): NE-COARSE-LIT, NE-FINE-LIT."""

MOST_NAMED = 10
"""Columns that are named, of more."""


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of a file of tagged tokens.

    Attributes
    ----------
    path : Path
        The file.
    names : tuple of str
        Names of the columns; none where the file does not tell them.
    digests : tuple of int
        A hash of the cells of each column.
    label : int
        Index of the column that is read as the label.
    gold, token : int or None
        Indices of the gold label beside it, and of the token.
    numbered : bool
        Whether columns are known by their numbers, and not as keys of JSON.
    """

    path: Path
    names: tuple[str, ...]
    digests: tuple[int, ...]
    label: int
    gold: int | None
    token: int | None
    numbered: bool = True

    @property
    def used_columns(self) -> set[int]:
        """Indices of the columns that are read."""
        return {column for column in (self.label, self.gold, self.token) if column is not None}

    @property
    def width(self) -> int:
        """Number of columns."""
        return max(len(self.digests), len(self.names))

    def format_name(self, column: int) -> str:
        """Return a column's name for messages.

        Examples
        --------
        >>> file = FileColumns(Path("x"), ("FORM", "UPOS"), (1, 2), 1, None, 0)
        >>> file.format_name(1), FileColumns(Path("x"), (), (1, 2), 1, None, 0).format_name(1)
        ('UPOS (column 2)', 'column 2 (the last)')
        """
        if not self.numbered:
            return self.names[column] if self.names else "the list of tags"
        if column < len(self.names):
            return f"{self.names[column]} (column {column + 1})"
        return f"column {column + 1}{' (the last)' if column == self.width - 1 else ''}"


def is_ner_column(name: str) -> bool:
    """Return whether a column of a historical named-entity file holds entity tags, by its name."""
    return name.startswith(NER_PREFIX)


def describe_scope(systems: Sequence[FileColumns], gold: FileColumns | None) -> tuple[str, ...]:
    """Return a note on which column is scored, if files have other columns too and each file holds one system.

    Raises
    ------
    InputError
        Where the named-entity column of one file is another one than that of the first.
    """
    if not systems:
        return ()
    first, files = systems[0], [*systems, *([gold] if gold is not None else [])]
    _check_ner_columns(files)
    if len({file.path for file in systems}) < len(systems) or all(
        file.width <= len(file.used_columns) for file in files
    ):
        return ()
    compared = first.format_name(first.label)
    gold_name = compared if gold is None and first.gold is None else _describe_gold(first, gold)
    against = f", against {gold_name}" if gold_name != compared else ""
    return (f"Only {compared} is scored{against}{_describe_differences(systems)}",)


def _describe_gold(first: FileColumns, gold: FileColumns | None) -> str:
    if gold is None:
        assert first.gold is not None
        return first.format_name(first.gold)
    is_same = gold.label == first.label and (not gold.names or gold.names == first.names or not first.names)
    return first.format_name(first.label) if is_same else f"{gold.format_name(gold.label)} of {gold.path}"


def _describe_differences(systems: Sequence[FileColumns]) -> str:
    """Return a text about the unread columns in which the systems differ."""
    first = systems[0]
    if any((file.width, file.label) != (first.width, first.label) for file in systems):
        return ""
    columns = [
        k for k in range(first.width) if k not in first.used_columns and len({file.digests[k] for file in systems}) > 1
    ]
    if not columns:
        return ""
    names = format_list([first.format_name(column) for column in columns], MOST_NAMED)
    verbs = ("differs", "is") if len(columns) == 1 else ("differ", "are")
    return f"; {names} {verbs[0]} between the systems and {verbs[1]} not scored"


def _check_ner_columns(files: Sequence[FileColumns]) -> None:
    ner_files = [file for file in files if file.names and is_ner_column(file.names[file.label])]
    for file in ner_files:
        if file.names[file.label] != ner_files[0].names[ner_files[0].label]:
            raise InputError(
                f"{file.path}: {file.format_name(file.label)}, but {ner_files[0].format_name(ner_files[0].label)} in "
                f"{ner_files[0].path}; "
                "choose one by its name, as conll:column=NAME"
            )
