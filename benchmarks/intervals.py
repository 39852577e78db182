"""Cases of intervals, as those of `benchmarks.cases`: resamples, and all that is made of them."""

from __future__ import annotations

import numpy as np

from benchmarks import data

BLEU = 10**5
MEANS = 10**4


def _alone(counts, metric, n_resamples):
    from sigdask.analysis.comparison.intervals.plan import IntervalJobs
    from sigdask.analysis.comparison.jobs import ComparisonJobs
    from sigdask.analysis.comparison.spec import CompareSpec, IntervalSpec
    from sigdask.execution.run import count_jobs

    wanted = CompareSpec(metrics=[metric]).bind_metrics(counts)  # extraction is not timed
    exchange = ComparisonJobs.from_spec(counts, wanted, second_run=False)

    def run(n=n_resamples):
        sought = IntervalJobs.from_comparisons(exchange, IntervalSpec("bootstrap", resamples=n))
        sought.build_columns(dict(zip(sought.jobs, count_jobs(sought.jobs, cluster="none"), strict=True)))

    run(100)
    return run, 1.0


def bleu_sigdask():
    return _alone(data.text_counts(*data.texts()), "BLEU", BLEU)


def bleu_sacrebleu(few=2000):
    """sacrebleu's paired bootstrap after extraction."""
    import sacrebleu
    from sacrebleu import significance

    systems, reference = data.texts()
    tool = sacrebleu.BLEU(force=True, references=[reference])
    statistics = [np.array(tool._extract_corpus_statistics(s, None)) for s in systems]  # noqa: SLF001
    base = significance.Result(tool._aggregate_and_compute(statistics[0]).score)  # noqa: SLF001
    tool._extract_corpus_statistics = lambda *_: statistics[1]  # noqa: SLF001

    def run():
        significance._paired_bs_test({"BLEU": (statistics[0], base)}, "s1", systems[1], None, {"BLEU": tool}, few)  # noqa: SLF001

    return run, few / BLEU


def means_sigdask():
    from sigdask.counts import Counts

    a, b = data.scores(1000).T
    return _alone(Counts.from_scores({"a": a, "b": b}), "mean", MEANS)


def means_scipy():
    from scipy import stats

    a, b = data.scores(1000).T

    def run(n=MEANS):
        stats.bootstrap(
            (a, b), lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis), paired=True, vectorized=True,
            n_resamples=n, batch=1000, method="BCa", rng=np.random.default_rng(0),
        )  # fmt: skip

    run(10)
    return run, 1.0


def all_pairs():
    from sigdask.counts import Counts

    scores = data.trec()[0]
    return _alone(Counts.from_scores({f"s{k}": column for k, column in enumerate(scores.T)}), "mean", MEANS)


CASES = {
    "intervals: BLEU of 2,000 segments, 10^5 resamples": {"sigdask": bleu_sigdask, "sacrebleu": bleu_sacrebleu},
    "intervals: pair of 1,000 items, 10^4 resamples, BCa": {"sigdask": means_sigdask, "scipy": means_scipy},
    "intervals: 8,256 pairs of 129 x 50, 10^4 resamples, BCa": {"sigdask": all_pairs},
}
