"""Live R beside sigdask: p.adjust, coin's paired permutation test and its tests of independence, Fisher's test."""

import shutil
import subprocess

import numpy as np
import pytest
from panel_of import rng_of

from sigdask.api import compare
from sigdask.comparison.labelling.asking import independence
from sigdask.statistics.multiplicity import OF_P_VALUES

RSCRIPT = shutil.which("Rscript")
pytestmark = pytest.mark.skipif(RSCRIPT is None, reason="R is not installed (apt-get install r-base-core r-cran-coin)")
R_NAMES = {"holm": "holm", "hochberg": "hochberg", "bh": "BH", "by": "BY"}


def r(script):
    done = subprocess.run([RSCRIPT, "-e", script], capture_output=True, text=True, check=False)
    if "there is no package called" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return [float(x) for x in done.stdout.split()]


def vector(values):
    return f"c({', '.join(map(repr, values))})"


@pytest.mark.parametrize("method", R_NAMES)
def test_adjusted_p_values_are_those_of_p_adjust(method):
    p = (rng_of(3).random(60) ** 3).tolist()
    p[10:20] = [p[0]] * 10
    out = r(f"cat(sprintf('%.17g', p.adjust({vector(p)}, '{R_NAMES[method]}')))")
    assert OF_P_VALUES[method](p) == pytest.approx(out, rel=1e-12)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_exact_p_values_are_those_of_coins_blocked_test(alternative):
    rng = rng_of(5)
    cases = [rng.integers(0, 10, (2, n)) for n in (4, 8, 12, 16, 20)]
    side = {"two-sided": "two.sided"}.get(alternative, alternative)
    script = "suppressMessages(library(coin));"
    for a, b in cases:
        n = len(a)
        script += (
            f"d <- data.frame(y={vector([*a.tolist(), *b.tolist()])}, s=factor(rep(c('a', 'b'), each={n})), "
            f"t=factor(rep(1:{n}, 2)));"
            f"cat(sprintf('%.17g ', pvalue(oneway_test(y ~ s | t, data=d, distribution=exact(), alternative='{side}'))));"
        )
    want = r(script)
    got = [compare(a, b, alternative=alternative).p_value for a, b in cases]
    assert np.array(got) == pytest.approx(np.array(want), rel=1e-9)


def two_labellings(n, seed):
    rng = rng_of(seed)
    gold = rng.integers(0, 2, n)
    return np.where(rng.random(n) < 0.3, gold, rng.integers(0, 2, n)), gold


@pytest.mark.parametrize("side", ["greater", "less"])
def test_two_labels_are_independent_as_fisher_test_has_it(side):
    a, b = two_labellings(70, seed=8)
    out = r(
        f"cat(sprintf('%.17g', fisher.test({vector(a.tolist())}, {vector(b.tolist())}, alternative='{side}')$p.value))"
    )
    assert independence(a, b, metric="kappa", alternative=side).p_value == pytest.approx(out[0], rel=1e-10)


@pytest.mark.parametrize("blocks", [1, 4])
def test_labels_are_independent_as_coins_exact_distribution_has_it(blocks):
    a, b = two_labellings(48, seed=9)
    strata = np.arange(48) % blocks
    formula = "a ~ b" if blocks == 1 else "a ~ b | s"
    script = (
        f"suppressMessages(library(coin)); d <- data.frame(a={vector(a.tolist())}, b=factor({vector(b.tolist())}), "
        f"s=factor({vector(strata.tolist())}));"
        f"for (side in c('greater', 'less', 'two.sided')) cat(sprintf('%.17g ', pvalue(independence_test({formula}, data=d, "
        "distribution='exact', alternative=side))))"
    )
    less, greater, two_sided = r(script)  # coin sums over the items of the first level of b
    for side, p in (("greater", greater), ("less", less), ("two-sided", two_sided)):
        found = independence(a, b, within=[f"s{k}" for k in strata], alternative=side)
        assert found.p_value == pytest.approx(p, rel=1e-9)


def test_agreement_within_strata_is_the_exact_test_of_mantel_and_haenszel():
    a, b = two_labellings(60, seed=10)
    strata = [k % 3 for k in range(60)]
    table = f"table({vector(a.tolist())}, {vector(b.tolist())}, {vector(strata)})"
    out = r(f"cat(sprintf('%.17g', mantelhaen.test({table}, exact=TRUE, alternative='greater')$p.value))")
    found = independence(a, b, metric="f1[1]", within=[f"s{k}" for k in strata])
    assert found.p_value == pytest.approx(out[0], rel=1e-9)
