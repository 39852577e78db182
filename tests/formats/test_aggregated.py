"""Averages are refused, with the option of the tool that logs scores of items. Layouts are those of the tools' own
outputs: lm-evaluation-harness 0.4, lighteval 0.4, sacrebleu 2.4 (-f json), scikit-learn 1.5, MTEB 1.1 and 1.12,
EvalPlus 0.3, HELM, Transformers' Trainer."""

import json
from pathlib import Path
from typing import Any

import pytest

from sigdask.errors import RefusedFileError
from sigdask.formats import Options, read

BLEU = {"name": "BLEU", "score": 20.8, "signature": "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.4.3",
        "verbose_score": "54.4/26.6/14.9/8.7 (BP = 1.000)", "nrefs": "1", "version": "2.4.3"}  # fmt: skip
CLASS_SCORES = {"precision": 0.8, "recall": 0.7, "f1-score": 0.75, "support": 50.0}
HARNESS = {"results": {"gsm8k": {"alias": "gsm8k", "exact_match,strict-match": 0.5}}, "versions": {"gsm8k": 3.0},
           "configs": {"gsm8k": {"task": "gsm8k"}}, "n-shot": {"gsm8k": 5}, "date": 1.7e9}  # fmt: skip
DOCUMENTS: dict[str, tuple[Any, str]] = {
    "lm-eval": (HARNESS, "--log_samples"),
    "lighteval": ({"config_general": {"model_name": "m"}, "results": {"all": {"acc": 0.5}}}, "--save-details"),
    "sacrebleu": (BLEU, "--sentence-level"),
    "sacrebleu, two systems": ([{"system": "a", "BLEU": {"score": 38.3, "ci": 0.7}}], "--sentence-level"),
    "classification report": (
        {"no": CLASS_SCORES, "yes": CLASS_SCORES, "accuracy": 0.75, "macro avg": CLASS_SCORES},
        "gold=FILE",
    ),
    "MTEB": ({"task_name": "STS12", "mteb_version": "1.12.0", "scores": {"test": [{"main_score": 0.7}]}}, "prediction"),
    "seqeval": (
        {"overall_precision": 0.5, "overall_f1": 0.4, "LOC": {"precision": 0.2, "number": 3}},
        "tagged sentences",
    ),
    "evaluate.save": ({"accuracy": 0.7, "_timestamp": "2024-04-17", "_evaluate_version": "0.4.1"}, "gold=FILE"),
    "HELM": ([{"name": {"name": "em"}, "count": 1, "sum": 0.5, "mean": 0.5, "stddev": 0.0}], "per_instance_stats"),
    "Trainer": ({"epoch": 3.0, "eval_f1": 77.4, "eval_loss": 1.1, "eval_runtime": 13.2}, "one row per item"),
    "evaluate": ({"accuracy": 0.83, "f1": 0.8}, "one row per item"),
}
"""What a tool wrote, and a word of the remedy."""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_averages_get_one_error_that_names_the_remedy(tmp_path: Path, name: str) -> None:
    document, remedy = DOCUMENTS[name]
    (path := tmp_path / "results.json").write_text(json.dumps(document))
    with pytest.raises(RefusedFileError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "each item" in str(error.value) or "by task" in str(error.value)
    assert remedy in str(error.value)


REPORT = (
    "              precision    recall  f1-score   support\n\n         neg       0.80      0.70      0.75        50\n"
)
TEXTS = {
    REPORT: "gold=FILE",
    ",precision,recall,f1-score,support\nneg,0.8,0.7,0.75,50\nmacro avg,0.8,0.7,0.75,100\n": "gold=FILE",
    "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.4.3 = 20.8 54.4/26.6 (BP = 1.0)\n": "--sentence-level",
    "BLEU = 20.74, 54.4/26.6/14.9/8.7 (BP=1.000, ratio=1.026, hyp_len=62880, ref_len=61287)\n": "--sentence-level",
    "processed 46435 tokens with 5648 phrases; found: 5600 phrases; correct: 5000.\naccuracy: 97%;\n": "tagged files",
    "model,accuracy,f1\nbase,0.31,0.25\nlarge,0.41,0.35\nhuge,0.51,0.45\n": "one row per item",
    "name,accuracy,f1,runtime\nbase,0.31,0.25,3\nlarge,0.41,0.35,4\n": "columns={'item': 'name'}",
    ",accuracy,f1\nbase,0.31,0.25\nlarge,0.41,0.35\n": "a row for each system",
    "model_name,en,de\nbase,45.3%,31 %\nlarge,47.1%,33 %\n": "one row per item",
    "#,Team,EN,DE\n1,large,70.5,71\n2,base,65.0,60\n": "a row for each Team",
}


@pytest.mark.parametrize(
    "names", [["mmlu", "gsm8k", "copa", "our_own"], ["en-de", "en-cs", "zh-en"], ["task A", "task B"]]
)
def test_scores_of_systems_on_benchmarks_are_not_compared_as_if_benchmarks_were_systems(
    tmp_path: Path, names: list[str]
) -> None:
    scores = {
        f"model {c}": {name: k / 17 + j / 23 for j, name in enumerate(names)} for k, c in enumerate("abcdefghijkl")
    }
    (path := tmp_path / "scores.json").write_text(json.dumps(scores))
    with pytest.raises(
        RefusedFileError,
        match="compare systems over test sets, write a CSV file .* If rows are items, say columns={'item': ",
    ):
        read(path)
    assert read(path, options=Options(columns={"item": "id"})).systems == tuple(names)
    path.write_text(json.dumps({name: {model: scores[model][name] for model in scores} for name in names}))
    assert read(path).systems == tuple(scores)


@pytest.mark.parametrize("text", TEXTS)
def test_reports_and_leaderboards_get_the_same_error(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "report.txt").write_text(text)
    with pytest.raises(RefusedFileError, match="averages over a whole test set") as error:
        read(path)
    assert TEXTS[text] in str(error.value)


def test_scores_by_item_are_no_averages(tmp_path: Path) -> None:
    (path := tmp_path / "new.json").write_text(json.dumps({f"q{k}": k / 7 for k in range(30)}))
    (old := tmp_path / "old.json").write_text(json.dumps({f"q{k}": k / 9 for k in range(30)}))
    assert read(path, old).n_items == 30
    path.write_text(json.dumps({f"q{k}": {"new": k / 7, "old": k / 9} for k in range(30)}))
    assert read(path).systems == ("new", "old")
    with_samples = {**HARNESS, "samples": {"gsm8k": [{"doc_id": 0, "acc": 1.0, "doc_hash": "x"}]}}
    path.write_text(json.dumps(with_samples))
    old.write_text(json.dumps(with_samples))
    assert read(path, old).suggested == ("acc",)
