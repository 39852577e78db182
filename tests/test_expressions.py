"""No regular expression explodes: each gets what its own pieces make of it, again and again."""

import ast
import importlib
import itertools
import pkgutil
import re
import time
from pathlib import Path
from re import _constants as codes
from re import _parser as parser

import pytest

import sigdask
from sigdask.errors import InputError
from sigdask.formats import read
from sigdask.formats.tagging.timbl import _split_line
from sigdask.formats.texts.sgml import is_sgml, iter_documents
from sigdask.formats.texts.wmt import is_xml

ROOT = Path(sigdask.__file__).parent
METHODS = {"match", "fullmatch", "search", "sub", "findall", "finditer", "split"}
MOST = 40e-6
"""CPU seconds a byte: a hundred times what is usual."""


def modules():
    names = [m.name for m in pkgutil.walk_packages([str(ROOT)], "sigdask.")]
    return [importlib.import_module(name) for name in ["sigdask", *(n for n in names if "__main__" not in n)]]


def patterns_in(value):
    if isinstance(value, re.Pattern):
        return [value]
    return [v for v in value.values() if isinstance(v, re.Pattern)] if isinstance(value, dict) else []


def expressions():  # noqa: C901
    """Yield each expression of the package that is compiled, or written where it is used, with the methods by which it is used."""
    used: dict[str, set[str]] = {}
    written: dict[tuple[str, str], None] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Attribute) or node.attr not in METHODS:
                continue
            holder = node.value.value if isinstance(node.value, ast.Subscript) else node.value
            name = holder.id if isinstance(holder, ast.Name) else getattr(holder, "attr", "")
            used.setdefault(name, set()).add(node.attr)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
                holder = node.func.value
                if isinstance(holder, ast.Name) and holder.id == "re" and isinstance(node.args[0], ast.Constant):
                    written[node.args[0].value, node.func.attr] = None
    for module in modules():
        for name, value in vars(module).items():
            for pattern in patterns_in(value):
                yield pattern, tuple(sorted(used.get(name, {"match", "fullmatch"})))
    for pattern, method in written:
        yield re.compile(pattern), (method,)


FOUND = sorted({(p, m) for p, m in expressions()}, key=lambda found: (str(found[0].pattern), found[1]))


def character(part):
    """Return a character that a set of the parsed expression takes."""
    tests = [chr(c) for c in (*b" a1-_.,:;/T\"'<>({[)]}=|@&\\~", 10, 9)]
    for test in tests:
        if matches(part, ord(test)):
            return test
    return "a"


def matches(part, c):  # noqa: PLR0911
    op, given = part
    if op is codes.LITERAL:
        return c == given
    if op is codes.NOT_LITERAL:
        return c != given
    if op is codes.ANY:
        return c != 10
    if op is codes.RANGE:
        return given[0] <= c <= given[1]
    if op is codes.CATEGORY:
        kinds = {"DIGIT": chr(c).isdigit(), "SPACE": chr(c).isspace(), "WORD": chr(c).isalnum() or c == 95}
        _, _, name = str(given).partition("_")
        kind = name.removeprefix("NOT_")
        return kinds[kind] != name.startswith("NOT_")
    if op is codes.IN:
        negated = given[0][0] is codes.NEGATE
        return any(matches(inner, c) for inner in given[negated:]) != negated
    return False


def samples(tree, found):
    """Return a text like the expression, and add what its parts are like to what is found."""
    text = ""
    for op, given in tree:
        own = ""
        if op in {codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN, codes.RANGE, codes.CATEGORY}:
            own = character((op, given))
        elif op is codes.SUBPATTERN:
            own = samples(given[3], found)
        elif op is codes.ATOMIC_GROUP:
            own = samples(given, found)
        elif op in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
            own = samples(given[2], found) * max(given[0], 1)
            found.add(own)
        elif op is codes.BRANCH:
            branches = [samples(branch, found) for branch in given[1]]
            found.update(branches)
            own = branches[0]
        elif op in {codes.ASSERT, codes.ASSERT_NOT}:
            samples(given[1], found)
        text += own
        found.add(text)
    return text


