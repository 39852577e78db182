"""Options of commands as they are declared: help, type and default are said once, for Python and plans as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from sigdask.options import OPTIONS, READING, Option

Command = TypeVar("Command", bound=Callable[..., Any])

DECLARED = {**OPTIONS, **READING}


def option(flag: str, name: str | None = None, *, more: str = "", **settings: Any) -> Callable[[Command], Command]:
    """Make a command's option of a declared one.

    Parameters
    ----------
    flag : str
        As it is written: `--trials`.
    name : str, optional
        What it is declared as; by default as the flag.
    more : str
        A further sentence for this command.
    **settings
        Of `click.option`: metavar, multiple, type.
    """
    name = name or flag.lstrip("-").replace("-", "_")
    said = DECLARED[name]
    if said.choices:
        settings.setdefault("type", click.Choice(said.choices))
    if said.default is not None and not settings.get("multiple") and "flag_value" not in settings:
        settings.setdefault("default", said.default)
        settings.setdefault("show_default", said.default is not False)
    return click.option(flag, name, help=_help(said, more), **settings)


def _help(said: Option, more: str) -> str:
    default = f"  [default: {said.otherwise}]" if said.otherwise else ""
    return f"{said.help}{' ' if more else ''}{more}{default}"
