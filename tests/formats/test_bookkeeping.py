"""Counters, times, settings and spreads are not systems; curves are refused."""

import json
from pathlib import Path

import pytest
from command import call_sigdask

from sigdask.errors import InputError, RefusedFileError
from sigdask.formats import Options, read

N_ITEMS = 30
STEP_NAMES = ["Step", "epoch", "global_step", "train/global_step", "trainer/global_step", "_step", "iteration",
              "tokens_seen", "samples_seen", "consumed_samples", "train_tokens", "step_num", "tokens", "num_samples",
              "updates"]  # fmt: skip
COSTS = ["cost", "cost_usd", "total_cost", "price", "latency", "latency_ms", "runtime", "duration", "elapsed", "time",
         "elapsed_ms", "total_time", "inference_time", "tokens", "num_tokens", "output_tokens", "prompt_tokens",
         "tokens_per_second", "gpu_memory_mb"]  # fmt: skip


def _format_score(k: int, factor: int) -> str:
    return f"{k * factor % 97 / 97:.3f}"


def _write_table(path: Path, columns: dict[str, list[str]]) -> Path:
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *map(",".join, rows)]) + "\n")
    return path


def _write_scores(path: Path, ids: bool = True, **columns: list[str]) -> Path:
    id_column = {"id": [f"q{k}" for k in range(N_ITEMS)]} if ids else {}
    scores = {"a": [_format_score(k, 37) for k in range(N_ITEMS)], "b": [_format_score(k, 41) for k in range(N_ITEMS)]}
    return _write_table(
        path, {**id_column, **{name.replace("__at__", "/"): cells for name, cells in columns.items()}, **scores}
    )


OTHER_COLUMNS = {
    "Step": [str(10 * k) for k in range(N_ITEMS)],
    "epoch": ["3"] * N_ITEMS,
    "train_trial_index": ["3"] * N_ITEMS,
    "trial_index": [str(k * 7 % 5) for k in range(N_ITEMS)],
    "seed": ["42"] * N_ITEMS,
    "random_seed": [str(k * 13 % 11) for k in range(N_ITEMS)],
    "timestamp": [f"2024-01-01T00:00:{k:02}" for k in range(N_ITEMS)],
    "created": [str(1_700_000_000 + 17 * k * k) for k in range(N_ITEMS)],
    "noticed": [str(1_700_000_000_000 + 17 * k * k) for k in range(N_ITEMS)],
    "started": [f"2024-01-{k % 28 + 1:02} 10:00" for k in range(N_ITEMS)],
    "n_tokens": [str(k * 29 % 31) for k in range(N_ITEMS)],
    "runtime": [_format_score(k, 29) for k in range(N_ITEMS)],
    "temperature": ["0.7"] * N_ITEMS,
    "temp_of_run": ["1700"] * N_ITEMS,
    "number": [str(5 + 2 * k) for k in range(N_ITEMS)],
    "split": ["test"] * N_ITEMS,
    "a__MIN": [_format_score(k, 37) for k in range(N_ITEMS)],
    "b__MAX": [_format_score(k, 41) for k in range(N_ITEMS)],
    "a_std": [_format_score(k, 3) for k in range(N_ITEMS)],
}
"""Columns that are no systems, with their cells."""


def test_all_of_them_together_leave_the_same_result_as_none(tmp_path: Path) -> None:
    with_all, with_none = (
        read(_write_scores(tmp_path / "all.csv", **OTHER_COLUMNS)),
        read(_write_scores(tmp_path / "none.csv")),
    )
    assert with_all.systems == with_none.systems == ("a", "b")
    assert (with_all.field("score") == with_none.field("score")).all()
    assert not with_none.notices


def test_systems_that_are_all_called_like_bookkeeping_stay(tmp_path: Path) -> None:
    columns = {
        "bert_time": [_format_score(k, 37) for k in range(N_ITEMS)],
        "gpt_time": [_format_score(k, 41) for k in range(N_ITEMS)],
    }
    assert read(_write_table(tmp_path / "t.csv", columns)).systems == ("bert_time", "gpt_time")


@pytest.mark.parametrize("step", STEP_NAMES)
def test_a_training_curve_is_refused_with_the_reason(tmp_path: Path, step: str) -> None:
    path = _write_scores(tmp_path / "t.csv", ids=False, **{step: [str(10 * k) for k in range(N_ITEMS)]})
    result = call_sigdask("compare", path, cwd=tmp_path)
    assert result.returncode == 2
    assert f"a training curve, a row for each {step}" in result.stderr
    assert "no test fits them" in result.stderr
    assert read(path, format="wide:systems=a+b").systems == ("a", "b")


