"""FILE.toml, or a plan's `[cluster]` table, to a checked description of a cluster.

class = "slurm"          # local, address, ssh, slurm, pbs, …, allocation, kubernetes or module:Class
workers = 4              # or minimum = 0 and maximum = 40
wait = "10 min"
security = "tls"         # or [security] with files of your own
[options]                # what the class itself takes
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args, get_origin

from sigdask.errors import InputError
from sigdask.io.text_files import text_of, toml_of

QUEUES = {
    "slurm": "SLURM",
    "pbs": "PBS",
    "sge": "SGE",
    "lsf": "LSF",
    "htcondor": "HTCondor",
    "oar": "OAR",
    "moab": "Moab",
}
"""Queueing systems, and how dask-jobqueue writes them."""

HERE = ("auto", "none", "threads", "local", "local+tcp")
"""Words for this machine; the last speaks plain tcp between its processes."""

KINDS = ("local", "address", "ssh", *QUEUES, "allocation", "kubernetes")
KEYS = ("class", "workers", "minimum", "maximum", "wait", "security", "options", "submit")
SECURITY_KEYS = ("folder", "ca", "cert", "key", "days")
SUBMIT_KEYS = ("allocation", "walltime", "nodes", "log", "restarts", "directives", "prologue")

OPTION_TYPES: Mapping[str, Any] = {
    "scheduler_options": dict,
    "worker_options": dict,
    "connect": dict,
    "worker_extra_args": list[str],
    "worker_args": list[str],
    "srun": list[str],
    "job_extra_directives": list[str],
    "job_script_prologue": list[str],
}
"""What the options of the classes known here are, where the program itself looks at them."""

UNITS = {"s": 1, "sec": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "minute": 60, "minutes": 60,
         "h": 3600, "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Transport:
    """How the parts of a cluster speak: mutual TLS, or plain tcp because it was asked for.

    Attributes
    ----------
    plain : bool
        tcp, asked for by name.
    folder : Path, optional
        Of certificates made by `sigdask certificates`; without it they are made for this run.
    ca, cert, key : Path, optional
        The user's own files, for every role.
    days : float
        Lifetime of certificates made for this run.
    """

    plain: bool = False
    folder: Path | None = None
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    days: float = 14.0


@dataclass(frozen=True, slots=True)
class Description:
    """A cluster to start or to reach.

    Attributes
    ----------
    kind : str
        One of `KINDS`, or `module:Class`.
    workers : int, optional
        Fixed number of workers (for queues: jobs).
    minimum, maximum : int, optional
        Adaptive size instead.
    wait : float
        Seconds to wait for the first worker.
    transport : Transport
        TLS or plain.
    options : mapping
        What the class itself takes.
    submit : mapping
        What `sigdask submit` takes beside them.
    where : str
        File or table, for errors.
    """

    kind: str
    workers: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    wait: float = 600.0
    transport: Transport = field(default_factory=Transport)
    options: Mapping[str, Any] = field(default_factory=dict)
    submit: Mapping[str, Any] = field(default_factory=dict)
    where: str = "cluster"

    @property
    def adaptive(self) -> bool:
        """Say whether the size follows the work."""
        return self.maximum is not None

    @property
    def expected(self) -> int | None:
        """Return how many workers there may be."""
        return self.maximum if self.adaptive else self.workers

    def resized(self, workers: int | None) -> Description:
        """Return the same with a fixed number of workers, where one is given."""
        return self if workers is None else replace(self, workers=workers, minimum=None, maximum=None)

    def refuse(self, message: str) -> InputError:
        """Return an error that names where the description stands."""
        return InputError(f"{self.where}: {message}")


def read(path: Path) -> Description:
    """Read a cluster file.

    Raises
    ------
    InputError
        The file is missing, is no TOML, or says something that is not understood.
    """
    try:
        table = toml_of(text_of(path, "a cluster file (TOML)"), path)
    except InputError as error:
        raise InputError(f"cluster file {error}") from None
    return describe(table, where=str(path), folder=path.parent)


def describe(table: Mapping[str, Any], *, where: str, folder: Path = Path()) -> Description:
    """Check a table of a cluster file or a plan.

    Parameters
    ----------
    table : mapping
        As TOML gives it.
    where : str
        File or table, for errors.
    folder : Path
        What relative paths of certificates are relative to.

    Examples
    --------
    >>> describe({"class": "slurm", "workers": 4, "wait": "2 min"}, where="slurm.toml").wait
    120.0
    """
    only(table, KEYS, where)
    kind = _typed(table, "class", str, where)
    if kind is None:
        raise InputError(f"{where}: key class is missing; it names one of {', '.join(KINDS)} or module:Class")
    _check_kind(kind, where)
    found = Description(
        kind=kind,
        workers=_count(table, "workers", where, 1),
        minimum=_count(table, "minimum", where, 0),
        maximum=_count(table, "maximum", where, 1),
        wait=_seconds(table.get("wait", 600.0), "wait", where),
        transport=_transport(table.get("security", "tls"), where, folder),
        options=_options(kind, _typed(table, "options", dict, where) or {}, where, folder),
        submit=_submit(_typed(table, "submit", dict, where) or {}, f"{where}: [submit]"),
        where=where,
    )
    _check_size(found)
    return found


def inside(description: Description) -> Description:
    """Return the same workers as one allocation, for a driver that is itself a Slurm job.

    Raises
    ------
    InputError
        The description is of no Slurm cluster.
    """
    if description.kind == "allocation":
        return description
    if description.kind != "slurm":
        raise description.refuse(f"class {description.kind} is no Slurm: only its jobs can hold a whole cluster")
    given = description.options
    options = {
        "threads": given.get("cores"),
        "host": given.get("scheduler_options", {}).get("host"),
        "worker_args": given.get("worker_extra_args"),
    }
    kept = {key: value for key, value in options.items() if value is not None}
    workers = description.expected or 1
    return replace(description, kind="allocation", options=kept, workers=workers, minimum=None, maximum=None)


def only(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    """Refuse keys that are not known, naming the nearest that is."""
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            if known is KEYS:
                hint += "; what the class itself takes stands in [options]"
            raise InputError(f"{where}: unknown key {key!r}: {hint}")


def seconds_of(text: str) -> float | None:
    """Return the seconds of a duration ("90 s", "10 min", "1-02:03:04", "01:30:00"), or None.

    Examples
    --------
    >>> seconds_of("10 min"), seconds_of("01:30:00"), seconds_of("1-00:00:00"), seconds_of("soon")
    (600.0, 5400.0, 86400.0, None)
    """
    clock = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d+)(?::(\d+))?", text.strip())
    if clock:
        days, first, second, third = (int(part) if part else None for part in clock.groups())
        hours, minutes, rest = (first, second, third) if third is not None or days is not None else (0, first, second)
        return float((days or 0) * 86400 + (hours or 0) * 3600 + (minutes or 0) * 60 + (rest or 0))
    plain = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if plain is None or plain[2] not in {"", *UNITS}:
        return None
    return float(plain[1]) * UNITS.get(plain[2], 1)


def _options(kind: str, options: Mapping[str, Any], where: str, folder: Path) -> Mapping[str, Any]:
    """Return checked options, whose paths no longer depend on where the program is started."""
    if ":" not in kind:  # a class of the user's has options of its own
        for key, wanted in OPTION_TYPES.items():
            _typed(options, key, wanted, f"{where}: [options]")
        for key in ("cores", "processes", "threads", "threads_per_worker"):
            _count(options, key, f"{where}: [options]", 1)
        _count(options.get("worker_options") or {}, "nthreads", f"{where}: [options] worker_options", 1)
    file = options.get("scheduler_file") if kind == "address" else None
    return {**options, "scheduler_file": str(folder / Path(file).expanduser())} if isinstance(file, str) else options


def _submit(table: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    only(table, SUBMIT_KEYS, where)
    for key in ("allocation", "log"):
        _typed(table, key, str, where)
    for key in ("directives", "prologue"):
        _typed(table, key, list[str], where)
    for key, least in (("restarts", 0), ("nodes", 1)):
        _count(table, key, where, least)
    return table


def _check_kind(kind: str, where: str) -> None:
    module, colon, name = kind.partition(":")
    own = colon and all(part.isidentifier() for part in [*module.split("."), *name.split(".")])
    if kind in KINDS or own:
        return
    close = difflib.get_close_matches(kind, KINDS, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(KINDS)} and module:Class"
    raise InputError(f"{where}: class = {kind!r}: {hint}")


def _check_size(found: Description) -> None:
    if found.minimum is not None and found.maximum is None:
        raise found.refuse("minimum without maximum: an adaptive size has both")
    if found.adaptive and found.workers is not None:
        raise found.refuse("workers and maximum exclude each other: a size is fixed or adaptive")
    if found.maximum is not None and (found.minimum or 0) > found.maximum:
        raise found.refuse(f"minimum = {found.minimum} is more than maximum = {found.maximum}")


def _typed(table: Mapping[str, Any], key: str, kind: Any, where: str) -> Any:
    value = table.get(key)
    plain = get_origin(kind) or kind
    if value is not None and (not isinstance(value, plain) or (plain is int and isinstance(value, bool))):
        word = {"str": "a string", "int": "a whole number", "dict": "a table", "list": "a list of strings"}
        raise InputError(f"{where}: {key} = {value!r}: must be {word[plain.__name__]}")
    if value is not None and get_args(kind) and not all(isinstance(entry, get_args(kind)) for entry in value):
        raise InputError(f"{where}: {key} = {value!r}: must be a list of strings")
    return value


def _count(table: Mapping[str, Any], key: str, where: str, least: int) -> int | None:
    value: int | None = _typed(table, key, int, where)
    if value is not None and not least <= value <= 100_000:
        raise InputError(f"{where}: {key} = {value}: must be from {least} to 100,000")
    return value


def _seconds(value: Any, key: str, where: str) -> float:
    seconds = seconds_of(value) if isinstance(value, str) else value
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < 1e8:
        raise InputError(f'{where}: {key} = {value!r}: must be a duration, as 600 (seconds), "10 min" or "01:30:00"')
    return float(seconds)


def _transport(value: Any, where: str, folder: Path) -> Transport:
    if value in ("tls", "tcp"):
        return Transport(plain=value == "tcp")
    if not isinstance(value, dict):
        raise InputError(f'{where}: security = {value!r}: must be "tls", "tcp" or a table')
    place = f"{where}: [security]"
    only(value, SECURITY_KEYS, place)
    paths = {key: _typed(value, key, str, place) for key in SECURITY_KEYS[:4]}
    files = {key: folder / Path(path).expanduser() for key, path in paths.items() if path is not None}
    if files.keys() & {"ca", "cert", "key"} not in (set(), {"ca", "cert", "key"}):
        raise InputError(f"{place}: ca, cert and key belong together; given: {', '.join(files)}")
    if "folder" in files and "ca" in files:
        raise InputError(f"{place}: folder and ca exclude each other")
    days = value.get("days", 14.0)
    if isinstance(days, bool) or not isinstance(days, (int, float)) or not 0 < days <= 398:
        raise InputError(f"{place}: days = {days!r}: must be a number above 0, at most 398")
    return Transport(
        folder=files.get("folder"), ca=files.get("ca"), cert=files.get("cert"), key=files.get("key"), days=float(days)
    )


Named = str | Mapping[str, Any] | Description
"""A cluster as users name it: none, threads, local, an address, a file; or what a file holds."""
