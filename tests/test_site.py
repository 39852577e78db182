"""Tests that the site documents everything usable, builds without warnings and needs no network."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest

from sigdask.cli import commands

ROOT = Path(__file__).parent.parent
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


COMMAND_LINE = re.compile(r"^(?:    |\$ )(?:\S*/)?(sigdask(?: .*)?)$", re.MULTILINE)
COMMAND_END = re.compile(r" {3,}| # | [|&;>] |$")


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_every_command_that_a_page_shows_has_the_options_that_it_is_shown_with(page):
    for line in COMMAND_LINE.findall(re.sub(r"\\\n\s*", "", page.read_text())):
        command, context, words = commands, None, shlex.split(line[: COMMAND_END.search(line).start()])[1:]
        while isinstance(command, click.Group) and words:
            context = click.Context(command, context, command.name, **command.context_settings)
            command, words = command.get_command(None, words[0]), words[1:]
        command.make_context(command.name, words, context)


RUN_PAGES = [
    page for page in PAGES if re.search(r"^```python\n", page.read_text(), re.MULTILINE) and page.parent.name == "howto"
]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN_PAGES, ids=[page.stem for page in RUN_PAGES])
def test_the_python_of_a_how_to_runs(page, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "docs" / "howto" / "data", tmp_path / "data")  # some write files beside the data
    monkeypatch.chdir(tmp_path / "data")
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        exec(block, names)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as CI does: a warning is an error, also for a link to nothing."""
    pytest.importorskip("furo", reason="pip install 'sigdask[docs]'")
    target = tmp_path_factory.mktemp("site")
    options = ["-b", "html", "-W", "-n", "-q", "-E", "-c", "docs", "-d", target / "trees"]
    command = [sys.executable, "-m", "sphinx", *options, ".", target]
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
