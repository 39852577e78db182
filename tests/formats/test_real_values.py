"""Real numbers are not labels by default: regressions and probabilities are refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from command import call_sigdask

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_source, read

N_ITEMS = 30


def _format_real(k: int, factor: int) -> str:
    return f"{(k * factor % 97) / 97:.4f}"


def _write_column(path: Path, factor: int) -> Path:
    path.write_text("".join(f"{_format_real(k, factor)}\n" for k in range(N_ITEMS)))
    return path


def test_predictions_of_a_regression_get_an_error_with_each_way_to_read_them(tmp_path: Path) -> None:
    gold, a, b = (
        _write_column(tmp_path / f"{name}.txt", factor) for name, factor in (("gold", 31), ("a", 37), ("b", 41))
    )
    result = call_sigdask("compare", a, b, "--gold", gold, cwd=tmp_path)
    assert result.returncode == 2
    assert "holds real numbers" in result.stderr
    for remedy in (["--metric", "MAE"], ["--format", "labels"]):
        assert " ".join(remedy) in result.stderr
        assert call_sigdask("compare", a, b, "--gold", gold, *remedy, cwd=tmp_path).returncode == 0


def test_real_numbers_are_labels_where_the_user_says_so(tmp_path: Path) -> None:
    gold, a, b = (
        _write_column(tmp_path / f"{name}.txt", factor) for name, factor in (("gold", 31), ("a", 37), ("b", 41))
    )
    counts = read(a, b, gold=gold, format="labels")
    assert counts.n_items == N_ITEMS
    result = call_sigdask("compare", a, b, "--gold", gold, "--format", "labels", cwd=tmp_path)
    assert result.returncode == 0


@pytest.mark.parametrize("gold", ["gold", "label", "y_true"])
@pytest.mark.parametrize("are_classes", [False, True])
def test_a_table_of_gold_and_real_predictions_is_refused(tmp_path: Path, gold: str, are_classes: bool) -> None:
    gold_values = [str(k % 2) if are_classes else _format_real(k, 31) for k in range(N_ITEMS)]
    rows = "".join(f"q{k},{gold_values[k]},{_format_real(k, 37)},{_format_real(k, 41)}\n" for k in range(N_ITEMS))
    (path := tmp_path / "t.csv").write_text(f"id,{gold},a,b\n{rows}")
    with pytest.raises(InputError, match="column '(a|gold|label|y_true)' holds real numbers"):
        read(path)


def test_a_column_of_confidences_beside_predictions_is_refused_with_the_option_that_leaves_it_out(tmp_path):
    rows = "".join(f"q{k},{k % 2},{k % 2},{k % 3 % 2},{_format_real(k, 37)}\n" for k in range(N_ITEMS))
    (path := tmp_path / "t.csv").write_text(f"id,gold,a,b,confidence\n{rows}")
    with pytest.raises(InputError, match=r"'confidence' holds real numbers .*ignore=\['confidence'\]"):
        read(path)
    assert read(path, options=Options(ignore=("confidence",))).systems == ("a", "b")


@pytest.mark.parametrize("cell", ["{k}", "{k}.0", "class-{k}.5"])
def test_whole_numbers_and_words_are_labels_however_many(tmp_path: Path, cell: str) -> None:
    rows = "".join(f"q{k},{cell.format(k=k)},{cell.format(k=k)},{cell.format(k=k // 2)}\n" for k in range(N_ITEMS))
    (path := tmp_path / "t.csv").write_text(f"id,gold,a,b\n{rows}")
    assert read(path).systems == ("a", "b")


def _write_metricx(path: Path, factor: int, source: str = "Quelle") -> Path:
    records = (
        {
            "source": f"{source} {k}",
            "hypothesis": f"h {factor} {k}",
            "reference": f"ref {k}",
            "prediction": k * factor % 97 / 97,
        }
        for k in range(N_ITEMS)
    )
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_scores_of_metricx_are_scores_of_which_less_is_better(tmp_path: Path) -> None:
    a, b = _write_metricx(tmp_path / "a.jsonl", 37), _write_metricx(tmp_path / "b.jsonl", 41)
    counts = read(a, b)
    assert (counts.systems, counts.suggested) == (("a", "b"), ("MetricX",))
    result = call_sigdask("compare", a, b, cwd=tmp_path)
    assert "on MetricX (lower is better)" in result.stdout


def test_scores_of_metricx_on_other_sources_are_refused(tmp_path: Path) -> None:
    a, b = _write_metricx(tmp_path / "a.jsonl", 37), _write_metricx(tmp_path / "b.jsonl", 41, "Satz")
    with pytest.raises(InputError, match="'source'"):
        read(a, b)


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [("0.5 0.25 0.75", "0.4 0.3 0.7"), ("0.5 1.0 2.25 3", "0.4 0.5 2.7 2"), ("0.5 0.5 1 3", "0.4 0.4 1 2"),
     ("1 2 3", "0.5 2 3"), ("0.5 0.25", "0.5 0.75")],
)  # fmt: skip
def test_a_few_lines_of_real_numbers_are_no_sets_of_labels(tmp_path, gold, predicted):
    for name, values in (("gold.txt", gold), ("a.txt", predicted)):
        (tmp_path / name).write_text("\n".join(values.split()) + "\n")
    with pytest.raises(InputError, match="real numbers .* name a metric of numbers, such as metrics="):
        read(tmp_path / "a.txt", gold=tmp_path / "gold.txt")
    expected = np.mean([abs(float(x) - float(y)) for x, y in zip(gold.split(), predicted.split(), strict=True)])
    (tmp_path / "b.txt").write_text((tmp_path / "a.txt").read_text())
    both = read(tmp_path / "a.txt", tmp_path / "b.txt", gold=tmp_path / "gold.txt", options=Options(metrics=("MAE",)))
    (result,) = compare_all(both, metrics=["MAE"], trials=100)
    assert result.score_a == pytest.approx(expected)


def test_whole_numbers_without_repeats_are_still_lists_of_ids(tmp_path):
    (tmp_path / "gold.txt").write_text("1\n5\n3\n")
    (tmp_path / "a.txt").write_text("5\n3\n8\n")
    assert detect([parse_source(str(tmp_path / "a.txt"))], tmp_path / "gold.txt") == "responses"
