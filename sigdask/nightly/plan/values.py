"""Checks and conversions of single values of a plan. Each raises InputError, which becomes the error of the key."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from sigdask import formats, metrics
from sigdask.errors import InputError
from sigdask.execution import clusters
from sigdask.io import addresses
from sigdask.nightly.plan import paths
from sigdask.results.export import parse_unit_file
from sigdask.text import suggest_name

DATABASES = ("sqlite", "postgresql")


def check_format(text: str) -> str:
    """Return the name of a format, with its options, or the address of a function."""
    if formats.is_address(text):
        addresses.check_address(text, "format")
        return text
    name, _ = formats.parse_format(text)
    choices = ["auto", *formats.FORMATS]
    if name not in choices:
        hint = suggest_name(name, choices, f"; there are: {', '.join(choices)}")
        raise InputError(f"found {text!r}, expected a format{hint}")
    return text


def check_metrics(names: Sequence[str]) -> Sequence[str]:
    """Return the names of metrics."""
    folded: set[str] = set()
    for name in names:
        metrics.check_name(name)
        if name.casefold() in folded:
            raise InputError(f"{name!r} stands twice")
        folded.add(name.casefold())
    return names


def check_pairs(pairs: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Return pairs of systems."""
    unordered: set[frozenset[str]] = set()
    for a, b in pairs:
        if a == b:
            raise InputError(f"{a!r} is paired with itself")
        if {a, b} in unordered:
            raise InputError(f"{a!r} and {b!r} are paired twice")
        unordered.add(frozenset((a, b)))
    return pairs


def resolve_cluster(cluster: str, folder: Path) -> str:
    """Return the cluster as `--cluster` takes it; a file's path is made absolute."""
    if cluster.endswith((".json", ".toml")):
        path = paths.resolve_existing(cluster, folder)
        if path.suffix == ".toml":
            clusters.read(path)
        return str(path)
    if cluster not in clusters.CLUSTER_WORDS and not cluster.startswith(("tcp://", "tls://")):
        hint = suggest_name(cluster, clusters.CLUSTER_WORDS)
        raise InputError(f"found {cluster!r}, expected {clusters.KINDS}{hint}")
    return cluster


def resolve_store(text: str, folder: Path) -> str:
    """Return the file or URL of the database."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        return str(paths.resolve_output(text, folder))
    if scheme.partition("+")[0] not in DATABASES:
        raise InputError(
            f"found {scheme}://…, expected a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE"
            f"{suggest_name(scheme, DATABASES)}"
        )
    is_relative = scheme.startswith("sqlite") and rest.startswith("/") and not rest.startswith("//")
    return str(paths.resolve_output(rest[1:], folder)) if is_relative else text


def resolve_webhook(text: str, _folder: Path) -> str | None:
    """Return the URL; $NAME reads it from the environment, where an empty value means no web hook."""
    name = text[1:] if text.startswith("$") else None
    if name is not None and name not in os.environ:
        raise InputError(
            f"found {text!r}, but this environment variable is not set; set it to an empty text for no web hook"
        )
    url = text if name is None else os.environ[name]
    try:
        parts = urlsplit(url)
        is_url = (
            parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and (parts.port or 1) > 0
            and "@" not in parts.netloc
        )
    except ValueError:
        is_url = False
    if url and (not is_url or any(c.isspace() for c in url)):
        found = repr(text) if name is None else f"that of the environment variable {name}"
        raise InputError(f"found {found}, expected http://HOST/… or https://HOST/…, without a user")
    return url or None


def resolve_unit_file(text: str, folder: Path) -> Path:
    """Return the path of a file of units, whose ending chooses the format."""
    path = paths.resolve_output(text, folder)
    parse_unit_file(path)
    return path
