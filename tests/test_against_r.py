"""Live R beside sigdask: p.adjust, and the paired permutation test of package coin."""

import shutil
import subprocess

import numpy as np
import pytest
from panel_of import rng_of

from sigdask.api import compare
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
