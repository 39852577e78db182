"""The data of the benchmarks, made on the spot, or the real sets where they lie beside the project."""

from __future__ import annotations

from pathlib import Path

import numpy as np

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
WORDS = [f"w{k}" for k in range(3000)]


def scores(n_items, n_systems=2, digits=None):
    """Item scores; real-valued unless digits are given."""
    rng = np.random.default_rng(n_items + n_systems)
    made = np.clip(rng.beta(2, 3, (n_items, 1)) + rng.normal(0, 0.1, (n_items, n_systems)), 0, 1)
    return made if digits is None else np.round(made, digits)


def trec():
    """129 runs x 50 topics: adhoc8_ap where it is at hand."""
    path = SHARED / "matrix_trec_urbano" / "adhoc8_ap.csv"
    if path.is_file():
        return np.loadtxt(path, delimiter=",", skiprows=1), "adhoc8_ap"
    return scores(50, 129, 4), "synthetic 129 x 50"


def texts(n_segments=2000, n_systems=2):
    """Systems and one reference of about 20 words a segment."""
    rng = np.random.default_rng(0)
    reference = [rng.choice(WORDS, rng.integers(10, 31)) for _ in range(n_segments)]

    def system():
        out = []
        for words in reference:
            changed = words.copy()
            where = rng.random(len(words)) < 0.3
            changed[where] = rng.choice(WORDS, where.sum())
            out.append(" ".join(changed[: len(words) - rng.integers(0, 3)]))
        return out

    return [system() for _ in range(n_systems)], [" ".join(words) for words in reference]


def text_counts(systems, reference):
    """Counts of made texts."""
    from sigdask.counts import Counts, Outputs

    gold = np.empty(len(reference), object)
    gold[:] = [(line,) for line in reference]
    ones = np.ones((len(reference), 1), np.int64)
    names = tuple(f"s{k}" for k in range(len(systems)))
    outputs = Outputs(tuple(np.array(s, object) for s in systems), gold)
    return Counts(names, {"segments": ones, "items": ones}, len(reference), outputs=outputs)


def wmt24():
    """26 systems of WMT24 en-de where they are at hand, else as many made ones."""
    from sigdask.formats import read

    folder = SHARED / "mt_wmt24_en-de"
    if folder.is_dir():
        systems = sorted((folder / "systems").glob("*.txt"))
        return read(*systems, gold=folder / "en-de.refA.txt", format="segments"), "mt_wmt24_en-de"
    return text_counts(*texts(997, 26)), "synthetic 26 x 997"
