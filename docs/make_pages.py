"""Run the commands that the pages show and write their output into the pages.

    python docs/make_pages.py                              # README.md and all of docs/
    python docs/make_pages.py docs/tutorials/tagging.md    # some of them

How a page says what is run is told in transcripts.py. tests/test_transcripts.py holds the pages to it.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from docs import transcripts  # noqa: E402  # found beside the package


def main(names: list[str]) -> int:
    """Update the named pages, or all; return the number that failed."""
    failed = 0
    for page in map(Path, names) if names else [*transcripts.find_pages(), *transcripts.find_notebooks()]:
        before = page.read_text("utf-8")
        try:
            renew = transcripts.renew_notebook if page.suffix == ".ipynb" else transcripts.renew_page
            after = renew(before)
        except transcripts.PageError as error:
            print(f"{page}: {error}", file=sys.stderr)
            failed += 1
            continue
        page.write_text(after, "utf-8")
        print(f"{page}: {'as it was' if after == before else 'renewed'}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
