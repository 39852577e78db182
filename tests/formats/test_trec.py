"""Runs, judgements and printed scores are read as trec_eval reads them; errors name the place."""

import json
from decimal import Decimal

import numpy as np
import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_source, read

RUN_X = "1 Q0 a 1 3 x\n1 Q0 b 2 2 x\n1 Q0 c 3 1 x\n2 Q0 a 1 2 x\n2 Q0 d 2 1 x\n3 Q0 e 1 1 x\n"
RUN_Y = "1 Q0 c 1 3 y\n1 Q0 a 2 2 y\n2 Q0 d 1 2 y\n2 Q0 a 2 1 y\n3 Q0 f 1 1 y\n"
QRELS = "1 0 a 1\n1 0 b 0\n1 0 c 2\n2 0 d 1\n2 0 a 0\n3 0 e 1\n"
PRINTED = "map                   \t1\t0.5000\nP_10                  \t1\t0.1000\nmap                   \t2\t0.2500\nP_10                  \t2\t0.3000\n"
ALL = "runid                 \tall\tx\nnum_q                 \tall\t2\nmap                   \tall\t0.3750\nP_10                  \tall\t0.2000\n"
TAR = "T1\ttopic_id\tT1\nT1\tap\t0.5\nT1\tlast_rel\t10\nSkipping topic: T9\nT2\ttopic_id\tT2\nT2\tap\t0.25\nT2\tlast_rel\t20\nALL\ttopic_id\tALL\nALL\tap\t0.375\nALL\tlast_rel\t15.0\n"


def write_files(folder, **files):
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return [folder / name for name in files]


def compute_scores(paths, metric="AP", gold=None, **options):
    results = compare_all(read(*paths, gold=gold, **options), metrics=[metric], trials=256, interval="none")
    return {name: score for r in results for name, score in ((r.a, r.score_a), (r.b, r.score_b))}


def score_runs(folder, x=RUN_X, y=RUN_Y, qrels=QRELS, metric="AP", **options):
    write_files(folder, x=x, y=y, qrels=qrels)
    return compute_scores([folder / "x", folder / "y"], metric, folder / "qrels", format="trec", **options)


# -- the real sets ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def robust(shared_data):
    folder = shared_data / "ir_trec_robust03"
    runs = sorted((folder / "runs").glob("*.gz"))
    gold = folder / "robust03_qrels.txt"
    assert detect([parse_source(str(runs[0]))], gold) == "trec"
    return read(*runs, gold=gold), json.loads((folder / "reference_scores.json").read_text())


def compute_item_scores(counts, metric):
    from sigdask.metrics import find_metric

    bound = find_metric(metric, counts).bind(counts)
    return bound.get_field(bound.fields[0], counts)


@pytest.mark.slow
def test_every_official_score_of_the_robust_runs_holds(robust):
    counts, reference = robust
    assert set(counts.systems) == set(reference["runs"])  # names are those of the runs
    assert not counts.warnings
    measures = [m for m in reference["runs"]["MU03rob01"]["scores"] if not m.endswith("__complete")]
    results = compare_all(counts, metrics=measures, baseline="MU03rob01", trials=256, interval="none")
    assert len(results) == 8 * len(measures)
    for r in results:
        for name, score in ((r.a, r.score_a), (r.b, r.score_b)):
            official = reference["runs"][name]["scores"]
            assert round(score, 6) == official[r.metric] == official.get(f"{r.metric}__complete", official[r.metric])


@pytest.mark.slow
def test_trec_evals_own_runs_have_its_scores_with_and_without_the_missing_topic(shared_data):
    folder = shared_data / "ir_trec_eval_tests"
    reference = json.loads((folder / "reference_scores.json").read_text())["runs"]
    measures = [m for m in reference["results.test"]["scores"] if not m.endswith("__complete")]
    files = [f"{name}={folder / name}" for name in reference]
    for qrels in ("qrels.test", "qrels.test.with-comments"):
        zero = read(*files, gold=folder / qrels)
        assert "results.trunc lacks 1 of 3 items: scored 0 (the format's convention" in zero.scope[0]
        common_counts = read(*files, gold=folder / qrels, options=Options(missing="pairwise"))
        common_results = compare_all(common_counts, metrics=measures, trials=256)
        for r, common_result in zip(compare_all(zero, metrics=measures, trials=256), common_results, strict=True):
            official = reference["results.trunc"]["scores"]
            if r.metric != "num_rel":  # trec_eval -c counts the relevant documents of all topics
                assert round(r.score_b, 6) == official.get(f"{r.metric}__complete", official[r.metric])
            assert round(r.score_a, 6) == reference["results.test"]["scores"][r.metric]
            assert (round(common_result.score_b, 6), common_result.n_items) == (official[r.metric], 2)


