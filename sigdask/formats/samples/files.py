"""Logs of samples: finding them, the system that each belongs to, and the newest of several with dates in their names.

Where logs accumulate night after night, an average over the nights would hide a loss of the last one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
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
    groups = [_open_source(source, is_alone=len(sources) == 1) for source in sources]
    logs = [log for group in groups for log in group]
    if all(source.name is None and _is_file(source) for source in sources):
        _name_files(logs)
    if options.own.get("logs") is None:
        _check_models(logs)
    return logs


def _is_file(source: Source) -> bool:
    return not source.parts and not source.path.is_dir()


def _open_source(source: Source, *, is_alone: bool) -> list[SampleFile]:
    """Return the logs of a source, which is the system unless its folder is the only source."""
    path, is_file = source.path, _is_file(source)
    files = list_source_files(source)
    if not files:
        tools = ", ".join(dict.fromkeys(layout.tool for layout in LAYOUTS))
        raise InputError("no logs in this folder", file=path, remedy=f"expected logs of {tools}, or .jsonl files")
    logs = [_open_file(file, path.parent if is_file else path, in_folder=not is_file) for file in files]
    name = source.name or source.apart or (get_stem(path) if is_file else path.resolve().name)
    for log in logs:
        log.system = name
    if is_alone and source.name is None and not is_file:
        _name_logs(logs)
    return logs


def _open_file(path: Path, home: Path, *, in_folder: bool) -> SampleFile:
    """Return the log in a file; its name gives the task of files with the harness's names and of files in folders."""
    layout = find_layout(path) or PLAIN
    run = layout.read(path)
    match = LOG_NAME.match(path.name)
    dated = match["task"] if match else get_stem(path)
    is_named = match is not None or (in_folder and layout.is_flat)
    folder = path.relative_to(home).parent
    moments = (parse_date(part) for part in (run.date, dated, *folder.parts))
    return SampleFile(
        path,
        layout,
        run,
        task=run.task or (remove_date(dated) if is_named else ""),
        folder=folder,
        moment=next((moment for moment in moments if moment is not None), None),
    )


def find_model(log: SampleFile) -> str | None:
    """Return the model of a log, which lm-evaluation-harness names in the results of the run, in the same folder."""
    for stamp in STAMP.findall(log.path.name) if log.run.model is None else ():
        for results in sorted(log.path.parent.glob(f"*_{stamp}.json")):
            with suppress(InputError):
                content = json_records.load_json(results)
                model = content.get("model_name") if isinstance(content, dict) else None
                if isinstance(model, str) and model:
                    return model
    return log.run.model


def _name_logs(logs: Sequence[SampleFile]) -> None:
    """Set the system of each log in the only folder: the model that it names, its subfolder, or its model's results.

    Folders of nights do not name systems if there are folders within them.
    """
    nights = all(len(log.folder.parts) > 1 and not remove_date(log.folder.parts[0]) for log in logs)
    in_folders = all(log.folder.parts for log in logs)
    for log in logs:
        parts = log.folder.parts[int(nights) :]
        if log.run.model is None and in_folders:
            log.system, parts = parts[0], parts[1:]
        else:
            log.system = find_model(log) or log.system
        log.folder = Path(*parts)


def _name_files(logs: Sequence[SampleFile]) -> None:
    """Name files by their models or, for logs of the harness, by their folders, if these distinguish them."""
    models = {log.run.model for log in logs}
    homes = [log.path.resolve().parent.name for log in logs]
    are_distinct = len({(log.run.model, log.task, log.moment) for log in logs}) == len(logs)
    by_model = None not in models and len(models) > 1 and are_distinct
    by_home = len({*homes}) == len(logs) > 1 and all(LOG_NAME.match(log.path.name) for log in logs)
    for log, home in zip(logs, homes, strict=True):
        log.system = str(log.run.model) if by_model else home if by_home else log.system


