"""Make sigdask/examples/retrieval: search for functions of Python's standard library by their names.

    python3.11 docs/examples/retrieval.py

A topic is the name of a function or class, split into words ("disk usage"); relevant is the one docstring that belongs
to it (shutil.disk_usage), among all docstrings of the library. The name itself does not stand in what is searched.
Runs are the ten best of TF-IDF (cosine of logarithmic weights: Salton and Buckley 1988), BM25 (Robertson et al. 1994;
k1 = 1.2, b = 0.75) with whole words and with their beginnings of five letters, and a language model with Dirichlet
smoothing (Zhai and Lafferty 2001; mu = 50).
"""

from __future__ import annotations

import ast
import gzip
import math
import random
import re
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "sigdask" / "examples" / "retrieval"
N_TOPICS, DEPTH, STEM = 200, 10, 5
EXCLUDED = {"test", "idlelib", "lib2to3", "turtledemo", "site-packages", "tkinter", "pydoc_data", "ensurepip"}
Weights = Callable[[str, int, int], float]


def iter_docstrings() -> Iterator[tuple[str, str, str]]:
    """Yield module, name and docstring of each public function and class of the standard library."""
    library = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(library.rglob("*.py")):
        module = ".".join(path.relative_to(library).with_suffix("").parts).removesuffix(".__init__")
        if EXCLUDED & set(module.split(".")) or any(part.startswith("_") for part in module.split(".")):
            continue
        yield from _iter_members(ast.parse(path.read_text("utf-8", errors="replace")), module, "")


def _iter_members(node: ast.AST, module: str, prefix: str) -> Iterator[tuple[str, str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) and not child.name.startswith("_"):
            if text := ast.get_docstring(child):
                yield module, f"{prefix}{child.name}", text
            if isinstance(child, ast.ClassDef):
                yield from _iter_members(child, module, f"{prefix}{child.name}.")


def split_words(text: str) -> list[str]:
    """Split a text or a name into lower-case words."""
    return re.findall(r"[a-z]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())


class SearchIndex:
    """An inverted index of documents, with three ranking functions."""

    def __init__(self, texts: dict[str, list[str]], term: Callable[[str], str] = str) -> None:
        self.term = term
        self.counts = {name: Counter(map(term, text)) for name, text in texts.items()}
        self.lengths = {name: sum(counts.values()) for name, counts in self.counts.items()}
        self.holding: dict[str, list[str]] = defaultdict(list)
        for name, counts in self.counts.items():
            for word in counts:
                self.holding[word].append(name)
        self.n, self.mean = len(texts), sum(self.lengths.values()) / len(texts)
        self.total = Counter[str]()
        for counts in self.counts.values():
            self.total.update(counts)
        self.n_tokens = sum(self.total.values())
        norms = {name: sum(self._tfidf(w, n) ** 2 for w, n in counts.items()) for name, counts in self.counts.items()}
        self.norms = {name: math.sqrt(norm) or 1.0 for name, norm in norms.items()}

    def _tfidf(self, word: str, n: int) -> float:
        return (1 + math.log(n)) * math.log(self.n / len(self.holding[word]))

    def tfidf(self, word: str, name: str) -> float:
        """Return a query word's contribution to the cosine."""
        return self._tfidf(word, self.counts[name][word]) * self._tfidf(word, 1) / self.norms[name]

    def bm25(self, word: str, name: str) -> float:
        """Return a query word's contribution to BM25."""
        n, n_holding = self.counts[name][word], len(self.holding[word])
        return (
            math.log(1 + (self.n - n_holding + 0.5) / (n_holding + 0.5))
            * n
            * 2.2
            / (n + 1.2 * (0.25 + 0.75 * self.lengths[name] / self.mean))
        )

    def dirichlet(self, word: str, name: str, mu: float = 50.0) -> float:
        """Return a query word's contribution to the log-likelihood."""
        return math.log(1 + self.counts[name][word] / (mu * self.total[word] / self.n_tokens))

    def rank(self, query: list[str], weight: Callable[[str, str], float], mu: float = 0.0) -> list[tuple[str, float]]:
        """Return the best documents with their scores."""
        scores: dict[str, float] = defaultdict(float)
        for word in map(self.term, query):
            for name in self.holding.get(word, ()):
                scores[name] += weight(word, name)
        if mu:
            scores = {
                name: score + len(query) * math.log(mu / (self.lengths[name] + mu)) for name, score in scores.items()
            }
        return sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))[:DEPTH]


def main() -> None:
    """Run the searches and write the files."""
    texts, names_by_query, module_of = {}, defaultdict(list), {}
    for module, name, text in iter_docstrings():
        full_name = f"{module}.{name}"
        texts[full_name], module_of[full_name] = split_words(text), module
        names_by_query[tuple(split_words(name.rpartition(".")[2]))].append(full_name)
    relevant = {query: names[0] for query, names in names_by_query.items() if len(names) == 1 and len(query) > 1}
    relevant = {
        q: full_name
        for q, full_name in relevant.items()
        if set(q) & set(texts[full_name]) and len(texts[full_name]) > 5
    }
    queries = sorted(random.Random(0).sample(sorted(relevant), N_TOPICS), key=lambda query: relevant[query])  # noqa: S311
    word_index, stem_index = SearchIndex(texts), SearchIndex(texts, lambda word: word[:STEM])
    systems = {
        "tfidf": (word_index, word_index.tfidf, 0.0),
        "bm25": (word_index, word_index.bm25, 0.0),
        "bm25-stems": (stem_index, stem_index.bm25, 0.0),
        "dirichlet": (word_index, word_index.dirichlet, 50.0),
    }
    (FOLDER / "runs").mkdir(parents=True, exist_ok=True)
    topics = {f"t{k:03}": query for k, query in enumerate(queries, start=1)}
    for system, (index, weight, mu) in systems.items():
        lines = [
            f"{topic} Q0 {name} {rank} {score:.4f} {system}\n"
            for topic, query in topics.items()
            for rank, (name, score) in enumerate(index.ranked(list(query), weight, mu), start=1)
        ]
        packed = gzip.compress("".join(lines).encode(), mtime=0)
        (FOLDER / "runs" / f"{system}.run.gz").write_bytes(packed)
    _write("qrels.txt", (f"{topic} 0 {relevant[query]} 1" for topic, query in topics.items()))
    _write("topics.tsv", ["topic\tquery", *(f"{topic}\t{' '.join(query)}" for topic, query in topics.items())])
    modules = (f"{topic}\t{module_of[relevant[query]].split('.')[0]}" for topic, query in topics.items())
    _write("modules.tsv", ["topic\tmodule", *modules])
    print(len(texts), "docstrings,", N_TOPICS, "topics")


def _write(name: str, lines: Iterator[str] | list[str]) -> None:
    (FOLDER / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")


if __name__ == "__main__":
    main()
