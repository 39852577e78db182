"""Draw the pictures of README.md and docs/statistics-for-readers.md from the bundled examples.

    python docs/make_pictures.py     # writes docs/figures/forest.svg and chance.svg, and what pages say of them

It needs sigdask[mt,report].
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sigdask
from sigdask.report import plots

HERE = Path(__file__).parent
FOREST, CHANCE = HERE / "figures" / "forest.svg", HERE / "figures" / "chance.svg"
EXAMPLES = HERE.parent / "sigdask" / "examples"
EXAMPLE = EXAMPLES / "translation"
SYSTEMS = ("combined", "phrases-lm", "phrases", "words")
FOREST_INCHES = 5.2
"""Narrower than the program draws it, so that a phone shows its letters."""
N_SWAPS, SEED, BINS = 100_000, 2000, 37


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture with its alternative text.

    Attributes
    ----------
    path : Path
        Where it is kept.
    alt : str
        What it shows, in words, for those who do not see it.
    svg : bytes
        The file; its description holds the numbers.
    """

    path: Path
    alt: str
    svg: bytes


@cache
def compare_translations() -> sigdask.Results:
    """Compare the systems of the example by BLEU, swapping whole documents."""
    counts = sigdask.read(
        *(EXAMPLE / f"{name}.txt" for name in SYSTEMS),
        gold=EXAMPLE / "reference.de.txt",
        documents=EXAMPLE / "documents.txt",
    )
    return sigdask.compare_all(counts, metrics=["BLEU"], unit="document")


def answer() -> str:
    """Return the headline of the comparison."""
    return str(compare_translations()).partition("\n")[0]


@cache
def forest() -> Picture:
    """Draw all differences of the example with their intervals."""
    differences = [
        f"{result.a} − {result.b} {result.difference:+.1f} [{low:.1f}, {high:.1f}]"
        for result in compare_translations()
        if result.interval_simultaneous
        for low, high in [result.interval_simultaneous]
    ]
    alt = f"Forest plot of differences of BLEU with simultaneous 95 % intervals: {'; '.join(differences)}"
    figure = compare_translations().plot()
    figure.set_figwidth(FOREST_INCHES)
    return Picture(FOREST, alt, plots.rendered(figure, "svg", json.dumps(differences)))


@cache
def chance() -> Picture:
    """Draw the null distribution of F1 for Yeh's two systems, whose answers are swapped at random."""
    kinds = np.loadtxt(EXAMPLES / "yeh2000.tsv", int, delimiter="\t", skiprows=1, usecols=(1, 2, 3))
    gold, one, other = kinds.T
    swap = np.random.Generator(np.random.PCG64(SEED)).random((N_SWAPS, len(kinds))) < 0.5
    differences = _compute_f1(np.where(swap, other, one), gold) - _compute_f1(np.where(swap, one, other), gold)
    observed = float(_compute_f1(one, gold) - _compute_f1(other, gold))
    end = observed * BINS / 2 / (BINS // 4 + 0.5)  # the middle bin is about 0, and the observed one is between two
    counts, edges = np.histogram(differences * (1 + 1e-9), BINS, (-end, end))
    n_extreme = int((abs(differences) >= observed - 1e-12).sum())
    share = f"{n_extreme / N_SWAPS:.1%}"
    alt = (
        f"Histogram of differences of F1 in {N_SWAPS:,} random swaps: a hill about 0; {n_extreme:,} of them, "
        f"{share}, lie as far out as the observed {observed:+.4f}, on either side"
    )
    with plots.build_figure(5.2, 3) as figure:
        axes = figure.add_subplot()
        axes.stairs(counts, edges, fill=True, color="#c4ccd4", label="swapped outputs")
        look = {"color": plots.ORANGE, "alpha": 0.13, "linewidth": 0}
        axes.axvspan(-observed, -end, **look, label="at least as extreme")
        axes.axvspan(observed, end, **look)
        text = f"observed {observed:+.4f}; outside: {share}"
        axes.axvline(observed, color=plots.BLUE, linewidth=1.6, label=text)
        axes.axvline(-observed, color=plots.BLUE, linewidth=1, linestyle="--", label="as far on the other side")
        axes.set_xlabel("difference of F1 after a random swap of answers")
        axes.set_ylabel("trials")
        plots.add_legend(figure, axes.get_legend_handles_labels()[0], n_columns=3)
    numbers = {"counts": counts.tolist(), "observed": observed, "n_extreme": n_extreme, "of": N_SWAPS}
    return Picture(CHANCE, alt, plots.rendered(figure, "svg", json.dumps(numbers)))


def _compute_f1(predicted: NDArray[np.int64], gold: NDArray[np.int64]) -> NDArray[np.float64]:
    f1 = 2 * (predicted & gold).sum(axis=-1) / (predicted.sum(axis=-1) + gold.sum())
    return np.asarray(f1, np.float64)


PAGES = (HERE.parent / "README.md", HERE / "index.md", HERE / "statistics-for-readers.md")


def update_page(page: str) -> str:
    """Return a page with new alternative texts of its pictures and a new headline."""
    for picture in (forest(), chance()):
        link = rf"!\[[^\]\n]*(?:\[[^\]\n]*\][^\]\n]*)*\]\(((?:docs/)?figures/{picture.path.name})\)"
        page = re.sub(link, partial(_format_link, picture.alt), page)
    return re.sub(r"^> .*; adjusted p = .*$", f"> {answer()}", page, flags=re.MULTILINE)


def _format_link(alt: str, match: re.Match[str]) -> str:
    return f"![{alt}]({match[1]})"


def main() -> None:
    """Draw both pictures and update the texts of their pages."""
    for picture in (forest(), chance()):
        picture.path.write_bytes(picture.svg)
    for page in PAGES:
        page.write_text(update_page(page.read_text()))


if __name__ == "__main__":
    main()
