"""Logs of samples: finding them, the system that each belongs to, and the newest of several with dates in their names.

Where logs accumulate night after night, an average over the nights would hide a loss of the last one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading import json_records
from sigdask.formats.reading.files import get_stem, list_files
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.samples.layouts import LAYOUTS, PLAIN, find_layout
from sigdask.formats.samples.sample import SampleFile, parse_date, remove_date
from sigdask.interface import spell
from sigdask.text import format_count, format_list

SHOWN = 3
"""Maximum number of models and folders that an error names."""

LOG_NAME = re.compile(r"samples_(?P<task>.+)\.jsonl?(?:\.gz)?$")
"""Pattern of the file names of lm-evaluation-harness. A date follows the task."""

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?")


def list_logs(folder: Path) -> list[Path]:
    """Return the logs in a folder and below it: those with the harness's names, those of any layout, or JSON lines."""
    files = list_files(folder)
    by_name = [path for path in files if LOG_NAME.match(path.name)]
    if by_name:
        return by_name
    logs = [path for path in files if path.suffix in {".eval", ".json"} and find_layout(path) is not None]
    return logs or [path for path in files if path.name.removesuffix(".gz").endswith(".jsonl")]


def list_source_files(source: Source) -> list[Path]:
    """Return the files of a source: the logs in its folder, the files of its parts, or the file itself."""
    parts = source.parts or (source.path,)
    return [file for part in parts for file in (list_logs(part) if part.is_dir() else [part])]


def are_one_system(paths: Sequence[Path], *, are_logs: bool) -> bool:
    """Return whether the matches of a pattern are logs of one system rather than replicates of it.

    This holds for files with names as from the harness, logs that name their model or have a date in their names, and
    folders of logs. With `are_logs`, they are logs whatever their contents.
    """
    first = paths[0]
    if first.is_dir():
        logs = list_logs(first)
        return bool(logs) and (are_logs or find_layout(logs[0]) is not None)
    layout = find_layout(first)
    if LOG_NAME.match(first.name) or (layout is not None and layout.tool == "Inspect"):
        return True
    return parse_date(first.name) is not None and (are_logs or layout is not None)


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
        logs = _open_file(path, path.parent, in_folder=False)
        if len(logs) > 1:  # the file holds a log for each of several models
            for log in logs:
                log.system = f"{source.name}:{log.run.model}" if source.name else str(log.run.model)
        else:
            logs[0].system = source.name or ""
        return logs
    files = list_source_files(source)
    if not files:
        tools = ", ".join(dict.fromkeys(layout.tool.partition(" (")[0] for layout in LAYOUTS))
        raise InputError("no logs in this folder", file=path, remedy=f"expected logs of {tools}, or .jsonl files")
    logs = [log for file in files for log in _open_file(file, path, in_folder=True)]
    if source.name is None:
        _name_logs(path, logs, is_alone=is_alone)
    else:
        for log in logs:
            log.system = source.name
    _check_models(path, logs, options)
    return logs


def _check_models(path: Path, logs: Sequence[SampleFile], options: Options) -> None:
    """Raise if logs of several models would be one system."""
    models: dict[str, set[str]] = {}
    for log in logs:
        if log.run.model is not None and options.own.get("logs") is None:
            models.setdefault(log.system, set()).add(log.run.model)
    for system, names in models.items():
        if len(names) > 1:
            raise InputError(
                f"logs of {len(names)} models ({', '.join(sorted(names)[:SHOWN])}) for system {system!r}",
                file=path,
                remedy="to compare the models, give the folder without NAME=, or one folder per model; "
                f"{spell('format', 'samples:logs=newest')} takes the newest log of each task, of any model",
            )


def _open_file(path: Path, home: Path, *, in_folder: bool) -> list[SampleFile]:
    """Return the logs in a file; its name gives the task of files with the harness's names and of files in folders."""
    layout = find_layout(path) or PLAIN
    match = LOG_NAME.match(path.name)
    dated = match["task"] if match else get_stem(path)
    is_named = match is not None or (in_folder and layout.listed != "")
    folder = path.relative_to(home).parent
    moments = (parse_date(part) for part in (dated, *folder.parts))
    moment = next((found for found in moments if found is not None), None)
    return [
        SampleFile(
            path,
            layout,
            run,
            task=run.task or (remove_date(dated) if is_named else ""),
            folder=folder,
            moment=parse_date(run.date) or moment,
        )
        for run in layout.read(path)
    ]


