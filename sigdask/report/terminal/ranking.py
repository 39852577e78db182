"""Rankings as plain text: systems best first, with letters for those not significantly different."""

from __future__ import annotations

from sigdask.report.layout import format_table
from sigdask.report.summary.verdict import Verdict
from sigdask.report.tables.cells import MOST_LETTERS, format_letters
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.ranking import SystemRanking
from sigdask.statistics.rounding import format_score
from sigdask.text import make_printable

MOST_SYSTEMS = 40
"""Systems of each ranking that are shown unless all are asked for."""

MOST_RANKINGS = 6
"""Rankings that are shown unless all are asked for."""


def format_rankings(
    results: ComparisonResults, summary: Verdict, width: int | None, *, everything: bool, verbose: bool
) -> list[str]:
    """Return the rankings of results, one part for each.

    Parameters
    ----------
    results : ComparisonResults
        What was found.
    summary : Verdict
        On these.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    everything, verbose : bool
        Whether all are shown, and with what is told of all pairs.
    """
    rankings = results.rankings()
    shown = rankings if everything else rankings[:MOST_RANKINGS]
    n_systems = None if everything else MOST_SYSTEMS
    best = {(group.test_set, str(group.subset), group.metric): {*group.names} for group in summary.best}
    parts = []
    for ranking in shown:
        best_systems = best.get((ranking.test_set, str(ranking.subset), ranking.metric), set())
        parts.append("\n".join(_format_ranking(ranking, best_systems, width, n_systems)))
        if verbose or everything:
            power = f"{ranking.discriminative_power:.1%}"
            parts[-1] += f"\ndiscriminative power {power}: pairs with unadjusted p at most {results.alpha:g}"
    n_more = len(rankings) - len(shown)
    return [*parts, f"and {n_more:,} more rankings (--all shows all, --json FILE keeps them)"] if n_more else parts


def _format_ranking(ranking: SystemRanking, best: set[str], width: int | None, n_systems: int | None) -> list[str]:
    subset_text = f" ({ranking.subset['column']} {ranking.subset['value']})" if ranking.subset else ""
    name = f"{ranking.test_set}: " if ranking.test_set else ""
    header, meaning, cells = _build_group_column(ranking, best)
    shown = zip(ranking.systems[:n_systems], cells[:n_systems], strict=True)
    rows = [[str(s.rank), s.system, format_score(s.score), cell] for s, cell in shown]
    lines = [
        make_printable(f"{name}ranking by {ranking.metric}{subset_text}; {meaning}"),
        format_table(["rank", "system", "score", header], rows, width),
    ]
    n_more = len(ranking.systems) - len(rows)
    return [*lines, f"and {n_more:,} more (--all shows all)"] if n_more else lines


def _build_group_column(ranking: SystemRanking, best: set[str]) -> tuple[str, str, list[str]]:
    """Return header, meaning and cells of the column of letters, or of "=" if there are too many letters."""
    letters = [s.letters for s in ranking.systems]
    if all(letters) and (not best or max(map(len, letters)) <= MOST_LETTERS):
        meaning = "systems that share a letter are not significantly different"
        return "groups", meaning, [*map(format_letters, letters)]
    cells = ["=" if s.system in best else "" for s in ranking.systems]
    return "", "= not significantly different from the best (groups are too many for letters)", cells
