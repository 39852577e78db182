"""Run the commands that the pages show and write what they print into them.

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


def main(named: list[str]) -> int:
    """Renew the pages named, or all; return how many could not be."""
    failed = 0
    for page in map(Path, named) if named else transcripts.pages():
        before = page.read_text("utf-8")
        try:
            after = transcripts.renewed(before)
        except transcripts.PageError as wrong:
            print(f"{page}: {wrong}", file=sys.stderr)
            failed += 1
            continue
        page.write_text(after, "utf-8")
        print(f"{page}: {'as it was' if after == before else 'renewed'}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
