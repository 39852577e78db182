"""Make sigdask/examples/samples and nightly: logs of language models of letters, as lm-evaluation-harness writes them.

    python3.11 docs/examples/samples.py

The models predict each letter from the n - 1 before it (Witten and Bell 1991), and learn from the docstrings of one
half of Python's standard library. Two tasks of four choices are made of the other half: `word_order` asks which is the
first sentence of a docstring, beside three in which two neighbouring words are exchanged; `word_spelling` asks which is
a word of a docstring, beside three in which a letter is another. The answer is the choice of the highest probability.
A sample's subject is its module.

In `nightly` the production system sees four letters, the candidate of the first night five. That of the second night
learned from text that lost its blanks, as a faulty reader would leave it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from docs.examples.retrieval import documented  # found beside the package

TO = Path(__file__).parents[2] / "sigdask" / "examples"
N_ORDERS, N_WORDS = 240, 160
ALIKE = ("aeiou", "bdgptckqvwfxj", "lrmnhy", "sz")
FIRST, SECOND = "2026-05-04T01-30-00.000000", "2026-05-05T01-30-00.000000"


class Letters:
    """A language model of letters."""

    def __init__(self, order: int, text: str) -> None:
        self.order = order
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        for k, letter in enumerate(text):
            for n in range(min(order, k + 1)):
                self.counts[text[k - n : k]][letter] += 1
        self.sums = {before: sum(row.values()) for before, row in self.counts.items()}

    def probability(self, before: str, letter: str) -> float:
        """Return that of a letter after others."""
        found = 1 / 128
        for n in range(self.order):
            seen = before[len(before) - n :] if n else ""
            if n > len(before) or seen not in self.sums:
                break
            row = self.counts[seen]
            found = (row[letter] + len(row) * found) / (self.sums[seen] + len(row))
        return found

    def log_likelihood(self, before: str, text: str) -> float:
        """Return the logarithm of the probability of a text after another."""
        whole = before + text
        return sum(
            math.log(self.probability(whole[max(0, k - self.order) : k], whole[k]))
            for k in range(len(before), len(whole))
        )


def sentences() -> Iterator[tuple[str, str]]:
    """Yield modules and docstrings as lines of text."""
    for module, _, text in documented():
        yield module, " ".join(text.split())


def is_test(module: str) -> bool:
    """Say whether a module belongs to the half that is asked about."""
    return hashlib.md5(module.split(".", maxsplit=1)[0].encode(), usedforsecurity=False).digest()[0] % 2 == 0


def orders(texts: list[tuple[str, str]], rng: random.Random) -> Iterator[dict]:
    """Yield first sentences with four orders of their words."""
    found = {}
    for module, text in texts:
        words = text.partition(". ")[0].rstrip(".").split()
        if 7 <= len(words) <= 14 and len(set(words)) == len(words):
            found.setdefault(tuple(words), module.split(".")[0])
    for subject, words in sorted((found[words], words) for words in rng.sample(sorted(found), N_ORDERS)):
        places = rng.sample(range(len(words) - 1), 3)
        others = [" ".join([*words[:k], words[k + 1], words[k], *words[k + 2 :]]) for k in places]
        yield _doc(subject, "", " ".join(words), others, rng)


def spellings(texts: list[tuple[str, str]], rng: random.Random) -> Iterator[dict]:
    """Yield words with four spellings."""
    found = {}
    for module, text in texts:
        for word in re.findall(r"(?<= )[a-z]{7,}(?= )", text):
            found.setdefault(word, module.split(".")[0])
    for subject, word in sorted((found[word], word) for word in rng.sample(sorted(found), N_WORDS)):
        wrong = set()
        while len(wrong) < 3:
            k = rng.randrange(1, len(word))
            alike = next(kind for kind in ALIKE if word[k] in kind)
            wrong.add(word[:k] + rng.choice(sorted(set(alike) - {word[k]})) + word[k + 1 :])
        yield _doc(subject, "the", f" {word}", [f" {own}" for own in sorted(wrong)], rng)


def _doc(subject: str, query: str, right: str, others: list[str], rng: random.Random) -> dict:
    choices = rng.sample([right, *others], 4)
    return {"subject": subject, "query": query, "choices": choices, "gold": choices.index(right)}


def samples(model: Letters, docs: list[dict]) -> Iterator[dict]:
    """Yield the harness's record of each sample."""
    for number, doc in enumerate(docs):
        found = [round(model.log_likelihood(doc["query"], choice), 2) for choice in doc["choices"]]
        yield {
            "doc_id": number, "doc": doc, "target": str(doc["gold"]),
            "filtered_resps": [[own, False] for own in found], "filter": "none", "metrics": ["acc"],
            "acc": float(found.index(max(found)) == doc["gold"]),
        }  # fmt: skip


def main() -> None:
    """Learn, answer, write the files."""
    texts = [*sentences()]
    known = "\n".join(text for module, text in texts if not is_test(module))
    rng, asked = random.Random(0), [own for own in texts if is_test(own[0])]  # noqa: S311
    tasks = {"word_order": [*orders(asked, rng)], "word_spelling": [*spellings(asked, rng)]}
    letters = {n: Letters(n, known) for n in (3, 4, 5, 6, 8)}
    faulty = Letters(6, known.replace(" ", ""))
    for n in (3, 4, 6, 8):
        _write(TO / "samples" / f"letters-{n}", letters[n], tasks, FIRST)
    nightly = TO / "nightly"
    _write(nightly / "logs" / "production", letters[5], tasks, FIRST)
    _write(nightly / "logs" / "candidate", letters[6], tasks, FIRST)
    _write(nightly / "night-2" / "candidate", faulty, tasks, SECOND)
    print(len(known), "letters to learn from;", {task: len(docs) for task, docs in tasks.items()})


def _write(folder: Path, model: Letters, tasks: dict[str, list[dict]], date: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for task, docs in tasks.items():
        text = "".join(json.dumps(sample) + "\n" for sample in samples(model, docs))
        (folder / f"samples_{task}_{date}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
