"""Benchmark cases: each prepares its data, makes a warm-up call and returns the call to time.

A case returns (call, share): the call does `share` of the stated work, so slow peers are timed on
fewer trials and scaled, which the table says.
"""

from __future__ import annotations

import numpy as np

from benchmarks import data, exact, intervals

PAIR_TRIALS = 2**20
LARGE_TRIALS = 10**4
ALL_PAIRS_TRIALS = 10**5
BLEU_TRIALS = 10**5
FAMILY_TRIALS = 2**17


def _build_panel(scores):
    from sigdask.counts import Counts
    from sigdask.metrics import find_metric
    from sigdask.randomization.panels.build import PanelGroups
    from sigdask.randomization.panels.sums import SwapUnits

    counts = Counts.from_scores({f"s{k}": column for k, column in enumerate(scores.T)})
    pairs = np.column_stack(np.triu_indices(counts.n_systems, 1))
    groups = PanelGroups.from_metrics(counts, [find_metric("mean").bind(counts)], pairs)
    [placed] = groups.build(SwapUnits.from_counts(counts, 0))
    return placed.panel


def _prepare_sigdask(scores, n_trials):

    panel = _build_panel(scores)
    panel.tally(n_trials=1000)
    return (lambda: panel.tally(n_trials=n_trials)), 1.0


def _prepare_scipy(scores, n_trials, n_timed):
    from scipy import stats

    a, b = scores.T

    def run(n=n_timed):
        stats.permutation_test(
            (a, b), lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis), permutation_type="samples",
            vectorized=True, n_resamples=n, batch=1000, rng=np.random.default_rng(0),
        )  # fmt: skip

    run(10)
    return run, n_timed / n_trials


def _prepare_evaluatio(scores, n_trials, n_timed=None):
    from evaluatio.inference.hypothesis import paired_permutation_test

    a, b = (column.tolist() for column in scores.T)
    n_timed = n_timed or n_trials
    return (lambda: paired_permutation_test(a, b, n_timed)), n_timed / n_trials


def _prepare_ranx(scores, n_trials, n_timed):
    from ranx.statistical_tests import fisher_randomization_test

    columns = [np.ascontiguousarray(c) for c in scores.T]
    fisher_randomization_test(columns[0], columns[1], 10, 0.01, 0)
    pairs = [(i, j) for i in range(len(columns)) for j in range(i + 1, len(columns))]

    def run():
        for i, j in pairs:
            fisher_randomization_test(columns[i], columns[j], n_timed, 0.01, 0)

    return run, n_timed / n_trials


def _prepare_product(scores, n_trials):
    """Multiply random signs by scores in float32, strict and one-sided, as Google's mt-metrics-eval does."""
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


def prepare_yeh():
    from pathlib import Path

    import sigdask
    from sigdask.api import compare_all
    from sigdask.formats import read

    counts = read(Path(sigdask.__file__).parent / "examples" / "yeh2000.tsv")
    metrics = ["recall", "f1", "precision"]
    compare_all(counts, metrics=metrics, cluster="none", trials=1000)
    return (lambda: compare_all(counts, metrics=metrics, cluster="none")), 1.0


def _prepare_all_pairs(n_threads):
    from sigdask.execution.clusters import connect
    from sigdask.execution.run import count_jobs
    from sigdask.randomization.slabs import Job

    panel = _build_panel(data.load_trec()[0])

    def run(n=2**20):
        with connect("threads", workers=n_threads) as cluster:
            count_jobs([Job(panel, n)], cluster=cluster)

    run(5000)
    return run, 1.0


def _prepare_family(method, n_threads):
    from sigdask.execution.clusters import connect
    from sigdask.execution.run import count_jobs
    from sigdask.randomization.families import MaxTFamily, Relabelling
    from sigdask.randomization.panels.build import FamilyMember
    from sigdask.randomization.slabs import Job

    panel = _build_panel(data.load_trec()[0])
    rows = np.array([[0, row] for row in range(len(panel.pairs))])
    member = (FamilyMember(panel, 0),)
    family = MaxTFamily(member, rows[:, None, :]) if method == "max-t" else Relabelling(member, rows)

    def run(n=FAMILY_TRIALS):
        with connect("threads", workers=n_threads) as cluster:
            count_jobs([Job(family, n)], cluster=cluster)

    run(300)
    return run, 1.0


def _prepare_sketch(method, n_timed=2**9):
    """Prepare the same in plain NumPy: single-step max-T by random signs, Tukey's by permuted labels."""
    scores = data.load_trec()[0]
    i, j = np.triu_indices(scores.shape[1], 1)
    differences = scores[:, i] - scores[:, j]
    rng = np.random.default_rng(0)

    def run(n=n_timed):
        for start in range(0, n, 64):
            n_batch = min(64, n - start)
            if method == "max-t":
                signs = rng.choice([-1.0, 1.0], (n_batch, len(scores)))
                largest = np.abs(signs @ differences).max(axis=1)
            else:
                means = rng.permuted(np.broadcast_to(scores, (n_batch, *scores.shape)), axis=2).sum(axis=1)
                largest = means.max(axis=1) - means.min(axis=1)
            (largest[:, None] >= np.abs(differences.sum(axis=0))).sum(axis=0)

    return run, n_timed / FAMILY_TRIALS


def _build_bleu_panel(counts, metrics):
    from sigdask.metrics import find_metric
    from sigdask.randomization.panels.build import PanelGroups
    from sigdask.randomization.panels.sums import SwapUnits

    pairs = np.column_stack(np.triu_indices(counts.n_systems, 1))
    groups = PanelGroups.from_metrics(counts, [find_metric(m).bind(counts) for m in metrics], pairs)
    [placed] = groups.build(SwapUnits.from_counts(counts, 0))
    return placed.panel


