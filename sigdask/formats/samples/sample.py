"""One sample of a log, and one log: the common output of all log readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sigdask.formats.reading.json.rows import Record, find_field
from sigdask.formats.reading.options import Options

ScoreValue = float | list[bool] | str
"""A score: a number (NaN where there is none), truths to be pooled, or text that is no score."""


@dataclass(frozen=True, slots=True)
class ScoredSample:
    """One sample of a log: its task, id and scores, and the whole record.

    Attributes
    ----------
    where : str
        File and line, for errors.
    task, item : str
        What the sample is known by.
    scores : mapping of str to Value
        Metric to score.
    record : mapping
        The whole sample, for its groups.
    within : tuple of str
        Objects in the record whose fields are the sample's too (doc, metadata).
    filter : str
        How the answer was taken out of the response.
    input : str
        A digest of what was asked.
    system : str
        Whose it is, where the log itself says so.
    """

    where: str
    task: str
    item: str
    scores: Mapping[str, ScoreValue]
    record: Record
    within: tuple[str, ...]
    filter: str = ""
    input: str = ""
    system: str = ""

    def get_field(self, name: str) -> str | None:
        """Return a field of the sample as text."""
        return find_field(self.record, name, *self.within)

    def list_fields(self) -> list[str]:
        """Return the names of all fields that the sample can be grouped by."""
        holders = (self.record, *(self.record.get(key) for key in self.within))
        names = [name for holder in holders if isinstance(holder, dict) for name in holder]
        return list(dict.fromkeys(("task", *names)))


@dataclass(slots=True)
class SampleFile:
    """A log file, with its samples and what is known of the run: system, model, task and date.

    Attributes
    ----------
    path : Path
        The file.
    samples : callable
        Options -> the samples.
    task : str
        Its task; "" where the samples say it themselves, or nothing does.
    variant : str
        What the task was told, where that is in the log: logs of one task told otherwise are no nights of each other.
    model : str or None
        The model it names.
    system : str or None
        The system it belongs to.
    folder : Path
        Where it lies in the folder of its system.
    moment : datetime or None
        When it was written, in UTC, by its name or by itself.
    is_whole : bool
        Whether the run came to its end.
    notes : list of str
        What to tell.
    """

    path: Path
    samples: Callable[[Options], Iterator[ScoredSample]]
    task: str = ""
    variant: str = ""
    model: str | None = None
    system: str | None = None
    folder: Path = Path()
    moment: datetime | None = None
    is_whole: bool = True
    notes: list[str] = field(default_factory=list)
