"""Rankings: systems best first, with letters for those that are not significantly different."""

from __future__ import annotations

from collections.abc import Sequence

from sigdask.comparison.found.ranking import Ranking
from sigdask.comparison.presented.cells import MOST_LETTERS, letters_text, score_text
from sigdask.report.layout import lay_out
from sigdask.writing import printable

SHOWN = 40
"""Systems of each ranking that are shown unless all are asked for."""

MOST = 6
"""Rankings that are shown unless all are asked for."""


def text(found: Sequence[Ranking], alpha: float, width: int | None, *, everything: bool, verbose: bool) -> list[str]:
    """Return the rankings, a part each."""
    shown = found if everything else found[:MOST]
    most = None if everything else SHOWN
    parts = ["\n".join(_ranking(ranking, alpha, width, most, verbose=verbose or everything)) for ranking in shown]
    more = len(found) - len(shown)
    return [*parts, f"and {more:,} more rankings (--all shows all, --json FILE keeps them)"] if more else parts


def _ranking(ranking: Ranking, alpha: float, width: int | None, most: int | None, *, verbose: bool) -> list[str]:
    where = f" ({ranking.subset['column']} {ranking.subset['value']})" if ranking.subset else ""
    name = f"{ranking.test_set}: " if ranking.test_set else ""
    names, how, cells = _groups(ranking)
    shown = zip(ranking.systems[:most], cells[:most], strict=True)
    rows = [[str(s.rank), s.system, score_text(s.score), cell] for s, cell in shown]
    lines = [
        printable(f"{name}ranking by {ranking.metric}{where}; {how}"),
        lay_out(["rank", "system", "score", names], rows, width),
    ]
    if len(ranking.systems) > len(rows):
        lines.append(f"and {len(ranking.systems) - len(rows):,} more (--all shows all)")
    if verbose:
        power = f"{ranking.discriminative_power:.1%}"
        lines.append(f"discriminative power {power}: pairs with unadjusted p at most {alpha:g}")
    return lines


def _groups(ranking: Ranking) -> tuple[str, str, list[str]]:
    """Return the header, the meaning and the cells of a column that tells which systems are significantly different."""
    systems = ranking.systems
    if not any(s.letters for s in systems):
        return (
            "groups",
            "no letters, since too many groups of systems are not significantly different",
            [""] * len(systems),
        )
    if max(len(s.letters) for s in systems) <= MOST_LETTERS:
        how = "systems that share a letter are not significantly different"
        return "groups", how, [letters_text(s.letters) for s in systems]
    best = {*systems[0].letters}
    cells = ["" if best.isdisjoint(s.letters) else "=" for s in systems]
    return "", "= not significantly different from the best (--json FILE has the letters of all groups)", cells