@pytest.mark.parametrize(
    ("name", "topics"),
    [("out.test.aq", 3), ("out.test.aqc", 3), ("out.test.aqcM", 3), ("out.test.aql", 3), ("out.test.aqZ", 3),
     ("out.test.meas_params", 3)],
)  # fmt: skip
def test_printed_scores_of_trec_eval_are_its_decimals_and_its_means(shared_data, name, topics):
    path = shared_data / "ir_trec_eval_tests" / name
    assert detect([parse_source(str(path))]) == "trec"
    counts = read(f"a={path}", f"b={path}")
    assert counts.n_items == topics
    assert not counts.warnings
    rows = [[cell.strip() for cell in line.split("\t")] for line in path.read_text().splitlines()]
    for measure, topic, value in rows:
        if topic != "all" and not measure.startswith(("relstring", "Zrelstring")):
            assert counts.field(f"score[{measure}]")[counts.ids.index(topic), 0] == float(value)
    for measure, topic, value in rows:
        column = f"score[{measure}]"
        if topic == "all" and column in counts.fields and not measure.startswith(("num_", "Znum_")):
            assert counts.field(column)[:, 0].mean() == pytest.approx(float(value), abs=1.01e-4)


def test_printed_and_computed_scores_agree(shared_data):
    folder = shared_data / "ir_trec_eval_tests"
    printed = read(f"a={folder / 'out.test.aq'}", f"b={folder / 'out.test.aq'}")
    run = read(f"a={folder / 'results.test'}", f"b={folder / 'results.test'}", gold=folder / "qrels.test")
    for measure in ("map", "Rprec", "bpref", "recip_rank", "P_10", "recall_100", "ndcg_cut_20", "set_P", "set_recall",
                    "set_F", "success_1", "map_cut_100", "num_rel_ret"):  # fmt: skip
        assert compute_item_scores(run, measure)[:, 0] == pytest.approx(
            printed.field(f"score[{measure}]")[:, 0], abs=5.1e-5
        )


@pytest.mark.slow
def test_tar_scores_are_the_official_ones_of_all_52_runs(shared_data):
    folder = shared_data / "ir_cleftar2017_topic_scores"
    reference = json.loads((folder / "reference_scores.json").read_text())["systems"]
    files = sorted(folder.glob("*.results"))
    assert {detect([parse_source(str(f))]) for f in files} == {"trec"}
    with pytest.raises(
        InputError, match="'iiit.run1' has no score 'num_docs' for item 'CD009135' .12 missing.*missing="
    ):
        read(*files)
    counts = read(*files, options=Options(missing="pairwise"))
    assert set(counts.systems) == set(reference)
    assert counts.suggested == ("ap",)
    results = compare_all(
        counts, metrics=["ap", "wss_95"], baseline="waterloo.A-rank-normal", trials=256, interval="none"
    )
    for r in results:
        official = reference[r.a]
        assert r.n_items == official["n_topics"]
        if r.metric == "ap":
            assert round(r.score_a, 6) == official["mean_ap"]
            assert r.score_a == pytest.approx(official["ALL_ap"], abs=1.01e-3)  # of topics before rounding
        else:
            assert r.score_a == pytest.approx(float(official["ALL_wss_95"]), abs=1.01e-3)
    [left_out] = counts.warnings
    assert str(sum(official["non_data_lines"] for official in reference.values())) in left_out


# -- what a run may look like -------------------------------------------------------------------------


def test_topics_without_judgements_are_noted(tmp_path):
    (tmp_path / "x.run").write_text("1 Q0 d1 1 2.5 x\n2 Q0 d1 1 2.5 x\n3 Q0 d1 1 2.5 x\n")
    (tmp_path / "y.run").write_text("1 Q0 d2 1 2.5 y\n")
    (tmp_path / "q.rel").write_text("1 0 d1 1\n1 0 d2 0\n")
    counts = read(tmp_path / "x.run", tmp_path / "y.run", gold=tmp_path / "q.rel")
    assert counts.n_items == 1
    expected = "topics without judgements in q.rel are left out, as in trec_eval: up to 2 of a run"
    assert counts.warnings == (expected,)


def test_a_judged_topic_without_relevant_documents_counts_0(tmp_path):
    before = score_runs(tmp_path)
    after = score_runs(tmp_path, qrels=QRELS + "4 0 a 0\n", x=RUN_X + "4 Q0 a 1 1 x\n", y=RUN_Y + "4 Q0 a 1 1 y\n")
    assert after == pytest.approx({name: 3 / 4 * score for name, score in before.items()})


