"""Tests against live R: permutation tests of coin, classical tests, tests of independence."""

import shutil
import subprocess

import numpy as np
import pytest
from builders import build_rng

from sigdask import compare, compare_all, independence
from sigdask.analysis.comparison.pairs import CompareSpec, bind_metric
from sigdask.formats import Options, parse_maps, read
from sigdask.randomization.panels.build import PanelGroups
from sigdask.randomization.panels.sums import SwapUnits

RSCRIPT = shutil.which("Rscript")
pytestmark = pytest.mark.skipif(
    RSCRIPT is None, reason="R is not installed (apt-get install r-base-core r-cran-coin r-cran-exactranktests)"
)


def run_r(script):
    result = subprocess.run([RSCRIPT, "/dev/stdin"], input=script, capture_output=True, text=True, check=False)
    if "there is no package called" in result.stderr:
        pytest.skip(result.stderr.strip().splitlines()[-1])
    assert result.returncode == 0, result.stderr
    return [float(x) for x in result.stdout.split()]


def format_vector(values):
    return f"c({', '.join(map(repr, values))})"


@pytest.mark.slow
def test_exact_p_values_are_those_of_coins_blocked_test():
    rng = build_rng(5)
    data = [rng.integers(0, 10, (2, n)) for n in (4, 8, 12, 16, 20)]
    cases = [(a, b, alternative) for a, b in data for alternative in R_SIDES]
    script = "suppressMessages(library(coin));"
    for a, b, alternative in cases:
        n = len(a)
        script += (
            f"d <- data.frame(y={format_vector([*a.tolist(), *b.tolist()])}, s=factor(rep(c('a', 'b'), each={n})), "
            f"t=factor(rep(1:{n}, 2)));"
            f"cat(sprintf('%.17g ', pvalue(oneway_test(y ~ s | t, data=d, distribution=exact(), alternative='{R_SIDES[alternative]}'))));"
        )
    want = run_r(script)
    got = [compare(a, b, alternative=alternative, interval="none").p_value for a, b, alternative in cases]
    assert np.array(got) == pytest.approx(np.array(want), rel=1e-9)


R_SIDES = {"two-sided": "two.sided", "greater": "greater", "less": "less"}
PAIRS = [("run1", "run2"), ("run40", "run41"), ("run7", "run99"), ("run12", "run13"), ("run60", "run77")]
HANS_LABELS = "non-entailment=neutral,contradiction"
QUICK_OPTIONS = {"trials": 99, "second_run": False, "adjust": "none", "tests": "all"}

TOPICS_SCRIPT = """
    paired <- t.test(a, b, paired=TRUE, alternative=side)
    two <- t.test(a, b, var.equal=TRUE, alternative=side)
    sign <- binom.test(sum(a > b), sum(a != b), alternative=side)
    ranked <- wilcox.exact(a, b, paired=TRUE, alternative=side, exact=TRUE)
    coins <- function(zeros) pvalue(wilcoxsign_test(a ~ b, zero.method=zeros, distribution=exact(), alternative=side))
    cat(sprintf('%.17g ', c(paired$statistic, paired$p.value, two$statistic, two$p.value, sign$p.value,
        ranked$statistic, ranked$p.value, coins('Wilcoxon'))));"""

COIN_SCRIPT = """
    coins <- function(zeros) pvalue(wilcoxsign_test(a ~ b, zero.method=zeros, alternative=side))
    cat(sprintf('%.17g ', c(coins('Wilcoxon'))));"""

ANSWERS_SCRIPT = """
    exact <- binom.test(wins, wins + losses, alternative=side)
    shares <- prop.test(right, c(n, n), correct=FALSE, alternative=side)
    chi2 <- chisq.test(rbind(right, n - right), correct=FALSE)
    cat(sprintf('%.17g ', c(exact$p.value, shares$p.value, chi2$statistic, chi2$p.value)));"""


