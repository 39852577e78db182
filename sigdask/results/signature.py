"""Signatures: one line that says all that a p depends on, so that it can be cited, and found again from the same files.

`test:ar|metric:f1|alt:two-sided|method:auto|p:exact|nt:1048576|seed:0|scheme:1|set:|unit:item|data:…|v:0.3.0`: keys and
values as scorers' own signatures have them (Post 2018, "A call for clarity in reporting BLEU scores"). What a value
holds of `|`, `:`, `%` or of what no printer shows is written as in URLs (`%7C`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.grouping import numbered
from sigdask.errors import InputError
from sigdask.randomization.stream.shuffles import SCHEME

if TYPE_CHECKING:
    from sigdask.results.columns.inputs import InputDigests
    from sigdask.results.table import Table

TRIALS, EXACT, LIMITS, DECISION = "trials", "exact", "limits", "decision"
"""How p was had: (k + 1) / (n + 1) of random trials, exactly, as the upper of two limits, or not at all."""

NUMBERS = {"nt": int, "h": int, "epsilon": float, "alpha": float, "seed": int, "scheme": int, "m": int, "limit": float}
"""Keys whose values are numbers."""

ALWAYS = ("test", "metric", "alt", "method", "p", "seed", "scheme", "set", "unit", "data", "v")
"""Keys that no signature is without."""

KEYS = (
    "test", "metric", "alt", "method", "limit", "p", "nt", "stop", "h", "epsilon", "alpha", "seed", "scheme", "set",
    "by", "value", "unit", "adj", "m", "family", "data", "v",
)  # fmt: skip
"""All keys, in their order; those of the metric's options follow on it, each as `metric.KEY`."""

CHOICES = {
    "test": ("ar",),
    "alt": ("two-sided", "greater", "less"),
    "method": ("auto", "randomization", "exact", "both"),
    "p": (TRIALS, EXACT, LIMITS, DECISION),
}
"""What a value must be one of."""

OWN = "metric."

BROKEN = re.compile(r"[ \t]*\n\s*")
"""Where a terminal has broken a line that was copied from it."""


@dataclass(frozen=True, slots=True)
class DataDigests:
    """What was compared, by content: twelve digits each.

    Attributes
    ----------
    units : str
        The ids of the test set's units.
    a, b : str
        What each system contributes under the metric on the items compared, with what is right there.
    """

    units: str
    a: str
    b: str

    def __str__(self) -> str:
        return f"{self.units}.{self.a}.{self.b}"

    @staticmethod
    def parse(text: str) -> DataDigests:
        """Read it as it is written."""
        parts = text.split(".")
        if len(parts) != 3 or not all(part and set(part) <= set("0123456789abcdef") for part in parts):
            raise InputError(f"signature: data = {text!r}: expected three numbers of base 16 with points between them")
        return DataDigests(*parts)


