"""Logs of samples: finding them, the system that each belongs to, and the newest of several with dates in their names.

Where logs accumulate night after night, an average over the nights would hide a loss of the last one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import get_stem, list_files
from sigdask.formats.reading.json_records import load_json
from sigdask.formats.reading.options import Source
from sigdask.formats.samples.layouts import LAYOUTS, PLAIN, find_layout
from sigdask.formats.samples.sample import SampleFile
from sigdask.text import format_list

LOG_NAME = re.compile(r"samples_(?P<task>.+?)(_(?P<stamp>\d{4}-\d\d-\d\dT[\d.:-]+?))?\.jsonl?(\.gz)?")
"""Pattern of the file names of lm-evaluation-harness."""

DATE = re.compile(
    r"(?<!\d)(?:19|20)\d\d-?[01]\d-?[0-3]\d(?:[T ]\d\d[-:]?\d\d[-:]?\d\d(?:\.\d+)?(?:[+-]\d\d[-:]?\d\d)?|(?!\d))"
)
"""Pattern of dates and times in names of files and folders."""


def split_date(name: str) -> tuple[str, str]:
    """Return a name without its last date, and the digits of that date; the name of a task may have another date.

    Examples
    --------
    >>> split_date("live_2024-06-24_2024-08-01T12-00-00"), split_date("2024-05-01"), split_date("mmlu_2024")
    (('live_2024-06-24', '20240801120000'), ('', '20240501'), ('mmlu_2024', ''))
    """
    *_, match = [None, *DATE.finditer(name)]
    if match is None:
        return name, ""
    return (name[: match.start()] + name[match.end() :]).strip("_-. "), re.sub(r"\D", "", match[0])


def list_logs(folder: Path) -> list[Path]:
    """Return the logs in a folder and below it: those with the harness's names, those of any layout, or JSON lines."""
    files = list_files(folder)
    by_name = [path for path in files if LOG_NAME.fullmatch(path.name)]
    by_layout = (path for path in files if path.suffix in {".eval", ".json"} and find_layout(path) is not None)
    return by_name or [*by_layout] or [path for path in files if path.name.removesuffix(".gz").endswith(".jsonl")]


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
    if LOG_NAME.fullmatch(first.name) or (layout is not None and layout.tool == "Inspect"):
        return True
    return split_date(first.name)[1] != "" and (are_logs or layout is not None)


def open_logs(sources: Sequence[Source]) -> list[SampleFile]:
    """Return the logs of all sources, with the systems that they belong to."""
    logs: list[SampleFile] = []
    are_files = [not source.parts and not source.path.is_dir() for source in sources]
    for source, is_file in zip(sources, are_files, strict=True):
        path = source.path
        if not (files := list_source_files(source)):
            tools = ", ".join(dict.fromkeys(layout.tool for layout in LAYOUTS))
            raise InputError("no logs in this folder", file=path, remedy=f"expected logs of {tools}, or .jsonl files")
        system = source.name or source.apart or (get_stem(path) if is_file else path.resolve().name)
        home = path.parent if is_file else path
        logs += [_open_file(file, home, system, in_folder=not is_file) for file in files]
    if all(are_files) and all(source.name is None for source in sources):
        _name_files(logs)
    elif len(sources) == 1 and sources[0].name is None:
        _name_logs(logs)
    _check_models(logs)
    return logs


def _open_file(path: Path, home: Path, system: str, *, in_folder: bool) -> SampleFile:
    """Return the log in a file; its name gives the task of files with the harness's names and of files in folders."""
    layout = find_layout(path) or PLAIN
    run = layout.read(path)
    is_named = LOG_NAME.fullmatch(path.name) is not None
    rest, date = split_date(get_stem(path))
    task = rest.removeprefix("samples_") if is_named or (in_folder and layout.is_flat) else ""
    folder = path.relative_to(home).parent
    with suppress(ValueError):
        date = re.sub(r"\D", "", datetime.fromisoformat(run.date).astimezone(UTC).isoformat())
    date = date or next((digits for _, digits in map(split_date, folder.parts) if digits), "")
    return SampleFile(path, layout, run, run.task or task, folder, date, system)


