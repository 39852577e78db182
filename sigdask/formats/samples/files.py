"""Find the logs of samples, and the system that each belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import get_stem, list_files
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.samples import harness, inspect
from sigdask.formats.samples.log_dates import parse_date, remove_date
from sigdask.formats.samples.sample import SampleFile

SHOWN = 3


def list_logs(folder: Path) -> list[Path]:
    """Return the logs in a folder and below it by name, without hidden files and summaries."""
    files = list_files(folder)
    by_name = [path for path in files if harness.LOG_NAME.match(path.name)]
    logs = [path for path in files if path.suffix == ".eval" or (path.suffix == ".json" and inspect.is_log(path))]
    return by_name or logs or [path for path in files if path.name.removesuffix(".gz").endswith(".jsonl")]


def list_source_files(source: Source) -> list[Path]:
    """Return the files of a source: the logs in its folder, the files of its parts, or the file itself."""
    parts = source.parts or (source.path,)
    return [file for part in parts for file in (list_logs(part) if part.is_dir() else [part])]


def are_one_system(paths: Sequence[Path], *, are_logs: bool) -> bool:
    """Return whether the matches of a pattern are logs of one system rather than replicates of it.

    So are files that are called as the harness or Inspect call theirs, logs with a date in their names,
    and folders of logs. `are_logs` says that they are logs, whatever is in them.
    """
    first = paths[0]
    if first.is_dir():
        logs = list_logs(first)
        return bool(logs) and (are_logs or harness.is_log(logs[0]) or inspect.is_log(logs[0]))
    if harness.LOG_NAME.match(first.name) or inspect.is_log(first):
        return True
    return parse_date(first.name) is not None and (are_logs or harness.is_log(first))


def open_logs(sources: Sequence[Source], options: Options) -> list[SampleFile]:
    """Return the logs of all sources, with the systems that they belong to."""
    groups = [_open_source_logs(source, options, is_alone=len(sources) == 1) for source in sources]
    single = [logs[0] for source, logs in zip(sources, groups, strict=True) if _is_unnamed_file(source)]
    _name_files(single)
    _check_names(sources, groups)
    return [log for logs in groups for log in logs]


def _is_file(source: Source) -> bool:
    return not source.parts and not source.path.is_dir()


def _is_unnamed_file(source: Source) -> bool:
    return source.name is None and _is_file(source)


def _open_source_logs(source: Source, options: Options, *, is_alone: bool) -> list[SampleFile]:
    path = source.path
    if _is_file(source):
        return [_open_file(path, path.parent, source.name, in_folder=False)]
    files = list_source_files(source)
    if not files:
        raise InputError(
            f"{path}: no logs in this folder; expected samples_*.jsonl of lm-evaluation-harness, .eval or .json logs "
            "of Inspect, or .jsonl files"
        )
    logs = [_open_file(file, path, source.name, in_folder=True) for file in files]
    if source.name is None:
        _name_logs(path, logs, is_alone=is_alone)
    if options.own.get("logs") is None:
        _check_one_model(path, logs)
    return logs


def _open_file(path: Path, home: Path, name: str | None, *, in_folder: bool) -> SampleFile:
    log = inspect.open_log(path) if inspect.is_log(path) else harness.open_log(path, in_folder=in_folder)
    log.system, log.folder = name, path.relative_to(home).parent
    if log.moment is None:
        log.moment = next((date for part in log.folder.parts if (date := parse_date(part)) is not None), None)
    return log


def _name_logs(path: Path, logs: Sequence[SampleFile], *, is_alone: bool) -> None:
    """Set the system of each log in a folder: its model or subfolder if the folder is the only source, else the folder.

    Folders of nights are passed over where there are folders within them.
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


def _check_one_model(path: Path, logs: Sequence[SampleFile]) -> None:
    models: dict[str | None, set[str]] = {}
    for log in logs:
        if log.model is not None:
            models.setdefault(log.system, set()).add(log.model)
    for system, names in models.items():
        if len(names) > 1:
            raise InputError(
                f"{path}: logs of {len(names)} models ({', '.join(sorted(names)[:SHOWN])}) for system {system!r}; give "
                "the folder alone, without a name, to compare them, or a folder a model; --format samples:logs=newest "
                "takes the newest log of each task, whatever its model"
            )


def _name_files(logs: Sequence[SampleFile]) -> None:
    """Set the system of logs given without a name: their model, folder or file name, whichever tells them apart."""
    models = {log.model for log in logs}
    homes = {log.path.resolve().parent for log in logs}
    are_distinct = len({(log.model, log.task, log.moment) for log in logs}) == len(logs)
    by_model = None not in models and len(models) > 1 and are_distinct
    by_home = len({home.name for home in homes}) == len(homes) > 1 and all(
        harness.LOG_NAME.match(l.path.name) for l in logs
    )
    for log in logs:
        if by_model:
            log.system = log.model
        else:
            log.system = log.path.resolve().parent.name if by_home else get_stem(log.path)


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
            raise InputError(f"{source.path}: system {system!r} is {first[1]} already; name them NAME=FILE")
