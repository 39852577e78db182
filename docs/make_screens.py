"""Take pictures of pages, to be looked at: light, dark, phone, print and without a script.

    python docs/make_screens.py FOLDER PAGE.html...

Each page is opened in Chromium as the tests do; its pictures are FOLDER/NAME-KIND.png. Nothing compares them: a person
looks.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

KINDS = {
    "light": {},
    "dark": {"dark": True},
    "phone": {"width": 390},
    "phone-dark": {"width": 390, "dark": True},
    "plain": {"script": False},
}
"""How pages are opened, by the name of the picture."""


def main(folder: Path, pages: list[Path]) -> None:
    """Take every picture of every page: the first screen, and all of it."""
    from browser import shown, started

    folder.mkdir(parents=True, exist_ok=True)
    with started() as browser:
        for file in pages:
            for kind, how in KINDS.items():
                with shown(browser, file.resolve(), **how) as page:
                    page.screenshot(path=folder / f"{file.stem}-{kind}.png")
                    page.screenshot(path=folder / f"{file.stem}-{kind}-whole.png", full_page=True)
            with shown(browser, file.resolve()) as page:
                page.pdf(path=folder / f"{file.stem}.pdf")
                print(f"{file.stem}: {_ready(page):.0f} ms to ready")


def _ready(page: object) -> float:
    """Return when the page's script was done, in milliseconds since it was opened."""
    return page.evaluate("performance.getEntriesByName('sigdask:ready')[0].startTime")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(text) for text in sys.argv[2:]])