def prepare_bleu_sigdask():

    panel = _build_bleu_panel(data.build_text_counts(*data.draw_texts()), ["BLEU"])
    panel.tally(n_trials=1000)
    return (lambda: panel.tally(n_trials=BLEU_TRIALS)), 1.0


def prepare_bleu_sacrebleu(n_timed=10**4):
    """Prepare sacrebleu's paired test after extraction: its own loop over the segments' statistics."""
    import sacrebleu
    from sacrebleu import significance

    systems, reference = data.draw_texts()
    tool = sacrebleu.BLEU(force=True, references=[reference])
    statistics = [np.array(tool._extract_corpus_statistics(s, None)) for s in systems]  # noqa: SLF001
    base = significance.Result(tool._aggregate_and_compute(statistics[0]).score)  # noqa: SLF001
    tool._extract_corpus_statistics = lambda *_: statistics[1]  # noqa: SLF001

    def run():
        significance._paired_ar_test({"BLEU": (statistics[0], base)}, "s1", systems[1], None, {"BLEU": tool}, n_timed)  # noqa: SLF001

    return run, n_timed / BLEU_TRIALS


def prepare_wmt(n_trials=2**20):
    from sigdask.execution.clusters import connect
    from sigdask.execution.run import count_jobs
    from sigdask.randomization.slabs import Job

    panel = _build_bleu_panel(data.load_wmt24()[0], ["BLEU", "chrF"])

    def run(n=n_trials):
        with connect("threads", workers=2) as cluster:
            count_jobs([Job(panel, n)], cluster=cluster)

    run(1024)
    return run, 1.0


def _prepare_on_cluster(kind, workers, n_trials=2**29):
    """Prepare some 30 s of single-thread work for a cluster that is already started."""
    from sigdask.execution.clusters import connect
    from sigdask.execution.run import count_jobs
    from sigdask.randomization.slabs import Job

    panel = _build_panel(data.draw_scores(1000))
    started = connect(kind, workers=workers)
    cluster = started.__enter__()
    if cluster.client is not None:
        cluster.client.run(lambda: _build_panel(data.draw_scores(1000)).tally(n_trials=100_000))  # on every worker
    count_jobs([Job(panel, 100_000)], cluster=cluster)

    def run():
        count_jobs([Job(panel, n_trials)], cluster=cluster)

    run.close = lambda: started.__exit__(None, None, None)
    run.n_trials = n_trials
    return run, 1.0


CASES = {
    "pair 1,000 items, 2^20 trials": {
        "sigdask": lambda: _prepare_sigdask(data.draw_scores(1000), PAIR_TRIALS),
        "scipy": lambda: _prepare_scipy(data.draw_scores(1000), PAIR_TRIALS, 10_000),
        "evaluatio": lambda: _prepare_evaluatio(data.draw_scores(1000), PAIR_TRIALS, 2**18),
        "ranx": lambda: _prepare_ranx(data.draw_scores(1000), PAIR_TRIALS, 10_000),
    },
    "pair 100,000 items, 10^4 trials": {
        "sigdask": lambda: _prepare_sigdask(data.draw_scores(100_000), LARGE_TRIALS),
        "scipy": lambda: _prepare_scipy(data.draw_scores(100_000), LARGE_TRIALS, 100),
        "evaluatio": lambda: _prepare_evaluatio(data.draw_scores(100_000), LARGE_TRIALS, 2000),
    },
    "Yeh's example, 3 metrics, 2 runs of 2^20": {"sigdask": prepare_yeh},
    "8,256 pairs of 129 x 50, 2^20 trials": {
        "sigdask, 1 thread": lambda: _prepare_all_pairs(1),
        "sigdask, 2 threads": lambda: _prepare_all_pairs(2),
    },
    "8,256 pairs of 129 x 50, max-T, 2^17 trials": {
        "sigdask, 1 thread": lambda: _prepare_family("max-t", 1),
        "sigdask, 2 threads": lambda: _prepare_family("max-t", 2),
        "NumPy sketch, single step": lambda: _prepare_sketch("max-t"),
    },
    "8,256 pairs of 129 x 50, Tukey HSD, 2^17 trials": {
        "sigdask, 1 thread": lambda: _prepare_family("tukey", 1),
        "NumPy sketch": lambda: _prepare_sketch("tukey"),
    },
    "1,225 pairs of 50 x 50, 10^5 trials": {
        "sigdask": lambda: _prepare_sigdask(data.draw_scores(50, 50, 4), ALL_PAIRS_TRIALS),
        "float32 product": lambda: _prepare_product(data.draw_scores(50, 50, 4), ALL_PAIRS_TRIALS),
        "ranx": lambda: _prepare_ranx(data.draw_scores(50, 50, 4), ALL_PAIRS_TRIALS, 200),
    },
    "BLEU of 2,000 segments, 10^5 trials": {"sigdask": prepare_bleu_sigdask, "sacrebleu": prepare_bleu_sacrebleu},
    "325 pairs of 26 systems, BLEU and chrF, 2^20 trials": {"sigdask, 2 threads": prepare_wmt},
    **intervals.CASES,
    **exact.CASES,
    "30 s of work on dask": {
        "1 thread": lambda: _prepare_on_cluster("threads", 1),
        "2 threads": lambda: _prepare_on_cluster("threads", 2),
        "1 worker": lambda: _prepare_on_cluster("local", 1),
        "2 workers": lambda: _prepare_on_cluster("local", 2),
    },
}
