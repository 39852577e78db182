"""Writing reports: whole or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sigdask.errors import UnfinishedError


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all.

    Raises
    ------
    UnfinishedError
        It cannot be written.
    """
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=path.name, delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    except OSError as error:
        raise UnfinishedError(f"{path}: cannot be written ({error.strerror})") from None
