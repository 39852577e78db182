"""Make sigdask/examples/translation: messages of web programs, put into German by five small systems.

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
from docs.examples.catalogues import translated  # found beside the package

TO = Path(__file__).parents[2] / "sigdask" / "examples" / "translation"
MOST, LEAST_WORDS, LONGEST, BEAM, SIMILAR = 24, 3, 5, 30, 0.8
TOKEN = re.compile(r"%\(\w+\)[sd]|%[sd]|\{[^}]*\}|\w+|[^\w\s]")
Pairs = list[tuple[list[str], list[str]]]


def is_test(part: str) -> bool:
    """Say whether a part of a package is a document of the test set."""
    own = part.split("/")
    return (own[0] == "django" and own[1] == "contrib" and own[2] != "admin") or (
        own[0] == "wagtail" and own[1:] not in ([], ["admin"])
    )


def tokens(text: str) -> list[str]:
    """Split a text into words, marks and places to fill in."""
    return TOKEN.findall(text)


def joined(words: list[str]) -> str:
    """Return words as a text."""
    text = " ".join(words)
    return re.sub(r" ([.,:;!?)\]»”])", r"\1", re.sub(r"([(\[«„]) ", r"\1", text))


def lexicon(pairs: Pairs, rounds: int = 8) -> dict[str, dict[str, float]]:
    """Return the probabilities of German words for English ones by IBM Model 1."""
    t: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(lambda: 1e-3))
    for _ in range(rounds):
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for english, german in pairs:
            for g in german:
                share = {e: t[e][g] for e in [*english, ""]}
                whole = sum(share.values())
                for e, own in share.items():
                    counts[e][g] += own / whole
        t = defaultdict(lambda: defaultdict(lambda: 1e-7))
        for e, row in counts.items():
            whole = sum(row.values())
            t[e] = defaultdict(lambda: 1e-7, {g: n / whole for g, n in row.items() if n / whole > 1e-5})
    return t


def phrases(pairs: Pairs) -> dict[tuple[str, ...], list[tuple[tuple[str, ...], float]]]:
    """Return the German phrases for English ones, each with its log-probability."""
    there, back = lexicon(pairs), lexicon([(german, english) for english, german in pairs])
    counts: dict[tuple[str, ...], Counter[tuple[str, ...]]] = defaultdict(Counter)
    for english, german in pairs:
        forth = {(max(range(len(english)), key=lambda i: there[english[i]][g]), j) for j, g in enumerate(german)}
        links = {(i, max(range(len(german)), key=lambda j: back[german[j]][e])) for i, e in enumerate(english)}
        sure = forth & links
        sure |= {(i, j) for i, j in forth | links if {(i - 1, j - 1), (i + 1, j + 1)} & sure}  # what lies beside it
        for i in range(len(english)):
            for k in range(i, min(i + LONGEST, len(english))):
                own = [j for a, j in sure if i <= a <= k]
                if own and all(i <= a <= k for a, j in sure if min(own) <= j <= max(own)):
                    counts[tuple(english[i : k + 1])][tuple(german[min(own) : max(own) + 1])] += 1
    return {
        e: [(g, math.log(n / (sum(row.values()) + 0.5))) for g, n in row.most_common(8)] for e, row in counts.items()
    }


class Bigrams:
    """A language model of pairs of words, smoothed by words alone."""

    def __init__(self, texts: list[list[str]]) -> None:
        self.one = Counter(w for text in texts for w in text)
        self.two = Counter(pair for text in texts for pair in zip(["<s>", *text], [*text, "</s>"], strict=True))
        self.first = Counter(w for text in texts for w in ["<s>", *text])
        self.n = sum(self.one.values())

    def __call__(self, before: str, word: str) -> float:
        """Return the log-probability of a word after another."""
        alone = (self.one[word] + 0.1) / (self.n + 1000)
        return math.log(0.7 * self.two[before, word] / max(self.first[before], 1) + 0.3 * alone)


def decoded(english: list[str], table: dict, model: Bigrams | None) -> list[str]:
    """Return the best German text of phrases in the order of the English ones."""
    stacks: list[dict[str, tuple[float, list[str]]]] = [{} for _ in range(len(english) + 1)]
    stacks[0]["<s>"] = (0.0, [])
    for i, stack in enumerate(stacks[:-1]):
        for last, (score, made) in sorted(stack.items(), key=lambda kept: -kept[1][0])[:BEAM]:
            for k in range(i + 1, min(i + LONGEST, len(english)) + 1):
                source = tuple(english[i:k])
                options = table.get(source) or ([(source, -9.0)] if k == i + 1 else [])
                for target, own in options:
                    total, before = score + own - 0.5, last
                    for word in target if model else ():
                        total, before = total + 0.6 * model(before, word) + 1.2, word
                    end = target[-1] if model else str(k)
                    if end not in stacks[k] or total > stacks[k][end][0]:
                        stacks[k][end] = (total, made + list(target))
    return max(stacks[-1].values(), key=lambda kept: kept[0])[1]


def remembered(english: str, memory: dict[str, str]) -> tuple[float, str]:
    """Return the translation of the most similar text, and how similar it is."""
    words = set(tokens(english.lower()))
    near = sorted(
        memory,
        key=lambda own: (-len(words & set(tokens(own.lower()))) / (len(words | set(tokens(own.lower()))) or 1), own),
    )[:40]
    similarity, text = max((SequenceMatcher(None, english, own, autojunk=False).ratio(), own) for own in near)
    return similarity, memory[text]


def main(wheels: Path) -> None:
    """Learn, translate, write the files."""
    known: dict[str, str] = {}
    test: list[tuple[str, str, str]] = []
    for wheel in sorted(wheels.glob("*.whl")):
        for part, pairs in translated(wheel).items():
            if is_test(part):
                test += [(part, *pair) for pair in pairs]
            else:
                known |= dict(pairs)
    lines, seen, n_of = [], set(known), Counter[str]()
    for part, english, german in test:
        if english in seen or len(tokens(english)) < LEAST_WORDS or len(tokens(english)) > 40 or n_of[part] == MOST:
            continue
        seen.add(english)
        n_of[part] += 1
        lines.append((part.replace("/", "."), english, german))
    pairs = [(tokens(english), tokens(german)) for english, german in known.items()]
    pairs = [pair for pair in pairs if 0 < len(pair[0]) <= 40 and 0 < len(pair[1]) <= 40]
    words, table, model = lexicon(pairs), phrases(pairs), Bigrams([german for _, german in pairs])
    best = {e: max(row, key=lambda g: (row[g], g)) for e, row in words.items() if row}
    made: dict[str, list[str]] = {name: [] for name in ("memory", "words", "phrases", "phrases-lm", "combined")}
    for _, english, _ in lines:
        similarity, text = remembered(english, known)
        made["memory"].append(text)
        made["words"].append(joined([best.get(e, e) for e in tokens(english)]))
        made["phrases"].append(joined(decoded(tokens(english), table, None)))
        made["phrases-lm"].append(joined(decoded(tokens(english), table, model)))
        made["combined"].append(text if similarity >= SIMILAR else made["phrases-lm"][-1])
    TO.mkdir(parents=True, exist_ok=True)
    documents, source, reference = zip(*lines, strict=True)
    files = {"documents": documents, "source.en": source, "reference.de": reference, **made}
    for name, texts in files.items():
        (TO / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    print(len(pairs), "pairs to learn from;", len(lines), "segments in", len(n_of), "documents")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
