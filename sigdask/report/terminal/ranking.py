"""Rankings: systems best first, with letters for those that are not significantly different."""

from __future__ import annotations

from sigdask.report.layout import lay_out
from sigdask.report.summary.verdict import Verdict
from sigdask.report.tables.cells import MOST_LETTERS, letters_text
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.ranking import SystemRanking
from sigdask.statistics.rounding import score_text
from sigdask.text import printable

SHOWN = 40
"""Systems of each ranking that are shown unless all are asked for."""

MOST = 6
"""Rankings that are shown unless all are asked for."""


def text(
    results: ComparisonResults, found: Verdict, width: int | None, *, everything: bool, verbose: bool
) -> list[str]:
    """Return the rankings of some results, a part each.

    Parameters
    ----------
    results : ComparisonResults
        What was found.
    found : Verdict
        On these.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    everything, verbose : bool
        Whether all are shown, and with what is told of all pairs.
    """
    rankings = results.rankings()
    shown = rankings if everything else rankings[:MOST]
    most = None if everything else SHOWN
    best = {(one.test_set, str(one.subset), one.metric): {*one.names} for one in found.best}
    parts = []
    for ranking in shown:
        own = best.get((ranking.test_set, str(ranking.subset), ranking.metric), set())
        parts.append("\n".join(_ranking(ranking, own, width, most)))
        if verbose or everything:
            power = f"{ranking.discriminative_power:.1%}"
            parts[-1] += f"\ndiscriminative power {power}: pairs with unadjusted p at most {results.alpha:g}"
    more = len(rankings) - len(shown)
    return [*parts, f"and {more:,} more rankings (--all shows all, --json FILE keeps them)"] if more else parts


def _ranking(ranking: SystemRanking, best: set[str], width: int | None, most: int | None) -> list[str]:
    where = f" ({ranking.subset['column']} {ranking.subset['value']})" if ranking.subset else ""
    name = f"{ranking.test_set}: " if ranking.test_set else ""
    header, how, cells = _groups(ranking, best)
    shown = zip(ranking.systems[:most], cells[:most], strict=True)
    rows = [[str(s.rank), s.system, score_text(s.score), cell] for s, cell in shown]
    lines = [
        printable(f"{name}ranking by {ranking.metric}{where}; {how}"),
        lay_out(["rank", "system", "score", header], rows, width),
    ]
    more = len(ranking.systems) - len(rows)
    return [*lines, f"and {more:,} more (--all shows all)"] if more else lines


def _groups(ranking: SystemRanking, best: set[str]) -> tuple[str, str, list[str]]:
    """Return the header, the meaning and the cells of a column that tells which systems are significantly different."""
    letters = [s.letters for s in ranking.systems]
    if all(letters) and (not best or max(map(len, letters)) <= MOST_LETTERS):
        how = "systems that share a letter are not significantly different"
        return "groups", how, [*map(letters_text, letters)]
    cells = ["=" if s.system in best else "" for s in ranking.systems]
    return "", "= not significantly different from the best (groups are too many for letters)", cells
