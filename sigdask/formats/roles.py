"""The roles of columns, whose names are declared in roles.toml, and the function that finds them.

A column has one role, which its name alone decides. Values are parsed after all roles are known. The only exception is
the unnamed index of a data frame, which is known by counting 0, 1, 2, … in the order of the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Literal, Protocol

from sigdask.errors import ColumnsError, InputError
from sigdask.interface import spell
from sigdask.io import split_names
from sigdask.text import suggest_name

ROLES: dict[str, tuple[str, ...]] = {
    role: tuple(names)
    for role, names in tomllib.loads(files("sigdask.formats").joinpath("roles.toml").read_text("utf-8")).items()
}
"""Names of the columns of each role, compared without case; "-" and blanks are read as "_"."""

BREAKS = re.compile(r"[\s-]+")
SCORE_CUTOFF = re.compile(r"(n?dcg|p|recall|r|map|ap|mrr|rr|success|pass|hits|hit|f1|err|rbp)(@|_cut_|_)\d+", re.ASCII)
"""Pattern of metrics at a cutoff, such as nDCG@10."""

WEAK_NAMES: dict[str, tuple[str, ...]] = {
    "topic": ("item", "unit"), "query": ("item", "text"), "question": ("item", "text"), "problem": ("item", "text"),
    "prompt": ("item", "text"), "example": ("item", "text"), "response": ("prediction", "text"),
    "relation": ("item", "gold"), "name": ("system", "text"), "label": ("gold", "prediction"),
    "labels": ("gold", "prediction"),
}  # fmt: skip
"""Names that have the first of these roles if no other column claims it, else the next."""

ID_NAME = re.compile(r"[^\W_]+(_[^\W_]+)?_(id|nr|#)|#|n[ro]\.")
"""Pattern of names of ids and numbers, which are weak too, and never systems."""

STATUS_VALUES = {
    "answer": frozenset({"reject", "ignore"}),
    "status": frozenset({"rejected", "ignored", "skipped", "cancelled", "canceled", "discarded", "reject", "ignore"}),
} | dict.fromkeys(("was_cancelled", "cancelled", "skipped", "rejected", "ignored"), frozenset({"true"}))
"""Keys of a record's status in the exports of annotation tools, and the values by which it does not count."""

ROLES_BY_NAME = {name: (role,) for role, names in ROLES.items() for name in names} | WEAK_NAMES

SINGLE_ROLES = ("item", "system", "metric", "gold")
"""Roles that only one column of a table can have."""

UNNAMED = "Unnamed: 0"
"""Name of a column without a name, as pandas calls it; those of tables that it read and wrote again begin with it."""

MAX_SHOWN, MAX_CELL, N_VALUES = 20, 30, 3
"""Columns, characters of a cell, and cells of a column, that errors show."""

FileKind = Literal["gold", "system"]


class NamedColumns(Protocol):
    """What is needed of a table to find the roles of its columns."""

    @property
    def path(self) -> object:
        """The file."""

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """The cells of each column."""

    @property
    def nested(self) -> Mapping[str, Sequence[object]]:
        """Columns of objects or lists, some of which are in `columns`."""


class RoleOptions(Protocol):
    """The options that give columns their roles, of `sigdask.formats.Options`."""

    @property
    def columns(self) -> Mapping[str, str]:
        """Columns by role."""

    @property
    def ignore(self) -> Sequence[str]:
        """Columns that are left out."""

    @property
    def groups(self) -> Sequence[str]:
        """Columns of units and subsets."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of the columns of one table.

    Attributes
    ----------
    columns : dict of str to tuple of str
        The columns of each role that some column has, in the order of the file.
    unknown : tuple of str
        Columns without a role.
    left_out : tuple of str
        Columns that are not read: those that the user ignores, an unnamed index, and texts.
    """

    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def get(self, role: str) -> str | None:
        """Return the first column of a role, or None."""
        return next(iter(self.columns.get(role, ())), None)

    def list_all(self, *roles: str) -> tuple[str, ...]:
        """Return the columns of some roles."""
        return tuple(column for role in roles for column in self.columns.get(role, ()))

    def __contains__(self, role: str) -> bool:
        return role in self.columns


@lru_cache(2**16)
def name_role(column: str) -> tuple[str, ...]:
    """Return the roles that a column's name may have, the first one that is free counts; none if it is unknown.

    Examples
    --------
    >>> name_role("QID"), name_role("nDCG@10"), name_role("topic"), name_role("bert-large")
    (('item',), ('score',), ('item', 'unit'), ())
    """
    name = BREAKS.sub("_", column.strip().lower())
    by_pattern = ("score",) if SCORE_CUTOFF.fullmatch(name) else ()
    return ROLES_BY_NAME.get(name) or (("item", "text") if ID_NAME.fullmatch(name) else by_pattern)


def split_columns(text: str, known: Mapping[str, object]) -> tuple[str, ...]:
    """Return the columns that `A+B` or `@FILE` names, or the one column with this name.

    Examples
    --------
    >>> split_columns("AP+nDCG", {"AP": [], "nDCG": []}), split_columns("C++", {"C++": []})
    (('AP', 'nDCG'), ('C++',))
    """
    return (text,) if text in known else split_names(text)


