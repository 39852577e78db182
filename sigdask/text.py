"""Formatting of values as text: JSON, durations, counts, and lists of names that may be long."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, quote_plus, unquote

import numpy as np
import orjson

PLAIN_TYPES = (str, int, bool, type(None))


def to_plain(value: Any, *, exact: bool = False) -> Any:
    """Convert a value to JSON types: dataclasses to objects, tuples to lists, NaN and infinity to null.

    Parameters
    ----------
    value : object
        Dataclasses, mappings, lists, tuples and single values.
    exact : bool
        Keep NaN and infinity, for what is read back as it was and by this program alone.

    Examples
    --------
    >>> to_plain({"limits": (0.5, float("inf"))}), to_plain(float("nan"))
    ({'limits': [0.5, None]}, None)
    """
    if type(value) in PLAIN_TYPES:
        return value
    if isinstance(value, float):
        return float(value) if exact or math.isfinite(value) else None
    if isinstance(value, (tuple, list)):
        return [to_plain(item, exact=exact) for item in value]
    if isinstance(value, dict | SimpleNamespace):
        members = value if isinstance(value, dict) else vars(value)
        return {key: to_plain(item, exact=exact) for key, item in members.items()}
    if is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name), exact=exact) for f in fields(value)}
    return value


def as_json(value: Any) -> str:
    """Return the JSON text of a value that `to_plain` accepts, a member a line, with null for NaN and infinity."""
    return json.dumps(to_plain(value), indent=1, ensure_ascii=False, allow_nan=False)


def as_json_line(value: Any) -> str:
    """Return the shortest JSON text of a value, on one line; NaN and infinity are null.

    Examples
    --------
    >>> as_json_line({"p": (0.5, float("nan")), "system": "ä"})
    '{"p":[0.5,null],"system":"ä"}'
    """
    return as_json_lines([value])


def as_json_lines(values: Sequence[Any]) -> str:
    """Return the JSON texts of values, each on a line of its own, separated by commas."""
    try:
        return b",\n".join([orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY) for value in values]).decode()
    except TypeError:  # half a surrogate pair in a name, or an integer beyond 64 bits
        return ",\n".join(json.dumps(to_plain(value), separators=(",", ":"), allow_nan=False) for value in values)


def iter_json(members: Mapping[str, Any]) -> Iterator[str]:
    r"""Yield the JSON text of an object in parts, with each member and each value of an array on its own line.

    Parameters
    ----------
    members : mapping of str to object
        Values that `to_plain` accepts, or iterators over the parts of a value's JSON text.

    Examples
    --------
    >>> print("".join(iter_json({"seed": 0, "results": iter_array(["1,\n2", "3"]), "none": []})))
    {
    "seed": 0,
    "results": [
    1,
    2,
    3
    ],
    "none": []
    }
    """
    start = "{\n"
    for key, value in members.items():
        yield f"{start}{as_json_line(key)}: "
        start = ",\n"
        if isinstance(value, Iterator):
            yield from value
        elif isinstance(value, (list, tuple)):
            yield from iter_array(map(as_json_line, value))
        else:
            yield as_json_line(value)
    yield "\n}"


def iter_array(parts: Iterable[str]) -> Iterator[str]:
    """Yield the JSON text of an array in parts, given texts of one or more members separated by commas."""
    start = "[\n"
    for part in parts:
        yield start
        yield part  # which may be long, so it is not copied
        start = ",\n"
    yield "[]" if start == "[\n" else "\n]"


def format_duration(seconds: float) -> str:
    """Return a duration in its two largest units.

    Examples
    --------
    >>> format_duration(0.4), format_duration(5), format_duration(65), format_duration(7265), format_duration(200_000)
    ('< 1 s', '5 s', '1 min 5 s', '2 h 1 min', '2 d 7 h')
    """
    if seconds < 1:
        return "< 1 s"
    n_seconds = round(seconds)
    for size, name, smaller, lesser in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if n_seconds >= size:
            return f"{n_seconds // size} {name} {n_seconds % size // smaller} {lesser}"
    return f"{n_seconds} s"


def format_time(seconds: float) -> str:
    """Return a time in seconds as local date and time."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}"


def format_list(names: Sequence[str], limit: int = 3, separator: str = ", ") -> str:
    """Return a text of the first names, followed by the number of names left out.

    Examples
    --------
    >>> format_list(["a", "b", "c"]), format_list(["a", "b", "c", "d", "e"])
    ('a, b, c', 'a, b, c and 2 more')
    """
    suffix = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return separator.join(names[:limit]) + suffix


