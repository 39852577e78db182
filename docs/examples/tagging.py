"""Make sigdask/examples/tagging: the parts of American addresses, found by four small taggers.

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

TO = Path(__file__).parents[2] / "sigdask" / "examples" / "tagging"
N_TEST = 300
KINDS = {
    "Address": "NUMBER", "Street": "STREET", "Occupancy": "UNIT", "Subaddress": "UNIT", "Building": "BUILDING",
    "Landmark": "BUILDING", "Corner": "O", "Intersection": "O", "NotAddress": "O", "USPSBox": "BOX", "Place": "CITY",
    "State": "STATE", "Zip": "ZIP", "Country": "O",
}  # fmt: skip
Address = list[tuple[str, str]]
Tagger = Callable[[list[str]], list[str]]


def addresses(path: Path) -> Iterator[Address]:
    """Yield the words of addresses with their labels, B- where a part begins and I- where it goes on."""
    for address in ET.parse(path).getroot():  # noqa: S314  # a file that the user names
        tags = [part.tag for part in address]
        if "Recipient" in tags:
            continue
        words, before = [], "O"
        for part in address:
            [kind] = [kind for start, kind in KINDS.items() if part.tag.startswith(start)]
            for word in (part.text or "").split():
                words.append((word, kind if kind == "O" else f"{'I' if kind == before else 'B'}-{kind}"))
                before = "O" if word.endswith(",") else kind
        yield words


def shape(word: str) -> str:
    """Return what a word looks like: `St.` is `Aa.`, `30308` is `99999`."""
    return re.sub(r"(a)a+", r"\1", re.sub(r"[a-z]", "a", re.sub(r"[A-Z]", "A", re.sub(r"\d", "9", word))))


def most_frequent(known: list[Address]) -> Tagger:
    """Give each word the label that it has most often, or that words of its shape have."""
    by_word, by_shape = defaultdict(Counter), defaultdict(Counter)
    for word, label in (pair for address in known for pair in address):
        by_word[word.lower()][label] += 1
        by_shape[shape(word)][label] += 1

    def tagged(words: list[str]) -> list[str]:
        rows = (by_word.get(w.lower()) or by_shape.get(shape(w)) or Counter(["B-STREET"]) for w in words)
        return [row.most_common(1)[0][0] for row in rows]

    return tagged


def hidden_markov(known: list[Address]) -> Tagger:
    """Find the most probable labels, each after the one before and each giving its word."""
    after, gives, looks, total = defaultdict(Counter), defaultdict(Counter), defaultdict(Counter), Counter()
    for address in known:
        for (_, before), (word, label) in zip([("", "<s>"), *address], address, strict=False):
            after[before][label] += 1
            gives[label][word.lower()] += 1
            looks[label][shape(word)] += 1
            total[label] += 1
    labels = sorted(total)

    def emitted(label: str, word: str) -> float:
        own, alike = gives[label][word.lower()] / total[label], (looks[label][shape(word)] + 0.05) / (total[label] + 5)
        return math.log(0.8 * own + 0.2 * alike * 0.02)

    def follows(before: str, label: str) -> float:
        return math.log((after[before][label] + 0.1) / (sum(after[before].values()) + 0.1 * len(labels)))

    def tagged(words: list[str]) -> list[str]:
        best = {"<s>": (0.0, [])}
        for word in words:
            best = {
                label: max(
                    (s + follows(b, label) + emitted(label, word), [*path, label]) for b, (s, path) in best.items()
                )
                for label in labels
            }
        return max(best.values())[1]

    return tagged


class Perceptron:
    """A tagger that weighs what it sees of a word for each label; weights are averaged over all steps."""

    def __init__(self, known: list[Address], *, neighbours: bool, rounds: int = 6) -> None:
        self.neighbours = neighbours
        self.labels = sorted({label for address in known for _, label in address})
        self.weights: dict[tuple[str, str], float] = defaultdict(float)
        sums: dict[tuple[str, str], float] = defaultdict(float)
        step, order = 1, random.Random(1)  # noqa: S311
        for _ in range(rounds):
            for address in order.sample(known, len(known)):
                words, before = [word for word, _ in address], "<s>"
                for k, (_, meant) in enumerate(address):
                    seen = self.features(words, k, before)
                    before = self.best(seen)
                    for feature in seen if before != meant else ():
                        for label, change in ((meant, 1.0), (before, -1.0)):
                            self.weights[feature, label] += change
                            sums[feature, label] += change * step
                    step += 1
        for key, whole in sums.items():
            self.weights[key] -= whole / step

    def features(self, words: list[str], k: int, before: str) -> list[str]:
        """Return what is seen of a word."""
        w = words[k]
        own = ["", f"w={w.lower()}", f"s={shape(w)}", f"e={w.lower()[-2:]}", f"b={before}", f"b={before} s={shape(w)}"]
        if not self.neighbours:
            return own
        last, after = words[k - 1] if k else "<s>", words[k + 1] if k + 1 < len(words) else "</s>"
        near = [f"l={last.lower()}", f"a={after.lower()}", f"as={shape(after)}", f"ls={shape(last)}"]
        return [*own, *near, f"b={before} a={after.lower()}", f"w={w.lower()} a={after.lower()}"]

    def best(self, seen: list[str]) -> str:
        """Return the label that weighs most."""
        return max(self.labels, key=lambda label: (sum(self.weights[f, label] for f in seen), label))

    def __call__(self, words: list[str]) -> list[str]:
        """Tag words from left to right."""
        made: list[str] = []
        for k in range(len(words)):
            made.append(self.best(self.features(words, k, made[-1] if made else "<s>")))
        return made


def main(path: Path) -> None:
    """Learn, tag, write the files."""
    unlike = {tuple(address): address for address in addresses(path) if len(address) > 2}
    known = random.Random(0).sample(list(unlike.values()), len(unlike))  # noqa: S311
    known, test = known[N_TEST:], known[:N_TEST]
    taggers = {
        "frequent": most_frequent(known),
        "hmm": hidden_markov(known),
        "perceptron-1": Perceptron(known, neighbours=False),
        "perceptron-3": Perceptron(known, neighbours=True),
    }
    TO.mkdir(parents=True, exist_ok=True)
    _write("gold", test)
    for name, tagger in taggers.items():
        _write(name, [[*zip(words, tagger(words), strict=True)] for words in ([w for w, _ in a] for a in test)])
    print(len(known), "addresses to learn from,", len(test), "to test,", sum(map(len, test)), "words")


def _write(name: str, sentences: list[Address]) -> None:
    blocks = ("".join(f"{word} {label}\n" for word, label in sentence) for sentence in sentences)
    (TO / f"{name}.conll").write_text("\n".join(blocks), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
