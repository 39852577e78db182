"""Compare systems: from aligned counts to results. Wires the rooms, decides nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from numpy.typing import NDArray

from sigdask.adjustment import Adjustment, Together, adjustment, chosen, obstacles
from sigdask.adjustment import together as take_together
from sigdask.counts import Counts
from sigdask.engine import count_jobs
from sigdask.errors import InputError
from sigdask.judge import Failed, adjusted
from sigdask.options import Adjust, Alternative, HowCompared, WhatCompared, filled
from sigdask.questions import AnyMetric, Cell, Question, Wanted
from sigdask.randomization.jobs import Job
from sigdask.randomization.tallies import Tally
from sigdask.results import FamilyNote, Result, Results


def compare(
    a: Sequence[Any] | NDArray[Any],
    b: Sequence[Any] | NDArray[Any],
    *,
    gold: Sequence[Any] | NDArray[Any] | None = None,
    metric: AnyMetric | None = None,
    names: tuple[str, str] = ("A", "B"),
    ids: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
    **options: Unpack[HowCompared],
) -> Result:
    """Compare two systems given as arrays.

    Parameters
    ----------
    a, b : sequence, length n_items
        Item scores; with `gold`, labels.
    gold : sequence, length n_items, optional
        The right labels.
    metric : str, Metric or BlackBox, optional
        By default the mean of scores, or accuracy of labels.
    names : tuple of str
        What to call the systems.
    ids : sequence of str, optional
        Item ids; without them items are known by position.
    units : sequence of str, optional
        What is exchanged as a whole (documents, topics), for each item.
    **options
        As in `compare_sets`, but for those that choose among systems, metrics and subsets.

    Returns
    -------
    Result

    Examples
    --------
    >>> result = compare([1, 1, 0, 1, 1], [0, 1, 0, 0, 0])
    >>> result.method, result.n_extreme, result.n_trials, result.p_value
    ('exact', 2, 8, 0.25)
    """
    systems = dict(zip(names, (a, b), strict=True))
    groups = {"unit": units} if units is not None else None
    if gold is None:
        counts = Counts.from_scores(systems, ids=ids, groups=groups)
    else:
        counts = Counts.from_labels(gold, systems, ids=ids, groups=groups)
    chosen = metric or ("mean" if gold is None else "accuracy")
    unit = "item" if units is None else "unit"
    return compare_all(counts, metrics=[chosen], unit=unit, **options)[0]


def compare_all(counts: Counts, **options: Unpack[WhatCompared]) -> Results:
    """Compare any number of systems under any number of metrics, on shared shuffles.

    The same data, seed and number of trials give the same counts on any machine, cluster and
    partition; another system, metric or pair changes no other count.

    Parameters
    ----------
    counts : Counts
        The aligned systems, from `sigdask.read` or a constructor of `Counts`.
    **options
        As in `compare_sets`.

    Returns
    -------
    Results

    Raises
    ------
    InputError
        Something asked for cannot be had from these data; it says what and why.
    UnfinishedError
        The cluster was lost.

    Examples
    --------
    >>> counts = Counts.from_scores({"a": [4, 5, 4], "b": [1, 1, 2], "c": [4, 4, 4]})
    >>> results = compare_all(counts, metrics=["mean"])
    >>> [(r.a, r.b, r.p_value, r.p_adjusted) for r in results]
    [('a', 'b', 0.25, 0.25), ('a', 'c', 1.0, 1.0), ('b', 'c', 0.25, 0.25)]
    """
    return compare_sets([counts], **options)


def compare_sets(test_sets: Sequence[Counts], **options: Unpack[WhatCompared]) -> Results:
    """Compare systems on several test sets, judged as one family.

    Parameters
    ----------
    test_sets : sequence of Counts
        Of different names; each has its own shuffles.
    metrics : str, or sequence of str, Metric or BlackBox, optional
        Names as `sigdask metrics` lists them, `module:attribute`, or metrics themselves; by default
        those that the data suggest.
    pairs : sequence of (str, str), optional
        Systems to compare; by default all pairs.
    baseline : str, optional
        Compare every other system with this one only, which becomes `b`.
    unit : str or sequence of str, optional
        What is exchanged as a whole: "item" or a grouping column; of several nested ones the
        coarsest, with the finer ones beside it.
    by : str, optional
        Compare within each value of this grouping column.
    alternative : {"two-sided", "greater", "less"}
        Of score_a - score_b.
    method : {"auto", "randomization", "exact", "both"}
        auto: all arrangements where 20 or fewer units are discordant (12 for black boxes), random
        trials otherwise.
    trials : int, optional
        Random trials; 1,048,576 by default, 10,000 for black boxes.
    seed : int
        Of the stream; not negative.
    alpha : float
        Level of the verdicts.
    adjust : str, optional
        "none", "holm", "hochberg", "bh", "by", "max-t" (step-down, studentised), "max-t:raw",
        "single-step-max-t" or "tukey" over everything compared here; by default max-t for three
        systems and more.
    together : bool
        Judge each pair over all sets as well: by the mean of its differences, and by the number of
        sets in which they replicate.
    beside : bool
        Show p with finer units exchanged, and with coarser ones where differences hang together.
    second_run : bool
        Cross-check by a second, independent run of as many trials.
    cluster, workers, progress, blocks_per_task
        As in `sigdask.engine.count_jobs`.

    Returns
    -------
    Results
        In the order of test sets, subsets, pairs and metrics.
    """
    every = filled(options)
    unit, given = every["unit"], every["metrics"]
    metrics = given if isinstance(given, (list, tuple)) else () if given is None else (given,)
    if given is not None and not metrics:
        raise InputError("no metric given; `sigdask metrics` lists them")
    wanted = Wanted(
        metrics=metrics,
        pairs=every["pairs"],
        baseline=every["baseline"],
        levels=(unit,) if isinstance(unit, str) else tuple(unit or ()),
        by=every["by"],
        method=every["method"],
        trials=every["trials"],
        seed=every["seed"],
        beside=every["beside"],
    )
    work = prepare(
        [(counts, wanted if metrics else replace(wanted, metrics=_suggested(counts)), every["alternative"])
         for counts in test_sets],
        alpha=every["alpha"], adjust=every["adjust"], together=every["together"], second_run=every["second_run"],
    )  # fmt: skip
    tallies = count_jobs(
        work.jobs,
        cluster=every["cluster"],
        workers=every["workers"],
        progress=every["progress"],
        blocks_per_task=every["blocks_per_task"],
    )
    return work.results(tallies)


def _suggested(counts: Counts) -> tuple[str, ...]:
    if not counts.suggested:
        raise InputError("no metric given, and the data suggest none; `sigdask metrics` lists them")
    return counts.suggested


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
        warnings = [
            *(w for question in self.questions for w in question.main.asked.counts.warnings),
            *notes,
            *(w for question in self.questions for w in question.warnings),
        ]
        return Results(
            results=tuple(results),
            seed=self.seed,
            alpha=self.alpha,
            warnings=tuple(dict.fromkeys(warnings)),
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
) -> list[str]:
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
