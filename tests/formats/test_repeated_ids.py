"""Rows of the same id are samples of one item: their mean is compared as one unit."""

import json
from fractions import Fraction
from itertools import product

import pandas as pd
import pytest
from command import call_sigdask

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, read
from sigdask.formats.frames import as_counts


def compute_exact_p(differences):
    """Return the two-sided p over all swaps, in fractions, as Fisher's test enumerates them."""
    observed = abs(sum(differences))
    swaps = list(product((1, -1), repeat=len(differences)))
    return Fraction(
        sum(abs(sum(s * d for s, d in zip(w, differences, strict=True))) >= observed for w in swaps), len(swaps)
    )


def compare_exactly(counts, metric):
    (result,) = compare_all(counts, metrics=[metric], method="exact")
    return result


PASSED = {
    "x": [(1, 0, 1, 1), (0, 0, 0, 1), (1, 1, 1, 1), (0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 1, 0), (0, 0, 1, 0)],
    "y": [(1, 1, 1, 1), (1, 0, 1, 1), (1, 1, 1, 0), (0, 1, 0, 0), (1, 1, 1, 1), (1, 1, 1, 0), (0, 0, 0, 1)],
}


def compute_differences(n_x=4, n_y=4):
    pairs = zip(PASSED["x"], PASSED["y"], strict=True)
    return [Fraction(sum(x[:n_x]), n_x) - Fraction(sum(y[:n_y]), n_y) for x, y in pairs]


def write_passed(folder, name, n, order=1, key="task_id"):
    rows = [
        {key: f"HumanEval/{k}", "completion": f"return {j}", "passed": bool(p)}
        for k, passed in enumerate(PASSED[name])
        for j, p in enumerate(passed[:n])
    ]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[::order]))
    return folder / f"{name}.jsonl"


@pytest.mark.parametrize(("n_x", "n_y"), [(4, 4), (2, 4), (4, 1), (3, 4)])
def test_samples_of_a_task_are_one_unit_whose_score_is_their_mean(tmp_path, n_x, n_y):
    counts = read(write_passed(tmp_path, "x", n_x), write_passed(tmp_path, "y", n_y, order=-1))
    result = compare_exactly(counts, "mean")
    assert result.n_items == result.n_units == 7
    assert result.score_a == pytest.approx(
        float(sum(Fraction(sum(passed[:n_x]), n_x) for passed in PASSED["x"]) / 7), abs=1e-12
    )
    # of y in reverse order the first n_y samples are the last ones where rows are read, but all are averaged
    assert result.p_value == pytest.approx(float(compute_exact_p(compute_differences(n_x, n_y))), rel=1e-12)


def test_the_first_lines_say_how_many_samples_were_averaged(tmp_path):
    write_passed(tmp_path, "x", 4)
    write_passed(tmp_path, "y", 2)
    result = call_sigdask("compare", "x.jsonl", "y.jsonl", cwd=tmp_path)
    lines = result.stdout.splitlines()
    assert "read as wide: 2 systems, 7 items" in result.stderr.splitlines()[0]
    assert "x.jsonl: 4 replicates of each of 7 items (28 rows), averaged as one unit" in lines[0]
    assert "y.jsonl: 2 replicates of each of 7 items (14 rows), averaged as one unit" in lines[1]
    assert not any("replicates" in line for line in [*lines[2:], *result.stderr.splitlines()])


def test_labels_of_repeated_ids_are_averaged_too(tmp_path):
    rows = [
        f"{k},P,{'QP'[x]},{'QP'[y]}\n" for k in range(7) for x, y in zip(PASSED["x"][k], PASSED["y"][k], strict=True)
    ]
    (tmp_path / "t.csv").write_text("id,gold,x,y\n" + "".join(rows))
    result = compare_exactly(read(tmp_path / "t.csv"), "accuracy")
    assert result.p_value == pytest.approx(float(compute_exact_p(compute_differences())), rel=1e-12)


def test_rows_of_a_long_table_are_samples_within_each_system(tmp_path):
    rows = [
        f"{system},{k},{j},{p}\n"
        for system, n in (("x", 4), ("y", 2))
        for k, passed in enumerate(PASSED[system])
        for j, p in enumerate(passed[:n])
    ]
    (tmp_path / "t.csv").write_text("system,item,seed,score\n" + "".join(rows))
    result = compare_exactly(read(tmp_path / "t.csv"), "mean")
    assert result.p_value == pytest.approx(float(compute_exact_p(compute_differences(4, 2))), rel=1e-12)


ID_COLUMNS = ["problem", "problem_id", "question", "question_id", "prompt", "prompt_id", "task", "task_id"]


