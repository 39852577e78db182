"""Rows and columns that are not scores: means, totals, row numbers of data frames."""

import json
import random

import numpy as np
import pandas as pd
import pytest

from sigdask.errors import InputError
from sigdask.formats import Options, read
from sigdask.formats.reading.summaries import is_summary_name

SCORES = pd.DataFrame(
    {"bert": [0.61, 0.22, 0.95, 0.4], "gpt": [0.5, 0.13, 0.9, 0.77]}, index=[f"t{k}" for k in range(4)]
)


def get_scores(counts):
    return {name: counts.field("score")[:, s].tolist() for s, name in enumerate(counts.systems)}


def as_lists(frame=SCORES):
    return {name: column.tolist() for name, column in frame.items()}


def write_csv(tmp_path, frame, **options):
    frame.to_csv(tmp_path / "t.csv", **options)
    return tmp_path / "t.csv"


def add_row(name, values, first=False):
    row = pd.DataFrame([values], columns=SCORES.columns, index=[name])
    return pd.concat([row, SCORES] if first else [SCORES, row])


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("all", SCORES.mean()),
        ("Mean", SCORES.mean().round(3)),
        ("AVG", SCORES.mean().round(2)),
        ("Average (4 tasks)", SCORES.mean().round(3)),
        ("average", (100 * SCORES.mean()).round(1)),
        ("total", SCORES.sum()),
        ("sum", SCORES.sum().round(1)),
        ("overall", SCORES.mean()),
        ("macro", SCORES.mean()),
        ("std", SCORES.std()),
        ("median", SCORES.median()),
    ],
)
def test_a_row_that_sums_up_the_others_is_no_item(tmp_path, name, values, first):
    counts = read(write_csv(tmp_path, add_row(name, list(values), first)))
    assert get_scores(counts) == as_lists()
    assert [f"{name!r} sums up the other rows" in warning for warning in counts.notices] == [True]


@pytest.mark.parametrize("name", ["all", "mean", "weighted average"])
def test_an_item_called_like_a_summary_stays_and_is_noted(tmp_path, name):
    frame = add_row(name, [0.1, 0.2])
    counts = read(write_csv(tmp_path, frame))
    assert get_scores(counts) == as_lists(frame)
    assert f"line 6: {name!r} is called like a summary, but is not the mean" in counts.notices[0]


@pytest.mark.parametrize("exponent", [-16, -12, -6, 0, 12])
def test_a_summary_is_told_from_an_item_at_every_scale_of_scores(tmp_path, exponent):
    """The oracle are whole numbers times a power of ten, with their sum and with another number."""
    scores = {"bert": [3712, 25, 9100, 408], "gpt": [871, 4410, 60, 7002]}
    for last, n_items in (({"bert": 13245, "gpt": 12343}, 4), ({"bert": 6311, "gpt": 13}, 5)):
        rows = [f"{name},{scores['bert'][k]}e{exponent},{scores['gpt'][k]}e{exponent}" for k, name in enumerate("wxyz")]
        text = "\n".join(["item,bert,gpt", *rows, f"total,{last['bert']}e{exponent},{last['gpt']}e{exponent}"])
        (tmp_path / "t.csv").write_text(text + "\n")
        assert read(tmp_path / "t.csv").n_items == n_items


@pytest.mark.parametrize("cell", ["inf", "nan", "-1e999"])
def test_an_infinite_score_above_a_mean_is_an_error_that_names_its_line(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f"id,a,b\nx,1,2\ny,{cell},3\nz,2,4\nmean,2,3\n")
    with pytest.raises(InputError, match="line 3, column 'a': found"):
        read(tmp_path / "t.csv", format="wide")
    with pytest.raises(InputError, match="line 3, column 'a': found"):
        read(tmp_path / "t.csv")


def test_a_mean_of_exact_tenths_is_known_by_its_two_decimals(tmp_path):
    (tmp_path / "t.csv").write_text("item,x,y\na,0.1,0.3\nb,0.5,0.4\nc,0.7,0.7\nd,0.8,0.9\nmean,0.53,0.58\n")
    assert read(tmp_path / "t.csv").n_items == 4  # 0.525 and 0.575


def test_an_item_called_all_of_scores_0_and_1_is_not_taken_for_their_rounded_mean(tmp_path):
    (tmp_path / "t.csv").write_text("item,x,y\na,1,0\nb,1,1\nc,0,0\nall,1,0\n")  # means 0.67 and 0.33
    assert read(tmp_path / "t.csv").n_items == 4


