"""The page in a real browser: the answer on the first screen, tables sorted and filtered, nothing asked for."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from browser import HEIGHT, violations
from panel_of import rng_of

from sigdask.api import compare_all, compare_sets
from sigdask.counts import Counts
from sigdask.report import page as of_page
from sigdask.report.page import render_page
from sigdask.report.page.frame import PagePart
from sigdask.report.presentable import Results
from sigdask.report.tables.cells import format_p_cell

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}",
    "</script><b>",
    "\u2028",
    "a'b",
]
N_SYSTEMS = 8
FOLDER = Path(of_page.__file__).parent


def scores(names, seed=1, n=60):
    return {name: np.round(rng_of(100 * seed + k).normal(k % 4, 2, n), 2) for k, name in enumerate(names)}


@pytest.fixture(scope="module")
def sets():
    """Two test sets of eight systems each, judged together."""
    names = [f"system-{k}" for k in range(N_SYSTEMS)]
    data = [Counts.from_scores(scores(names, seed), name=name) for seed, name in enumerate(["news", "talks"])]
    found = compare_sets(data, metrics=["mean"], trials=999, adjust="holm")
    own = [found.table.take(np.flatnonzero(found.table.test_set.codes == k)) for k in range(2)]
    return {t.test_set[0]: Results(t, found.seed, found.alpha, found.notes, found.family) for t in own}


@pytest.fixture(scope="module")
def file(sets, tmp_path_factory):
    made = tmp_path_factory.mktemp("page") / "page.html"
    made.write_text(
        render_page(sets, title="night", created="today", command="sigdask run night.toml"), encoding="utf-8"
    )
    return made


def rows(shown, grid="comparisons"):
    """Cells of the rows that are drawn, by head."""
    heads = shown.locator(f'[data-grid="{grid}"] thead th').all_inner_texts()
    cells = shown.locator(f'[data-grid="{grid}"] tbody tr:not(.space)').evaluate_all(
        "rows => rows.map(row => [...row.cells].filter(c => !c.classList.contains('drawn')).map(c => c.innerText.trim()))"
    )
    return [dict(zip(heads, row, strict=True)) for row in cells]


def status(shown):
    return shown.locator('[data-grid="comparisons"] [role=status]').inner_text()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_answer_stands_on_the_first_screen_and_nothing_is_wider_than_it(opened, file, width):
    shown = opened(file, width=width)
    box = shown.locator("#verdict").bounding_box()
    assert box["y"] + box["height"] <= HEIGHT
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    said = shown.locator("#verdict").inner_text()
    assert "sigdask run night.toml" in said
    assert "second run" in said
    assert "56 comparisons" in said


def test_what_is_listed_is_what_the_json_has_sorted_as_its_heads_are_pressed(opened, file, sets):
    shown = opened(file)
    found = [line for own in sets.values() for line in own.to_dict()["results"]]
    assert [(r["A"], r["B"], r["test set"]) for r in rows(shown)] == [(r["a"], r["b"], r["test_set"]) for r in found][
        : len(rows(shown))
    ]
    head = shown.get_by_role("columnheader", name="adjusted p", exact=True).get_by_role("button")
    for down, direction in ((False, "ascending"), (True, "descending")):
        head.click()
        shown.wait_for_selector(f'[data-grid="comparisons"] [aria-sort="{direction}"]')
        written = [float(format_p_cell(r["p_adjusted"], 0.05)) for r in found]
        expected = sorted(written, reverse=down)
        assert [float(r["adjusted p"]) for r in rows(shown)] == expected[: len(rows(shown))]


def test_filters_leave_what_fits_and_count_it(opened, file, sets):
    shown = opened(file)
    assert status(shown) == "56 rows"
    grid = shown.locator('[data-grid="comparisons"]')
    grid.get_by_label("test set").select_option(label="talks")
    grid.get_by_label("verdict").select_option(label="significant")
    found = [r for r in sets["talks"] if r.verdict(0.05) == "significant"]
    assert 0 < len(found) < 28
    assert status(shown) == f"{len(found)} of 56 rows"
    assert [(r["A"], r["B"]) for r in rows(shown)] == [(r.a, r.b) for r in found]
    grid.get_by_label("find").fill("System-3 talks")
    own = [(r.a, r.b) for r in found if "system-3" in (r.a, r.b)]
    assert [(r["A"], r["B"]) for r in rows(shown)] == own
    assert grid.locator("table").get_attribute("aria-rowcount") == str(len(own) + 1)
    grid.get_by_label("find").fill("no such system")
    assert status(shown) == "0 of 56 rows"


def test_rankings_are_sorted_and_filtered_too(opened, file, sets):
    shown = opened(file)
    assert shown.locator(".ranking:visible").count() == 2
    bar = shown.locator("#rankings .filters")
    bar.get_by_label("test set").select_option(label="news")
    assert bar.get_by_role("status").inner_text() == "1 of 2 rankings"
    own = shown.locator(".ranking:visible")
    systems = [s.system for s in sets["news"].rankings()[0].systems]
    assert own.locator("tbody tr[data-system]").evaluate_all("rows => rows.map(row => row.dataset.system)") == systems
    own.get_by_role("button", name="system", exact=True).click()
    named = own.locator("tbody tr[data-system]").evaluate_all("rows => rows.map(row => row.dataset.system)")
    assert named == sorted(systems)
    bar.get_by_label("find").fill("system-5")
    assert own.locator("tbody tr[data-system]:visible").count() == 1


def test_a_matrix_names_systems_on_both_axes_and_has_every_p(opened, file, sets):
    shown = opened(file)
    shown.locator(".pairs").first.scroll_into_view_if_needed()
    matrix = shown.locator(".matrix table").first
    systems = [s.system for s in sets["news"].rankings()[0].systems]
    assert matrix.locator("thead th").all_text_contents() == systems
    assert matrix.locator("tbody th").all_text_contents() == systems
    cells = matrix.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].slice(1).map(c => [c.textContent, c.className]))"
    )
    for r in sets["news"]:
        i, j = systems.index(r.a), systems.index(r.b)
        assert cells[i][j][0] == cells[j][i][0] == format_p_cell(r.p_adjusted, 0.05)
        better = {True: "better", False: "worse"}[r.better() == r.a] if r.decision(0.05) else ""
        assert cells[i][j][1] == better
        assert cells[j][i][1] == {"better": "worse", "worse": "better", "": ""}[better]


def test_the_keyboard_reaches_heads_filters_and_rows(opened, file):
    shown = opened(file)
    grid = shown.locator('[data-grid="comparisons"]')
    grid.get_by_label("find").focus()
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.getAttribute('role')") == "region"
    before = rows(shown)[0]
    shown.keyboard.press("End")
    grid.locator('tr[aria-rowindex="57"]').wait_for()
    shown.keyboard.press("Home")
    grid.locator('tr[aria-rowindex="57"]').wait_for(state="detached")
    grid.locator('tr[aria-rowindex="2"]').wait_for()
    assert rows(shown)[0] == before
    shown.keyboard.press("Tab")
    shown.keyboard.press("Enter")
    assert grid.locator("[aria-sort]").inner_text() == "test set"


def test_names_are_text_in_every_place(opened, tmp_path):
    own = compare_all(Counts.from_scores(scores(HOSTILE), name=HOSTILE[0]), metrics=["mean"], trials=99)
    made = tmp_path / "hostile.html"
    made.write_text(
        render_page({HOSTILE[0]: own}, title=HOSTILE[1], command=HOSTILE[0], notes=HOSTILE), encoding="utf-8"
    )
    shown = opened(made)
    shown.get_by_role("columnheader", name="A", exact=True).get_by_role("button").click()
    assert shown.locator("img, b").count() == 0
    assert shown.locator("script:not([type])").count() == 1
    assert {r["A"] for r in rows(shown)} | {r["B"] for r in rows(shown)} == {name.strip() for name in HOSTILE}
    assert shown.locator("h1").inner_text() == HOSTILE[1]


@pytest.mark.parametrize("dark", [False, True])
def test_nothing_serious_stands_in_the_way_of_anyone(opened, file, dark):
    shown = opened(file, dark=dark)
    assert violations(shown) == []


def test_dark_is_dark_and_light_is_light(opened, file):
    paper = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).every(v => v < 60)"
    assert opened(file, dark=True).evaluate(paper)
    assert not opened(file).evaluate(paper)


def test_without_a_script_the_first_rows_answer(opened, file, sets):
    shown = opened(file, script=False)
    cells = shown.locator("#comparisons noscript tbody tr")
    assert cells.count() == 56
    first = sets["news"][0]
    assert {first.a, first.b, format_p_cell(first.p_adjusted, 0.05)} <= set(cells.first.locator("td").all_inner_texts())


def test_print_has_the_rows_that_the_filters_leave(opened, file):
    shown = opened(file)
    shown.locator('[data-grid="comparisons"]').get_by_label("find").fill("news")
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown.emulate_media(media="print")
    assert len(rows(shown)) == 28
    assert not shown.get_by_label("find").first.is_visible()
    assert "28 of 56 rows" in shown.locator("body").inner_text()
    shown.evaluate("dispatchEvent(new Event('afterprint'))")


def test_parts_have_data_and_say_which_rows_open(opened, sets, tmp_path):
    made = tmp_path / "parts.html"
    held = {"names": HOSTILE, "p": [0.5, None]}
    made.write_text(render_page(sets, title="t", parts={"extra": PagePart(None, held)}), encoding="utf-8")
    shown = opened(made)
    assert shown.evaluate("sigdask.data('extra')") == held
    assert shown.evaluate("sigdask.data('nothing')") is None
    shown.evaluate("sigdask.openable([0, 3], (row) => { document.title = sigdask.row(row).B; })")
    buttons = shown.locator("button.open")
    assert buttons.count() == 2
    buttons.nth(1).click()
    shown.wait_for_function("title => document.title === title", arg=sets["news"][3].b)


def test_ten_thousand_comparisons_are_drawn_as_they_are_scrolled(opened, tmp_path):
    names = [f"run{k}" for k in range(142)]
    found = compare_all(scores(names, n=12), metrics=["mean"], trials=99, adjust="none", second_run=False)
    assert len(found) > 10_000
    made = tmp_path / "many.html"
    made.write_text(render_page({"": found}, title="many"), encoding="utf-8")
    assert made.stat().st_size < 15e6
    shown = opened(made)
    assert shown.locator('[data-grid="comparisons"] tbody tr').count() < 100
    scroll = '[data-grid="comparisons"] .scroll'
    shown.evaluate(f"(() => {{ const s = document.querySelector('{scroll}'); s.scrollTop = s.scrollHeight; }})()")
    last = shown.locator(f'[data-grid="comparisons"] tr[aria-rowindex="{len(found) + 1}"]')
    last.wait_for()
    assert last.inner_text().split("\t")[:2] == [found[-1].a, found[-1].b]
    assert shown.locator('[data-grid="comparisons"] tbody tr').count() < 100
    assert shown.evaluate("performance.getEntriesByName('sigdask:ready').length") == 1


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed (apt-get install nodejs)")
@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.js")), ids=lambda file: file.name)
def test_scripts_are_javascript(script):
    subprocess.run(["node", "--check", script], check=True, timeout=60)


@pytest.mark.parametrize("candidates", [{}, {"pairs": "n-best precision"}])
def test_a_page_without_comparisons_is_a_page(opened, tmp_path, candidates):
    made = tmp_path / "empty.html"
    made.write_text(render_page({}, title="nothing", candidates=candidates), encoding="utf-8")
    shown = opened(made)
    assert shown.locator('[data-grid="comparisons"]').count() == (0 if candidates else 1)
    assert "0 comparisons" in shown.locator("#verdict").inner_text()
    assert violations(shown) == []
