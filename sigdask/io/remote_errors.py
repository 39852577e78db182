"""Errors of URLs in plain words, without the libraries' messages, which may hold credentials."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from errno import ENOSPC

from sigdask.errors import InputError, build_extra_error

EXTRAS = {
    "s3": ("s3fs", "s3"), "s3a": ("s3fs", "s3"),
    "gs": ("gcsfs", "gcs"), "gcs": ("gcsfs", "gcs"),
    "abfs": ("adlfs", "azure"), "abfss": ("adlfs", "azure"), "az": ("adlfs", "azure"),
    "http": ("aiohttp", "http"), "https": ("aiohttp", "http"),
    "hdfs": ("pyarrow", "hdfs"), "sftp": ("paramiko", "sftp"), "ssh": ("paramiko", "sftp"),
}  # fmt: skip
"""The package that URLs of a kind need, and the extra that brings it."""

OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Kinds of URLs that name no user."""

DENIED_CODES = frozenset(
    {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}
)
"""What S3 calls its refusals."""

CONNECTION_ERRORS = (
    ConnectionError,
    EOFError,
    "ClientConnector",
    "ConnectionError",
    "Disconnected",
    "Payload",
    "gaierror",
)
"""Errors of a server that is not there, or breaks off, and parts of their names."""

RETRYING_LIBRARIES = frozenset({"botocore", "aiobotocore", "google", "azure"})
"""Libraries that have tried often enough by themselves."""

CREDENTIALS_HINT = "credentials are taken from the environment and from fsspec's configuration"


class MissingError(InputError):
    """Error for a URL that has neither a file nor a folder."""


def build_read_error(error: BaseException, url: str) -> InputError:
    """Return the error to raise when a URL could not be read.

    Parameters
    ----------
    error : Exception
        Of fsspec, or of a library beneath it.
    url : str
        The URL, as it may be written.
    """
    chain = list(_iter_causes(error))
    status, code = _find_status(chain), _find_code(chain)
    denied = status in {401, 403, 407} or code in DENIED_CODES or _has_kind(chain, PermissionError, "NoCredentials")
    slow = _has_kind(chain, TimeoutError, "Timeout")
    full = isinstance(error, OSError) and error.errno == ENOSPC
    reasons = [
        (code == "NoSuchBucket", "no such bucket"),
        (denied, f"access was denied; {CREDENTIALS_HINT}"),
        (status in {404, 410}, "no such file"),
        (status is not None, f"the server answers with error {status}"),
        (slow, "the server does not answer in time; try again later"),
        (
            _has_kind(chain, *CONNECTION_ERRORS),
            "the server cannot be reached, or broke off; check the address, or try again later",
        ),
        (_has_kind(chain, IsADirectoryError), "is a directory, expected a file"),
        (_has_kind(chain, FileNotFoundError), "no such file"),
        (full, f"no room for a copy in {tempfile.gettempdir()}; TMPDIR names another folder"),
        (True, f"cannot be read ({_format_error(error)})"),
    ]
    words = next(text for applies, text in reasons if applies)
    return (MissingError if words.startswith("no such") else InputError)(f"{url}: {words}")


def build_open_error(error: BaseException, scheme: str, url: str) -> InputError:
    """Return the error to raise when URLs of a scheme cannot be opened at all."""
    if isinstance(error, ImportError) and scheme in EXTRAS:
        package, extra = EXTRAS[scheme]
        return build_extra_error(package, extra, f"{url}: reading {scheme}:// URLs")
    if isinstance(error, ImportError):
        return InputError(f"{url}: fsspec lacks a package for {scheme}:// URLs; its documentation names it")
    if isinstance(error, ValueError) and "rotocol" in str(error):
        return InputError(f"{url}: fsspec knows no {scheme}:// URLs; s3, gs, abfs, hdfs, http and others can be read")
    return InputError(f"{url}: {scheme}:// URLs cannot be opened here ({type(error).__name__}); {CREDENTIALS_HINT}")


def can_retry(error: BaseException) -> bool:
    """Return whether a failed request may succeed if repeated; not after a refusal or a library's own retries."""
    chain = list(_iter_causes(error))
    status = _find_status(chain)
    if status is not None:
        return status >= 500 or status == 429
    if any(type(cause).__module__.partition(".")[0] in RETRYING_LIBRARIES for cause in chain):
        return False
    return _has_kind(chain, *CONNECTION_ERRORS) or not _has_kind(
        chain, FileNotFoundError, PermissionError, IsADirectoryError, TimeoutError
    )


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors that caused it, up to ten."""
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def _has_kind(chain: list[BaseException], *kinds: type[BaseException] | str) -> bool:
    """Return whether any of some errors has one of the given types, or a type whose name contains a given text."""
    return any(
        kind in type(cause).__name__ if isinstance(kind, str) else isinstance(cause, kind)
        for cause in chain
        for kind in kinds
    )


def _format_error(error: BaseException) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__


def _find_status(chain: list[BaseException]) -> int | None:
    """Return the HTTP status with which the server answered, or None."""
    for cause in chain:
        names = ("status", "status_code", "code") if type(cause).__name__ == "HttpError" else ("status", "status_code")
        for name in names:
            if isinstance(status := getattr(cause, name, None), int) and status >= 400:
                return status
        answer = getattr(cause, "response", None)
        metadata = answer.get("ResponseMetadata", {}) if isinstance(answer, dict) else {}
        if isinstance(status := metadata.get("HTTPStatusCode"), int) and status >= 400:
            return status
    return None


def _find_code(chain: list[BaseException]) -> str | None:
    """Return the error code with which S3 answered, or None."""
    for cause in chain:
        answer = getattr(cause, "response", None)
        if isinstance(answer, dict) and isinstance(code := answer.get("Error", {}).get("Code"), str):
            return code
    return None