def select_columns(text, columns):
    return "".join(" ".join(line.split()[k] for k in columns) + "\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "qrels",
    [
        "query-id\tcorpus-id\tscore\n" + select_columns(QRELS, (0, 2, 3)).replace(" ", "\t"),
        select_columns(QRELS, (0, 2, 3)),
        "query_id iteration doc_id relevance\n" + QRELS,
    ],
)
def test_judgements_of_beir_are_read(tmp_path, qrels):
    expected = score_runs(tmp_path)
    assert score_runs(tmp_path, qrels=qrels) == expected
    assert detect([parse_source(str(tmp_path / "x"))], tmp_path / "qrels") == "trec"


@pytest.mark.parametrize(("policy", "present"), [("zero", None), (None, None), ("pairwise", [[1, 1], [1, 1], [1, 0]])])
def test_a_topic_that_a_run_lacks_follows_the_policy(tmp_path, policy, present):
    write_files(tmp_path, x=RUN_X, y=RUN_Y.replace("3 Q0 f 1 1 y\n", ""), qrels=QRELS)
    counts = read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "qrels", options=Options(missing=policy))
    assert (counts.present is None) if present is None else (counts.present == np.array(present, bool)).all()
    assert "y lacks 1 of 3 items" in counts.scope[0]
    with pytest.raises(InputError, match="'y' has no scores for item '3'"):
        read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "qrels", options=Options(missing="error"))


COARSE = "".join(
    f"{t} Q0 d{k:02} {r} {float(r < 5)} x\n" for t in range(4) for r, k in enumerate((1, 7, 3, 9, 8, 2, 6, 4))
)
DISTANCES = "".join(f"{t} Q0 d{k:02} {r} {r / 7} x\n" for t in range(4) for r, k in enumerate((1, 7, 3, 9, 8, 2, 6, 4)))


@pytest.mark.parametrize("run", [COARSE, DISTANCES])
def test_ranks_that_contradict_scores_are_refused_with_both_orders(tmp_path, run):
    qrels = "".join(f"{t} 0 d01 1\n{t} 0 d09 0\n" for t in range(4))
    write_files(tmp_path, x=run, y=run, qrels=qrels)
    with pytest.raises(InputError, match="trec:order=score.*trec:order=rank"):
        read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "qrels")
    scores = [
        compute_scores([tmp_path / "x", tmp_path / "y"], gold=tmp_path / "qrels", format=f"trec:order={order}")["x"]
        for order in ("rank", "score")
    ]
    assert scores == [1, pytest.approx(1 / 5 if run == COARSE else 1 / 8)]


def test_a_few_ties_or_ranks_that_say_nothing_do_not_matter(tmp_path):
    expected = score_runs(tmp_path)
    assert score_runs(tmp_path, x=RUN_X.replace(" 2 2 x", " 1 2 x").replace("3 1 x", "1 1 x")) == expected


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("x", "\n\n# nothing\n", "x: is empty"),
        ("qrels", "", "qrels: is empty"),
        ("x", RUN_X + "1 Q0 b 9 0.5 x\n", "x, line 7: topic '1' has document 'b' already"),
        ("x", RUN_X.replace("1 Q0 b 2 2 x", "1 Q0 b 2 two x"), "x, line 2: found 'two', expected a number"),
        ("x", RUN_X.replace("1 Q0 b 2 2 x", "1 Q0 b 2 1_0 x"), "x, line 2: found '1_0', expected a number"),
        ("x", "# c\n\n" + RUN_X.replace("1 Q0 b 2 2 x", "1 Q0 b 2 NaN x"), "x, line 4: found 'NaN'"),
        ("x", RUN_X.replace("1 Q0 b 2 2 x", "1 Q0 b 2"), "x, line 2: found 4 columns, expected topic Q0"),
        ("x", QRELS, r"x, line 1: found 4 columns.*judgements with gold"),
        ("x", "7 Q0 a 1 1 x\n", r"x: no document of its 1 topics is judged in .*qrels \(topics 1, 2, 3"),
        ("x", RUN_X.replace(" Q0 ", " Q0 doc-"), "x: no document of its 3 topics is judged"),
        ("qrels", RUN_X, r"qrels, line 1: found 6 columns.*give runs as systems"),
        ("qrels", "1 0 a 0\n2 0 a 0\n3 0 a 0\n", "qrels: none of its 3 judgements"),
        ("qrels", QRELS + "1 0 a 1\n", "qrels, line 7: document 'a' of topic '1' is judged twice"),
        ("qrels", QRELS.replace("1 0 b 0", "1 0 b no"), "qrels, line 2: found relevance 'no', expected a whole number"),
        (
            "qrels",
            QRELS.replace("1 0 b 0", "1 0 b 0.5"),
            "qrels, line 2: found relevance '0.5', expected a whole number",
        ),
        ("qrels", QRELS.replace("1 0 b 0", "1 b 0"), "qrels, line 2: found 3 columns, expected topic iteration"),
    ],
)
def test_a_damaged_run_is_an_error_that_names_file_and_place(tmp_path, file, content, message):
    write_files(tmp_path, **{"x": RUN_X, "y": RUN_Y, "qrels": QRELS, file: content})
    with pytest.raises(InputError, match=message):
        read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "qrels", format="trec")