def find_model(path: Path) -> str | None:
    """Return the model named in the results of the same run in the same folder, or None.

    The harness writes the samples of all models into one folder if its output path is a file.
    """
    for stamp in STAMP.findall(path.name):
        for results in sorted(path.parent.glob(f"*_{stamp}.json")):
            with suppress(InputError):
                content = json_records.load_json(results)
                model = content.get("model_name") if isinstance(content, dict) else None
                if isinstance(model, str) and model:
                    return model
    return None


def _name_logs(path: Path, logs: Sequence[SampleFile], *, is_alone: bool) -> None:
    """Set the system of each log in a folder: its model or subfolder if the folder is the only source, else the folder.

    Folders of nights do not name systems if there are folders within them.
    """
    nights = all(len(log.folder.parts) > 1 and not remove_date(log.folder.parts[0]) for log in logs)
    in_folders = all(log.folder.parts for log in logs)
    for log in logs:
        log.folder = Path(*log.folder.parts[1:]) if nights else log.folder
        log.system = path.resolve().name
        if is_alone and log.run.model is not None:
            log.system = log.run.model
        elif is_alone and in_folders:
            log.system, log.folder = log.folder.parts[0], Path(*log.folder.parts[1:])
        elif is_alone:
            log.system = find_model(log.path) or log.system


def _name_files(logs: Sequence[SampleFile]) -> None:
    """Set the system of logs without a name: model, folder or file name, the first that distinguishes them."""
    models = {log.run.model for log in logs}
    homes = {log.path.resolve().parent for log in logs}
    are_distinct = len({(log.run.model, log.task, log.moment) for log in logs}) == len(logs)
    by_model = None not in models and len(models) > 1 and are_distinct
    are_named_alike = all(LOG_NAME.match(log.path.name) for log in logs)
    by_home = len({home.name for home in homes}) == len(homes) > 1 and are_named_alike
    for log in logs:
        log.system = log.path.resolve().parent.name if by_home else get_stem(log.path)
        log.system = str(log.run.model) if by_model else log.system


def _check_names(sources: Sequence[Source], groups: Sequence[Sequence[SampleFile]]) -> None:
    """Raise if unrelated files would become one system because their default names are equal."""
    homes: dict[str, tuple[Path, Path]] = {}
    for source, logs in zip(sources, groups, strict=True):
        system = logs[0].system
        if source.name is not None or logs[0].run.model == system:
            continue
        home = source.path.resolve() if source.path.is_dir() else source.path.resolve().parent
        first = homes.setdefault(system, (home, source.path))
        if first[1] != source.path and (first[0] != home or get_stem(source.path) == system):
            raise InputError(f"system {system!r} is {first[1]} already", file=source.path, remedy="name them NAME=FILE")


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
    groups: dict[tuple[str, str, str], list[SampleFile]] = {}
    for log in logs:
        groups.setdefault((log.system, log.task, log.run.variant), []).append(log)
    selected: list[SampleFile] = []
    older: list[SampleFile] = []
    notes: list[str] = []
    for group in groups.values():
        if all(log.moment is None for log in group):
            whole = [log for log in group if log.run.is_whole] or group  # of completed runs, if there are any
            selected += whole
            if left_out := [str(log.path) for log in group if log not in whole]:
                notes.append(f"runs that stopped before their end are left out: {format_list(left_out)}")
            continue
        last = _find_newest(group, options, any_folder=mode == "newest")
        selected.append(last)
        older += [log for log in group if log is not last]
    ordered = [log for log in logs if any(log is other for other in selected)]
    return ordered, [*notes, *_describe_left_out(ordered, older), *_describe_stale(ordered, older)]


