"""By which names classes and functions are known in digests, whatever Python calls them.

A store finds what it keeps by digests of what was counted. Were these made of Python's names, a class
or module renamed would orphan every count; so whatever can be hashed says here, once, what it is
called and which of its fields count, and neither may change without a reason to count again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar

Known = TypeVar("Known")

MARK = "__known_as__"


@dataclass(frozen=True, slots=True)
class Identity:
    """What a class or function is known as.

    Attributes
    ----------
    tag : str
        Its name in digests.
    fields : tuple of str
        Of a class, the fields that are hashed, in this order.
    added : tuple of (str, object)
        Fields that it once did not have, and the values at which digests are those of then.
    """

    tag: str
    fields: tuple[str, ...] = ()
    added: tuple[tuple[str, Any], ...] = ()

    def fields_of(self, value: Any) -> tuple[str, ...]:
        """Return the fields of a value that are hashed."""
        return (*self.fields, *(name for name, default in self.added if getattr(value, name) != default))


def known_as(tag: str, hashed: str = "", *, apart_from: str = "", added: str = "") -> Callable[[Known], Known]:
    """Mark a class or function, above its other decorators.

    Parameters
    ----------
    tag : str
        Its name in digests, which stays when it is renamed or moved.
    hashed : str
        Of a dataclass, the fields that change what is counted, in the order in which they are hashed.
    apart_from : str
        Its other fields.
    added : str
        Fields that came later, hashed where they are not at their defaults, so that what was counted
        before they came is found again.

    Raises
    ------
    TypeError
        A field is in neither list: a new one that changes what is counted and is not hashed would
        let stale counts stand.

    Examples
    --------
    >>> @known_as("Point", "x y", apart_from="label")
    ... @dataclass
    ... class Place:
    ...     x: int
    ...     y: int
    ...     label: str
    >>> identity_of(Place)
    Identity(tag='Point', fields=('x', 'y'), added=())
    """

    def mark(it: Known) -> Known:
        known = Identity(tag, tuple(hashed.split()), _defaults(it, added.split()))
        listed = {*known.fields, *apart_from.split(), *added.split()}
        if isinstance(it, type) and is_dataclass(it) and listed != {f.name for f in fields(it)}:
            raise TypeError(f"{tag}: hashes {sorted(listed)}, has {sorted(f.name for f in fields(it))}")
        setattr(it, MARK, known)
        return it

    return mark


def _defaults(it: Any, names: list[str]) -> tuple[tuple[str, Any], ...]:
    return tuple((f.name, f.default) for f in (fields(it) if names else ()) if f.name in names)


def identity_of(it: Any) -> Identity | None:
    """Return what a class or function itself, not one that it inherits from, is known as."""
    found = getattr(it, "__dict__", {}).get(MARK)
    return found if isinstance(found, Identity) else None
