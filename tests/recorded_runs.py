"""Small runs of every kind, whose files of results tests alter: how their data are read, and the options."""

import numpy as np

from sigdask.formats import Options, parse_source, read

ITEMS = range(24)


def _draw(seed, *shape):
    return np.random.default_rng(seed).random(shape)


def _format_table(header, columns, **names):
    """Return CSV with one row per item: its id, other columns of names, and numbers."""
    rows = zip(*(map(name, ITEMS) for name in names.values()), *columns, strict=True)
    return "\n".join([header, *(",".join(map(str, (f"i{k}", *row))) for k, row in enumerate(rows))]) + "\n"


def _format_words(seed):
    words = ["the", "a", "cat", "dog", "sat", "on", "mat", "tree", "by", "river"]
    return "".join(" ".join(words[n] for n in row) + "\n" for row in (_draw(seed, 24, 6) * len(words)).astype(int))


SCORES = _format_table(
    "item,doc,task,a,b,c",
    np.add(_draw(1, 24, 3), [0.3, 0, 0.2]).round(2).T,
    doc=lambda k: f"d{k // 3}",
    part=lambda k: "pq"[k > 11],
)
RIGHT = _format_table("item,a,b", (_draw(2, 24, 2) < [0.8, 0.4]).astype(int).T)
LABELS = _format_table("item,gold,a,b", np.array([*"xyz"])[(_draw(3, 24, 3) * 3).astype(int)].T)
NUMBERS = _format_table("item,gold,a,b", (_draw(4, 24, 1) + _draw(5, 24, 3) * [0, 0.3, 0.9]).round(2).T)
SAMPLES = {
    f"{system}.jsonl": "".join(
        f'{{"item": "t{k}", "epoch": {t}, "passed": {int(x < rate)}}}\n'
        for k, row in enumerate(_draw(seed, 12, 3))
        for t, x in enumerate(row)
    )
    for system, seed, rate in (("a", 6, 0.7), ("b", 7, 0.4))
}
JUDGED = "system,segment,human,one,two\n" + "".join(
    f"s{s},{k},{x:.2f},{x + y:.2f},{x + 3 * z:.2f}\n"
    for s in range(4)
    for k, (x, y, z) in enumerate(_draw(8 + s, 6, 3))
)
TOPICS = {
    "gold": "".join(f"{q} 0 d{d} {int(x < 0.4)}\n" for q, row in enumerate(_draw(20, 10, 8)) for d, x in enumerate(row))
} | {
    name: "".join(
        f"{q} Q0 d{d} {n + 1} {8 - n} {name}\n"
        for q, row in enumerate(_draw(seed, 10, 8))
        for n, d in enumerate(row.argsort())
    )
    for name, seed in (("a", 21), ("b", 22))
}
TEXTS = {"gold": _format_words(30), "other": _format_words(31), "a": _format_words(32), "b": _format_words(33)}
SEQUENCES = {
    name: "\n\n".join(
        "\n".join(f"w {tag}" for tag in np.array(["B-X", "I-X", "O"])[(row * 3).astype(int)])
        for row in _draw(seed, 24, 4)
    )
    + "\n"
    for name, seed in (("gold", 40), ("a", 41), ("b", 42))
}
PAIR, SAMPLED = ("a", "b"), {"method": "randomization"}

RUNS = {
    "one pair": (SCORES, {}, {"pairs": [PAIR]}),
    "all pairs, max-t, all tests": (SCORES, {}, SAMPLED | {"tests": "all"}),
    "baseline, Holm": (SCORES, {}, {"baseline": "b", "adjust": "holm"}),
    "Benjamini-Hochberg": (SCORES, {}, SAMPLED | {"adjust": "bh", "interval": "none"}),
    "Tukey": (SCORES, {}, SAMPLED | {"adjust": "tukey"}),
    "no second run, no intervals": (SCORES, {}, SAMPLED | {"second_run": False, "interval": "none", "pairs": [PAIR]}),
    "default resamples": (SCORES, {}, SAMPLED | {"pairs": [PAIR], "resamples": None}),
    "documents": (SCORES, {"groups": ("doc",)}, SAMPLED | {"unit": "doc", "pairs": [PAIR]}),
    "strata": (SCORES, {"groups": ("task",)}, SAMPLED | {"by": "task", "pairs": [PAIR], "interval": "none"}),
    "strata together": (SCORES, {"groups": ("task",)}, {"by": "task", "together": True, "adjust": "none", "pairs": [PAIR]}),
    "one-sided": (SCORES, {}, {"pairs": [("c", "a")], "alternative": "less", "alpha": 0.2, "confidence": 0.9}),
    "exact and inverted": (SCORES, {}, {"pairs": [PAIR], "method": "both", "interval": "inversion", "second_run": False}),
    "exact alone": (SCORES, {}, {"method": "exact", "adjust": "holm", "interval": "none"}),
    "bootstrap of documents": (SCORES, {"groups": ("doc",)}, {"pairs": [PAIR], "unit": "doc", "interval": "bootstrap"}),
    "0/1 scores": (RIGHT, {}, {"tests": ["mcnemar", "binomial"]}),
    "labels": (LABELS, {}, {"metrics": ["accuracy", "macro-f1", "kappa"]}),
    "numbers": (NUMBERS, {"metrics": ("pearson",), "gold": "gold"}, {"metrics": ["MAE", "RMSE", "pearson", "spearman"]}),
    "samples": (SAMPLES, {"format": "samples"}, {"metrics": ["pass@1", "pass@2"]}),
    "metrics against people": (JUDGED, {"format": "meta"}, {"metrics": ["meta-pearson", "meta-kendall:group=item"]}),
    "metrics against people by system": (JUDGED, {"format": "meta"}, {"metrics": ["meta-pearson:level=system"], "unit": "system"}),
    "topics": (TOPICS, {"format": "trec"}, {"metrics": ["ap", "P_5"]}),
    "BLEU, two references": (TEXTS, {"references": ("other",)}, {"metrics": ["BLEU", "chrF"], "resamples": 50}),
    "spans in sequences": (SEQUENCES, {"format": "conll"}, {"metrics": ["f1", "accuracy"]}),
}  # fmt: skip
"""Of each kind of run: the text of one table or of several files, how they are read, and the options of the test."""


def read_run(folder, files, reading):
    """Write the files of a run into a folder and read them."""
    files = files if isinstance(files, dict) else {"table.csv": files}
    for name, text in files.items():
        (folder / name).write_text(text)
    options = dict(reading)
    format_ = options.pop("format", "auto")
    options.pop("gold", None)
    references = tuple(folder / name for name in options.pop("references", ()))
    systems = [f"{name.partition('.')[0]}={folder / name}" for name in files if name not in {"gold", "other"}]
    sources = [str(folder / "table.csv")] if "table.csv" in files else systems
    gold = folder / "gold" if "gold" in files else None
    return read(
        *map(parse_source, sources), gold=gold, format=format_, options=Options(references=references, **options)
    )
