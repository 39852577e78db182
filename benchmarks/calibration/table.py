"""Save and load measured error rates, and write them as tables of benchmarks/results-error-rates.md."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.calibration.measuring import MeasuredRate

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results-calibration.json"
PAGE = ROOT / "benchmarks" / "results-error-rates.md"
BEGIN, END = (f"<!-- made by python -m benchmarks.calibration: {edge} -->" for edge in ("begin", "end"))

TITLES = {
    "pairs": ("systems of one mean, units", "Share of data sets in which a difference is found at 0.05."),
    "exact": ("systems of one mean, units", "The same with exact p."),
    "classical": (
        "systems of one mean, units",
        "Share of data sets in which a difference is found at 0.05. The last tests treat the systems as independent.",
    ),
    "checks": ("systems of one mean, units", "Share of correct counts that a cross-check reports as different."),
    "dependence": (
        "50 clusters of 10 items, of one mean",
        "Share of data sets in which a difference is found (columns 2 and 3), or dependence (columns 4 and 5).",
    ),
    "equal scores": (
        "systems of equal scores",
        "Share of data sets in which a difference is found at 0.05.",
    ),
    "true differences": (
        "systems of which one is better; units",
        "Share of data sets in which the difference is found at 0.05.",
    ),
    "scale": (
        "metric of 100 predictions",
        "Share of data sets in which a difference is found at 0.05, if there is none and if there is one.",
    ),
    "subsets": (
        "two equal systems",
        "Share of data sets in which one system is better in at least one subset, at 0.05 (one-sided).",
    ),
    "families": (
        "8 systems, 30 units",
        "Share of data sets in which any false difference is found. Rows with *better* also have true differences.",
    ),
    "discoveries": ("8 systems, 30 units", "Mean share of false differences among all that are found."),
    "intervals": (
        "95 % intervals of the difference",
        "Share of intervals that contain the true difference; 0.93 is enough. Data sets without discordant units are left out.",
    ),
    "simultaneous intervals": (
        "8 systems of one mean, 30 units",
        "Share of data sets in which all simultaneous intervals contain the true differences; 0.93 is enough.",
    ),
    "across sets": (
        "sets of 10, 20 and 50 units",
        "Share of pairs reported to differ by their mean.",
    ),
    "margins": (
        "a system that is worse by just the margin",
        "Share of data sets in which the system passes as not worse by the margin. Rows with *items* are enumerated, as one data set.",
    ),
    "labellings": (
        "independent labellings",
        "Share of labellings that the test calls dependent on the gold labels.",
    ),
    "recipes": (
        "equal recipes with several runs",
        "Share of data sets in which a difference is found at 0.05: over items, over runs (unpaired), by both, and by the test of recipes; last, its power for recipes that differ by 3 points.",
    ),
    "gates": ("systems", "Share of runs that fail."),
    "rankings": (
        "two measures, equally good, of 200 candidates",
        "Share of lists in which a difference is found at 0.05, with n = 20, 50 and 100.",
    ),
    "intervals of rankings": (
        "95 % intervals of precision",
        "Share of intervals that contain the true precision. With parts, this is the precision in all parts together.",
    ),
    "real": (
        "real outputs, swapped at random",
        "Share of data sets in which a difference is found at 0.05.",
    ),
    "power": (
        "one of two systems is better",
        "Share of data sets in which the difference is found. In brackets: the power of an exact test.",
    ),
    "foretold power": (
        "one of two systems is better",
        "Mean of the powers that `sigdask power` predicts from samples. In brackets: the true power.",
    ),
    "power of families": ("8 systems, 30 units", "Share of the true differences that are found."),
}
"""The head of each table's first column, and the meaning of its numbers."""

SHOWN_NAMES = {"foretold power": "predicted power"}
"""Titles of tables whose name, which determines their random numbers, is another."""

BLOCKS = (
    ("pairs", "exact", "checks", "real", "dependence", "scale", "subsets", "recipes"),
    ("classical",),
    ("equal scores", "true differences"),
    ("intervals", "intervals of rankings", "simultaneous intervals"),
    ("families", "discoveries", "across sets", "power of families"),
    ("margins", "gates"),
    ("power", "foretold power", "rankings", "labellings"),
)
"""The tables between each pair of markers of the page."""


