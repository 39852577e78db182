"""Write the plans and data of stores that must keep their counts, and, asked to, such a store.

    python tests/data/kept/make.py FOLDER           plans and data
    python tests/data/kept/make.py FOLDER --count   and `FOLDER/store.sql`, by the sigdask that is imported

The stores beside this file are named after the version that made them. Kept: never make one anew.
Numbers are made by arithmetic alone, so that the data are the same anywhere.
"""

import contextlib
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

SHARED = 'seed = 5\ntrials = 20000\nstore = "kept.sqlite"\n'

PLANS = {
    "scores": """
adjust = "max-t"
[[test_set]]
name = "decimals"
systems = "decimals.csv"
metrics = ["mean"]
[[test_set]]
name = "reals"
systems = "reals.csv"
metrics = ["mean"]
""",
    "gaps": """
adjust = "holm"
[[test_set]]
name = "gaps"
systems = "gaps.csv"
missing = "pairwise"
metrics = ["mean"]
[[test_set]]
name = "groups"
systems = "groups.csv"
unit = "document"
by = "kind"
metrics = ["mean"]
""",
    "tukey": """
adjust = "tukey"
[[test_set]]
name = "decimals"
systems = "decimals.csv"
metrics = ["mean"]
""",
    "labels": """
adjust = "max-t"
alternative = "greater"
[[test_set]]
name = "labels"
format = "labels"
gold = "gold.csv"
systems = { a = "label_a.csv", b = "label_b.csv", c = "label_c.csv" }
metrics = ["accuracy", "macro-f1", "f1[P]", "micro-precision", "mcc", "kappa"]
""",
    "chunks": """
adjust = "none"
[[test_set]]
name = "chunks"
format = "conll"
systems = { a = "chunks_a.txt", b = "chunks_b.txt" }
metrics = ["f1", "recall[LOC]", "accuracy"]
""",
    "terms": """
adjust = "none"
[[test_set]]
name = "terms"
format = "terms"
gold = "terms_gold.tsv"
systems = { a = "terms_a.tsv", b = "terms_b.tsv", c = "terms_c.tsv" }
metrics = ["type-f1", "type-recall", "f1"]
""",
    "rankings": """
adjust = "none"
[[test_set]]
name = "rankings"
format = "trec"
gold = "qrels.txt"
systems = { a = "run_a.txt", b = "run_b.txt" }
metrics = ["AP", "nDCG@5"]
""",
    "segments": """
adjust = "none"
[[test_set]]
name = "segments"
format = "segments"
gold = "reference.txt"
systems = { a = "text_a.txt", b = "text_b.txt" }
metrics = ["BLEU", "chrF", "TER", "WER", "CER"]
""",
    "replicates": """
adjust = "none"
[[test_set]]
name = "replicates"
format = "segments"
gold = "reference.txt"
systems = { a = ["text_a.txt", "text_a2.txt"], b = ["text_b.txt", "text_b2.txt"] }
metrics = ["BLEU", "WER"]
""",
    "own": """
adjust = "none"
[[test_set]]
name = "own"
systems = "decimals.csv"
metrics = ["own_metrics:cubes"]
trials = 500
[[test_set]]
name = "own-labels"
format = "labels"
gold = "gold.csv"
systems = { a = "label_a.csv", b = "label_b.csv" }
metrics = ["own_metrics:odds"]
""",
    "stopping": """
[stopping]
rule = "besag-clifford"
h = 20
[[test_set]]
name = "stopping"
systems = "decimals.csv"
metrics = ["mean"]
""",
    "sequence": """
[stopping]
rule = "confidence-sequence"
[[test_set]]
name = "sequence"
systems = "decimals.csv"
metrics = ["mean"]
""",
    "gate": """
pairs = { baseline = "a" }
adjust = "holm"
[[test_set]]
name = "gated"
systems = "decimals.csv"
metrics = ["mean"]
[gate]
rules = [{ rule = "not-worse" }, { rule = "non-inferior", margin = 0.9 }]
""",
}
"""Name to what follows on SHARED: each plan is a part that a later correction may count again."""

METRICS = '''"""A user's metrics."""

import math

import sigdask


def cubes(outputs, gold):
    return math.fsum(x**3 for x in outputs)


@sigdask.metric
def odds(correct, items):
    return correct / (items - correct + 1)
'''


def value(*at: int) -> int:
    """Return a number of 0 to 996 that looks like chance."""
    x = 12345
    for k in at:
        x = (x * 1103515245 + 12345 + 7919 * (k + 1)) % 2**31
        x ^= x >> 11
    return x % 997


