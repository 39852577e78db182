"""Write the table of benchmarks/results-error-rates.md on real matrices of scores, which lie in ../shared/data."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
PAGE = HERE.parent / "benchmarks" / "results-error-rates.md"
DATA = HERE.parent.parent / "shared" / "data"
ALPHA, TRIALS, TRIALS_OF_HOLM = 0.05, 2**17, 2**20

MATRICES = {
    **{f"TREC {name}": f"matrix_trec_urbano/{name}.csv"
       for name in ("adhoc5_ap", "adhoc8_ap", "adhoc8_p10", "adhoc8_rr", "web2010_ndcg20", "web2010_err20")},
    "MQM 2020 en-de": "matrix_mqm/mqm_newstest2020_ende.avg_seg_scores.tsv",
    "MQM 2021 zh-en": "matrix_mqm/mqm_newstest2021_zhen.avg_seg_scores.tsv",
}  # fmt: skip


def matrices() -> Iterator[str]:
    """Yield a row for each matrix: the number of pairs at 0.05 by each procedure."""
    from sigdask import compare_all, read

    yield "| matrix | systems × units | pairs | max-T | contested of these | Holm | Holm's that max-T lacks |"
    yield "|---|---|---|---|---|---|---|"
    for name, path in MATRICES.items():
        counts = read(DATA / path, missing="pairwise")
        max_t, holm = (
            compare_all(
                counts, metrics=["mean"], trials=trials, adjust=adjust, second_run=False, cluster="none",
                interval="none",
            ).table
            for adjust, trials in (("max-t", TRIALS), ("holm", TRIALS_OF_HOLM))
        )  # fmt: skip
        by_max_t, by_holm = (table.p_adjusted <= ALPHA for table in (max_t, holm))
        n_contested = np.count_nonzero(max_t.is_contested & by_max_t)
        numbers = len(max_t), by_max_t.sum(), n_contested, by_holm.sum(), (by_holm & ~by_max_t).sum()
        print(name, *numbers, flush=True)
        yield f"| {name} | {counts.n_systems} × {counts.n_items:,} | {' | '.join(f'{n:,}' for n in numbers)} |"


def main() -> None:
    """Write the table between the page's markers."""
    sys.path.insert(0, str(HERE.parent))
    begin, end = (f"<!-- made by docs/make_families.py: {edge} -->" for edge in ("begin", "end"))
    before, _, rest = PAGE.read_text().partition(begin)
    table = "\n".join(matrices())
    PAGE.write_text(f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}")


if __name__ == "__main__":
    main()
