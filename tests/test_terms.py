"""Tests that the program's messages use the field's terms."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent / "sigdask"

PRIVATE_TERMS = re.compile(
    r"\btold apart\b|\btell apart\b|\bhangs? (together|on)\b|black.box|\bunits that differ\b", re.IGNORECASE
)
"""Words of our own for: significantly different, correlated, depends on, metric of whole outputs, discordant units."""

ALLOWED_NAMES = {"black_box"}
"""What may be written in a program."""


def iter_texts(tree):
    """Yield the texts of a module except its docstrings, which address readers of the code."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, documented)]
    docstrings = {id(statement.value) for body in bodies for statement in body if isinstance(statement, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def test_no_text_of_the_program_has_words_of_our_own():
    violations = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted(ROOT.rglob("*.py"))
        for line, text in iter_texts(ast.parse(path.read_text("utf-8")))
        if PRIVATE_TERMS.search(text) and text not in ALLOWED_NAMES and "sigdask.black_box" not in text
    ]
    assert not violations


def test_no_help_of_plans_has_words_of_our_own():
    assert not PRIVATE_TERMS.findall((ROOT / "nightly" / "plan" / "schema.json").read_text("utf-8"))
