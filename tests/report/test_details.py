"""Tests of comparison details on the page, in a browser: mouse and keyboard, plots, texts and numbers."""

import json
import re
import shlex

import numpy as np
import pytest
from browser import find_violations
from builders import build_rng
from click.testing import CliRunner
from command import call_sigdask
from conftest import YEH

from sigdask.api import compare_opened
from sigdask.cli import commands
from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import to_object_array
from sigdask.report import sentences as headline
from sigdask.report.page import render_page
from sigdask.report.page.details import build_part

HOSTILE = "</script><img src=x onerror=alert(1)>"


def render_details(counts, title="t", **options):
    results, opened = compare_opened([counts], **options)
    return render_page(
        {counts.name: results}, title=title, parts=build_part(results.table, opened, reason="the close ones")
    )


def parse_details(text):
    [text_of_script] = re.findall(r'<script type="application/json" id="data-details">(.*?)</script>', text)
    return json.loads(text_of_script)


def build_translations(n=40):
    """Build two systems' texts and their references, one of them hostile."""
    rng, words = build_rng(5), ["the", "cat", "sat", "on", "a", "mat", "&", "dog"]
    texts = [[" ".join(rng.choice(words, 7)) for _ in range(n)] for _ in range(3)]
    texts[0][0] = texts[2][0] = f"the cat {HOSTILE} sat on the mat"
    gold = to_object_array([(text,) for text in texts[2]])
    outputs = Outputs(tuple(np.array(column, object) for column in texts[:2]), gold)
    return Counts(("new", "old"), {"segments": np.ones((n, 1), np.int64)}, n, outputs=outputs)


def test_the_numbers_of_the_page_are_those_of_what_was_opened(yeh):
    results, opened = compare_opened([yeh], trials=4096)
    data = parse_details(render_page({"": results}, title="t", parts=build_part(results.table, opened)))
    assert [entry["row"] for entry in data["opened"]] == [0, 1, 2]
    for entry, detail, r in zip(data["opened"], opened, results, strict=True):
        assert entry["title"] == f"I and II by {r.metric}"
        assert entry["null"]["bars"]["n"] == detail.null.counts.tolist()
        assert shlex.split(entry["again"])[:3] == ["sigdask", "reproduce", r.test_signature]
        assert sum(entry["shares"]["counts"]) == r.n_units
    assert data["opened"][0]["shares"]["counts"] == [28, 126, 6]  # recall: Yeh 2000, table 1


def test_texts_travel_once_and_nothing_of_them_ends_a_script():
    text = render_details(build_translations(), metrics=["BLEU", "chrF"], trials=99)
    assert HOSTILE not in text
    data = parse_details(text)
    assert len(set(data["texts"])) == len(data["texts"])
    assert any(HOSTILE in entry for entry in data["texts"])


def test_nothing_is_opened_where_no_page_is_asked_for(monkeypatch):
    monkeypatch.setattr("sigdask.analysis.details.compute_details", lambda *_: pytest.fail("opened"))
    result = CliRunner().invoke(commands, ["compare", str(YEH), "-m", "recall", "--trials", "99", "--json", "-"])
    assert result.exit_code == 0, result.output


def test_the_page_of_a_command_says_how_it_is_made_again(tmp_path):
    file = tmp_path / "a page.html"
    words = ("compare", YEH, "-m", "f1", "--trials", "99", "-o", file)
    assert call_sigdask(*words, cwd=tmp_path).returncode == 0
    text = file.read_text()
    assert re.search(rf"sigdask compare \S*{YEH.name}\S* -m f1 --trials 99 -o \S+a page.html", text)
    assert str(tmp_path.parent) not in text
    assert "<dt>numpy</dt>" in text


def test_a_comparison_opens_from_its_row_by_mouse_and_by_keyboard(yeh, tmp_path, opened):
    file = tmp_path / "yeh.html"
    file.write_text(render_details(yeh, trials=4096, tests="sign"))
    browser = opened(file)
    heading = browser.locator("#detail h3")
    assert heading.inner_text() == "I and II by recall"
    assert browser.locator("#detail svg[role=img]").count() == 2
    buttons = browser.locator("button.open")
    assert buttons.count() == 3
    buttons.nth(2).click()
    assert heading.inner_text() == "I and II by f1"
    assert heading.evaluate("own => own === document.activeElement")
    buttons.nth(1).focus()
    browser.keyboard.press("Enter")
    assert heading.inner_text() == "I and II by precision"
    browser.get_by_role("button", name="Next").click()
    assert heading.inner_text() == "I and II by f1"
    browser.locator("#detail-chosen").select_option("0")
    assert "sign: p = 0.000196" in browser.locator("#detail .checks").inner_text()
    label = browser.locator("#detail svg").nth(0).get_attribute("aria-label")
    assert "of 8,192 random swaps" in label
    assert browser.locator("#detail .units-table tbody tr").count() == 16
    assert browser.locator("#detail svg .tail").count() > 0
    assert find_violations(browser) == []


@pytest.mark.parametrize("how", [{"width": 390}, pytest.param({"dark": True}, marks=pytest.mark.slow)])
def test_texts_of_the_units_that_decide_stand_side_by_side_with_their_reference(tmp_path, opened, how):
    file = tmp_path / "texts.html"
    file.write_text(render_details(build_translations(), metrics=["BLEU"], trials=500))
    browser = opened(file, **how)
    first_unit = browser.locator("#detail .units > li").first
    assert first_unit.locator("dt").all_inner_texts() == ["reference", "new", "old"]
    assert first_unit.locator("mark").count() > 0
    assert HOSTILE in browser.locator("#detail").inner_text()
    assert browser.locator("#detail img").count() == 0
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert find_violations(browser) == []


def test_all_are_opened_where_they_are_few_else_the_gates_and_the_close_ones():
    scores = {f"s{k}": np.round(build_rng(k).normal(0.05 * k, 1, 50), 2) for k in range(8)}
    results, opened = compare_opened([Counts.from_scores(scores)], trials=499)
    assert len(results) == 28
    best, second = [s.system for s in results.rankings()[0].systems[:2]]
    leading, *others = [detail.row for detail in opened]
    assert {results[leading].a, results[leading].b} == {best, second}
    assert others == [row for row in headline.build_verdict(results).doubtful.tolist() if row != leading]
    assert 0 < len(opened) < 28
    text = render_page({"": results}, title="t", parts=build_part(results.table, opened, reason="the close ones"))
    assert f"{len(opened)} of 28 comparisons can be opened here or from the table: the close ones." in text