def format_count(n: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural.

    Examples
    --------
    >>> format_count(1, "item"), format_count(0, "trial"), format_count(1234, "comparison")
    ('1 item', '0 trials', '1,234 comparisons')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def describe_items(items: Sequence[str], noun: str = "item") -> str:
    """Return a text with the number of items and the names of the first ones.

    Examples
    --------
    >>> describe_items(["a", "b", "c", "d", "e"])
    "5 items ('a', 'b', 'c' and 2 more)"
    """
    return f"{format_count(len(items), noun)} ({format_list([*map(repr, items)])})"


MAX_VALUE = 400
"""Maximum characters of an output or a gold standard that are shown."""

CUT = " […]"


def format_value(value: Any) -> str:
    """Return an output or a gold standard as text, with a visible mark if it is shortened.

    Examples
    --------
    >>> format_value("a cat"), format_value(True), format_value(("B", "O")), format_value(0.25)
    ('a cat', 'yes', 'B O', '0.25')
    >>> format_value(frozenset({"b", "a"})), format_value({"d1": 1, "d0": 0})
    ('a, b', 'd0: 0, d1: 1')
    >>> format_value("x" * 500) == "x" * 396 + " […]"
    True
    """
    text = _format_plain(value)
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - len(CUT)] + CUT


