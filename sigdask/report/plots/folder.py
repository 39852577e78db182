"""Write all figures that fit the results as files into a folder."""

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
from sigdask.report.files import open_atomic
from sigdask.report.plots.results import FigureSpec, get_subject, iter_pictures, plot_n_best, plot_null
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.table import Table

MOST_NULLS = 12
"""Null distributions that are drawn."""

MOST_FIGURES = 60
"""Figures of one folder; beside them it is said how many more there could be."""

MOST_CHARACTERS = 40
"""Of each part of a file's name."""


def iter_result_pictures(all_results: Iterable[ComparisonResults]) -> Iterator[FigureSpec]:
    """Yield the pictures that fit results of comparisons."""
    for results in all_results:
        if len(results):
            yield from iter_pictures(results.table)


def iter_ranking_pictures(evaluations: Mapping[str, object]) -> Iterator[FigureSpec]:
    """Yield the pictures that fit evaluations of candidate rankings; skip other objects."""
    for name, evaluation in evaluations.items():
        if isinstance(evaluation, RankingEvaluation):
            if evaluation.precision or evaluation.sampled:
                yield FigureSpec("precision", (name,) if name else (), partial(plot_n_best, evaluation, "precision"))
            if evaluation.precision:
                yield FigureSpec("recall", (name,) if name else (), partial(plot_n_best, evaluation, "recall"))


def iter_null_pictures(table: Table, all_details: Sequence[ComparisonDetails]) -> Iterator[FigureSpec]:
    """Yield pictures of the null distributions of the first comparisons that have details."""
    for details in all_details[:MOST_NULLS]:
        yield FigureSpec(
            "null",
            (*get_subject(table.take(slice(details.row, details.row + 1))), table.a[details.row], table.b[details.row]),
            partial(plot_null, table, details.row, details.null),
        )


def parse_formats(text: str) -> tuple[str, ...]:
    """Parse the list of figure formats.

    Raises
    ------
    InputError
        One is none.
    """
    formats = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",")))
    for format_ in formats:
        if format_ not in plots.FORMATS:
            raise InputError(f"--figure-format {text}: {format_!r} is not one of {', '.join(plots.FORMATS)}")
    return formats


def write_figures(
    folder: Path, pictures_to_write: Iterable[FigureSpec], formats: Sequence[str]
) -> tuple[list[Path], int]:
    """Write pictures into a folder, up to a limit; return their files and the number of pictures beyond the limit.

    Raises
    ------
    InputError
        matplotlib is not installed.
    UnfinishedError
        A file cannot be written.
    """
    all_pictures = list(pictures_to_write)
    selected = all_pictures[:MOST_FIGURES]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnfinishedError(f"{folder}: cannot be made a folder ({error.strerror})") from None
    written = []
    for name, picture in zip(build_file_names(selected), selected, strict=True):
        figure = picture.draw()
        for format_ in formats:
            path = folder / f"{name}.{format_}"
            with open_atomic(path) as file:
                file.write(plots.rendered(figure, format_))
            written.append(path)
    return written, len(all_pictures) - len(selected)


def build_file_names(selected: Sequence[FigureSpec]) -> list[str]:
    """Return a file name without ending for each picture: portable, unique and reproducible.

    What a file's name cannot hold becomes a line; such a name, and one that differs from another in its case alone,
    ends in some digits of what it stands for.
    """
    plain_names = ["-".join([picture.kind, *map(_clean_part, picture.subject)]) for picture in selected]
    lowered = [name.lower() for name in plain_names]
    return [
        name if _is_clean(picture) and lowered.count(name.lower()) == 1 else f"{name}-{_hash_subject(picture)}"
        for name, picture in zip(plain_names, selected, strict=True)
    ]


def _clean_part(part: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+=@-]+", "_", part)[:MOST_CHARACTERS]


def _is_clean(picture: FigureSpec) -> bool:
    return all(part == _clean_part(part) for part in picture.subject)


def _hash_subject(picture: FigureSpec) -> str:
    return sha256("\0".join((picture.kind, *picture.subject)).encode("utf-8", "surrogatepass")).hexdigest()[:8]
