"""Counters, times, settings and spreads are no systems; constants that may be scores are; curves are refused."""

import json
from pathlib import Path

import pytest
from command import called

from sigdask.errors import InputError, RefusedFileError
from sigdask.formats import read

N = 30
STEP_NAMES = ["Step", "epoch", "global_step", "train/global_step", "trainer/global_step", "_step", "iteration",
              "tokens_seen", "samples_seen", "consumed_samples", "train_tokens", "step_num", "tokens", "num_samples",
              "updates"]  # fmt: skip
COSTS = ["cost", "cost_usd", "total_cost", "price", "latency", "latency_ms", "runtime", "duration", "elapsed", "time",
         "elapsed_ms", "total_time", "inference_time", "tokens", "num_tokens", "output_tokens", "prompt_tokens",
         "tokens_per_second", "gpu_memory_mb"]  # fmt: skip


def _score(k: int, by: int) -> str:
    return f"{k * by % 97 / 97:.3f}"


def _write(path: Path, columns: dict[str, list[str]]) -> Path:
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *map(",".join, rows)]) + "\n")
    return path


def _with(path: Path, ids: bool = True, **more: list[str]) -> Path:
    own = {"id": [f"q{k}" for k in range(N)]} if ids else {}
    scores = {"a": [_score(k, 37) for k in range(N)], "b": [_score(k, 41) for k in range(N)]}
    return _write(path, {**own, **{name.replace("__at__", "/"): cells for name, cells in more.items()}, **scores})


BESIDE = {
    "Step": [str(10 * k) for k in range(N)],
    "epoch": ["3"] * N,
    "train_trial_index": ["3"] * N,
    "trial_index": [str(k * 7 % 5) for k in range(N)],
    "seed": ["42"] * N,
    "random_seed": [str(k * 13 % 11) for k in range(N)],
    "timestamp": [f"2024-01-01T00:00:{k:02}" for k in range(N)],
    "created": [str(1_700_000_000 + 17 * k * k) for k in range(N)],
    "noticed": [str(1_700_000_000_000 + 17 * k * k) for k in range(N)],
    "started": [f"2024-01-{k % 28 + 1:02} 10:00" for k in range(N)],
    "n_tokens": [str(k * 29 % 31) for k in range(N)],
    "runtime": [_score(k, 29) for k in range(N)],
    "temperature": ["0.7"] * N,
    "temp_of_run": ["1700"] * N,
    "number": [str(5 + 2 * k) for k in range(N)],
    "split": ["test"] * N,
    "a__MIN": [_score(k, 37) for k in range(N)],
    "b__MAX": [_score(k, 41) for k in range(N)],
    "a_std": [_score(k, 3) for k in range(N)],
}
"""Columns that are no systems, with their cells."""


@pytest.mark.parametrize("name", BESIDE)
def test_a_column_of_bookkeeping_is_no_system_and_the_first_lines_name_it(tmp_path: Path, name: str) -> None:
    path = _with(tmp_path / "t.csv", **{name: BESIDE[name]})
    result = called("compare", path, "--json", "out.json", cwd=tmp_path)
    assert result.returncode == 0
    assert f"({name!r})" in result.stdout.splitlines()[0]
    assert result.stdout.splitlines()[0].startswith("left out as no scores of systems")
    found = json.loads((tmp_path / "out.json").read_text())
    assert [(row["a"], row["b"]) for row in found["results"]] == [("a", "b")]
    assert any(f"({name!r})" in warning for warning in found["warnings"])


def test_all_of_them_together_leave_the_same_result_as_none(tmp_path: Path) -> None:
    with_all, with_none = read(_with(tmp_path / "all.csv", **BESIDE)), read(_with(tmp_path / "none.csv"))
    assert with_all.systems == with_none.systems == ("a", "b")
    assert (with_all.field("score") == with_none.field("score")).all()
    assert not with_none.notices