def test_long_tables_of_training_are_curves(tmp_path: Path) -> None:
    rows = "".join(
        f"{system},{k},{_format_score(k, factor)}\n"
        for system, factor in (("a", 37), ("b", 41))
        for k in range(N_ITEMS)
    )
    (path := tmp_path / "t.csv").write_text(f"model,step,score\n{rows}")
    with pytest.raises(RefusedFileError, match="training curve, a row for each step"):
        read(path)
    assert read(path, format="long:", options=_build_options("step")).n_items == N_ITEMS


def _build_options(name: str):
    from sigdask.formats import Options

    return Options(id_column=name)


def test_logs_of_training_as_json_are_curves(tmp_path: Path) -> None:
    (path := tmp_path / "log.jsonl").write_text(
        "".join(
            json.dumps({"step": k, "loss": 1 / (k + 1)} | ({"eval_loss": 1} if k % 5 == 4 else {})) + "\n"
            for k in range(N_ITEMS)
        )
    )
    with pytest.raises(RefusedFileError, match="training curve"):
        read(path)
    path.write_text(json.dumps({"epoch": 3.0, "log_history": [{"step": 1, "loss": 0.5}, {"step": 2, "eval_loss": 1}]}))
    with pytest.raises(RefusedFileError, match="training curve"):
        read(path)


def test_columns_beside_labels_are_no_systems(tmp_path: Path) -> None:
    labels = {
        "gold": [str(k % 2) for k in range(N_ITEMS)],
        "a": [str(k % 3 % 2) for k in range(N_ITEMS)],
        "b": ["1"] * N_ITEMS,
    }
    path = _write_table(tmp_path / "t.csv", {"id": [f"q{k}" for k in range(N_ITEMS)], **labels, **{
        name: OTHER_COLUMNS[name] for name in ("seed", "timestamp", "split", "n_tokens", "train_trial_index")}})  # fmt: skip
    counts = read(path)
    assert counts.systems == ("a", "b")
    [note] = [warning for warning in counts.notices if "left out as no labels" in warning]
    for name in ("seed", "timestamp", "split", "n_tokens", "train_trial_index"):
        assert repr(name) in note
    assert read(path, format="labels:systems=a+split").systems == ("a", "split")


@pytest.mark.parametrize("name", COSTS)
def test_what_an_item_took_is_no_system_and_the_first_line_names_it(tmp_path: Path, name: str) -> None:
    path = _write_scores(tmp_path / "t.csv", **{name: [f"{k * 29 % 31 * 11.7:.2f}" for k in range(N_ITEMS)]})
    result = call_sigdask("compare", path, cwd=tmp_path)
    assert result.stdout.startswith(f"left out as no scores of systems: 1 column ({name!r})")
    assert read(path).systems == ("a", "b")
    assert read(path, format=f"wide:systems=a+{name}").systems == ("a", name)
    labels = {
        "gold": [str(k % 2) for k in range(N_ITEMS)],
        "a": ["1"] * N_ITEMS,
        "b": [str(k % 3 % 2) for k in range(N_ITEMS)],
    }
    path = _write_table(
        tmp_path / "u.csv",
        {"id": [f"q{k}" for k in range(N_ITEMS)], **labels, name: [str(k + 7) for k in range(N_ITEMS)]},
    )
    assert read(path).systems == ("a", "b")


SYSTEM_NAMES = [
    ("run", "run2"),
    ("run1", "run"),
    ("model", "model_2"),
    ("system", "baseline"),
    ("easy", "hard"),
    ("base", "easy"),
]


@pytest.mark.parametrize("names", SYSTEM_NAMES, ids="-".join)
@pytest.mark.parametrize("ids", [True, False])
def test_systems_may_be_called_like_other_columns(tmp_path: Path, names: tuple[str, str], ids: bool) -> None:
    id_column = {"id": [f"q{k}" for k in range(N_ITEMS)]} if ids else {}
    scores = {
        name: [_format_score(k, factor) for k in range(N_ITEMS)] for name, factor in zip(names, (37, 41), strict=True)
    }
    counts = read(_write_table(tmp_path / "t.csv", {**id_column, **scores}))
    assert (counts.systems, counts.n_items) == (names, N_ITEMS)
    assert not counts.notices
    correct = {name: [str(k // factor % 2) for k in range(N_ITEMS)] for name, factor in zip(names, (1, 3), strict=True)}
    assert read(_write_table(tmp_path / "u.csv", {**id_column, **correct})).systems == names


def test_a_score_column_that_a_wide_table_cannot_use_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("id,s1,s2,f1\n" + "".join(f"i{j},{j % 3},{j % 2},{j % 5}\n" for j in range(12)))
    with pytest.raises(InputError, match=r"wide\.csv: --score-column f1 has no effect here.*--system-column"):
        read(path, options=Options(score_column="f1"))
