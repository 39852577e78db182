"""Tests that no regular expression takes exponential time on repetitions of its own pieces."""

import ast
import heapq
import importlib
import itertools
import pkgutil
import re
import time
from pathlib import Path
from re import _constants as codes
from re import _parser as parser

import pytest
from command import limit_cpu

import sigdask
from sigdask.errors import InputError
from sigdask.formats import read
from sigdask.formats.tagging.timbl import _split_line
from sigdask.formats.texts.wmt import is_sgml, is_xml, iter_documents

ROOT = Path(sigdask.__file__).parent
RE_METHODS = {"match", "fullmatch", "search", "sub", "findall", "finditer", "split"}
MAX_SECONDS = 40e-6
"""CPU seconds a byte: a hundred times what is usual."""


def import_modules():
    names = [m.name for m in pkgutil.walk_packages([str(ROOT)], "sigdask.")]
    return [importlib.import_module(name) for name in ["sigdask", *(n for n in names if "__main__" not in n)]]


def list_patterns(value):
    if isinstance(value, re.Pattern):
        return [value]
    return [v for v in value.values() if isinstance(v, re.Pattern)] if isinstance(value, dict) else []


def iter_expressions():
    """Yield each compiled or literal regular expression of the package with the methods that use it."""
    used: dict[str, set[str]] = {}
    literals: dict[tuple[str, str], None] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in RE_METHODS:
                holder = node.value.value if isinstance(node.value, ast.Subscript) else node.value
                name = holder.id if isinstance(holder, ast.Name) else getattr(holder, "attr", "")
                used.setdefault(name, set()).add(node.attr)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RE_METHODS:
                holder = node.func.value
                if isinstance(holder, ast.Name) and holder.id == "re" and isinstance(node.args[0], ast.Constant):
                    literals[node.args[0].value, node.func.attr] = None
    for module in import_modules():
        for name, value in vars(module).items():
            for pattern in list_patterns(value):
                yield pattern, tuple(sorted(used.get(name, {"match", "fullmatch"})))
    for pattern, method in literals:
        yield re.compile(pattern), (method,)


def find_character(token):
    """Return a character that matches a token of the parsed expression."""
    tests = [chr(c) for c in (*b" a1-_.,:;/T\"'<>({[)]}=|@&\\~", 10, 9)]
    for test in tests:
        if is_match(token, ord(test)):
            return test
    return "a"


def is_match(token, c):  # noqa: PLR0911
    op, argument = token
    if op is codes.LITERAL:
        return c == argument
    if op is codes.NOT_LITERAL:
        return c != argument
    if op is codes.ANY:
        return c != 10
    if op is codes.RANGE:
        return argument[0] <= c <= argument[1]
    if op is codes.CATEGORY:
        kinds = {"DIGIT": chr(c).isdigit(), "SPACE": chr(c).isspace(), "WORD": chr(c).isalnum() or c == 95}
        _, _, name = str(argument).partition("_")
        kind = name.removeprefix("NOT_")
        return kinds[kind] != name.startswith("NOT_")
    if op is codes.IN:
        negated = argument[0][0] is codes.NEGATE
        return any(is_match(inner, c) for inner in argument[negated:]) != negated
    return False


def build_sample(tree, pieces):
    """Return a text like the expression, and add texts like its parts to the pieces."""
    text = ""
    for op, argument in tree:
        sample = ""
        if op in {codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN, codes.RANGE, codes.CATEGORY}:
            sample = find_character((op, argument))
        elif op is codes.SUBPATTERN:
            sample = build_sample(argument[3], pieces)
        elif op is codes.ATOMIC_GROUP:
            sample = build_sample(argument, pieces)
        elif op in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
            sample = build_sample(argument[2], pieces) * max(argument[0], 1)
            pieces.add(sample)
        elif op is codes.BRANCH:
            branches = [build_sample(branch, pieces) for branch in argument[1]]
            pieces.update(branches)
            sample = branches[0]
        elif op in {codes.ASSERT, codes.ASSERT_NOT}:
            build_sample(argument[1], pieces)
        text += sample
        pieces.add(text)
    return text


def iter_adversaries(pattern):
    """Yield starts and the pieces to be repeated after them."""
    pieces_found: set[str] = set()
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode()
    build_sample(parser.parse(source, pattern.flags & ~re.UNICODE), pieces_found)
    pieces = sorted(filter(None, pieces_found), key=len)[:24]
    joined = [a + b for a, b in itertools.product(pieces[:10], repeat=2)]
    for piece in dict.fromkeys([*pieces, *joined]):
        yield "", piece
        yield pieces[-1], piece


