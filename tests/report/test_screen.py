"""What people see: the commands in a real pseudo-terminal, its screen read by a terminal emulator."""

from pathlib import Path

import pytest
from terminals import shown

YEH = str(Path(__file__).parents[2] / "sigdask" / "examples" / "yeh2000.tsv")
QUICK = ("--trials", "4096", "--cluster", "none")
HEADER = ["A", "B", "metric", "score", "A", "score", "B", "A", "-", "B", "p", "method"]


def is_clean(text):
    """No replaced character, nor what is left of a command to the terminal."""
    return "\N{REPLACEMENT CHARACTER}" not in text and not any(left in text for left in ("[1m", "[0m", "[?25", "[2K"))


@pytest.mark.parametrize(
    "environment", [{}, {"NO_COLOR": "1"}, {"CI": "true"}, {"FORCE_COLOR": "1"}, {"TERM": "dumb"}], ids=str
)
def test_the_header_of_the_table_is_legible_on_every_terminal(environment):
    seen = shown("compare", YEH, "--metric", "recall", *QUICK, columns=120, **environment)
    assert seen.status == 0
    assert is_clean(seen.text)
    assert HEADER in [line.split() for line in seen.screen]
