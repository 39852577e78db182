"""Draw the distributions of recall, precision and F for normal counts, after Van Asch.

    python docs/make_figures.py     # writes docs/figures/normality.svg and its table in docs/statistics/independence.md

30,000 runs of 1,000 instances, 500 of them of class A. True positives are normal, 400 with a standard deviation of 80,
and false positives 60 with one of 15. Recall, which divides by what does not vary, is normal then; precision and F are
not. It needs sigdask[report].
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

HERE = Path(__file__).parent
FIGURE, PAGE = HERE / "figures" / "normality.svg", HERE / "statistics" / "independence.md"
BEGIN, END = "<!-- made by docs/make_figures.py: begin -->", "<!-- made by docs/make_figures.py: end -->"

RUNS, N_CLASS_A = 30_000, 500
TRUE_POSITIVES, FALSE_POSITIVES = (400, 80), (60, 15)
"""Mean and standard deviation."""

SEED = 2012
BINS = 60


@dataclass(frozen=True, slots=True)
class ScoreDistribution:
    """Distribution of a score over the runs.

    Attributes
    ----------
    name : str
        Of the score.
    mean, sd, skewness, kurtosis : float
        Its moments; the kurtosis of a normal distribution is 0.
    statistic, p_value : float
        Of the test of normality of D'Agostino and Pearson (1973), `scipy.stats.normaltest`.
    counts : tuple of int
        Runs in each bin.
    edges : tuple of float
        The first and the last edge of the bins.
    """

    name: str
    mean: float
    sd: float
    skewness: float
    kurtosis: float
    statistic: float
    p_value: float
    counts: tuple[int, ...]
    edges: tuple[float, float]


def main() -> None:
    """Draw the figure and write the table between the page's markers."""
    distributions = shapes()
    FIGURE.parent.mkdir(exist_ok=True)
    draw(distributions, FIGURE)
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text("\n".join([before + BEGIN, *table(distributions), END]) + rest.split(END)[1])


def scores() -> dict[str, NDArray[np.float64]]:
    """Return recall, precision and F of each run."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    tp, fp = (rng.normal(mean, sd, RUNS) for mean, sd in (TRUE_POSITIVES, FALSE_POSITIVES))
    return {"recall": tp / N_CLASS_A, "precision": tp / (tp + fp), "F": 2 * tp / (tp + fp + N_CLASS_A)}


def shapes() -> list[ScoreDistribution]:
    """Describe the distribution of each score and test its normality."""
    return [_describe_scores(name, values) for name, values in scores().items()]


def _describe_scores(name: str, values: NDArray[np.float64]) -> ScoreDistribution:
    low, high = np.quantile(values, [0.0005, 0.9995])
    counts, _ = np.histogram(values, BINS, (low, high))
    tested = stats.normaltest(values)
    return ScoreDistribution(
        name, float(values.mean()), float(values.std()), float(stats.skew(values)), float(stats.kurtosis(values)),
        float(tested.statistic), float(tested.pvalue), tuple(counts.tolist()), (float(low), float(high)),
    )  # fmt: skip


def table(distributions: list[ScoreDistribution]) -> Iterator[str]:
    """Yield the lines of the table of distributions."""
    yield "| score | mean | standard deviation | skewness | excess kurtosis | K² | p |"
    yield "|---|---|---|---|---|---|---|"
    for distribution in distributions:
        p = (
            f"{distribution.p_value:.2f}"
            if distribution.p_value > 1e-4
            else "below 1e-300"
            if distribution.p_value == 0
            else f"{distribution.p_value:.0e}"
        )
        yield (
            f"| {distribution.name} | {distribution.mean:.4f} | {distribution.sd:.4f} | {distribution.skewness:+.2f} "
            f"| {distribution.kurtosis:+.2f} | "
            f"{distribution.statistic:,.1f} | {p} |"
        )


def draw(distributions: list[ScoreDistribution], path: Path) -> None:
    """Draw histograms and normal densities of the same mean and deviation; the file contains the counts."""
    from sigdask.report import plots

    numbers = json.dumps(
        {
            distribution.name: {"edges": distribution.edges, "counts": distribution.counts}
            for distribution in distributions
        }
    )
    with plots.build_figure(3 * len(distributions), 2.6) as figure:
        all_axes = figure.subplots(1, len(distributions), squeeze=False)[0]
        for axes, distribution in zip(all_axes, distributions, strict=True):
            edges = np.linspace(*distribution.edges, BINS + 1)
            points = np.linspace(*distribution.edges, 101)
            expected = stats.norm.pdf(points, distribution.mean, distribution.sd) * RUNS * (edges[1] - edges[0])
            axes.stairs(distribution.counts, edges, fill=True, color="#9ab8d4")
            axes.plot(points, expected, color=plots.ORANGE, linewidth=1)
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            plots.set_title(axes, f"{distribution.name}: skewness {distribution.skewness:+.2f}")
    path.write_bytes(plots.rendered(figure, "svg", description=numbers))


if __name__ == "__main__":
    main()
