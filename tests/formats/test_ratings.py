"""Ratings by people: official MQM means, several raters, MQM errors, gaps."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_source, read


def compute_scores(counts, metric=None, **options):
    results = compare_all(
        counts, metrics=[metric or counts.suggested[0]], trials=256, second_run=False, interval="none", **options
    )
    return {name: score for r in results for name, score in ((r.a, r.score_a), (r.b, r.score_b))}


def write_text(path, text):
    path.write_text(text)
    return path


MIXED = "system mqm_avg_score seg_id\nx\t-1.5 1\ny\t-0.000000 1\nx\tNone 2\ny\tNone 2\nx 2 3\ny 2.0 3\n"
ERRORS = (
    "system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity\t# made by hand\n"
    'x\td1\t1\t1\tr1\ts\t"t\tAccuracy/Omission\tMajor\n'  # a quote is text
    "x\td1\t1\t1\tr1\ts\tt\tFluency/Punctuation\tMinor\n"
    "x\td1\t1\t1\tr2\ts\tt\tNo-error\tno-error\n"
    "y\td1\t1\t1\tr3\ts\tt\tNon-translation!\tMajor\n"
    "x\td1\t2\t2\tr1\ts\tt\tStyle/Awkward\tMinor\n"
    "y\td1\t2\t2\tr1\ts\tt\tStyle/Awkward\tNeutral\n"
)


@pytest.mark.parametrize("name", ["mqm_newstest2020_ende", "mqm_newstest2021_zhen"])
@pytest.mark.slow
def test_wmt_mqm_has_the_official_means_of_all_systems(shared_data, name):
    folder = shared_data / "matrix_mqm"
    official = json.loads((folder / "reference_scores.json").read_text())["sets"][name]
    path = folder / f"{name}.avg_seg_scores.tsv"
    assert detect([parse_source(str(path))]) == "ratings"
    counts = read(path)
    scores = compute_scores(counts)
    assert {system: round(score, 6) for system, score in scores.items()} == {
        system: own["mean"] for system, own in official["systems"].items()
    }
    zeros = counts.field("score") == 0
    assert zeros.sum(0).tolist() == [official["systems"][system]["n_zero"] for system in counts.systems]
    assert not np.signbit(counts.field("score")[zeros]).any()
    assert counts.n_items == official["n_segments_rated_in_all_systems"]
    unrated = official["n_segments"] - counts.n_items
    assert bool(counts.notices) == bool(unrated)
    for system, mean in official["published_readme"].items():
        [score] = [s for own, s in scores.items() if own.split(".")[0] == system]
        assert -score == pytest.approx(mean, abs=0.0055)  # printed after rounding twice


def test_a_segment_one_system_lacks_is_what_missing_says(tmp_path):
    path = write_text(tmp_path / "m.tsv", MIXED.replace("y\tNone 2", "y\t-1 2") + "z 1 1\nz 1 2\nz 1 3\n")
    with pytest.raises(InputError, match=r"system 'x' has no score for item '2' \(1 missing in total\)"):
        read(path)
    results = {
        (r.a, r.b): r
        for r in compare_all(
            read(path, options=Options(missing="pairwise")), metrics=["mean"], trials=256, interval="none"
        )
    }
    assert {pair: r.n_items for pair, r in results.items()} == {("x", "y"): 2, ("x", "z"): 2, ("y", "z"): 3}
    assert compute_scores(read(path, options=Options(missing="zero")))["x"] == pytest.approx(0.5 / 3)
    for name, score in {"score": "-1", "ter": "1"}.items():  # 0 would be the best
        table = write_text(tmp_path / "t.csv", f"system,item,{name}\na,1,{score}\na,2,{score}\nb,1,{score}\n")
        with pytest.raises(InputError, match="system 'b' has no score.* for item '2'.*missing='pairwise'"):
            read(table, options=Options(missing="zero"))


def test_raters_are_averaged_exactly(tmp_path):
    rows = ["x,1,a,0.1", "x,1,b,0.2", "x,1,c,0.2", "y,1,a,0.1", "y,1,b,0.3", "x,2,a,1", "y,2,b,0"]
    path = write_text(tmp_path / "r.csv", "system,segment,rater,score\n" + "\n".join(rows) + "\n")
    assert detect([parse_source(str(path))]) == "ratings"
    counts = read(path)
    assert counts.field("items").tolist() == [[6], [6]]
    assert counts.field("score").tolist() == [[1.0, 1.2], [6, 0]]
    assert compute_scores(counts) == {"x": pytest.approx((0.5 / 3 + 1) / 2), "y": pytest.approx(0.1)}
    assert counts.notices == ("5 ratings of 2 outputs rated more than once are averaged",)


def test_errors_of_mqm_weigh_what_they_should(tmp_path):
    counts = read(write_text(tmp_path / "e.tsv", ERRORS))
    means = counts.field("score") / counts.field("items")
    assert means.tolist() == [[-2.55, -25], [-1, 0]]
    assert counts.groups["doc"] == ("d1", "d1")
    path = write_text(tmp_path / "c.tsv", ERRORS.replace("Neutral", "Critical"))
    counts = read(path, format="ratings:critical=10")
    assert (counts.field("score") / counts.field("items")).tolist() == [[-2.55, -25], [-1, -10]]


def test_two_ratings_of_an_output_by_one_rater_are_refused(tmp_path):
    rows = ["x,1,a,1", "x,1,a,0", "x,1,b,1", "y,1,a,0", "y,1,b,0"]
    path = write_text(tmp_path / "r.csv", "system,segment,rater,score\n" + "\n".join(rows) + "\n")
    with pytest.raises(InputError, match=r"line 3: system 'x', item '1' has a rating by 'a' already"):
        read(path)
    assert compute_scores(read(path, format="ratings:raters=mean")) == {"x": pytest.approx(2 / 3), "y": 0}


def test_the_score_is_chosen_among_several_by_name(tmp_path):
    rows = [f"{system}\t{k}\t{k}\t{2 * k}\n" for system in "xy" for k in (1, 2)]
    path = write_text(tmp_path / "r.tsv", "system\tseg_id\tmqm_score\tda_score\n" + "".join(rows))
    with pytest.raises(InputError, match=r"mqm_score or da_score(.|\n)*mqm_score.*da_score"):
        read(path)
    assert compute_scores(read(path, options=Options(columns={"score": "da_score"}))) == {"x": 3, "y": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ERRORS.replace("Neutral", "Grave"), "line 7: severity 'Grave' has no weight, expected one of major"),
        (ERRORS.replace("Neutral", "Critical"), "line 7: severity 'Critical' has no weight.*ratings:critical=10"),
        (MIXED.replace("-1.5", "good"), "line 2, column 'mqm_avg_score': found 'good'"),
        (MIXED.replace("x\tNone 2", "x\tNone"), "line 4: found 2 fields, expected 3"),
        (MIXED.replace("x\tNone 2", ""), "line 4: found 0 fields, expected 3"),
        ("system seg_id mqm_score\nx 1 None\ny 1 None\n", "none of 1 item has a rating"),
        ("system seg_id mqm_score da_score\nx 1 1 1\n", "which column is the score, mqm_score or da_score"),
    ],
)
def test_bad_ratings_are_errors_that_name_the_place(tmp_path, text, message):
    path = write_text(tmp_path / "bad.tsv", text)
    with pytest.raises(InputError, match=message):
        read(path, format="ratings")


def test_segments_numbered_within_documents_are_told_apart(tmp_path):
    rows = [f"{s}\t{d}\t{k}\t{v}" for s, v in (("x", 1), ("y", 2)) for d in ("d1", "d2") for k in (1, 2)]
    path = write_text(tmp_path / "d.tsv", "system\tdoc\tseg\tesa_score\n" + "\n".join(rows) + "\n")
    with pytest.raises(InputError, match=r"line 4: item '1' has 'd2' in column 'doc'.*columns=\{'item': 'doc\+seg'\}"):
        read(path)
    counts = read(path, options=Options(columns={"item": "doc+seg"}))
    assert counts.ids == ("d1/1", "d1/2", "d2/1", "d2/2")
    [r] = compare_all(counts, metrics=["mean"], unit="doc", trials=256, interval="none")
    assert r.n_units == 2


def test_grades_of_mt_bench_have_turns_and_minus_one_is_none(tmp_path):
    rows = [
        {"question_id": q, "model": m, "judge": ["gpt-4", "single-v1"], "turn": t, "score": -1 if q == 83 else s}
        for q in (81, 82, 83) for m, s in (("x", 9), ("y", 7)) for t in (1, 2)
    ]  # fmt: skip
    path = write_text(tmp_path / "gpt-4_single.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"item '81' has '2' in column 'turn'.*'item': 'turn\+question_id'"):
        read(path)
    counts = read(path, options=Options(columns={"item": "turn+question_id"}))
    assert (counts.format, counts.n_items, compute_scores(counts)) == ("ratings", 4, {"x": 9, "y": 7})
    assert counts.notices[0].endswith("4 rows left out (score is -1 or -1.0)")
    mqm = write_text(tmp_path / "mqm.tsv", "system\tseg_id\tturn\tscore\nx\t1\t1\t-1\ny\t1\t1\t0\n")
    assert compute_scores(read(mqm, format="ratings")) == {"x": -1, "y": 0}


@pytest.mark.slow
def test_pairs_with_gaps_do_not_depend_on_other_systems(shared_data):
    path = shared_data / "matrix_alpacaeval2" / "preferences.csv"
    official = json.loads((path.parent / "reference_scores.json").read_text())["systems"]
    options = Options(groups=("dataset",), missing="pairwise")
    counts = read(path, options=options)
    gappy = [name for name in counts.systems if official[name]["n_missing"]]
    pair = next(name for name in counts.systems if name not in gappy), gappy[0]
    alone = read(path, options=replace(options, ignore=tuple(gappy[1:])))
    [one], [other] = (
        compare_all(c, metrics=["mean"], pairs=[pair], trials=256, interval="none") for c in (counts, alone)
    )
    assert one.n_items == 805 - official[gappy[0]]["n_missing"]
    assert 100 * (one.score_b - 1) == pytest.approx(official[gappy[0]]["win_rate_from_file"], abs=1e-6)
    assert (one.n_extreme, one.p_value) == (other.n_extreme, other.p_value)


APPRAISE = (
    "u1,x,1,TGT,eng,deu,80,d1,False,,10.5,12.5\nu1,y,1,TGT,eng,deu,60,d1,False,,10.5,12.5\n"
    "u1,x,1,BAD,eng,deu,5,d1,False,,10.5,12.5\nu2,x,1,TGT,eng,ces,20,d1,False,,10.5,12.5\n"
    'u2,y,1,TGT,eng,ces,40,d1,False,"[{""a"": 1}, 2]",10.5,12.5\nu1,x,1,TGT,eng,deu,0,d1,True,,10.5,12.5\n'
)
HEADER = "user,system,item,type,src,tgt,score,doc,isdoc,spans,start,end\n"


def test_appraise_is_read_by_language_without_its_controls(tmp_path):
    path = write_text(tmp_path / "campaign.csv", HEADER + APPRAISE)
    assert detect([parse_source(str(path))]) == "ratings"
    with pytest.raises(InputError, match=r"item '1' has 'ces' in column 'tgt'.*'item': 'tgt\+item'"):
        read(path)
    counts = read(path, options=Options(groups=("tgt",), columns={"item": "tgt+item"}))
    assert counts.ids == ("deu/1", "ces/1")
    assert counts.groups["tgt"] == ("deu", "ces")
    assert counts.field("score").tolist() == [[80, 60], [20, 40]]
    assert [note.split(": ", 1)[1] for note in counts.notices] == [
        "1 row left out (type is BAD)",
        "1 row left out (isdoc is True)",
    ]


def test_texts_called_src_and_tgt_are_no_languages(tmp_path):
    rows = ["x\t1\tYes\tJa doch\t1", "y\t1\tYes\tJa\t0", "x\t2\tNo way\tNein\t1", "y\t2\tNo way\tNie\t1"]
    path = write_text(tmp_path / "t.tsv", "system\tseg_id\tsrc\ttgt\tda_score\n" + "\n".join(rows) + "\n")
    assert read(path, format="ratings").ids == ("1", "2")


DIRECT_SEGMENTS = """SYS SID RAW.SCR Z.SCR N 
alpha.0 7 80 0.5 2 
alpha.0 8 60 -0.25 3 
beta.1 8 50 -0.75 1 
beta.1 9 90 1.25 1 
alpha.0 9 70 0.25 1 
"""  # noqa: W291  # as R writes them
DIRECT_RATINGS = "HITId WorkerId Input.src Input.trg hit sys_id rid type sid score time\n" + "".join(
    f"h\t{worker}\txx\ten\t1\t{system}\t1\t{kind}\t{segment}\t{score}\t9.0\n"
    for worker, system, kind, segment, score in (
        ("w1", "alpha.0", "SYSTEM", 7, 0.25),
        ("w1", "alpha.0", "REPEAT", 7, 0.75),
        ("w2", "alpha.0", "BAD_REF", 7, -9),
        ("w2", "alpha.0", "SYSTEM", 8, -0.25),
        ("w2", "beta.1", "SYSTEM", 8, -0.75),
        ("w2", "beta.1", "REF", 8, 9),
        ("w1", "beta.1", "SYSTEM", 9, 1.25),
        ("w1", "alpha.0", "SYSTEM", 9, 0.25),
    )
)


@pytest.mark.parametrize("text", [DIRECT_SEGMENTS, DIRECT_RATINGS])
def test_direct_assessment_of_wmt_is_read_at_first_try(tmp_path, text):
    path = write_text(tmp_path / "da.csv", text)
    assert detect([parse_source(str(path))]) == "ratings"
    counts = read(path)
    assert counts.ids == ("7", "8", "9")
    assert (counts.field("score") / counts.field("items"))[:, 0].tolist() == [0.5, -0.25, 0.25]
    assert any("alpha.0 0.1667" in note and "beta.1 0.2500" in note for note in counts.warnings)
    (result,) = compare_all(counts, trials=100)
    assert (result.score_a, result.score_b) == (0, 0.25)  # of segments 8 and 9, which both have


def test_direct_assessment_of_wmt22_has_its_reference_scores(shared_data):
    folder = shared_data / "ratings_wmt22_da"
    systems = json.loads((folder / "reference_scores.json").read_text())["systems"]
    for name, columns, key in (
        ("ad-lven-good-stnd-redup.csv", {}, "official_z_mean"),
        ("ad-seg-scores-lv-en.csv", {}, "official_z_mean"),
        ("ad-seg-scores-lv-en.csv", {"score": "RAW.SCR"}, "official_raw_mean"),
    ):
        counts = read(folder / name, options=Options(columns=columns))
        means = counts.field("score") / counts.field("items")
        for k, system in enumerate(counts.systems):
            rated = means[counts.present[:, k], k]
            assert len(rated) == systems[system]["n_segments"]
            assert rated.mean() == pytest.approx(systems[system][key], abs=1e-9)
