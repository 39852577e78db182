"""Tests of the page of a plan's run (the gate, changes since the previous run) and of sites over the nights."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from browser import find_violations, get_screenshot_folder
from click.testing import CliRunner
from nights import run_plan_here, write_effects
from paper_tables import ParsedPage

from sigdask.cli import commands
from sigdask.errors import InputError
from sigdask.nightly.report.site import get_folder_name, update_site
from sigdask.nightly.report.text import build_part
from sigdask.nightly.store import status as views

PLAN = """
name = "nightly <b>"
trials = 9999
second_run = false

[[test_set]]
name = "news & <i>"
systems = "scores.csv"
format = "wide"
pairs = { baseline = "base" }

[[test_set]]
name = "web"
systems = "web.csv"
format = "wide"

[report]
html = "night.html"
site = "site"

[gate]
rules = [{ rule = "not-worse", alpha = 0.05, test_sets = ["news & <i>"] }]
"""

HOSTILE_NAME = 'new"<script>alert(1)</script>'


def run_night(folder, effect, *, web=None):
    write_effects(folder / "scores.csv", {HOSTILE_NAME: effect, "steady": 0.4})
    write_effects(folder / "web.csv", web or {"x": 0.01, "y": 0.02}, seed=5)
    return run_plan_here(folder)[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Run four nights: new is better twice, then equal, then significantly worse; z has data only once."""
    path = tmp_path_factory.mktemp("nights")
    (path / "plan.toml").write_text(PLAN)
    for number, (effect, web) in enumerate(
        [(0.5, None), (0.5, {"x": 0.01, "y": 0.02, "z": 0.1}), (0.06, None), (-0.5, None)], 1
    ):
        status = run_night(path, effect, web=web)
        assert status == (1 if number == 4 else 0)
        (path / "night.html").rename(path / f"night-{number}.html")
    return path


def build_report(folder, number=None):
    [store] = folder.glob("*.sqlite")
    return views.build_report(str(store), None, number)


def read_section(file, section):
    return " ".join(ParsedPage(file.read_text()).words.get(section, "").split())


@pytest.mark.slow
def test_the_card_says_first_that_the_gate_failed_and_why(folder):
    card = read_section(folder / "night-4.html", "verdict")
    assert card.startswith("✗ Gate FAILED 1 of 1 rule does not hold")
    finding = re.search(
        r"is significantly worse than base by mean on news & <i>: (-[\d.]+), p = ([\d.e-]+) adjusted", card
    )
    [result] = [r for r in build_report(folder).results["news & <i>"] if HOSTILE_NAME in {r.a, r.b}]
    assert abs(float(finding[1])) == pytest.approx(abs(result.difference), rel=1e-3)
    assert float(finding[2]) <= 0.05
    assert "by the rule" not in card  # there is one, and the section on the gate names it
    assert "Since run 3 : 1 significance gained" in card
    assert read_section(folder / "night-2.html", "verdict").startswith("✓ Gate passed the rule holds Run 2 of ")


def test_significances_that_were_lost_stand_first(folder):
    report = build_report(folder, 3)
    first_change = build_part(report).shown["changes"][0]
    assert first_change.kinds == f"significance lost: {HOSTILE_NAME} was better, with other scores"
    assert first_change.test_set == "news & <i>"
    assert HOSTILE_NAME in {first_change.a, first_change.b}
    text = read_section(folder / "night-3.html", "changes")
    assert text.startswith("Since run 2 1 significance lost, ")
    details = text.partition("now: scores, p")[2]
    assert details.index("significance lost: ") < details.index("gone")
    kinds = [change.kinds for change in build_part(report).shown["changes"]]
    assert sum(kind == "gone" for kind in kinds) == 3  # z against three others
    assert len(kinds) == len(report.changes)


def test_gaps_stay_gaps_and_old_nights_are_left_out(folder):
    from sigdask.nightly.store.status import read_nights
    from sigdask.results.table import Table

    report = build_report(folder, 2)
    table = Table.join([results.table for results in report.results.values()])
    [store] = folder.glob("*.sqlite")
    latest = build_report(folder).run
    _, nights = read_nights(str(store), latest, table, 9)
    with_z = np.array(["z" in pair for pair in zip(table.a.tolist(), table.b.tolist(), strict=True)])
    assert np.isnan(nights["score_a"][with_z]).tolist() == [[True, False, True, True]] * 3
    assert not np.isnan(nights["score_a"][~with_z]).any()
    numbers, last_nights = read_nights(str(store), latest, table, 2)
    assert numbers == [3, 4]
    np.testing.assert_array_equal(last_nights["p"], nights["p"][:, 2:])


