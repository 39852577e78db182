"""Tests that the program's messages and the documentation use the field's terms and short sentences."""

import ast
import functools
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from docs import from_code

ROOT = Path(__file__).parent.parent / "sigdask"

PRIVATE_TERMS = re.compile(
    r"\btold apart\b|\btell apart\b|\bhangs? (together|on)\b|black.box|\bunits that differ\b", re.IGNORECASE
)
"""Words of our own for: significantly different, correlated, depends on, metric of whole outputs, discordant units."""

ALLOWED_NAMES = {"black_box"}
"""What may be written in a program."""


@functools.cache
def list_program_texts():
    """List place and text of all strings of the package."""
    return [
        (f"{path.relative_to(ROOT)}:{line}", text)
        for path in sorted(ROOT.rglob("*.py"))
        for line, text in iter_texts(ast.parse(path.read_text("utf-8")))
    ]


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
        f"{place}: {text}"
        for place, text in list_program_texts()
        if PRIVATE_TERMS.search(text) and text not in ALLOWED_NAMES and "sigdask.black_box" not in text
    ]
    assert not violations


OPTIONS_OF_OTHER_PROGRAMS = {"--sentence-level", "--save-details", "--log", "--to", "--seg", "--remove-bpe"}
"""Beginnings of options of programs whose files sigdask reads."""


def test_messages_name_only_options_that_exist():
    commands = [command for _, command, _ in from_code.iter_commands()]
    options = {
        name for command in commands for option in command.params for name in option.opts + option.secondary_opts
    }
    violations = [
        f"{place}: {name}: {text}"
        for place, text in list_program_texts()
        if place.startswith(("analysis", "counts", "formats", "metrics", "report", "results"))
        for name in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)
        if name not in options | OPTIONS_OF_OTHER_PROGRAMS
    ]
    assert not violations


def find_dialect(text):
    """Return the words of DIALECT in a message; names of keys and regular expressions are none."""
    return DIALECT_PATTERN.findall(text) if " " in text and "|" not in text else []


def test_messages_are_in_plain_words():
    violations = [f"{place}: {words}: {text}" for place, text in list_program_texts() if (words := find_dialect(text))]
    assert not violations
    assert find_dialect("2 values beside those that were told") == ["beside", "those that", "were told"]


def test_no_help_of_plans_has_words_of_our_own():
    assert not PRIVATE_TERMS.findall((ROOT / "nightly" / "plan" / "schema.json").read_text("utf-8"))


DIALECT = {
    r"beside": "next to, in addition to, with",
    r"by which": "a second sentence",
    r"(?:is|are|was|were) (?:asked|had|laid|said|sought|told)": "active voice: sigdask states, you set",
    r"in so many words": "explicitly",
    r"looked for for": "searched for",
    r"those that": "the ones that, or the noun",
    r"to be had": "available",
    r"what is (?:kept|right|sought)": "the noun: cache, gold standard, aim",
    r"whatever": "any, or every case by name",
}
"""Words that make a reader stop, with what to write in their place."""

DIALECT_PATTERN = re.compile(rf"\b(?:{'|'.join(DIALECT)})\b", re.IGNORECASE)
MAX_WORDS = 35
SENTENCE_END = re.compile(
    r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bet al\.)(?<!\bvs\.)(?<=[.!?])[\"')\]]*\s+(?=[A-Z\"'(\[`]|sigdask|[a-z-]+: )"
)

PROJECT = ROOT.parent
DOCUMENTS = [
    *(PROJECT / "docs").rglob("*.md"), *(PROJECT / "deploy").rglob("*.md"), PROJECT / "README.md",
    PROJECT / "CONTRIBUTING.md", PROJECT / "benchmarks" / "results.md",
]  # fmt: skip


def iter_prose(page):
    """Yield the line and text of each paragraph, list item, heading and table cell; code is one word in backticks."""
    for token in MarkdownIt("commonmark").enable("table").parse(from_code.fill_places(page)):
        if token.type == "inline":
            parts = {"text": "{}", "code_inline": "`code`", "softbreak": " ", "hardbreak": " "}
            yield token.map[0] + 1, "".join(parts.get(c.type, "").format(c.content) for c in token.children)


def find_prose_violations(page):
    """Return the places of a page that have a word of DIALECT or a sentence of more than MAX_WORDS words."""
    violations = []
    for line, text in iter_prose(page):
        violations += [f"{line}: {word}" for word in DIALECT_PATTERN.findall(text)]
        for sentence in SENTENCE_END.split(text):
            n_words = len(re.findall(r"\S*\w\S*", sentence))
            if n_words > MAX_WORDS:
                violations.append(f"{line}: {n_words} words: {sentence[:60]}…")
    return violations


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_a_page_has_short_sentences_in_plain_words(path):
    name = str(path.relative_to(PROJECT))
    violations = find_prose_violations(path.read_text("utf-8"))
    assert not violations, "\n".join([name, *violations])


def test_the_changes_of_the_coming_release_are_in_plain_words():
    heading, coming = (PROJECT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[:2]
    assert coming.startswith("0.3.0 (unreleased)")
    assert not find_prose_violations(heading + coming)


BAD_PAGE = """\
# Whatever it takes

Nothing is said beside results. The file of what is right
is read first, e.g. Here `beside` is code.

- those that are *looked for for* long

| a | b |
|---|---|
| those that | fine |

```console
$ whatever is shown
```

{long} and no more. {long}
"""


def test_the_check_of_pages_finds_words_and_long_sentences_and_spares_code():
    violations = find_prose_violations(BAD_PAGE.format(long=" ".join(["Word"] * 33)))
    assert violations == [
        "1: Whatever", "3: is said", "3: beside", "3: what is right", "6: those that", "6: looked for for",
        "10: those that", f"16: 36 words: {'Word ' * 12}…",
    ]  # fmt: skip
