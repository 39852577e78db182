"""Data frames are read like the same tables in files; the file is the reference."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from sigdask import InputError, read

N_ITEMS = 40
RNG = np.random.default_rng(20)
A, B, C = (RNG.integers(0, 1000, N_ITEMS) / 1000 for _ in range(3))
IDS = [f"q{k}" for k in range(N_ITEMS)]
GOLD = [("yes", "no", "maybe")[k % 3] for k in range(N_ITEMS)]
LAYOUTS = {
    "wide": {"item": IDS, "a": A, "b": B, "c": C},
    "wide with groups": {"item": IDS, "document": [f"d{k // 4}" for k in range(N_ITEMS)], "a": A, "b": B},
    "wide by position": {"a": A, "b": B},
    "wide of integers": {"topic": range(N_ITEMS), "a": (A * 10).astype(int), "b": (B * 10).astype(int)},
    "wide of truth values": {"id": IDS, "a": A > 0.5, "b": B > 0.4},
    "wide with a mean below": {"item": [*IDS, "mean"], "a": [*A, A.mean()], "b": [*B, B.mean()]},
    "wide with bookkeeping": {"id": IDS, "Step": range(0, 10 * N_ITEMS, 10), "seed": [42] * N_ITEMS, "temperature": [0.7] * N_ITEMS,
                              "a": A, "a_std": B / 10, "b": B, "b__MIN": B, "split": ["test"] * N_ITEMS},
    "wide with times": {"id": IDS, "created": pd.date_range("2024-01-01", periods=N_ITEMS, freq="7h"), "a": A, "b": B},
    "long": {"system": ["a"] * N_ITEMS + ["b"] * N_ITEMS, "item": IDS * 2, "score": [*A, *B]},
    "long in another order": {"score": [*B[::-1], *A], "model": ["b"] * N_ITEMS + ["a"] * N_ITEMS, "id": [*IDS[::-1], *IDS]},
    "long of numbered systems": {"run": [2] * N_ITEMS + [10] * N_ITEMS, "query": [*range(N_ITEMS)] * 2, "value": [*A, *B]},
    "labels": {"id": IDS, "gold": GOLD, "a": GOLD[1:] + GOLD[:1], "b": GOLD[:20] + GOLD[:20]},
    "labels beside text": {"text": [f"text {k}" for k in range(N_ITEMS)], "label": GOLD, "svm": GOLD[1:] + GOLD[:1], "bert": GOLD},
    "labels with bookkeeping": {"id": IDS, "gold": GOLD, "a": GOLD[::-1], "b": GOLD, "confidence": A, "seed": [1] * N_ITEMS},
    "responses": {"id": IDS, "gold": [k % 2 for k in range(N_ITEMS)], "a": [k % 3 % 2 for k in range(N_ITEMS)], "b": [1] * N_ITEMS},
}  # fmt: skip
"""Columns of tables."""

REFUSED = {
    "a training curve": ({"step": range(N_ITEMS), "a": A, "b": B}, "training curve, a row for each step"),
    "a leaderboard": ({"model": ["x", "y", "z"], "acc": A[:3], "f1": B[:3]}, "averages over a whole test set"),
    "a regression": ({"id": IDS, "gold": A, "a": B, "b": C}, "holds real numbers"),
    "probabilities": ({"id": IDS, "label": [k % 2 for k in range(N_ITEMS)], "a": B, "b": C}, "holds real numbers"),
    "a report": ({"x": ["a", "b"], "precision": [0.1, 0.2], "recall": [0.1, 0.2], "f1-score": [0.1, 0.2],
                  "support": [5, 5]}, "classification report"),
}  # fmt: skip
"""Columns of tables that are none of items."""


def test_the_layout_of_a_frame_may_be_said() -> None:
    frame = pd.DataFrame(LAYOUTS["wide with bookkeeping"])
    assert read(frame, format="wide:systems=a+seed").systems == ("a", "seed")
    assert read(pd.DataFrame(REFUSED["a regression"][0]), format="labels").systems == ("a", "b")
    with pytest.raises(InputError, match="must be one of auto, wide, long, labels, responses"):
        read(frame, format="conll")


def test_what_is_left_out_of_a_frame_is_told_in_the_words_of_python() -> None:
    [note] = [w for w in read(pd.DataFrame(LAYOUTS["wide with bookkeeping"])).notices if "left out" in w]
    assert "format='wide:systems=A+B'" in note
    assert "--" not in note


def test_the_number_of_a_sample_is_never_compared(tmp_path):
    rows = [f"{model},{item},{trial},C" for model in "ab" for item in range(12) for trial in range(3)]
    (path := tmp_path / "log.csv").write_text("\n".join(["model,question,trial,grade", *rows]))
    frame = pd.read_csv(path)
    for read_log in (partial(read, path), partial(read, frame)):
        with pytest.raises(InputError, match=r"1 column \('trial'\) of numbers; choose the score"):
            read_log()
