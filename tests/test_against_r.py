"""Live R beside sigdask: p.adjust, and the paired permutation test of package coin."""

import shutil
import subprocess

import numpy as np
import pytest
from panel_of import rng_of

from sigdask.api import compare, compare_all
from sigdask.comparison.comparisons import bind
from sigdask.comparison.request import Wanted
from sigdask.formats import read
from sigdask.randomization.panels.build import Sharing
from sigdask.randomization.panels.sums import Units
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


RESAMPLES = 20_000
NEAR = 5 * np.sqrt(2 * 0.025 * 0.975 / RESAMPLES) / 0.0584
"""Five Monte Carlo errors of the difference of two ends, in standard errors: 0.0584 is the normal density at 1.96."""


def boots(values, statistic, file):
    """Ends of percentile and BCa intervals of R's boot, of columns by unit, and its standard error."""
    np.savetxt(file, values, fmt="%.17g")
    return r(
        f"suppressMessages(library(boot)); set.seed(1); d <- as.matrix(read.table('{file}'));"
        f"f <- function(d, i) {{ s <- colSums(d[i,]); {statistic} }}; b <- boot(d, f, {RESAMPLES});"
        "L <- empinf(data=d, statistic=f, type='jack', stype='i');"
        "ci <- boot.ci(b, type=c('perc', 'bca'), L=L);"
        "cat(sprintf('%.17g', c(ci$percent[4:5], ci$bca[4:5], sd(b$t))))"
    )


def test_intervals_of_real_topic_means_are_those_of_boot(shared_data, tmp_path):
    scores = read(shared_data / "matrix_trec_urbano" / "adhoc8_ap.csv").field("score")[:, [124, 125]]
    *ends, error = boots(scores, "(s[1] - s[2]) / nrow(d)", tmp_path / "d")
    found = compare(*scores.T, interval="bootstrap", resamples=RESAMPLES, trials=10).interval
    got = (*found.percentile, found.low, found.high)
    assert got == pytest.approx(tuple(ends), abs=NEAR * error + 1e-12)


@pytest.mark.slow
def test_intervals_of_real_f1_by_sentence_are_those_of_boot(shared_data, tmp_path):
    folder = shared_data / "seqlab_wnut17"
    files = (folder / "submissions" / name for name in ("mic-cis.txt", "flytxt"))
    counts = read(*files, gold=folder / "emerging.test.annotated", format="conll")
    [metric] = [bind(m, counts) for m in Wanted(metrics=["f1"]).found(counts)]
    [placed] = Sharing.of(counts, [metric], np.array([[0, 1]])).panels(Units.of(counts, 0), every_unit=True)
    panel = placed.panel
    fields = panel.values.astype(int)[:, :, list(panel.metrics[0].fields)]
    form = panel.ratio(0)
    above, below = (np.array(w[0]) for w in (form.numerators, form.denominators))
    columns = np.column_stack([fields[:, s] @ w for s in (0, 1) for w in (above, below)])
    *ends, error = boots(columns, "s[1] / s[2] - s[3] / s[4]", tmp_path / "d")
    [found] = compare_all(counts, metrics=["f1"], interval="bootstrap", resamples=RESAMPLES, trials=10)
    got = (*found.interval.percentile, found.interval.low, found.interval.high)
    assert got == pytest.approx(tuple(ends), abs=NEAR * error)