@dataclass(frozen=True, slots=True)
class Signature:
    """All that the p of one comparison depends on.

    Attributes
    ----------
    metric : str
        As it was asked for.
    alternative : {"two-sided", "greater", "less"}
        Of A's score less B's.
    method : {"auto", "randomization", "exact", "both"}
        As it was asked for.
    exact_limit : float or None
        Seconds that were given as the limit of exact p-values, under a method that leaves out those beyond.
    p : {"trials", "exact", "limits", "decision"}
        How p was had.
    seed, scheme : int
        Of the stream, and the version of its layout.
    test_set, unit : str
        Its name, part of the shuffles' address, and what is exchanged as a whole.
    data : DataDigests
        What was compared.
    version : str
        Of the program.
    n_trials : int or None
        Random trials that were counted, or that a rule to stop could have taken; None where there were none.
    options : tuple of (str, str)
        The metric's own, as its scorer says them; `code`, a digest of it, where the metric is the user's.
    stop : str or None
        The rule that ended the counting, with `h` or with `epsilon` and `alpha`.
    subset : tuple of (str, str), or None
        Column and value, where a part of the items was compared.
    adjust : str or None
        How the adjusted p was had, of `members` comparisons together, which are known by `family`.
    """

    metric: str
    alternative: str
    method: str
    p: str
    seed: int
    scheme: int
    test_set: str
    unit: str
    data: DataDigests
    version: str
    n_trials: int | None = None
    exact_limit: float | None = None
    options: tuple[tuple[str, str], ...] = ()
    stop: str | None = None
    h: int | None = None
    epsilon: float | None = None
    alpha: float | None = None
    subset: tuple[str, str] | None = None
    adjust: str | None = None
    members: int | None = None
    family: str | None = None

    def __str__(self) -> str:
        by, value = self.subset or (None, None)
        found = {
            "test": "ar", "metric": self.metric, "alt": self.alternative, "method": self.method, "p": self.p,
            "limit": self.exact_limit,
            "nt": self.n_trials, "stop": self.stop, "h": self.h, "epsilon": self.epsilon, "alpha": self.alpha,
            "seed": self.seed, "scheme": self.scheme, "set": self.test_set, "by": by, "value": value,
            "unit": self.unit, "adj": self.adjust, "m": self.members, "family": self.family, "data": self.data,
            "v": self.version,
        }  # fmt: skip
        parts = []
        for key in KEYS:
            if found[key] is not None:
                parts.append(f"{key}:{_escaped(str(found[key]))}")
            if key == "metric":
                parts += [f"{OWN}{_escaped(name)}:{_escaped(own)}" for name, own in self.options]
        return "|".join(parts)

    @staticmethod
    def parse(text: str) -> Signature:
        """Read a signature as it is written.

        Raises
        ------
        InputError
            It is none; it says which key is missing, unknown or wrong.

        Examples
        --------
        >>> line = (
        ...     "test:ar|metric:f%3Abeta=2|alt:two-sided|method:auto|p:exact|seed:0|scheme:1|set:|unit:item"
        ...     "|data:0a1b2c3d4e5f.0123456789ab.ba9876543210|v:0.3.0"
        ... )
        >>> Signature.parse(line).metric, str(Signature.parse(line)) == line
        ('f:beta=2', True)
        """
        found = _pairs(text)
        options = tuple((key.removeprefix(OWN), value) for key, value in found.items() if key.startswith(OWN))
        own = {key: _value(key, value) for key, value in found.items() if not key.startswith(OWN)}
        if missing := [key for key in ALWAYS if key not in own]:
            raise InputError(f"signature: has no {', '.join(missing)}; it has {', '.join(found) or 'nothing'}")
        if ("by" in own) != ("value" in own):
            raise InputError("signature: by and value name a subset together")
        return Signature(
            metric=own["metric"],
            alternative=own["alt"],
            method=own["method"],
            p=own["p"],
            seed=own["seed"],
            scheme=own["scheme"],
            test_set=own["set"],
            unit=own["unit"],
            data=DataDigests.parse(own["data"]),
            version=own["v"],
            n_trials=own.get("nt"),
            exact_limit=own.get("limit"),
            options=options,
            stop=own.get("stop"),
            h=own.get("h"),
            epsilon=own.get("epsilon"),
            alpha=own.get("alpha"),
            subset=(own["by"], own["value"]) if "by" in own else None,
            adjust=own.get("adj"),
            members=own.get("m"),
            family=own.get("family"),
        )


def is_signature(text: str) -> bool:
    """Say whether a text is meant as one."""
    return text.strip().startswith("test:") and "|" in text


def _escaped(text: str) -> str:
    if text.isprintable() and not set(text) & set("|:%") and text == text.strip():
        return text
    coded = "".join(one if _is_plain(one) else _coded(one) for one in text)
    return coded if coded == coded.strip() else "".join(_coded(one) if one.isspace() else one for one in coded)


def _is_plain(character: str) -> bool:
    return character.isprintable() and character not in "|:%"


def _coded(character: str) -> str:
    return quote(character, safe="", errors="surrogatepass")


def _pairs(text: str) -> dict[str, str]:
    """Return keys and values as they were meant."""
    found: dict[str, str] = {}
    for part in BROKEN.sub("", text.strip()).split("|"):
        key, colon, value = part.partition(":")
        if not colon:
            raise InputError(f"signature: {part!r}: expected KEY:VALUE, parted by |")
        try:
            key, value = (unquote(own, errors="surrogatepass") for own in (key, value))
        except UnicodeDecodeError:
            raise InputError(f"signature: {part!r}: what follows on % is no text") from None
        if key in found:
            raise InputError(f"signature: {key} is there twice")
        found[key] = value
    return found


def _value(key: str, text: str) -> Any:
    """Return what a key's value is."""
    if key not in KEYS:
        raise InputError(f"signature: no key {key!r}; there are {', '.join(KEYS)} and {OWN}…")
    if key in CHOICES and text not in CHOICES[key]:
        raise InputError(f"signature: {key} = {text!r}: must be one of {', '.join(CHOICES[key])}")
    if key not in NUMBERS:
        return text
    try:
        return NUMBERS[key](text)
    except ValueError:
        raise InputError(f"signature: {key} = {text!r}: must be a number") from None


