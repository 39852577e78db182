"""All pairs of 1,000 systems as commands: of 1,000 and of 10^5 items, singly and as one family, and a panel in blocks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.panel_in_blocks import PARAMETERS
from benchmarks.scale_cases import right, write_table

N_SYSTEMS, N_TRIALS = 1000, 2000


def cases(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Write inputs to a folder; yield the name and the command line of each case."""
    for n_items in (1000, 10**5):
        file = folder / f"panel-{n_items}.csv"
        write_table(file, right(N_SYSTEMS, n_items))
        compare = [
            sys.executable,
            "-m",
            "sigdask",
            "compare",
            str(file),
            "--trials",
            str(N_TRIALS),
            "--format",
            "wide",
        ]
        for adjust in ("none", "max-t"):
            name = f"{N_SYSTEMS:,} systems x {n_items:,} items, all pairs, adjusted by {adjust}"
            yield name, [*compare, "--adjust", adjust, "--json", str(folder / "results.json")]
    yield (
        f"a panel of 2 GB on {PARAMETERS[2]} workers of 700 MB",
        [sys.executable, "-m", "benchmarks.panel_in_blocks"],
    )