def find_model(log: SampleFile) -> str:
    """Return the model of a log, which lm-evaluation-harness names in the results of the run, in the same folder."""
    name = LOG_NAME.fullmatch(log.path.name)
    for results in sorted(log.path.parent.glob(f"*_{name['stamp']}.json")) if name and name["stamp"] else ():
        content = load_json(results)
        if isinstance(content, dict) and isinstance(model := content.get("model_name"), str):
            return model
    return log.run.model


def _name_logs(logs: Sequence[SampleFile]) -> None:
    """Set the system of each log in the only folder: the model that it names, its subfolder, or its model's results.

    Folders of nights do not name systems if there are folders within them.
    """
    nights = all(len(log.folder.parts) > 1 and not split_date(log.folder.parts[0])[0] for log in logs)
    in_folders = all(log.folder.parts for log in logs)
    for log in logs:
        parts = log.folder.parts[int(nights) :]
        if not log.run.model and in_folders:
            log.system, parts = parts[0], parts[1:]
        else:
            log.system = find_model(log) or log.system
        log.folder = Path(*parts)


def _name_files(logs: Sequence[SampleFile]) -> None:
    """Name files by their models or, for logs of the harness, by their folders, if these distinguish them."""
    models = {log.run.model for log in logs}
    homes = [log.path.resolve().parent.name for log in logs]
    by_model = len(models) > 1 and len({(log.run.model, log.task, log.date) for log in logs}) == len(logs)
    by_home = len({*homes}) == len(logs) > 1 and all(LOG_NAME.fullmatch(log.path.name) for log in logs)
    for log, home in zip(logs, homes, strict=True):
        log.system = log.run.model if by_model and "" not in models else home if by_home else log.system


def _check_models(logs: Sequence[SampleFile]) -> None:
    """Raise if logs of several models would be one system."""
    models: dict[str, dict[str, Path]] = {}
    for log in logs:
        if model := find_model(log):
            models.setdefault(log.system, {})[model] = log.path
    for system, paths in models.items():
        if len(paths) > 1:
            problem = f"logs of {len(paths)} models ({format_list(sorted(paths))}) for system {system!r}"
            remedy = "give the folder without NAME=, or one folder per model"
            raise InputError(problem, file=[*paths.values()][-1], remedy=remedy)


def select_logs(logs: Sequence[SampleFile]) -> tuple[list[SampleFile], list[str]]:
    """Return the newest log of each system and task, and notes on the logs that are left out.

    Logs without a date are parts of one run, which share no samples.
    """
    groups: dict[tuple[str, str, str], list[SampleFile]] = {}
    for log in logs:
        groups.setdefault((log.system, log.task, log.run.variant), []).append(log)
    newest = ([_find_newest(group)] if any(log.date for log in group) else group for group in groups.values())
    kept = {id(log) for group in newest for log in group}
    selected, older = ([log for log in logs if (id(log) in kept) == is_kept] for is_kept in (True, False))
    notes = []
    if older:
        paths = format_list([str(log.path) for log in sorted(older, key=lambda log: log.date, reverse=True)])
        is_one = "one is" if len(older) == 1 else "ones are"
        notes.append(
            f"of each system and task the newest log is taken; {len(older):,} older {is_one} left out: {paths}"
        )
    for system in dict.fromkeys(log.system for log in older):
        end = max(log.date for log in older if log.system == system)
        if stale := sorted(log.task for log in selected if log.system == system and "" < log.date <= end):
            rest = f"taken as they were before: {format_list(stale)}"
            notes.append(f"{system}: not run again with its other tasks, and {rest}")
    return selected, notes


def _find_newest(logs: Sequence[SampleFile]) -> SampleFile:
    """Return the newest of the logs of one system and task; raise unless they have dates and share folder and model."""
    *_, before, last = [None, *sorted(logs, key=lambda log: log.date)]
    homes = {tuple(part for part in log.folder.parts if split_date(part)[0]) for log in logs}
    if before is not None and (len(homes) > 1 or not all(log.date for log in logs) or before.date == last.date):
        owner = f"system {last.system!r}{f', task {last.task!r}' if last.task else ''}"
        raise InputError(
            f"{len(logs)} logs of {owner}, and it is not known which is the newest: {before.path}, {last.path}",
            remedy="remove all but one; or give the folders that they are in as systems, or as runs of one system "
            "(NAME=FOLDER NAME=FOLDER)",
        )
    return last
