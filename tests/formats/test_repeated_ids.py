"""Rows of the same id are samples of one item: their mean is compared as one unit."""

from fractions import Fraction
from itertools import product

import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, read
from sigdask.interface import spell


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


@pytest.mark.parametrize("ids", [[*"abcdefg"], [*"3456789"]])
def test_repeated_problems_are_replicates(tmp_path, ids):
    rows = [
        f"{item},{x},{y}\n"
        for item, *samples in zip(ids, PASSED["x"], PASSED["y"], strict=True)
        for x, y in zip(*samples, strict=True)
    ]
    (tmp_path / "t.csv").write_text("problem_id,x,y\n" + "".join(rows))
    counts = read(tmp_path / "t.csv")
    assert (counts.systems, counts.of_one.n_items) == (("x", "y"), 7)
    assert "4 replicates of each of 7 items" in counts.scope[0]
    assert compare_exactly(counts, "mean").p_value == pytest.approx(
        float(compute_exact_p(compute_differences())), rel=1e-12
    )
    (tmp_path / "t.csv").write_text("problem_id,x,y\n" + "".join(rows[:-1]))
    with pytest.raises(InputError, match="not all ids are repeated equally often"):
        read(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("text", "message", "ways"),
    [
        ("id,x,y\na,1,2\na,2,3\nb,3,1\n", r"t.csv, line 3: id 'a' is repeated", ["position"]),
        ("task,id,x,y\nt,0,1,2\nt,1,2,3\nu,0,3,1\nu,1,4,4\n", r"differ in 'task'", ["task+id", "id"]),
        (
            "id,text,system,score\na,p,x,1\na,q,x,2\na,p,y,3\na,q,y,1\nb,p,x,1\nb,p,x,2\nb,p,y,3\nb,p,y,1\n",
            r"differ in 'text'",
            ["id", "position"],
        ),
        (
            "id,doc,system,score\na,p,x,2\na,q,x,3\na,p,y,3\na,q,y,1\nb,p,x,2\nb,q,x,3\nb,p,y,3\nb,q,y,1\n",
            r"differ in 'doc'",
            ["doc+id", "id", "position"],
        ),
        ("id,gold,x,y\na,P,P,Q\na,Q,P,Q\nb,P,P,P\nb,P,P,P\n", r"differ in 'gold'", ["position"]),
    ],
)
def test_rows_of_an_id_that_are_no_samples_are_an_error_with_its_remedies(tmp_path, text, message, ways):
    (tmp_path / "t.csv").write_text(text)
    settings = {"position": ("align", "position")}
    with pytest.raises(InputError, match=message) as error:
        read(tmp_path / "t.csv")
    for way in ways:
        option, value = settings.get(way, ("columns", f"item={way}"))
        assert spell(option, value) in str(error.value)
        given = {"align": value, "columns": {"item": way}}[option]
        assert read(tmp_path / "t.csv", options=Options(**{option: given})).n_systems == 2


def test_an_uneven_number_of_samples_is_averaged_as_the_error_says(tmp_path):
    (tmp_path / "t.csv").write_text("qid,model,em\na,x,1\na,x,2\nb,x,3\na,y,2\na,y,3\nb,y,1\n")
    columns, format_ = {"item": "qid", "system": "model", "score": "em"}, "ratings:raters=mean"
    with pytest.raises(InputError, match="not all ids are repeated equally often") as error:
        read(tmp_path / "t.csv")
    assert f"columns={columns}" in str(error.value)
    assert spell("format", format_) in str(error.value)
    result = compare_exactly(read(tmp_path / "t.csv", format=format_, options=Options(columns=columns)), "mean")
    assert (result.score_a, result.score_b) == (2.25, 1.75)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"q": "a", "r": "b", "q": "c"}', ""),
        ('{"q": {"p": 1}, "q": {"p": 2}}', ""),
        ('{"id": 1, "q": "a"}\n{"id": 2, "q" : "x \\":", "q": ":"}\n', ", line 2"),
    ],
)
def test_a_key_that_stands_twice_in_one_object_is_seen(tmp_path, text, place):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=rf"x.json{place}: key 'q' occurs twice in one JSON object; remove one"):
        read(tmp_path / "x.json", gold=tmp_path / "x.json", format="labels")


def test_objects_that_are_nested_too_deeply_are_refused(tmp_path):
    (path := tmp_path / "x.jsonl").write_text(('{"id": 1, "a": ' + "[" * 980 + "]" * 980 + "}\n") * 2)
    with pytest.raises(InputError, match="nested too deeply"):
        read(path)


def test_whole_numbers_of_many_digits_are_ids_as_written(tmp_path):
    ids = ["123456789012345678901", "123456789012345678902"]
    (path := tmp_path / "x.jsonl").write_text("".join(f'{{"id": {item}, "a": 1, "b": 0}}\n' for item in ids))
    assert read(path).ids == tuple(ids)


def test_files_with_unequal_numbers_of_samples_are_refused(tmp_path):
    (tmp_path / "x.csv").write_text("id,score\na,1\na,0\nb,1\nb,1\n")
    (tmp_path / "y.csv").write_text("id,score\na,1\nb,1\n")
    with pytest.raises(InputError, match=r"y.csv: has 1 row of each item, but .*x.csv has 2; .*raters=mean"):
        read(tmp_path / "x.csv", tmp_path / "y.csv")


def test_very_unequal_numbers_of_samples_are_noted(tmp_path):
    rows = [f"{item},x,{k % 2}\n" for item in "abc" for k in range(20)] + [f"{item},y,1\n" for item in "abc"]
    (tmp_path / "t.csv").write_text("id,system,score\n" + "".join(rows))
    counts = read(tmp_path / "t.csv", format="ratings:raters=mean")
    assert "x has 20 samples per item and y 1: p can be too small" in " ".join(counts.scope)
