"""Scores of several metrics: tables of ids and metrics, JSON lists, BERTScore and COMET output."""

import json

import numpy as np
import pytest
from command import call_sigdask

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, Source, detect, read
from sigdask.metrics import is_lower_better

SCORES = {"a": {"bleu": [0.25, 0.5, 0.75], "f1": [1, 0.5, 0]}, "b": {"bleu": [0.5, 0.5, 0.125], "f1": [0, 0.5, 1]}}


def build_records(system):
    return [
        {
            "id": f"i{k}",
            "domain": "news",
            "hyp": f"{system} {k}",
            **{name: values[k] for name, values in SCORES[system].items()},
        }
        for k in range(3)
    ]


WRITERS = {
    "jsonl": lambda rows: "".join(json.dumps(row) + "\n" for row in rows),
    "json": lambda rows: json.dumps(rows, indent=1),
    "csv": lambda rows: "id,bleu,f1\n" + "".join(f"{row['id']},{row['bleu']},{row['f1']}\n" for row in rows),
    "lists.json": lambda rows: json.dumps({key: [row[key] for row in rows] for key in ("id", "bleu", "f1")}),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_files_with_columns_of_the_same_names_hold_metrics_of_a_system_each(tmp_path, kind):
    for system in SCORES:
        rows = build_records(system)
        (tmp_path / f"{system}.{kind}").write_text(WRITERS[kind](rows if system == "a" else rows[::-1]))
    counts = read(tmp_path / f"a.{kind}", tmp_path / f"b.{kind}")
    assert [name.split(".")[0] for name in counts.systems] == ["a", "b"]
    assert counts.suggested == ("bleu", "f1")
    for name in counts.suggested:
        assert counts.field(f"score[{name}]").T.tolist() == [SCORES["a"][name], SCORES["b"][name]]
    assert list(counts.ids) == ["i0", "i1", "i2"]
    (result,) = compare_all(counts, metrics=["f1"])
    assert (result.score_a, result.score_b) == (0.5, 0.5)


def test_truth_values_beside_real_scores_are_metrics_unless_all_systems_have_the_same(tmp_path):
    for name, correct in {"a": [True, False, True], "b": [False, False, True]}.items():
        rows = [
            {"id": k, "em": is_correct, "f1": 0.25 * k, "long": k == 1, "hops": k}
            for k, is_correct in enumerate(correct)
        ]
        (tmp_path / f"{name}.jsonl").write_text(WRITERS["jsonl"](rows))
    counts = read(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert counts.suggested == ("em", "f1")
    assert counts.field("score[em]").tolist() == [[1, 0], [0, 0], [1, 1]]
    (tmp_path / "b.jsonl").write_text('{"id": 0, "em": null}\n')
    (tmp_path / "a.jsonl").write_text('{"id": 0, "em": null}\n')
    with pytest.raises(InputError, match="a.jsonl: no scores in em"):
        read(tmp_path / "a.jsonl", tmp_path / "b.jsonl", format="metrics")


def test_names_that_are_given_name_the_systems_of_metrics(tmp_path):
    for system in SCORES:
        (tmp_path / system).write_text(WRITERS["jsonl"](build_records(system)))
    counts = read(f"old={tmp_path / 'a'}", f"new={tmp_path / 'b'}")
    assert counts.systems == ("old", "new")
    assert counts.suggested == ("bleu", "f1")


def test_columns_that_are_called_like_no_metrics_are_named_in_a_note(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("item,x,y\n1,0.5,1\n2,1,0\n")
    counts = read(tmp_path / "a.csv", tmp_path / "b.csv")
    assert "2 columns ('x', 'y') stand in every file: taken for metrics" in counts.warnings[0]
    assert read(f"p={tmp_path / 'a.csv'}", f"q={tmp_path / 'b.csv'}").systems == ("p:x", "p:y", "q:x", "q:y")


def test_a_metric_that_one_file_lacks_is_left_out_with_a_note_and_scores_may_be_missing(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"id": 1, "f1": 0.5, "em": 1, "ter": 0.1}\n{"id": 2, "f1": null, "em": 0, "ter": 1}\n'
    )
    (tmp_path / "b.jsonl").write_text('{"id": 1, "f1": 0.5, "em": 1}\n{"id": 2, "f1": 1, "em": 0}\n')
    paths = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    with pytest.raises(InputError, match="system 'a' has no score 'f1' for item '2' .1 missing in total."):
        read(*paths)
    counts = read(*paths, options=Options(missing="pairwise"))
    assert any("1 metric ('ter') not in every file: left out" in note for note in counts.warnings)
    f1, em = compare_all(counts, method="randomization", trials=100)
    assert (f1.n_items, em.n_items) == (1, 2)


def test_one_file_of_lists_holds_systems_unless_they_are_called_like_metrics(tmp_path):
    (tmp_path / "s.json").write_text(json.dumps({"bm25": [0.5, 1, 0], "dense": [1, 1, 1], "version": "2"}))
    counts = read(tmp_path / "s.json")
    assert counts.field("score").tolist() == [[0.5, 1], [1, 1], [0, 1]]
    (tmp_path / "m.json").write_text(json.dumps({"precision": [0.5, 1], "recall": [0, 1]}))
    assert "called like metrics" in read(tmp_path / "m.json").scope[0]


# evaluate's bertscore.py, _compute, and bert_score_cli/score.py, main: what they return and print
BERTSCORE_HASH = "roberta-large_L17_no-idf_version=0.3.12(hug_trans=4.30.2)"


def test_what_evaluate_returns_of_bertscore_and_comet_is_read_from_json(tmp_path):
    for name, (p, r, f) in {"x": ([0.9, 0.8], [0.7, 0.6], [0.79, 0.69]), "y": ([0.5, 1], [0.5, 1], [0.5, 1])}.items():
        (tmp_path / f"{name}.json").write_text(
            json.dumps({"precision": p, "recall": r, "f1": f, "hashcode": BERTSCORE_HASH})
        )
        (tmp_path / f"{name}.comet.json").write_text(json.dumps({"mean_score": 0.5, "scores": p}))
    counts = read(tmp_path / "x.json", tmp_path / "y.json")
    assert counts.suggested == ("precision", "recall", "f1")
    assert counts.field("score[f1]").tolist() == [[0.79, 0.5], [0.69, 1]]
    counts = read(tmp_path / "x.comet.json", tmp_path / "y.comet.json")
    assert counts.field("score").tolist() == [[0.9, 0.5], [0.8, 1]]


def test_a_metric_asked_for_one_item_at_a_time_returns_lists_of_one(tmp_path):
    for name, f in {"x": [0.79, 0.69], "y": [0.5, 1]}.items():
        rows = [{"precision": [value], "recall": [1.0], "f1": [value], "hashcode": BERTSCORE_HASH} for value in f]
        (tmp_path / f"{name}.jsonl").write_text(WRITERS["jsonl"](rows))
    counts = read(tmp_path / "x.jsonl", tmp_path / "y.jsonl")
    assert counts.field("score[f1]").tolist() == [[0.79, 0.5], [0.69, 1]]


def test_the_summary_that_evaluate_returns_of_bleu_is_refused_as_one(tmp_path):
    bleu = {"bleu": 0.3, "precisions": [0.6, 0.4, 0.3, 0.2], "brevity_penalty": 1.0, "length_ratio": 1.1}
    for name in "xy":
        (tmp_path / f"{name}.json").write_text(json.dumps(bleu))
    with pytest.raises(
        InputError, match=r"x.json: 1 list \('precisions'\) with scores of whole systems, but no score of each"
    ):
        read(tmp_path / "x.json", tmp_path / "y.json")


def test_lists_of_unlike_lengths_are_an_error_that_names_both(tmp_path):
    (tmp_path / "x.json").write_text('{"f1": [1, 0.5], "em": [1]}')
    with pytest.raises(InputError, match="x.json: 'em' has 1 values, but 'f1' has 2; expected one per item"):
        read(tmp_path / "x.json", tmp_path / "x.json")


def test_what_bert_score_prints_of_segments_is_read(tmp_path):
    for name, rows in {"x": [(0.9, 0.7, 0.79), (0.8, 0.6, 0.69)], "y": [(0.5, 0.5, 0.5), (1, 1, 1)]}.items():
        lines = ["{:.6f}\t{:.6f}\t{:.6f}".format(*row) for row in rows]
        (tmp_path / name).write_text("\n".join([f"{BERTSCORE_HASH} P: 0.850000 R: 0.650000 F1: 0.740000", *lines, ""]))
    assert detect([Source(tmp_path / "x")]) == "metrics"
    counts = read(tmp_path / "x", tmp_path / "y")
    assert counts.suggested == ("P", "R", "F1")
    assert counts.field("score[F1]").tolist() == [[0.79, 0.5], [0.69, 1]]
    (tmp_path / "y").write_text(f"{BERTSCORE_HASH} P: 0.85 R: 0.65 F1: 0.74\n0.5\t0.5\t0.5\nWarning\n")
    with pytest.raises(InputError, match="y, line 3: found 'Warning', expected P, R and F1 of a segment"):
        read(tmp_path / "x", tmp_path / "y")
    (tmp_path / "y").write_text(f"{BERTSCORE_HASH} P: 0.85 R: 0.65 F1: 0.74\n")
    with pytest.raises(InputError, match="y: bert-score printed only its means; run it with -s"):
        read(tmp_path / "x", tmp_path / "y")


# comet/cli/score.py, score_command: `data` as it is dumped with --to_json, and the lines that are printed
COMET = {"out/x.txt": [0.8123, 0.5], "out/y.txt": [0.25, 0.75]}


def build_comet_records(scores):
    return [{"src": f"s{k}", "mt": f"m{k}", "ref": f"r{k}", "COMET": score} for k, score in enumerate(scores)]


def test_comets_json_holds_a_system_a_file_of_translations(tmp_path):
    document = {file: build_comet_records(scores) for file, scores in COMET.items()}
    document["out/y.txt"][0]["errors"] = [{"text": "m", "severity": "major", "start": 0, "end": 1}]
    (tmp_path / "comet.json").write_text(json.dumps(document, indent=4))
    counts = read(tmp_path / "comet.json")
    assert (counts.systems, counts.suggested) == (("x", "y"), ("COMET",))
    np.testing.assert_array_equal(counts.field("score[COMET]").T, list(COMET.values()))
    for file, rows in document.items():
        (tmp_path / f"{file[4]}.json").write_text(json.dumps({"hyp.txt": rows}))
    without_names = read(tmp_path / "x.json", tmp_path / "y.json")
    assert without_names.systems == ("x", "y")
    np.testing.assert_array_equal(without_names.field("score[COMET]"), counts.field("score[COMET]"))
    document["out/y.txt"][1]["src"] = "another"
    (tmp_path / "bad.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="bad.json, 'out/y.txt', segment 2: another source than in 'out/x.txt'"):
        read(tmp_path / "bad.json")


def test_what_comet_prints_of_segments_is_read(tmp_path):
    lines = ["Seed set to 1"]
    lines += [f"{file}\tSegment {k}\tscore: {scores[k]:.4f}" for k in range(2) for file, scores in COMET.items()]
    lines += [f"{file}\tscore: {sum(scores) / 2:.4f}" for file, scores in COMET.items()]
    (tmp_path / "log").write_text("\n".join(lines))
    counts = read(tmp_path / "log")
    assert counts.systems == ("x", "y")
    np.testing.assert_array_equal(counts.field("score[COMET]").T, list(COMET.values()))


LOWER_IS_BETTER = ["latency", "latency_ms", "time", "runtime", "cost", "perplexity", "ppl", "nll", "loss", "error", "WER", "TER",
         "HTER", "MER", "mse", "rmse", "mae", "brier_score", "duration", "elapsed", "edit_distance"]  # fmt: skip
FURTHER = ["error", "bits_per_byte", "byte_perplexity", "cross_entropy", "logLoss", "totalCost", "wordErrorRate", "ece_10_bin",
           "max_toxicity", "hallucination_rate", "EER", "sMAPE", "failures", "accuracy_loss", "seconds", "acc (↓)",
           "wer_non_native", "WER (no LM)", "ter_no_punct", "no_of_errors", "wer_f", "top-1-error", "DER", "last_rel"]  # fmt: skip


@pytest.mark.parametrize("name", LOWER_IS_BETTER)
@pytest.mark.parametrize("beside", [True, False])
def test_less_is_better_where_the_name_of_a_column_says_so(tmp_path, name, beside):
    for system, factor in (("fast", 0.5), ("slow", 1.0)):
        rows = ({"id": k, name: factor * (k + 1), **({"acc": k % 2} if beside else {})} for k in range(12))
        (tmp_path / f"{system}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = call_sigdask("compare", "fast.jsonl", "slow.jsonl", "-m", name, cwd=tmp_path)
    assert f"fast is better than slow on {name} (lower is better)" in result.stdout
    if not beside:
        mean_result = call_sigdask("compare", "fast.jsonl", "slow.jsonl", "-m", "mean", cwd=tmp_path)
        assert f"name one of the columns of scores: {name}" in mean_result.stderr


@pytest.mark.parametrize("name", FURTHER)
def test_less_is_better_in_columns_of_errors_under_any_of_their_names(name):
    assert is_lower_better(name)


@pytest.mark.parametrize("name", ["timeliness", "tokens", "quality", "terminology", "error_detection_f1", "toxicity_auc", "1-WER",
                                  "neg_log_loss", "non_toxic", "tokens_per_seconds", "error_free", "FAIL_TO_PASS",
                                  "error rate reduction", "BLEU", "chrF", "loss (↑)", "ERR@20", "edit_similarity", "time_saved", "errors_fixed",
                                  "last_turn", "exact_match_last", "Anteil_der_Fehler", "hallucination_detection", "edit_success"])  # fmt: skip
def test_a_name_that_does_not_say_so_changes_nothing(name):
    assert not is_lower_better(name)


def test_columns_whose_names_speak_of_errors_are_metrics_also_if_higher_is_better(tmp_path):
    for name, further in (("a", ""), ("b", ",other")):
        rows = [f"q{k},{k % 5},{k % 7}{further and ',1'}\n" for k in range(12)]
        (tmp_path / f"{name}.csv").write_text(f"id,error_reduction,time_saved{further}\n{''.join(rows)}")
    counts = read(tmp_path / "a.csv", tmp_path / "b.csv")
    assert (counts.systems, counts.suggested) == (("a", "b"), ("error_reduction", "time_saved"))


def _write_losses(tmp_path, **columns):
    for name, header in columns.items():
        rows = [f"{k},{(k * k) % 7 + 1},{(k * k) % 7 + 1.5}\n" for k in range(12)]
        (tmp_path / f"{name}.csv").write_text(f"id,{header}\n{''.join(rows)}")


@pytest.mark.parametrize(
    ("header", "is_doubted"),
    [("new_loss,old_loss", True), ("new (WER),old (WER)", True), ("latency_ms_new,latency_ms_old", True)]
    + [(header, False) for header in ("new_loss,old", "lossless,old_lossless", "new_error_f1,old_error_f1")],
)
def test_systems_that_are_called_after_losses_are_doubted(tmp_path, header, is_doubted):
    _write_losses(tmp_path, t=header)
    arguments = ("compare", "t.csv", "--format", "wide")
    doubted = call_sigdask(*arguments, cwd=tmp_path).stdout
    answered = call_sigdask(*arguments, "-m", "mean:better=lower", cwd=tmp_path).stdout
    assert ["higher is taken as better" in text for text in (doubted, answered)] == [is_doubted, False]
    assert "(lower is better)" not in doubted


@pytest.mark.parametrize(("name", "is_doubted"), [("losses", True), ("scores", False)])
def test_a_file_that_is_called_after_losses_is_doubted(tmp_path, name, is_doubted):
    _write_losses(tmp_path, **{name: "new,old"})
    doubted = call_sigdask("compare", f"{name}.csv", cwd=tmp_path).stdout
    answered = call_sigdask("compare", f"{name}.csv", "-m", "mean:better=lower", cwd=tmp_path).stdout
    assert ["higher is taken as better" in text for text in (doubted, answered)] == [is_doubted, False]


@pytest.mark.parametrize("beside", [{"reference": ""}, {}, {"id": 1, "reference": ""}])
def test_metricx_without_references_is_read(tmp_path, beside):
    for system, factor in (("a", 3), ("b", 5)):
        rows = [
            {"source": f"s {k}", "hypothesis": f"h {k} {system}", "prediction": k * factor % 11 / 2 + 0.25}
            | {name: f"i{k}" if name == "id" else text for name, text in beside.items()}
            for k in range(11)
        ]
        (tmp_path / f"{system}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts = read(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert (counts.systems, counts.suggested) == (("a", "b"), ("MetricX",))
    assert not any("reference" in warning for warning in counts.notices)


def test_the_name_of_the_metric_may_stand_above_the_scores_of_each_system(tmp_path):
    for system, scores in (("a", "0.5\n0.25\n0.75\n"), ("b", "0.5\n0.5\n0.25\n")):
        (tmp_path / f"{system}.txt").write_text(f"COMET\n{scores}")
    [result] = compare_all(read(tmp_path / "a.txt", tmp_path / "b.txt"))
    assert (result.metric, result.n_items, result.score_a) == ("mean", 3, 0.5)
    [result] = compare_all(read(tmp_path / "a.txt", tmp_path / "b.txt", format="metrics"))
    assert (result.metric, result.n_items, result.score_a) == ("COMET", 3, 0.5)
    for word in ("n/a", "nan", "inf", "-", "0.5x"):  # a score that is missing or damaged is no name
        (tmp_path / "a.txt").write_text(f"{word}\n0.25\n0.75\n")
        with pytest.raises(InputError, match="a.txt, line 1"):
            read(tmp_path / "a.txt", tmp_path / "b.txt")
