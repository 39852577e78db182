"""Results as a table and sentences on a terminal or in a pipe.

Names come from files: they are printed as they are, never read as markup.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Context, Decimal

from sigdask.classical import inflation
from sigdask.printable import printable
from sigdask.results import Ranking, Result, Results
from sigdask.shuffles import SCHEME

MOST_LETTERS = 20

SHOWN = 40
"""Comparisons shown unless all are asked for."""


def p_text(p: float) -> str:
    """Write a p-value with three digits, rounded up.

    Examples
    --------
    >>> p_text(0.00019836406863778244), p_text(0.25), p_text(1.0)
    ('0.000199', '0.25', '1')
    """
    if math.isnan(p):
        return "none"
    rounded = Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(repr(p)))
    return f"{float(rounded):.3g}"


def how(result: Result) -> str:
    """Say how p was had."""
    early = "stopped after " if result.stopped is not None and result.stopped.is_early else ""
    return "exact" if result.method == "exact" else f"approximate, {early}{result.n_trials:,} trials"


def render(results: Results, *, everything: bool = False, width: int | None = None) -> str:
    """Return the report as text.

    Parameters
    ----------
    results : Results
        What was found.
    everything : bool
        Show all comparisons; otherwise the 40 smallest p of a larger number.
    width : int, optional
        Columns of the terminal; unlimited when None (a pipe).
    """
    shown = _shown(results, everything=everything)
    lines = [_table(shown, results.alpha, width)]
    if len(shown) < len(results):
        n = sum(r.verdict(results.alpha) == "significant" if math.isnan(r.p_value) else r.p_value <= results.alpha
                for r in results)  # fmt: skip
        summary = f"{len(results):,} comparisons, {n:,} with p <= {results.alpha:g}"
        if results.family is not None:
            m = sum((r.p_adjusted or 0.0) <= results.alpha for r in results)
            summary += f", {m:,} after {results.family.adjust}"
        lines += [f"{summary}; the {len(shown)} smallest p are shown (--all shows all, --json FILE keeps them)", ""]
    lines += [line for ranking in results.rankings() for line in _ranking(ranking, results)]
    lines += _together(results, width)
    if len(shown) <= 12:
        lines += [line for result in shown for line in _sentences(result, results.alpha)] + [""]
    lines += _alarms(results) + _signatures(results)
    lines.append(citation(results))
    return "\n".join(lines)


def _shown(results: Results, *, everything: bool) -> list[Result]:
    if everything or len(results) <= SHOWN:
        return list(results)
    return sorted(results, key=lambda r: (r.p_adjusted or 0.0, _order(r), -abs(r.difference)))[:SHOWN]


def _table(shown: Sequence[Result], alpha: float, width: int | None) -> str:
    with_set = len({r.test_set for r in shown}) > 1
    with_subset = any(r.subset for r in shown)
    adjusted = any(r.p_adjusted is not None for r in shown)
    names = [*(["test set"] if with_set else []), *(["subset"] if with_subset else [])]
    names += ["A", "B", "metric", "score A", "score B", "A - B", "p", *(["p adjusted"] if adjusted else [])]
    rows = []
    for r in shown:
        row = [r.test_set] if with_set else []
        row += [r.subset["value"] if r.subset else ""] if with_subset else []
        row += [
            r.a,
            r.b,
            r.metric,
            score_text(r.score_a),
            score_text(r.score_b),
            f"{r.difference:+.4f}",
            p_text(r.p_value),
        ]
        row += [p_text(r.p_adjusted) if r.p_adjusted is not None else ""] if adjusted else []
        rows.append([*row, how(r), r.verdict(alpha) + (" !" if r.disagreements() else "")])
    return lay_out([*names, "method", ""], rows, width)


NUMBERS = (
    "score",
    "A - B",
    "mean A - B",
    "p",
    "p adjusted",
    "rank",
    "systems",
    "items",
    "units",
    "comparisons",
    "trials",
    "time",
)


def _order(result: Result) -> float:
    """Return what the smallest p come first by; where there is none, the end of the interval."""
    return result.p_interval[1] if math.isnan(result.p_value) else result.p_value


def lay_out(names: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> str:
    """Return a table as text, columns of `NUMBERS` to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        right = name in NUMBERS or name.startswith("score")
        table.add_column(name, justify="right" if right else "left", no_wrap=width is None)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console = Console(width=width or 10_000, no_color=True, highlight=False, legacy_windows=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().strip("\n").split("\n"))


def _ranking(ranking: Ranking, results: Results) -> Iterator[str]:
    """Show systems best first; those that share a letter are not told apart."""
    where = f" ({ranking.subset['column']} {ranking.subset['value']})" if ranking.subset else ""
    name = f"{ranking.test_set}: " if ranking.test_set else ""
    rows = [[str(s.rank), s.system, score_text(s.score), _letters(s.letters)] for s in ranking.systems[:SHOWN]]
    letters = "systems that share a letter are not told apart"
    if not any(s.letters for s in ranking.systems):
        letters = "no letters, since too many groups of systems are not told apart"
    yield printable(f"{name}ranking by {ranking.metric}{where}; {letters}")
    yield lay_out(["rank", "system", "score", "groups"], rows, None)
    if len(ranking.systems) > SHOWN:
        yield f"and {len(ranking.systems) - SHOWN} more (--json FILE keeps them)"
    yield f"discriminative power {ranking.discriminative_power:.1%}: pairs with unadjusted p <= {results.alpha:g}"
    yield ""


def _letters(letters: Sequence[str]) -> str:
    """Write letters, not more than can be read."""
    shown = letters[:MOST_LETTERS]
    more = f" and {len(letters) - len(shown)} more" if len(letters) > len(shown) else ""
    return ("" if all(len(x) == 1 for x in shown) else " ").join(shown) + more


