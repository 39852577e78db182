"""Draw what chance makes of a difference: F1 of Yeh's two systems, their answers exchanged at random.

    python docs/make_chance.py     # writes docs/figures/chance.svg

It needs sigdask[report].
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigdask.examples.yeh2000 import COUNTS

HERE = Path(__file__).parent
FIGURE, PAGE = HERE / "figures" / "chance.svg", HERE / "statistics-for-readers.md"
EXCHANGES, SEED, BINS = 100_000, 2000, 37


@dataclass(frozen=True, slots=True)
class Chance:
    """Differences of F1 after exchanges.

    Attributes
    ----------
    observed : float
        Before any.
    counts : tuple of int
        Exchanges by their difference, in `BINS` bins: the one in the middle is about 0, and the
        observed difference stands between two.
    n_extreme : int
        Exchanges whose difference is at least as large as the observed one, either way.
    """

    observed: float
    counts: tuple[int, ...]
    n_extreme: int


def made() -> Chance:
    """Exchange at random, again and again."""
    kinds = np.array([one[:3] for one in COUNTS for _ in range(one[3])])
    gold, one, other = kinds.T
    swap = np.random.Generator(np.random.PCG64(SEED)).random((EXCHANGES, len(kinds))) < 0.5
    differences = _f1(np.where(swap, other, one), gold) - _f1(np.where(swap, one, other), gold)
    observed = float(_f1(one, gold) - _f1(other, gold))
    outwards = differences * (1 + 1e-9)  # what ties with the observed one lies outside, as it counts
    counts, _ = np.histogram(outwards, BINS, (-_width(observed) * BINS / 2, _width(observed) * BINS / 2))
    return Chance(observed, tuple(counts.tolist()), int((abs(differences) >= observed - 1e-12).sum()))


def _width(observed: float) -> float:
    return observed / (BINS // 4 + 0.5)


def _f1(given: NDArray[np.int64], gold: NDArray[np.int64]) -> NDArray[np.float64]:
    found = 2 * (given & gold).sum(axis=-1) / (given.sum(axis=-1) + gold.sum())
    return np.asarray(found, np.float64)


def text(chance: Chance) -> str:
    """Return what the picture shows, in words, for those who do not see it."""
    return (
        f"Histogram of differences of F1 in {EXCHANGES:,} random exchanges: a hill about 0; {chance.n_extreme:,} of "
        f"them, {chance.n_extreme / EXCHANGES:.1%}, lie as far out as the observed "
        f"{chance.observed:+.4f}, on either side"
    )


def draw(chance: Chance, path: Path) -> None:
    """Draw it; the counts stand in the file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    width = _width(chance.observed)
    at = width * (np.arange(BINS) - BINS // 2)
    outside = abs(at) > chance.observed
    with mpl.rc_context({"svg.hashsalt": "sigdask", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=(7, 3), layout="constrained", facecolor="white")
        axes = figure.subplots()
        axes.bar(at, chance.counts, 0.9 * width, color=np.where(outside, "#b03a2e", "#9ab8d4").tolist())
        axes.axvline(chance.observed, color="#b03a2e", linewidth=1.5)
        axes.annotate(
            f"observed: {chance.observed:+.4f}", (chance.observed, 0.9), (5, 0), xycoords=("data", "axes fraction"),
            textcoords="offset points", color="#b03a2e",
        )  # fmt: skip
        axes.annotate(
            f"red: {chance.n_extreme / EXCHANGES:.1%}\nof all exchanges", (-chance.observed, 0.3), (-5, 0), ha="right",
            xycoords=("data", "axes fraction"), textcoords="offset points", color="#b03a2e",
        )  # fmt: skip
        axes.set_xlabel("difference of F1 after a random exchange of answers")
        axes.set_yticks([])
        axes.spines[["left", "top", "right"]].set_visible(False)
        said = json.dumps({"counts": chance.counts, "observed": chance.observed, "n_extreme": chance.n_extreme})
        figure.savefig(
            path, format="svg", metadata={"Date": None, "Creator": "docs/make_chance.py", "Description": said}
        )


def main() -> None:
    """Draw the picture; say what its page must say of it."""
    chance = made()
    draw(chance, FIGURE)
    print(text(chance))


if __name__ == "__main__":
    main()
