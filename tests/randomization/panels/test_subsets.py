"""Tests of subsets and of metrics that only some items have: which items are compared, and the messages."""

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from builders import build_rng

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, read

TASKS = {"arc": ("acc", 8), "drop": ("f1", 6), "gsm8k": ("exact_match", 7), "hellaswag": ("acc", 9)}


def write_logs(folder, tasks=TASKS, systems=("base", "new", "other"), lacking=(), seed=1):
    """Write logs of samples, each task with its own metric; `lacking` are pairs (system, task) to omit."""
    rng = build_rng(seed)
    for system in systems:
        for task, (metric, n) in tasks.items():
            if (system, task) not in lacking:
                rows = [
                    {
                        "doc_id": k,
                        "doc": {"q": f"{task}{k}"},
                        "resps": [["x"]],
                        "filtered_resps": ["x"],
                        metric: int(rng.integers(2)),
                    }
                    for k in range(n)
                ]
                path = folder / system / f"samples_{task}_2024-05-01T12-00-00.123456.jsonl"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def compute_exact_p(a, b):
    """Return the two-sided p of all arrangements, by fractions."""
    d = [Fraction(str(x)) - Fraction(str(y)) for x, y in zip(a, b, strict=True) if x != y]
    sums = [abs(sum(s * x for s, x in zip(signs, d, strict=True))) for signs in product((1, -1), repeat=len(d))]
    return Fraction(sum(s >= abs(sum(d)) for s in sums), len(sums))


def read_scores(folder, system, task):
    metric, _ = TASKS[task]
    [path] = (folder / system).glob(f"samples_{task}_*.jsonl")
    return [json.loads(line)[metric] for line in path.read_text().splitlines()]


def test_by_task_compares_each_task_by_the_metrics_that_it_has_and_no_others(tmp_path):
    results = compare_all(read(write_logs(tmp_path)), metrics=["acc", "f1", "exact_match"], by="task", adjust="holm")
    assert {(r.subset["value"], r.metric) for r in results} == {(task, m) for task, (m, _) in TASKS.items()}
    assert len(results) == 3 * len(TASKS)  # 36 with those of 0 against 0
    assert results.family.n_comparisons == 6  # those by acc
    for r in results:
        task = r.subset["value"]
        a, b = (read_scores(tmp_path, system, task) for system in (r.a, r.b))
        assert (r.n_items, r.score_a, r.score_b) == (len(a), np.mean(a), np.mean(b))
        assert Fraction(r.p_value).limit_denominator(2**20) == compute_exact_p(a, b)
        assert not any("0/0" in w for w in r.warnings)
    assert not any("not compared" in w for w in results.warnings)  # nobody has f1 in arc: nothing is missing


def test_a_task_that_one_system_lacks_is_missed_there_alone_and_said_so(tmp_path):
    whole = compare_all(read(write_logs(tmp_path / "whole")), metrics=["acc", "f1"], by="task", adjust="none")
    write_logs(tmp_path / "gap")
    (tmp_path / "gap" / "new" / "samples_drop_2024-05-01T12-00-00.123456.jsonl").unlink()
    with pytest.raises(InputError, match="system 'new' has no score 'f1'"):
        read(tmp_path / "gap")
    gap = compare_all(
        read(tmp_path / "gap", options=Options(missing="pairwise")), metrics=["acc", "f1"], by="task", adjust="none"
    )

    def kept(results):
        return {(r.a, r.b, r.metric, r.subset["value"]): (r.score_a, r.score_b, r.p_value) for r in results}

    lost = set(kept(whole)) - set(kept(gap))
    assert lost == {("base", "new", "f1", "drop"), ("new", "other", "f1", "drop")}
    assert kept(gap).items() <= kept(whole).items()
    [note] = [w for w in gap.warnings if w.startswith("not compared")]
    assert note.endswith("base and new by f1 on drop; new and other by f1 on drop")


def write_samples(path, rows):
    path.write_text(
        "".join(
            json.dumps({"doc_id": k, "doc": {"q": k}, "resps": [["x"]], "filtered_resps": ["x"]} | row) + "\n"
            for k, row in enumerate(rows)
        )
    )
    return path


def test_a_score_that_is_missing_in_one_metric_leaves_the_others_as_they_are(tmp_path):
    a = write_samples(
        tmp_path / "a.jsonl", [{"acc": 1, "f1": 0.5}, {"acc": 0}, {"acc": 1, "f1": 1}, {"acc": 1, "f1": 0.25}]
    )
    b = write_samples(
        tmp_path / "b.jsonl", [{"acc": 0, "f1": 0.5}, {"acc": 1, "f1": 0.75}, {"acc": 0, "f1": 0}, {"acc": 0}]
    )
    results = compare_all(read(a, b, options=Options(missing="pairwise")), metrics=["acc", "f1"])
    by_metric = {r.metric: (r.n_items, r.score_a, r.score_b) for r in results}
    assert by_metric == {"acc": (4, 0.75, 0.25), "f1": (2, 0.75, 0.25)}


def test_together_takes_each_metric_over_the_tasks_that_have_it(tmp_path):
    results = compare_all(
        read(write_logs(tmp_path, systems=("base", "new"))),
        metrics=["acc", "f1"],
        by="task",
        together=True,
        trials=4096,
    )
    by_metric = {o.metric: o for o in results.together}
    means = {t: np.mean(read_scores(tmp_path, "base", t)) - np.mean(read_scores(tmp_path, "new", t)) for t in TASKS}
    assert by_metric["acc"].n_sets == 2
    assert by_metric["acc"].difference == pytest.approx((means["arc"] + means["hellaswag"]) / 2)
    assert by_metric["f1"].difference == pytest.approx(means["drop"])


def test_replicates_are_compared_on_the_items_that_all_have(tmp_path):
    for system, seed in (("a", 1), ("b", 2)):
        for r in range(2):
            write_logs(tmp_path / f"{system}{r}", {"arc": ("acc", 8), "drop": ("f1", 6)}, ("x",), seed=10 * seed + r)
    counts = read(*(f"{system}={tmp_path / f'{system}{r}' / 'x'}" for system in "ab" for r in range(2)))
    results = compare_all(counts, metrics=["acc", "f1"], by="task")
    assert {(r.subset["value"], r.metric, r.n_items) for r in results} == {("arc", "acc", 8), ("drop", "f1", 6)}
