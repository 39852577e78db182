"""What is timed: each case prepares its data and a warm call, and returns the call to time.

A case returns (call, share): the call does `share` of the stated work, so slow peers are timed on
fewer trials and scaled, which the table says.
"""

from __future__ import annotations

import numpy as np

from benchmarks import data, exact, intervals

PAIR = 2**20
LARGE = 10**4
ALL50 = 10**5
BLEU = 10**5
FAMILY = 2**17


def _panel(scores):
    from sigdask.counts import Counts
    from sigdask.metrics import find_metric
    from sigdask.randomization.panels.build import build_panels
    from sigdask.randomization.panels.sums import SwapUnits

    counts = Counts.from_scores({f"s{k}": column for k, column in enumerate(scores.T)})
    pairs = [(i, j) for i in range(counts.n_systems) for j in range(i + 1, counts.n_systems)]
    [placed] = build_panels(counts, SwapUnits.from_counts(counts, 0), [find_metric("mean").bind(counts)], pairs)
    return placed.panel


def _sigdask(scores, n_trials):

    panel = _panel(scores)
    panel.tally(n_trials=1000)
    return (lambda: panel.tally(n_trials=n_trials)), 1.0


def _scipy(scores, n_trials, few):
    from scipy import stats

    a, b = scores.T

    def run(n=few):
        stats.permutation_test(
            (a, b), lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis), permutation_type="samples",
            vectorized=True, n_resamples=n, batch=1000, rng=np.random.default_rng(0),
        )  # fmt: skip

    run(10)
    return run, few / n_trials


def _evaluatio(scores, n_trials, few=None):
    from evaluatio.inference.hypothesis import paired_permutation_test

    a, b = (column.tolist() for column in scores.T)
    few = few or n_trials
    return (lambda: paired_permutation_test(a, b, few)), few / n_trials


def _ranx(scores, n_trials, few):
    from ranx.statistical_tests import fisher_randomization_test

    columns = [np.ascontiguousarray(c) for c in scores.T]
    fisher_randomization_test(columns[0], columns[1], 10, 0.01, 0)
    pairs = [(i, j) for i in range(len(columns)) for j in range(i + 1, len(columns))]

    def run():
        for i, j in pairs:
            fisher_randomization_test(columns[i], columns[j], few, 0.01, 0)

    return run, few / n_trials


