"""Parsing of cluster files to checked descriptions of clusters.

class = "slurm"          # local, address, ssh, slurm, allocation or kubernetes
workers = 4              # or minimum = 0 and maximum = 40
wait = "10 min"
security = "tls"         # or [security] with files of your own
expose = false           # true lets pages and plain tcp listen beyond loopback
[options]                # what the class itself takes
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args, get_origin

from sigdask.errors import InputError
from sigdask.io.text_files import parse_toml, read_text
from sigdask.text import suggest_name

LOCAL_WORDS = ("auto", "none", "threads", "local", "local+tcp")
"""Words for a cluster on this machine. The last one uses unencrypted TCP between its processes."""

MODULES = {
    "local": "local",
    "address": "existing",
    "ssh": "ssh",
    "slurm": "jobqueue",
    "allocation": "slurm",
    "kubernetes": "kubernetes",
}
"""Kinds of clusters and their modules, which are imported when used."""

KINDS = tuple(MODULES)

KINDS_ON_THIS_MACHINE = ("local",)
"""Kinds whose certificates no other machine needs."""

KEYS = ("class", "workers", "minimum", "maximum", "wait", "security", "expose", "options", "submit")
SECURITY_KEYS = ("ca", "cert", "key")
SUBMIT_KEYS = ("allocation", "walltime", "nodes", "log", "restarts", "directives", "prologue")

OPTION_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(("scheduler_options", "worker_options", "connect"), dict),
    **dict.fromkeys(
        ("worker_extra_args", "worker_args", "srun", "job_extra_directives", "job_script_prologue"), list[str]
    ),
}
"""Types of the options of known cluster classes that sigdask itself reads."""

UNIT_SECONDS = {"s": 1, "sec": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "minute": 60, "minutes": 60,
         "h": 3600, "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Transport:
    """How the parts of a cluster communicate: by mutual TLS, or by plain tcp on request.

    Attributes
    ----------
    plain : bool
        Whether plain tcp was requested by name.
    ca, cert, key : Path, optional
        The user's own files, for every role. Without them a certificate is made for this run.
    """

    plain: bool = False
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """Contents of a cluster file: the kind of cluster to start or to reach, its size and its options.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    workers : int, optional
        Fixed number of workers (for queues: jobs).
    minimum, maximum : int, optional
        Adaptive size instead.
    wait : float
        Seconds to wait for the first worker.
    transport : Transport
        TLS or plain.
    expose : bool
        Whether parts may listen beyond loopback without TLS.
    options : mapping
        Arguments of the class.
    submit : mapping
        Further options of `sigdask submit`.
    source : str
        File or table, for errors.
    """

    kind: str
    workers: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    wait: float = 600.0
    transport: Transport = field(default_factory=Transport)
    expose: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    submit: Mapping[str, Any] = field(default_factory=dict)
    source: str = "cluster"

    @property
    def is_adaptive(self) -> bool:
        """Whether the number of workers changes with the amount of work."""
        return self.maximum is not None

    @property
    def max_workers(self) -> int | None:
        """Largest number of workers that the cluster may have, or None if it is not given."""
        return self.maximum if self.is_adaptive else self.workers

    def with_workers(self, workers: int | None) -> ClusterDescription:
        """Return the description with a fixed number of workers; unchanged if `workers` is None."""
        return self if workers is None else replace(self, workers=workers, minimum=None, maximum=None)

    def build_error(self, message: str) -> InputError:
        """Return an error that names the file or table of the description."""
        return InputError(f"{self.source}: {message}")


def read(path: Path) -> ClusterDescription:
    """Read a cluster file, and return its description.

    Raises
    ------
    InputError
        The file is missing, is not TOML, or contains an error.
    """
    try:
        table = parse_toml(read_text(path, "a cluster file (TOML)"), path)
    except InputError as error:
        raise InputError(f"cluster file {error}") from None
    return parse_description(table, source=str(path), folder=path.parent)


def parse_description(table: Mapping[str, Any], *, source: str, folder: Path = Path()) -> ClusterDescription:
    """Check the table of a cluster file or plan, and return its description.

    Parameters
    ----------
    table : mapping
        The parsed TOML.
    source : str
        File or table, for errors.
    folder : Path
        Folder of relative paths of certificates.

    Examples
    --------
    >>> parse_description({"class": "slurm", "workers": 4, "wait": "2 min"}, source="slurm.toml").wait
    120.0
    """
    check_keys(table, KEYS, source)
    kind = _get_typed(table, "class", str, source)
    if kind is None:
        raise InputError(f"{source}: key class is missing; it names one of {', '.join(KINDS)}")
    if kind not in KINDS:
        hint = suggest_name(kind, KINDS, f"; known classes: {', '.join(KINDS)}")
        raise InputError(f"{source}: class = {kind!r}: not known{hint}")
    description = ClusterDescription(
        kind=kind,
        workers=_get_count(table, "workers", source, 1),
        minimum=_get_count(table, "minimum", source, 0),
        maximum=_get_count(table, "maximum", source, 1),
        wait=_parse_seconds(table.get("wait", 600.0), "wait", source),
        transport=_parse_transport(table.get("security", "tls"), source, folder),
        expose=bool(_get_typed(table, "expose", bool, source)),
        options=_check_options(kind, _get_typed(table, "options", dict, source) or {}, source, folder),
        submit=_check_submit(_get_typed(table, "submit", dict, source) or {}, f"{source}: [submit]"),
        source=source,
    )
    _check_size(description)
    return description


def as_allocation(description: ClusterDescription) -> ClusterDescription:
    """Return a Slurm cluster's description as one allocation, for a driver that runs inside a Slurm job.

    Raises
    ------
    InputError
        The description is not of a Slurm cluster.
    """
    if description.kind == "allocation":
        return description
    if description.kind != "slurm":
        raise description.build_error(f"class {description.kind}: only class slurm can run a whole cluster in one job")
    job_options = description.options
    options = {
        "threads": job_options.get("cores"),
        "host": job_options.get("scheduler_options", {}).get("host"),
        "worker_args": job_options.get("worker_extra_args"),
    }
    set_options = {key: value for key, value in options.items() if value is not None}
    workers = description.max_workers or 1
    return replace(description, kind="allocation", options=set_options, workers=workers, minimum=None, maximum=None)


def check_keys(table: Mapping[str, Any], allowed: tuple[str, ...], source: str) -> None:
    """Raise if a table has an unknown key; the error names the nearest known one."""
    for key in table:
        if key not in allowed:
            hint = suggest_name(key, allowed, f"; known keys: {', '.join(allowed)}")
            aside = " Arguments of the class itself belong in [options]" if allowed is KEYS else ""
            aside = aside if not aside or hint.endswith("?") else f".{aside}"
            raise InputError(f"{source}: unknown key {key!r}{hint}{aside}")


def parse_duration(text: str) -> float | None:
    """Return the seconds of a duration ("90 s", "10 min", "1-02:03:04", "01:30:00"); None if it is none.

    Examples
    --------
    >>> parse_duration("10 min"), parse_duration("01:30:00"), parse_duration("1-00:00:00"), parse_duration("soon")
    (600.0, 5400.0, 86400.0, None)
    """
    clock = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d+)(?::(\d+))?", text.strip())
    if clock:
        days, first, second, third = (int(part) if part else None for part in clock.groups())
        hours, minutes, seconds = (
            (first, second, third) if third is not None or days is not None else (0, first, second)
        )
        return float((days or 0) * 86400 + (hours or 0) * 3600 + (minutes or 0) * 60 + (seconds or 0))
    quantity = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if quantity is None or quantity[2] not in {"", *UNIT_SECONDS}:
        return None
    return float(quantity[1]) * UNIT_SECONDS.get(quantity[2], 1)


def _check_options(kind: str, options: Mapping[str, Any], source: str, folder: Path) -> Mapping[str, Any]:
    """Return checked options, with paths that do not depend on the working directory."""
    for key, option_type in OPTION_TYPES.items():
        _get_typed(options, key, option_type, f"{source}: [options]")
    for key in ("cores", "processes", "threads", "threads_per_worker"):
        if not (kind == "local" and isinstance(options.get(key), bool)):  # processes = false: threads
            _get_count(options, key, f"{source}: [options]", 1)
    _get_count(options.get("worker_options") or {}, "nthreads", f"{source}: [options] worker_options", 1)
    file = options.get("scheduler_file") if kind == "address" else None
    return {**options, "scheduler_file": str(folder / Path(file).expanduser())} if isinstance(file, str) else options


def _check_submit(table: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    check_keys(table, SUBMIT_KEYS, source)
    for key in ("allocation", "log"):
        _get_typed(table, key, str, source)
    for key in ("directives", "prologue"):
        _get_typed(table, key, list[str], source)
    for key, minimum in (("restarts", 0), ("nodes", 1)):
        _get_count(table, key, source, minimum)
    return table


def _check_size(description: ClusterDescription) -> None:
    if description.minimum is not None and description.maximum is None:
        raise description.build_error("minimum without maximum: give both for an adaptive size")
    if description.is_adaptive and description.workers is not None:
        raise description.build_error(
            "workers (fixed size) and maximum (adaptive size) exclude each other; give one of them"
        )
    if description.maximum is not None and (description.minimum or 0) > description.maximum:
        raise description.build_error(f"minimum = {description.minimum} is more than maximum = {description.maximum}")


def _get_typed(table: Mapping[str, Any], key: str, kind: Any, source: str) -> Any:
    value = table.get(key)
    base_type = get_origin(kind) or kind
    if value is not None and (not isinstance(value, base_type) or (base_type is int and isinstance(value, bool))):
        word = {
            "str": "a string", "int": "a whole number", "dict": "a table", "bool": "true or false",
            "list": "a list of strings",
        }  # fmt: skip
        raise InputError(f"{source}: {key} = {value!r}: must be {word[base_type.__name__]}")
    if value is not None and get_args(kind) and not all(isinstance(entry, get_args(kind)) for entry in value):
        raise InputError(f"{source}: {key} = {value!r}: must be a list of strings")
    return value


def _get_count(table: Mapping[str, Any], key: str, source: str, minimum: int) -> int | None:
    value: int | None = _get_typed(table, key, int, source)
    if value is not None and not minimum <= value <= 100_000:
        raise InputError(f"{source}: {key} = {value}: must be from {minimum} to 100,000")
    return value


def _parse_seconds(value: Any, key: str, source: str) -> float:
    seconds = parse_duration(value) if isinstance(value, str) else value
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < 1e8:
        raise InputError(
            f'{source}: {key} = {value!r}: must be a duration, such as 600 (seconds), "10 min" or "01:30:00"'
        )
    return float(seconds)


def _parse_transport(value: Any, source: str, folder: Path) -> Transport:
    if value in ("tls", "tcp"):
        return Transport(plain=value == "tcp")
    if not isinstance(value, dict):
        raise InputError(f'{source}: security = {value!r}: must be "tls", "tcp" or a table')
    section = f"{source}: [security]"
    check_keys(value, SECURITY_KEYS, section)
    paths = {key: _get_typed(value, key, str, section) for key in SECURITY_KEYS}
    files = {key: folder / Path(path).expanduser() for key, path in paths.items() if path is not None}
    if files.keys() != {*SECURITY_KEYS}:
        raise InputError(f"{section}: ca, cert and key belong together; given: {', '.join(files) or 'none'}")
    return Transport(ca=files["ca"], cert=files["cert"], key=files["key"])


ClusterSpec = str | ClusterDescription
"""A cluster as users specify it: none, threads, local, an address or a file, or what a file describes."""
