"""Tests that the site documents everything usable, builds without warnings and needs no network."""

import doctest
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest
from browser import find_violations

import sigdask
from docs import conf, from_code
from sigdask.cli import commands
from sigdask.formats import FORMATS
from sigdask.metrics import METRICS
from sigdask.nightly.plan import build_schema
from sigdask.report import plots

ROOT = Path(__file__).parent.parent
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def read_reference(page):
    return from_code.fill_places((ROOT / "docs" / "reference" / f"{page}.md").read_text())


def test_every_command_and_option_stands_in_the_reference():
    sections = dict(
        re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", read_reference("command-line"), re.MULTILINE | re.DOTALL)
    )
    for name, command, context in from_code.iter_commands():
        options = re.findall(r"^\| `([^`]+)` \|", sections.pop(name), re.MULTILINE)
        words = {word for option in options for word in re.split(r"[ ,/]+", option)}
        for param in command.get_params(context):
            if param.param_type_name == "option" and not param.hidden:
                assert {*param.opts} <= words, f"{name} {param.opts}"
    assert not sections


def join_lines(page):
    return re.sub(r"\\\n\s*", "", page.read_text())


COMMAND_LINE = re.compile(r"^(?:    |\$ )(?:\S*/)?(sigdask(?: .*)?)$", re.MULTILINE)
COMMAND_END = re.compile(r" {3,}| # | [|&;>] |$")
SHOWN_COMMANDS = [
    (page, line[: COMMAND_END.search(line).start()])
    for page in PAGES
    for line in COMMAND_LINE.findall(join_lines(page))
]


@pytest.mark.parametrize(
    ("page", "line"), SHOWN_COMMANDS, ids=[f"{page.stem}: {line}" for page, line in SHOWN_COMMANDS]
)
def test_every_command_that_a_page_shows_has_the_options_that_it_is_shown_with(page, line):
    command, context, words = commands, None, shlex.split(line)[1:]
    while isinstance(command, click.Group) and words:
        context = click.Context(command, context, command.name, **command.context_settings)
        command, words = command.commands[words[0]], words[1:]
    command.make_context(command.name, words, context)


RUN_PAGES = [
    page for page in PAGES if re.search(r"^```python\n", page.read_text(), re.MULTILINE) and page.parent.name == "howto"
]


@pytest.mark.parametrize("page", RUN_PAGES, ids=[page.stem for page in RUN_PAGES])
def test_the_python_of_a_how_to_runs(page, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "docs" / "howto" / "data", tmp_path / "data")  # some write files beside the data
    monkeypatch.chdir(tmp_path / "data")
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        exec(block, names)


def test_every_page_is_in_the_contents_once():
    lists = [ROOT / f"{name}.md" for name in conf.WITH_CONTENTS if name.startswith("docs/")]
    entries = [
        (page.parent / entry).resolve()
        for page in lists
        for entry in re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", page.read_text(), re.MULTILINE)
    ]
    assert sorted(entries) == sorted({*entries})
    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert pages - {ROOT / "docs" / "index.md"} == {page for page in entries if page.is_relative_to(ROOT / "docs")}


def test_every_public_name_stands_in_the_reference():
    page = read_reference("python")
    plot_functions = [name for name in plots.__all__ if callable(getattr(plots, name))]
    module_names = {
        "sigdask": sigdask.__all__,
        "sigdask.report.plots": plot_functions,
    }
    for module, names in module_names.items():
        for name in names:
            assert re.search(rf"^\.\. auto(function|class):: {re.escape(module)}\.{name}$", page, re.MULTILINE), name


def test_every_key_of_a_plan_stands_in_the_reference_with_what_it_takes():
    page = read_reference("plan-keys")
    for definition in (build_schema(), *build_schema()["$defs"].values()):
        for key in definition["properties"]:
            assert re.search(rf"^\| `{key}`( \(needed\))? \| \S", page, re.MULTILINE), key


def test_every_metric_and_format_stands_in_the_reference():
    page = read_reference("metrics")
    assert all(f"| `{name}` |" in page for name in [*METRICS, *FORMATS])


