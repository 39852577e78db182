"""Results as a table and sentences on a terminal or in a pipe.

Names come from files: they are printed as they are, never read as markup.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Context, Decimal

from sigdask.classical import inflation
from sigdask.results import Result, Results
from sigdask.shuffles import SCHEME

SHOWN = 40
"""Comparisons shown unless all are asked for."""


def p_text(p: float) -> str:
    """Write a p-value with three digits, rounded up.

    Examples
    --------
    >>> p_text(0.00019836406863778244), p_text(0.25), p_text(1.0)
    ('0.000199', '0.25', '1')
    """
    rounded = Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(repr(p)))
    return f"{float(rounded):.3g}"


def how(result: Result) -> str:
    """Say how p was had."""
    return "exact" if result.method == "exact" else f"approximate, {result.n_trials:,} trials"


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
        n = sum(r.p_value <= results.alpha for r in results)
        summary = f"{len(results):,} comparisons, {n:,} with p <= {results.alpha:g}; the {len(shown)} smallest p are "
        lines += [summary + "shown (--all shows all, --json FILE keeps them)", ""]
    if len(shown) <= 12:
        lines += [line for result in shown for line in _sentences(result, results.alpha)] + [""]
    lines += _alarms(results) + _signatures(results)
    lines.append(_citation(results))
    return "\n".join(lines)


def _shown(results: Results, *, everything: bool) -> list[Result]:
    if everything or len(results) <= SHOWN:
        return list(results)
    return sorted(results, key=lambda r: (r.p_value, -abs(r.difference)))[:SHOWN]


def _table(shown: Sequence[Result], alpha: float, width: int | None) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    with_subset = any(r.subset for r in shown)
    names = [*(["subset"] if with_subset else []), "A", "B", "metric", "score A", "score B", "A - B", "p", "method", ""]
    for name in names:
        table.add_column(
            name, justify="right" if name[:5] in {"score", "A - B", "p"} else "left", no_wrap=width is None
        )
    for r in shown:
        row = [r.subset["value"] if r.subset else ""] if with_subset else []
        row += [r.a, r.b, r.metric, _score(r.score_a), _score(r.score_b), f"{r.difference:+.4f}", p_text(r.p_value)]
        row += [how(r), r.verdict(alpha) + (" !" if r.disagreements() else "")]
        table.add_row(*(Text(_printable(cell)) for cell in row))
    console = Console(width=width or 10_000, no_color=True, highlight=False, legacy_windows=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().strip("\n").split("\n"))


def _score(score: float) -> str:
    return f"{score:.4f}" if abs(score) < 1e6 else f"{score:.6g}"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _sentences(r: Result, alpha: float) -> Iterator[str]:
    where = f" ({r.subset['column']} {r.subset['value']})" if r.subset else ""
    better = r.better()
    if better is None:
        yield _printable(f"{r.metric}{where}: {r.a} and {r.b} score the same, {_score(r.score_a)}.")
    else:
        other, high, low = (r.b, r.score_a, r.score_b) if better == r.a else (r.a, r.score_b, r.score_a)
        sign = "=" if r.method == "exact" else "<="
        sided = {"two-sided": "two-sided", "greater": "one-sided, A > B", "less": "one-sided, A < B"}[r.alternative]
        yield _printable(
            f"{r.metric}{where}: {better} is better than {other}, {_score(high)} against {_score(low)}; "
            f"p {sign} {p_text(r.p_value)} ({how(r)}; {sided}; {r.n_discordant:,} of {r.n_units:,} units differ): "
            f"{r.verdict(alpha)}{'' if r.is_undecided(alpha) else f' at {alpha:g}'}."
        )
    for check in r.checks:
        if check.verdict != "not applicable":
            yield f"    {check.name} {check.verdict}: {check.detail}"
    if r.r12 is not None:
        cost = inflation(r.r12)
        times = "without bound" if math.isinf(cost) else f"{cost:.2f} times"
        yield f"    r12 = {r.r12:.3f}: a test that takes the systems for independent has intervals {times} as wide"
    for note in r.warnings:
        yield _printable(f"    note: {note}")


def _alarms(results: Results) -> list[str]:
    lines = [
        _printable(f"!!! CROSS-CHECK DISAGREES: {r.a} and {r.b} by {r.metric}: {check.name}: {check.detail}")
        for r in results
        for check in r.disagreements()
    ]
    return [*lines, "!!! Do not use these p-values; run `sigdask verify` and report this.", ""] if lines else []


def _signatures(results: Results) -> list[str]:
    """Say once for each metric how the scorer library counted."""
    known = {r.metric: r.signature for r in results if r.signature is not None}
    return [_printable(f"{metric}: {signature}") for metric, signature in known.items()]


def _citation(results: Results) -> str:
    from importlib.metadata import version

    first = results[0]
    return (
        f"sigdask {version('sigdask')}, scheme {SCHEME}, seed {results.seed}: stratified shuffling by {first.unit}, "
        f"{first.alternative}, alpha {results.alpha:g}"
    )
