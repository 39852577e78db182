"""Write the tables of docs/statistics/families-measured.md on families, simulated and of real matrices.

    python docs/make_families.py            # all of them
    python docs/make_families.py matrices   # or errors, power, skewness, resamples

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

    yield "| matrix | systems × units | pairs | max-T alone | `max-t` | `max-t:raw` | Holm | Holm's that max-T lacks |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, path in MATRICES.items():
        counts = read(DATA / path, options=Options(missing="pairwise"))
        significant = {}
        for adjust, trials in (("max-t", TRIALS), ("max-t:raw", TRIALS), ("holm", TRIALS_OF_HOLM)):
            results = compare_all(
                counts, metrics=["mean"], trials=trials, adjust=adjust, second_run=False, cluster="none", beside=False
            )
            if adjust == "max-t":
                max_t_rows = [(r, (r.p_adjusted_by or {}).get("max-t", r.p_adjusted)) for r in results]
                significant["max-T alone"] = {(r.a, r.b) for r, p in max_t_rows if (p or 0.0) <= results.alpha}
            significant[adjust] = {(r.a, r.b) for r in results if (r.p_adjusted or 0.0) <= results.alpha}
        numbers = [f"{len(pairs):,}" for pairs in significant.values()]
        lacking = len(significant["holm"] - significant["max-T alone"])
        print(name, *numbers, lacking, flush=True)
        size = f"{counts.n_systems} × {results[0].n_units:,}"
        yield f"| {name} | {size} | {len(results):,} | {' | '.join(numbers)} | {lacking} |"


def errors() -> Iterator[str]:
    """Yield a row for each scenario of equal means: how often any difference is found."""
    from benchmarks.calibration.families import NULLS, get_n_topics, measure_errors_and_notes
    from benchmarks.calibration.families import count_errors as found_in

    yield "| 8 systems of one mean, 30 units unless said | max-T alone | `max-t:raw` | Holm | noted as skewed |"
    yield "|---|---|---|---|---|"
    for name, noise in NULLS.items():
        shares = [f"{n / N_SETS:.3f}" for n in found_in(name, N_SETS)]
        noted = measure_errors_and_notes(noise, N_SETS // 4, seed=name, n_topics=get_n_topics(name))[1]
        print(name, *shares, noted, flush=True)
        yield f"| {name} | {' | '.join(shares)} | {noted:.0%} |"


def power() -> Iterator[str]:
    """Yield a row for each scenario of different means: true differences found, and sets with a false one."""
    from benchmarks.calibration.families import ALTERNATIVES
    from benchmarks.calibration.families import power as found_in

    yield "| 8 systems, 30 units | max-T alone | `max-t:raw` | Holm |"
    yield "|---|---|---|---|"
    for name in ALTERNATIVES:
        true, false = found_in(name, N_SETS)
        cells = [f"{t:.1%} ({f:.3f})" for t, f in zip(true, false, strict=True)]
        print(name, *cells, flush=True)
        yield f"| {name} | {' | '.join(cells)} |"


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


def resamples() -> Iterator[str]:
    """Yield a row for each scenario: error rates and power of the studentised bootstrap."""
    from benchmarks.calibration.families import ALTERNATIVES, NULLS, measure_bootstrap_errors, measure_bootstrap_power

    yield "| 8 systems of one mean | `max-t` | max-T alone | `bootstrap-t` | Holm | simultaneous intervals hold |"
    yield "|---|---|---|---|---|---|"
    for name in NULLS:
        shares, coverage = measure_bootstrap_errors(name, N_SETS // 2)
        print(name, *shares, coverage, flush=True)
        yield f"| {name} | {' | '.join(f'{share:.3f}' for share in (*shares, coverage))} |"
    yield "| **share of true differences found** | | | | | |"
    for name in ALTERNATIVES:
        shares = measure_bootstrap_power(name, N_SETS // 4)
        print(name, *shares, flush=True)
        yield f"| {name} | {' | '.join(f'{share:.3f}' for share in shares)} | |"


TABLES = {made.__name__: made for made in (matrices, errors, power, skewness, resamples)}


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