def test_the_verdict_is_kept_so_that_a_later_report_has_it(folder, tmp_path):
    [store] = folder.glob("*.sqlite")
    out = tmp_path / "later.html"
    result = CliRunner().invoke(commands, ["report", str(store), "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert read_section(out, "verdict").startswith("✗ Gate FAILED")
    record = build_report(folder).run.details["verdict"]
    assert json.loads(json.dumps(record)) == record
    assert [(rule["n_failed"], rule["n_passed"]) for rule in record["rules"]] == [(1, 1)]


def test_names_are_escaped(folder):
    for number in (1, 4):
        text = (folder / f"night-{number}.html").read_text()
        assert HOSTILE_NAME not in text
        assert ParsedPage(text).tags.count("i") == 0
        assert "alert(1)</script>" not in text


@pytest.mark.parametrize(("width", "dark"), [pytest.param(1280, False, marks=pytest.mark.slow), (390, True)])
def test_a_browser_shows_the_verdict_on_the_first_screen(opened, folder, width, dark):
    page = opened(folder / "night-4.html", width=width, dark=dark)
    pinned = page.locator("[data-grid=comparisons] tr[data-row='0'] .pinned").all()
    result = build_report(folder).results["news & <i>"][0]
    assert pinned[-1].inner_text().strip() == result.verdict
    for cell in pinned:
        box = cell.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= width
    gate = page.locator(".gate")
    assert gate.inner_text().startswith("✗ Gate FAILED")
    reason = page.locator("#verdict .why li").first
    assert "is significantly worse than base" in reason.inner_text()
    box = reason.bounding_box()
    assert box["y"] + box["height"] <= 800
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert HOSTILE_NAME in page.locator("#changes").inner_text()
    assert find_violations(page) == []
    if folder_of_screens := get_screenshot_folder():
        page.screenshot(path=folder_of_screens / f"plan-{width}{'-dark' if dark else ''}.png", full_page=True)


PLAN_FOLDER = "nightly-b-b6d3583f"


def read_site_data(file, name):
    found = re.search(rf'<script type="application/json" id="data-{name}">(.*?)</script>', file.read_text(), re.DOTALL)
    return json.loads(found[1])


def test_each_run_updates_a_site_whose_drawings_are_the_numbers_of_the_nights(folder):
    """Against the results of each run, as the store gives them one by one."""
    plan_folder = folder / "site" / PLAN_FOLDER
    pages = {file.name for file in plan_folder.iterdir()}
    assert pages == {"index.html", "plan.json", *(f"night-{number}.html" for number in range(1, 5))}
    grid = read_site_data(plan_folder / "index.html", "series")
    columns = {column["head"]: column for column in grid["columns"]}
    names = [
        [columns[head]["values"][columns[head].get("codes", range(grid["n"]))[row]] for head in ("A", "B")]
        for row in range(grid["n"])
    ]
    series = grid["series"]
    assert series["runs"] == [1, 2, 3, 4]
    for k, number in enumerate(series["runs"]):
        results = {(r.a, r.b): r for own in build_report(folder, number).results.values() for r in own}
        for row, (a, b) in enumerate(names):
            r = results[a, b]
            numbers = (r.score_a, r.score_b, r.p_value if r.p_adjusted is None else r.p_adjusted)
            assert [series[name][row][k] for name in ("a", "b", "p")] == pytest.approx(numbers, rel=0.005, abs=1e-9)
    nights = {column["head"]: column for column in read_site_data(plan_folder / "index.html", "runs")["columns"]}
    assert nights["run"]["values"] == ["4", "3", "2", "1"]
    assert nights["run"]["links"]["3"] == "night-3.html"
    assert "Details of comparisons" in (plan_folder / "night-4.html").read_text()


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.slow), 390])
def test_a_browser_shows_the_site_without_a_request(opened, folder, width):
    site = folder / "site"
    index = opened(site / "index.html", width=width)
    assert index.locator(".plan h2").inner_text() == "nightly <b> ✗ FAILED"
    assert index.locator(".plan h2 a").get_attribute("href") == f"{PLAN_FOLDER}/index.html"
    plan = opened(site / PLAN_FOLDER / "index.html", width=width)
    assert plan.locator("script:not([type])").count() == 1
    assert plan.locator(".made a").get_attribute("href") == "../index.html"
    assert plan.evaluate("document.documentElement.scrollWidth") <= width
    assert {"p", "verdict"} <= {text.strip() for text in plan.locator("#series th.pinned").all_inner_texts()}
    drawing = plan.locator("#series .series svg").first
    drawing.dispatch_event("pointermove", {"clientX": 0})
    assert drawing.locator("title").text_content().startswith("run 1: A ")
    drawing.focus()
    for key, night in (("End", 4), ("ArrowLeft", 3), ("Home", 1)):
        plan.keyboard.press(key)
        assert plan.locator(".explained").inner_text().startswith(f"run {night}: A ")
        assert drawing.get_attribute("aria-valuenow") == str(night)
    plan.keyboard.press("Escape")
    assert plan.locator("#runs a").first.get_attribute("href") == "night-4.html"
    assert find_violations(plan) == find_violations(index) == []


