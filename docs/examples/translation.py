"""Make sigdask/examples/translation: messages of web programs, translated to German by five small systems.

    pip download --no-deps django==5.2.19 wagtail==8.0.1 django-oscar==4.2.1 django-cms==5.1.3 mezzanine==6.1.1
    python docs/examples/translation.py FOLDER_OF_WHEELS

The reference is what people wrote in the catalogues. Test documents are small parts of Django and Wagtail, the systems
learn from the other catalogues: by a translation memory, word by word (IBM Model 1: Brown et al. 1993), by phrases
(Koehn, Och and Marcu 2003; decoded from left to right without reordering) with and without a language model of bigrams,
and by the memory where it has something similar, else by phrases.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter, defaultdict
from difflib import SequenceMatcher
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from docs.examples.catalogues import read_translations  # found beside the package

FOLDER = Path(__file__).parents[2] / "sigdask" / "examples" / "translation"
MAX_MESSAGES, MIN_WORDS, MAX_PHRASE, BEAM, MIN_SIMILARITY = 24, 3, 5, 30, 0.8
TOKEN = re.compile(r"%\(\w+\)[sd]|%[sd]|\{[^}]*\}|\w+|[^\w\s]")
Pairs = list[tuple[list[str], list[str]]]


def is_test(part: str) -> bool:
    """Return whether a part of a package is a document of the test set."""
    folders = part.split("/")
    return (folders[0] == "django" and folders[1] == "contrib" and folders[2] != "admin") or (
        folders[0] == "wagtail" and folders[1:] not in ([], ["admin"])
    )


def tokenize(text: str) -> list[str]:
    """Split a text into words, punctuation marks and placeholders."""
    return TOKEN.findall(text)


def join_words(words: list[str]) -> str:
    """Join words to a text, without spaces around punctuation."""
    text = " ".join(words)
    return re.sub(r" ([.,:;!?)\]»”])", r"\1", re.sub(r"([(\[«„]) ", r"\1", text))


def train_lexicon(pairs: Pairs, rounds: int = 8) -> dict[str, dict[str, float]]:
    """Return translation probabilities of German words for English ones, by IBM Model 1."""
    t: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(lambda: 1e-3))
    for _ in range(rounds):
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for english, german in pairs:
            for g in german:
                share = {e: t[e][g] for e in [*english, ""]}
                total = sum(share.values())
                for e, weight in share.items():
                    counts[e][g] += weight / total
        t = defaultdict(lambda: defaultdict(lambda: 1e-7))
        for e, row in counts.items():
            total = sum(row.values())
            t[e] = defaultdict(lambda: 1e-7, {g: n / total for g, n in row.items() if n / total > 1e-5})
    return t


def extract_phrases(pairs: Pairs) -> dict[tuple[str, ...], list[tuple[tuple[str, ...], float]]]:
    """Return the German phrases of each English phrase, with log-probabilities."""
    forward, backward = train_lexicon(pairs), train_lexicon([(german, english) for english, german in pairs])
    counts: dict[tuple[str, ...], Counter[tuple[str, ...]]] = defaultdict(Counter)
    for english, german in pairs:
        forward_links = {
            (max(range(len(english)), key=lambda i: forward[english[i]][g]), j) for j, g in enumerate(german)
        }
        backward_links = {
            (i, max(range(len(german)), key=lambda j: backward[german[j]][e])) for i, e in enumerate(english)
        }
        alignment = forward_links & backward_links
        alignment |= {
            (i, j) for i, j in forward_links | backward_links if {(i - 1, j - 1), (i + 1, j + 1)} & alignment
        }  # what lies beside it
        for i in range(len(english)):
            for k in range(i, min(i + MAX_PHRASE, len(english))):
                targets = [j for a, j in alignment if i <= a <= k]
                if targets and all(i <= a <= k for a, j in alignment if min(targets) <= j <= max(targets)):
                    counts[tuple(english[i : k + 1])][tuple(german[min(targets) : max(targets) + 1])] += 1
    return {
        e: [(g, math.log(n / (sum(row.values()) + 0.5))) for g, n in row.most_common(8)] for e, row in counts.items()
    }


class BigramModel:
    """A bigram language model, smoothed by unigrams."""

    def __init__(self, texts: list[list[str]]) -> None:
        self.unigrams = Counter(w for text in texts for w in text)
        self.bigrams = Counter(pair for text in texts for pair in zip(["<s>", *text], [*text, "</s>"], strict=True))
        self.contexts = Counter(w for text in texts for w in ["<s>", *text])
        self.n = sum(self.unigrams.values())

    def __call__(self, previous: str, word: str) -> float:
        """Return the log-probability of a word after another."""
        unigram = (self.unigrams[word] + 0.1) / (self.n + 1000)
        return math.log(0.7 * self.bigrams[previous, word] / max(self.contexts[previous], 1) + 0.3 * unigram)


def decode(english: list[str], table: dict, model: BigramModel | None) -> list[str]:
    """Return the best German text, phrase by phrase in the English order."""
    stacks: list[dict[str, tuple[float, list[str]]]] = [{} for _ in range(len(english) + 1)]
    stacks[0]["<s>"] = (0.0, [])
    for i, stack in enumerate(stacks[:-1]):
        for last_word, (score, output) in sorted(stack.items(), key=lambda entry: -entry[1][0])[:BEAM]:
            for k in range(i + 1, min(i + MAX_PHRASE, len(english)) + 1):
                source = tuple(english[i:k])
                options = table.get(source) or ([(source, -9.0)] if k == i + 1 else [])
                for target, log_probability in options:
                    total, previous = score + log_probability - 0.5, last_word
                    for word in target if model else ():
                        total, previous = total + 0.6 * model(previous, word) + 1.2, word
                    end = target[-1] if model else str(k)
                    if end not in stacks[k] or total > stacks[k][end][0]:
                        stacks[k][end] = (total, output + list(target))
    return max(stacks[-1].values(), key=lambda entry: entry[0])[1]


def find_similar(english: str, memory: dict[str, str]) -> tuple[float, str]:
    """Return the similarity of the most similar text and its translation."""
    words = set(tokenize(english.lower()))
    near = sorted(
        memory,
        key=lambda candidate: (
            -len(words & set(tokenize(candidate.lower()))) / (len(words | set(tokenize(candidate.lower()))) or 1),
            candidate,
        ),
    )[:40]
    similarity, text = max(
        (SequenceMatcher(None, english, candidate, autojunk=False).ratio(), candidate) for candidate in near
    )
    return similarity, memory[text]


def main(wheels: Path) -> None:
    """Train the systems, translate the test set and write the files."""
    memory: dict[str, str] = {}
    test: list[tuple[str, str, str]] = []
    for wheel in sorted(wheels.glob("*.whl")):
        for part, pairs in read_translations(wheel).items():
            if is_test(part):
                test += [(part, *pair) for pair in pairs]
            else:
                memory |= dict(pairs)
    segments, seen, n_messages = [], set(memory), Counter[str]()
    for part, english, german in test:
        if (
            english in seen
            or len(tokenize(english)) < MIN_WORDS
            or len(tokenize(english)) > 40
            or n_messages[part] == MAX_MESSAGES
        ):
            continue
        seen.add(english)
        n_messages[part] += 1
        segments.append((part.replace("/", "."), english, german))
    pairs = [(tokenize(english), tokenize(german)) for english, german in memory.items()]
    pairs = [pair for pair in pairs if 0 < len(pair[0]) <= 40 and 0 < len(pair[1]) <= 40]
    words, table, model = train_lexicon(pairs), extract_phrases(pairs), BigramModel([german for _, german in pairs])
    best = {e: max(row, key=lambda g: (row[g], g)) for e, row in words.items() if row}
    outputs: dict[str, list[str]] = {name: [] for name in ("memory", "words", "phrases", "phrases-lm", "combined")}
    for _, english, _ in segments:
        similarity, text = find_similar(english, memory)
        outputs["memory"].append(text)
        outputs["words"].append(join_words([best.get(e, e) for e in tokenize(english)]))
        outputs["phrases"].append(join_words(decode(tokenize(english), table, None)))
        outputs["phrases-lm"].append(join_words(decode(tokenize(english), table, model)))
        outputs["combined"].append(text if similarity >= MIN_SIMILARITY else outputs["phrases-lm"][-1])
    FOLDER.mkdir(parents=True, exist_ok=True)
    documents, source, reference = zip(*segments, strict=True)
    files = {"documents": documents, "source.en": source, "reference.de": reference, **outputs}
    for name, texts in files.items():
        (FOLDER / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    print(len(pairs), "pairs to learn from;", len(segments), "segments in", len(n_messages), "documents")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
