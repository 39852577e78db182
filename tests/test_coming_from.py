"""The page for those who come from other tools: its code is run, by the tools themselves, and prints what it shows."""

import doctest
import logging
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "coming-from.md"
PARTS = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
SECTIONS = {title: "".join(re.findall(r"^```pycon\n(.*?)^```", part, re.MULTILINE | re.DOTALL))
            for part in PARTS[1:] for title in [part.partition("\n")[0]]}  # fmt: skip


def run(code, name):
    test = doctest.DocTestParser().get_doctest(code, {}, name, str(PAGE), 0)
    said = []
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    return "".join(said)


@pytest.mark.filterwarnings("ignore")  # of other tools
def test_what_other_tools_print_is_what_the_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("sacrebleu")
    monkeypatch.setattr(logging.getLogger("sacrebleu"), "disabled", True)
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    assert run("".join(code for title, code in SECTIONS.items() if title != "ranx"), "page") == ""


@pytest.mark.slow  # ranx compiles
@pytest.mark.filterwarnings("ignore")
def test_what_ranx_prints_is_what_the_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("ranx")
    assert run(SECTIONS["ranx"], "ranx") == ""


def test_the_page_has_what_it_promises():
    assert [*SECTIONS] == ["sacrebleu", "ranx", "SciPy", "mt-metrics-eval", "Van Asch's art.py"]
    assert all("sigdask.compare" in code for code in SECTIONS.values())
