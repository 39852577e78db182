"""When a log was written, by the date in its name: which of several is the newest."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_DAY = r"(?P<year>(?:19|20)\d\d)(?P<mark>-?)(?P<month>\d\d)(?P=mark)(?P<day>\d\d)"
_ANOTHER = r"[T_ -](?:19|20)\d\d-?\d\d-?\d\d(?!\d)"
_SECOND = r"[-:.]?(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
_TIME = rf"(?!{_ANOTHER})[T_ -]?(?P<hour>\d\d)[-:.]?(?P<minute>\d\d)(?:{_SECOND})?"
_ZONE = r"(?:Z|(?P<sign>[+-])(?P<hours>\d\d)[-:]?(?P<minutes>\d\d)(?!\d))"

MOMENT = re.compile(rf"(?<!\d){_DAY}(?:(?:{_TIME})(?:{_ZONE})?(?![\d])|(?!\d))")
"""A day, and a time of it, as the harness, Inspect and people write them in names of files."""


def moment(name: str) -> datetime | None:
    """Return the date in a name, in UTC where it says no other zone; None where there is none.

    Of several it is one with a time of day, at the start of the name or else the last: a task may have
    a day in its own name.

    Examples
    --------
    >>> str(moment("samples_gsm8k_2024-05-01T12-00-00.5.jsonl")), str(moment("2024-05-01T12-00-00+02-00_arc_x.eval"))
    ('2024-05-01 12:00:00.500000+00:00', '2024-05-01 10:00:00+00:00')
    >>> str(moment("night-20240501.jsonl")), moment("mmlu_2024.jsonl")
    ('2024-05-01 00:00:00+00:00', None)
    """
    stamp = _stamp(name)
    return None if stamp is None else _of(stamp)


def undated(name: str) -> str:
    """Return a name without the date of `moment`, and without the marks that it leaves at the ends.

    Examples
    --------
    >>> undated("gsm8k_2024-05-01"), undated("live_2024-06-24_2024-08-01T12-00-00"), undated("2024-05-01")
    ('gsm8k', 'live_2024-06-24', '')
    """
    stamp = _stamp(name)
    return name if stamp is None else (name[: stamp.start()] + name[stamp.end() :]).strip("_-. ")


def _stamp(name: str) -> re.Match[str] | None:
    found = [match for match in MOMENT.finditer(name) if _of(match) is not None]
    dates = [match for match in found if match["hour"]] or found
    if not dates:
        return None
    return dates[0] if dates[0].start() == 0 else dates[-1]


def _of(match: re.Match[str]) -> datetime | None:
    part = {key: int(value) for key, value in match.groupdict().items() if value and value.isdigit()}
    micro = int((match["fraction"] or "0").ljust(6, "0")[:6])
    try:
        found = datetime(
            part["year"], part["month"], part["day"],
            part.get("hour", 0), part.get("minute", 0), part.get("second", 0), micro, UTC,
        )  # fmt: skip
    except ValueError:
        return None
    ahead = timedelta(hours=part.get("hours", 0), minutes=part.get("minutes", 0))
    return found + ahead if match["sign"] == "-" else found - ahead