def index_tests(result):
    return {t.name: t for t in result.tests}


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["ap", "p10"])
def test_the_tests_of_real_topics_are_rs(shared_data, measure):
    """129 systems of TREC-8 ad hoc, 50 topics: P@10 has as many ties and zeros as scores can have."""
    data = read(shared_data / "matrix_trec_urbano" / f"adhoc8_{measure}.csv")
    steps = dict(zip(data.systems, np.rint(data.field("score") * 10**4).T.astype(int).tolist(), strict=True))
    script, got = "suppressMessages({library(coin); library(exactRankTests)});", []
    for side, its_name in R_SIDES.items():
        for result in compare_all(data, pairs=PAIRS, alternative=side, metrics=["mean"], **QUICK_OPTIONS):
            script += f"a <- {format_vector(steps[result.a])}; b <- {format_vector(steps[result.b])}; side <- '{its_name}'; {TOPICS_SCRIPT}"
            tests = index_tests(result)
            ranked, two = tests["wilcoxon"], tests["two-sample-t"]
            got += [tests["t"].statistic, tests["t"].p_value, two.statistic, two.p_value, tests["sign"].p_value]
            got += [ranked.statistic, ranked.p_value, ranked.p_value]
            assert ranked.detail.startswith("exact")
    assert np.array(got) == pytest.approx(np.array(run_r(script)), rel=1e-9)


@pytest.mark.slow
def test_wilcoxons_normal_approximation_is_coins():
    a, b = build_rng(6).integers(0, 12, (2, 300)).tolist()
    script, got = f"suppressMessages(library(coin)); a <- {format_vector(a)}; b <- {format_vector(b)};", []
    for side, its_name in R_SIDES.items():
        script += f"side <- '{its_name}'; {COIN_SCRIPT}"
        tests = compare(a, b, alternative=side, trials=99, tests="wilcoxon").tests
        assert all(t.detail.startswith("normal approximation") for t in tests)
        got += [t.p_value for t in tests]
    assert np.array(got) == pytest.approx(np.array(run_r(script)), rel=1e-9)


@pytest.mark.slow
def test_the_tests_of_30_000_right_and_wrong_answers_are_rs(shared_data):
    """Two models on HANS."""
    folder = shared_data / "class_hans"
    models = [folder / "esim_heur_preds.txt", folder / "spinn_preds_heur.txt"]
    data = read(*models, gold=folder / "gold.csv", options=Options(label_map=parse_maps([HANS_LABELS])))
    is_correct = data.field("correct").astype(int)
    wins, losses = ((is_correct[:, 0] > is_correct[:, 1]).sum(), (is_correct[:, 0] < is_correct[:, 1]).sum())
    script = f"wins <- {wins}; losses <- {losses}; n <- {len(is_correct)}; right <- {format_vector(is_correct.sum(axis=0).tolist())};"
    want = np.array(
        run_r(script + "".join(f"side <- '{name}'; {ANSWERS_SCRIPT}" for name in R_SIDES.values()))
    ).reshape(3, 4)
    for side, (exact, shares, statistic, p) in zip(R_SIDES, want.tolist(), strict=True):
        [result] = compare_all(data, metrics=["accuracy"], alternative=side, **QUICK_OPTIONS)
        tests = index_tests(result)
        assert tests["mcnemar"].p_value == tests["sign"].p_value == pytest.approx(exact, rel=1e-9)
        assert tests["binomial"].p_value == pytest.approx(shares, rel=1e-9)
        assert tests["binomial"].statistic ** 2 == pytest.approx(statistic, rel=1e-9)
        assert side != "two-sided" or tests["binomial"].p_value == pytest.approx(p, rel=1e-9)


RESAMPLES = 20_000
BOOT_TOLERANCE = 5 * np.sqrt(2 * 0.025 * 0.975 / RESAMPLES) / 0.0584
"""Five Monte Carlo errors of the difference of two ends, in standard errors: 0.0584 is the normal density at 1.96."""


def run_boot(values, statistic, file):
    """Return limits of R's percentile and BCa intervals, of columns by unit, and its standard error."""
    np.savetxt(file, values, fmt="%.17g")
    return run_r(
        f"suppressMessages(library(boot)); set.seed(1); d <- as.matrix(read.table('{file}'));"
        f"f <- function(d, i) {{ s <- colSums(d[i,]); {statistic} }}; b <- boot(d, f, {RESAMPLES});"
        "L <- empinf(data=d, statistic=f, type='jack', stype='i');"
        "ci <- boot.ci(b, type=c('perc', 'bca'), L=L);"
        "cat(sprintf('%.17g', c(ci$percent[4:5], ci$bca[4:5], sd(b$t))))"
    )