def measure_seconds(pattern, methods, text):
    subject = text if isinstance(pattern.pattern, str) else text.encode()
    begun = time.process_time()
    for method in methods:
        for _ in [getattr(pattern, method)(*(("",) if method == "sub" else ()), subject)]:
            if method == "finditer":
                list(pattern.finditer(subject))
    return time.process_time() - begun


def test_no_expression_takes_long_over_what_its_own_pieces_make():
    expressions = set(iter_expressions())  # not at import: each process that collects tests would parse the package
    assert len(expressions) > 100
    for pattern, methods in expressions:
        check_time(pattern, methods)


SMALL_SIZES = (60, 100, 140, 180, 220, 260, 400)
"""Characters of texts of each kind: what explodes is caught before it takes minutes."""

LARGE_SIZES = (1000, 2000, 6000)
"""Characters of the texts that took longest, in steps, since what grows with the cube takes minutes for the last."""


def check_time(pattern, methods):
    """Try all kinds of texts in small sizes, and those that took longest in large ones."""
    seconds = {
        pair: [check_text(pattern, methods, *pair, size) for size in SMALL_SIZES][-1]
        for pair in iter_adversaries(pattern)
    }
    for pair in heapq.nlargest(8, seconds, key=seconds.get):
        for size in LARGE_SIZES:
            check_text(pattern, methods, *pair, size)


def check_text(pattern, methods, start, piece, size):
    """Return the seconds that a text took; fail if they are too many, also when tried again."""
    text = start + piece * (size // len(piece)) + "\0"
    most = 0.05 + MAX_SECONDS * len(text)
    for _ in range(3):  # a machine may hesitate
        if (seconds := measure_seconds(pattern, methods, text)) < most:
            return seconds
    raise AssertionError(pattern, start, piece, size)


@pytest.mark.parametrize("slow", [r"\d+\d+\d+x", r"\s*\s*z"])
def test_an_expression_that_takes_long_is_found(slow):
    with pytest.raises(AssertionError):
        check_time(re.compile(slow), ("search",))


def test_comments_before_the_root_do_not_explode(tmp_path):
    path = tmp_path / "a.xml"
    for n in (8, 12, 16, 20, 24, 28, 5000):
        path.write_text("<!---->" * n + "<other>")
        with limit_cpu():
            assert not is_xml(path)
            assert not is_sgml(path)
    path.write_text(
        '<?xml version="1.0"?>\n' + "<!-- x -->\n" * 40 + "<!DOCTYPE dataset [<!ELEMENT a (b)> ]>\n<dataset>"
    )
    assert is_xml(path)
    path.write_text("<!-- x -->\n" * 40 + '<!DOCTYPE mteval SYSTEM "a.dtd">\n<mteval><RefSet setid="a">')
    assert is_sgml(path)


@pytest.mark.parametrize("again", ["<seg>", "<seg ", "<seg>a<", "<doc ", "<seg id=a", "<doc a", '<seg a="'])
def test_tags_without_an_end_are_an_error_soon(tmp_path, again):
    path = tmp_path / "a.sgm"
    path.write_text('<refset setid="a">\n<doc docid="d">\n' + f"{again}\n" * 20_000)
    with (
        limit_cpu(),
        pytest.raises(InputError, match=r"line \d+: (a segment is not closed by|the tag <\w+ is not closed by)"),
    ):
        list(iter_documents(path))


@pytest.mark.parametrize("again", ["{ } ", "a,b { ", "a,b [ ", " 1 ", ")", "(1,", ") ", " 11111", "a b { ", "a\tb { "])
@pytest.mark.parametrize("separator", ["comma", "tab", "blank"])
def test_lines_of_timbl_are_taken_apart_soon(again, separator):
    for end in ("", "}", " }", " } x"):
        line = "(1,a)f,T,E " + again * (60_000 // len(again)) + end
        with limit_cpu():
            _split_line(line, separator)


def test_hostile_files_are_told_soon(tmp_path):
    for k, text in enumerate(
        ["<!---->" * 28, "<refset>" + "<seg>" * 8000, '["' + '\\"' * 30_000, "{" * 60_000, "a,b { " * 9_000]
    ):
        path = tmp_path / f"a{k}"
        path.write_text(text)
        with limit_cpu(), pytest.raises(InputError, match=str(path)):
            read(path)
