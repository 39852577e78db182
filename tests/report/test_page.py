"""Tests of the page in a real browser: answer on the first screen, sorting, filtering, no requests."""

import numpy as np
import pytest
from browser import VIEWPORT_HEIGHT, WAIT_FOR_TWO_FRAMES, find_violations
from builders import build_rng

from sigdask.api import compare_all, compare_sets
from sigdask.counts import Counts
from sigdask.report.comparisons import format_p_cell
from sigdask.report.page import render_page
from sigdask.report.presentable import Results
from sigdask.text import make_printable

HOSTILE_NAMES = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}",
    "</script><b>",
    "\u2028",
    "a'b",
]
N_SYSTEMS = 8


def draw_scores(names, seed=1, n=60):
    return {name: np.round(build_rng(100 * seed + k).normal(k % 4, 2, n), 2) for k, name in enumerate(names)}


@pytest.fixture(scope="module")
def sets():
    """Compare two test sets of eight systems each as one family."""
    names = [f"system-{k}" for k in range(N_SYSTEMS)]
    data = [Counts.from_scores(draw_scores(names, seed), name=name) for seed, name in enumerate(["news", "talks"])]
    results = compare_sets(data, metrics=["mean"], trials=999, adjust="holm")
    tables = [results.table.take(np.flatnonzero(results.table.test_set.codes == k)) for k in range(2)]
    return {t.test_set[0]: Results(t, results.seed, results.alpha, results.notes, results.family) for t in tables}


@pytest.fixture(scope="module")
def file(sets, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(
        render_page(sets, title="night", created="today", command="sigdask run night.toml"), encoding="utf-8"
    )
    return path


def read_rows(page, grid="comparisons"):
    """Return the cells of the rows on display, by column head."""
    heads = page.locator(f'[data-grid="{grid}"] thead th').all_inner_texts()
    cells = page.locator(f'[data-grid="{grid}"] tbody tr:not(.space)').evaluate_all(
        "rows => rows.map(row => [...row.cells].filter(c => !c.classList.contains('drawn')).map(c => c.innerText.trim()))"
    )
    return [dict(zip(heads, row, strict=True)) for row in cells]


def read_status(page):
    return page.locator('[data-grid="comparisons"] [role=status]').inner_text()


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.slow), 390])
def test_the_answer_stands_on_the_first_screen_and_nothing_is_wider_than_it(opened, file, width):
    page = opened(file, width=width)
    for part in (page.locator("#verdict .headline").last, page.locator(".glance").first):
        box = part.bounding_box()
        assert box["y"] + box["height"] <= VIEWPORT_HEIGHT
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    verdict = page.locator("#verdict").inner_text()
    assert "sigdask run night.toml" in verdict
    assert "exact p agrees" in verdict
    assert "56 comparisons: " in verdict


@pytest.mark.parametrize(
    ("prefix", "width"),
    [
        ("organisation/language-model-large", 1280),
        ("system", 390),
        *(pytest.param("system", width, marks=pytest.mark.slow) for width in (1280, 768)),
    ],
)
def test_a_table_with_too_little_room_folds_names_and_hides_how_p_was_computed(opened, tmp_path, prefix, width):
    data = Counts.from_scores(draw_scores([f"{prefix}-{k}" for k in range(4)]), name="news")
    results = compare_all(data, metrics=["mean"], trials=999, adjust="holm")
    path = tmp_path / "page.html"
    path.write_text(render_page({"news": results}, title="t"), encoding="utf-8")
    page = opened(path, width=width)
    grid = page.locator("[data-grid=comparisons]")
    is_folded = (prefix, width) != ("system", 1280)
    assert (grid.locator("th", has_text="A and B").count() == 1) == is_folded
    if is_folded:
        r = results[0]
        assert grid.locator("tr[data-row='0'] td").first.inner_text().split() == [*put_better_first(r), "mean"]
    if width == 1280:
        assert grid.locator(".scroll").evaluate("own => own.scrollWidth - own.clientWidth") <= 0
    method = grid.locator("th", has_text="method").first
    assert not method.is_visible()
    grid.get_by_label("find").fill(f"{prefix}-1")
    grid.get_by_label("all columns").check()
    assert method.is_visible()
    assert "3 of 6 rows" in grid.inner_text()
    if prefix == "system":
        page.set_viewport_size({"width": 1280, "height": 800})
        grid.locator("th", has_text="A and B").wait_for(state="detached")
        assert "3 of 6 rows" in grid.inner_text()  # filters stay
    assert find_violations(page) == []


def put_better_first(r):
    return (r.a, r.b) if r.difference > 0 else (r.b, r.a)


