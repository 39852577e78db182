"""Benchmark data: synthetic, or real test sets from ../shared/data if present."""

from __future__ import annotations

from pathlib import Path

import numpy as np

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
WORDS = [f"w{k}" for k in range(3000)]


def draw_scores(n_items, n_systems=2, digits=None):
    """Draw item scores, real-valued unless digits are given."""
    rng = np.random.default_rng(n_items + n_systems)
    values = np.clip(rng.beta(2, 3, (n_items, 1)) + rng.normal(0, 0.1, (n_items, n_systems)), 0, 1)
    return values if digits is None else np.round(values, digits)


def load_trec():
    """Load adhoc8_ap (129 runs x 50 topics), or draw a matrix of the same size."""
    path = SHARED / "matrix_trec_urbano" / "adhoc8_ap.csv"
    if path.is_file():
        return np.loadtxt(path, delimiter=",", skiprows=1), "adhoc8_ap"
    return draw_scores(50, 129, 4), "synthetic 129 x 50"


def draw_texts(n_segments=2000, n_systems=2):
    """Draw system outputs and one reference, about 20 words a segment."""
    rng = np.random.default_rng(0)
    reference = [rng.choice(WORDS, rng.integers(10, 31)) for _ in range(n_segments)]

    def system():
        out = []
        for words in reference:
            changed = words.copy()
            is_changed = rng.random(len(words)) < 0.3
            changed[is_changed] = rng.choice(WORDS, is_changed.sum())
            out.append(" ".join(changed[: len(words) - rng.integers(0, 3)]))
        return out

    return [system() for _ in range(n_systems)], [" ".join(words) for words in reference]


def build_text_counts(systems, reference):
    """Build counts from drawn texts."""
    from sigdask.counts import Counts, Outputs

    gold = np.empty(len(reference), object)
    gold[:] = [(line,) for line in reference]
    ones = np.ones((len(reference), 1), np.int64)
    names = tuple(f"s{k}" for k in range(len(systems)))
    outputs = Outputs(tuple(np.array(s, object) for s in systems), gold)
    return Counts(names, {"segments": ones, "items": ones}, len(reference), outputs=outputs)


def load_wmt24():
    """Load the 26 systems of WMT24 en-de, or draw as many synthetic ones."""
    from sigdask.formats import read

    folder = SHARED / "mt_wmt24_en-de"
    if folder.is_dir():
        systems = sorted((folder / "systems").glob("*.txt"))
        return read(*systems, gold=folder / "en-de.refA.txt", format="segments"), "mt_wmt24_en-de"
    return build_text_counts(*draw_texts(997, 26)), "synthetic 26 x 997"