def adversaries(pattern):
    """Yield beginnings and what is to come again and again after them."""
    found: set[str] = set()
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode()
    samples(parser.parse(source, pattern.flags & ~re.UNICODE), found)
    pieces = sorted(filter(None, found), key=len)[:24]
    joined = [a + b for a, b in itertools.product(pieces[:10], repeat=2)]
    for again in dict.fromkeys([*pieces, *joined]):
        yield "", again
        yield pieces[-1], again


def seconds(pattern, methods, text):
    given = text if isinstance(pattern.pattern, str) else text.encode()
    begun = time.process_time()
    for method in methods:
        for _ in [getattr(pattern, method)(*(("",) if method == "sub" else ()), given)]:
            if method == "finditer":
                list(pattern.finditer(given))
    return time.process_time() - begun


@pytest.mark.parametrize(("pattern", "methods"), FOUND, ids=lambda value: str(getattr(value, "pattern", value))[:40])
def test_no_expression_takes_long_over_what_its_own_pieces_make(pattern, methods):
    for start, again in adversaries(pattern):
        for size in (60, 100, 140, 180, 220, 260, 400, 6000):  # what explodes is caught before it takes minutes
            text = start + again * (size // len(again)) + "\0"
            taken = seconds(pattern, methods, text)
            assert taken < 0.05 + MOST * len(text), (start, again, size, taken)


def test_comments_before_the_root_do_not_explode(tmp_path):
    path = tmp_path / "a.xml"
    for n in (8, 12, 16, 20, 24, 28, 5000):
        path.write_text("<!---->" * n + "<other>")
        begun = time.process_time()
        assert not is_xml(path)
        assert not is_sgml(path)
        assert time.process_time() - begun < 1
    path.write_text(
        '<?xml version="1.0"?>\n' + "<!-- x -->\n" * 40 + "<!DOCTYPE dataset [<!ELEMENT a (b)> ]>\n<dataset>"
    )
    assert is_xml(path)
    path.write_text("<!-- x -->\n" * 40 + '<!DOCTYPE mteval SYSTEM "a.dtd">\n<mteval><RefSet setid="a">')
    assert is_sgml(path)


@pytest.mark.parametrize("again", ["<seg>", "<seg ", "<seg>a<", "<doc ", "<seg id=a", "<doc a", '<seg a="'])
def test_tags_without_an_end_are_an_error_in_no_time(tmp_path, again):
    path = tmp_path / "a.sgm"
    path.write_text('<refset setid="a">\n<doc docid="d">\n' + f"{again}\n" * 20_000)
    begun = time.process_time()
    with pytest.raises(InputError, match=r"line \d+: (segment|tag <\w+>) without its end"):
        list(iter_documents(path))
    assert time.process_time() - begun < 2


@pytest.mark.parametrize("again", ["{ } ", "a,b { ", "a,b [ ", " 1 ", ")", "(1,", ") ", " 11111", "a b { ", "a\tb { "])
@pytest.mark.parametrize("separator", ["comma", "tab", "blank"])
def test_lines_of_timbl_are_taken_apart_in_no_time(again, separator):
    for end in ("", "}", " }", " } x"):
        line = "(1,a)f,T,E " + again * (60_000 // len(again)) + end
        begun = time.process_time()
        _split_line(line, separator)
        assert time.process_time() - begun < 2, line[:50]


def test_hostile_files_are_told_in_no_time(tmp_path):
    for k, text in enumerate(
        ["<!---->" * 28, "<refset>" + "<seg>" * 8000, '["' + '\\"' * 30_000, "{" * 60_000, "a,b { " * 9_000]
    ):
        path = tmp_path / f"a{k}"
        path.write_text(text)
        begun = time.process_time()
        with pytest.raises(InputError, match=str(path)):
            read(path)
        assert time.process_time() - begun < 3, text[:30]
