"""Provenance of results: digests of files and versions of packages."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from sigdask.randomization.stream.swaps import SCHEME


def get_versions(*extra_packages: str) -> dict[str, str]:
    """Return the versions of sigdask, its numerical libraries, Python, and `extra_packages`."""
    packages = {name: version(name) for name in ("sigdask", "numpy", "scipy", "numba", *extra_packages)}
    return {**packages, "python": platform.python_version(), "scheme": str(SCHEME)}


def hash_paths(paths: Iterable[Path]) -> dict[str, str]:
    """Return the digest of each path, with the path as text for its key."""
    return {format_path(path): hash_path(path) for path in paths}


def format_path(path: Path) -> str:
    """Return a path as text without surrogate escapes, so that every file format can hold it."""
    return str(path).encode(errors="surrogateescape").decode(errors="backslashreplace")


def hash_path(path: Path) -> str:
    """Return the SHA-256 of a file, or one of all names and contents in a folder; "" if the path is missing."""
    if not path.is_dir():
        return _hash_file(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    listing = "".join(f"{_hash_file(file)} {format_path(file.relative_to(path))}\n" for file in files)
    return hashlib.sha256(listing.encode()).hexdigest()


def _hash_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
