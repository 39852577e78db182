"""Make repeated samples of ranked candidates, like those from the parts of a corpus.

    python -m sigdask.examples.repeated_samples FOLDER [--samples 80] [--overdispersion 1.7] [--seed 0]

This writes part-01.tsv, part-02.tsv, ... with columns gold and G2. A cutoff at 32.5 accepts 100 candidates on average.
Without overdispersion the number of true ones among N accepted is Bin(N, 0.3) in every part. With it, each part has its
own probability (beta distribution), so that at N = 100 the variance of this number is larger by that factor.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CUTOFF, ACCEPTED, N_CANDIDATES, PRECISION = 32.5, 100, 400, 0.3


def draw_probabilities(rng: np.random.Generator, n_samples: int, overdispersion: float) -> NDArray[np.float64]:
    """Return the probability in each sample that an accepted candidate is true.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_samples : int
    overdispersion : float
        Variance of the number of true ones among 100, by that of a binomial; at least 1.
    """
    if overdispersion <= 1:
        return np.full(n_samples, PRECISION)
    rho = (overdispersion - 1) / (ACCEPTED - 1)  # beta-binomial: 1 + (N - 1) rho, rho = 1 / (a + b + 1)
    scale = 1 / rho - 1
    return rng.beta(PRECISION * scale, (1 - PRECISION) * scale, n_samples)


def draw_sample(rng: np.random.Generator, probability: float) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which candidates of one sample are true, and their scores."""
    scores = rng.exponential(-CUTOFF / np.log(ACCEPTED / N_CANDIDATES), N_CANDIDATES).round(2)
    return rng.random(N_CANDIDATES) < np.where(scores >= CUTOFF, probability, probability / 5), scores


def write(folder: Path, n_samples: int = 80, overdispersion: float = 1.0, seed: int = 0) -> None:
    """Write the samples, a file each."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for k, probability in enumerate(draw_probabilities(rng, n_samples, overdispersion), start=1):
        gold, scores = draw_sample(rng, float(probability))
        rows = (f"{int(true)}\t{score}\n" for true, score in zip(gold, scores, strict=True))
        (folder / f"part-{k:0{len(str(n_samples))}}.tsv").write_text("".join(["gold\tG2\n", *rows]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="repeated_samples")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=80)
    parser.add_argument("--overdispersion", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    write(given.folder, given.samples, given.overdispersion, given.seed)
