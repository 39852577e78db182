"""Checks of the names, ids and groups that counts are built from."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence, ValuesView
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts.factors import Factor
from sigdask.counts.fields import Bools
from sigdask.counts.texts import ScopeNote, Texts
from sigdask.errors import InputError, MissingItemsError
from sigdask.interface import spell, spell_map
from sigdask.options import Missing
from sigdask.text import format_list

MIN_COMMON_SHARE = 0.05
"""Minimum share of items that two systems must have in common."""

BLOCK = 1 << 16
"""Number of items checked at a time."""


FEW_NAMES = 256
"""Up to this number, checking names one by one is faster than with an array."""


def canonicalize(text: str) -> bytes:
    """Return the form of a name or id that is compared and sorted: UTF-8 bytes in Unicode's form NFC (scheme 1)."""
    try:
        return unicodedata.normalize("NFC", text).encode()
    except UnicodeEncodeError:
        raise InputError(f"{text!r}: a name or id that cannot be written in UTF-8; change it") from None


def check_names(systems: Sequence[str], minimum: int = 2) -> None:
    """Raise if there are fewer than `minimum` systems, or if two names are the same."""
    if len(systems) < minimum:
        names = f"only {systems[0]!r}" if systems else "none"
        raise InputError(
            f"a comparison needs two systems or more, found {names}", remedy="give the outputs of another system"
        )
    check_unique(systems, "system name")


def check_texts(column: Any, name: str) -> list[str]:
    """Return the texts of a column; raise if it is a single text or has a value that is none."""
    if isinstance(column, str):
        raise InputError(f"{name} is a single text ({column[:40]!r}); expected a list with a text for each item")
    texts = [str(value) if isinstance(value, str) else value for value in column]
    for position, value in enumerate(texts, start=1):
        if not isinstance(value, str):
            raise InputError(f"{name}: item {position} is {value!r}, not a text", remedy="write '' for an empty output")
    return texts


def are_sentences(texts: Sequence[Any]) -> bool:
    """Return whether values are texts of three words or more on average, most of which occur once."""
    if not len(texts) or not all(isinstance(text, str) for text in texts):
        return False
    return 2 * len({*texts}) > len(texts) and sum(len(text.split()) for text in texts) >= 3 * len(texts)