def test_what_is_listed_is_what_the_json_has_sorted_as_its_heads_are_pressed(opened, file, sets):
    page = opened(file)
    expected_rows = [row for results_of_set in sets.values() for row in results_of_set.to_dict()["results"]]
    assert [(r["A"], r["B"], r["test set"]) for r in read_rows(page)] == [
        (*[r["a"], r["b"]][:: 1 if r["difference"] > 0 else -1], r["test_set"]) for r in expected_rows
    ][: len(read_rows(page))]
    head = page.locator("#comparisons").get_by_role("button", name="adjusted p", exact=True)
    for descending, direction in ((False, "ascending"), (True, "descending")):
        head.click()
        page.wait_for_selector(f'[data-grid="comparisons"] [aria-sort="{direction}"]')
        p_values = [float(format_p_cell(r["p_adjusted"], 0.05)) for r in expected_rows]
        expected = sorted(p_values, reverse=descending)
        assert [float(r["adjusted p"]) for r in read_rows(page)] == expected[: len(read_rows(page))]


def test_filters_leave_what_fits_and_count_it(opened, file, sets):
    page = opened(file)
    assert read_status(page) == "56 rows"
    grid = page.locator('[data-grid="comparisons"]')
    grid.get_by_label("test set").select_option(label="talks")
    grid.get_by_label("verdict").select_option(label="significant")
    significant = [r for r in sets["talks"] if r.verdict == "significant"]
    assert 0 < len(significant) < 28
    assert read_status(page) == f"{len(significant)} of 56 rows"
    assert [(r["A"], r["B"]) for r in read_rows(page)] == [put_better_first(r) for r in significant]
    grid.get_by_label("find").fill("System-3 talks")
    pairs = [put_better_first(r) for r in significant if "system-3" in (r.a, r.b)]
    assert [(r["A"], r["B"]) for r in read_rows(page)] == pairs
    assert grid.locator("table").get_attribute("aria-rowcount") == str(len(pairs) + 1)
    grid.get_by_label("find").fill("no such system")
    assert read_status(page) == "0 of 56 rows"


def test_rankings_are_sorted_and_filtered_too(opened, file, sets):
    page = opened(file)
    assert page.locator(".ranking:visible").count() == 2
    bar = page.locator("#rankings .filters")
    bar.get_by_label("test set").select_option(label="news")
    assert bar.get_by_role("status").inner_text() == "1 of 2 rankings"
    ranking = page.locator(".ranking:visible")
    systems = [s.system for s in sets["news"].rankings()[0].systems]
    shown = ranking.locator("tbody tr[data-system]").evaluate_all("rows => rows.map(row => row.dataset.system)")
    assert shown == systems
    ranking.get_by_role("button", name="system", exact=True).click()
    sorted_names = ranking.locator("tbody tr[data-system]").evaluate_all("rows => rows.map(row => row.dataset.system)")
    assert sorted_names == sorted(systems)
    bar.get_by_label("find").fill("system-5")
    assert ranking.locator("tbody tr[data-system]:visible").count() == 1


def test_a_matrix_names_systems_on_both_axes_and_has_every_p(opened, file, sets):
    page = opened(file)
    page.locator(".pairs").first.scroll_into_view_if_needed()
    matrix = page.locator(".matrix table").first
    matrix.wait_for()  # it is drawn once it is near the screen
    systems = [s.system for s in sets["news"].rankings()[0].systems]
    assert matrix.locator("thead th").all_text_contents() == systems
    assert matrix.locator("tbody th").all_text_contents() == systems
    cells = matrix.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].slice(1).map(c => [c.textContent, c.className]))"
    )
    for r in sets["news"]:
        i, j = systems.index(r.a), systems.index(r.b)
        assert cells[i][j][0] == cells[j][i][0] == format_p_cell(r.p_adjusted, 0.05)
        better = {True: "better", False: "worse"}[r.better() == r.a] if r.verdict == "significant" else ""
        assert cells[i][j][1] == better
        assert cells[j][i][1] == {"better": "worse", "worse": "better", "": ""}[better]


def test_the_keyboard_reaches_heads_filters_and_rows(opened, file):
    page = opened(file)
    grid = page.locator('[data-grid="comparisons"]')
    grid.get_by_label("find").focus()
    for _ in range(2):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "region"
    before = read_rows(page)[0]
    page.keyboard.press("End")
    grid.locator('tr[aria-rowindex="57"]').wait_for()
    page.keyboard.press("Home")
    grid.locator('tr[aria-rowindex="57"]').wait_for(state="detached")
    grid.locator('tr[aria-rowindex="2"]').wait_for()
    assert read_rows(page)[0] == before
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert grid.locator("[aria-sort]").inner_text() == "test set"


