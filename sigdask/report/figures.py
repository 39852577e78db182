"""Figures as files in a folder: all that fit what was found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask import figures
from sigdask.comparison.found.ranking import groups
from sigdask.comparison.opened.opening import Opened
from sigdask.comparison.presented.drawn import Picture, null, of, pictures
from sigdask.comparison.results import Results
from sigdask.comparison.table import Table
from sigdask.errors import InputError, UnfinishedError
from sigdask.rankings.found import Evaluation
from sigdask.report.files import whole
from sigdask.report.looked_at import first
from sigdask.store.views import Nights, Report, nights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NULLS = 12
"""Null distributions that are drawn."""

MOST_LINES = 12
"""Comparisons whose p is drawn over the nights, of each test set, subset and metric."""

MOST_FIGURES = 60
"""Figures of one folder; beside them it is said how many more there could be."""

MOST_CHARACTERS = 40
"""Of each part of a file's name."""


def of_results(found: Iterable[Results]) -> Iterator[Picture]:
    """Yield the pictures that fit results."""
    for results in found:
        if len(results):
            yield from pictures(results.table)


def of_evaluations(found: Mapping[str, object]) -> Iterator[Picture]:
    """Yield the pictures that fit rankings of candidates; nothing else has any."""
    for name, one in found.items():
        if isinstance(one, Evaluation):
            if one.precision or one.sampled:
                yield Picture("precision", (name,) if name else (), partial(one.plot_curves, "precision"))
            if one.precision:
                yield Picture("recall", (name,) if name else (), partial(one.plot_curves, "recall"))


def of_opened(table: Table, opened: Sequence[Opened]) -> Iterator[Picture]:
    """Yield the null distributions of the first comparisons that were opened."""
    for one in opened[:MOST_NULLS]:
        yield Picture("null", (*of(table.take(slice(one.row, one.row + 1))), table.a[one.row], table.b[one.row]),
                      partial(null, table, one.row, one.null))  # fmt: skip


def of_report(report: Report, opened: Sequence[Opened] = ()) -> Iterator[Picture]:
    """Yield the pictures that fit what a plan has found, and those of comparisons that were opened."""
    yield from of_results(report.results.values())
    if opened:
        yield from of_opened(Table.joined([results.table for results in report.results.values()]), opened)
    yield from of_evaluations(report.evaluations)
    yield from of_nights(report)


def of_nights(report: Report) -> Iterator[Picture]:
    """Yield scores and p over the runs of a plan, for each test set, subset and metric; nothing of a first run."""
    tables = [results.table for results in report.results.values()]
    of_metrics = [table.take(rows) for table in tables for rows in groups(table)][:MOST_FIGURES]
    looked = [own.take(first(report, own, MOST_LINES)[0]) for own in of_metrics]
    if not looked:
        return
    seen = nights(report.store, report.run, Table.joined(looked))
    if len(seen.runs) > 1:
        ends = np.cumsum([len(own) for own in looked])
        for own, stop in zip(looked, ends.tolist(), strict=True):
            yield Picture("nights", of(own), partial(_nights, own, seen.take(slice(stop - len(own), stop))))


def _nights(table: Table, seen: Nights) -> Figure:
    """Draw what runs found of some comparisons by one metric, those that are looked at first."""
    scores: dict[str, NDArray[np.float64]] = {}
    for names, values in ((table.a, seen.score_a), (table.b, seen.score_b)):
        for name, own in zip(names.listed(), values, strict=True):
            known = scores.get(name, own)
            scores[name] = np.where(np.isnan(known), own, known)
    pairs = [f"{a} and {b}" for a, b in zip(table.a.listed(), table.b.listed(), strict=True)]
    runs = [str(run.number) for run in seen.runs]
    p = dict(zip(pairs, seen.p, strict=True))
    return figures.nights(
        runs, scores, p, table.alpha, title=", ".join(of(table)), score=table.metric[0].name,
        adjusted=not np.isnan(seen.p_adjusted).all(),
    )  # fmt: skip


def asked_formats(text: str) -> tuple[str, ...]:
    """Return the formats that figures are written in.

    Raises
    ------
    InputError
        One is none.
    """
    found = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",")))
    for one in found:
        if one not in figures.FORMATS:
            raise InputError(f"--figure-format {text}: {one!r} is not one of {', '.join(figures.FORMATS)}")
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
                file.write(figures.rendered(figure, format_))
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
