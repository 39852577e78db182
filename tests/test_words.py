"""What the program says is said in the field's words."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent / "sigdask"

OURS = re.compile(
    r"\btold apart\b|\btell apart\b|\bhangs? (together|on)\b|black.box|\bunits that differ\b", re.IGNORECASE
)
"""Words of our own for: significantly different, correlated, depends on, metric of whole outputs, discordant units."""

NAMES = {"black_box"}
"""What may be written in a program."""


def said(tree):
    """The texts of a module but for its docstrings, which are for those who read the code."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, documented)]
    asides = {id(each.value) for body in bodies for each in body if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in asides:
            yield node.lineno, node.value


def test_no_text_of_the_program_has_words_of_our_own():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted(ROOT.rglob("*.py"))
        for line, text in said(ast.parse(path.read_text("utf-8")))
        if OURS.search(text) and text not in NAMES and "sigdask.black_box" not in text
    ]
    assert not found


def test_no_help_of_plans_has_words_of_our_own():
    assert not OURS.findall((ROOT / "nightly" / "plan" / "schema.json").read_text("utf-8"))
