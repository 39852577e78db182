"""Of several logs of one system and task, which is taken: the newest, where their names are dated.

Where logs accumulate night after night, an average of the nights would hide what the last one lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.options import Options
from sigdask.formats.samples import harness
from sigdask.formats.samples.log_dates import undated
from sigdask.formats.samples.sample import SampleFile
from sigdask.text import count_noun, listed

LOGS = ("newest", "all")
"""What the option `logs` takes."""

SHOWN = 3
"""Files and tasks that a note names."""

Key = tuple[str | None, str, str]
"""System, task and variant of a log."""

ALL = "--format samples:logs=all averages them"
NEWEST = "samples:logs=newest takes the newest of all"


def chosen(logs: Sequence[SampleFile], options: Options) -> tuple[list[SampleFile], list[str]]:
    """Return the logs that are taken, in their order, and what to tell of the others.

    Parameters
    ----------
    logs : sequence of SampleFile
        With their systems.
    options : Options
        Its `logs`: "all" takes all, "newest" the newest of a task whatever folder or model it is of;
        by default the newest, where folder and model are the same for all.

    Raises
    ------
    InputError
        Which log is the newest cannot be told, or it has fewer items than the one before.
    """
    how = options.own.get("logs")
    if how == "all":
        return list(logs), []
    groups: dict[Key, list[SampleFile]] = {}
    for log in logs:
        groups.setdefault((log.system, log.task, log.variant), []).append(log)
    taken: set[Path] = set()
    notes: list[str] = []
    older: dict[Key, list[SampleFile]] = {}
    for key, own in groups.items():
        if all(log.moment is None for log in own):
            kept, told = _whole(own)
            notes += told
        else:
            kept = [_newest(own, options, anywhere=how == "newest")]
            older[key] = [log for log in own if log not in kept]
        taken |= {log.path for log in kept}
    found = [log for log in logs if log.path in taken]
    return found, [*notes, *_left_out(found, older), *_not_run_again(groups, older)]


def _whole(logs: list[SampleFile]) -> tuple[list[SampleFile], list[str]]:
    """Leave out runs that did not end, where one did."""
    whole = [log for log in logs if log.is_whole]
    if not whole or len(whole) == len(logs):
        return logs, []
    names = listed([str(log.path) for log in logs if not log.is_whole])
    return whole, [f"left out, as these runs did not come to their end: {names}"]


def _newest(logs: Sequence[SampleFile], options: Options, *, anywhere: bool) -> SampleFile:
    """Return the newest of the logs of one system and task."""
    if len(logs) == 1:
        return logs[0]
    what = f"system {logs[0].system!r}{f', task {logs[0].task!r}' if logs[0].task else ''}"
    for log in logs:
        if log.moment is None:
            dated = next(other for other in logs if other.moment is not None)
            raise InputError(
                f"{log.path}: no date in its name, and {dated.path} of the same {what} has one; which is newer cannot "
                f"be told: remove one of them; {ALL}"
            )
    ordered = sorted(logs, key=_when)
    last, before = ordered[-1], ordered[-2]
    if not anywhere:
        _check_one_folder(logs, what)
        _check_one_model(last, before, what)
    if last.moment == before.moment:
        raise InputError(
            f"{before.path} and {last.path} are of the same {what} and the same date; remove one of them; {ALL}"
        )
    ended = [log for log in ordered[:-1] if log.is_whole]
    _check_size(last, ended[-1] if ended else before, options)
    return last


def _when(log: SampleFile) -> datetime:
    assert log.moment is not None
    return log.moment


def _check_one_folder(logs: Sequence[SampleFile], what: str) -> None:
    """Refuse logs of several folders; such as are called by a date alone are nights of one."""
    homes = sorted({"/".join(part for part in log.folder.parts if undated(part)) for log in logs})
    if len(homes) > 1:
        raise InputError(
            f"{logs[0].path}: {what} has logs in {len(homes)} folders ({', '.join(h or '.' for h in homes[:SHOWN])}); "
            f"give each folder as a system, or under one name as replicates; {NEWEST}, {ALL.removeprefix('--format ')}"
        )


def _check_one_model(last: SampleFile, before: SampleFile, what: str) -> None:
    """Refuse two models that write into one folder."""
    models = [log.model or harness.model_beside(log.path) for log in (before, last)]
    if None not in models and models[0] != models[1]:
        raise InputError(
            f"{last.path}: is of the model {models[1]}, and {before.path} of the same {what} of {models[0]}; keep each "
            f"model in a folder of its own; {NEWEST}, whatever its model"
        )


def _check_size(last: SampleFile, before: SampleFile, options: Options) -> None:
    """Refuse a log that has fewer items than the one before: its run may have been cut off."""
    n, n_before = (_n_items(log, options, last=log is last) for log in (last, before))
    if n < n_before:
        end = "" if last.is_whole else ", and its run did not come to its end"
        raise InputError(
            f"{last.path}: the newest log of system {last.system!r} has {count_noun(n, 'item')} "
            f"and the one before, {before.path}, "
            f"{n_before:,}{end}; run it again, or remove the one that is not to be compared; {ALL}"
        )


def _n_items(log: SampleFile, options: Options, *, last: bool) -> int:
    """Count the items of a log; of an older one that is damaged, those before the damage."""
    found: set[tuple[str, str]] = set()
    try:
        for sample in log.samples(options):
            found.add((sample.task, sample.item))
    except InputError:
        if last:
            raise
    return len(found)


def _left_out(taken: Sequence[SampleFile], older: Mapping[Key, Sequence[SampleFile]]) -> Iterator[str]:
    """Say of when the logs are that are taken, and name those that are not, the latest first."""
    logs = sorted((log for own in older.values() for log in own), key=_when, reverse=True)
    if not logs:
        return
    dates: dict[str | None, datetime] = {}
    for log in taken:
        if log.moment is not None:
            dates[log.system] = max(dates.get(log.system, log.moment), log.moment)
    of = listed([f"{system} {date:%Y-%m-%d %H:%M}" for system, date in dates.items()])
    one = len(logs) == 1
    yield (
        f"of each system and task the newest log is taken ({of}); {len(logs):,} older "
        f"{'one is' if one else 'ones are'} left out: {listed([str(log.path) for log in logs])} ({ALL})"
    )


def _not_run_again(
    groups: Mapping[Key, Sequence[SampleFile]], older: Mapping[Key, Sequence[SampleFile]]
) -> Iterator[str]:
    """Name tasks whose newest log is as old as logs of the same system that are left out."""
    ends: dict[str | None, datetime] = {}
    for (system, *_), own in older.items():
        for log in own:
            ends[system] = max(ends.get(system, _when(log)), _when(log))
    for system, end in ends.items():
        stale = sorted(
            task
            for (of, task, _), own in groups.items()
            if of == system and (dates := [log.moment for log in own if log.moment is not None]) and max(dates) <= end
        )
        if stale:
            yield f"{system}: not run again with its other tasks, and taken as they were before: {listed(stale)}"