def test_every_key_of_the_json_stands_in_the_reference_and_those_of_a_result_are_explained():
    page, schema = read_reference("results"), json.loads(from_code.results_schema())
    for definition in (schema, *schema["$defs"].values()):
        for key in definition.get("properties", {}):
            assert re.search(rf"^\| `{key}` \| \S", page, re.MULTILINE), key
    for key in schema["$defs"]["result"]["properties"]:
        assert re.search(rf"^\| `{key}` \| [^|]+ \| \S\S", page, re.MULTILINE), key


def test_every_setting_of_the_environment_stands_in_the_reference():
    code = "".join(path.read_text() for path in (ROOT / "sigdask").rglob("*.py"))
    page = read_reference("results")
    assert all(f"| `{name}` |" in page for name in {*re.findall(r"\bSIGDASK_[A-Z]+", code)})


@pytest.mark.parametrize("made", [from_code, conf], ids=["from_code", "conf"])
def test_what_makes_the_site_does_what_it_says(made):
    ran = doctest.testmod(made)
    assert ran.attempted
    assert not ran.failed


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as CI does: a warning is an error, also for a link to nothing."""
    pytest.importorskip("furo", reason="pip install 'sigdask[docs]'")
    target = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-W",
        "-n",
        "-q",
        "-E",
        "-c",
        "docs",
        "-d",
        target / "trees",
        ".",
        target,
    ]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert not result.stderr
    return target


OPENED_PAGES = ["index.html", "docs/index.html", "docs/statistics.html", "docs/statistics/exact.html",
          "docs/reference/command-line.html", "docs/reference/python.html", "CHANGELOG.html"]  # fmt: skip


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_its_pages_ask_no_host_for_anything(site, browser):
    page = browser.new_page(offline=True)
    requests, messages = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    for name in OPENED_PAGES:
        page.goto((site / name).as_uri())
        if name == "index.html":  # sends on to docs/index.html, which an own visit there would interrupt
            page.wait_for_url("**/docs/index.html")
        page.wait_for_load_state("load")
    page.goto(f"{(site / 'search.html').as_uri()}?q=exceedance")
    page.wait_for_selector("#search-results li a")
    assert {urlsplit(url).scheme for url in requests} <= {"file", "data"}
    assert not messages
    page.close()


FIRST_SCREEN = {
    "question": "h1",
    "command": "h1 ~ [class^=highlight-]",
    "picture": "h1 ~ p img",
    "answer": "h1 ~ blockquote",
    "I have files": "h1 ~ ul > li:nth-child(1)",
    "I run evaluations every night": "h1 ~ ul > li:nth-child(2)",
    "I want to understand": "h1 ~ ul > li:nth-child(3)",
}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_screen_has_question_command_picture_answer_and_three_ways_on(site, browser, scheme):
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
    page.goto((site / "docs" / "index.html").as_uri())
    previous_bottom = 0
    for name, selector in FIRST_SCREEN.items():
        element = page.locator(f"article section:first-of-type > {selector}").first
        box = element.bounding_box()
        assert box["height"] > 10, name
        assert box["y"] + box["height"] <= 800, name
        if name.startswith("I "):
            assert element.locator("strong").inner_text() == f"{name}."
            assert element.locator("a[href]").count() > 1
        else:
            assert box["y"] >= previous_bottom, name
            previous_bottom = box["y"] + box["height"]
    assert page.locator("article img").first.evaluate("image => image.complete && image.naturalWidth > 100")
    page.close()


@pytest.mark.slow
def test_no_page_of_the_site_is_wider_than_a_phone(site, browser):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    for path in sorted((site / "docs").rglob("*.html")):
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path.name
    page.goto((site / "docs" / "index.html").as_uri())  # the three ways on are on its first screen
    box = page.locator("article section:first-of-type > ul").first.bounding_box()
    assert 0 < box["y"] < box["y"] + box["height"] <= 800
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_the_sites_pages(site, browser, scheme):
    page = browser.new_page(color_scheme=scheme)
    for name in ("docs/index.html", "docs/reference/command-line.html", "docs/howto/many-systems.html"):
        page.goto((site / name).as_uri())
        assert find_violations(page) == []
    page.close()
