"""Write the plans and data of stores whose counts must stay valid and, on request, such a store.

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

COMMON_SETTINGS = 'seed = 5\ntrials = 20000\nstore = "kept.sqlite"\n'

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


def hash_indices(*indices: int) -> int:
    """Return a pseudo-random number from 0 to 996."""
    x = 12345
    for k in indices:
        x = (x * 1103515245 + 12345 + 7919 * (k + 1)) % 2**31
        x ^= x >> 11
    return x % 997


def write(folder: Path) -> None:
    """Write plans and data."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{name}.toml": COMMON_SETTINGS + text for name, text in PLANS.items()}
    files |= {"own_metrics.py": METRICS, **_tables(), **_labels(), **_terms(), **_rankings(), **_texts()}
    for name, text in files.items():
        (folder / name).write_text(text)


def _tables() -> dict[str, str]:
    def table(systems: str, cell: Callable[[int, int], str], more: Callable[[int], str] = lambda _: "",
              header: str = "") -> str:  # fmt: skip
        rows = [f"i{k},{','.join(cell(k, s) for s in range(len(systems)))}{more(k)}" for k in range(60)]
        return "\n".join([f"item,{','.join(systems)}{header}", *rows, ""])

    def decimals(k: int, s: int) -> str:
        return f"{(hash_indices(k, s) % 40 + 3 * s) / 20:.2f}"

    def gaps(k: int, s: int) -> str:
        return "" if s == 2 and k % 7 == 0 else decimals(k, s)

    return {
        "decimals.csv": table("abcd", decimals),
        "reals.csv": table("abc", lambda k, s: repr((hash_indices(k, s) % 29 + s) / 29)),
        "gaps.csv": table("abc", gaps),
        "groups.csv": table("abc", decimals, lambda k: f",d{k // 2},{'xy'[k % 4 // 2]}", ",document,kind"),
    }


def _labels() -> dict[str, str]:
    gold = ["PQRS"[hash_indices(k, 9) % 3] for k in range(80)]
    files = {"gold.csv": "id,gold\n" + "".join(f"i{k},{label}\n" for k, label in enumerate(gold))}
    for s, system in enumerate("abc"):
        predicted = [
            correct if hash_indices(k, s) % 10 < 6 + s else "PQRS"[hash_indices(k, s, 1) % 4]
            for k, correct in enumerate(gold)
        ]
        files[f"label_{system}.csv"] = "id,label\n" + "".join(f"i{k},{label}\n" for k, label in enumerate(predicted))
    tags = ["O", "B-LOC", "I-LOC", "B-PER", "O"]
    for s, system in enumerate("ab"):
        lines = []
        for k in range(40):
            for word in range(5):
                correct = tags[(hash_indices(k, 7) + word) % 5]
                predicted = correct if hash_indices(k, word, s) % 10 < 7 + s else tags[hash_indices(k, word, s, 1) % 5]
                lines.append(f"w{word} {correct} {predicted}")
            lines.append("")
        files[f"chunks_{system}.txt"] = "\n".join(lines) + "\n"
    return files


def _terms() -> dict[str, str]:
    def format_terms(s: int) -> str:
        rows = []
        for k in range(40):
            terms = sorted({f"t{hash_indices(k, column) % 25}" for column in range(3)})
            if s:
                terms = [t for n, t in enumerate(terms) if hash_indices(k, n, s) % 10 < 5 + s] + [
                    f"x{hash_indices(k, s) % 30}"
                ]
            rows += [f"i{k}\t{term}" for term in terms]
        return "id\tterm\n" + "\n".join(rows) + "\n"

    return {f"terms_{name}.tsv": format_terms(s) for s, name in enumerate(("gold", "a", "b", "c"))}


def _rankings() -> dict[str, str]:
    topics = range(30)
    files = {
        "qrels.txt": "".join(f"{t} 0 d{d} {int(hash_indices(t, d) % 3 == 0)}\n" for t in topics for d in range(12))
    }
    for s, system in enumerate("ab"):
        rows = []
        for t in topics:
            order = sorted(range(12), key=lambda d: (hash_indices(t, d) % 3 * 150 + hash_indices(t, d, s) % 400, d))
            rows += [f"{t} Q0 d{d} {rank + 1} {12 - rank} {system}\n" for rank, d in enumerate(order)]
        files[f"run_{system}.txt"] = "".join(rows)
    return files


def _texts() -> dict[str, str]:
    words = ["the", "a", "cat", "dog", "sat", "ran", "on", "under", "old", "mat", "house", "tree", "and", "slept"]
    reference = [[words[hash_indices(k, n) % len(words)] for n in range(8)] for k in range(40)]
    files = {"reference.txt": "\n".join(map(" ".join, reference)) + "\n"}
    for s, name in enumerate(("a", "b", "a2", "b2")):
        lines = []
        for k, words_of_line in enumerate(reference):
            output = [
                word if hash_indices(k, n, s) % 10 < 7 + s % 2 else words[hash_indices(k, n, s, 1) % len(words)]
                for n, word in enumerate(words_of_line)
            ]
            lines.append(" ".join(output[: 8 - hash_indices(k, s) % 2]))
        files[f"text_{name}.txt"] = "\n".join(lines) + "\n"
    return files


def count(folder: Path) -> None:
    """Run every plan and write what the store then holds."""
    for name in PLANS:
        command = [sys.executable, "-m", "sigdask", "run", f"{name}.toml", "--cluster", "none"]
        result = subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)
        print(name, result.returncode)
    with contextlib.closing(sqlite3.connect(folder / "kept.sqlite")) as store:
        dump = "\n".join(store.iterdump()) + "\n"
    dump = dump.replace(f"{folder.resolve()}/", "").replace(socket.gethostname(), "host")
    (folder / "store.sql").write_text(dump)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
    if "--count" in sys.argv:
        count(Path(sys.argv[1]))
