"""Logs of samples: finding them, the system that each belongs to, and the newest of several with dates in their names.

Where logs accumulate night after night, an average over the nights would hide a loss of the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import get_stem, list_files
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.samples import harness, inspect, tools
from sigdask.formats.samples.sample import SampleFile, parse_date, remove_date
from sigdask.interface import spell
from sigdask.text import format_count, format_list

SHOWN = 3
"""Maximum number of models and folders that an error names."""


def list_logs(folder: Path) -> list[Path]:
    """Return the logs in a folder and below it by name, without hidden files and summaries."""
    files = list_files(folder)
    by_name = [path for path in files if harness.LOG_NAME.match(path.name)]
    logs = [path for path in files if path.suffix == ".eval" or (path.suffix == ".json" and inspect.is_log(path))]
    if by_name or logs:
        return by_name or logs
    lines = [path for path in files if path.name.removesuffix(".gz").endswith(".jsonl")]
    of_tools = [path for path in files if path.suffix == ".json" and tools.find_layout(path) is not None]
    return of_tools or lines


def list_source_files(source: Source) -> list[Path]:
    """Return the files of a source: the logs in its folder, the files of its parts, or the file itself."""
    parts = source.parts or (source.path,)
    return [file for part in parts for file in (list_logs(part) if part.is_dir() else [part])]


def are_one_system(paths: Sequence[Path], *, are_logs: bool) -> bool:
    """Return whether the matches of a pattern are logs of one system rather than replicates of it.

    This holds for files with names as from the harness or Inspect, logs with a date in their names, and folders of
    logs. With `are_logs`, they are logs whatever their contents.
    """
    first = paths[0]
    if first.is_dir():
        logs = list_logs(first)
        return bool(logs) and (are_logs or is_log(logs[0]))
    if harness.LOG_NAME.match(first.name) or inspect.is_log(first):
        return True
    return parse_date(first.name) is not None and (are_logs or harness.is_log(first))


def is_log(path: Path) -> bool:
    """Return whether a file is a log of lm-evaluation-harness, of Inspect, or of another tool."""
    return harness.is_log(path) or inspect.is_log(path) or tools.find_layout(path) is not None


def open_logs(sources: Sequence[Source], options: Options) -> list[SampleFile]:
    """Return the logs of all sources, with the systems that they belong to."""
    groups = [_open_source_logs(source, options, is_alone=len(sources) == 1) for source in sources]
    singles = [(source, logs[0]) for source, logs in zip(sources, groups, strict=True) if len(logs) == 1]
    _name_files([log for source, log in singles if source.name is None and _is_file(source)])
    _check_names(sources, groups)
    return [log for logs in groups for log in logs]


def _is_file(source: Source) -> bool:
    return not source.parts and not source.path.is_dir()


def _open_source_logs(source: Source, options: Options, *, is_alone: bool) -> list[SampleFile]:
    path = source.path
    if _is_file(source):
        logs = _open_file(path, path.parent, source.name, in_folder=False)
        if len(logs) > 1:  # the file holds a log for each of several models
            for log in logs:
                log.system = log.model if source.name is None else f"{source.name}:{log.model}"
        return logs
    files = list_source_files(source)
    if not files:
        remedy = "expected samples_*.jsonl of lm-evaluation-harness, .eval or .json logs of Inspect, or .jsonl files"
        raise InputError(f"no logs in this folder; {remedy}", file=path)
    logs = [log for file in files for log in _open_file(file, path, source.name, in_folder=True)]
    if source.name is None:
        _name_logs(path, logs, is_alone=is_alone)
    models: dict[str | None, set[str]] = {}
    for log in logs:
        if log.model is not None and options.own.get("logs") is None:
            models.setdefault(log.system, set()).add(log.model)
    for system, names in models.items():
        if len(names) > 1:
            raise InputError(
                f"logs of {len(names)} models ({', '.join(sorted(names)[:SHOWN])}) for system {system!r}",
                file=path,
                remedy="to compare the models, give the folder without NAME=, or one folder per model; "
                f"{spell('format', 'samples:logs=newest')} takes the newest log of each task, of any model",
            )
    return logs


def _open_file(path: Path, home: Path, name: str | None, *, in_folder: bool) -> list[SampleFile]:
    layout = tools.find_layout(path)
    if inspect.is_log(path):
        logs = [inspect.open_log(path)]
    elif layout is not None:
        logs = tools.open_logs(path, layout)
    else:
        logs = [harness.open_log(path, in_folder=in_folder)]
    for log in logs:
        log.system, log.folder = name, path.relative_to(home).parent
        if log.moment is None:
            log.moment = next((date for part in log.folder.parts if (date := parse_date(part)) is not None), None)
    return logs


def _name_logs(path: Path, logs: Sequence[SampleFile], *, is_alone: bool) -> None:
    """Set the system of each log in a folder: its model or subfolder if the folder is the only source, else the folder.

    Folders of nights do not name systems if there are folders within them.
    """
    nights = all(len(log.folder.parts) > 1 and not remove_date(log.folder.parts[0]) for log in logs)
    in_folders = all(log.folder.parts for log in logs)
    for log in logs:
        log.folder = Path(*log.folder.parts[1:]) if nights else log.folder
        log.system = path.resolve().name
        if is_alone and log.model is not None:
            log.system = log.model
        elif is_alone and in_folders:
            log.system, log.folder = log.folder.parts[0], Path(*log.folder.parts[1:])
        elif is_alone:
            log.system = harness.find_model(log.path) or log.system


def _name_files(logs: Sequence[SampleFile]) -> None:
    """Set the system of logs without a name: model, folder or file name, the first that distinguishes them."""
    models = {log.model for log in logs}
    homes = {log.path.resolve().parent for log in logs}
    are_distinct = len({(log.model, log.task, log.moment) for log in logs}) == len(logs)
    by_model = None not in models and len(models) > 1 and are_distinct
    are_named_alike = all(harness.LOG_NAME.match(log.path.name) for log in logs)
    by_home = len({home.name for home in homes}) == len(homes) > 1 and are_named_alike
    for log in logs:
        log.system = log.path.resolve().parent.name if by_home else get_stem(log.path)
        log.system = log.model if by_model else log.system


def _check_names(sources: Sequence[Source], groups: Sequence[Sequence[SampleFile]]) -> None:
    """Raise if unrelated files would become one system because their default names are equal."""
    homes: dict[str, tuple[Path, Path]] = {}
    for source, logs in zip(sources, groups, strict=True):
        if source.name is not None or logs[0].model == logs[0].system:
            continue
        system = logs[0].system or ""
        home = source.path.resolve() if source.path.is_dir() else source.path.resolve().parent
        first = homes.setdefault(system, (home, source.path))
        if first[1] != source.path and (first[0] != home or get_stem(source.path) == system):
            raise InputError(f"system {system!r} is {first[1]} already", file=source.path, remedy="name them NAME=FILE")


Key = tuple[str | None, str, str]
LogGroups = Mapping[Key, Sequence[SampleFile]]
"""Logs by system, task and variant."""

NEWEST = "samples:logs=newest takes the newest of all"


def tell_average() -> str:
    """Return the option that averages all logs."""
    return f"{spell('format', 'samples:logs=all')} averages them"


def select_logs(logs: Sequence[SampleFile], options: Options) -> tuple[list[SampleFile], list[str]]:
    """Return the newest log of each system and task, or all logs if requested, and notes on the logs left out.

    Parameters
    ----------
    logs : sequence of SampleFile
        With their systems.
    options : Options
        Uses `logs`: "all", or "newest" for the newest log of each task in any folder and of any model. By default the
        newest if all logs share folder and model.

    Raises
    ------
    InputError
        The newest log cannot be determined, or it has fewer items than the one before.
    """
    mode = options.own.get("logs")
    if mode == "all":
        return list(logs), []
    groups: dict[Key, list[SampleFile]] = {}
    for log in logs:
        groups.setdefault((log.system, log.task, log.variant), []).append(log)
    selected_ids: set[int] = set()
    notes: list[str] = []
    older: dict[Key, list[SampleFile]] = {}
    for key, group in groups.items():
        if all(log.moment is None for log in group):
            group_selected = [log for log in group if log.is_whole] or group  # of completed runs, if there are any
            if left_out := [str(log.path) for log in group if log not in group_selected]:
                notes.append(f"runs that stopped before their end are left out: {format_list(left_out)}")
        else:
            group_selected = [_find_newest(group, options, any_folder=mode == "newest")]
            older[key] = [log for log in group if log not in group_selected]
        selected_ids |= {id(log) for log in group_selected}
    selected = [log for log in logs if id(log) in selected_ids]
    return selected, [*notes, *_describe_left_out(selected, older), *_describe_stale(groups, older)]


def _find_newest(logs: Sequence[SampleFile], options: Options, *, any_folder: bool) -> SampleFile:
    """Return the newest of the logs of one system and task."""
    if len(logs) == 1:
        return logs[0]
    owner = f"system {logs[0].system!r}{f', task {logs[0].task!r}' if logs[0].task else ''}"
    for log in logs:
        if log.moment is None:
            dated = next(other for other in logs if other.moment is not None)
            remedy = f"so it is not known which is newer; remove one of them; {tell_average()}"
            raise InputError(
                f"no date in its name, and {dated.path} of the same {owner} has one; {remedy}", file=log.path
            )
    ordered = sorted(logs, key=_get_date)
    last, previous = ordered[-1], ordered[-2]
    if not any_folder:
        # folders named only by a date count as one
        homes = sorted({"/".join(part for part in log.folder.parts if remove_date(part)) for log in logs})
        if len(homes) > 1:
            names = ", ".join(home or "." for home in homes[:SHOWN])
            raise InputError(
                f"{owner} has logs in {len(homes)} folders ({names})",
                file=logs[0].path,
                remedy="give each folder as a system, or all with one name (NAME=FOLDER) as replicates; "
                f"{NEWEST}, samples:logs=all averages them",
            )
        models = [log.model or harness.find_model(log.path) for log in (previous, last)]
        if None not in models and models[0] != models[1]:
            raise InputError(
                f"is of the model {models[1]}, and {previous.path} of the same {owner} of {models[0]}; keep each "
                f"model in its own folder; {NEWEST}, of any model",
                file=last.path,
            )
    if last.moment == previous.moment:
        remedy = f"remove one of them; {tell_average()}"
        raise InputError(f"{previous.path} and {last.path} are of the same {owner} and the same date; {remedy}")
    before = next((log for log in ordered[-2::-1] if log.is_whole), previous)
    n, n_before = (_count_items(log, options, is_last=log is last) for log in (last, before))
    if n < n_before:  # its run may have been cut off
        end = "" if last.is_whole else ", and its run did not come to its end"
        raise InputError(
            f"the newest log of system {last.system!r} has {format_count(n, 'item')} and the one before, "
            f"{before.path}, {n_before:,}{end}",
            file=last.path,
            remedy=f"run it again, or remove the one that is not to be compared; {tell_average()}",
        )
    return last


def _get_date(log: SampleFile) -> datetime:
    assert log.moment is not None
    return log.moment


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


def _describe_left_out(selected: Sequence[SampleFile], older: LogGroups) -> Iterator[str]:
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
        f"{'one is' if is_single else 'ones are'} left out: {format_list([str(log.path) for log in logs])} "
        f"({tell_average()})"
    )


def _describe_stale(groups: LogGroups, older: LogGroups) -> Iterator[str]:
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
