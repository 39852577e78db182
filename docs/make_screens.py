"""Take screenshots of pages for people to look at: light, dark, phone, print and without scripts.

    python docs/make_screens.py FOLDER PAGE.html...

Each page is opened in Chromium as the tests do; its pictures are FOLDER/NAME-KIND.png. Nothing compares them: a person
looks.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

SCREEN_KINDS = {
    "light": {},
    "dark": {"dark": True},
    "phone": {"width": 390},
    "phone-dark": {"width": 390, "dark": True},
    "plain": {"script": False},
}
"""How pages are opened, by the name of the picture."""


def main(folder: Path, pages: list[Path]) -> None:
    """Take every screenshot of every page: the first screen and the full page."""
    from browser import open_page, start_browser

    folder.mkdir(parents=True, exist_ok=True)
    with start_browser() as browser:
        for file in pages:
            for kind, options in SCREEN_KINDS.items():
                with open_page(browser, file.resolve(), **options) as page:
                    page.screenshot(path=folder / f"{file.stem}-{kind}.png")
                    page.screenshot(path=folder / f"{file.stem}-{kind}-whole.png", full_page=True)
            with open_page(browser, file.resolve()) as page:
                page.pdf(path=folder / f"{file.stem}.pdf")
                print(f"{file.stem}: {_read_ready_time(page):.0f} ms to ready")


def _read_ready_time(page: object) -> float:
    """Return the milliseconds from opening the page until its script was done."""
    return page.evaluate("performance.getEntriesByName('sigdask:ready')[0].startTime")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(text) for text in sys.argv[2:]])
