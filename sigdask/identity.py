"""Stable names of classes and functions in digests.

A store finds counts by digests of their inputs. If digests were made of Python's names, renaming a class or module
would lose every count. So each class that can be hashed declares its name in digests, and which of its fields belong to
them. Neither may change unless counts have to be made again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar

Known = TypeVar("Known")


MARK = "__known_as__"


@dataclass(frozen=True, slots=True)
class Identity:
    """Name of a class or function in digests, and which of its fields are hashed.

    Attributes
    ----------
    tag : str
        Its name in digests.
    fields : tuple of str
        Hashed fields of a class, in this order.
    added : tuple of (str, object)
        Fields that it once did not have, and the values at which digests are those of then.
    """

    tag: str
    fields: tuple[str, ...] = ()
    added: tuple[tuple[str, Any], ...] = ()

    def list_hashed_fields(self, value: Any) -> tuple[str, ...]:
        """Return the names of the fields of a value that are hashed."""
        return (*self.fields, *(name for name, default in self.added if getattr(value, name) != default))


def known_as(tag: str, hashed: str = "", *, apart_from: str = "", added: str = "") -> Callable[[Known], Known]:
    """Return a decorator that gives a class or function its name in digests; put it above other decorators.

    Parameters
    ----------
    tag : str
        Its name in digests, which stays when it is renamed or moved.
    hashed : str
        Fields of a dataclass that change counts, in the order in which they are hashed.
    apart_from : str
        Its other fields.
    added : str
        Fields added later. They are hashed unless they have their defaults, so that older counts are found again.

    Raises
    ------
    TypeError
        A field is in neither list. A new field that changes counts must be hashed, or old counts would be used again.

    Examples
    --------
    >>> @known_as("Point", "x y", apart_from="label")
    ... @dataclass
    ... class Place:
    ...     x: int
    ...     y: int
    ...     label: str
    >>> get_identity(Place)
    Identity(tag='Point', fields=('x', 'y'), added=())
    """

    def mark(target: Known) -> Known:
        identity = Identity(tag, tuple(hashed.split()), _get_defaults(target, added.split()))
        names = {*identity.fields, *apart_from.split(), *added.split()}
        if isinstance(target, type) and is_dataclass(target) and names != {f.name for f in fields(target)}:
            raise TypeError(f"{tag}: hashes {sorted(names)}, has {sorted(f.name for f in fields(target))}")
        setattr(target, MARK, identity)
        return target

    return mark


def _get_defaults(target: Any, names: list[str]) -> tuple[tuple[str, Any], ...]:
    return tuple((f.name, f.default) for f in (fields(target) if names else ()) if f.name in names)


def get_identity(target: Any) -> Identity | None:
    """Return the identity of a class or function, or None; an inherited identity does not count."""
    identity = getattr(target, "__dict__", {}).get(MARK)
    return identity if isinstance(identity, Identity) else None
