"""Shared fixtures: the real data beside the project, the oracles, Yeh's example, the browser."""

import functools
import json
import os
import sys
from pathlib import Path

import jsonschema
import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

from sigdask.cli import streams
from sigdask.io import addresses
from sigdask.nightly.report import text as plans
from sigdask.report.presentable import Results
from sigdask.results.columns import load_schema

ROOT = Path(__file__).parent.parent
YEH = ROOT / "sigdask" / "examples" / "yeh2000.tsv"
LONG_MARKERS = ("slow", "cluster", "chaos")
N_LEFT_OUT = pytest.StashKey[int]()


os.environ["SIGDASK_CACHE"] = "off"  # of the tests and what they start; those of the cache name a folder of their own
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each of the many programs that tests start compiles the package

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # else tests fail on a busy machine


def pytest_addoption(parser):
    parser.addoption(
        "--all", action="store_true", help=f"run the long tests too, those marked {', '.join(LONG_MARKERS)}"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for doctests in the package alone: tests have none, and to search them all takes each process seconds."""
    return [collector for collector in (yield) if not isinstance(collector, DoctestModule)]


@pytest.hookimpl(trylast=True)  # a folder's conftest may mark its tests
def pytest_collection_modifyitems(config, items):
    """Leave out long tests, unless --all, a marker expression or a test id selects them."""
    if config.option.all or config.option.markexpr or any("::" in argument for argument in config.args):
        return
    long_items = [item for item in items if any(map(item.get_closest_marker, LONG_MARKERS))]
    config.stash[N_LEFT_OUT] = len(long_items)
    config.hook.pytest_deselected(items=long_items)
    items[:] = [item for item in items if not any(map(item.get_closest_marker, LONG_MARKERS))]


def pytest_terminal_summary(terminalreporter, config):
    if n := config.stash.get(N_LEFT_OUT, 0):
        kinds = ", ".join(f"-m {mark}" for mark in LONG_MARKERS)
        terminalreporter.write_line(f"{n} long tests were left out: --all runs them too; {kinds} run those of a kind")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data sets are not beside the project (../shared/data)")
    return folder


@pytest.fixture(scope="session")
def browser():
    """Start the browser that all tests of pages share; see tests/browser.py."""
    from browser import start_browser

    with start_browser() as running:
        yield running


@pytest.fixture
def opened(browser):
    """Open pages from files: `opened(file, width=390, dark=True)`; check and close them at the end."""
    from contextlib import ExitStack

    from browser import open_page

    with ExitStack() as pages:
        yield lambda file, **options: pages.enter_context(open_page(browser, file, **options))


@pytest.fixture(scope="session")
def yeh():
    from sigdask.formats import read

    return read(YEH)


@pytest.fixture(scope="session")
def oracles():
    text = (ROOT / "tests" / "data" / "oracles.json").read_text(encoding="utf-8")
    return {o["name"]: o for o in json.loads(text)}


MAX_VALIDATED = 300_000
"""Characters of JSON that is held against its schema, so that tests of a hundred thousand results stay quick."""


@pytest.fixture(autouse=True)
def every_test_is_alike(monkeypatch):
    """Validate all JSON that a test writes against the schema, print no progress, and forget the folders that it adds.

    An unknown key is an error. A busy machine would print lines of progress. Hundreds of folders of modules would make
    each panel that is sent to a cluster a large one.
    """
    monkeypatch.setattr(Results, "json_parts", _with_validation(Results.json_parts))
    monkeypatch.setattr(plans, "render_json", _with_validation(plans.render_json))
    monkeypatch.setattr(streams, "SECONDS_BETWEEN_LINES", 3600.0)
    monkeypatch.setattr(addresses, "FOLDERS", [*addresses.FOLDERS])
    monkeypatch.setattr(sys, "path", [*sys.path])


def _with_validation(write):
    @functools.wraps(write)
    def write_validated(results, *layout):
        pieces, length = [], 0
        for piece in write(results, *layout):
            length += len(piece)
            pieces = [*pieces, piece] if length <= MAX_VALIDATED else []
            yield piece
        if pieces:
            build_validator().validate(json.loads("".join(pieces)))

    return write_validated


@functools.lru_cache(maxsize=1)
def build_validator():
    return jsonschema.Draft202012Validator(load_schema())
