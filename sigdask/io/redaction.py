"""Redaction of passwords, tokens and signatures in URLs."""

from __future__ import annotations

import re

HIDDEN = "***"

VISIBLE_PARAMETERS = frozenset({"versionid", "generation", "ref", "path", "file", "format", "download", "raw", "dl"})
"""Names of a URL's query whose values are written; any other may be a signature or a token."""

ACCOUNT_SCHEMES = frozenset({"abfs", "abfss", "wasb", "wasbs"})
"""Kinds of URLs that are written `container@account`, which is no secret."""

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,40}"
_URL = re.compile(rf"{_SCHEME}(?:::{_SCHEME})*://")
_WRITTEN = re.compile(rf"(?P<scheme>{_SCHEME})://(?P<rest>(?:(?!::{_SCHEME}://)[^\"'<>\s])*)")
_USER = re.compile(r"(?=[^@]*@)(?P<user>[^/?#]*|[^/@]*:(?!\d+(?:/|$))[^@]*)@")
_QUERY = re.compile(r"\?(?=[\w.%~-]+=)")


def is_url(text: str) -> bool:
    """Return whether a text is a URL rather than a path.

    Examples
    --------
    >>> is_url("s3://bucket/a.tsv"), is_url("simplecache::s3://bucket/a.tsv"), is_url("a=s3://b"), is_url("C:/a.tsv")
    (True, True, False, False)
    """
    return _URL.match(text) is not None


def is_web(scheme: str) -> bool:
    """Return whether URLs of a scheme are web addresses, in which `?` always begins a query."""
    return scheme.lower() in {"http", "https"}


def split_query(url: str) -> tuple[str, str]:
    """Return a URL without its query and fragment, and the text of these, which is "" if it has none.

    Where a kind of URL has no queries `?` stands for a character, unless a name and `=` follow it.

    Examples
    --------
    >>> split_query("https://host/a.tsv?token=1"), split_query("s3://bucket/run?.tsv")
    (('https://host/a.tsv', '?token=1'), ('s3://bucket/run?.tsv', ''))
    """
    web = is_web(url.partition("://")[0].rpartition("::")[2])
    mark = re.search(r"[?#]", url) if web else _QUERY.search(url)
    return (url, "") if mark is None else (url[: mark.start()], url[mark.start() :])


def has_password(url: str) -> bool:
    """Return whether a URL names a user and a password.

    Examples
    --------
    >>> has_password("s3://key:word@bucket/a.tsv"), has_password("s3://bucket/a:b@c.tsv")
    (True, False)
    """
    user = _USER.match(split_query(url)[0].partition("://")[2])
    return user is not None and ":" in user["user"]


def redact(text: str) -> str:
    """Return a text with every user, password, signature and token in its URLs hidden.

    Examples
    --------
    >>> redact("https://ann:pw@host/a.tsv?X-Amz-Signature=90ab&versionId=3#t=1")
    'https://***@host/a.tsv?X-Amz-Signature=***&versionId=3#***'
    >>> redact("zip://a.tsv::https://host/a.zip?90ab"), redact("abfs://runs@lab.dfs.core.windows.net/a.tsv")
    ('zip://a.tsv::https://host/a.zip?***', 'abfs://runs@lab.dfs.core.windows.net/a.tsv')
    """
    return _WRITTEN.sub(_redact_url, text) if "://" in text else text


def _redact_url(match: re.Match[str]) -> str:
    scheme = match["scheme"].lower()
    rest, query = split_query(match[0])
    rest = rest[len(scheme) + 3 :]
    user = _USER.match(rest)
    if user is not None and not (scheme in ACCOUNT_SCHEMES and ":" not in user["user"]):
        rest = f"{HIDDEN}@{rest[user.end() :]}"
    query, hash_, fragment = query.partition("#")
    parameters = "&".join(map(_redact_parameter, re.split("[&;]", query[1:]))) if query else ""
    return f"{match['scheme']}://{rest}{query[:1]}{parameters}{hash_}{HIDDEN if fragment else ''}"


def _redact_parameter(text: str) -> str:
    name, equals, _ = text.partition("=")
    if not equals:
        return HIDDEN if text else ""
    return text if name.lower() in VISIBLE_PARAMETERS else f"{name}={HIDDEN}"
