"""Drive a real headless Chromium with Playwright, for the tests of HTML pages; one browser a session.

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
TIMEOUT_MILLISECONDS = 60_000
"""Milliseconds that anything in the browser may take: the machine may be busy."""

VIEWPORT_HEIGHT = 800

WAIT_FOR_TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Tables draw their rows again in the first frame, so that a press before it may meet what then moves away."""


@contextmanager
def start_browser():
    """Start Chromium, or skip the test where none is installed."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed (pip install playwright)"
    )
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-smooth-scrolling"]
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def open_page(browser, file: Path, *, width: int = 1280, dark: bool = False, script: bool = True) -> Iterator:
    """Open a file in a page; at the end check that it logged nothing and requested nothing else."""
    context = browser.new_context(
        viewport={"width": width, "height": VIEWPORT_HEIGHT},
        color_scheme="dark" if dark else "light",
        java_script_enabled=script,
        offline=True,
    )
    context.set_default_timeout(TIMEOUT_MILLISECONDS)
    messages, requests = [], []
    try:
        page = context.new_page()
        page.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        if script:
            page.evaluate(WAIT_FOR_TWO_FRAMES)
        yield page
        assert messages == []
        assert [url for url in requests if not url.startswith("data:")] == [file.as_uri()]
    finally:
        context.close()


def get_screenshot_folder() -> Path | None:
    """Return the folder that SIGDASK_SCREENS names for screenshots, if it is set."""
    folder = os.environ.get("SIGDASK_SCREENS")
    return Path(folder) if folder else None


def find_violations(page) -> list[str]:
    """Return the serious and critical findings of axe-core: the rule, its message and the element."""
    axe = pytest.importorskip(
        "axe_playwright_python.base", reason="axe-core is not installed (pip install axe-playwright-python)"
    )
    page.evaluate(axe.AXE_FILE_PATH.read_text(encoding="utf-8"))
    findings = page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
    return [
        f"{finding['id']}: {finding['help']}: {node['html']}"
        for finding in findings
        if finding["impact"] in {"serious", "critical"}
        for node in finding["nodes"]
    ]
