"""What several tests need: the real data, where they are beside the project, the oracles and Yeh's example."""

import functools
import json
import os
from pathlib import Path

import jsonschema
import pytest

from sigdask.nightly.report import text as plans
from sigdask.report.presentable import Results
from sigdask.results import schema

ROOT = Path(__file__).parent.parent
YEH = ROOT / "sigdask" / "examples" / "yeh2000.tsv"
LONG = ("slow", "cluster", "chaos")
LEFT_OUT = pytest.StashKey[int]()


os.environ["SIGDASK_CACHE"] = "off"  # of the tests and what they start; those of the cache name a folder of their own


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help=f"run the long tests too, those marked {', '.join(LONG)}")


@pytest.hookimpl(trylast=True)  # a folder's conftest may mark its tests
def pytest_collection_modifyitems(config, items):
    """Leave the long tests out, unless --all, a choice of markers or the id of a test asks for them."""
    if config.option.all or config.option.markexpr or any("::" in argument for argument in config.args):
        return
    long = [item for item in items if any(map(item.get_closest_marker, LONG))]
    config.stash[LEFT_OUT] = len(long)
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if not any(map(item.get_closest_marker, LONG))]


def pytest_terminal_summary(terminalreporter, config):
    if n := config.stash.get(LEFT_OUT, 0):
        kinds = ", ".join(f"-m {mark}" for mark in LONG)
        terminalreporter.write_line(f"{n} long tests were left out: --all runs them too; {kinds} run those of a kind")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data sets are not beside the project (../shared/data)")
    return folder


@pytest.fixture(scope="session")
def browser():
    """Start the one browser of all tests of pages; see tests/browser.py."""
    from browser import started

    with started() as running:
        yield running


@pytest.fixture
def opened(browser):
    """Open pages from their files: `opened(file, width=390, dark=True)`, checked and closed at the end."""
    from contextlib import ExitStack

    from browser import shown

    with ExitStack() as pages:
        yield lambda file, **how: pages.enter_context(shown(browser, file, **how))


@pytest.fixture(scope="session")
def yeh():
    from sigdask.formats import read

    return read(YEH)


@pytest.fixture(scope="session")
def oracles():
    text = (ROOT / "tests" / "data" / "oracles.json").read_text(encoding="utf-8")
    return {o["name"]: o for o in json.loads(text)}


MOST_VALIDATED = 300_000
"""Characters of JSON that is held against its schema, so that tests of a hundred thousand results stay quick."""


@pytest.fixture(autouse=True)
def every_json_keeps_its_schema(monkeypatch):
    """Whatever a test writes of results is what the schema says: a key that it does not know is an error."""
    monkeypatch.setattr(Results, "json_parts", _validated(Results.json_parts))
    monkeypatch.setattr(plans, "render_json", _validated(plans.render_json))


def _validated(write):
    @functools.wraps(write)
    def written(found):
        kept, length = [], 0
        for part in write(found):
            length += len(part)
            kept = [*kept, part] if length <= MOST_VALIDATED else []
            yield part
        if kept:
            validator().validate(json.loads("".join(kept)))

    return written


@functools.cache
def validator():
    return jsonschema.Draft202012Validator(json.loads(schema.read_schema()))
