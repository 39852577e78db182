"""Make sigdask/examples/samples and nightly: logs in lm-evaluation-harness format of letter models.

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
from docs.examples.retrieval import iter_docstrings  # found beside the package

FOLDER = Path(__file__).parents[2] / "sigdask" / "examples"
N_ORDERS, N_WORDS = 240, 160
SIMILAR_LETTERS = ("aeiou", "bdgptckqvwfxj", "lrmnhy", "sz")
FIRST_DATE, SECOND_DATE = "2026-05-04T01-30-00.000000", "2026-05-05T01-30-00.000000"


class LetterModel:
    """An n-gram language model of letters."""

    def __init__(self, order: int, text: str) -> None:
        self.order = order
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        for k, letter in enumerate(text):
            for n in range(min(order, k + 1)):
                self.counts[text[k - n : k]][letter] += 1
        self.sums = {context: sum(row.values()) for context, row in self.counts.items()}

    def probability(self, context: str, letter: str) -> float:
        """Return the probability of a letter in a context."""
        estimate = 1 / 128
        for n in range(self.order):
            suffix = context[len(context) - n :] if n else ""
            if n > len(context) or suffix not in self.sums:
                break
            row = self.counts[suffix]
            estimate = (row[letter] + len(row) * estimate) / (self.sums[suffix] + len(row))
        return estimate

    def log_likelihood(self, context: str, text: str) -> float:
        """Return the log-probability of a text in a context."""
        full_text = context + text
        return sum(
            math.log(self.probability(full_text[max(0, k - self.order) : k], full_text[k]))
            for k in range(len(context), len(full_text))
        )


def iter_texts() -> Iterator[tuple[str, str]]:
    """Yield modules and docstrings, each docstring as one line."""
    for module, _, text in iter_docstrings():
        yield module, " ".join(text.split())


def is_test(module: str) -> bool:
    """Return whether a module belongs to the test half."""
    return hashlib.md5(module.split(".", maxsplit=1)[0].encode(), usedforsecurity=False).digest()[0] % 2 == 0


def iter_word_orders(texts: list[tuple[str, str]], rng: random.Random) -> Iterator[dict]:
    """Yield questions that show a first sentence in four word orders."""
    subjects = {}
    for module, text in texts:
        words = text.partition(". ")[0].rstrip(".").split()
        if 7 <= len(words) <= 14 and len(set(words)) == len(words):
            subjects.setdefault(tuple(words), module.split(".")[0])
    for subject, words in sorted((subjects[words], words) for words in rng.sample(sorted(subjects), N_ORDERS)):
        positions = rng.sample(range(len(words) - 1), 3)
        distractors = [" ".join([*words[:k], words[k + 1], words[k], *words[k + 2 :]]) for k in positions]
        yield _build_doc(subject, "", " ".join(words), distractors, rng)


def iter_spellings(texts: list[tuple[str, str]], rng: random.Random) -> Iterator[dict]:
    """Yield questions that show a word in four spellings."""
    subjects = {}
    for module, text in texts:
        for word in re.findall(r"(?<= )[a-z]{7,}(?= )", text):
            subjects.setdefault(word, module.split(".")[0])
    for subject, word in sorted((subjects[word], word) for word in rng.sample(sorted(subjects), N_WORDS)):
        wrong = set()
        while len(wrong) < 3:
            k = rng.randrange(1, len(word))
            similar = next(kind for kind in SIMILAR_LETTERS if word[k] in kind)
            wrong.add(word[:k] + rng.choice(sorted(set(similar) - {word[k]})) + word[k + 1 :])
        yield _build_doc(subject, "the", f" {word}", [f" {spelling}" for spelling in sorted(wrong)], rng)


def _build_doc(subject: str, query: str, correct: str, distractors: list[str], rng: random.Random) -> dict:
    choices = rng.sample([correct, *distractors], 4)
    return {"subject": subject, "query": query, "choices": choices, "gold": choices.index(correct)}


def iter_samples(model: LetterModel, docs: list[dict]) -> Iterator[dict]:
    """Yield the harness's record of each sample."""
    for number, doc in enumerate(docs):
        likelihoods = [round(model.log_likelihood(doc["query"], choice), 2) for choice in doc["choices"]]
        yield {
            "doc_id": number, "doc": doc, "target": str(doc["gold"]),
            "filtered_resps": [[value, False] for value in likelihoods], "filter": "none", "metrics": ["acc"],
            "acc": float(likelihoods.index(max(likelihoods)) == doc["gold"]),
        }  # fmt: skip


def main() -> None:
    """Train the models, answer the questions and write the files."""
    texts = [*iter_texts()]
    training_text = "\n".join(text for module, text in texts if not is_test(module))
    rng, test_texts = random.Random(0), [text_row for text_row in texts if is_test(text_row[0])]  # noqa: S311
    tasks = {"word_order": [*iter_word_orders(test_texts, rng)], "word_spelling": [*iter_spellings(test_texts, rng)]}
    letters = {n: LetterModel(n, training_text) for n in (3, 4, 5, 6, 8)}
    faulty = LetterModel(6, training_text.replace(" ", ""))
    for n in (3, 4, 6, 8):
        _write_logs(FOLDER / "samples" / f"letters-{n}", letters[n], tasks, FIRST_DATE)
    nightly = FOLDER / "nightly"
    _write_logs(nightly / "logs" / "production", letters[5], tasks, FIRST_DATE)
    _write_logs(nightly / "logs" / "candidate", letters[6], tasks, FIRST_DATE)
    _write_logs(nightly / "night-2" / "candidate", faulty, tasks, SECOND_DATE)
    print(len(training_text), "letters to learn from;", {task: len(docs) for task, docs in tasks.items()})


def _write_logs(folder: Path, model: LetterModel, tasks: dict[str, list[dict]], date: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for task, docs in tasks.items():
        text = "".join(json.dumps(sample) + "\n" for sample in iter_samples(model, docs))
        (folder / f"samples_{task}_{date}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