@pytest.mark.parametrize("value", ["0", "1", "0.0", "1.0", "0.5", "100"])
def test_a_constant_that_may_be_a_score_is_a_system(tmp_path: Path, value: str) -> None:
    path = _with(tmp_path / "t.csv", baseline=[value] * N)
    assert read(path).systems == ("baseline", "a", "b")


def test_a_system_that_is_always_right_beside_scores_of_0_and_1_is_a_system(tmp_path: Path) -> None:
    columns = {name: [str(value(k)) for k in range(N)] for name, value in
               {"none": lambda k: 0, "half": lambda k: k % 2, "all": lambda k: 1, "same": lambda k: k % 2}.items()}  # fmt: skip
    assert read(_write(tmp_path / "t.csv", columns)).systems == ("none", "half", "all", "same")


def test_a_constant_rating_or_loss_is_a_system_with_a_note(tmp_path: Path) -> None:
    ratings = {"a": [str(k * 7 % 4 + 1) for k in range(N)], "b": ["5"] * N}
    losses = {"a": [_score(k, 37) for k in range(N)], "uniform": ["0.6931"] * N, "b": [_score(k, 41) for k in range(N)]}
    counts = read(_write(tmp_path / "ratings.csv", ratings))
    assert counts.systems == ("a", "b")
    assert "column 'b' is 5 in every row: taken for a system's scores" in counts.notices[0]
    assert read(_write(tmp_path / "losses.csv", losses)).systems == ("a", "uniform", "b")


def test_the_user_may_name_the_systems(tmp_path: Path) -> None:
    path = _with(tmp_path / "t.csv", **BESIDE)
    assert read(path, format="wide:systems=a+seed").systems == ("a", "seed")
    result = called("compare", path, "--format", "wide:systems=a+temperature", cwd=tmp_path)
    assert "left out" not in result.stdout
    with pytest.raises(InputError, match="no column 'c'; columns"):
        read(path, format="wide:systems=a+c")


def test_systems_that_are_all_called_like_bookkeeping_stay(tmp_path: Path) -> None:
    columns = {"bert_time": [_score(k, 37) for k in range(N)], "gpt_time": [_score(k, 41) for k in range(N)]}
    assert read(_write(tmp_path / "t.csv", columns)).systems == ("bert_time", "gpt_time")


@pytest.mark.parametrize("step", STEP_NAMES)
def test_a_training_curve_is_refused_with_the_reason(tmp_path: Path, step: str) -> None:
    path = _with(tmp_path / "t.csv", ids=False, **{step: [str(10 * k) for k in range(N)]})
    result = called("compare", path, cwd=tmp_path)
    assert result.returncode == 2
    assert f"a training curve, a row for each {step}" in result.stderr
    assert "no test fits them" in result.stderr
    assert read(path, format="wide:systems=a+b").systems == ("a", "b")


def test_exports_of_weights_and_biases_and_tensorboard_are_curves(tmp_path: Path) -> None:
    runs = {f"run-{name} - eval/acc{end}": [_score(k, by) for k in range(N)]
            for name, by in (("a", 37), ("b", 41)) for end in ("", "__MIN", "__MAX")}  # fmt: skip
    steps = [str(k) for k in range(N)]
    with pytest.raises(RefusedFileError, match="training curve, a row for each Step"):
        read(_write(tmp_path / "wandb.csv", {"Step": steps, **runs}))
    times = [f"17000000{k:02}.5" for k in range(N)]
    path = _write(tmp_path / "board.csv", {"Wall time": times, "Step": steps, "Value": runs["run-a - eval/acc"]})
    with pytest.raises(RefusedFileError, match="training curve, a row for each Wall time"):
        read(path)


def test_long_tables_of_training_are_curves(tmp_path: Path) -> None:
    rows = "".join(f"{system},{k},{_score(k, by)}\n" for system, by in (("a", 37), ("b", 41)) for k in range(N))
    (path := tmp_path / "t.csv").write_text(f"model,step,score\n{rows}")
    with pytest.raises(RefusedFileError, match="training curve, a row for each step"):
        read(path)
    assert read(path, format="long:", options=_ids("step")).n_items == N