def _find_newest(logs: Sequence[SampleFile], options: Options, *, any_folder: bool) -> SampleFile:
    """Return the newest of the logs of one system and task."""
    if len(logs) == 1:
        return logs[0]
    owner = f"system {logs[0].system!r}{f', task {logs[0].task!r}' if logs[0].task else ''}"
    for log in logs:
        if log.moment is None:
            dated = next(other for other in logs if other.moment is not None)
            raise InputError(
                f"no date in its name, and {dated.path} of the same {owner} has one, so it is not known which is newer",
                file=log.path,
                remedy=f"remove one of them; {tell_average()}",
            )
    ordered = sorted(logs, key=_get_date)
    last, previous = ordered[-1], ordered[-2]
    if not any_folder:
        _check_one_home(ordered, owner)
    if last.moment == previous.moment:
        remedy = f"remove one of them; {tell_average()}"
        raise InputError(f"{previous.path} and {last.path} are of the same {owner} and the same date", remedy=remedy)
    before = next((log for log in ordered[-2::-1] if log.run.is_whole), previous)
    n, n_before = (_count_items(log, options, is_last=log is last) for log in (last, before))
    if n < n_before:  # its run may have been cut off
        end = "" if last.run.is_whole else ", and its run did not come to its end"
        raise InputError(
            f"the newest log of system {last.system!r} has {format_count(n, 'item')} and the one before, "
            f"{before.path}, {n_before:,}{end}",
            file=last.path,
            remedy=f"run it again, or remove the one that is not to be compared; {tell_average()}",
        )
    return last


def _check_one_home(ordered: Sequence[SampleFile], owner: str) -> None:
    """Raise if logs are in several folders, other than folders named by a date, or the last two of two models."""
    last, previous = ordered[-1], ordered[-2]
    homes = sorted({"/".join(part for part in log.folder.parts if remove_date(part)) for log in ordered})
    if len(homes) > 1:
        names = ", ".join(home or "." for home in homes[:SHOWN])
        raise InputError(
            f"{owner} has logs in {len(homes)} folders ({names})",
            file=last.path,
            remedy="give each folder as a system, or all with one name (NAME=FOLDER) as replicates; "
            f"{NEWEST}, samples:logs=all averages them",
        )
    models = [log.run.model or find_model(log.path) for log in (previous, last)]
    if None not in models and models[0] != models[1]:
        raise InputError(
            f"is of the model {models[1]}, and {previous.path} of the same {owner} of {models[0]}",
            file=last.path,
            remedy=f"keep each model in its own folder; {NEWEST}, of any model",
        )


def _get_date(log: SampleFile) -> datetime:
    assert log.moment is not None
    return log.moment


def _count_items(log: SampleFile, options: Options, *, is_last: bool) -> int:
    """Count the items of a log; in a damaged older log, only those before the damage."""
    items: set[tuple[str, str]] = set()
    try:
        for sample in log.iter_samples(options):
            items.add((sample.task, sample.item))
    except InputError:
        if is_last:
            raise
    return len(items)


def _describe_left_out(selected: Sequence[SampleFile], older: Sequence[SampleFile]) -> Iterator[str]:
    """Yield a note on the dates of the selected logs and the names of the others, latest first."""
    if not older:
        return
    paths = [str(log.path) for log in sorted(older, key=_get_date, reverse=True)]
    dates: dict[str, datetime] = {}
    for log in selected:
        if log.moment is not None:
            dates[log.system] = max(dates.get(log.system, log.moment), log.moment)
    date_list = format_list([f"{system} {date:%Y-%m-%d %H:%M}" for system, date in dates.items()])
    yield (
        f"of each system and task the newest log is taken ({date_list}); {len(paths):,} older "
        f"{'one is' if len(paths) == 1 else 'ones are'} left out: {format_list(paths)} ({tell_average()})"
    )


def _describe_stale(selected: Sequence[SampleFile], older: Sequence[SampleFile]) -> Iterator[str]:
    """Yield a note for each system with tasks that were not run again when its other tasks were."""
    for system in dict.fromkeys(log.system for log in older):
        end = max(_get_date(log) for log in older if log.system == system)
        logs = [log for log in selected if log.system == system and log.moment is not None]
        if stale := sorted(log.task for log in logs if _get_date(log) <= end):
            yield f"{system}: not run again with its other tasks, and taken as they were before: {format_list(stale)}"
