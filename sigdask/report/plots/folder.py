"""Figures as files in a folder: all that fit what was found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

from sigdask.analysis.candidate_rankings.results import RankingEvaluation
from sigdask.analysis.details.details import ComparisonDetails
from sigdask.errors import InputError, UnfinishedError
from sigdask.report import plots
from sigdask.report.files import whole
from sigdask.report.plots.results import Picture, n_best, null, of, pictures
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.table import Table

MOST_NULLS = 12
"""Null distributions that are drawn."""

MOST_FIGURES = 60
"""Figures of one folder; beside them it is said how many more there could be."""

MOST_CHARACTERS = 40
"""Of each part of a file's name."""


def of_results(found: Iterable[ComparisonResults]) -> Iterator[Picture]:
    """Yield the pictures that fit results."""
    for results in found:
        if len(results):
            yield from pictures(results.table)


def of_evaluations(found: Mapping[str, object]) -> Iterator[Picture]:
    """Yield the pictures that fit rankings of candidates; nothing else has any."""
    for name, one in found.items():
        if isinstance(one, RankingEvaluation):
            if one.precision or one.sampled:
                yield Picture("precision", (name,) if name else (), partial(n_best, one, "precision"))
            if one.precision:
                yield Picture("recall", (name,) if name else (), partial(n_best, one, "recall"))


def of_opened(table: Table, opened: Sequence[ComparisonDetails]) -> Iterator[Picture]:
    """Yield the null distributions of the first comparisons that were opened."""
    for one in opened[:MOST_NULLS]:
        yield Picture("null", (*of(table.take(slice(one.row, one.row + 1))), table.a[one.row], table.b[one.row]),
                      partial(null, table, one.row, one.null))  # fmt: skip


def asked_formats(text: str) -> tuple[str, ...]:
    """Return the formats that figures are written in.

    Raises
    ------
    InputError
        One is none.
    """
    found = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",")))
    for one in found:
        if one not in plots.FORMATS:
            raise InputError(f"--figure-format {text}: {one!r} is not one of {', '.join(plots.FORMATS)}")
    return found


def write_figures(folder: Path, found: Iterable[Picture], formats: Sequence[str]) -> tuple[list[Path], int]:
    """Write pictures into a folder, which is made; return the files, and how many pictures were left out.

    Raises
    ------
    InputError
        matplotlib is not installed.
    UnfinishedError
        A file cannot be written.
    """
    all_of_them = list(found)
    kept = all_of_them[:MOST_FIGURES]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnfinishedError(f"{folder}: cannot be made a folder ({error.strerror})") from None
    written = []
    for name, picture in zip(file_names(kept), kept, strict=True):
        figure = picture.draw()
        for format_ in formats:
            path = folder / f"{name}.{format_}"
            with whole(path) as file:
                file.write(plots.rendered(figure, format_))
            written.append(path)
    return written, len(all_of_them) - len(kept)


def file_names(found: Sequence[Picture]) -> list[str]:
    """Return a name for each picture, without its ending: safe on any system, and the same each time.

    What a file's name cannot hold becomes a line; such a name, and one that differs from another in its case alone,
    ends in some digits of what it stands for.
    """
    plain = ["-".join([picture.kind, *map(_safe, picture.of)]) for picture in found]
    lowered = [name.lower() for name in plain]
    return [
        name if _is_itself(picture) and lowered.count(name.lower()) == 1 else f"{name}-{_digits(picture)}"
        for name, picture in zip(plain, found, strict=True)
    ]


def _safe(part: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+=@-]+", "_", part)[:MOST_CHARACTERS]


def _is_itself(picture: Picture) -> bool:
    return all(part == _safe(part) for part in picture.of)


def _digits(picture: Picture) -> str:
    return sha256("\0".join((picture.kind, *picture.of)).encode("utf-8", "surrogatepass")).hexdigest()[:8]
