"""Tests that no regular expression takes exponential or cubic time on repetitions of what it looks for."""

import ast
import importlib
import itertools
import pkgutil
import re
from pathlib import Path

import pytest
from command import limit_cpu

import sigdask
from sigdask.errors import InputError
from sigdask.formats import read

ROOT = Path(sigdask.__file__).parent
N_CHARACTERS, MAX_SECONDS = 1000, 2
"""Of a text, and CPU seconds for it: what grows with the square takes a hundredth of a second."""

CHARACTERS = [*"a1 -_.,:;/\"'<>({[)]}=|@&~\t\n"]


def iter_patterns():
    """Yield the compiled and the literal regular expressions of the package."""
    names = [m.name for m in pkgutil.walk_packages([str(ROOT)], "sigdask.") if "__main__" not in m.name]
    for module in map(importlib.import_module, names):
        yield from (value for value in vars(module).values() if isinstance(value, re.Pattern))
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_call = isinstance(node, ast.Call) and ast.unparse(node.func) in {"re.search", "re.match", "re.sub"}
            if is_call and isinstance(node.args[0], ast.Constant):
                yield re.compile(node.args[0].value)


def try_pattern(pattern):
    """Search texts of repeated characters, words of the expression, and pairs of both."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode()
    words = sorted({*re.findall(r"\w{2,}|[^\w\s]", source), *CHARACTERS}, key=source.count)[-10:]
    for piece in [*CHARACTERS, *map("".join, itertools.product(words, repeat=2))]:
        text = piece * (N_CHARACTERS // len(piece)) + "\0"
        with limit_cpu(MAX_SECONDS):
            pattern.search(text if isinstance(pattern.pattern, str) else text.encode())


@pytest.mark.slow
def test_no_expression_takes_long_over_what_its_own_pieces_make():
    patterns = set(iter_patterns())
    assert len(patterns) > 50
    for pattern in patterns:
        try_pattern(pattern)


@pytest.mark.slow
def test_hostile_files_are_told_soon(tmp_path):
    for k, text in enumerate(
        ["<!---->" * 28, "<refset>" + "<seg>" * 8000, '["' + '\\"' * 30_000, "{" * 60_000, "a,b { " * 9_000]
    ):
        path = tmp_path / f"a{k}"
        path.write_text(text)
        with limit_cpu(), pytest.raises(InputError, match=str(path)):
            read(path)
