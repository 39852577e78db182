"""Simulate a year of nightly gates by several rules: `python -m benchmarks.gate_year` writes the table of docs/error-rates/nights.md.

A candidate and the baseline differ on one item in ten, half of them wins. After `QUIET` nights the candidate loses some
points more. Each night is judged by the exact two-sided test of 0/1 scores, as `sigdask run` does it, with one comparison.

- unchanged outputs: the candidate changes once, when the loss begins;
- new outputs, same items: half of the differences are the items' own and stay, the others are drawn every night;
- fresh items: every night is a sample of its own.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sigdask.nightly.gate.rules import FALSE_ALARMS_PER_YEAR

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results-gate-year.json"
PAGE = ROOT / "docs" / "error-rates" / "nights.md"
BEGIN, END = (f"<!-- made by python -m benchmarks.gate_year: {edge} -->" for edge in ("begin", "end"))

NIGHTS, QUIET, N_YEARS = 365, 100, 2000
DIFFERING_SHARE = 0.1
"""Share of items on which the two systems differ while nothing is worse."""

ITEMS, LOSSES = (300, 3000), (0.01, 0.02, 0.05)
UNCHANGED, SAME_ITEMS, FRESH = CASES = ("unchanged outputs", "new outputs, same items", "fresh items")
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Rule = Callable[[NDArray[np.int64], NDArray[np.int64]], BoolArray]
"""Wins and losses of each observation, shape (n_years, n_observations), to alarms."""


def compute_p_values(wins: NDArray[np.int64], losses: NDArray[np.int64]) -> FloatArray:
    """Return the exact two-sided p-value of each night, 1 unless losses outnumber wins.

    Examples
    --------
    >>> compute_p_values(np.array([0, 14]), np.array([14, 0])).round(6).tolist()
    [0.000122, 1.0]
    """
    p = 2 * special.bdtrc(losses - 1, wins + losses, 0.5)
    return np.where(losses > wins, np.minimum(p, 1.0), 1.0)


def build_level_rule(level: float) -> Rule:
    """Return the rule that tests every night at one level."""
    return lambda wins, losses: compute_p_values(wins, losses) <= level


DEFAULT_RULE = f"false_alarms_per_year = {FALSE_ALARMS_PER_YEAR:g}"
RULES: dict[str, Rule] = {
    DEFAULT_RULE: build_level_rule(FALSE_ALARMS_PER_YEAR / NIGHTS),
    "alpha = 0.05": build_level_rule(0.05),
}


def draw_years(
    case: str, n_items: int, loss: float, n_years: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw wins and losses of each observation of some years; a loss of 0 means quiet nights only.

    An item is won, lost or neither. So wins and losses are counts of one multinomial distribution.
    """
    half = DIFFERING_SHARE / 2
    if case == UNCHANGED:
        observations = [
            _draw_counts(np.full((n_years, 1), n_items), half, half + each, rng) for each in dict.fromkeys((0.0, loss))
        ]
        return _join(observations)
    lasting_share = 0.5 if case == SAME_ITEMS else 0.0
    lasting, passing = lasting_share * half, (1 - lasting_share) * half
    lasting_loss, passing_loss = lasting_share * loss, (1 - lasting_share) * loss
    shares = [lasting, lasting, lasting_loss]
    n_won, n_lost, n_newly_lost, n_other = rng.multinomial(n_items, [*shares, 1 - sum(shares)], n_years).T[..., None]
    nights = []
    for n_nights, share, night_loss, n_lasting, n_drawn in (
        (QUIET, 1 - 2 * lasting, 0.0, n_lost, n_other + n_newly_lost),
        (NIGHTS - QUIET, 1 - sum(shares), passing_loss, n_lost + n_newly_lost, n_other),
    ):
        n_items_of_night = np.broadcast_to(n_drawn, (n_years, n_nights))
        wins, losses = _draw_counts(n_items_of_night, passing / share, (passing + night_loss) / share, rng)
        nights.append((n_won + wins, n_lasting + losses))
    return _join(nights)


