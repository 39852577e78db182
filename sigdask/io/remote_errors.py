"""Why a URL cannot be read, in words: never those of the libraries, which may write credentials."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from errno import ENOSPC

from sigdask.errors import InputError, missing_extra

EXTRAS = {
    "s3": ("s3fs", "s3"), "s3a": ("s3fs", "s3"),
    "gs": ("gcsfs", "gcs"), "gcs": ("gcsfs", "gcs"),
    "abfs": ("adlfs", "azure"), "abfss": ("adlfs", "azure"), "az": ("adlfs", "azure"),
    "http": ("aiohttp", "http"), "https": ("aiohttp", "http"),
    "hdfs": ("pyarrow", "hdfs"), "sftp": ("paramiko", "sftp"), "ssh": ("paramiko", "sftp"),
}  # fmt: skip
"""The package that URLs of a kind need, and the extra that brings it."""

STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Kinds of URLs that name no user."""

DENIED = frozenset({"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"})
"""What S3 calls its refusals."""

BROKEN = (ConnectionError, EOFError, "ClientConnector", "ConnectionError", "Disconnected", "Payload", "gaierror")
"""Errors of a server that is not there, or breaks off, and parts of their names."""

PERSISTENT = frozenset({"botocore", "aiobotocore", "google", "azure"})
"""Libraries that have tried often enough by themselves."""

OF_CREDENTIALS = "credentials are taken from the environment and from fsspec's configuration"


class MissingError(InputError):
    """There is nothing at a URL."""


def refusal(error: BaseException, shown: str) -> InputError:
    """Return what to tell of an error.

    Parameters
    ----------
    error : Exception
        Of fsspec, or of a library beneath it.
    shown : str
        The URL, as it may be written.
    """
    chain = list(_chain(error))
    status, code = _status(chain), _code(chain)
    denied = status in {401, 403, 407} or code in DENIED or _is(chain, PermissionError, "NoCredentials")
    slow = _is(chain, TimeoutError, "Timeout")
    full = isinstance(error, OSError) and error.errno == ENOSPC
    reasons = [
        (code == "NoSuchBucket", "no such bucket"),
        (denied, f"access was denied; {OF_CREDENTIALS}"),
        (status in {404, 410}, "no such file"),
        (status is not None, f"the server answers with error {status}"),
        (slow, "the server does not answer in time; try again later"),
        (_is(chain, *BROKEN), "the server cannot be reached, or broke off; check the address, or try again later"),
        (_is(chain, IsADirectoryError), "is a directory, expected a file"),
        (_is(chain, FileNotFoundError), "no such file"),
        (full, f"no room for a copy in {tempfile.gettempdir()}; TMPDIR names another folder"),
        (True, f"cannot be read ({_named(error)})"),
    ]
    words = next(text for holds, text in reasons if holds)
    return (MissingError if words.startswith("no such") else InputError)(f"{shown}: {words}")


def unopened(error: BaseException, scheme: str, shown: str) -> InputError:
    """Return what to tell where a kind of URL cannot be opened at all."""
    if isinstance(error, ImportError) and scheme in EXTRAS:
        package, extra = EXTRAS[scheme]
        return missing_extra(package, extra, f"{shown}: reading {scheme}:// URLs")
    if isinstance(error, ImportError):
        return InputError(f"{shown}: fsspec lacks a package for {scheme}:// URLs; its documentation names it")
    if isinstance(error, ValueError) and "rotocol" in str(error):
        return InputError(f"{shown}: fsspec knows no {scheme}:// URLs; s3, gs, abfs, hdfs, http and others can be read")
    return InputError(f"{shown}: {scheme}:// URLs cannot be opened here ({type(error).__name__}); {OF_CREDENTIALS}")


def may_pass(error: BaseException) -> bool:
    """Say whether trying again may help: not where something answered no, or a library has tried often enough."""
    chain = list(_chain(error))
    status = _status(chain)
    if status is not None:
        return status >= 500 or status == 429
    if any(type(one).__module__.partition(".")[0] in PERSISTENT for one in chain):
        return False
    return _is(chain, *BROKEN) or not _is(chain, FileNotFoundError, PermissionError, IsADirectoryError, TimeoutError)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came from: libraries hide a refusal behind a missing file."""
    seen: BaseException | None = error
    for _ in range(10):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__ or seen.__context__


def _is(chain: list[BaseException], *kinds: type[BaseException] | str) -> bool:
    """Say whether an error is of one of the kinds, or is called so in part."""
    return any(
        kind in type(one).__name__ if isinstance(kind, str) else isinstance(one, kind)
        for one in chain
        for kind in kinds
    )


def _named(error: BaseException) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__


def _status(chain: list[BaseException]) -> int | None:
    """Return the status that a server answered with."""
    for one in chain:
        names = ("status", "status_code", "code") if type(one).__name__ == "HttpError" else ("status", "status_code")
        for name in names:
            if isinstance(found := getattr(one, name, None), int) and found >= 400:
                return found
        answer = getattr(one, "response", None)
        told = answer.get("ResponseMetadata", {}) if isinstance(answer, dict) else {}
        if isinstance(found := told.get("HTTPStatusCode"), int) and found >= 400:
            return found
    return None


def _code(chain: list[BaseException]) -> str | None:
    """Return what S3 calls its error."""
    for one in chain:
        answer = getattr(one, "response", None)
        if isinstance(answer, dict) and isinstance(found := answer.get("Error", {}).get("Code"), str):
            return found
    return None