def _together(results: Results, width: int | None) -> list[str]:
    if not results.together:
        return []
    adjusted = any(v.p_adjusted is not None for v in results.together)
    names = ["A", "B", "metric", "mean A - B", "p", *(["p adjusted"] if adjusted else [])]
    rows = [
        [
            v.a, v.b, v.metric, f"{v.difference:+.4f}", p_text(v.p_value),
            *([p_text(v.p_adjusted) if v.p_adjusted is not None else ""] if adjusted else []),
            _replicated(v.greater_in, v.n_sets, v.p_greater), _replicated(v.less_in, v.n_sets, v.p_less),
            "exact" if v.method == "exact" else f"approximate, {v.n_trials:,} trials",
        ]
        for v in results.together
    ]  # fmt: skip
    level = results.alpha / 2 if results[0].alternative == "two-sided" else results.alpha
    title = (
        f"over all sets: the mean difference, and in at least how many sets A scores above B, and below, each shown at "
        f"{level:g} for the pair alone"
    )
    return [title, lay_out([*names, "A above B in", "below in", "method"], rows, width), ""]


def _replicated(n: int, n_sets: int, p: float) -> str:
    return f"{n} of {n_sets}" + (f" (p <= {p_text(p)})" if n else "")


def plain_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of text: the first column to the left, numbers to the right."""
    cells = [list(names), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(names))]
    right = [k > 0 and all(row[k][:1].isdigit() for row in cells[1:]) for k in range(len(names))]
    lines = [
        "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)).rstrip()
        for row in cells
    ]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def score_text(score: float) -> str:
    """Write a score with four decimals; a large one with six digits."""
    return f"{score:.4f}" if abs(score) < 1e6 else f"{score:.6g}"


def _sentences(r: Result, alpha: float) -> Iterator[str]:
    where = f" ({r.subset['column']} {r.subset['value']})" if r.subset else ""
    better = r.better()
    if better is None:
        yield printable(f"{r.metric}{where}: {r.a} and {r.b} score the same, {score_text(r.score_a)}.")
    else:
        other, high, low = (r.b, r.score_a, r.score_b) if better == r.a else (r.a, r.score_b, r.score_a)
        sign = "=" if r.method == "exact" else "<="
        sided = {"two-sided": "two-sided", "greater": "one-sided, A > B", "less": "one-sided, A < B"}[r.alternative]
        yield printable(
            f"{r.metric}{where}: {better} is better than {other}, {score_text(high)} against {score_text(low)}; "
            f"p {sign} {p_text(r.p_value)} ({how(r)}; {sided}; {r.n_discordant:,} of {r.n_units:,} units differ): "
            f"{_adjusted(r)}{r.verdict(alpha)}{'' if r.verdict(alpha).startswith('undecided') else f' at {alpha:g}'}."
        )
    for check in r.checks:
        if check.verdict != "not applicable":
            yield f"    {check.name} {check.verdict}: {check.detail}"
    if r.r12 is not None:
        cost = inflation(round(r.r12, 3))
        times = "without bound" if math.isinf(cost) else f"{inflation(r.r12):.2f} times"
        yield f"    r12 = {r.r12:.3f}: a test that takes the systems for independent has intervals {times} as wide"
    for d in r.dependence:
        yield printable(
            f"    within {d.column}: ICC {round(d.icc, 3) + 0.0:.3f}, design effect {d.design_effect:.2f} "
            f"(F test {f'p = {d.p_value:.2g}' if d.p_value > 0 else 'p < 1e-300'})"
        )
    for b in r.beside:
        sign = "<=" if b.method == "approximate" else "="
        yield printable(f"    by {b.unit} ({b.n_units:,} units) instead of {r.unit}: p {sign} {p_text(b.p_value)}")
    for note in r.warnings:
        yield printable(f"    note: {note}")


def _adjusted(r: Result) -> str:
    return "" if r.p_adjusted is None else f"adjusted p = {p_text(r.p_adjusted)}, "


def _alarms(results: Results) -> list[str]:
    lines = [
        printable(f"!!! CROSS-CHECK DISAGREES: {r.a} and {r.b} by {r.metric}: {check.name}: {check.detail}")
        for r in results
        for check in r.disagreements()
    ]
    return [*lines, "!!! Do not use these p-values; run `sigdask verify` and report this.", ""] if lines else []


def _signatures(results: Results) -> list[str]:
    """Say once for each metric how the scorer library counted."""
    known = {r.metric: r.signature for r in results if r.signature is not None}
    return [printable(f"{metric}: {signature}") for metric, signature in known.items()]


def citation(results: Results) -> str:
    """Say what makes the results repeatable."""
    from importlib.metadata import version

    first = results[0]
    return (
        f"sigdask {version('sigdask')}, scheme {SCHEME}, seed {results.seed}: stratified shuffling by {first.unit}, "
        f"{first.alternative}, alpha {results.alpha:g}{_family(results)}"
    )


def _family(results: Results) -> str:
    note = results.family
    if note is None:
        return ""
    counted = "" if note.n_trials is None else f", {note.n_trials:,} {'arrangements' if note.exact else 'trials'}"
    return f"; p adjusted by {ADJUSTED[note.adjust]} over {note.n_comparisons:,} comparisons{counted}"


ADJUSTED = {
    "holm": "Holm",
    "hochberg": "Hochberg",
    "bh": "Benjamini-Hochberg (false discovery rate)",
    "by": "Benjamini-Yekutieli (false discovery rate)",
    "max-t": "step-down max-T on shared swaps",
    "max-t:raw": "step-down max-T, not studentised, on shared swaps",
    "single-step-max-t": "single-step max-T on shared swaps",
    "tukey": "randomised Tukey HSD",
}