def test_a_word_among_items_that_is_called_all_needs_no_note(tmp_path):
    (tmp_path / "t.csv").write_text("item,x,y\nany,1,0\nall,1,1\nnone,0,0\n")
    counts = read(tmp_path / "t.csv")
    assert (counts.n_items, counts.notices) == (3, ())


def test_all_that_describe_adds_is_left_out(tmp_path):
    counts = read(write_csv(tmp_path, pd.concat([SCORES, SCORES.describe()])))
    assert get_scores(counts) == as_lists()
    assert len(counts.notices) == 8


def test_a_mean_row_in_each_of_two_files_is_left_out(tmp_path):
    (tmp_path / "a.csv").write_text("item,score\nx,1\ny,2\nz,2\nmean,1.67\n")
    (tmp_path / "b.csv").write_text("item,score\nx,1\ny,4\nz,2\nmean,2.33\n")
    assert get_scores(read(tmp_path / "a.csv", tmp_path / "b.csv")) == {"a": [1, 2, 2], "b": [1, 4, 2]}


def test_a_total_of_responses_does_not_make_them_labels(tmp_path):
    (tmp_path / "t.csv").write_text("id,gold,x,y\na,1,1,0\nb,0,1,1\nc,1,1,1\ntotal,2,3,2\n")
    counts = read(tmp_path / "t.csv")
    assert counts.n_items == 3
    assert counts.field("tp").tolist() == [[1, 0], [0, 0], [1, 1]]


def test_rows_of_means_in_a_long_table_are_no_items(tmp_path):
    long = SCORES.reset_index(names="item").melt(id_vars="item", var_name="system", value_name="score")
    means = pd.DataFrame({"item": "all", "system": list(SCORES), "score": SCORES.mean().round(4).to_numpy()})
    counts = read(write_csv(tmp_path, pd.concat([long, means]), index=False))
    assert get_scores(counts) == as_lists()
    assert "'all' sums up the other rows" in counts.notices[0]


def test_a_column_of_the_systems_means_is_no_system(tmp_path):
    counts = read(write_csv(tmp_path, SCORES.assign(Average=SCORES.mean(axis=1).round(2))))
    assert get_scores(counts) == as_lists()
    assert "column 'Average' sums up the other columns" in counts.notices[0]


