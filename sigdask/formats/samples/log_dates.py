"""Parse the dates in the names of logs, to find the newest of several."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_DAY = r"(?P<year>(?:19|20)\d\d)(?P<mark>-?)(?P<month>\d\d)(?P=mark)(?P<day>\d\d)"
_ANOTHER_DAY = r"[T_ -](?:19|20)\d\d-?\d\d-?\d\d(?!\d)"
_SECOND = r"[-:.]?(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
_TIME = rf"(?!{_ANOTHER_DAY})[T_ -]?(?P<hour>\d\d)[-:.]?(?P<minute>\d\d)(?:{_SECOND})?"
_ZONE = r"(?:Z|(?P<sign>[+-])(?P<hours>\d\d)[-:]?(?P<minutes>\d\d)(?!\d))"

DATE = re.compile(rf"(?<!\d){_DAY}(?:(?:{_TIME})(?:{_ZONE})?(?![\d])|(?!\d))")
"""A day, and a time of it, as the harness, Inspect and people write them in names of files."""


def parse_date(name: str) -> datetime | None:
    """Return the date in a name, in UTC unless it names another zone, or None if there is no date.

    Of several it is one with a time of day, at the start of the name or else the last: a task may have
    a day in its own name.

    Examples
    --------
    >>> (str(parse_date("samples_gsm8k_2024-05-01T12-00-00.5.jsonl")),
    ...  str(parse_date("2024-05-01T12-00-00+02-00_arc_x.eval")))
    ('2024-05-01 12:00:00.500000+00:00', '2024-05-01 10:00:00+00:00')
    >>> str(parse_date("night-20240501.jsonl")), parse_date("mmlu_2024.jsonl")
    ('2024-05-01 00:00:00+00:00', None)
    """
    stamp = _find_date(name)
    return None if stamp is None else _parse_match(stamp)


def remove_date(name: str) -> str:
    """Return a name without its date, and without the punctuation that is then left at its ends.

    Examples
    --------
    >>> remove_date("gsm8k_2024-05-01"), remove_date("live_2024-06-24_2024-08-01T12-00-00"), remove_date("2024-05-01")
    ('gsm8k', 'live_2024-06-24', '')
    """
    stamp = _find_date(name)
    return name if stamp is None else (name[: stamp.start()] + name[stamp.end() :]).strip("_-. ")


def _find_date(name: str) -> re.Match[str] | None:
    valid = [match for match in DATE.finditer(name) if _parse_match(match) is not None]
    dates = [match for match in valid if match["hour"]] or valid
    if not dates:
        return None
    return dates[0] if dates[0].start() == 0 else dates[-1]


def _parse_match(match: re.Match[str]) -> datetime | None:
    fields = {key: int(value) for key, value in match.groupdict().items() if value and value.isdigit()}
    micro = int((match["fraction"] or "0").ljust(6, "0")[:6])
    try:
        date = datetime(
            fields["year"], fields["month"], fields["day"],
            fields.get("hour", 0), fields.get("minute", 0), fields.get("second", 0), micro, UTC,
        )  # fmt: skip
    except ValueError:
        return None
    offset = timedelta(hours=fields.get("hours", 0), minutes=fields.get("minutes", 0))
    return date + offset if match["sign"] == "-" else date - offset
