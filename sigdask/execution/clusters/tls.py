"""Certificates for mutual TLS between scheduler, workers and client: of this run, or the user's own files.

Those of a run are dask's `Security.temporary`: one self-signed certificate and its key, so only processes that were
given these files can join. They are written for processes that dask starts elsewhere, readable only by their owner, and
removed after the run.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sigdask.errors import InputError
from sigdask.execution.clusters.description import KINDS_ON_THIS_MACHINE, ClusterDescription

ROLES = ("scheduler", "worker", "client")


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Paths of the authority's certificate, and of the certificate and key of all parts of a cluster."""

    ca: Path
    cert: Path
    key: Path

    @staticmethod
    def from_folder(folder: Path) -> TlsFiles:
        """Return the paths of files with their usual names in a folder."""
        return TlsFiles(folder / "ca.pem", folder / "cert.pem", folder / "key.pem")

    def __iter__(self) -> Iterator[Path]:
        yield from astuple(self)

    def to_security(self) -> Any:
        """Return dask's `Security` object with these files."""
        from distributed.security import Security

        options = {f"tls_{role}_cert": str(self.cert) for role in ROLES}
        options |= {f"tls_{role}_key": str(self.key) for role in ROLES}
        return Security(require_encryption=True, tls_ca_file=str(self.ca), **options)

    def to_config(self) -> dict[str, Any]:
        """Return dask's settings with the paths of these files; they contain no keys and may be passed on."""
        files = {"cert": str(self.cert), "key": str(self.key)}
        roles = {f"distributed.comm.tls.{role}": files for role in ROLES}
        return {"distributed.comm.require-encryption": True, "distributed.comm.tls.ca-file": str(self.ca), **roles}

    def to_arguments(self) -> list[str]:
        """Return the arguments of dask's commands that name the files."""
        files = {"ca-file": self.ca, "cert": self.cert, "key": self.key}
        return [word for name, path in files.items() for word in (f"--tls-{name}", str(path))]


@contextmanager
def open_tls_files(description: ClusterDescription) -> Iterator[TlsFiles | None]:
    """Yield the files for a cluster: the user's own, those of this run, or None for plain tcp."""
    transport = description.transport
    if transport.plain:
        yield None
    elif transport.ca is not None and transport.cert is not None and transport.key is not None:
        yield check_files(TlsFiles(transport.ca, transport.cert, transport.key))
    else:
        with ExitStack() as stack:
            yield _write_temporary(_make_run_folder(stack, description))


def _make_run_folder(stack: ExitStack, description: ClusterDescription) -> Path:
    """Return a new folder for certificates: temporary for a local cluster, else in the home that hosts share."""
    root = None if description.kind in KINDS_ON_THIS_MACHINE else Path.home() / ".sigdask" / "tls"
    try:
        if root is None:
            return Path(stack.enter_context(TemporaryDirectory(prefix="sigdask-tls-")))
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Path(stack.enter_context(TemporaryDirectory(prefix="run-", dir=root)))
    except OSError as error:
        raise description.build_error(
            f"certificates cannot be written to {root or 'a temporary folder'} ({error.strerror}); "
            "name your own in [security]"
        ) from None


def _write_temporary(folder: Path) -> TlsFiles:
    """Write a new certificate and its key to a private folder."""
    from distributed.security import Security

    try:
        security = Security.temporary()
    except ImportError:
        raise InputError(
            "TLS in a cluster needs the package cryptography, which is missing or broken: pip install "
            "--force-reinstall cryptography"
        ) from None
    files = TlsFiles.from_folder(folder)
    contents = (security.tls_ca_file, security.tls_client_cert, security.tls_client_key)
    for path, content in zip(files, contents, strict=True):
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(content)
    return files


def check_files(files: TlsFiles) -> TlsFiles:
    """Return certificate files; raise unless they are readable, and the key is private."""
    for path in files:
        if not path.is_file():
            raise InputError(f"certificate file {path}: no such file; [security] of the cluster file names it")
        if not os.access(path, os.R_OK):
            raise InputError(f"certificate file {path}: cannot be read by this user")
    mode = stat.S_IMODE(files.key.stat().st_mode)
    if mode & 0o007:
        raise InputError(f"key {files.key}: other users can read it (mode {mode:o})", remedy="run chmod 600")
    return files
