"""Checks of typed elements (spans, relations, brackets, words): none may be silently empty or foreign to gold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sigdask.counts.checks import describe_foreign_types, suggest_map
from sigdask.errors import InputError
from sigdask.text import format_list


def check_not_empty(gold_path: Path, n_gold: int, n_by_system: Mapping[str, int], noun: str) -> None:
    """Raise if the gold standard or a system has none of what is compared, such as "spans"."""
    if not n_gold:
        raise InputError(f"no {noun}, so no score is defined", file=gold_path, remedy="give a gold standard with some")
    for name, n in n_by_system.items():
        if not n:
            problem = f"system {name!r} has 0 {noun}, gold has {n_gold:,}"
            raise InputError(problem, remedy="correct its file, or leave it out")


def check_types(
    gold_path: Path,
    gold: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    noun: str,
    types: str = "types",
    remedy: str | None = None,
) -> list[str]:
    """Return a note on types (of spans, relations, ...) that gold never has.

    Parameters
    ----------
    gold_path : Path
        The gold file, for errors.
    gold : sequence of str
        The type of each gold element.
    systems : mapping of str to sequence of str
        The type of each element of each system.
    noun, types : str
        What the elements are, and what their types are called.
    remedy : str, optional
        What to do if a system has no type of gold. By default, map types that differ in case.

    Raises
    ------
    InputError
        Gold or a system has no element, or no element of a system has a type of gold.
    """
    check_not_empty(gold_path, len(gold), {name: len(used) for name, used in systems.items()}, noun)
    known = {*gold}
    for name, used in systems.items():
        if known.isdisjoint(used):
            way = suggest_map(*({name.partition("(")[0] for name in names} for names in (known, used)))  # without roles
            raise InputError(
                f"system {name!r}: the {types} of all its {len(used):,} {noun} never occur in gold: it has "
                f"{format_list(sorted({*used}))}, gold has {format_list(sorted(known))}",
                remedy=f"{remedy or way}, or leave the system out",
            )
    return describe_foreign_types(known, systems, types)