def resolve_roles(table: NamedColumns, options: RoleOptions, part: FileKind | None = None) -> Roles:
    """Return the role of each column of a table, by the user's options and by the columns' names.

    Parameters
    ----------
    table : FileTable
        The table.
    options : Options
        The options `columns`, `ignore` and `groups`. A column that they name has that role; other columns whose names
        claim the same role are left out.
    part : {"gold", "system"}, optional
        What the file is if the gold standard is in a file of its own: "label" names gold labels in one, predictions in
        the other.

    Raises
    ------
    InputError
        Two columns claim one role, a named column is not there, or an unnamed column may be the items.
    """
    given = _list_given(table, options)
    choices = {column: name_role(column) for column in (*table.columns, *table.nested)}
    claimed = {choices[column][0] for column in table.columns if len(choices[column]) == 1 and column not in given}
    claimed |= {*given.values()}
    roles: dict[str, list[str]] = {}
    unknown, left_out, rivals = [], [column for column in options.ignore if column in table.columns], []
    for column, names in choices.items():
        if column in left_out:
            continue
        role = given.get(column) or _choose_role(names, claimed, part)
        if role is None:
            unknown.append(column)
        elif role in options.columns and column not in given and role in SINGLE_ROLES:
            rivals.append(column)  # the user names another one
        else:
            roles.setdefault(role, []).append(column)
    unnamed = [
        name for name in unknown if name.startswith(UNNAMED) and _is_index(table, name, has_item="item" in roles)
    ]
    unknown = [name for name in unknown if name not in unnamed]
    for role in SINGLE_ROLES:
        check_single(table, roles.get(role, []), role, options)
    for column in unknown:
        _check_status(table, column)
    if len(roles.get("item", [])) > 1:  # items with a part in common may depend on each other
        roles["unit"] = [*roles.get("unit", []), *roles["item"]]
    left_out += [*rivals, *unnamed, *roles.get("text", [])]
    return Roles({role: tuple(columns) for role, columns in roles.items()}, tuple(unknown), tuple(left_out))


def _list_given(table: NamedColumns, options: RoleOptions) -> dict[str, str]:
    """Return the role of each column that the user names."""
    given = {}
    for role, text in options.columns.items():
        for column in split_columns(text, {**table.columns, **table.nested}):
            holder = column.partition(".")[0] if column not in table.columns else column
            if holder in table.columns or holder in table.nested:
                given[holder] = role
    for column in options.groups:
        given.setdefault(column, "unit")
    return given


def _choose_role(choices: tuple[str, ...], claimed: set[str], part: FileKind | None) -> str | None:
    if part == "system" and choices == WEAK_NAMES["label"]:
        return "prediction"
    return next((role for role in choices if role not in claimed), choices[-1] if choices else None)


def _is_index(table: NamedColumns, name: str, *, has_item: bool) -> bool:
    """Return whether a column without a name is the index of a data frame; raise if it may be the items."""
    if has_item or all(cell == str(k) for k, cell in enumerate(table.columns[name])):
        return True
    problem = "the first column has no name. It may be the items, or the index of a data frame"
    raise build_roles_error(table, problem, [spell("columns", f"item={name}"), spell("ignore", name)])


def _check_status(table: NamedColumns, column: str) -> None:
    """Raise an error for rows that a column of an annotation tool marks as rejected or skipped."""
    if not (values := STATUS_VALUES.get(column.lower())):
        return
    marks = [cell for cell in table.columns[column] if cell.lower() in values]
    if marks:
        problem = f"column {column!r} marks {len(marks):,} rows as {marks[0]!r}. Delete rows that do not count"
        raise build_roles_error(table, problem, [f"{spell('ignore', column)} (if all rows count)"])


def check_single(table: NamedColumns, columns: Sequence[str], role: str, options: RoleOptions) -> None:
    """Raise an error if several columns claim a role that only one can have, and the user does not join them."""
    if len(columns) < 2 or role in options.columns:
        return
    ways = [spell("columns", f"{role}={column}") for column in columns]
    if role == "item":
        joint = "+".join(columns)
        ways.append(f"{spell('columns', f'item={joint}')} (both together)")
    raise build_roles_error(table, f"columns {' and '.join(map(repr, columns))} may both be the {role}", ways)


def build_roles_error(table: NamedColumns, problem: str, ways: Sequence[str]) -> ColumnsError:
    """Return the error for columns of unclear roles, with their first values and the ways to read them.

    Parameters
    ----------
    table : FileTable
        The table.
    problem : str
        What is unclear.
    ways : sequence of str
        Options that make it clear, as `spell` writes them.
    """
    return ColumnsError(problem, [*_iter_column_lines(table)], file=table.path, remedy=f"Choose {', or '.join(ways)}.")


def _iter_column_lines(table: NamedColumns) -> Iterator[str]:
    for column in [*table.columns][:MAX_SHOWN]:
        role = f" ({roles[0]})" if (roles := name_role(column)) else ""
        cells = [_shorten(str(cell)) for cell in table.columns[column][:N_VALUES]]
        yield f"  {column or '(no name)'}{role}: {', '.join(cells)}, …"
    if len(table.columns) > MAX_SHOWN:
        yield f"  and {len(table.columns) - MAX_SHOWN:,} more columns"


def _shorten(cell: str) -> str:
    return cell if len(cell) <= MAX_CELL else f"{cell[:MAX_CELL]}…"


def check_roles(columns: Mapping[str, str], roles: Sequence[str] = tuple(ROLES)) -> None:
    """Raise an error for roles that do not exist, and for columns without a name."""
    for role, column in columns.items():
        if role not in roles:
            hint = suggest_name(role, roles, f"; roles: {', '.join(roles)}")
            raise InputError(f"no role {role!r}{hint}", option=spell("columns"))
        if not isinstance(column, str) or not column:
            raise InputError(f"{spell('columns')} {role}={column}: expected the name of a column")
