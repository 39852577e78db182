"""What results were made of and with: digests of files, versions of packages."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from sigdask.randomization.stream.shuffles import SCHEME


def versions(*more: str) -> dict[str, str]:
    """Return the versions of this program and of what it counts with, and of `more` packages."""
    packages = {name: version(name) for name in ("sigdask", "numpy", "scipy", "numba", *more)}
    return {**packages, "python": platform.python_version(), "scheme": str(SCHEME)}


def digests(paths: Iterable[Path]) -> dict[str, str]:
    """Return the digest of each file, or of the names and digests of all files in a folder."""
    return {text_of(path): digest(path) for path in paths}


def text_of(path: Path) -> str:
    """Return a path as text that every file can hold, whatever its bytes are."""
    return str(path).encode(errors="surrogateescape").decode(errors="backslashreplace")


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and digests of all files in a folder; nothing if it is gone."""
    if not path.is_dir():
        return _sha256(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    listed = "".join(f"{_sha256(file)} {text_of(file.relative_to(path))}\n" for file in files)
    return hashlib.sha256(listed.encode()).hexdigest()


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
