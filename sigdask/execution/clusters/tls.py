"""Mutual TLS between scheduler, workers and client: with a certificate of this run, or the user's own files.

The certificate of a run is dask's `Security.temporary`: self-signed, so only processes that were given it can join.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.execution.clusters.description import ClusterDescription, TlsFiles

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