def _draw_counts(
    n_items: NDArray[np.int64], win_share: float, loss_share: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    counts = rng.multinomial(n_items, [win_share, loss_share, 1 - win_share - loss_share])
    return counts[..., 0], counts[..., 1]


def _join(
    nights: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.hstack([wins for wins, _ in nights]), np.hstack([losses for _, losses in nights])


def iter_results(n_years: int = N_YEARS) -> Iterator[dict[str, Any]]:
    """Yield a row of results for each case, number of items and rule."""
    for case in CASES:
        for n_items in ITEMS:
            yield from _iter_rows(case, n_items, n_years)


def _iter_rows(case: str, n_items: int, n_years: int) -> Iterator[dict[str, Any]]:
    years = {}
    for loss in (0.0, *LOSSES):
        rng = np.random.default_rng(zlib.crc32(f"{case}, {n_items}, {loss}".encode()))
        years[loss] = draw_years(case, n_items, loss, n_years, rng)
    for name, rule in RULES.items():
        n_alarms = rule(*years[0.0]).sum(axis=1)
        row: dict[str, Any] = {
            "case": case, "n_items": n_items, "rule": name, "n_years": n_years,
            "false_alarms": round(float(n_alarms.mean()), 4),
            "error": round(float(n_alarms.std(ddof=1)) / n_years**0.5, 4),
            "years_with_some": round(float((n_alarms > 0).mean()), 4),
            "losses": {f"{100 * loss:g}": _compute_delay(rule(*years[loss]), case) for loss in LOSSES},
        }  # fmt: skip
        yield row


def _compute_delay(alarm: BoolArray, case: str) -> dict[str, float | None]:
    """Return the median nights until a loss is detected, and the share of years that detect it."""
    loss_alarms = alarm[:, 1 if case == UNCHANGED else QUIET :]
    caught = loss_alarms.any(axis=1)
    nights = np.where(caught, loss_alarms.argmax(axis=1) + 1, np.inf)
    median = float(np.quantile(nights, 0.5, method="higher"))
    return {"median": median if np.isfinite(median) else None, "caught": round(float(caught.mean()), 4)}


def format_table(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of the page's tables."""
    for case in CASES:
        yield ""
        yield f"**{case[0].upper()}{case[1:]}**"
        yield ""
        losses = " | ".join(f"{100 * loss:g} point{'s' if loss > 0.01 else ''}" for loss in LOSSES)
        yield f"| rule | items | false alarms a year | years with one | {losses} |"
        yield "|---" * (4 + len(LOSSES)) + "|"
        for row in (row for row in rows if row["case"] == case):
            cells = [_format_cell(row["losses"].get(f"{100 * loss:g}")) for loss in LOSSES]
            alarms = f"{row['false_alarms']:.2f}"
            with_alarm = f"{100 * row['years_with_some']:.0f} %"
            yield f"| {row['rule']} | {row['n_items']:,} | {alarms} | {with_alarm} | {' | '.join(cells)} |"


def _format_cell(delay: Mapping[str, float | None] | None) -> str:
    if delay is None:
        return ""
    caught, median = delay["caught"] or 0.0, delay["median"]
    share = f"{100 * caught:.0f} %"
    if 0 < caught < 0.005 or 0.995 <= caught < 1:
        share = "> 99 %" if caught > 0.5 else "< 1 %"
    return f"{'–' if median is None else f'{median:g}'} ({share})"


def write_table(rows: list[Mapping[str, Any]], page: Path = PAGE) -> None:
    """Write the table between the page's markers."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text("\n".join([before + BEGIN, *format_table(rows), "", END]) + after)


def main() -> None:
    """Measure, save the results and write the table."""
    start = time.process_time()
    rows = [*iter_results()]
    RESULTS.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    print("\n".join(format_table(rows)))
    print(f"{time.process_time() - start:.0f} s of CPU")
    write_table(rows)


if __name__ == "__main__":
    main()
