"""The JSON schema of results, which lists every key. Add new keys to `schema.json` first."""

from __future__ import annotations

from importlib.resources import files

VERSION = 1
"""Of the JSON: another one means that a key is gone or means something else; new keys leave it."""


def read_schema() -> str:
    """Return the text of `schema.json`."""
    return files("sigdask.results").joinpath("schema.json").read_text("utf-8")