def test_means_in_the_last_row_without_ids_are_noted(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n3,4\n3,5\n2.33,3.67\n")
    counts = read(tmp_path / "t.csv")
    assert counts.n_items == 4
    assert "the last row holds the means or totals of the others" in counts.notices[0]


@pytest.mark.parametrize("name", ["all", "Mean", "TOTAL", "macro avg", "overall_score", "25%"])
def test_names_of_summaries_are_known(name):
    assert is_summary_name(name)


@pytest.mark.parametrize("name", ["allow", "summary", "all of it", "t3", "", "meaning", "25"])
def test_other_names_are_not(name):
    assert not is_summary_name(name)


NUMBERED = SCORES.reset_index(drop=True)


@pytest.mark.parametrize("header", ["", "Unnamed: 0", "Unnamed: 0.1", "__index_level_0__", "level_0", "row_nr", "...1"])
@pytest.mark.parametrize("start", [0, 1])
def test_the_index_of_a_data_frame_is_no_system(tmp_path, header, start):
    frame = NUMBERED.set_index(NUMBERED.index + start)
    counts = read(write_csv(tmp_path, frame, index_label=header))
    assert get_scores(counts) == as_lists()


def test_the_index_that_arrow_keeps_is_no_system(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({**{name: NUMBERED[name].to_numpy() for name in NUMBERED}, "__index_level_0__": [3, 1, 2, 0]})
    parquet.write_table(table, tmp_path / "t.parquet")
    counts = read(tmp_path / "t.parquet")
    assert get_scores(counts) == as_lists()
    assert counts.ids == ("3", "1", "2", "0")


def test_the_index_beside_an_id_is_neither_id_nor_system(tmp_path):
    counts = read(write_csv(tmp_path, SCORES.reset_index(names="item")))
    assert counts.ids == ("t0", "t1", "t2", "t3")
    assert get_scores(counts) == as_lists()


def test_a_first_column_that_counts_the_rows_is_no_system_whatever_its_name(tmp_path):
    frame = pd.DataFrame({"X": range(1, 13), "bert": np.arange(12) / 10, "gpt": np.arange(12)[::-1] / 10})
    counts = read(write_csv(tmp_path, frame, index=False))
    assert counts.systems == ("bert", "gpt")
    assert "column 'X' counts the rows" in counts.notices[0]


def test_the_row_names_of_r_are_ids(tmp_path):
    (tmp_path / "t.csv").write_text('"","bert","gpt"\n"1",0.5,1\n"2",0.25,0\n')
    counts = read(tmp_path / "t.csv")
    assert (counts.systems, counts.ids) == (("bert", "gpt"), ("1", "2"))


def test_a_rank_beside_the_scores_is_no_system(tmp_path):
    (tmp_path / "t.csv").write_text("rank,item,x,y\n1,a,0.5,0.4\n2,b,0.7,0.6\n3,c,0.1,0.2\n")
    counts = read(tmp_path / "t.csv")
    assert counts.systems == ("x", "y")
    assert any("left out as no scores of systems: 1 column ('rank')" in warning for warning in counts.notices)


def test_a_table_of_more_systems_than_items_is_asked_about(tmp_path):
    (tmp_path / "t.csv").write_text("id,run1,run2,run3\nbert,0.5,0.4,0.1\ngpt,0.7,0.6,0.2\n")
    assert any("are systems rows?" in warning for warning in read(tmp_path / "t.csv").notices)


def test_as_many_runs_on_as_many_topics_as_trec_has_are_not_asked_about(tmp_path):
    generator = random.Random(1)
    rows = [",".join(f"{generator.random():.4f}" for _ in range(129)) for _ in range(50)]
    (tmp_path / "t.csv").write_text("\n".join([",".join(f"run{k}" for k in range(129)), *rows]) + "\n")
    assert not any("are systems rows?" in warning for warning in read(tmp_path / "t.csv").notices)


@pytest.mark.parametrize("orient", ["columns", "records", "split", "index", "table"])
@pytest.mark.parametrize("index", [[], ["item"]])
def test_a_data_frame_is_read_in_every_json_layout(tmp_path, orient, index):
    frame = pd.DataFrame(
        {"item": [f"q{k}" for k in range(12)], "a": [k % 5 for k in range(12)], "b": [k % 7 for k in range(12)]}
    )
    (tmp_path / "t.json").write_text((frame.set_index(index) if index else frame).to_json(orient=orient))
    counts = read(tmp_path / "t.json")
    assert (counts.systems, get_scores(counts)) == (("a", "b"), as_lists(frame[["a", "b"]]))


def test_tables_of_weights_and_biases_are_read(tmp_path):
    for name, shift in (("a", 0), ("b", 1)):
        rows = [[f"q{k}", k % 2, (k + shift) % 3] for k in range(12)]
        (tmp_path / f"{name}.json").write_text(json.dumps({"columns": ["id", "gain", "em"], "data": rows, "ncols": 3}))
    counts = read(tmp_path / "a.json", tmp_path / "b.json")
    assert counts.field("score[em]").tolist() == [[k % 3, (k + 1) % 3] for k in range(12)]


def test_numbered_columns_without_names_of_rows_are_systems(tmp_path):
    scores = [[(i * k) % 7 / 8 for k in range(24)] for i in range(12)]
    pd.DataFrame(scores).to_csv(tmp_path / "t.csv")
    assert read(tmp_path / "t.csv").n_items == 12


def test_numbers_of_seeds_in_objects_of_items_are_no_rows_of_a_data_frame(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps({f"q{k}": {"0": k % 2, "1": k % 3, "2": k % 5} for k in range(12)}))
    counts = read(tmp_path / "t.json")
    assert (counts.systems, counts.n_items) == (("0", "1", "2"), 12)


def test_averages_by_system_are_not_taken_for_scores_by_item(tmp_path):
    averages = {f"bench{k}": 0.1 * k for k in range(12)} | {"sacrebleu": 30}
    (tmp_path / "t.json").write_text(json.dumps({"gpt": averages, "llama": averages | {"bench2": 0.5}}))
    assert read(tmp_path / "t.json").n_items == 2


@pytest.mark.parametrize("label", ["", "name", "id"])
@pytest.mark.parametrize("item", ["i{}", "item_{}", "{}"])
def test_systems_as_rows_of_numbered_items_are_asked_about(tmp_path, label, item):
    (tmp_path / "t.csv").write_text(
        f"{label},{','.join(item.format(k) for k in range(1, 13))}\n"
        f"base,{','.join(str(k % 2) for k in range(12))}\ntuned,{','.join(str(k % 3) for k in range(12))}\n"
    )
    with pytest.raises(InputError, match=r"2 rows, and 12 columns.*transpose"):
        read(tmp_path / "t.csv")
    if label != "name":
        assert read(tmp_path / "t.csv", format="wide").n_items == 2


@pytest.mark.parametrize("name", ["run{}", "seed{}", "ckpt-{}", "m{}", "rater {}"])
def test_numbered_runs_on_a_few_named_items_are_systems(tmp_path, name):
    header = ",".join(name.format(k) for k in range(1, 13))
    (tmp_path / "t.csv").write_text(f"item,{header}\neasy,{'1,0,' * 5}1,1\nhard,{'0,0,' * 5}1,0\n")
    assert len(read(tmp_path / "t.csv").systems) == 12


@pytest.mark.parametrize(("first", "last", "place"), [("Promedio", "", "first"), ("", "Mittelwert", "last")])
def test_a_row_of_means_is_named_in_any_language(tmp_path, first, last, place):
    rows = [(f"q{k}", k / 8, (k * k % 11) / 8) for k in range(16)]
    means = ["", *(f"{sum(column) / 16:.6f}" for column in list(zip(*rows, strict=True))[1:])]
    rows = [[first, *means[1:]]] * bool(first) + rows + [[last, *means[1:]]] * bool(last)
    (tmp_path / "t.csv").write_text("item,a,b\n" + "".join(f"{','.join(map(str, row))}\n" for row in rows))
    assert f"the {place} row holds the means" in "\n".join(read(tmp_path / "t.csv").notices)


def test_a_summary_is_left_out_of_groups_too(tmp_path):
    rows = [{"id": f"t{k}", "task": "ab"[k % 2], "x": k, "y": 2 * k} for k in range(6)]
    rows.append({"id": "mean", "task": "", "x": 2.5, "y": 5})
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts = read(tmp_path / "t.jsonl", options=Options(groups=("task",)))
    assert counts.groups["task"] == ("a", "b") * 3


def test_cells_of_a_summary_may_be_printed_each_in_its_own_way(tmp_path):
    (tmp_path / "t.csv").write_text("item,x,y\na,0.123,0.456\nb,0.223,0.356\nc,0.323,0.756\nmean,0.22,0.5227\n")
    assert read(tmp_path / "t.csv").n_items == 3


def test_summaries_of_parts_are_noted_where_one_sums_up_all(tmp_path):
    (tmp_path / "t.csv").write_text("item,x,y\na,1,2\nmean 1,1,2\nb,5,6\nc,6,4\nmean 2,5.5,5\nmean,4,4\n")
    counts = read(tmp_path / "t.csv")
    assert counts.n_items == 5
    assert [name in "".join(counts.notices) for name in ("'mean 1'", "'mean 2'", "'mean'")] == [True] * 3


def test_samples_and_ratings_have_no_summary_among_their_items(tmp_path):
    items = [*"abcd", "mean"]
    for name, values in (("x", [0, 1, 0, 1, 0.5]), ("y", [1, 1, 1, 0, 0.75])):
        rows = [{"__index_level_0__": k, "id": i, "acc": v} for k, (i, v) in enumerate(zip(items, values, strict=True))]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts = read(tmp_path / "x.jsonl", tmp_path / "y.jsonl", format="samples")
    assert (counts.n_items, counts.suggested) == (4, ("acc",))
    assert any("'mean' sums up the other rows" in warning for warning in counts.notices)
    rows = [(s, i, v) for s in "ab" for i, v in (("1", 2.5), ("2", 4), ("all", 3.25))]
    text = "".join(f"{s}\t{i}\tr\t{v}\n" for s, i, v in rows)
    (tmp_path / "t.tsv").write_text("system\tseg_id\trater\tscore\n" + text)
    assert read(tmp_path / "t.tsv", format="ratings").ids == ("1", "2")


def test_columns_of_errors_beside_scores_are_no_systems(tmp_path):
    (tmp_path / "t.csv").write_text("item,x,x_std,y\na,1,0.1,2\nb,2,0.2,1\nc,0,0.1,1\nd,1,0.3,1\n")
    counts = read(tmp_path / "t.csv")
    assert counts.systems == ("x", "y")
    assert any("left out as no scores of systems: 1 column ('x_std')" in warning for warning in counts.notices)