@pytest.mark.slow
def test_a_site_takes_several_plans_and_names_of_any_kind(folder, tmp_path):
    from shutil import copytree

    names = ["../../up", "/etc", "..", "", "Nightly <b>", "<img src=x onerror=alert(1)>", "con/../x", "nightly", "ночь"]
    folders = {name: get_folder_name(name) for name in names}
    assert len(set(folders.values())) == len(names)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9_-]*", own) for own in folders.values())
    copied = copytree(folder, tmp_path / "copy")
    other = tmp_path / "other"
    other.mkdir()
    (other / "plan.toml").write_text(PLAN.replace("nightly <b>", "../up").replace('site = "site"', ""))
    run_night(other, 0.5)
    site = copied / "site"
    marked = (site / PLAN_FOLDER / "night-4.html").read_text() + "<!-- kept -->"
    (site / PLAN_FOLDER / "night-4.html").write_text(marked)
    (site / PLAN_FOLDER / "night-2.html").unlink()
    plans = [str(own / "plan.toml") for own in (copied, other)]
    before = {path for path in tmp_path.rglob("*") if site not in path.parents}
    assert CliRunner().invoke(commands, ["report", *plans, "--site", str(site)]).exit_code == 0
    assert {path for path in tmp_path.rglob("*") if site not in path.parents} == before
    assert (site / PLAN_FOLDER / "night-4.html").read_text() == marked
    assert (site / PLAN_FOLDER / "night-2.html").exists()
    attributes = ParsedPage((site / "index.html").read_text()).attributes
    links = [value for name, value in attributes if name == "href"]
    assert links == ["#main", f"{PLAN_FOLDER}/index.html", f"{get_folder_name('../up')}/index.html"]


def test_a_site_refuses_a_namesake_of_another_store_and_a_damaged_summary(folder, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.replace('site = "site"', ""))
    run_night(tmp_path, 0.5)
    plan, site = str(tmp_path / "plan.toml"), str(folder / "site")
    with pytest.raises(InputError, match="has the nights of another store with a plan 'nightly <b>'; rename the plan"):
        CliRunner().invoke(commands, ["report", plan, "--site", site], standalone_mode=False, catch_exceptions=False)
    damaged = tmp_path / "site" / PLAN_FOLDER / "plan.json"
    damaged.parent.mkdir(parents=True)
    for text in ("{", "[]", '{"plan": 3}', '{"marks": [[1]]}'):
        damaged.write_text(text)
        with pytest.raises(InputError, match=r"plan.json: is no summary of a plan; remove it"):
            update_site(tmp_path / "site", build_report(tmp_path))


NIGHTS = """
import sys, time
from pathlib import Path
import sigdask
from sigdask.nightly.report.site import find_latest_report, update_site

folder, other, site = map(Path, sys.argv[1:])
(folder / "ready").touch()
while not (other / "ready").exists():
    time.sleep(0.01)
plan = sigdask.load_plan(folder / "plan.toml")
for night in range(3):
    outcome = sigdask.run_plan(plan, cluster="none")
    assert not outcome.unwritten, outcome.unwritten
    update_site(site, find_latest_report(plan.store, plan.name), has_all_nights=True)
"""


@pytest.mark.slow
def test_two_processes_update_a_site_at_once_and_lose_nothing(tmp_path):
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
        (folder / "scores.csv").write_text("a,b\n1,2\n2,1\n3,5\n")
        (folder / "plan.toml").write_text(
            f'name = "{folder.name}"\n[report]\nsite = "../site"\n'
            '[[test_set]]\nname = "t"\nsystems = "scores.csv"\nformat = "wide"\n'
        )
    site = tmp_path / "site"
    command = [sys.executable, "-c", NIGHTS]
    orders = (folders, folders[::-1])
    processes = [subprocess.Popen([*command, *map(str, (*order, site))], stderr=subprocess.PIPE) for order in orders]
    assert [(process.communicate()[1], process.returncode) for process in processes] == [(b"", 0)] * 2
    index = (site / "index.html").read_text()
    for folder in folders:
        assert f'href="{folder.name}/index.html"' in index
        pages = {file.name for file in (site / folder.name).iterdir()}
        assert pages == {"index.html", "plan.json", *(f"night-{number}.html" for number in (1, 2, 3))}
        assert json.loads((site / folder.name / "plan.json").read_text())["n_nights"] == 3
        nights = {c["head"]: c for c in read_site_data(site / folder.name / "index.html", "runs")["columns"]}
        assert nights["run"]["values"] == ["3", "2", "1"]
