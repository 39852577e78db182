"""Simulate a year of nightly gates by several rules: `python -m benchmarks.gate_year` writes the table of benchmarks/results-error-rates.md.

A candidate and the baseline differ on one item in ten, half of them wins. After `QUIET` nights the candidate loses some
points more. Each night is judged by the exact two-sided test of 0/1 scores, as `sigdask run` does it, with one comparison.

- unchanged outputs: the candidate changes once, when the loss begins;
- new outputs, same items: half of the differences are the items' own and stay, the others are drawn every night;
- fresh items: every night is a sample of its own.

A second table has nights whose scores are no 0/1 items. There the swap test and the equal-score test are two tests, and
sigdask's own functions compare the systems and judge the gate.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.calibration.compared import MEAN, build_counts, compare_pairs, interleave
from benchmarks.calibration.coverage import F1
from sigdask.metrics.forms import Form
from sigdask.nightly.gate.judge import judge_rules
from sigdask.nightly.gate.rules import FALSE_ALARMS_PER_YEAR, Evidence, NotWorse

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results-gate-year.json"
TWO_TESTS = ROOT / "benchmarks" / "results-gate-two-tests.json"
PAGE = ROOT / "benchmarks" / "results-error-rates.md"
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


def format_table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
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


Night = Callable[[np.random.Generator, float, int], tuple[dict[str, NDArray[Any]], Form]]
"""A loss and a number of nights to the fields of candidate and baseline in each night, and the metric."""


def draw_answers(n_candidate: int, n_baseline: int) -> Night:
    """Return nights in which half of the answers of each system are right, and none is an answer of both."""

    def draw(rng: np.random.Generator, loss: float, n_nights: int) -> tuple[dict[str, NDArray[Any]], Form]:
        is_candidates = (np.arange(n_candidate + n_baseline) < n_candidate)[:, None]
        given = interleave(*(np.repeat(own, n_nights, axis=1).astype(int) for own in (is_candidates, ~is_candidates)))
        chance = np.tile([0.5 - loss, 0.5], n_nights)
        return {"right": given * (rng.random(given.shape) < chance), "given": given}, MEAN

    return draw


def draw_scores(rng: np.random.Generator, loss: float, n_nights: int) -> tuple[dict[str, NDArray[Any]], Form]:
    """Draw normal scores of 300 items, whose differences have the standard deviation 0.2."""
    base, noise = rng.normal(0.6, 0.2, (300, n_nights)), rng.normal(-loss, 0.2, (300, n_nights))
    scores = interleave(np.round(base + noise, 3), np.round(base, 3))
    return {"score": scores, "items": np.ones((300, 1), np.int64)}, MEAN


def draw_sentences(rng: np.random.Generator, loss: float, n_nights: int) -> tuple[dict[str, NDArray[Any]], Form]:
    """Draw 300 sentences with one gold span on average; the baseline finds 60 %, with one false span in three."""
    gold = rng.poisson(1.0, (300, n_nights))
    right = [rng.binomial(gold, 0.6 - lost) for lost in (loss, 0.0)]
    given = [correct + rng.poisson(0.3, gold.shape) for correct in right]
    return {"right": interleave(*right), "given": interleave(*given), "gold": interleave(gold, gold)}, F1


NIGHTS_OF_TWO_TESTS: dict[str, tuple[Night, tuple[float, ...]]] = {
    "precision, 100 answers against 1,000": (draw_answers(100, 1000), (0.0, 0.2)),
    "precision, 1,000 answers against 100": (draw_answers(1000, 100), (0.0, 0.2)),
    "mean of 300 normal scores": (draw_scores, (0.0, 0.03, 0.04)),
    "F1 of 300 sentences": (draw_sentences, (0.0, 0.08, 0.12)),
}
"""Draws of nights, and losses; of precision and recall in the last three."""

N_NULL, N_LOSS, NIGHTS_AT_ONCE = 1000, 500, 500


def iter_two_tests(n_null: int = N_NULL, n_loss: int = N_LOSS) -> Iterator[dict[str, Any]]:
    """Yield, for each kind of night, the shares of failures by the swap test alone and by sigdask's gate."""
    for name, (draw, losses) in NIGHTS_OF_TWO_TESTS.items():
        for loss in losses:
            rng = np.random.default_rng(zlib.crc32(f"{name}, {loss}".encode()))
            n_nights = n_loss if loss else n_null
            outcomes = [
                _judge_nights(*draw(rng, loss, min(NIGHTS_AT_ONCE, n_nights)))
                for _ in range(-(-n_nights // NIGHTS_AT_ONCE))
            ]
            swaps, failed, contested = np.concatenate(outcomes, axis=1).mean(axis=1).round(5).tolist()
            yield {
                "case": name, "loss": loss, "n_nights": n_nights, "swaps": swaps, "failed": failed,
                "contested": contested,
            }  # fmt: skip


def _judge_nights(fields: dict[str, NDArray[Any]], form: Form) -> BoolArray:
    """Return which nights fail by the swap test alone, fail the gate, and are contested, shape (3, n_nights)."""
    table = compare_pairs(build_counts(fields, name="night"), form=form, trials=9999).table
    nights = []
    for k in range(len(table)):
        rule = NotWorse(0.05, baseline=f"b{k}", false_alarms_per_year=FALSE_ALARMS_PER_YEAR)
        [finding] = judge_rules([rule], table.take(np.array([k])), Evidence(), runs_per_year=NIGHTS).rules[0].findings
        swap_fails = finding.gain < 0 and finding.p_value <= FALSE_ALARMS_PER_YEAR / NIGHTS
        nights.append((swap_fails, not finding.passed, finding.is_contested))
    return np.array(nights).T


def format_two_tests(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of the page's table of two tests."""
    yield "| scores | loss | failures by swaps alone | by both tests | contested |"
    yield "|---|---|---|---|---|"
    for row in rows:
        shares = [row[name] for name in ("swaps", "failed", "contested")]
        cells = [f"{100 * share:.0f} %" for share in shares]
        if not row["loss"]:
            errors = [NIGHTS * (share * (1 - share) / row["n_nights"]) ** 0.5 for share in shares]
            pairs = zip(shares, errors, strict=True)
            cells = [f"{NIGHTS * share:.1f} ± {error:.1f} a year" for share, error in pairs]
        loss = f"{100 * row['loss']:g} points" if row["loss"] else "none"
        yield f"| {row['case']} | {loss} | {' | '.join(cells)} |"


def write_tables(tables: Iterable[Iterable[str]], page: Path = PAGE) -> None:
    """Write the tables between the page's markers, one after another."""
    parts = page.read_text().split(BEGIN)
    for k, lines in enumerate(tables, 1):
        parts[k] = "\n".join(["", *lines, "", END]) + parts[k].partition(END)[2]
    page.write_text(BEGIN.join(parts))


def main() -> None:
    """Measure, save the results and write the tables."""
    start = time.process_time()
    kept: list[tuple[Path, list[dict[str, Any]]]] = [(RESULTS, [*iter_results()]), (TWO_TESTS, [*iter_two_tests()])]
    for path, rows in kept:
        path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    print(f"{time.process_time() - start:.0f} s of CPU")
    write_tables([format_table(kept[0][1]), ["", *format_two_tests(kept[1][1])]])


if __name__ == "__main__":
    main()
