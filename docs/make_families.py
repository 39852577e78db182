"""Write the tables of docs/statistics/families-measured.md on families, simulated and of real matrices.

    python docs/make_families.py            # all of them
    python docs/make_families.py matrices   # or skewness, coverage

Real matrices lie in ../shared/data, the simulated scenarios in benchmarks/calibration/families.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE / "statistics" / "families-measured.md"
DATA = HERE.parent.parent / "shared" / "data"
TRIALS, TRIALS_OF_HOLM = 2**17, 2**20
N_SETS = 2000

MATRICES = {
    **{f"TREC {name}": f"matrix_trec_urbano/{name}.csv"
       for name in ("adhoc5_ap", "adhoc8_ap", "adhoc8_p10", "adhoc8_rr", "web2010_ndcg20", "web2010_err20")},
    "MQM 2020 en-de": "matrix_mqm/mqm_newstest2020_ende.avg_seg_scores.tsv",
    "MQM 2021 zh-en": "matrix_mqm/mqm_newstest2021_zhen.avg_seg_scores.tsv",
    "AlpacaEval 2": "matrix_alpacaeval2/preferences.csv",
}  # fmt: skip


def matrices() -> Iterator[str]:
    """Yield a row for each matrix: the number of pairs at 0.05 by each procedure."""
    from sigdask import compare_all, read
    from sigdask.formats import Options

    yield "| matrix | systems × units | pairs | max-T alone | `max-t` | Holm | Holm's that max-T lacks |"
    yield "|---|---|---|---|---|---|---|"
    for name, path in MATRICES.items():
        counts = read(DATA / path, options=Options(missing="pairwise"))
        significant = {}
        for adjust, trials in (("max-t", TRIALS), ("holm", TRIALS_OF_HOLM)):
            results = compare_all(
                counts, metrics=["mean"], trials=trials, adjust=adjust, second_run=False, cluster="none", beside=False
            )
            if adjust == "max-t":
                max_t_rows = [(r, r.p_adjusted) for r in results]
                significant["max-T alone"] = {(r.a, r.b) for r, p in max_t_rows if (p or 0.0) <= results.alpha}
            significant[adjust] = {(r.a, r.b) for r in results if (r.p_adjusted or 0.0) <= results.alpha}
        numbers = [f"{len(pairs):,}" for pairs in significant.values()]
        lacking = len(significant["holm"] - significant["max-T alone"])
        print(name, *numbers, lacking, flush=True)
        size = f"{counts.n_systems} × {results[0].n_units:,}"
        yield f"| {name} | {size} | {len(results):,} | {' | '.join(numbers)} | {lacking} |"


def skewness() -> Iterator[str]:
    """Yield a row for each skewness: how often a difference is found, and how often skewness is noted."""
    from benchmarks.calibration.families import FLIPPED_GAMMAS, NULLS, measure_errors_and_notes

    sizes = (30, 50, 100, 300)
    yield "| systems of one mean | " + " | ".join(f"{n} units" for n in sizes) + " |"
    yield "|---|" + "---|" * len(sizes)
    scenarios = {"equal normals": NULLS["equal normals"]}
    scenarios |= {
        f"gammas of skewness {skew:g}, every other one turned": noise for skew, noise in FLIPPED_GAMMAS.items()
    }
    for name, noise in scenarios.items():
        cells = [measure_errors_and_notes(noise, N_SETS // 2, seed=f"{name} {n}", n_topics=n) for n in sizes]
        print(name, *cells, flush=True)
        yield f"| {name} | " + " | ".join(f"{wrong:.3f} ({noted:.0%})" for wrong, noted in cells) + " |"


def coverage() -> Iterator[str]:
    """Yield a row for each scenario: how often all simultaneous intervals contain the true differences."""
    from benchmarks.calibration.families import NULLS, measure_bootstrap_errors

    yield "| 8 systems of one mean | coverage |"
    yield "|---|---|"
    for name in NULLS:
        covered = measure_bootstrap_errors(name, N_SETS // 2)[1]
        print(name, covered, flush=True)
        yield f"| {name} | {covered:.3f} |"


TABLES = {made.__name__: made for made in (matrices, skewness, coverage)}


def main(names: list[str]) -> None:
    """Write the tables between the page's markers."""
    sys.path.insert(0, str(HERE.parent))
    for name in names or TABLES:
        table = "\n".join(TABLES[name]())
        begin, end = (f"<!-- made by docs/make_families.py {name}: {edge} -->" for edge in ("begin", "end"))
        before, _, rest = PAGE.read_text().partition(begin)
        _, _, after = rest.partition(end)
        PAGE.write_text(f"{before}{begin}\n{table}\n{end}{after}")


if __name__ == "__main__":
    main(sys.argv[1:])
