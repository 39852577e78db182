"""Cluster files, as checked descriptions of clusters.

class = "slurm"          # local, address, ssh, slurm or kubernetes
workers = 4              # or minimum = 0 and maximum = 40
wait = "10 minutes"
security = "tls"         # or "tcp"
[certificates]           # instead of those of this run
[options]                # what dask's own class takes

Mutual TLS between scheduler, workers and client: with a certificate of this run, or the user's own files.

The certificate of a run is dask's `Security.temporary`: self-signed, so only processes that were given it can join.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from dask.utils import parse_timedelta
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from sigdask.errors import InputError
from sigdask.io import parse_toml, read_text
from sigdask.text import suggest_name

Count = Annotated[StrictInt, Field(ge=1, le=100_000)]


def _parse_seconds(value: Any) -> Any:
    try:
        return parse_timedelta(value) if isinstance(value, str) else value
    except KeyError as error:
        raise ValueError(error.args[0].partition(". Valid")[0]) from None


def _resolve_path(path: Path, info: ValidationInfo) -> Path:
    return Path(info.context or ".") / path.expanduser()


FilePath = Annotated[Path, AfterValidator(_resolve_path)]


class _Table(BaseModel):
    """A table of a cluster file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TlsFiles(_Table):
    """Paths of the authority's certificate, and of the certificate and key of all parts of a cluster."""

    ca: FilePath
    cert: FilePath
    key: FilePath


class ClassOptions(_Table):
    """Arguments of dask's class. Those that sigdask itself reads are checked, and dask checks all."""

    model_config = ConfigDict(extra="allow", frozen=True)

    cores: Count = 1
    threads_per_worker: Count = 1
    memory: StrictStr = "0"
    walltime: StrictStr | StrictInt = 0
    address: StrictStr = ""
    hosts: list[StrictStr] = []
    connect_options: dict[str, Any] = {}
    scheduler_options: dict[str, Any] = {}
    worker_options: dict[str, Any] = {}
    worker_extra_args: list[StrictStr] = []
    job_script_prologue: list[StrictStr] = []
    job_extra_directives: list[StrictStr] = []

    def to_arguments(self) -> dict[str, Any]:
        """Return the options that the file names, as keyword arguments."""
        return self.model_dump(exclude_unset=True)


class SubmitOptions(_Table):
    """Options of `sigdask submit`."""

    allocation: Literal["one", "jobs"] = "one"
    walltime: StrictStr | StrictInt | None = None
    directives: list[StrictStr] = []


class ClusterDescription(_Table):
    """Contents of a cluster file: the kind of cluster to start or to reach, its size and its options.

    Attributes
    ----------
    kind : str
        "allocation" is Slurm in the job in which this process runs.
    workers : int, optional
        Fixed number of workers (for Slurm: jobs).
    minimum, maximum : int
        Adaptive size instead.
    wait : float
        Seconds to wait for the first worker, and for others when all are lost.
    security : str
        "tls", or "tcp" without encryption.
    certificates : TlsFiles, optional
        The user's own files.
    options : ClassOptions
        Arguments of the class.
    submit : SubmitOptions
        Options of `sigdask submit`.
    source : str
        File, for errors.
    """

    kind: Literal["local", "address", "ssh", "slurm", "kubernetes", "allocation"] = Field(alias="class")
    workers: Count | None = None
    minimum: Annotated[StrictInt, Field(ge=0)] = 0
    maximum: Count | None = None
    wait: Annotated[float, BeforeValidator(_parse_seconds), Field(gt=0, lt=1e8)] = 600.0
    security: Literal["tls", "tcp"] = "tls"
    certificates: TlsFiles | None = None
    options: ClassOptions = ClassOptions()
    submit: SubmitOptions = SubmitOptions()
    source: str = "cluster"

    @model_validator(mode="after")
    def _check_size(self) -> ClusterDescription:
        if self.maximum is None and "minimum" in self.model_fields_set:
            raise ValueError("minimum without maximum: give both for an adaptive size")
        if self.maximum is not None and self.workers is not None:
            raise ValueError("workers (fixed size) and maximum (adaptive size) exclude each other; give one of them")
        if self.maximum is not None and self.minimum > self.maximum:
            raise ValueError(f"minimum = {self.minimum} is more than maximum = {self.maximum}")
        return self

    @property
    def n_threads(self) -> int:
        """Threads of a worker."""
        per_host: int = self.options.worker_options.get("nthreads", 1)
        return max(self.options.cores, self.options.threads_per_worker, per_host)

    def with_workers(self, workers: int | None) -> ClusterDescription:
        """Return the description with a fixed number of workers; unchanged if `workers` is None."""
        size = {"workers": workers, "minimum": 0, "maximum": None}
        return self if workers is None else self.model_copy(update=size)

    def build_error(self, message: str) -> InputError:
        """Return an error that names the file of the description."""
        return InputError(f"{self.source}: {message}")


