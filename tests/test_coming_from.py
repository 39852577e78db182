"""Tests that run the code on the page for users of other tools and compare its output."""

import doctest
import logging
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "coming-from.md"
PAGE_PARTS = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
SECTIONS = {title: "".join(re.findall(r"^```pycon\n(.*?)^```", part, re.MULTILINE | re.DOTALL))
            for part in PAGE_PARTS[1:] for title in [part.partition("\n")[0]]}  # fmt: skip


def run_doctest(code, name):
    test = doctest.DocTestParser().get_doctest(code, {}, name, str(PAGE), 0)
    messages = []
    doctest.DocTestRunner(verbose=False).run(test, out=messages.append)
    return "".join(messages)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of other tools
def test_what_other_tools_print_is_what_the_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("sacrebleu")
    monkeypatch.setattr(logging.getLogger("sacrebleu"), "disabled", True)
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    assert run_doctest("".join(code for title, code in SECTIONS.items() if title != "ranx"), "page") == ""


@pytest.mark.slow  # ranx compiles
@pytest.mark.filterwarnings("ignore")
def test_what_ranx_prints_is_what_the_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("ranx")
    assert run_doctest(SECTIONS["ranx"], "ranx") == ""