def test_names_are_text_in_every_place(opened, tmp_path):
    results = compare_all(
        Counts.from_scores(draw_scores(HOSTILE_NAMES), name=HOSTILE_NAMES[0]), metrics=["mean"], trials=99
    )
    path = tmp_path / "hostile.html"
    path.write_text(
        render_page({HOSTILE_NAMES[0]: results}, title=HOSTILE_NAMES[1], command=HOSTILE_NAMES[0]),
        encoding="utf-8",
    )
    page = opened(path)
    page.get_by_role("columnheader", name="A and B", exact=True).get_by_role("button").click()
    assert page.locator("img, b").count() == 0
    assert page.locator("script:not([type])").count() == 1
    cells = page.locator("#comparisons td.pair").all_inner_texts()
    assert {name.strip() for text in cells for name in text.split("\n")[:2]} == {
        make_printable(name).strip() for name in HOSTILE_NAMES
    }
    assert page.locator("h1").inner_text() == HOSTILE_NAMES[1]


@pytest.mark.parametrize("dark", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_nothing_serious_stands_in_the_way_of_anyone(opened, file, dark):
    page = opened(file, dark=dark)
    assert find_violations(page) == []


def test_without_a_script_the_first_rows_answer(opened, file, sets):
    page = opened(file, script=False)
    cells = page.locator("#comparisons noscript tbody tr")
    assert cells.count() == 56
    result = sets["news"][0]
    assert {result.a, result.b, format_p_cell(result.p_adjusted, 0.05)} <= set(
        cells.first.locator("td").all_inner_texts()
    )


def test_print_has_the_rows_that_the_filters_leave(opened, file):
    page = opened(file)
    page.locator('[data-grid="comparisons"]').get_by_label("find").fill("news")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert len(read_rows(page)) == 28
    assert not page.get_by_label("find").first.is_visible()
    assert "28 of 56 rows" in page.locator("body").inner_text()
    page.evaluate("dispatchEvent(new Event('afterprint'))")


def test_a_button_that_is_pressed_while_its_table_moves_is_not_replaced(opened, sets, tmp_path):
    path = tmp_path / "moved.html"
    path.write_text(render_page(sets, title="t"), encoding="utf-8")
    page = opened(path)
    page.evaluate("sigdask.openable([0, 3], (row) => { document.title = `row ${row}`; })")
    button = page.locator("button.open").nth(1)
    button.scroll_into_view_if_needed()
    button.hover()
    page.mouse.down()
    page.evaluate("document.querySelector('[data-grid=comparisons] .scroll').dispatchEvent(new Event('scroll'))")
    page.evaluate(WAIT_FOR_TWO_FRAMES)
    page.mouse.up()
    assert page.title() == "row 3"


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.slow), 390])
def test_what_a_warning_of_a_row_means_is_read_by_keyboard_and_touch(opened, tmp_path, width):
    scores = {"a": np.r_[[4.82, 5.19, 4.63, 5.81], np.linspace(-0.6, 0.7, 26)], "b": np.zeros(30)}
    results = compare_all(Counts.from_scores(scores), metrics=["mean"], trials=9999, second_run=False, interval="none")
    path = tmp_path / "note.html"
    path.write_text(render_page({"": results}, title="t"), encoding="utf-8")
    page = opened(path, width=width)
    button = page.get_by_role("button", name="explain")
    button.focus()
    page.keyboard.press("Enter")
    told = page.locator(".explained")
    assert "1 of 30 items decides it" in told.inner_text()
    box = told.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert find_violations(page) == []
    page.keyboard.press("Escape")
    assert not told.is_visible()
    assert button.evaluate("button => button === document.activeElement")


@pytest.mark.slow
def test_ten_thousand_comparisons_are_drawn_as_they_are_scrolled(opened, tmp_path):
    names = [f"run{k}" for k in range(142)]
    results = compare_all(draw_scores(names, n=12), metrics=["mean"], trials=99, adjust="none", second_run=False)
    assert len(results) > 10_000
    path = tmp_path / "many.html"
    path.write_text(render_page({"": results}, title="many"), encoding="utf-8")
    assert path.stat().st_size < 15e6
    page = opened(path)
    assert page.locator('[data-grid="comparisons"] tbody tr').count() < 100
    scroll = '[data-grid="comparisons"] .scroll'
    page.evaluate(f"(() => {{ const s = document.querySelector('{scroll}'); s.scrollTop = s.scrollHeight; }})()")
    last_row = page.locator(f'[data-grid="comparisons"] tr[aria-rowindex="{len(results) + 1}"]')
    last_row.wait_for()
    assert last_row.inner_text().split("\t")[:2] == [*put_better_first(results[-1])]
    assert page.locator('[data-grid="comparisons"] tbody tr').count() < 100
    assert page.evaluate("performance.getEntriesByName('sigdask:ready').length") == 1


def test_a_page_without_comparisons_is_a_page(opened, tmp_path):
    path = tmp_path / "empty.html"
    path.write_text(render_page({}, title="nothing"), encoding="utf-8")
    page = opened(path)
    assert page.locator('[data-grid="comparisons"]').count() == 1
    assert "0 comparisons" in page.locator("#verdict").inner_text()
    assert find_violations(page) == []
