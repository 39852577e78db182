"""A study: what must be counted for all test sets that are judged together, and the results that its tallies give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sigdask.comparison.across_sets import Together
from sigdask.comparison.across_sets import together as take_together
from sigdask.comparison.adjustment import Adjustment, adjustment, chosen
from sigdask.comparison.analysis import Cell, Question
from sigdask.comparison.notes import Note, distinct
from sigdask.comparison.obstacles import obstacles
from sigdask.comparison.request import Wanted
from sigdask.comparison.results import FamilyNote, Result, Results
from sigdask.comparison.summary import Failed, adjusted
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.options import Adjust, Alternative
from sigdask.randomization.jobs import Job
from sigdask.randomization.tallies import Tally


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What must be counted for some results, and how these are made of the counts.

    Attributes
    ----------
    questions : list of Question
        Of each test set.
    alternatives : list of str
        Likewise.
    families : list of (Adjustment, list of int)
        The comparisons that are judged together.
    over : Together or None
        Each pair over all sets.
    alpha : float
        Level of the verdicts.
    seed : int
        Of the stream.
    """

    questions: list[Question]
    alternatives: list[Alternative]
    families: list[tuple[Adjustment, list[int]]]
    over: Together | None
    alpha: float
    seed: int

    @property
    def _batches(self) -> list[list[Job]]:
        families = [made.jobs() for made, _ in self.families]
        return [*(question.jobs for question in self.questions), *families, self.over.jobs() if self.over else []]

    @property
    def jobs(self) -> list[Job]:
        """What must be counted."""
        return [job for batch in self._batches for job in batch]

    @property
    def cells(self) -> list[tuple[Cell, ...]]:
        """Where each result's counts stand: (job, row, column), the one that its p is of first."""
        found: list[list[Cell]] = []
        offset = 0
        for question in self.questions:
            found += [[(offset + job, row, column) for job, row, column in own] for own in question.cells]
            offset += len(question.jobs)
        for made, places in self.families:
            for _ in made.jobs():
                for k in places:
                    found[k].append((offset, 0, 0))
                offset += 1
        return [tuple(own) for own in found]

    def results(
        self,
        tallies: Sequence[Tally],
        revised: Callable[[int, Result], Result] = lambda _, result: result,
        failed: Failed | None = None,
    ) -> Results:
        """Judge the tallies of `jobs`; `revised` is given each result and its number before p is adjusted.

        `failed` is told of black boxes that give no score, whose results have none; without it they are errors.
        """
        left = iter(tallies)
        answers = [[next(left) for _ in batch] for batch in self._batches]
        n_sampled = sum(c.sampled for question in self.questions for _, c in question.asking)
        asked = list(zip(self.questions, self.alternatives, answers, strict=False))
        results = [
            result
            for question, alternative, own in asked
            for result in question.results(own, alternative, self.alpha, n_sampled, failed)
        ]
        results = [revised(k, result) for k, result in enumerate(results)]
        of_families = answers[len(self.questions) : -1]
        counted = [(made.counted(own), places) for (made, places), own in zip(self.families, of_families, strict=True)]
        notes = [note for (made, places), own in zip(counted, of_families, strict=True)
                 for note in _adjust(results, made, places, own, self.alpha)]  # fmt: skip
        over = self.over
        one_sided = [p for question, _, own in asked for p in question.one_sided(own)] if over else []
        notes = [
            *(Note("reading", w) for question in self.questions for w in question.main.asked.counts.warnings),
            *notes,
            *(note for question in self.questions for note in question.notes),
        ]
        return Results(
            results=tuple(results),
            seed=self.seed,
            alpha=self.alpha,
            notes=distinct(notes),
            family=_note(counted, results),
            together=over.verdicts(answers[-1][0], results, one_sided, self.alpha) if over else (),
        )


def _note(families: Sequence[tuple[Adjustment, Sequence[int]]], results: Sequence[Result]) -> FamilyNote | None:
    """Say how p-values were adjusted: of several families alike, the largest."""
    adjusted = [(made, places) for made, places in families if any(results[k].p_adjusted is not None for k in places)]
    if not adjusted:
        return None
    made, places = max(adjusted, key=lambda each: len(each[1]))
    return made.note(len(places))


def _adjust(
    results: list[Result], made: Adjustment, places: Sequence[int], tallies: Sequence[Tally], alpha: float
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
) -> Work:
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
    questions = [Question.of(counts, wanted, second_run=second_run) for counts, wanted, _ in asked]
    asking = [each for question in questions for each in question.asking]
    sides = [side for (_, _, side), question in zip(asked, questions, strict=True) for _ in question.asking]
    groups: dict[str, list[int]] = {}
    for k, (_, c) in enumerate(asking):
        groups.setdefault(c.metric.name if by_metric else "", []).append(k)
    families = []
    for places in groups.values():
        own = [asking[k] for k in places]
        families.append((adjustment(chosen(adjust, own), own, sides[places[0]]), places))
    over = take_together(asking, sides[0], raw=adjust == "max-t:raw") if together else None
    return Work(questions, [side for _, _, side in asked], families, over, alpha, asked[0][1].seed)


def _check_names(test_sets: Sequence[Counts]) -> None:
    names = [counts.name for counts in test_sets]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two test sets are named {name!r}; each needs a name of its own (Counts.with_name)")
