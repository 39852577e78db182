"""Tests on the German PP-verb pairs of Krenn and Evert: published precision, and R for every test."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from command import call_sigdask

RSCRIPT = shutil.which("Rscript")
COLUMN_OPTIONS = ("--columns", "gold=is.colloc,item=PP+verb", "--ignore", "freq", "--ignore", "is.SVC",
                  "--ignore", "is.figur")  # fmt: skip


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "assoc_krennppv"


@pytest.fixture(scope="module")
def found(folder):
    result = call_sigdask("rankings", "KrennPPV.tsv", *COLUMN_OPTIONS, "--n", "50,100,200,500,1000,2000,5102", "--trials", "400",
                  "--json", "-", cwd=folder)  # fmt: skip
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.slow
def test_eight_measures_of_5102_candidates_have_their_published_precision(folder, found):
    # reference_scores.json: scikit-learn's average precision, n-best precision by explicit handling of ties
    official = json.loads((folder / "reference_scores.json").read_text())["scores"]["is.colloc"]
    assert (found["n_candidates"], found["n_true"], len(found["measures"])) == (5102, 566, 8)
    assert len(found["precision"]) == 8 * 7
    for row in found["precision"]:
        published = official[row["measure"]]["nbest_precision"][str(row["n"])]
        numbers = [row["precision"], row["precision_lowest"], row["precision_highest"]]
        assert numbers == pytest.approx(
            [published["expected"], published["pessimistic"], published["optimistic"]], abs=6e-7
        )
        assert row["n_tied"] == published["n_tied_at_cutoff"]
        assert row["recall"] == pytest.approx(row["true_positives"] / 566)
        assert row["low"] <= row["precision"] <= row["high"]
    for row in found["measures"]:  # scikit-learn takes tied candidates as one step: a little less than their mean
        assert row["average_precision"] == pytest.approx(
            official[row["measure"]]["average_precision_sklearn"], abs=2e-4
        )


@pytest.mark.slow
@pytest.mark.skipif(RSCRIPT is None, reason="R is not installed (apt-get install r-base-core)")
def test_intervals_and_pointwise_tests_are_those_of_r(found):
    tables = np.array([
        [row[name] for name in ("only_a_true", "only_a_false", "only_b_true", "only_b_false")]
        for row in found["differences"]
    ])  # fmt: skip
    integer_rows = [row for row in found["precision"] if row["true_positives"] == int(row["true_positives"])]
    script = f"""
    t <- matrix(c({", ".join(map(str, tables.ravel()))}), ncol=4, byrow=TRUE)
    for (k in seq_len(nrow(t))) cat(sprintf('%.17g ', fisher.test(matrix(t[k,], 2, byrow=TRUE))$p.value))
    k <- c({", ".join(str(int(row["true_positives"])) for row in integer_rows)}); n <- c({", ".join(str(row["n"]) for row in integer_rows)})
    for (i in seq_along(k)) cat(sprintf('%.17g ', binom.test(k[i], n[i])$conf.int))
    """
    result = subprocess.run([RSCRIPT, "/dev/stdin"], input=script, capture_output=True, text=True, check=True)
    numbers = [float(text) for text in result.stdout.split()]
    p_values = [row["p_fisher"] for row in found["differences"]]
    assert p_values == pytest.approx(numbers[: len(p_values)], rel=1e-6)
    limits = [limit for row in integer_rows for limit in (row["low"], row["high"])]
    assert limits == pytest.approx(numbers[len(p_values) :], abs=1e-9)
