"""Which logs of samples there are, and to which system each belongs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import files_below, stem
from sigdask.formats.reading.options import Options, Source
from sigdask.formats.samples import harness, inspect
from sigdask.formats.samples.log_dates import moment, undated
from sigdask.formats.samples.sample import SampleFile

SHOWN = 3


def log_files(folder: Path) -> list[Path]:
    """Return the logs in a folder and below it, by name; hidden files and summaries are none."""
    files = files_below(folder)
    named = [path for path in files if harness.FILE.match(path.name)]
    logs = [path for path in files if path.suffix == ".eval" or (path.suffix == ".json" and inspect.is_log(path))]
    return named or logs or [path for path in files if path.name.removesuffix(".gz").endswith(".jsonl")]


def files_of(source: Source) -> list[Path]:
    """Return the files of a source: those of its folder, or of its parts, or itself."""
    parts = source.parts or (source.path,)
    return [file for part in parts for file in (log_files(part) if part.is_dir() else [part])]


def belong_together(paths: Sequence[Path], *, asked: bool) -> bool:
    """Say whether files or folders that a pattern found are the logs of one system, and not replicates of it.

    So are files that are called as the harness or Inspect call theirs, logs with a date in their names,
    and folders of logs. `asked` says that they are logs, whatever is in them.
    """
    first = paths[0]
    if first.is_dir():
        logs = log_files(first)
        return bool(logs) and (asked or harness.is_log(logs[0]) or inspect.is_log(logs[0]))
    if harness.FILE.match(first.name) or inspect.is_log(first):
        return True
    return moment(first.name) is not None and (asked or harness.is_log(first))


def named_logs(sources: Sequence[Source], options: Options) -> list[SampleFile]:
    """Return the logs of all sources, with the systems they belong to."""
    groups = [_logs_of(source, options, alone=len(sources) == 1) for source in sources]
    single = [logs[0] for source, logs in zip(sources, groups, strict=True) if _is_unnamed_file(source)]
    _name_files(single)
    _check_names(sources, groups)
    return [log for logs in groups for log in logs]


def _is_file(source: Source) -> bool:
    return not source.parts and not source.path.is_dir()


def _is_unnamed_file(source: Source) -> bool:
    return source.name is None and _is_file(source)


def _logs_of(source: Source, options: Options, *, alone: bool) -> list[SampleFile]:
    path = source.path
    if _is_file(source):
        return [_log(path, path.parent, source.name, in_folder=False)]
    files = files_of(source)
    if not files:
        raise InputError(
            f"{path}: no logs in this folder; expected samples_*.jsonl of lm-evaluation-harness, .eval or .json logs "
            "of Inspect, or .jsonl files"
        )
    logs = [_log(file, path, source.name, in_folder=True) for file in files]
    if source.name is None:
        _name_logs(path, logs, alone=alone)
    if options.own.get("logs") is None:
        _check_one_model(path, logs)
    return logs


def _log(path: Path, home: Path, name: str | None, *, in_folder: bool) -> SampleFile:
    log = inspect.open_log(path) if inspect.is_log(path) else harness.open_log(path, in_folder=in_folder)
    log.system, log.folder = name, path.relative_to(home).parent
    if log.moment is None:
        log.moment = next((found for part in log.folder.parts if (found := moment(part)) is not None), None)
    return log


def _name_logs(path: Path, logs: Sequence[SampleFile], *, alone: bool) -> None:
    """Name the logs of a folder: alone, after its folders or the models in the logs, else after itself.

    Folders of nights are passed over where there are folders within them.
    """
    nights = all(len(log.folder.parts) > 1 and not undated(log.folder.parts[0]) for log in logs)
    in_folders = all(log.folder.parts for log in logs)
    for log in logs:
        log.folder = Path(*log.folder.parts[1:]) if nights else log.folder
        log.system = path.resolve().name
        if alone and log.model is not None:
            log.system = log.model
        elif alone and in_folders:
            log.system, log.folder = log.folder.parts[0], Path(*log.folder.parts[1:])
        elif alone:
            log.system = harness.model_beside(log.path) or log.system


def _check_one_model(path: Path, logs: Sequence[SampleFile]) -> None:
    models: dict[str | None, set[str]] = {}
    for log in logs:
        if log.model is not None:
            models.setdefault(log.system, set()).add(log.model)
    for system, found in models.items():
        if len(found) > 1:
            raise InputError(
                f"{path}: logs of {len(found)} models ({', '.join(sorted(found)[:SHOWN])}) for system {system!r}; give "
                "the folder alone, without a name, to compare them, or a folder a model; --format samples:logs=newest "
                "takes the newest log of each task, whatever its model"
            )


def _name_files(logs: Sequence[SampleFile]) -> None:
    """Name files that have no name: after the model in them, or their folder, or themselves, what tells them apart."""
    models = {log.model for log in logs}
    homes = {log.path.resolve().parent for log in logs}
    told_apart = len({(log.model, log.task, log.moment) for log in logs}) == len(logs)
    by_model = None not in models and len(models) > 1 and told_apart
    by_home = len({home.name for home in homes}) == len(homes) > 1 and all(
        harness.FILE.match(l.path.name) for l in logs
    )
    for log in logs:
        if by_model:
            log.system = log.model
        else:
            log.system = log.path.resolve().parent.name if by_home else stem(log.path)


def _check_names(sources: Sequence[Source], groups: Sequence[Sequence[SampleFile]]) -> None:
    """Refuse two files that happen to have one name; files named alike, or of one folder, are one system."""
    homes: dict[str, tuple[Path, Path]] = {}
    for source, logs in zip(sources, groups, strict=True):
        if source.name is not None or logs[0].model == logs[0].system:
            continue
        system = logs[0].system or ""
        home = source.path.resolve() if source.path.is_dir() else source.path.resolve().parent
        first = homes.setdefault(system, (home, source.path))
        if first[1] != source.path and (first[0] != home or stem(source.path) == system):
            raise InputError(f"{source.path}: system {system!r} is {first[1]} already; name them NAME=FILE")