@pytest.mark.parametrize("ids", [[*"abcdefg"], [*"3456789"]])
@pytest.mark.parametrize("name", ID_COLUMNS)
def test_repeated_problems_questions_prompts_and_tasks_are_replicates(tmp_path, name, ids):
    rows = [
        f"{item},{x},{y}\n"
        for item, *samples in zip(ids, PASSED["x"], PASSED["y"], strict=True)
        for x, y in zip(*samples, strict=True)
    ]
    (tmp_path / "t.csv").write_text(f"{name},x,y\n" + "".join(rows))
    counts = read(tmp_path / "t.csv")
    assert (counts.systems, counts.of_one.n_items) == (("x", "y"), 7)
    assert "4 replicates of each of 7 items" in counts.scope[0]
    assert compare_exactly(counts, "mean").p_value == pytest.approx(
        float(compute_exact_p(compute_differences())), rel=1e-12
    )
    (tmp_path / "t.csv").write_text(f"{name},x,y\n" + "".join(rows[:-1]))
    with pytest.raises(InputError, match="and not all equally often"):
        read(tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["problem", "question", "prompt", "task"])
def test_a_column_of_scores_or_one_text_is_no_column_of_ids(tmp_path, name):
    (tmp_path / "t.csv").write_text(f"{name},tuned\n0.5,0.25\n0.25,0.75\n0.5,1\n")
    assert read(tmp_path / "t.csv").systems == (name, "tuned")
    (tmp_path / "t.csv").write_text(f"{name},x,y\nSort it.,1,0\nSort it.,0,0\nSort it.,0,1\n")
    assert read(tmp_path / "t.csv", format="wide", options=Options(ignore=(name,))).n_items == 3
    (tmp_path / "t.csv").write_text(f"id,{name},x,y\na,P,1,0\nb,P,0,0\nc,Q,0,1\nd,Q,1,1\n")
    assert list(read(tmp_path / "t.csv").ids) == [*"abcd"]


