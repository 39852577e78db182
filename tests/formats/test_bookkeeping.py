"""Counters, times and settings are no systems; training curves are refused."""

import json

import pytest

from sigdask.errors import RefusedFileError
from sigdask.formats import Options, read

N_ITEMS = 30
IDS = [f"q{k}" for k in range(N_ITEMS)]
SCORES = {name: [f"{k * factor % 97 / 97:.3f}" for k in range(N_ITEMS)] for name, factor in (("a", 37), ("b", 41))}
STEPS = [10 * k for k in range(N_ITEMS)]
OTHER_COLUMNS = {
    "epoch": [3] * N_ITEMS,
    "trial_index": [k * 7 % 5 for k in range(N_ITEMS)],
    "random_seed": [k * 13 % 11 for k in range(N_ITEMS)],
    "timestamp": [f"2024-01-01T00:00:{k:02}" for k in range(N_ITEMS)],
    "created": [1_700_000_000 + 17 * k * k for k in range(N_ITEMS)],
    "started": [f"2024-01-{k % 28 + 1:02} 10:00" for k in range(N_ITEMS)],
    "n_tokens": [k * 29 % 31 for k in range(N_ITEMS)],
    "latency_ms": [k * 29 % 31 * 11.7 for k in range(N_ITEMS)],
    "total_cost": [f"{k * 29 % 97 / 97:.3f}" for k in range(N_ITEMS)],
    "temperature": [0.7] * N_ITEMS,
    "split": ["test"] * N_ITEMS,
    "a__MIN": SCORES["a"],
    "a_std": [f"{k * 3 % 97 / 97:.3f}" for k in range(N_ITEMS)],
}
"""Columns that are no systems, with their cells."""


def write_table(path, columns):
    rows = zip(*columns.values(), strict=True)
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in [columns, *rows]))
    return path


def test_columns_that_are_no_systems_leave_the_result_of_the_systems(tmp_path):
    counts = read(write_table(tmp_path / "all.csv", {"id": IDS, **OTHER_COLUMNS, **SCORES}))
    alone = read(write_table(tmp_path / "none.csv", {"id": IDS, **SCORES}))
    assert counts.systems == alone.systems == ("a", "b")
    assert (counts.field("score") == alone.field("score")).all()
    assert all(repr(name) in " ".join(counts.notices) for name in ("timestamp", "a_std"))
    assert not alone.notices


@pytest.mark.parametrize("names", [("bert_time", "gpt_time"), ("run", "run2"), ("model", "model_2"), ("easy", "hard")])
@pytest.mark.parametrize("ids", [{"id": IDS}, {}])
def test_systems_may_be_called_like_other_columns(tmp_path, names, ids):
    scores = dict(zip(names, SCORES.values(), strict=True))
    counts = read(write_table(tmp_path / "t.csv", {**ids, **scores}))
    assert (counts.systems, counts.n_items) == (names, N_ITEMS)


@pytest.mark.parametrize("step", ["Step", "epoch", "train/global_step", "tokens_seen", "Wall time"])
def test_a_training_curve_is_refused(tmp_path, step):
    path = write_table(tmp_path / "t.csv", {step: STEPS, **SCORES})
    with pytest.raises(RefusedFileError, match=f"t.csv.*training curve.*{step}"):
        read(path)
    assert read(path, format="wide:systems=a+b").systems == ("a", "b")
    rows = {"model": ["a"] * N_ITEMS + ["b"] * N_ITEMS, "step": STEPS * 2, "score": SCORES["a"] + SCORES["b"]}
    path = write_table(tmp_path / "long.csv", rows)
    with pytest.raises(RefusedFileError, match="training curve"):
        read(path)
    assert read(path, format="long:", options=Options(columns={"item": "step"})).n_items == N_ITEMS


def test_logs_of_training_as_json_are_refused(tmp_path):
    records = [{"step": k, "loss": 1 / (k + 1)} | ({"eval_loss": 1} if k % 5 == 4 else {}) for k in range(N_ITEMS)]
    (path := tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(RefusedFileError, match="training curve"):
        read(path)
    path.write_text(json.dumps({"epoch": 3.0, "log_history": records}))
    with pytest.raises(RefusedFileError, match="training curve"):
        read(path)
