"""Systems whose labels are not gold labels are named in the first lines of the report."""

import json
from pathlib import Path

from sigdask import compare, compare_all
from sigdask.formats import read

OPTIONS = ("zero", "one", "two", "three")


def test_python_warns_too() -> None:
    result = compare([*OPTIONS] * 5, ["0", "1", "2", "0"] * 5, gold=["0", "1", "2", "3"] * 5)
    assert result.score_a == 0
    assert any("A: none of its labels occurs in the gold standard" in warning for warning in result.warnings)


def test_predictions_and_references_in_lists_are_labels_and_their_gold(tmp_path: Path) -> None:
    gold = [k % 2 for k in range(20)]
    for name, n_wrong in (("a", 4), ("b", 6)):
        labels = [1 - label if k < n_wrong else label for k, label in enumerate(gold)]
        (tmp_path / f"{name}.json").write_text(json.dumps({"predictions": labels, "references": gold}))
    [result] = compare_all(read(tmp_path / "a.json", tmp_path / "b.json"))
    assert (str(result.metric), result.score_a, result.score_b) == ("accuracy", 16 / 20, 14 / 20)