def _ids(name: str):
    from sigdask.formats import Options

    return Options(id_column=name)


def test_logs_of_training_as_json_are_curves(tmp_path: Path) -> None:
    (path := tmp_path / "log.jsonl").write_text(
        "".join(
            json.dumps({"step": k, "loss": 1 / (k + 1)} | ({"eval_loss": 1} if k % 5 == 4 else {})) + "\n"
            for k in range(N)
        )
    )
    with pytest.raises(RefusedFileError, match="training curve"):
        read(path)
    path.write_text(json.dumps({"epoch": 3.0, "log_history": [{"step": 1, "loss": 0.5}, {"step": 2, "eval_loss": 1}]}))
    with pytest.raises(RefusedFileError, match="training curve"):
        read(path)


def test_a_step_that_is_no_row_of_training_is_left_out(tmp_path: Path) -> None:
    shuffled = [str(k * 7 % 30) for k in range(N)]
    assert read(_with(tmp_path / "t.csv", ids=False, step=shuffled)).systems == ("a", "b")
    assert read(_with(tmp_path / "u.csv", step=[str(k) for k in range(N)])).systems == ("a", "b")


def test_metrics_of_several_files_leave_bookkeeping_out_with_one_note(tmp_path: Path) -> None:
    for name, by in (("new", 37), ("old", 41)):
        records = ({"id": k, "f1": k * by % 97 / 97, "n_tokens": k % 7, "timestamp": 1.7e9 + k * k} for k in range(N))
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    counts = read(tmp_path / "new.jsonl", tmp_path / "old.jsonl", format="metrics")
    assert counts.suggested == ("f1",)
    [said] = [warning for warning in counts.notices if "left out as no scores" in warning]
    assert "'n_tokens'" in said
    assert "'timestamp'" in said


def test_columns_beside_labels_are_no_systems(tmp_path: Path) -> None:
    labels = {"gold": [str(k % 2) for k in range(N)], "a": [str(k % 3 % 2) for k in range(N)], "b": ["1"] * N}
    path = _write(tmp_path / "t.csv", {"id": [f"q{k}" for k in range(N)], **labels, **{
        name: BESIDE[name] for name in ("seed", "timestamp", "split", "n_tokens", "train_trial_index")}})  # fmt: skip
    counts = read(path)
    assert counts.systems == ("a", "b")
    [said] = [warning for warning in counts.notices if "left out as no labels" in warning]
    for name in ("seed", "timestamp", "split", "n_tokens", "train_trial_index"):
        assert repr(name) in said
    assert read(path, format="labels:systems=a+split").systems == ("a", "split")


def test_a_long_table_names_the_scores_that_are_not_compared(tmp_path: Path) -> None:
    rows = "".join(
        f"{system},q{k},{_score(k, by)},{_score(k, 5)},7\n" for system, by in (("a", 37), ("b", 41)) for k in range(N)
    )
    (path := tmp_path / "t.csv").write_text(f"system,item,score,bleu,seed\n{rows}")
    first = called("compare", path, cwd=tmp_path).stdout.splitlines()[0]
    assert "'score' is compared; 2 columns ('bleu', 'seed') left out" in first


def test_the_columns_of_a_long_table_may_be_named(tmp_path: Path) -> None:
    rows = "".join(
        f"{system},q{k},{_score(k, by)},{k % 2}\n" for system, by in (("a", 37), ("b", 41)) for k in range(N)
    )
    (path := tmp_path / "t.csv").write_text(f"mt,item,comet,acc\n{rows}")
    named = called("compare", path, "--system-column", "mt", "--score-column", "comet", cwd=tmp_path)
    assert "2 systems, 30 items" in named.stderr


