"""Make sigdask/examples/tagging: the parts of American addresses, labelled by four small taggers.

    pip download --no-deps --no-binary :all: usaddress==0.5.16 && tar xzf usaddress-0.5.16.tar.gz
    python docs/examples/tagging.py usaddress-0.5.16/training/labeled.xml

The labels were given by people. Addresses that name a person or a firm are left out. 300 of the rest, drawn once, are
the test set; the taggers learn from the others: the most frequent label of each word, a hidden Markov model of pairs of
labels (Viterbi), and an averaged perceptron from left to right (Collins 2002) that sees the word alone or its
neighbours too.
"""

from __future__ import annotations

import math
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

FOLDER = Path(__file__).parents[2] / "sigdask" / "examples" / "tagging"
N_TEST = 300
KINDS = {
    "Address": "NUMBER", "Street": "STREET", "Occupancy": "UNIT", "Subaddress": "UNIT", "Building": "BUILDING",
    "Landmark": "BUILDING", "Corner": "O", "Intersection": "O", "NotAddress": "O", "USPSBox": "BOX", "Place": "CITY",
    "State": "STATE", "Zip": "ZIP", "Country": "O",
}  # fmt: skip
Address = list[tuple[str, str]]
Tagger = Callable[[list[str]], list[str]]


def read_addresses(path: Path) -> Iterator[Address]:
    """Yield the words of each address with their B- and I- labels."""
    for address in ET.parse(path).getroot():  # noqa: S314  # a file that the user names
        tags = [part.tag for part in address]
        if "Recipient" in tags:
            continue
        words, previous = [], "O"
        for part in address:
            [kind] = [kind for start, kind in KINDS.items() if part.tag.startswith(start)]
            for word in (part.text or "").split():
                words.append((word, kind if kind == "O" else f"{'I' if kind == previous else 'B'}-{kind}"))
                previous = "O" if word.endswith(",") else kind
        yield words


def get_shape(word: str) -> str:
    """Return the pattern of a word: `St.` gives `Aa.`, `30308` gives `99999`."""
    return re.sub(r"(a)a+", r"\1", re.sub(r"[a-z]", "a", re.sub(r"[A-Z]", "A", re.sub(r"\d", "9", word))))


def train_most_frequent(training: list[Address]) -> Tagger:
    """Return a tagger that gives each word its most frequent label, or that of its shape."""
    by_word, by_shape = defaultdict(Counter), defaultdict(Counter)
    for word, label in (pair for address in training for pair in address):
        by_word[word.lower()][label] += 1
        by_shape[get_shape(word)][label] += 1

    def tag(words: list[str]) -> list[str]:
        rows = (by_word.get(w.lower()) or by_shape.get(get_shape(w)) or Counter(["B-STREET"]) for w in words)
        return [row.most_common(1)[0][0] for row in rows]

    return tag


def train_hidden_markov(training: list[Address]) -> Tagger:
    """Return a Viterbi tagger of label and word probabilities."""
    transitions, emissions, shapes, total = defaultdict(Counter), defaultdict(Counter), defaultdict(Counter), Counter()
    for address in training:
        for (_, previous), (word, label) in zip([("", "<s>"), *address], address, strict=False):
            transitions[previous][label] += 1
            emissions[label][word.lower()] += 1
            shapes[label][get_shape(word)] += 1
            total[label] += 1
    labels = sorted(total)

    def score_emission(label: str, word: str) -> float:
        word_share, shape_share = (
            emissions[label][word.lower()] / total[label],
            (shapes[label][get_shape(word)] + 0.05) / (total[label] + 5),
        )
        return math.log(0.8 * word_share + 0.2 * shape_share * 0.02)

    def score_transition(previous: str, label: str) -> float:
        return math.log(
            (transitions[previous][label] + 0.1) / (sum(transitions[previous].values()) + 0.1 * len(labels))
        )

    def tag(words: list[str]) -> list[str]:
        best = {"<s>": (0.0, [])}
        for word in words:
            best = {
                label: max(
                    (s + score_transition(b, label) + score_emission(label, word), [*path, label])
                    for b, (s, path) in best.items()
                )
                for label in labels
            }
        return max(best.values())[1]

    return tag


class Perceptron:
    """An averaged perceptron that weighs the features of a word for each label."""

    def __init__(self, training: list[Address], *, neighbours: bool, rounds: int = 6) -> None:
        self.neighbours = neighbours
        self.labels = sorted({label for address in training for _, label in address})
        self.weights: dict[tuple[str, str], float] = defaultdict(float)
        sums: dict[tuple[str, str], float] = defaultdict(float)
        step, order = 1, random.Random(1)  # noqa: S311
        for _ in range(rounds):
            for address in order.sample(training, len(training)):
                words, previous = [word for word, _ in address], "<s>"
                for k, (_, gold_label) in enumerate(address):
                    features = self.features(words, k, previous)
                    previous = self.predict(features)
                    for feature in features if previous != gold_label else ():
                        for label, change in ((gold_label, 1.0), (previous, -1.0)):
                            self.weights[feature, label] += change
                            sums[feature, label] += change * step
                    step += 1
        for key, total in sums.items():
            self.weights[key] -= total / step

    def features(self, words: list[str], k: int, previous: str) -> list[str]:
        """Return the features of a word."""
        w = words[k]
        names = [
            "",
            f"w={w.lower()}",
            f"s={get_shape(w)}",
            f"e={w.lower()[-2:]}",
            f"b={previous}",
            f"b={previous} s={get_shape(w)}",
        ]
        if not self.neighbours:
            return names
        last, after = words[k - 1] if k else "<s>", words[k + 1] if k + 1 < len(words) else "</s>"
        context_names = [f"l={last.lower()}", f"a={after.lower()}", f"as={get_shape(after)}", f"ls={get_shape(last)}"]
        return [*names, *context_names, f"b={previous} a={after.lower()}", f"w={w.lower()} a={after.lower()}"]

    def predict(self, features: list[str]) -> str:
        """Return the label with the largest weight."""
        return max(self.labels, key=lambda label: (sum(self.weights[f, label] for f in features), label))

    def __call__(self, words: list[str]) -> list[str]:
        """Tag words from left to right."""
        labels: list[str] = []
        for k in range(len(words)):
            labels.append(self.predict(self.features(words, k, labels[-1] if labels else "<s>")))
        return labels


def main(path: Path) -> None:
    """Train the taggers, tag the test set and write the files."""
    distinct = {tuple(address): address for address in read_addresses(path) if len(address) > 2}
    training = random.Random(0).sample(list(distinct.values()), len(distinct))  # noqa: S311
    training, test = training[N_TEST:], training[:N_TEST]
    taggers = {
        "frequent": train_most_frequent(training),
        "hmm": train_hidden_markov(training),
        "perceptron-1": Perceptron(training, neighbours=False),
        "perceptron-3": Perceptron(training, neighbours=True),
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    _write("gold", test)
    for name, tagger in taggers.items():
        _write(name, [[*zip(words, tagger(words), strict=True)] for words in ([w for w, _ in a] for a in test)])
    print(len(training), "addresses to learn from,", len(test), "to test,", sum(map(len, test)), "words")


def _write(name: str, sentences: list[Address]) -> None:
    blocks = ("".join(f"{word} {label}\n" for word, label in sentence) for sentence in sentences)
    (FOLDER / f"{name}.conll").write_text("\n".join(blocks), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