def write(folder: Path) -> None:
    """Write plans and data."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{name}.toml": SHARED + text for name, text in PLANS.items()}
    files |= {"own_metrics.py": METRICS, **_tables(), **_labels(), **_terms(), **_rankings(), **_texts()}
    for name, text in files.items():
        (folder / name).write_text(text)


def _tables() -> dict[str, str]:
    def table(systems: str, cell: Callable[[int, int], str], more: Callable[[int], str] = lambda _: "",
              header: str = "") -> str:  # fmt: skip
        rows = [f"i{k},{','.join(cell(k, s) for s in range(len(systems)))}{more(k)}" for k in range(60)]
        return "\n".join([f"item,{','.join(systems)}{header}", *rows, ""])

    def decimals(k: int, s: int) -> str:
        return f"{(value(k, s) % 40 + 3 * s) / 20:.2f}"

    def gaps(k: int, s: int) -> str:
        return "" if s == 2 and k % 7 == 0 else decimals(k, s)

    return {
        "decimals.csv": table("abcd", decimals),
        "reals.csv": table("abc", lambda k, s: repr((value(k, s) % 29 + s) / 29)),
        "gaps.csv": table("abc", gaps),
        "groups.csv": table("abc", decimals, lambda k: f",d{k // 2},{'xy'[k % 4 // 2]}", ",document,kind"),
    }


def _labels() -> dict[str, str]:
    gold = ["PQRS"[value(k, 9) % 3] for k in range(80)]
    files = {"gold.csv": "id,gold\n" + "".join(f"i{k},{label}\n" for k, label in enumerate(gold))}
    for s, system in enumerate("abc"):
        given = [right if value(k, s) % 10 < 6 + s else "PQRS"[value(k, s, 1) % 4] for k, right in enumerate(gold)]
        files[f"label_{system}.csv"] = "id,label\n" + "".join(f"i{k},{label}\n" for k, label in enumerate(given))
    tags = ["O", "B-LOC", "I-LOC", "B-PER", "O"]
    for s, system in enumerate("ab"):
        lines = []
        for k in range(40):
            for word in range(5):
                right = tags[(value(k, 7) + word) % 5]
                given = right if value(k, word, s) % 10 < 7 + s else tags[value(k, word, s, 1) % 5]
                lines.append(f"w{word} {right} {given}")
            lines.append("")
        files[f"chunks_{system}.txt"] = "\n".join(lines) + "\n"
    return files


def _terms() -> dict[str, str]:
    def listed(s: int) -> str:
        rows = []
        for k in range(40):
            terms = sorted({f"t{value(k, place) % 25}" for place in range(3)})
            if s:
                terms = [t for n, t in enumerate(terms) if value(k, n, s) % 10 < 5 + s] + [f"x{value(k, s) % 30}"]
            rows += [f"i{k}\t{term}" for term in terms]
        return "id\tterm\n" + "\n".join(rows) + "\n"

    return {f"terms_{name}.tsv": listed(s) for s, name in enumerate(("gold", "a", "b", "c"))}


def _rankings() -> dict[str, str]:
    topics = range(30)
    files = {"qrels.txt": "".join(f"{t} 0 d{d} {int(value(t, d) % 3 == 0)}\n" for t in topics for d in range(12))}
    for s, system in enumerate("ab"):
        rows = []
        for t in topics:
            order = sorted(range(12), key=lambda d: (value(t, d) % 3 * 150 + value(t, d, s) % 400, d))
            rows += [f"{t} Q0 d{d} {rank + 1} {12 - rank} {system}\n" for rank, d in enumerate(order)]
        files[f"run_{system}.txt"] = "".join(rows)
    return files


def _texts() -> dict[str, str]:
    words = ["the", "a", "cat", "dog", "sat", "ran", "on", "under", "old", "mat", "house", "tree", "and", "slept"]
    reference = [[words[value(k, n) % len(words)] for n in range(8)] for k in range(40)]
    files = {"reference.txt": "\n".join(map(" ".join, reference)) + "\n"}
    for s, name in enumerate(("a", "b", "a2", "b2")):
        lines = []
        for k, right in enumerate(reference):
            given = [
                word if value(k, n, s) % 10 < 7 + s % 2 else words[value(k, n, s, 1) % len(words)]
                for n, word in enumerate(right)
            ]
            lines.append(" ".join(given[: 8 - value(k, s) % 2]))
        files[f"text_{name}.txt"] = "\n".join(lines) + "\n"
    return files


def count(folder: Path) -> None:
    """Run every plan and write what the store then holds."""
    for name in PLANS:
        command = [sys.executable, "-m", "sigdask", "run", f"{name}.toml", "--cluster", "none"]
        done = subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)
        print(name, done.returncode)
    with contextlib.closing(sqlite3.connect(folder / "kept.sqlite")) as store:
        written = "\n".join(store.iterdump()) + "\n"
    written = written.replace(f"{folder.resolve()}/", "").replace(socket.gethostname(), "host")
    (folder / "store.sql").write_text(written)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
    if "--count" in sys.argv:
        count(Path(sys.argv[1]))