def test_relevance_below_0_and_as_a_decimal_is_read(tmp_path):
    assert score_runs(tmp_path, qrels=QRELS.replace("b 0", "b -2").replace("d 1", "d 1.0")) == score_runs(tmp_path)


# -- what is printed ----------------------------------------------------------------------------------


def test_messages_among_the_scores_are_told(tmp_path):
    counts = read(*write_files(tmp_path, a=TAR, b="T1 Duplicate 17\n" * 300 + TAR))
    assert counts.ids == ("T1", "T2")
    assert "left out: 302 (first" in counts.warnings[0]
    [r] = compare_all(counts, metrics=["last_rel"])
    assert not r.higher_is_better
    assert r.score_a == 15


def test_decimals_are_exact(tmp_path):
    values = ["0.1", "0.2", "0.3", "0.7"]
    text = "".join(f"map\t{k}\t{v}\n" for k, v in enumerate(values))
    counts = read(*write_files(tmp_path, a=text, b=text.replace("0.7", "0.6")), format="trec")
    [r] = compare_all(counts, metrics=["map"])
    assert r.score_a == float(sum(map(Decimal, values)) / 4)


def test_topics_of_printed_scores_are_chosen_if_both_columns_may_hold_them(tmp_path):
    lines = [f"{topic}\t{measure}\t0.{k}\n" for topic in ("T1", "T2") for k, measure in enumerate(("a1", "a2", "a3"))]
    paths = write_files(tmp_path, a="".join(lines), b="".join(lines))
    with pytest.raises(InputError, match="trec:topics=1.*trec:topics=2"):
        read(*paths, format="trec")
    assert read(*paths, format="trec:topics=1").ids == ("T1", "T2")
    assert read(*paths, format="trec:topics=2").ids == ("a1", "a2", "a3")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ALL, "b: has only averages, no scores of topics; print these with trec_eval -q"),
        (PRINTED + "map\t1\t0.5\n", "b, line 5: map of topic 1 is there already"),
        (PRINTED.replace("0.2500", "nan"), "b: map of topic 2 is 'nan', expected a number"),
        (PRINTED + "map\t3\n", "b, line 5: found 'map | 3', expected measure, topic and value"),
        (PRINTED.replace("P_10                  \t2\t0.3000\n", ""), "'b' has no score 'P_10' for item '2'"),
        ("P\t1\t0.5\nP\t2\t0.5\n", "no measure is in all files"),
    ],
)
def test_damaged_scores_are_an_error_that_names_file_and_place(tmp_path, content, message):
    paths = write_files(tmp_path, a=PRINTED + ALL, b=content)
    with pytest.raises(InputError, match=message.replace("|", r"\|")):
        read(*paths, format="trec")


def test_printed_scores_take_no_gold(tmp_path):
    a, b, qrels = write_files(tmp_path, a=PRINTED, b=PRINTED, qrels=QRELS)
    with pytest.raises(InputError, match="holds scores that a program computed"):
        read(a, b, gold=qrels, format="trec")


def test_the_order_by_rank_holds_if_it_is_chosen(tmp_path):
    write_files(tmp_path, x=RUN_X, y=RUN_Y.replace(" 1 3 y", " 3 3 y"), q=QRELS, z=RUN_X.replace(" 3 1 x", " 2 1 x"))
    counts = read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "q", format="trec:order=rank")
    assert counts.outputs.systems[1][0] == ("a", "c")
    with pytest.raises(InputError, match="ranks of a topic are equal"):
        read(tmp_path / "x", tmp_path / "z", gold=tmp_path / "q", format="trec:order=rank")
    for header in ("", "qid\tpid\trank\n"):
        write_files(tmp_path, x=header + "1\tb\t2\n1\ta\t1\n2\tb\t1\n")
        with pytest.raises(InputError, match="found 3 columns.*trec:order=rank"):
            read(tmp_path / "x", gold=tmp_path / "q")
        assert read(tmp_path / "x", gold=tmp_path / "q", format="trec:order=rank").outputs.systems[0][0] == ("a", "b")
