"""Objects of other installed packages, which name them by entry points."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

from sigdask.errors import InputError
from sigdask.io.addresses import describe_failure


def load_entry_points(group: str) -> Iterator[tuple[str, Any]]:
    """Yield the name and the object of each entry point of a group, sorted by name.

    Raises
    ------
    InputError
        An object cannot be imported. The message names the package.
    """
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist else "?"
        try:
            loaded = entry.load()
        except Exception as error:  # noqa: BLE001  # another package's module may raise anything
            raise InputError(
                f"package {package}: cannot import {entry.value} (entry point {entry.name} of {group}): "
                f"{describe_failure(error)}",
                remedy=f"repair or uninstall {package}",
            ) from None
        yield entry.name, loaded
