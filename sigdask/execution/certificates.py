"""A certificate authority and certificates for mutual TLS between scheduler, workers and clients.

The authority's key is never written, so only processes that were given these files can join. Keys are readable only by
their owner. Certificates are valid for days, and from an hour ago, since clocks differ. Keys and signatures are made by
the `cryptography` package.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.execution.clusters.description import KINDS_ON_THIS_MACHINE, ClusterDescription
from sigdask.io.folders import make_private_folder

ROLES = ("scheduler", "worker", "client")
CLOCK_SKEW = timedelta(hours=1)
"""Tolerated clock difference between hosts."""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Paths of a cluster's certificates and keys.

    Attributes
    ----------
    ca : Path
        The authority's certificate.
    certs, keys : dict of str to Path
        Certificates and keys by role.
    """

    ca: Path
    certs: dict[str, Path]
    keys: dict[str, Path]

    @staticmethod
    def from_folder(folder: Path) -> CertificateFiles:
        """Return the paths of the files that `create_certificates` writes to a folder."""
        return CertificateFiles(
            folder / "ca.pem",
            {role: folder / f"{role}.pem" for role in ROLES},
            {role: folder / f"{role}-key.pem" for role in ROLES},
        )

    def __iter__(self) -> Iterator[Path]:
        yield from dict.fromkeys([self.ca, *self.certs.values(), *self.keys.values()])

    def to_security(self) -> Any:
        """Return dask's `Security` object with these files."""
        from distributed.security import Security

        options = {f"tls_{role}_cert": str(path) for role, path in self.certs.items()}
        options |= {f"tls_{role}_key": str(path) for role, path in self.keys.items()}
        return Security(require_encryption=True, tls_ca_file=str(self.ca), **options)

    def to_config(self) -> dict[str, Any]:
        """Return dask's settings with the paths of these files; they contain no keys and may be passed on."""
        roles = {
            f"distributed.comm.tls.{role}": {"cert": str(self.certs[role]), "key": str(self.keys[role])}
            for role in ROLES
        }  # fmt: skip
        return {"distributed.comm.require-encryption": True, "distributed.comm.tls.ca-file": str(self.ca), **roles}

    def to_arguments(self, role: str) -> list[str]:
        """Return the arguments of dask's commands that name the files of a role."""
        files = {"ca-file": self.ca, "cert": self.certs[role], "key": self.keys[role]}
        return [word for name, path in files.items() for word in (f"--tls-{name}", str(path))]


@contextmanager
def open_certificates(description: ClusterDescription) -> Iterator[CertificateFiles | None]:
    """Yield the certificates for a cluster: the user's own, new ones, or None if its description requests plain tcp."""
    transport = description.transport
    if transport.plain:
        yield None
    elif transport.ca is not None:
        assert transport.cert is not None
        assert transport.key is not None
        certs, keys = dict.fromkeys(ROLES, transport.cert), dict.fromkeys(ROLES, transport.key)
        yield check_files(CertificateFiles(transport.ca, certs, keys))
    elif transport.folder is not None:
        yield check_files(CertificateFiles.from_folder(transport.folder))
    else:
        with ExitStack() as stack:
            yield create_certificates(_make_run_folder(stack, description), days=transport.days)


def _make_run_folder(stack: ExitStack, description: ClusterDescription) -> Path:
    """Return a new folder for certificates: temporary for a local cluster, else in the home that hosts share."""
    root = None if description.kind in KINDS_ON_THIS_MACHINE else Path.home() / ".sigdask" / "tls"
    try:
        if root is None:
            return stack.enter_context(make_private_folder("sigdask-tls-"))
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return stack.enter_context(make_private_folder("run-", root))
    except OSError as error:
        raise description.build_error(
            f"certificates cannot be written to {root or 'a temporary folder'} ({error.strerror}); "
            "name your own in [security]"
        ) from None


def create_certificates(folder: Path, *, days: float = 14.0) -> CertificateFiles:
    """Create a certificate authority, and a certificate and key for scheduler, worker and client.

    Parameters
    ----------
    folder : Path
        Created if it does not exist. It must not contain certificates.
    days : float
        Number of days for which they are valid.

    Raises
    ------
    InputError
        The folder already contains certificates, or cannot be written.
    """
    try:
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise InputError(
            "TLS in a cluster needs the package cryptography, which is missing or broken: pip install "
            "--force-reinstall cryptography"
        ) from None
    files = CertificateFiles.from_folder(folder)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    end = datetime.now(UTC) + timedelta(days=days)
    authority = _sign_certificate("sigdask authority", authority_key, None, authority_key, end)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(path.exists() for path in files):
            raise InputError(f"{folder}: already has certificates; give another folder, or remove them first")
        _write_private(files.ca, _encode_pem(authority))
        for role in ROLES:
            key = ec.generate_private_key(ec.SECP256R1())
            _write_private(files.keys[role], _encode_pem(key))
            _write_private(
                files.certs[role], _encode_pem(_sign_certificate(f"sigdask {role}", key, authority, authority_key, end))
            )
    except OSError as error:
        raise InputError(
            f"{folder}: certificates cannot be written ({error.strerror}); name a new folder or a writable one"
        ) from None
    return files


def check_files(files: CertificateFiles, roles: tuple[str, ...] = ("client",)) -> CertificateFiles:
    """Return certificate files; raise unless those of `roles` are readable, private and still valid."""
    for path in (files.ca, *(files.certs[r] for r in roles), *(files.keys[r] for r in roles)):
        if not path.is_file():
            raise InputError(f"certificate file {path}: no such file; `sigdask certificates FOLDER` makes them")
        if not os.access(path, os.R_OK):
            raise InputError(f"certificate file {path}: cannot be read by this user")
    for role in roles:
        mode = stat.S_IMODE(files.keys[role].stat().st_mode)
        if mode & 0o007:
            raise InputError(
                f"key {files.keys[role]}: other users can read it (mode {mode:o}); run chmod 600, or make new "
                "certificates"
            )
        _check_dates(files.certs[role])
    return files


def _check_dates(path: Path) -> None:
    try:
        from cryptography import x509
    except ImportError:  # the files are the user's own, so ssl checks them
        return
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError:
        raise InputError(f"certificate file {path}: not a PEM certificate") from None
    if certificate.not_valid_after_utc < datetime.now(UTC):
        raise InputError(
            f"certificate {path}: expired on {certificate.not_valid_after_utc:%Y-%m-%d}; make new certificates "
            "with `sigdask certificates FOLDER`"
        )


def _sign_certificate(name: str, key: Any, authority: Any, authority_key: Any, end: datetime) -> Any:
    """Return a certificate for `key` signed by the authority; self-signed if `authority` is None."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    is_authority = authority is None
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if not name.endswith("client"):
        uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if is_authority else authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - CLOCK_SKEW)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True)
        .add_extension(_build_key_usage(is_authority=is_authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
    )
    if not is_authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("sigdask")]), critical=False)
    return builder.sign(authority_key, hashes.SHA256())


def _build_key_usage(*, is_authority: bool) -> Any:
    from cryptography import x509

    names = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "encipher_only", "decipher_only")  # fmt: skip
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        **dict.fromkeys(names, False),
    )


def _encode_pem(credential: Any) -> bytes:
    from cryptography.hazmat.primitives import serialization as form

    if hasattr(credential, "private_bytes"):
        return bytes(credential.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))
    return bytes(credential.public_bytes(form.Encoding.PEM))


def _write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, from the moment it is created."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