def save_results(rates: Iterable[MeasuredRate], path: Path = RESULTS) -> None:
    """Save measured rates; they replace saved ones of the same rows."""
    old = {(m.table, m.row, m.procedure): m for m in load_results(path)} if path.is_file() else {}
    new = {(m.table, m.row, m.procedure): m for m in rates}
    rows = [json.dumps(m.as_json(), ensure_ascii=False) for m in {**old, **new}.values()]
    path.write_text("[\n" + ",\n".join(rows) + "\n]\n")


def load_results(path: Path = RESULTS) -> list[MeasuredRate]:
    """Load the saved rates."""
    return [MeasuredRate(**row) for row in json.loads(path.read_text())]


def write_tables(rates: Sequence[MeasuredRate], page: Path = PAGE) -> None:
    """Write the tables between the markers of the page."""
    parts = page.read_text().split(BEGIN)
    for k, tables in enumerate(BLOCKS, 1):
        parts[k] = "\n".join(["", *format_tables(rates, tables), END]) + parts[k].partition(END)[2]
    page.write_text(BEGIN.join(parts))


def format_tables(rates: Sequence[MeasuredRate], tables: Collection[str] = TITLES) -> Iterator[str]:
    """Yield the lines of some tables, by default of all."""
    for name in tables:
        table_rates = [m for m in rates if m.table == name]
        if table_rates:
            yield from _format_table(name, table_rates)


def _format_table(name: str, rates: Sequence[MeasuredRate]) -> Iterator[str]:
    rows_are, meaning = TITLES[name]
    procedures = list(dict.fromkeys(m.procedure for m in rates))
    by_cell = {(m.row, m.procedure): m for m in rates}
    level = find_common_level(rates)
    shown_rows = [row for row in dict.fromkeys(m.row for m in rates) if _has_share(m for m in rates if m.row == row)]
    yield ""
    title = SHOWN_NAMES.get(name, name)
    yield f"### {title[0].upper()}{title[1:]}"
    yield ""
    yield f"{meaning}{_describe_sizes(rates)}{_describe_errors(rates)}"
    if len(shown_rows) < len({m.row for m in rates}):
        yield "Rows with 0.000 in every column are left out."
    yield ""
    yield f"| {rows_are} | {' | '.join(procedures)} |"
    yield "|---" * (1 + len(procedures)) + "|"
    for row in shown_rows:
        cells = (by_cell.get((row, procedure)) for procedure in procedures)
        yield f"| {row} | {' | '.join('' if m is None else format_cell(m, level) for m in cells)} |"


def _has_share(rates: Iterable[MeasuredRate]) -> bool:
    return any(m.share >= 0.0005 or m.is_wrong for m in rates)


def find_common_level(rates: Sequence[MeasuredRate]) -> float:
    """Return the value with which all shares of a table are compared, or 0.05 if there are several."""
    levels = {m.expected for m in rates if _is_compared(m)}
    return levels.pop() if len(levels) == 1 else 0.05


def _describe_sizes(rates: Sequence[MeasuredRate]) -> str:
    row_sizes: dict[str, int] = {}
    for m in rates:  # some columns are shares of what another column has
        row_sizes[m.row] = max(m.n_sets, row_sizes.get(m.row, 0))
    min_sets, max_sets = min(row_sizes.values()), max(row_sizes.values())
    if max_sets <= 1:
        return ""
    return (
        f" {min_sets:,} data sets per row."
        if min_sets == max_sets
        else f" {min_sets:,} to {max_sets:,} data sets per row."
    )


def _describe_errors(rates: Sequence[MeasuredRate]) -> str:
    errors = [m.error for m in rates if m.error]
    return f" The largest standard error is {max(errors):.3f}." if errors else ""


def _is_compared(m: MeasuredRate) -> bool:
    return m.should != "nothing" or m.table in {"power", "foretold power"}


def format_cell(m: MeasuredRate, level: float = 0.05) -> str:
    """Format a share and, if it is not the level, its expected value in brackets; bold if wrong.

    Examples
    --------
    >>> format_cell(MeasuredRate("pairs", "normal, 6", "sampled", 18579, 0.0321, 0.0013, 0.0325, "at most"))
    '0.032 (0.033)'
    >>> format_cell(MeasuredRate("pairs", "normal, 6", "sampled", 18579, 0.0921, 0.0021, 0.05, "at most"))
    '**0.092**'
    """
    share = f"**{m.share:.3f}**" if m.is_wrong else f"{m.share:.3f}"
    return share + (f" ({m.expected:.3f})" if _is_compared(m) and abs(m.expected - level) > 5e-4 else "")
