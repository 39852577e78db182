"""Signatures: one line with all settings and data that a p-value depends on, to cite and reproduce it.

An example is
`test:ar|metric:f1|alt:two-sided|method:auto|p:exact|nt:1048576|seed:0|scheme:1|set:|unit:item|data:…|v:0.4.0.dev0`.
Keys and values look like those of sacrebleu's signatures (Post 2018, "A call for clarity in reporting BLEU scores").
`|`, `:`, `%` and unprintable characters in values are written as in URLs (`%7C`). A family, the results whose p-values
are adjusted together, has a digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from sigdask.counts.fields import Integers
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.options import OPTIONS
from sigdask.randomization.panels.digests import format_hash, hash_parts
from sigdask.randomization.stream import SCHEME
from sigdask.results.columns import encode
from sigdask.results.record import NamedValues
from sigdask.results.table import CHUNK_ROWS, Table
from sigdask.statistics.numbering import find_first_rows, number_rows

TRIALS, EXACT, LIMITS = "trials", "exact", "limits"
"""How p was computed: (k + 1) / (n + 1) from random trials, exactly, or as the upper of two limits."""

OPTION_PREFIX = "metric."

LINE_BREAK = re.compile(r"[ \t]*\n\s*")
"""Pattern of a line break that a terminal inserted into a copied line."""


COUNT = r"[0-9]{1,19}"

KEYS = {
    "test": ("test", "ar"), "metric": ("metric", ".*"),
    "alt": ("alternative", "|".join(OPTIONS["alternative"].choices)),
    "method": ("method", "|".join(OPTIONS["method"].choices)),
    "limit": ("exact_limit", r"inf|[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?"), "p": ("p", f"{TRIALS}|{EXACT}|{LIMITS}"),
    "nt": ("n_trials", COUNT), "seed": ("seed", COUNT), "scheme": ("scheme", COUNT), "set": ("test_set", ".*"),
    "by": ("by", ".*"), "value": ("value", ".*"), "unit": ("unit", ".*"),
    "adj": ("adjust", "|".join(OPTIONS["adjust"].choices[1:])), "m": ("members", COUNT), "family": ("family", ".*"),
    "data": ("data", r"[0-9a-f]+(\.[0-9a-f]+){2}"), "v": ("version", ".*"),
}  # fmt: skip
"""All keys in their order: the attribute of `Signature`, and a pattern of values. Those of the metric's options follow
it as `metric.KEY`.
"""


REQUIRED = ("test", "metric", "alt", "method", "p", "seed", "scheme", "set", "unit", "data", "v")
"""Keys that every signature has."""


class Signature(NamedValues):
    """All that the p of one comparison depends on: an attribute for each of `KEYS`, None where the line lacks it.

    `data` has the digests of the ids of the `units`, and of the contributions of systems `a` and `b` with the gold
    standard.
    `options` has the options of the metric as pairs of texts, as its scorer prints them; for a user's metric, `code` is
    a digest of its code.
    """

    @property
    def subset(self) -> tuple[str, str] | None:
        """Column and value of the subset of items that was compared, None for all."""
        return None if self.by is None or self.value is None else (self.by, self.value)

    @staticmethod
    def parse(text: str) -> Signature:
        """Return the signature that a line of text holds.

        Raises
        ------
        InputError
            The text is no signature. The message names the key that is missing, unknown or invalid.

        Examples
        --------
        >>> line = (
        ...     "test:ar|metric:f%3Abeta=2|alt:two-sided|method:auto|p:exact|seed:0|scheme:1|set:|unit:item"
        ...     "|data:0a1b2c3d4e5f.0123456789ab.ba9876543210|v:0.4.0.dev0"
        ... )
        >>> Signature.parse(line).metric
        'f:beta=2'
        """
        pairs = _split_pairs(text)
        options = tuple(
            (key.removeprefix(OPTION_PREFIX), pairs.pop(key)) for key in [*pairs] if key.startswith(OPTION_PREFIX)
        )
        if unknown := next((key for key in pairs if key not in KEYS), None):
            raise InputError(f"signature: no key {unknown!r}; keys: {', '.join(KEYS)} and {OPTION_PREFIX}…")
        if missing := [key for key in REQUIRED if key not in pairs]:
            raise InputError(
                f"signature: {', '.join(missing)} missing; found {', '.join(pairs) or 'nothing'}. Copy the whole "
                "line, and put it in quotation marks"
            )
        absent = dict.fromkeys(name for name, _ in KEYS.values())
        return Signature(**absent | {KEYS[key][0]: _read_value(key, pairs[key]) for key in pairs}, options=options)


def _read_value(key: str, text: str) -> Any:
    """Return the value of a key in the text of a signature."""
    name, pattern = KEYS[key]
    if not re.fullmatch(pattern, text, re.DOTALL):
        raise InputError(f"signature: {key} = {text!r}: must be {pattern}")
    if name == "data":
        return NamedValues(**dict(zip(("units", "a", "b"), text.split("."), strict=True)))
    return int(text) if pattern is COUNT else float(text) if name == "exact_limit" else text


@lru_cache(maxsize=4096)
def _escape(text: str) -> str:
    return "".join(c if c.isprintable() and c not in "|:%" else quote(c, safe="") for c in text)


def _split_pairs(text: str) -> dict[str, str]:
    """Return the unescaped keys and values in the text of a signature."""
    parts = [part.partition(":") for part in LINE_BREAK.sub("", text.strip()).split("|")]
    try:
        return {unquote(key, errors="strict"): unquote(value, errors="strict") for key, _, value in parts}
    except UnicodeDecodeError:
        raise InputError("signature: % must be followed by the code of a UTF-8 character") from None


def format_signatures(table: Table) -> list[str | None]:
    """Return the signature of each row, as it was read if the results were; None for rows without digests."""
    if "test_signature" in table.paths:
        return [text or None for text in table.test_signature.tolist()]
    if not table.has("origins"):
        return [None] * len(table)
    data = (table[f"origins.{name}"].tolist() for name in (*DATA, "version"))
    rows = zip(_encode_settings(table).tolist(), *data, strict=True)
    return [f"{settings}{units}.{a}.{b}|v:{version}" if units else None for settings, units, a, b, version in rows]


def _encode_settings(table: Table) -> Texts:
    """Return what stands before the digests of the data in the signature of each row."""
    texts = [table[path] for path in (*TESTED, "signature", *(f"origins.{name}" for name in FAMILY))]
    numbers = [table["origins.seed"], table.n_trials, table.is_exact, table.is_enumerated]
    codes = number_rows(*(column.codes for column in texts), *numbers)
    first_rows = find_first_rows(codes)
    return encode(map(_format_settings, *(column[first_rows].tolist() for column in (*texts, *numbers))), codes)


TESTED = ("test_set", "subset.column", "subset.value", "unit", "metric", "alternative", "origins.method")
"""Columns of the tested comparisons and their settings."""

FAMILY = ("code", "adjust", "members", "family")

DATA = ("units", "data_a", "data_b")


def _format_settings(*settings: Any) -> str:
    """Return what stands before the digests of the data in a signature."""
    test_set, column, value, unit, metric, alternative, method_and_limit, scorer, code, *rest = settings
    adjust, members, family, seed, n_trials, is_exact, is_enumerated = rest
    method, _, limit = method_and_limit.partition(":")
    options = (*split_scorer_signature(scorer), *([("code", code)] if code else []))
    pairs: list[tuple[str, object]] = [
        ("test", "ar"), ("metric", metric), *((f"{OPTION_PREFIX}{key}", option) for key, option in options),
        ("alt", alternative), ("method", method), ("limit", float(limit) if limit else None),
        ("p", EXACT if is_exact else TRIALS if n_trials else LIMITS),
        ("nt", None if is_enumerated or not n_trials else n_trials), ("seed", seed), ("scheme", SCHEME),
        ("set", test_set), ("by", column or None), ("value", value if column else None), ("unit", unit),
        ("adj", adjust or None), ("m", members or None), ("family", family or None),
    ]  # fmt: skip
    text = "|".join(f"{_escape(key)}:{_escape(str(value))}" for key, value in pairs if value is not None)
    return f"{text}|data:"


def split_scorer_signature(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return the (key, value) pairs of a scorer's signature; a text of another form is one value.

    Examples
    --------
    >>> split_scorer_signature("nrefs:1|tok:13a"), split_scorer_signature("by hand")
    ((('nrefs', '1'), ('tok', '13a')), (('signature', 'by hand'),))
    """
    if not text:
        return ()
    pairs = [part.partition(":") for part in text.split("|")]
    values: Mapping[str, str] = {key: value for key, colon, value in pairs if key and colon}
    return tuple(values.items()) if len(values) == len(pairs) else (("signature", text),)