def _product(scores, n_trials):
    """Random signs times scores in float32, strict, one-sided: the shape of Google's mt-metrics-eval."""
    values = scores.astype(np.float32)
    rng = np.random.default_rng(0)
    i, j = np.triu_indices(values.shape[1], 1)
    means = values.mean(0)
    observed = means[i] - means[j]

    def run(n=n_trials, batch=1000):
        counts = np.zeros(len(i), np.int64)
        for _ in range(n // batch):
            signs = rng.integers(0, 2, (batch, len(values)), dtype=np.int8).astype(np.float32) * 2 - 1
            totals = signs @ values / np.float32(len(values))  # (batch, n_systems)
            counts += (totals[:, i] - totals[:, j] > observed).sum(0)

    run(1000)
    return run, 1.0


def yeh():
    from pathlib import Path

    import sigdask
    from sigdask.api import compare_all
    from sigdask.formats import read

    counts = read(Path(sigdask.__file__).parent / "examples" / "yeh2000.tsv")
    metrics = ["recall", "f1", "precision"]
    compare_all(counts, metrics=metrics, cluster="none", trials=1000)
    return (lambda: compare_all(counts, metrics=metrics, cluster="none")), 1.0


def _all_pairs(n_threads):
    from sigdask.execution.clusters import connect
    from sigdask.execution.run import count_jobs
    from sigdask.randomization.jobs import Job

    panel = _panel(data.trec()[0])

    def run(n=2**20):
        with connect("threads", workers=n_threads) as cluster:
            count_jobs([Job(panel, n)], cluster=cluster)

    run(5000)
    return run, 1.0


def _family(method, n_threads):
    from sigdask.execution.clusters import connect
    from sigdask.execution.run import count_jobs
    from sigdask.randomization.families.max_t import MaxTFamily
    from sigdask.randomization.families.tukey import Relabelling
    from sigdask.randomization.jobs import Job
    from sigdask.randomization.panels.families import FamilyMember

    panel = _panel(data.trec()[0])
    rows = np.array([[0, row] for row in range(len(panel.pairs))])
    member = (FamilyMember(panel, 0),)
    family = MaxTFamily(member, rows[:, None, :], studentised=True) if method == "max-t" else Relabelling(member, rows)

    def run(n=FAMILY):
        with connect("threads", workers=n_threads) as cluster:
            count_jobs([Job(family, n)], cluster=cluster)

    run(300)
    return run, 1.0


def _sketch(method, few=2**9):
    """The same in plain NumPy: single-step max-T by a product of signs, Tukey's by permuting labels."""
    scores = data.trec()[0]
    i, j = np.triu_indices(scores.shape[1], 1)
    differences = scores[:, i] - scores[:, j]
    rng = np.random.default_rng(0)

    def run(n=few):
        for start in range(0, n, 64):
            here = min(64, n - start)
            if method == "max-t":
                signs = rng.choice([-1.0, 1.0], (here, len(scores)))
                largest = np.abs(signs @ differences).max(axis=1)
            else:
                means = rng.permuted(np.broadcast_to(scores, (here, *scores.shape)), axis=2).sum(axis=1)
                largest = means.max(axis=1) - means.min(axis=1)
            (largest[:, None] >= np.abs(differences.sum(axis=0))).sum(axis=0)

    return run, few / FAMILY


def _bleu_panel(counts, metrics):
    from sigdask.metrics import find_metric
    from sigdask.randomization.panels.build import build_panels
    from sigdask.randomization.panels.sums import SwapUnits

    pairs = [(i, j) for i in range(counts.n_systems) for j in range(i + 1, counts.n_systems)]
    [placed] = build_panels(
        counts, SwapUnits.from_counts(counts, 0), [find_metric(m).bind(counts) for m in metrics], pairs
    )
    return placed.panel


def bleu_sigdask():

    panel = _bleu_panel(data.text_counts(*data.texts()), ["BLEU"])
    panel.tally(n_trials=1000)
    return (lambda: panel.tally(n_trials=BLEU)), 1.0


def bleu_sacrebleu(few=10**4):
    """sacrebleu's paired test after extraction: its own loop over the segments' statistics."""
    import sacrebleu
    from sacrebleu import significance

    systems, reference = data.texts()
    tool = sacrebleu.BLEU(force=True, references=[reference])
    statistics = [np.array(tool._extract_corpus_statistics(s, None)) for s in systems]  # noqa: SLF001
    base = significance.Result(tool._aggregate_and_compute(statistics[0]).score)  # noqa: SLF001
    tool._extract_corpus_statistics = lambda *_: statistics[1]  # noqa: SLF001

    def run():
        significance._paired_ar_test({"BLEU": (statistics[0], base)}, "s1", systems[1], None, {"BLEU": tool}, few)  # noqa: SLF001

    return run, few / BLEU


def wmt(n_trials=2**20):
    from sigdask.execution.clusters import connect
    from sigdask.execution.run import count_jobs
    from sigdask.randomization.jobs import Job

    panel = _bleu_panel(data.wmt24()[0], ["BLEU", "chrF"])

    def run(n=n_trials):
        with connect("threads", workers=2) as cluster:
            count_jobs([Job(panel, n)], cluster=cluster)

    run(1024)
    return run, 1.0


def _on(kind, workers, n_trials=2**29):
    """Some 30 s of work on one thread, on a cluster that is started before."""
    from sigdask.execution.clusters import connect
    from sigdask.execution.run import count_jobs
    from sigdask.randomization.jobs import Job

    panel = _panel(data.scores(1000))
    started = connect(kind, workers=workers)
    cluster = started.__enter__()
    if cluster.client is not None:
        cluster.client.run(lambda: _panel(data.scores(1000)).tally(n_trials=100_000))  # on every worker
    count_jobs([Job(panel, 100_000)], cluster=cluster)

    def run():
        count_jobs([Job(panel, n_trials)], cluster=cluster)

    run.close = lambda: started.__exit__(None, None, None)
    run.n_trials = n_trials
    return run, 1.0


CASES = {
    "pair 1,000 items, 2^20 trials": {
        "sigdask": lambda: _sigdask(data.scores(1000), PAIR),
        "scipy": lambda: _scipy(data.scores(1000), PAIR, 10_000),
        "evaluatio": lambda: _evaluatio(data.scores(1000), PAIR, 2**18),
        "ranx": lambda: _ranx(data.scores(1000), PAIR, 10_000),
    },
    "pair 100,000 items, 10^4 trials": {
        "sigdask": lambda: _sigdask(data.scores(100_000), LARGE),
        "scipy": lambda: _scipy(data.scores(100_000), LARGE, 100),
        "evaluatio": lambda: _evaluatio(data.scores(100_000), LARGE, 2000),
    },
    "Yeh's example, 3 metrics, 2 runs of 2^20": {"sigdask": yeh},
    "8,256 pairs of 129 x 50, 2^20 trials": {
        "sigdask, 1 thread": lambda: _all_pairs(1),
        "sigdask, 2 threads": lambda: _all_pairs(2),
    },
    "8,256 pairs of 129 x 50, max-T, 2^17 trials": {
        "sigdask, 1 thread": lambda: _family("max-t", 1),
        "sigdask, 2 threads": lambda: _family("max-t", 2),
        "NumPy sketch, single step": lambda: _sketch("max-t"),
    },
    "8,256 pairs of 129 x 50, Tukey HSD, 2^17 trials": {
        "sigdask, 1 thread": lambda: _family("tukey", 1),
        "NumPy sketch": lambda: _sketch("tukey"),
    },
    "1,225 pairs of 50 x 50, 10^5 trials": {
        "sigdask": lambda: _sigdask(data.scores(50, 50, 4), ALL50),
        "float32 product": lambda: _product(data.scores(50, 50, 4), ALL50),
        "ranx": lambda: _ranx(data.scores(50, 50, 4), ALL50, 200),
    },
    "BLEU of 2,000 segments, 10^5 trials": {"sigdask": bleu_sigdask, "sacrebleu": bleu_sacrebleu},
    "325 pairs of 26 systems, BLEU and chrF, 2^20 trials": {"sigdask, 2 threads": wmt},
    **intervals.CASES,
    **exact.CASES,
    "30 s of work on dask": {
        "1 thread": lambda: _on("threads", 1),
        "2 threads": lambda: _on("threads", 2),
        "1 worker": lambda: _on("local", 1),
        "2 workers": lambda: _on("local", 2),
    },
}