KEYS = ("class", *TlsFiles.model_fields, *SubmitOptions.model_fields, *ClusterDescription.model_fields)


def read_description(path: Path) -> ClusterDescription:
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
    """Check the table of a cluster file, and return its description.

    Parameters
    ----------
    table : mapping
        The parsed TOML.
    source : str
        File, for errors.
    folder : Path
        Folder of relative paths of certificates.

    Examples
    --------
    >>> parse_description({"class": "slurm", "workers": 4, "wait": "2 minutes"}, source="slurm.toml").wait
    120.0
    """
    try:
        return ClusterDescription.model_validate({**table, "source": source}, context=folder)
    except ValidationError as error:
        raise InputError(f"{source}: {_describe_mistake(error)}") from None


def _describe_mistake(error: ValidationError) -> str:
    """Return the key and the description of the first of pydantic's errors."""
    mistake = error.errors()[0]
    key = ".".join(map(str, mistake["loc"]))
    if mistake["type"] == "extra_forbidden":
        hint = suggest_name(str(mistake["loc"][-1]), KEYS, "; arguments of the class belong in [options]")
        return f"unknown key {key!r}{hint}"
    if mistake["type"] == "value_error":
        return f"{key}{': ' if key else ''}{mistake['ctx']['error']}"
    return f"{key} = {mistake['input']!r}: {mistake['msg']}" if mistake["type"] != "missing" else f"{key} is missing"


ROLES = ("scheduler", "worker", "client")


def build_security(description: ClusterDescription) -> Any:
    """Return dask's `Security` object for a cluster, or None for plain tcp."""
    from distributed.security import Security

    if description.security == "tcp":
        return None
    if description.certificates is None:
        return Security.temporary()
    files = check_files(description.certificates)
    return _build_from_files(str(files.ca), str(files.cert), str(files.key))


def write_certificate(security: Any, file: Path) -> Any:
    """Write the certificate of a run and its key to a new private file; return a `Security` object that names it."""
    file.touch(0o600, exist_ok=False)
    file.write_text(security.tls_client_key + security.tls_client_cert, encoding="ascii")
    return _build_from_files(str(file), str(file), str(file))


def _build_from_files(ca: str, cert: str, key: str) -> Any:
    from distributed.security import Security

    files = {"cert": cert, "key": key}
    roles = {f"tls_{role}_{name}": file for role in ROLES for name, file in files.items()}
    return Security(require_encryption=True, tls_ca_file=ca, **roles)


def build_settings(ca: str, cert: str, key: str) -> dict[str, Any]:
    """Return dask's settings for all parts of a cluster, from paths or from the contents themselves."""
    files = {"cert": cert, "key": key}
    roles = {f"distributed.comm.tls.{role}.{name}": file for role in ROLES for name, file in files.items()}
    return {"distributed.comm.require-encryption": True, "distributed.comm.tls.ca-file": ca, **roles}


def check_files(files: TlsFiles) -> TlsFiles:
    """Return certificate files; raise unless they are readable, and the key is private."""
    for path in (files.ca, files.cert, files.key):
        if not os.access(path, os.R_OK):
            raise InputError(f"certificate file {path}: no such file, or not readable by this user")
    mode = stat.S_IMODE(files.key.stat().st_mode)
    if mode & 0o007:
        raise InputError(f"key {files.key}: other users can read it (mode {mode:o})", remedy="run chmod 600")
    return files