def test_what_a_system_took_is_no_system(tmp_path: Path) -> None:
    costs = {"a_latency": [_score(k, 5) for k in range(N)], "b_confidence": [_score(k, 7) for k in range(N)]}
    assert read(_with(tmp_path / "t.csv", **costs)).systems == ("a", "b")


@pytest.mark.parametrize("name", COSTS)
def test_what_an_item_took_is_no_system_and_the_first_line_names_it(tmp_path: Path, name: str) -> None:
    path = _with(tmp_path / "t.csv", **{name: [f"{k * 29 % 31 * 11.7:.2f}" for k in range(N)]})
    result = called("compare", path, cwd=tmp_path)
    assert result.stdout.startswith(f"left out as no scores of systems: 1 column ({name!r})")
    assert read(path).systems == ("a", "b")
    assert read(path, format=f"wide:systems=a+{name}").systems == ("a", name)
    labels = {"gold": [str(k % 2) for k in range(N)], "a": ["1"] * N, "b": [str(k % 3 % 2) for k in range(N)]}
    path = _write(
        tmp_path / "u.csv", {"id": [f"q{k}" for k in range(N)], **labels, name: [str(k + 7) for k in range(N)]}
    )
    assert read(path).systems == ("a", "b")


def test_costs_are_metrics_where_each_file_is_a_system(tmp_path: Path) -> None:
    for system, by in (("a", 3), ("b", 7)):
        columns = {"id": [f"q{k}" for k in range(N)], "acc": [str(k * by % 5 % 2) for k in range(N)]}
        _write(tmp_path / f"{system}.csv", {**columns, "latency": [_score(k, by) for k in range(N)]})
    assert read(tmp_path / "a.csv", tmp_path / "b.csv").suggested == ("acc", "latency")


RUNS = [
    ("run", "run2"),
    ("run1", "run"),
    ("model", "model_2"),
    ("system", "baseline"),
    ("easy", "hard"),
    ("base", "easy"),
]


@pytest.mark.parametrize("names", RUNS, ids="-".join)
@pytest.mark.parametrize("ids", [True, False])
def test_systems_may_be_called_like_other_columns(tmp_path: Path, names: tuple[str, str], ids: bool) -> None:
    own = {"id": [f"q{k}" for k in range(N)]} if ids else {}
    scores = {name: [_score(k, by) for k in range(N)] for name, by in zip(names, (37, 41), strict=True)}
    counts = read(_write(tmp_path / "t.csv", {**own, **scores}))
    assert (counts.systems, counts.n_items) == (names, N)
    assert not counts.notices
    right = {name: [str(k // by % 2) for k in range(N)] for name, by in zip(names, (1, 3), strict=True)}
    assert read(_write(tmp_path / "u.csv", {**own, **right})).systems == names


@pytest.mark.parametrize("ids", [True, False])
def test_a_step_of_0_and_1_in_no_order_is_a_system_with_a_note(tmp_path: Path, ids: bool) -> None:
    own = {"id": [f"q{k}" for k in range(N)]} if ids else {}
    columns = {**own, "step": [str(k % 3 % 2) for k in range(N)], "base": [str(k % 2) for k in range(N)]}
    counts = read(_write(tmp_path / "t.csv", columns))
    assert counts.systems == ("step", "base")
    assert "column 'step' holds 0 and 1 alone: taken for a system's scores" in counts.notices[0]


def test_rows_of_system_and_item_with_several_scores_ask_for_one(tmp_path: Path) -> None:
    rows = "".join(
        f"{system},q{k},{_score(k, by)},{_score(k, 5)}\n" for system, by in (("a", 37), ("b", 41)) for k in range(N)
    )
    (path := tmp_path / "t.csv").write_text(f"model,id,acc,f1\n{rows}")
    with pytest.raises(InputError, match=r"2 columns \('acc', 'f1'\) of numbers; choose the score with --score-column"):
        read(path)
    chosen = called("compare", path, "--score-column", "f1", cwd=tmp_path)
    assert "2 systems, 30 items" in chosen.stderr
    assert "2 columns" not in chosen.stdout
