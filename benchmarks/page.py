"""Measure HTML pages of many comparisons: `python -m benchmarks.page` writes results-page.md.

CPU seconds to make it, its size, and in headless Chromium the milliseconds until its script is done, until all rows are
sorted by p and until a word is found in them, and how many elements it has. The last row is the page of a plan in a site.
It is made of a store with so many real runs. The numbers are of one machine; nothing holds them.
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
    from browser import start_browser

    lines = [
        "| page | comparisons | CPU s to make | MB | ms to ready | ms to sort | ms to find | elements |",
        "|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder, start_browser() as browser:
        for name, (n_sets, n_systems, options) in CASES.items():
            file = Path(folder) / "page.html"
            n, seconds = write_page(file, n_sets, n_systems, options)
            ready, sort, find, elements = (
                round(median(times))
                for times in zip(*(measure_page(browser, file) for _ in range(ROUNDS)), strict=True)
            )
            lines.append(
                f"| {name} | {n:,} | {seconds:.2f} | {file.stat().st_size / 1e6:.2f} | {ready} | {sort} | {find} | {elements:,} |"
            )
            print(lines[-1])
    with tempfile.TemporaryDirectory() as folder, start_browser() as browser:
        n, seconds, file = write_nights(Path(folder))
        rounds = zip(*(measure_page(browser, file, "series") for _ in range(ROUNDS)), strict=True)
        ready, sort, find, elements = (round(median(times)) for times in rounds)
        size = file.stat().st_size / 1e6
        lines.append(
            f"| {NIGHTS} nights of a plan | {n:,} | {seconds:.2f} | {size:.2f} | {ready} | {sort} | {find} | {elements:,} |"
        )
        print(lines[-1])
    (HERE / "results-page.md").write_text(
        "\n".join(["# Pages of many comparisons", "", __doc__.split("\n\n", 1)[1].strip(), "", *lines, ""])
    )


def write_page(file: Path, n_sets: int, n_systems: int, options: dict) -> tuple[int, float]:
    """Write a page; return its number of comparisons and the CPU seconds."""
    from sigdask.api import compare_sets
    from sigdask.counts import Counts
    from sigdask.report.page import render_page
    from sigdask.report.presentable import Results

    rng = np.random.default_rng(0)
    data = [
        Counts.from_scores({f"system-{k}": np.round(rng.normal(k % 7 / 3, 2, 50), 2) for k in range(n_systems)}, name=f"set-{s}")
        for s in range(n_sets)
    ]  # fmt: skip
    results = compare_sets(
        data, **{"metrics": ["mean"], "trials": 999, "adjust": "none", "interval": "none", **options}
    )
    table = results.table
    sets = {
        name: Results(table.take(np.flatnonzero(table.test_set.codes == k)), results.seed, results.alpha)
        for k, name in enumerate(table.test_set.levels)
    }
    render_page({"": Results(table.take(slice(0, 3)), 0, 0.05)}, title="what is loaded once")
    start = time.process_time()
    text = render_page(sets, title="many")
    seconds = time.process_time() - start
    file.write_text(text, encoding="utf-8")
    return len(table), seconds


NIGHTS = 365


def write_nights(folder: Path) -> tuple[int, float, Path]:
    """Run a plan of 105 comparisons for a year of nights; return their number, CPU seconds and page of its site."""
    from sigdask import load_plan, run_plan
    from sigdask.nightly.report.site import update_site

    plan = folder / "night.toml"
    plan.write_text(
        'trials = 99\nmethod = "randomization"\nsecond_run = false\nadjust = "holm"\n'
        '[[test_set]]\nname = "news"\nsystems = "scores.csv"\nmetrics = ["mean"]\n'
    )
    rng = np.random.default_rng(1)
    names = [f"system-{k}" for k in range(15)]
    for _ in range(NIGHTS):
        scores = np.round(rng.normal(np.arange(15) / 9, 2, (30, 15)), 2)
        np.savetxt(folder / "scores.csv", scores, "%.2f", ",", header=",".join(names), comments="")
        outcome = run_plan(load_plan(plan), cluster="none")
    start = time.process_time()
    update_site(folder / "site", outcome.report)
    return len(outcome.report.table), time.process_time() - start, folder / "site" / "night" / "index.html"


def measure_page(browser: object, file: Path, grid: str = "comparisons") -> tuple[float, float, float, int]:
    """Return milliseconds to load, sort and search the page, and its number of elements."""
    from browser import open_page

    with open_page(browser, file) as page:
        timings = page.evaluate(
            """(name) => {
              const grid = document.querySelector(`[data-grid=${name}]`);
              const took = (act) => { const before = performance.now(); act(); grid.getBoundingClientRect(); return performance.now() - before; };
              const head = [...grid.querySelectorAll("thead button")].find((button) => button.textContent === "p");
              const search = grid.querySelector("input");
              const find = () => { search.value = "system-1"; search.dispatchEvent(new Event("input", { bubbles: true })); };
              const ready = performance.getEntriesByName("sigdask:ready")[0].startTime;
              const elements = document.getElementsByTagName("*").length;
              return [ready, took(() => head.click()), took(find), elements];
            }""",
            grid,
        )
    return tuple(timings)


if __name__ == "__main__":
    main()
