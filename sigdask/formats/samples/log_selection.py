"""Select the newest of several logs of one system and task, if their names are dated.

Where logs accumulate night after night, an average of the nights would hide what the last one lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.options import Options
from sigdask.formats.samples import harness
from sigdask.formats.samples.log_dates import remove_date
from sigdask.formats.samples.sample import SampleFile
from sigdask.text import format_count, format_list

LOGS = ("newest", "all")
"""What the option `logs` takes."""

SHOWN = 3
"""Files and tasks that a note names."""

Key = tuple[str | None, str, str]
"""System, task and variant of a log."""

ALL = "--format samples:logs=all averages them"
NEWEST = "samples:logs=newest takes the newest of all"


def select_logs(logs: Sequence[SampleFile], options: Options) -> tuple[list[SampleFile], list[str]]:
    """Return the newest log of each system and task, or all logs if requested, and notes on the logs left out.

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
    mode = options.own.get("logs")
    if mode == "all":
        return list(logs), []
    groups: dict[Key, list[SampleFile]] = {}
    for log in logs:
        groups.setdefault((log.system, log.task, log.variant), []).append(log)
    selected_paths: set[Path] = set()
    notes: list[str] = []
    older: dict[Key, list[SampleFile]] = {}
    for key, group in groups.items():
        if all(log.moment is None for log in group):
            group_selected, group_notes = _select_completed(group)
            notes += group_notes
        else:
            group_selected = [_find_newest(group, options, any_folder=mode == "newest")]
            older[key] = [log for log in group if log not in group_selected]
        selected_paths |= {log.path for log in group_selected}
    selected = [log for log in logs if log.path in selected_paths]
    return selected, [*notes, *_describe_left_out(selected, older), *_describe_stale(groups, older)]


def _select_completed(logs: list[SampleFile]) -> tuple[list[SampleFile], list[str]]:
    """Return the logs of completed runs, or all logs if no run was completed, and a note on the logs left out."""
    completed = [log for log in logs if log.is_whole]
    if not completed or len(completed) == len(logs):
        return logs, []
    names = format_list([str(log.path) for log in logs if not log.is_whole])
    return completed, [f"left out, as these runs did not come to their end: {names}"]


def _find_newest(logs: Sequence[SampleFile], options: Options, *, any_folder: bool) -> SampleFile:
    """Return the newest of the logs of one system and task."""
    if len(logs) == 1:
        return logs[0]
    owner = f"system {logs[0].system!r}{f', task {logs[0].task!r}' if logs[0].task else ''}"
    for log in logs:
        if log.moment is None:
            dated = next(other for other in logs if other.moment is not None)
            raise InputError(
                f"{log.path}: no date in its name, and {dated.path} of the same {owner} has one; which is newer cannot "
                f"be told: remove one of them; {ALL}"
            )
    ordered = sorted(logs, key=_get_date)
    last, previous = ordered[-1], ordered[-2]
    if not any_folder:
        _check_one_folder(logs, owner)
        _check_one_model(last, previous, owner)
    if last.moment == previous.moment:
        raise InputError(
            f"{previous.path} and {last.path} are of the same {owner} and the same date; remove one of them; {ALL}"
        )
    completed = [log for log in ordered[:-1] if log.is_whole]
    _check_size(last, completed[-1] if completed else previous, options)
    return last


def _get_date(log: SampleFile) -> datetime:
    assert log.moment is not None
    return log.moment


def _check_one_folder(logs: Sequence[SampleFile], owner: str) -> None:
    """Raise if the logs of a system and task are in several folders; folders named only by a date count as one."""
    homes = sorted({"/".join(part for part in log.folder.parts if remove_date(part)) for log in logs})
    if len(homes) > 1:
        raise InputError(
            f"{logs[0].path}: {owner} has logs in {len(homes)} folders ({', '.join(h or '.' for h in homes[:SHOWN])}); "
            f"give each folder as a system, or under one name as replicates; {NEWEST}, {ALL.removeprefix('--format ')}"
        )


def _check_one_model(last: SampleFile, previous: SampleFile, owner: str) -> None:
    """Raise if the two newest logs of a system and task are of different models."""
    models = [log.model or harness.find_model(log.path) for log in (previous, last)]
    if None not in models and models[0] != models[1]:
        raise InputError(
            f"{last.path}: is of the model {models[1]}, and {previous.path} of the same {owner} of {models[0]}; keep "
            "each "
            f"model in a folder of its own; {NEWEST}, whatever its model"
        )


def _check_size(last: SampleFile, previous: SampleFile, options: Options) -> None:
    """Raise if a log has fewer items than the previous one: its run may have been cut off."""
    n, n_before = (_count_items(log, options, is_last=log is last) for log in (last, previous))
    if n < n_before:
        end = "" if last.is_whole else ", and its run did not come to its end"
        raise InputError(
            f"{last.path}: the newest log of system {last.system!r} has {format_count(n, 'item')} "
            f"and the one before, {previous.path}, "
            f"{n_before:,}{end}; run it again, or remove the one that is not to be compared; {ALL}"
        )


def _count_items(log: SampleFile, options: Options, *, is_last: bool) -> int:
    """Count the items of a log; in a damaged older log, only those before the damage."""
    items: set[tuple[str, str]] = set()
    try:
        for sample in log.samples(options):
            items.add((sample.task, sample.item))
    except InputError:
        if is_last:
            raise
    return len(items)


def _describe_left_out(selected: Sequence[SampleFile], older: Mapping[Key, Sequence[SampleFile]]) -> Iterator[str]:
    """Yield a note on the dates of the selected logs and the names of the others, latest first."""
    logs = sorted((log for group in older.values() for log in group), key=_get_date, reverse=True)
    if not logs:
        return
    dates: dict[str | None, datetime] = {}
    for log in selected:
        if log.moment is not None:
            dates[log.system] = max(dates.get(log.system, log.moment), log.moment)
    date_list = format_list([f"{system} {date:%Y-%m-%d %H:%M}" for system, date in dates.items()])
    is_single = len(logs) == 1
    yield (
        f"of each system and task the newest log is taken ({date_list}); {len(logs):,} older "
        f"{'one is' if is_single else 'ones are'} left out: {format_list([str(log.path) for log in logs])} ({ALL})"
    )


def _describe_stale(
    groups: Mapping[Key, Sequence[SampleFile]], older: Mapping[Key, Sequence[SampleFile]]
) -> Iterator[str]:
    """Yield a note for each system with tasks that were not run again when its other tasks were."""
    ends: dict[str | None, datetime] = {}
    for (system, *_), group in older.items():
        for log in group:
            ends[system] = max(ends.get(system, _get_date(log)), _get_date(log))
    for system, end in ends.items():
        stale = sorted(
            task
            for (owner, task, _), group in groups.items()
            if owner == system
            and (dates := [log.moment for log in group if log.moment is not None])
            and max(dates) <= end
        )
        if stale:
            yield f"{system}: not run again with its other tasks, and taken as they were before: {format_list(stale)}"