def lines(table: Table) -> list[str | None]:
    """Return the signature of each row, None where an earlier version kept no digests.

    Rows of one set, metric and so on differ in `data` alone, so a signature is made of the first of these and
    filled for the others.
    """
    own = table.origins
    if own is None:
        return [None] * len(table)
    group, firsts = _alike(table, own)
    around = [str(one).split(f"|data:{BLANK}|") for one in firsts]
    texts = (own.units.listed(), own.data_a.listed(), own.data_b.listed())
    return [
        f"{around[k][0]}|data:{units}.{a}.{b}|{around[k][1]}" if units else None
        for k, units, a, b in zip(group.tolist(), *texts, strict=True)
    ]


def shared(table: Table) -> str | None:
    """Return what the signatures of all rows have in common, in one line; of one row that is the whole.

    None where some row has no signature.
    """
    own = table.origins
    if own is None or not len(table) or "" in {own.units.values[code] for code in np.unique(own.units.codes).tolist()}:
        return None
    if len(table) == 1:
        return lines(table)[0]
    every = [dict.fromkeys(str(one).split("|")) for one in _alike(table, own)[1]]
    alike = [part for part in every[0] if all(part in others for others in every)]
    return "|".join(part for part in alike if part != f"data:{BLANK}")


def _alike(table: Table, own: InputDigests) -> tuple[NDArray[np.int64], list[Signature]]:
    """Return numbers of rows by what their signatures share, and these signatures but for their data."""
    group = numbered(*_settings(table, own))
    _, firsts = np.unique(group, return_index=True)
    return group, [_of_row(table, own, int(row)) for row in firsts.tolist()]


BLANK = DataDigests("0", "0", "0")


def _settings(table: Table, own: InputDigests) -> list[Any]:
    """Return the columns in which rows must be alike to share all but their data."""
    coded = (
        table.test_set, table.subset, table.unit, table.metric, table.alternative, own.method, own.code, own.adjust,
        own.members, own.family, own.version,
    )  # fmt: skip
    undecided = np.isnan(table.p_value)
    return [
        *(column.codes for column in coded),
        *(
            own.seed,
            table.n_trials,
            table.exact,
            table.enumerated,
            undecided,
            *(stops.n_asked for stops in table.stops),
        ),
    ]


def _of_row(table: Table, own: InputDigests, row: int) -> Signature:
    """Return the signature of a row but for its data."""
    subset, score = table.subset[row], table.metric[row]
    ruled = next((stops for stops in table.stops if stops.n_asked[row]), None)
    method, _, limit = own.method[row].partition(":")
    n_trials = int(table.n_trials[row] if ruled is None else ruled.n_asked[row])
    epsilon = None if ruled is None else ruled.epsilon
    return Signature(
        metric=score.name,
        alternative=table.alternative[row],
        method=method,
        exact_limit=float(limit) if limit else None,
        p=_known(table, row),
        seed=int(own.seed[row]),
        scheme=SCHEME,
        test_set=table.test_set[row],
        unit=table.unit[row],
        data=BLANK,
        version=own.version[row],
        n_trials=None if table.enumerated[row] or not n_trials else n_trials,
        options=(*_spread(score.signature), *((("code", own.code[row]),) if own.code[row] else ())),
        stop=None if ruled is None else ruled.rule,
        h=None if ruled is None else ruled.h,
        epsilon=epsilon,
        alpha=None if epsilon is None else table.alpha,
        subset=None if subset is None else (subset.column, subset.value),
        adjust=own.adjust[row] or None,
        members=int(own.members[row]) if own.members[row] else None,
        family=own.family[row] or None,
    )


def _known(table: Table, row: int) -> str:
    """Say how p was had."""
    if np.isnan(table.p_value[row]):
        return DECISION
    if table.exact[row]:
        return EXACT
    return TRIALS if table.n_trials[row] else LIMITS


def _spread(said: str | None) -> tuple[tuple[str, str], ...]:
    """Return what a scorer says of how it counted, key by key where it says so.

    Examples
    --------
    >>> _spread("nrefs:1|tok:13a"), _spread("by hand")
    ((('nrefs', '1'), ('tok', '13a')), (('signature', 'by hand'),))
    """
    if not said:
        return ()
    pairs = [part.partition(":") for part in said.split("|")]
    found: Mapping[str, str] = {key: value for key, colon, value in pairs if key and colon}
    return tuple(found.items()) if len(found) == len(pairs) else (("signature", said),)
