"""A real browser for the tests of pages: Debian's Chromium, headless, driven by Playwright; one a session.

Tests take the fixture `browser`, or `opened`: `opened(path, width=390, dark=True)` gives a page of Playwright that was
opened from its file, and fails the test at its end if the page said anything on its console, asked for anything, or
raised an error.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
MOST = 60_000
"""Milliseconds that anything in the browser may take: the machine may be busy."""

HEIGHT = 800


@contextmanager
def started():
    """Start Chromium; skip where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed (pip install playwright)"
    )
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def shown(browser, file: Path, *, width: int = 1280, dark: bool = False, script: bool = True) -> Iterator:
    """Open a file; at the end the page must have asked for nothing and complained of nothing."""
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHT},
        color_scheme="dark" if dark else "light",
        java_script_enabled=script,
        offline=True,
    )
    context.set_default_timeout(MOST)
    said, asked = [], []
    try:
        page = context.new_page()
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        yield page
        assert said == []
        assert [url for url in asked if not url.startswith("data:")] == [file.as_uri()]
    finally:
        context.close()


def screens() -> Path | None:
    """Return the folder where pictures of pages are kept to be looked at, if SIGDASK_SCREENS names one."""
    folder = os.environ.get("SIGDASK_SCREENS")
    return Path(folder) if folder else None


def violations(page) -> list[str]:
    """Return what axe-core finds serious or critical: the rule, what it says, and where."""
    axe = pytest.importorskip(
        "axe_playwright_python.base", reason="axe-core is not installed (pip install axe-playwright-python)"
    )
    page.evaluate(axe.AXE_FILE_PATH.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
    return [
        f"{each['id']}: {each['help']}: {node['html']}"
        for each in found
        if each["impact"] in {"serious", "critical"}
        for node in each["nodes"]
    ]
