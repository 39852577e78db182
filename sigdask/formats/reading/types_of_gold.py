"""Checks of typed elements (spans, relations, brackets, words): none may be silently empty or foreign to gold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.interface import spell_map
from sigdask.text import format_list


def check_not_empty(gold_path: Path | None, n_gold: int, n_by_system: Mapping[str, int], noun: str) -> None:
    """Raise if the gold standard or a system has none of what is compared, such as "spans"."""
    if not n_gold:
        raise InputError(f"no {noun}, so no score is defined", file=gold_path, remedy="give a gold standard with some")
    for name, n in n_by_system.items():
        if not n:
            problem = f"system {name!r} has 0 {noun}, gold has {n_gold:,}"
            raise InputError(problem, remedy="correct its file, or leave it out")


def check_types(
    gold_path: Path | None,
    gold: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    noun: str,
    types: str = "types",
    remedy: str | None = None,
    *,
    have_roles: bool = False,
) -> list[str]:
    """Return a note on types (of spans, relations, ...) that gold never has.

    Parameters
    ----------
    gold_path : Path or None
        The gold file, for errors. None for data of Python.
    gold : sequence of str
        The type of each gold element.
    systems : mapping of str to sequence of str
        The type of each element of each system.
    noun, types : str
        What the elements are, and what their types are called.
    remedy : str, optional
        What to do if a system has no type of gold. By default, map types that are equal as numbers or but for case.
    have_roles : bool
        Whether types end with roles in parentheses, which are not mapped.

    Raises
    ------
    InputError
        Gold or a system has no element, or no element of a system has a type of gold.
    """
    check_not_empty(gold_path, len(gold), {name: len(used) for name, used in systems.items()}, noun)
    known, parts, is_clear = {*gold}, [], False
    for name, used in systems.items():
        foreign = [type_ for type_ in used if type_ not in known]
        if len(foreign) == len(used):
            way = suggest_map(*({t.partition("(")[0] if have_roles else t for t in own} for own in (known, used)))
            raise InputError(
                f"system {name!r}: the {types} of all its {len(used):,} {noun} never occur in gold: it has "
                f"{format_list(sorted({*used}), 8)}, gold has {format_list(sorted(known), 8)}",
                remedy=f"{remedy or way}, or leave the system out",
            )
        if foreign:
            parts.append(f"{name} {len(foreign):,} of {len(used):,} (such as {min(foreign)!r})")
            is_clear |= 2 * len(foreign) >= len(used)
    note = f"{types} that gold never has are never correct: {format_list(parts)}"
    return [ScopeNote(note) if is_clear else note] if parts else []


def suggest_map(gold_labels: Collection[str], labels: Collection[str]) -> str:
    """Return how to replace labels by those of gold: a map of all that are equal as numbers or but for case, if any.

    Examples
    --------
    >>> suggest_map(["1", "0"], ["1.0", "0.0"]), suggest_map(["PER"], ["A"])
    ("replace its labels: label_map={'0': ['0.0'], '1': ['1.0']}", 'correct its labels')
    """
    gold_by_key: dict[float | str, list[str]] = {}
    for label in gold_labels:
        gold_by_key.setdefault(_normalize(label), []).append(label)
    equal = {label: gold_by_key.get(_normalize(label), []) for label in sorted(labels) if label}
    names = {label: others[0] for label, others in equal.items() if len(others) == 1}
    return f"replace its labels: {spell_map(names)}" if names else "correct its labels"


def _normalize(label: str) -> float | str:
    try:
        return float(label)
    except ValueError:
        return label.casefold()