def _check_models(logs: Sequence[SampleFile]) -> None:
    """Raise if logs of several models would be one system."""
    models: dict[str, dict[str, Path]] = {}
    for log in logs:
        if (model := find_model(log)) is not None:
            models.setdefault(log.system, {}).setdefault(model, log.path)
    for system, paths in models.items():
        if len(paths) > 1:
            problem = f"logs of {len(paths)} models ({format_list(sorted(paths), SHOWN)}) for system {system!r}"
            newest = f"{spell('format', 'samples:logs=newest')} takes the newest log of each task, of any model"
            remedy = f"give the folder without NAME=, or one folder per model; {newest}"
            raise InputError(problem, file=[*paths.values()][-1], remedy=remedy)


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
    older: list[SampleFile] = []
    for group in groups.values():
        if any(log.moment for log in group):
            newest = _find_newest(group, options, any_folder=mode == "newest")
            older += [log for log in group if log is not newest]
    selected = [log for log in logs if not any(log is other for other in older)]
    return selected, [*_iter_notes(selected, older)]


def _find_newest(logs: Sequence[SampleFile], options: Options, *, any_folder: bool) -> SampleFile:
    """Return the newest of the logs of one system and task, some of which have a date."""
    ordered = sorted(logs, key=_get_date)
    last = ordered[-1]
    if len(logs) == 1:
        return last
    owner = f"system {last.system!r}{f', task {last.task!r}' if last.task else ''}"
    remedy = f"remove one of them; {spell('format', 'samples:logs=all')} averages them"
    if ordered[0].moment is None:
        problem = f"no date in its name, and {last.path} of the same {owner} has one, so it is not known which is newer"
        raise InputError(problem, file=ordered[0].path, remedy=remedy)
    homes = sorted({"/".join(part for part in log.folder.parts if remove_date(part)) for log in ordered})
    if len(homes) > 1 and not any_folder:
        names = format_list([home or "." for home in homes], SHOWN)
        remedy = "give each folder as a system, or all with one name (NAME=FOLDER) as replicates; "
        remedy += f"{spell('format', 'samples:logs=newest')} takes the newest of all"
        raise InputError(f"{owner} has logs in {len(homes)} folders ({names})", file=last.path, remedy=remedy)
    if last.moment == ordered[-2].moment:
        raise InputError(f"{ordered[-2].path} and {last.path} are of the same {owner} and the same date", remedy=remedy)
    before = ordered[-2]
    n, n_before = (_count_items(log, options) for log in (last, before))
    if n < n_before:  # its run may have been cut off
        found = f"{format_count(n, 'item')} and the one before, {before.path}, {n_before:,}"
        raise InputError(f"the newest log of {owner} has {found}", file=last.path, remedy=f"run it again, or {remedy}")
    return last


def _get_date(log: SampleFile) -> datetime:
    """Return the date of a log, the earliest possible one for a log without a date."""
    return log.moment or datetime.min.replace(tzinfo=UTC)


def _count_items(log: SampleFile, options: Options) -> int:
    """Count the items of a log; in a damaged log, those before the damage."""
    items: set[tuple[str, str]] = set()
    with suppress(InputError):
        items.update((sample.task, sample.item) for sample in log.iter_samples(options))
    return len(items)


def _iter_notes(selected: Sequence[SampleFile], older: Sequence[SampleFile]) -> Iterator[str]:
    """Yield notes on the logs that are left out, and on systems some of whose tasks were not run again with others."""
    if older:
        paths = [str(log.path) for log in sorted(older, key=_get_date, reverse=True)]
        yield (
            f"of each system and task the newest log is taken; {len(paths):,} older "
            f"{'one is' if len(paths) == 1 else 'ones are'} left out: {format_list(paths)} "
            f"({spell('format', 'samples:logs=all')} averages them)"
        )
    for system in dict.fromkeys(log.system for log in older):
        end = max(_get_date(log) for log in older if log.system == system)
        if stale := sorted(log.task for log in selected if log.system == system and log.moment and log.moment <= end):
            yield f"{system}: not run again with its other tasks, and taken as they were before: {format_list(stale)}"
