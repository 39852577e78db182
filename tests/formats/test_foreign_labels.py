"""Systems whose labels are not gold labels are named in the first lines of the report."""

from sigdask import compare

OPTIONS = ("zero", "one", "two", "three")


def test_python_warns_too() -> None:
    result = compare([*OPTIONS] * 5, ["0", "1", "2", "0"] * 5, gold=["0", "1", "2", "3"] * 5)
    assert result.score_a == 0
    assert any("A: none of its labels occurs in the gold standard" in warning for warning in result.warnings)