def _format_plain(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{_format_plain(key)}: {_format_plain(item)}" for key, item in sorted(value.items()))
    if isinstance(value, (set, frozenset)):
        return ", ".join(sorted(map(_format_plain, value)))
    if isinstance(value, (list, tuple, np.ndarray)):
        return " ".join(map(_format_plain, value))
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def suggest_name(word: str, names: Iterable[str], otherwise: str = "") -> str:
    """Return the end of an error message: the known name that is nearest to a word, or another text if none is near.

    Examples
    --------
    >>> suggest_name("schema", ["scheme", "column"]), suggest_name("x", ["scheme"])
    ("; did you mean 'scheme'?", '')
    >>> suggest_name("document", ["item", "doc"])
    "; did you mean 'doc'?"
    """
    known = [name for name in names if len(name) < 200]
    close = difflib.get_close_matches(word[:200], known, 1) or [
        name for name in known if min(len(name), len(word)) > 2 and (name.startswith(word) or word.startswith(name))
    ]
    return f"; did you mean {close[0]!r}?" if close else otherwise


MAX_WORD_LENGTH = 500
"""Maximum characters of a word or a quoted text that a message shows in full."""

MAX_LINE_LENGTH = 4000
"""Maximum characters shown of a line of a message."""

MAX_MESSAGE_LENGTH = 200_000
"""Maximum characters of a message that are processed."""

_QUOTED = re.compile(r"""(?<![\w\\])(?:'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+")(?!\w)""")
_LONG_WORD = re.compile(rf"\S{{{MAX_WORD_LENGTH + 1},}}")


def shorten_message(message: str) -> str:
    """Return a message in which what is very long is cut in the middle: names, cells, paths, and whole lines.

    Where it begins and ends, and so file, line and remedy, stays.

    Examples
    --------
    >>> message = shorten_message(f"a.csv, line 2: {'x' * 10**6!r} is no number; expected one")
    >>> len(message), message[:20], message[-35:]
    (545, "a.csv, line 2: 'xxxx", "xxxxxxx' is no number; expected one")
    """
    if len(message) <= MAX_WORD_LENGTH:
        return message
    message = _cut_middle(message, MAX_MESSAGE_LENGTH)
    for pattern in (_QUOTED, _LONG_WORD):
        message = pattern.sub(lambda match: _cut_middle(match[0], MAX_WORD_LENGTH), message)
    return "\n".join(_cut_middle(line, MAX_LINE_LENGTH) for line in message.split("\n"))


def _cut_middle(text: str, longest: int) -> str:
    """Return a text without the middle of too many characters."""
    n_last = longest // 3
    return text if len(text) <= longest else f"{text[: longest - n_last]}[…]{text[-n_last:]}"


def make_printable(text: str, keep: str = "") -> str:
    r"""Return a text with replacement characters for those that are neither printable nor blank, nor `keep`.

    Examples
    --------
    >>> make_printable("a\x1b[31m", keep="\n").isprintable()
    True
    """
    if text.replace(keep, "").isprintable():
        return text
    return "".join(c if _is_harmless(c) or c == keep else "\N{REPLACEMENT CHARACTER}" for c in text)


def escape_json(text: str) -> str:
    r"""Return JSON text in which characters that a terminal might interpret are escaped; its value is the same.

    Examples
    --------
    >>> print(escape_json('"a\x9b1m"'))
    "a\u009b1m"
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if _is_harmless(c) or c == "\n" else _escape_character(c) for c in text)


def _is_harmless(c: str) -> bool:
    return c.isprintable() or (c.isspace() and c >= "\xa0" and c not in "\u2028\u2029")


def _escape_character(c: str) -> str:
    units = c.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k : k + 2].hex()}" for k in range(0, len(units), 2))


HIDDEN = "***"

ACCOUNT_SCHEMES = frozenset({"abfs", "abfss", "wasb", "wasbs"})
"""Schemes of URLs that have the form `container@account`, which is no secret."""

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,40}"
_URL = re.compile(rf"{_SCHEME}(?:::{_SCHEME})*://")
_WRITTEN = re.compile(
    rf"(?P<quoted>(?<='))?{_SCHEME}://(?:[^/?#@\s]*:[^/?#@\s]*@)?"
    rf"(?:(?!::{_SCHEME}://)(?(quoted)[^\"'<>\s]|[^\"<>\s]))*"
)
_USER = re.compile(r"(?=[^@]*@)(?P<user>[^/?#]*|[^/@]*:(?!\d+(?:/|$))[^@]*)@")
_QUERY = re.compile(r"\?(?=[\w.%~-]+=)")
_PUNCTUATION = ":;,.)'"
"""Characters that may follow a URL in a sentence."""

SHORTEST_SECRET = 4
"""Minimum length of a secret that is searched outside URLs. Shorter ones occur within words."""

_PARAMETER = re.compile(r"([;?&#])([^;?&#/=]+=[^;?&#/]*)")
"""A parameter in the path of a URL: `;token=x`."""


def is_url(text: str) -> bool:
    """Return whether a text is a URL rather than a path.

    Examples
    --------
    >>> is_url("s3://bucket/a.tsv"), is_url("simplecache::s3://bucket/a.tsv"), is_url("a=s3://b"), is_url("C:/a.tsv")
    (True, True, False, False)
    """
    return _URL.match(text) is not None


def split_query(url: str) -> tuple[str, str]:
    """Return a URL without its query and fragment, and the text of these, which is "" if it has none.

    In URLs without queries, `?` is a wildcard for one character, unless a name and `=` follow it.

    Examples
    --------
    >>> split_query("https://host/a.tsv?token=1"), split_query("s3://bucket/run?.tsv")
    (('https://host/a.tsv', '?token=1'), ('s3://bucket/run?.tsv', ''))
    """
    web = url.partition("://")[0].rpartition("::")[2].lower() in {"http", "https"}
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


def redact(text: str, *, values: Iterable[str] = ()) -> str:
    """Return a text with every user, password and query in its URLs hidden.

    Parameters
    ----------
    text : str
        Any text, with or without URLs.
    values : iterable of str
        Further secrets to hide wherever they occur in the text. Those of fewer than four characters are ignored.

    Examples
    --------
    >>> redact("https://ann:pw@host/a.tsv?X-Amz-Signature=90ab&versionId=3#t=1")
    'https://***@host/a.tsv?***'
    >>> redact("zip://a.tsv::https://host/a.zip?90ab"), redact("abfs://runs@lab.dfs.core.windows.net/a.tsv")
    ('zip://a.tsv::https://host/a.zip?***', 'abfs://runs@lab.dfs.core.windows.net/a.tsv')
    >>> redact("postgresql://ann:pw@host/night?sslmode=require&p%61ssword=pw")
    'postgresql://***@host/night?***'
    """
    written = {form for value in values for form in (value, quote(value), quote(value, safe=""), quote_plus(value))}
    for value in sorted((value for value in written if len(value) >= SHORTEST_SECRET), key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return _WRITTEN.sub(lambda match: _redact_url(match[0]), text) if "://" in text else text


def _redact_url(url: str) -> str:
    address, query = split_query(url.rstrip(_PUNCTUATION))
    address = _PARAMETER.sub(rf"\1{HIDDEN}", _redact_user(address))
    return f"{address}{query and query[0] + HIDDEN}{url[len(url.rstrip(_PUNCTUATION)) :]}"


def _redact_user(address: str) -> str:
    scheme, _, rest = address.partition("://")
    if scheme.lower().startswith("postgres") and "@" in rest:  # a password may hold any character
        return f"{scheme}://{HIDDEN}@{rest.rpartition('@')[2]}"
    user = _USER.match(rest)
    if user is None:
        host = re.split("[/?#]", rest, maxsplit=1)[0]
        _, at, decoded = _decode(host).rpartition("@")
        return f"{scheme}://{HIDDEN}@{decoded}{rest[len(host) :]}" if at else address
    is_account = scheme.lower() in ACCOUNT_SCHEMES and ":" not in _decode(user["user"])
    return address if is_account else f"{scheme}://{HIDDEN}@{rest[user.end() :]}"


def _decode(text: str) -> str:
    """Return a part of a URL without percent encoding, also where it was encoded several times."""
    while "%" in text and (decoded := unquote(text)) != text:
        text = decoded
    return text