def list_values(values: Any, name: str) -> Any:
    """Return the values of items in their order: generators as lists, masked values as NaN.

    Raises
    ------
    InputError
        For a mapping or set, and an array of another shape.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        return np.ma.filled(values.astype(np.float64), np.nan)
    if isinstance(values, Mapping | set | frozenset):
        raise InputError(
            f"{name}: a {type(values).__name__} has no order of items", remedy="give a list, or a data frame with ids"
        )
    if isinstance(values, str | Path):
        raise InputError(
            f"{name} is a single text ({str(values)[:60]!r}); expected a list or a column with a value for each item. "
            "For files: sigdask.compare_all(sigdask.read('new.txt', 'old.txt', gold='ref.txt')). For columns of a data "
            "frame: sigdask.compare(frame, pairs=[('new', 'old')])"
        )
    if isinstance(values, Iterator | ValuesView):
        return list(values)
    if getattr(values, "ndim", 1) != 1:
        remedy = "; of probabilities of classes give argmax(axis=1)" if values.ndim > 1 else ""
        if hasattr(values, "columns"):
            remedy = (
                ". Give one column, or put both systems into one data frame: rows of system, item and score, or a "
                "column of scores for each system. Then call sigdask.compare(frame)"
            )
        raise InputError(f"{name}: {values.ndim} dimensions, expected one number per item, or one label{remedy}")
    return values.astype(str) if isinstance(values, np.ndarray) and values.dtype.kind == "S" else values


def check_indices(columns: Mapping[str, Any]) -> None:
    """Raise if two series of pandas have the same labels in different places, since items are matched by position."""
    indices = {name: column.index for name, column in columns.items() if hasattr(column, "index")}
    first, *others = [name for name, index in indices.items() if hasattr(index, "equals")] or [""]
    for name in others:
        if len(indices[name]) != len(indices[first]):
            continue  # the numbers of values are compared later
        if not indices[name].equals(indices[first]) and indices[name].isin(indices[first]).any():
            raise InputError(
                f"{first!r} and {name!r}: the series have the same index labels in different places. Bring both into "
                "one order (series.reindex), or give series.to_numpy() if they correspond as they stand"
            )


def check_unique(names: Sequence[str], what: str) -> None:
    """Raise if two names have the same canonical form."""
    if isinstance(names, Texts) or len(names) > FEW_NAMES:
        if canonicalize_column(names).are_unique:
            return
    elif len({*(texts := list(names))}) == len(texts) and "".join(texts).isascii():
        return
    seen: set[bytes] = set()
    for name in names:
        if (key := canonicalize(name)) in seen:
            raise InputError(f"{what} {name!r} occurs twice")
        seen.add(key)


def canonicalize_column(names: Sequence[str]) -> Texts:
    """Return the canonical forms of a column of names or ids, which are compared and sorted instead of them."""
    column = Texts.from_values(names)
    try:
        return column.canonicalize()
    except UnicodeEncodeError:
        for name in column:
            canonicalize(name)
        raise


def check_common_items(
    has: Bools,
    systems: Sequence[str],
    missing: Missing | None = None,
    ids: Sequence[str] | None = None,
) -> None:
    """Raise if two systems share so few items that their ids probably name different ones.

    Parameters
    ----------
    has : bool array, shape (n_items, n_systems)
        Whether each system has each item.
    systems : sequence of str
        Names.
    missing : {"error", "pairwise", "zero"}, or None
        How missing items are handled. Under "pairwise", two systems without a common item are left out with a note.
    ids : sequence of str, optional
        Ids of the items. The error shows one for each system.

    Raises
    ------
    InputError
        Two systems have less than `MIN_COMMON_SHARE` of their items in common.
    """
    if has.all():
        return
    common = np.zeros((len(systems), len(systems)))
    for k in range(0, len(has), BLOCK):
        rows = has[k : k + BLOCK].astype(np.float64)
        common += rows.T @ rows
    has_any = common.diagonal() > 0  # systems without any item are reported by the check for missing items
    either = common.diagonal() + common.diagonal()[:, None] - common
    is_too_few = np.triu((common < MIN_COMMON_SHARE * either) & has_any & has_any[:, None], 1)
    if missing == "pairwise" and np.triu(common, 1).any():
        is_too_few &= common > 0
    if not is_too_few.any():
        return
    a, b = (int(k) for k in np.argwhere(is_too_few)[0])
    n, n_pairs = int(common[a, b]), int(np.count_nonzero(is_too_few))
    suffix = f" (and so {n_pairs - 1:,} more pairs)" if n_pairs > 1 else ""
    remedy = "Do the ids of both name the same items? If not, correct the ids. If so, leave out items that only one has"
    raise MissingItemsError(
        f"systems {systems[a]!r} and {systems[b]!r} have {n:,} of {int(either[a, b]):,} items in common, fewer "
        f"than {100 * MIN_COMMON_SHARE:.0f} %{suffix}{_format_examples(has, ids, a, b, systems)}. {remedy}"
    )


def _format_examples(has: Bools, ids: Sequence[str] | None, a: int, b: int, systems: Sequence[str]) -> str:
    """Return text that names, for each of two systems, an item that this system has and the other lacks."""
    exclusive = [(has[:, k] & ~has[:, other], systems[k]) for k, other in ((a, b), (b, a))]
    examples = [
        f"only {name!r} has {ids[int(np.argmax(mask))]!r}" for mask, name in exclusive if ids is not None and mask.any()
    ]
    return f" ({', '.join(examples)})" if examples else ""


def check_complete(
    present: Bools, systems: Sequence[str], ids: Sequence[str] | None, noun: str = "score", zero: str = ""
) -> None:
    """Raise unless systems have all items; the error names the first gap, and the options that allow gaps.

    Parameters
    ----------
    present : bool array, shape (n_items, n_systems)
        Whether each system has each item.
    systems, ids : sequence of str
        Names of the systems, and ids of the items.
    noun : str
        What a system has for each item, for messages.
    zero : str
        What a missing item counts as under the option `zero`.
    """
    if present.all():
        return
    item, system = (int(k) for k in np.argwhere(~present)[0])
    position = f"at position {item + 1}" if ids is None else repr(ids[item])
    raise MissingItemsError(
        f"system {systems[system]!r} has no {noun} for item {position} ({np.count_nonzero(~present)} missing in "
        f"total); choose {spell('missing', 'pairwise')} (compares each pair on the items that both have) or "
        f"{spell('missing', 'zero')}{zero}"
    )


def check_foreign_labels(gold: Factor, predictions: Mapping[str, Factor], *, are_files: bool = False) -> list[str]:
    """Return a warning on labels that gold never has; raise an error for a system that has no other labels.

    An empty label is that of an item that a system lacks. With `are_files`, the error names options of reading files.
    """
    gold_labels = {*gold.levels}
    foreign: list[str] = []
    for name, column in predictions.items():
        outside = np.array([level not in gold_labels and level != "" for level in column.levels], np.bool_)
        is_outside = outside[column.codes] if len(outside) else np.zeros(0, np.bool_)
        n_outside = int(np.count_nonzero(is_outside))
        if not n_outside:
            continue
        k, n_given = int(np.argmax(is_outside)), int(np.count_nonzero(~column.equals_text("")))
        if n_outside == n_given:
            remedy = "write the labels of systems as gold has them"
            if are_files:
                remedy = f"leave it out ({spell('ignore', name)} for a column), or replace its labels: "
                remedy += spell_map(str(gold[k]), str(column[k]))
            raise InputError(
                f"{name}: 0 of its {n_given:,} labels occur in the gold standard (it has {str(column[k])!r} where "
                f"gold has {str(gold[k])!r}; gold has {format_list(sorted(map(str, gold_labels)), 8)})",
                remedy=remedy,
            )
        foreign.append(f"{name} {n_outside:,} of {n_given:,} (such as {str(column[k])!r})")
    return [f"labels that gold never has, so they are never correct: {format_list(foreign)}"] if foreign else []


def describe_foreign_types(known: Collection[str], used: Mapping[str, Sequence[str]], noun: str = "types") -> list[str]:
    """Return a warning if systems give types of chunks, spans or relations that gold never has.

    The warning is a note for the first lines if types differ only in case, or if half of a system's types are foreign.

    Examples
    --------
    >>> [note] = describe_foreign_types({"PER"}, {"a": ["PER"], "b": ["per"]})
    >>> note.partition(". ")[2]
    "Some differ only in case: label_map={'PER': ['per']}"
    """
    parts, is_clear, lowered = [], False, {name.casefold(): name for name in known}
    for system, names in used.items():
        if foreign := [name for name in names if name not in known]:
            parts.append(f"{system} {len(foreign):,} of {len(names):,} (such as {min(foreign)!r})")
            is_clear |= 2 * len(foreign) >= len(names)
    foreign_names = sorted({name for names in used.values() for name in names} - {*known})
    pairs = [(lowered[name.casefold()], name) for name in foreign_names if name.casefold() in lowered]
    maps = [spell_map(*(name.partition("(")[0] for name in pair)) for pair in pairs]  # types without roles
    if not parts:
        return []
    case = f". Some differ only in case: {maps[0]}" if maps else ""
    note = f"{noun} that gold never has are never correct: {format_list(parts)}{case}"
    return [ScopeNote(note) if maps or is_clear else note]


def match_numbers(gold: Factor, predictions: Mapping[str, Factor]) -> tuple[dict[str, Factor], list[str]]:
    """Return predictions with the numbers of gold as gold writes them, and notes on the systems that differ.

    A system's labels are matched if they are numbers or truth values, as those of gold, and none is written as in gold.

    Examples
    --------
    >>> found, notes = match_numbers(Factor.from_values([1, 0, 1]), {"a": Factor.from_values([1.0, 0.0, 0.0])})
    >>> list(found["a"]), notes
    (['1', '0', '0'], ["a: labels such as '1.0' are read as '1', as gold writes them"])
    """
    known = {_parse_label(label): label for label in gold.levels}
    matched, notes = dict(predictions), []
    for name, column in predictions.items():
        names = {level: known.get(_parse_label(level), level) for level in column.levels}
        is_same = [level == label for level, label in names.items()]
        if None in known or len(known) < len(gold.levels) or any(is_same) or None in map(_parse_label, names):
            continue
        matched[name] = column.rename_levels(names)
        notes.append(f"{name}: labels such as {column[0]!r} are read as {matched[name][0]!r}, as gold writes them")
    return matched, notes


def _parse_label(label: str) -> float | None:
    """Return the whole number or truth value that a label stands for, or None."""
    if (truth := label.casefold()) in {"true", "false"}:
        return float(truth == "true")
    return float(label) if re.fullmatch(r"-?\d{1,15}(\.0*)?", label) else None


NAME_COLUMN = "Name one of these columns"


def suggest_group_file(name: str) -> str:
    """Return which option reads the groups of a column from a separate file."""
    if name == "document":
        return f"Give a file with the document of each item with {spell('documents', 'FILE')}"
    return f"{NAME_COLUMN}, or give a table of items and their groups with {spell('group_file', 'FILE')}"
