"""Draw the pictures of README and of the statistics for readers, from the examples that come with the program.

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
from sigdask.examples.yeh2000 import COUNTS
from sigdask.formats import Options
from sigdask.report import plots
from sigdask.report.summary import verdict

HERE = Path(__file__).parent
FOREST, CHANCE = HERE / "figures" / "forest.svg", HERE / "figures" / "chance.svg"
EXAMPLE = HERE.parent / "sigdask" / "examples" / "translation"
SYSTEMS = ("combined", "phrases-lm", "phrases", "words")
EXCHANGES, SEED, BINS = 100_000, 2000, 37


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, and what is said of it.

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
def translations() -> sigdask.Results:
    """Compare the systems of the example by BLEU, exchanging whole documents."""
    counts = sigdask.read(
        *(EXAMPLE / f"{name}.txt" for name in SYSTEMS),
        gold=EXAMPLE / "reference.de.txt",
        options=Options(documents=EXAMPLE / "documents.txt"),
    )
    return sigdask.compare_all(counts, metrics=["BLEU"], unit="document")


def answer() -> str:
    """Return the sentence that says what was found."""
    return verdict.build_verdict(translations()).headline


@cache
def forest() -> Picture:
    """Draw all differences of the example with their intervals."""
    found = [
        f"{one.a} − {one.b} {one.difference:+.1f} [{one.interval.low:.1f}, {one.interval.high:.1f}]"
        for one in translations()
        if one.interval
    ]
    alt = f"Forest plot of differences of BLEU with 95 % intervals: {'; '.join(found)}"
    return Picture(FOREST, alt, plots.rendered(translations().plot_forest(), "svg", json.dumps(found)))


@cache
def chance() -> Picture:
    """Draw what chance makes of a difference: F1 of Yeh's two systems, their answers exchanged at random."""
    kinds = np.array([one[:3] for one in COUNTS for _ in range(one[3])])
    gold, one, other = kinds.T
    swap = np.random.Generator(np.random.PCG64(SEED)).random((EXCHANGES, len(kinds))) < 0.5
    differences = _f1(np.where(swap, other, one), gold) - _f1(np.where(swap, one, other), gold)
    observed = float(_f1(one, gold) - _f1(other, gold))
    end = observed * BINS / 2 / (BINS // 4 + 0.5)  # the middle bin is about 0, and the observed one is between two
    counts, edges = np.histogram(differences * (1 + 1e-9), BINS, (-end, end))
    n_extreme = int((abs(differences) >= observed - 1e-12).sum())
    share = f"{n_extreme / EXCHANGES:.1%}"
    alt = (
        f"Histogram of differences of F1 in {EXCHANGES:,} random exchanges: a hill about 0; {n_extreme:,} of them, "
        f"{share}, lie as far out as the observed {observed:+.4f}, on either side"
    )
    figure = plots.null_distribution(
        edges, counts, observed,
        score="difference of F1 after a random exchange of answers",
        beside=f"observed {observed:+.4f}; outside: {share}",
    )  # fmt: skip
    said = {"counts": counts.tolist(), "observed": observed, "n_extreme": n_extreme, "of": EXCHANGES}
    return Picture(CHANCE, alt, plots.rendered(figure, "svg", json.dumps(said)))


def _f1(given: NDArray[np.int64], gold: NDArray[np.int64]) -> NDArray[np.float64]:
    found = 2 * (given & gold).sum(axis=-1) / (given.sum(axis=-1) + gold.sum())
    return np.asarray(found, np.float64)


PAGES = (HERE.parent / "README.md", HERE / "index.md", HERE / "statistics-for-readers.md")


def told(page: str) -> str:
    """Return a page with what is to be said of its pictures, and with the sentence that answers."""
    for picture in (forest(), chance()):
        link = rf"!\[[^\]\n]*(?:\[[^\]\n]*\][^\]\n]*)*\]\(((?:docs/)?figures/{picture.path.name})\)"
        page = re.sub(link, partial(_linked, picture.alt), page)
    return re.sub(r"^> .*$", f"> {answer()}", page, flags=re.MULTILINE)


def _linked(alt: str, found: re.Match[str]) -> str:
    return f"![{alt}]({found[1]})"


def main() -> None:
    """Draw both pictures and write what their pages say of them."""
    for picture in (forest(), chance()):
        picture.path.write_bytes(picture.svg)
    for page in PAGES:
        page.write_text(told(page.read_text()))


if __name__ == "__main__":
    main()
