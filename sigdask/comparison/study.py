"""A study: what must be counted for all test sets that are judged together, and the results that its tallies give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sigdask.comparison.across_sets import AcrossSets, across_sets
from sigdask.comparison.adjustment import Adjustment, adjustment, chosen
from sigdask.comparison.analysis import Analysis
from sigdask.comparison.found.result import Result
from sigdask.comparison.notes import Note, distinct
from sigdask.comparison.obstacles import obstacles
from sigdask.comparison.request import Wanted
from sigdask.comparison.results import FamilyNote, Results
from sigdask.comparison.summary import Failed, adjusted
from sigdask.comparison.table import Table
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.options import Adjust, Alternative
from sigdask.randomization.jobs import Cell, Job, Tallies
from sigdask.randomization.tallies import Tally


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """What must be counted for some results, and how these are made of the counts.

    Attributes
    ----------
    analyses : list of Analysis
        Of each test set.
    alternatives : list of str
        Likewise.
    families : list of (Adjustment, list of int)
        The comparisons that are judged together.
    across : AcrossSets or None
        Each pair over all sets.
    alpha : float
        Level of the verdicts.
    seed : int
        Of the stream.
    """

    analyses: list[Analysis]
    alternatives: list[Alternative]
    families: list[tuple[Adjustment, list[int]]]
    across: AcrossSets | None
    alpha: float
    seed: int

    @property
    def jobs(self) -> list[Job]:
        """What must be counted."""
        return [
            *(job for analysis in self.analyses for job in analysis.jobs),
            *(made.job for made, _ in self.families if made.job is not None),
            *([self.across.job] if self.across else []),
        ]

    @property
    def cells(self) -> list[tuple[Cell, ...]]:
        """Where each result's counts stand, those that its p is of first."""
        found = [own for analysis in self.analyses for own in analysis.cells]
        for made, places in self.families:
            if made.job is not None:
                for k in places:
                    found[k] = (*found[k], Cell(made.job, 0, 0))
        return found

    def results(
        self,
        tallies: Sequence[Tally],
        revised: Callable[[int, Result], Result] = lambda _, result: result,
        failed: Failed | None = None,
    ) -> Results:
        """Judge the tallies of `jobs`, which are in the same order.

        `revised` is given each result and its number before p is adjusted.
        `failed` is told of black boxes that give no score, whose results have none; without it they are errors.
        """
        counted: Tallies = dict(zip(self.jobs, tallies, strict=True))
        n_sampled = sum(c.sampled for analysis in self.analyses for _, c in analysis.asking)
        results = [
            result
            for analysis, alternative in zip(self.analyses, self.alternatives, strict=True)
            for result in analysis.results(counted, alternative, self.alpha, n_sampled, failed)
        ]
        results = [revised(k, result) for k, result in enumerate(results)]
        families = [(made.counted(counted), places) for made, places in self.families]
        of_families = [n for made, places in families for n in _adjust(results, made, places, counted, self.alpha)]
        across = self.across
        one_sided = [p for analysis in self.analyses for p in analysis.one_sided(counted)] if across else []
        notes = [
            *(Note("reading", w) for analysis in self.analyses for w in analysis.main.asked.counts.warnings),
            *of_families,
            *(note for analysis in self.analyses for note in analysis.notes),
        ]
        return Results(
            table=Table.of(results, self.alpha),
            seed=self.seed,
            alpha=self.alpha,
            notes=distinct(notes),
            family=_note(families, results),
            together=across.verdicts(counted, results, one_sided, self.alpha) if across else (),
        )


def _note(families: Sequence[tuple[Adjustment, Sequence[int]]], results: Sequence[Result]) -> FamilyNote | None:
    """Say how p-values were adjusted: of several families alike, the largest."""
    adjusted = [(made, places) for made, places in families if any(results[k].p_adjusted is not None for k in places)]
    if not adjusted:
        return None
    made, places = max(adjusted, key=lambda each: len(each[1]))
    return made.note(len(places))


def _adjust(
    results: list[Result], made: Adjustment, places: Sequence[int], tallies: Tallies, alpha: float
) -> list[Note]:
    """Put a family's adjusted p into its results; return what stands in the way of a verdict."""
    found = made.p_values([results[k] for k in places], tallies)
    if found is not None:
        for k, p, low, high in zip(places, *found, strict=True):
            results[k] = adjusted(results[k], float(p), (float(low), float(high)))
    return obstacles(made, [results[k] for k in places], alpha)


def prepare(
    asked: Sequence[tuple[Counts, Wanted, Alternative]],
    *,
    alpha: float = 0.05,
    adjust: Adjust | None = None,
    by_metric: bool = False,
    together: bool = False,
    second_run: bool = True,
) -> Study:
    """List what has to be counted for some test sets, without counting it.

    Parameters
    ----------
    asked : sequence of (Counts, Wanted, alternative)
        Test sets of different names, and what is asked of each.
    alpha, adjust, together, second_run
        As in `compare_sets`.
    by_metric : bool
        Judge the comparisons under each metric together, instead of all.
    """
    if not asked:
        raise InputError("no test set given")
    _check_names([counts for counts, _, _ in asked])
    analyses = [Analysis.of(counts, wanted, second_run=second_run) for counts, wanted, _ in asked]
    asking = [each for analysis in analyses for each in analysis.asking]
    sides = [side for (_, _, side), analysis in zip(asked, analyses, strict=True) for _ in analysis.asking]
    groups: dict[str, list[int]] = {}
    for k, (_, c) in enumerate(asking):
        groups.setdefault(c.metric.name if by_metric else "", []).append(k)
    families = []
    for places in groups.values():
        own = [asking[k] for k in places]
        families.append((adjustment(chosen(adjust, own), own, sides[places[0]]), places))
    across = across_sets(asking, sides[0], raw=adjust == "max-t:raw") if together else None
    return Study(analyses, [side for _, _, side in asked], families, across, alpha, asked[0][1].seed)


def _check_names(test_sets: Sequence[Counts]) -> None:
    names = [counts.name for counts in test_sets]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two test sets are named {name!r}; each needs a name of its own (Counts.with_name)")
