"""Tables for papers of what is found beside comparisons: rankings, tests of independence, power."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sigdask.report.tables.cells import letters_text
from sigdask.report.tables.comparisons import NONE, SIGNIFICANT, UNDECIDED, numbers, p_texts
from sigdask.report.tables.model import PaperTable, TableColumn, TableSection
from sigdask.results.comparisons import made_by
from sigdask.statistics.letters import best
from sigdask.text import count_noun, listed

if TYPE_CHECKING:
    from sigdask.analysis.candidate_rankings.results import RankingEvaluation
    from sigdask.analysis.independence.results import IndependenceResults
    from sigdask.analysis.power.results import PowerResults
    from sigdask.results.ranking import SystemRanking
    from sigdask.statistics.power.crossing import Estimate


def of_ranking(ranking: SystemRanking) -> PaperTable:
    """Return systems by score, with their letters."""
    systems = ranking.systems
    columns = (
        TableColumn("rank", [f"{one.rank}" for one in systems]),
        TableColumn("system", [one.system for one in systems], is_name=True),
        TableColumn(
            ranking.metric, numbers(np.array([one.score for one in systems]), None),
            bold=np.array([one.rank == 1 for one in systems], np.bool_),
            marks=[letters_text(one.letters) for one in systems],
        ),
    )  # fmt: skip
    where = [ranking.test_set] if ranking.test_set else []
    where += [f"{ranking.subset['column']}: {ranking.subset['value']}"] if ranking.subset else []
    legend = ("Best scores in bold.", "Systems that share a letter are not significantly different.")
    title = f"Ranking by {ranking.metric}{f' on {listed(where)}' if where else ''}."
    return PaperTable(title, (TableSection("", columns),), legend)


def of_evaluation(found: RankingEvaluation) -> list[PaperTable]:
    """Return the precision of the n best, a row a measure, and measures compared by average precision."""
    rows = found.precision or found.sampled
    measures = sorted(found.measures, key=lambda one: -one.average_precision)
    names = [one.measure for one in measures]
    columns = [TableColumn("measure", names, is_name=True)]
    average = np.array([one.average_precision for one in measures])
    if not np.isnan(average).any():
        columns.append(TableColumn("AP", numbers(average, None), bold=best(average)))
    precision = {(row.measure, row.n): 100 * row.precision for row in rows}
    for n in sorted({row.n for row in rows}):
        own = np.array([precision.get((name, n), math.nan) for name in names])
        columns.append(TableColumn(f"n = {n:,}", numbers(own, 1), bold=best(own)))
    title = f"Precision in % of the n best of {found.n_candidates:,} candidates, {found.n_true:,} of them true."
    method = (f"Ties: {found.ties}. sigdask {made_by()}, seed {found.seed}.",)
    tables = [
        PaperTable(title, (TableSection("", tuple(columns)),), ("Best in bold.",), method, ("evert2004", "sigdask"))
    ]
    return [*tables, *_by_average(found)]


def _by_average(found: RankingEvaluation) -> Iterator[PaperTable]:
    pairs = found.average_precision
    if not pairs:
        return
    values = {
        name: np.array([getattr(one, name) for one in pairs], np.float64)
        for name in ("average_precision_a", "average_precision_b", "difference", "p_value", "p_adjusted")
    }
    columns = (
        TableColumn("A", [one.a for one in pairs], is_name=True),
        TableColumn("B", [one.b for one in pairs], is_name=True),
        TableColumn("AP of A", numbers(values["average_precision_a"], None), bold=values["difference"] > 0),
        TableColumn("AP of B", numbers(values["average_precision_b"], None), bold=values["difference"] < 0),
        TableColumn("A - B", numbers(values["difference"], None, sign=True)),
        TableColumn("p", p_texts(values["p_value"], found.alpha), is_p=True),
        TableColumn(
            "adjusted p", p_texts(values["p_adjusted"], found.alpha), is_p=True,
            marks=[SIGNIFICANT if one.p_adjusted <= found.alpha else "" for one in pairs],
        ),
    )  # fmt: skip
    method = (
        (
            f"Ranks are exchanged at random, {count_noun(found.n_trials, 'trial')}; p adjusted by step-down max-T over "
            "all pairs."
        ),
        f"sigdask {made_by()}, seed {found.seed}.",
    )
    legend = ("Better in bold.", f"{SIGNIFICANT}: significant at {found.alpha:g}.")
    title = "Measures compared by average precision."
    cited = ("noreen1989", "yeh2000", "westfall1993", "romano2005", "sigdask")
    yield PaperTable(title, (TableSection("", columns),), legend, method, cited)


ADJUSTING = {
    "holm": "Holm's procedure", "hochberg": "Hochberg's procedure", "bh": "the procedure of Benjamini and Hochberg",
    "by": "the procedure of Benjamini and Yekutieli",
}  # fmt: skip
SOURCES = {"holm": ("holm1979",), "hochberg": ("hochberg1988",), "bh": ("benjamini1995",), "by": ("benjamini2001",)}


def of_independences(found: IndependenceResults) -> PaperTable:
    """Return a row a test of independence."""
    verdicts = [one.verdict(found.alpha) for one in found]
    marks = [SIGNIFICANT if v == "significant" else UNDECIDED if v.startswith("undecided") else "" for v in verdicts]
    own = marks if found.adjust == "none" else None
    columns: tuple[TableColumn, ...] = (
        TableColumn("A", [one.a for one in found], is_name=True),
        TableColumn("B", [one.b for one in found], is_name=True),
        TableColumn("metric", [one.metric for one in found], is_name=True),
        TableColumn("score", numbers(np.array([one.score for one in found], np.float64), None)),
        TableColumn("by chance", numbers(np.array([one.expected + 0.0 for one in found], np.float64), None)),
        TableColumn(
            "p", p_texts(np.array([one.p_value for one in found], np.float64), found.alpha), marks=own, is_p=True
        ),
    )
    if found.adjust != "none":
        adjusted = np.array([one.p_adjusted for one in found], np.float64)
        columns = (*columns, TableColumn("adjusted p", p_texts(adjusted, found.alpha), marks=marks, is_p=True))
    trials = [one.n_trials for one in found if one.method != "exact" and one.n_trials]
    sampled = f"; others by {max(trials):,} random permutations" if trials else ""
    n_exact = sum(one.method == "exact" for one in found)
    sides = " and ".join(dict.fromkeys(one.alternative for one in found))
    method = (
        f"Label permutation, {sides}; exact p of {n_exact:,} of {count_noun(len(found), 'test')}{sampled}.",
        f"sigdask {made_by()}, seed {found.seed}.",
    )
    how = f"p adjusted by {ADJUSTING[found.adjust]}" if found.adjust != "none" else "not adjusted"
    legend = (f"{SIGNIFICANT}: significant at {found.alpha:g}, {how} for the number of tests.",)
    cited = ("fisher1935", "noreen1989", *SOURCES.get(found.adjust, ()), "sigdask")
    return PaperTable("Labellings beside what chance gives.", (TableSection("", columns),), legend, method, cited)


def of_powers(found: PowerResults) -> PaperTable:
    """Return a row a comparison: the units that it needs, and the difference that those at hand find."""
    wanted = list(dict.fromkeys(one.wanted_difference for one in found if one.wanted_difference is not None))
    columns = [
        TableColumn("A", [one.a for one in found], is_name=True),
        TableColumn("B", [one.b for one in found], is_name=True),
        TableColumn("metric", [one.metric for one in found], is_name=True),
        TableColumn("A - B", numbers(np.array([one.difference for one in found], np.float64), None, sign=True)),
    ]
    if wanted:
        name = f"units for {wanted[0]:g}" if len(wanted) == 1 else "units needed"
        columns.append(TableColumn(name, [_finite(one.needed, ",.0f") for one in found]))
    units = sorted({one.n_asked for one in found})
    name = f"found by {units[0]:,}" if len(units) == 1 else "found by those asked about"
    columns.append(TableColumn(name, [_finite(one.detectable, ".3g") for one in found]))
    powers = _percent(one.power for one in found)
    levels = " and ".join(f"{level:.3g}" for level in sorted({one.level for one in found}))
    title = "Units that differences need, and differences that units find."
    legend = (f"{NONE}: none.", *(_notes(found)))
    method = (
        f"With power {powers} at {levels}; pairs of units are drawn from those observed, tilted by the difference.",
        f"sigdask {made_by()}, seed {found.seed}.",
    )
    return PaperTable(title, (TableSection("", tuple(columns)),), legend, method, ("noreen1989", "yeh2000", "sigdask"))


def _finite(found: Estimate | None, form: str) -> str:
    return NONE if found is None or not math.isfinite(found.value) else format(found.value, form)


def _percent(shares: Iterator[float]) -> str:
    return " and ".join(f"{100 * share:g} %" for share in sorted(set(shares)))


def _notes(found: Sequence[object]) -> list[str]:
    return [f"{note}." for note in dict.fromkeys(getattr(one, "note", None) for one in found) if note]
