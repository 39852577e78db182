"""Data classes that are quick to define, and stable names of classes and functions in digests.

A store finds counts by digests of their inputs. If digests were made of Python's names, renaming a class or module
would lose every count. So each class that can be hashed declares its name in digests, and which of its fields belong to
them. Neither may change unless counts have to be made again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, fields, is_dataclass
from functools import cache
from inspect import Signature, signature
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, TypeVar

Known = TypeVar("Known")


class _LateSignature:
    """The signature of a data class, whose `__init__` is written to tell it."""

    def __get__(self, instance: object, owner: Any) -> Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        defining = next(base for base in owner.__mro__ if "__init__" in base.__dict__)
        if defining.__init__.__name__ == "initialize":
            defining.__init__ = _write_init(defining)
        described = signature(owner.__init__)
        return described.replace(parameters=[*described.parameters.values()][1:])


_FACTORY = type("Factory", (), {"__repr__": lambda _: "<factory>"})()
"""Default of parameters whose fields have a default factory."""


def _build_dataclass(cls: Any, *, frozen: bool, eq: bool, has_repr: bool, **options: bool) -> Any:
    """Return a data class whose methods take no time until they are called. `dataclasses` would compile five."""
    own, cls.__doc__ = dict(cls.__dict__), cls.__doc__ or cls.__name__
    built: Any = dataclasses.dataclass(init=False, repr=False, eq=False, **options)(cls)
    get_compared = _get_values([f.name for f in fields(built) if f.compare])
    get_hashed = _get_values([f.name for f in fields(built) if (f.compare if f.hash is None else f.hash)])

    def initialize(self: Any, *values: Any, **named: Any) -> None:
        built.__init__ = _write_init(built)
        built.__init__(self, *values, **named)

    def is_equal(self: Any, other: Any) -> Any:
        return get_compared(self) == get_compared(other) if other.__class__ is self.__class__ else NotImplemented

    def compute_hash(self: Any) -> int:
        return hash(get_hashed(self))

    @recursive_repr()
    def describe(self: Any) -> str:
        texts = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(built) if f.repr]
        return f"{self.__class__.__qualname__}({', '.join(texts)})"

    def refuse(self: Any, name: str, *value: Any) -> None:
        if type(self) is built or name in built.__dataclass_fields__:
            raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")
        (object.__setattr__ if value else object.__delattr__)(self, name, *value)

    methods: dict[str, Any] = {"__init__": initialize, "__signature__": _LateSignature()}
    methods |= {"__repr__": describe} if has_repr else {}
    methods |= {"__eq__": is_equal, "__hash__": compute_hash if frozen else None} if eq else {}
    methods |= {"__setattr__": refuse, "__delattr__": refuse} if frozen else {}
    methods |= {"__getstate__": _get_state, "__setstate__": _set_state} if frozen and options["slots"] else {}
    for name, method in methods.items():
        if own.get(name) is None:
            setattr(built, name, method)
    return built


def _get_values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives the values of some attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in _list_field_names(self.__class__)]


def _set_state(self: Any, state: list[Any]) -> None:
    for set_field, value in zip(_list_setters(self.__class__), state, strict=True):
        set_field(self, value)


@cache
def _list_setters(cls: Any) -> tuple[Callable[[Any, Any], None], ...]:
    return tuple(getattr(cls, name).__set__ for name in _list_field_names(cls))


@cache
def _list_field_names(cls: type[Any]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


def _write_init(cls: type[Any]) -> Callable[..., None]:
    """Return the method that sets the fields of a data class, each by its slot where it has one."""
    scope: dict[str, Any] = {"_FACTORY": _FACTORY, "_set": object.__setattr__}
    parameters, lines = ["self"], []
    for f in fields(cls):
        value, slot = f.name, getattr(cls, f.name, None)
        if f.default is not MISSING:
            scope[f"_default_{f.name}"] = f.default
            parameter = f"{f.name}=_default_{f.name}"
        elif f.default_factory is not MISSING:
            scope[f"_make_{f.name}"] = f.default_factory
            parameter, value = f"{f.name}=_FACTORY", f"_make_{f.name}() if {f.name} is _FACTORY else {f.name}"
        else:
            parameter = f.name
        if f.init:
            parameters.append(parameter)
        elif f.default_factory is not MISSING:
            value = f"_make_{f.name}()"
        if isinstance(slot, MemberDescriptorType):
            scope[f"_set_{f.name}"] = slot.__set__
            lines.append(f"_set_{f.name}(self, {value})")
        else:
            lines.append(f"_set(self, {f.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), scope)  # noqa: S102
    method: Any = scope["__init__"]
    method.__annotations__ = {f.name: f.type for f in fields(cls) if f.init} | {"return": None}
    method.__module__, method.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    return method  # type: ignore[no-any-return]


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414
else:

    def dataclass(cls: Any = None, /, *, repr: bool = True, **options: bool) -> Any:  # noqa: A002
        """Make a class a data class, as `dataclasses.dataclass` does in six times the time.

        A command defines some 300 of them and uses a third. The options are `frozen`, `eq`, `repr`, `slots` and
        `weakref_slot`.
        """
        options = {"frozen": False, "eq": True, "has_repr": repr, "slots": False} | options
        return _build_dataclass(cls, **options) if cls else lambda cls: _build_dataclass(cls, **options)


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