@pytest.mark.slow
def test_intervals_of_real_topic_means_are_those_of_boot(shared_data, tmp_path):
    scores = read(shared_data / "matrix_trec_urbano" / "adhoc8_ap.csv").field("score")[:, [124, 125]]
    *ends, error = run_boot(scores, "(s[1] - s[2]) / nrow(d)", tmp_path / "d")
    interval = compare(*scores.T, interval="bootstrap", resamples=RESAMPLES, trials=10).interval
    got = (*interval.percentile, interval.low, interval.high)
    assert got == pytest.approx(tuple(ends), abs=BOOT_TOLERANCE * error + 1e-12)


@pytest.mark.slow
def test_intervals_of_real_f1_by_sentence_are_those_of_boot(shared_data, tmp_path):
    folder = shared_data / "seqlab_wnut17"
    files = (folder / "submissions" / name for name in ("mic-cis.txt", "flytxt"))
    counts = read(*files, gold=folder / "emerging.test.annotated", format="conll")
    [metric] = [bind_metric(m, counts) for m in CompareSpec(metrics=["f1"]).find_metrics(counts)]
    [placed] = PanelGroups.from_metrics(counts, [metric], np.array([[0, 1]])).build(
        SwapUnits.from_counts(counts, 0), every_unit=True
    )
    panel = placed.panel
    fields = panel.values.astype(int)[:, :, list(panel.metrics[0].fields)]
    form = panel.get_ratio(0)
    above, below = (np.array(w[0]) for w in (form.numerators, form.denominators))
    columns = np.column_stack([fields[:, s] @ w for s in (0, 1) for w in (above, below)])
    *ends, error = run_boot(columns, "s[1] / s[2] - s[3] / s[4]", tmp_path / "d")
    [result] = compare_all(counts, metrics=["f1"], interval="bootstrap", resamples=RESAMPLES, trials=10)
    got = (*result.interval.percentile, result.interval.low, result.interval.high)
    assert got == pytest.approx(tuple(ends), abs=BOOT_TOLERANCE * error)


def draw_labellings(n, seed):
    rng = build_rng(seed)
    gold = rng.integers(0, 2, n)
    return np.where(rng.random(n) < 0.3, gold, rng.integers(0, 2, n)), gold


@pytest.mark.slow
def test_labels_are_independent_as_coins_exact_distribution_has_it():
    a, b = draw_labellings(48, seed=9)
    script = (
        f"suppressMessages(library(coin)); d <- data.frame(a={format_vector(a.tolist())}, "
        f"b=factor({format_vector(b.tolist())}), s=factor(rep(0:3, 12)));"
        "for (formula in c(a ~ b, a ~ b | s)) for (side in c('less', 'greater', 'two.sided'))"
        "cat(sprintf('%.17g ', pvalue(independence_test(formula, data=d, distribution='exact', alternative=side))));"
    )
    want = iter(run_r(script))  # coin sums over the items of the first level of b: its sides are the other ones
    for blocks in (1, 4):
        for side in ("greater", "less", "two-sided"):
            result = independence(a, b, within=[f"s{k % blocks}" for k in range(48)], alternative=side)
            assert result.p_value == pytest.approx(next(want), rel=1e-9)
    assert not list(want)


def test_agreement_within_strata_is_the_exact_test_of_mantel_and_haenszel():
    a, b = draw_labellings(60, seed=10)
    strata = [k % 3 for k in range(60)]
    table = f"table({format_vector(a.tolist())}, {format_vector(b.tolist())}, {format_vector(strata)})"
    out = run_r(f"cat(sprintf('%.17g', mantelhaen.test({table}, exact=TRUE, alternative='greater')$p.value))")
    result = independence(a, b, metric="f1[1]", within=[f"s{k}" for k in strata])
    assert result.p_value == pytest.approx(out[0], rel=1e-9)