def add_families(table: Table, families: Sequence[tuple[str, tuple[int, ...], Integers]]) -> Table:
    """Return the table with the family of each adjusted row: its method, number of comparisons and digest.

    Parameters
    ----------
    table : Table
        All results.
    families : sequence of (str, tuple of int, int64 array)
        For each adjusted family: the adjustment, the trials (and resamples) of the whole family, and its rows.
    """
    if not table.has("origins"):
        return table
    signed = _encode_settings(table), *(table[f"origins.{name}"] for name in DATA)
    codes, texts = np.zeros(len(table), np.int32), [("", "", "")]
    for adjust, counts, rows in families:
        codes[rows] = len(texts)
        order = rows[np.lexsort([column.ranks[rows] for column in reversed(signed)])]
        parts = chain([adjust], counts, _iter_signed(signed, order))
        digest = format_hash(hash_parts(parts, 1 + len(counts) + len(rows)))
        texts.append((adjust, str(len(rows)), digest))
    columns = (encode(values, codes) for values in zip(*texts, strict=True))
    return table.replace(**dict(zip(("origins.adjust", "origins.members", "origins.family"), columns, strict=True)))


def _iter_signed(signed: Sequence[Texts], rows: Integers) -> Iterator[str]:
    """Yield the signatures of some rows without the version, of which few thousand are in memory at a time."""
    for start in range(0, len(rows), CHUNK_ROWS):
        columns = (column[rows[start : start + CHUNK_ROWS]].tolist() for column in signed)
        yield from (f"{settings}{units}.{a}.{b}" for settings, units, a, b in zip(*columns, strict=True))
