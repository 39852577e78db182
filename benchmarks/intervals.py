"""Benchmark cases of intervals: resampling and everything computed from the resamples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks import data

BLEU_RESAMPLES = 10**5
MEAN_RESAMPLES = 10**4


def _prepare_intervals(counts, metric, n_resamples):
    from sigdask.analysis.comparison.intervals import IntervalJobs
    from sigdask.analysis.comparison.pairs import CompareSpec, list_comparisons
    from sigdask.execution.run import count_jobs

    comparisons = list_comparisons(counts, CompareSpec([metric], interval="bootstrap"))  # extraction is not timed

    def run(n=n_resamples):
        spec = replace(comparisons.spec, resamples=n)
        intervals = IntervalJobs.from_comparisons(replace(comparisons, spec=spec))
        jobs = [part.job for part in intervals.cells]
        intervals.build_columns(dict(zip(jobs, count_jobs(jobs, cluster="none"), strict=True)))

    run(100)
    return run, 1.0


def prepare_bleu_sigdask():
    return _prepare_intervals(data.build_text_counts(*data.draw_texts()), "BLEU", BLEU_RESAMPLES)


def prepare_bleu_sacrebleu(n_timed=2000):
    """Prepare sacrebleu's paired bootstrap after extraction."""
    import sacrebleu
    from sacrebleu import significance

    systems, reference = data.draw_texts()
    tool = sacrebleu.BLEU(force=True, references=[reference])
    statistics = [np.array(tool._extract_corpus_statistics(s, None)) for s in systems]  # noqa: SLF001
    base = significance.Result(tool._aggregate_and_compute(statistics[0]).score)  # noqa: SLF001
    tool._extract_corpus_statistics = lambda *_: statistics[1]  # noqa: SLF001

    def run():
        significance._paired_bs_test({"BLEU": (statistics[0], base)}, "s1", systems[1], None, {"BLEU": tool}, n_timed)  # noqa: SLF001

    return run, n_timed / BLEU_RESAMPLES


def prepare_means_sigdask():
    from sigdask.counts import Counts

    a, b = data.draw_scores(1000).T
    return _prepare_intervals(Counts.from_scores({"a": a, "b": b}), "mean", MEAN_RESAMPLES)


def prepare_means_scipy():
    from scipy import stats

    a, b = data.draw_scores(1000).T

    def run(n=MEAN_RESAMPLES):
        stats.bootstrap(
            (a, b), lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis), paired=True, vectorized=True,
            n_resamples=n, batch=1000, method="BCa", rng=np.random.default_rng(0),
        )  # fmt: skip

    run(10)
    return run, 1.0


def prepare_all_pairs():
    from sigdask.counts import Counts

    scores = data.load_trec()[0]
    return _prepare_intervals(
        Counts.from_scores({f"s{k}": column for k, column in enumerate(scores.T)}), "mean", MEAN_RESAMPLES
    )


CASES = {
    "intervals: BLEU of 2,000 segments, 10^5 resamples": {
        "sigdask": prepare_bleu_sigdask,
        "sacrebleu": prepare_bleu_sacrebleu,
    },
    "intervals: pair of 1,000 items, 10^4 resamples, BCa": {
        "sigdask": prepare_means_sigdask,
        "scipy": prepare_means_scipy,
    },
    "intervals: 8,256 pairs of 129 x 50, 10^4 resamples, BCa": {"sigdask": prepare_all_pairs},
}
