"""What a page of many comparisons costs: `python -m benchmarks.page` writes results-page.md.

CPU seconds to make it, its size, and in headless Chromium the milliseconds until its script is done, until all rows are
sorted by p and until a word is found in them, and how many elements it has. The numbers are of one machine; nothing holds them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

HERE = Path(__file__).parent
ROUNDS = 5
CASES = {
    "142 systems": (1, 142, {}),
    "142 systems, with intervals": (1, 142, {"interval": "bootstrap", "resamples": 200}),
    "80 test sets of 20 systems": (80, 20, {}),
    "1,600 test sets of 3 systems": (1600, 3, {}),
}
"""Test sets, systems of each, and what is asked for."""


def main() -> None:
    sys.path.insert(0, str(HERE.parent / "tests"))
    from browser import started

    lines = [
        "| page | comparisons | CPU s to make | MB | ms to ready | ms to sort | ms to find | elements |",
        "|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder, started() as browser:
        for name, (n_sets, n_systems, options) in CASES.items():
            file = Path(folder) / "page.html"
            n, seconds = made(file, n_sets, n_systems, options)
            ready, sort, find, elements = (
                round(median(each)) for each in zip(*(shown_in(browser, file) for _ in range(ROUNDS)), strict=True)
            )
            lines.append(
                f"| {name} | {n:,} | {seconds:.2f} | {file.stat().st_size / 1e6:.2f} | {ready} | {sort} | {find} | {elements:,} |"
            )
            print(lines[-1])
    (HERE / "results-page.md").write_text(
        "\n".join(["# Pages of many comparisons", "", __doc__.split("\n\n", 1)[1].strip(), "", *lines, ""])
    )


def made(file: Path, n_sets: int, n_systems: int, options: dict) -> tuple[int, float]:
    """Write a page; return how many comparisons it has, and the CPU seconds."""
    from sigdask.api import compare_sets
    from sigdask.counts import Counts
    from sigdask.report.page import render_page
    from sigdask.report.presentable import Results

    rng = np.random.default_rng(0)
    data = [
        Counts.from_scores({f"system-{k}": np.round(rng.normal(k % 7 / 3, 2, 50), 2) for k in range(n_systems)}, name=f"set-{s}")
        for s in range(n_sets)
    ]  # fmt: skip
    found = compare_sets(data, **{"metrics": ["mean"], "trials": 999, "adjust": "none", "interval": "none", **options})
    table = found.table
    sets = {
        name: Results(table.take(np.flatnonzero(table.test_set.codes == k)), found.seed, found.alpha)
        for k, name in enumerate(table.test_set.values)
    }
    render_page({"": Results(table.take(slice(0, 3)), 0, 0.05)}, title="what is loaded once")
    before = time.process_time()
    text = render_page(sets, title="many")
    seconds = time.process_time() - before
    file.write_text(text, encoding="utf-8")
    return len(table), seconds


def shown_in(browser: object, file: Path) -> tuple[float, float, float, int]:
    """Return the milliseconds to ready, to sort and to find, and the number of elements."""
    from browser import shown

    with shown(browser, file) as opened:
        found = opened.evaluate(
            """() => {
              const grid = document.querySelector("[data-grid=comparisons]");
              const took = (act) => { const before = performance.now(); act(); grid.getBoundingClientRect(); return performance.now() - before; };
              const head = [...grid.querySelectorAll("thead button")].find((button) => button.textContent === "p");
              const search = grid.querySelector("input");
              const find = () => { search.value = "system-1"; search.dispatchEvent(new Event("input", { bubbles: true })); };
              const ready = performance.getEntriesByName("sigdask:ready")[0].startTime;
              const elements = document.getElementsByTagName("*").length;
              return [ready, took(() => head.click()), took(find), elements];
            }"""
        )
    return tuple(found)


if __name__ == "__main__":
    main()
