"""Cases of scale that are about files: what is read before the first trial."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

TRIALS = ("--trials", "10000")
ROWS = 10**6
"""Written at a time."""


def cases(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Write the inputs of each case, and yield its name and the arguments of `sigdask`."""
    compare = ["compare", "--method", "randomization", *TRIALS]
    yield "2 systems x 10^6 items, CSV", [*compare, _wide(folder / "million.csv", 10**6)]
    yield (
        "10^6 items in 10^5 documents, CSV",
        [*compare, _wide(folder / "documents.csv", 10**6, documents=10**5), "--unit", "document"],
    )
    yield "2 systems x 10^6 items, ids of 70 bytes", [*compare, _wide(folder / "long_ids.csv", 10**6, start=LONG)]
    yield "2 systems x 10^6 items, ids in no order, two files", _two_files(folder, compare)
    yield "2 systems x 10^6 items, long table", [*compare, _long(folder / "long.csv", 10**6)]
    yield "3 systems x 10^6 labels, gold in a file", _labels(folder, compare)
    yield "20,000 systems x 20 items, one pair", _many(folder, compare)
    yield "1,000 systems x 10^5 items, Parquet, one pair", _parquet(folder, compare)
    yield "2 systems x 10^7 items, CSV", [*compare, _wide(folder / "ten_million.csv", 10**7)]


LONG = "https://example.org/collection/2026/segments/of/the/newspaper/"


def _scores(rng: np.random.Generator, n: int) -> tuple[list[int], list[int]]:
    first = rng.integers(0, 10_000, n)
    return first.tolist(), np.clip(first + rng.integers(-50, 51, n), 0, 9_999).tolist()


def _written(path: Path, lines: Iterable[str]) -> str:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    return str(path)


def _wide(path: Path, n: int, *, documents: int = 0, start: str = "item-") -> str:
    def lines() -> Iterator[str]:
        rng = np.random.default_rng(0)
        yield "id,document,a,b\n" if documents else "id,a,b\n"
        for first in range(0, n, ROWS):
            for k, (a, b) in enumerate(zip(*_scores(rng, min(ROWS, n - first)), strict=True), start=first):
                group = f"document-{k * documents // n:06d}," if documents else ""
                yield f"{start}{k:08d},{group}0.{a:04d},0.{b:04d}\n"

    return _written(path, lines())


def _two_files(folder: Path, compare: list[str]) -> list[str]:
    rng, n = np.random.default_rng(1), 10**6
    files = []
    for name, scores in zip("ab", _scores(rng, n), strict=True):
        rows = (f"item-{k:08d},0.{scores[k]:04d}\n" for k in rng.permutation(n).tolist())
        files.append(_written(folder / f"{name}.csv", ("id,score\n", *rows)))
    return [*compare, *files]


def _long(path: Path, n: int) -> str:
    both = zip("ab", _scores(np.random.default_rng(2), n), strict=True)
    rows = (f"{name},item-{k:08d},0.{s:04d}\n" for name, scores in both for k, s in enumerate(scores))
    return _written(path, ("system,item,score\n", *rows))


def _labels(folder: Path, compare: list[str]) -> list[str]:
    rng, names = np.random.default_rng(3), ("entailment", "neutral", "contradiction")
    gold = rng.integers(0, 3, 10**6)
    files = []
    for name in ("gold", "x", "y", "z"):
        given = gold if name == "gold" else np.where(rng.random(len(gold)) < 0.8, gold, rng.integers(0, 3, len(gold)))
        rows = (f"pair-{k}\t{names[code]}\n" for k, code in enumerate(given.tolist()))
        files.append(_written(folder / f"{name}.tsv", ("id\tlabel\n", *rows)))
    return [*compare, "--gold", files[0], "--adjust", "none", *files[1:]]


def _many(folder: Path, compare: list[str]) -> list[str]:
    scores = np.random.default_rng(4).integers(0, 2, (20, 20_000))
    names = ["id", *(f"s{k}" for k in range(scores.shape[1]))]
    rows = (",".join([f"i{k}", *map(str, row)]) + "\n" for k, row in enumerate(scores.tolist()))
    return [*compare, _written(folder / "many.csv", (",".join(names) + "\n", *rows)), "--pair", "s0", "s1"]


def _parquet(folder: Path, compare: list[str]) -> list[str]:
    import pyarrow as pa
    from pyarrow import parquet

    rng, path = np.random.default_rng(5), folder / "systems.parquet"
    base = rng.integers(0, 10_000, 10**5)
    columns = {f"s{k}": np.clip(base + rng.integers(-300, 301, len(base)), 0, 9_999) / 10_000 for k in range(1_000)}
    parquet.write_table(pa.table({"item": [f"item-{k:06d}" for k in range(len(base))], **columns}), path)
    return [*compare, str(path), "--pair", "s0", "s1"]