TABLE = "a,1,2\nb,2,3\nc,3,1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,x,y\na,1,2\na,2,3\nb,3,1\n", r"t.csv, line 3: id 'a' is on line 2 already: 1 of 2 ids are repeated"),
        ("id,prompt,x,y\na,p,1,2\na,q,2,3\nb,r,3,1\nb,r,1,1\n", r"line 3: .*the rows differ in 'prompt'"),
        ("idx,x,y\n0,1,2\n1,2,3\n0,3,1\n1,4,4\n", r"line 4: .*row numbers that start again are no ids"),
        ("task_id,segment,x,y\nT,0,1,2\nT,1,2,3\nU,0,3,1\nU,1,4,4\n", r"Then --columns id=task_id"),
        ("id,gold,x,y\na,P,P,Q\na,Q,P,Q\nb,P,P,P\nb,P,P,P\n", r"the rows differ in 'gold'"),
    ],
)
def test_rows_of_an_id_that_are_no_samples_are_an_error_with_its_remedies(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read(tmp_path / "t.csv")
    assert "--align position" in str(error.value)


def test_names_that_may_be_systems_are_asked_about(tmp_path):
    """As in the rows of pt.Experiment of PyTerrier, with a column for each measure."""
    path = tmp_path / "perquery.csv"
    rows = [f"{name},q{k},0.{k},0.{7 - k}" for name in ("BM25", "DPH") for k in range(1, 6)]
    path.write_text("\n".join(["name,qid,map,ndcg", *rows]))
    with pytest.raises(
        InputError, match="2 values of 'name' for each 'qid'. If they are systems, give --columns system="
    ):
        read(path)
    samples = read(path, options=Options(ignore=("name",)))
    assert samples.systems == ("map", "ndcg")
    systems = read(path, options=Options(columns={"system": "name", "score": "map"}))
    assert systems.systems == ("BM25", "DPH")
    path.write_text(path.read_text().replace("name,", "annotator,"))
    assert read(path).systems == ("map", "ndcg")


def test_an_uneven_number_of_samples_is_averaged_where_that_was_said(tmp_path):
    (tmp_path / "t.csv").write_text("id,x,y\na,1,2\na,2,3\nb,3,1\n")
    counts = read(tmp_path / "t.csv", format="wide:replicates=together")
    result = compare_exactly(counts, "mean")
    assert (result.score_a, result.score_b) == (2.25, 1.75)
    with pytest.raises(InputError, match="different numbers of samples, but replicates=each needs equally many"):
        read(tmp_path / "t.csv", format="wide:replicates=each")


def test_ids_that_are_numbered_within_tasks_are_known_by_both(tmp_path):
    (tmp_path / "t.csv").write_text("task,id,x,y\n" + "".join(f"{t},{k},{k},{k + 1}\n" for t in "ab" for k in range(3)))
    counts = read(tmp_path / "t.csv")
    assert list(counts.ids) == ["a/0", "a/1", "a/2", "b/0", "b/1", "b/2"]
    assert "items are known by task+id" in counts.notices[0]


def test_several_columns_are_an_id_together(tmp_path):
    (tmp_path / "t.csv").write_text(
        "run_of,nr,x,y\n" + "".join(f"{t},{k},{k},{k + 1}\n" for t in "ab" for k in range(3))
    )
    counts = read(tmp_path / "t.csv", options=Options(columns={"id": "run_of+nr"}))
    assert (counts.systems, list(counts.ids)[:2]) == (("x", "y"), ["a/0", "a/1"])


def test_a_file_joined_with_itself_changes_no_p(tmp_path):
    (tmp_path / "once.csv").write_text("id,x,y\n" + TABLE)
    (tmp_path / "twice.csv").write_text("id,x,y\n" + TABLE + TABLE)
    once, twice = (compare_exactly(read(tmp_path / name), "mean") for name in ("once.csv", "twice.csv"))
    assert (once.p_value, once.n_units) == (twice.p_value, twice.n_units)


def test_repeated_ids_of_a_data_frame_are_replicates_or_an_error_as_in_a_file():
    frame = pd.DataFrame({"item": [1, 1, 2, 2], "x": [1.0, 2, 3, 4], "y": [2.0, 2, 3, 1]})
    counts = as_counts(frame)
    assert counts.scope == ("data frame: 2 replicates of each of 2 items (4 rows), averaged as one unit",)
    assert (counts.n_items, len(counts.replicates)) == (2, 2)
    assert as_counts(frame, groups=["item"]).systems == ("x", "y")
    with pytest.raises(
        InputError, match="2 of 2 ids are repeated, and not all equally often.*a column that joins both"
    ):
        as_counts(pd.concat([frame, frame.tail(1)]))


@pytest.mark.parametrize("text", ['{"q": "a", "r": "b", "q": "c"}', '{"q": {"p": 1}, "q": {"p": 2}}'])
def test_a_key_that_stands_twice_in_one_object_is_seen(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    (tmp_path / "gold.json").write_text('{"q": "a", "r": "b"}')
    with pytest.raises(InputError, match=r"x.json: id 'q' is in the same JSON object already"):
        read(tmp_path / "x.json", gold=tmp_path / "gold.json", format="labels")


def test_two_logs_in_one_file_are_an_error(tmp_path):
    log = "T-0\ta b\nH-0\t-1\ta b\nT-1\tc\nH-1\t-1\tc\n"
    (tmp_path / "x.log").write_text(log + log)
    with pytest.raises(InputError, match="line 5: id T-0 is on line 1 already"):
        read(tmp_path / "x.log", format="fairseq")


def test_rows_that_name_their_metric_are_compared_metric_by_metric(tmp_path):
    """As melted by pandas: a score of f1 and one of WER are no replicates."""
    rows = [("x", k, f"f1,0.{k}\n", f"WER,{k}\n") for k in range(1, 8)] + [
        ("y", k, f"f1,0.{9 - k}\n", f"WER,{k + 1}\n") for k in range(1, 8)
    ]
    path = tmp_path / "long.csv"
    path.write_text(
        "model,item,metric,value\n" + "".join(f"{s},q{k},{cells}" for s, k, *both in rows for cells in both)
    )
    counts = read(path)
    assert {*counts.suggested} == {"f1", "WER"}
    results = {result.metric: result for result in compare_all(counts)}
    assert (results["WER"].score_a, results["WER"].score_b) == (4, 5)
    assert results["f1"].score_a == pytest.approx(0.4)
    assert results["WER"].higher_is_better is False
    path.write_text(path.read_text().replace("y,q7,WER,8\n", ""))
    with pytest.raises(InputError, match="system 'y' has no score 'WER' for item 'q7'"):
        read(path)
    assert read(path, options=Options(missing="pairwise")).n_items == 7
    path.write_text(path.read_text().replace("metric,", "name,"))
    with pytest.raises(InputError, match="If they are metrics, call the column 'metric'|not all equally often"):
        read(path)


@pytest.mark.parametrize(
    ("names", "metrics"), [(("food", "service"), ["mean"]), (("accuracy",) * 2, ["mean"]), (("WER",) * 2, ["WER"])]
)
def test_a_column_with_one_value_for_each_item_names_no_metrics(tmp_path, names, metrics):
    """Aspects of reviews are properties of items, and a single metric keeps the name mean unless lower is better."""
    path = tmp_path / "long.csv"
    rows = [f"{s},q{k},{0.1 * (k % 7):.1f},{names[k % 2]}\n" for s in "xy" for k in range(12)]
    path.write_text("system,item,score,aspect\n" + "".join(rows))
    results = compare_all(read(path))
    assert ([result.metric for result in results], results[0].n_items) == (metrics, 12)
    assert {*read(path, options=Options(metrics=names)).suggested} == {*names}


def test_metrics_in_rows_of_a_wide_table_are_no_replicates(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("id,metric,x,y\n" + "".join(f"q{k},f1,0.{k},0.{k + 1}\nq{k},em,0,{k % 2}\n" for k in range(1, 9)))
    with pytest.raises(InputError, match=r"several metrics.*--columns id=id\+metric --by metric"):
        read(path)
    assert read(path, options=Options(columns={"id": "id+metric"}, groups=("metric",))).n_items == 16
