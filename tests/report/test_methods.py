"""Tests of the methods paragraph and its citations, in text, LaTeX and BibTeX."""

import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from command import call_sigdask
from conftest import YEH
from nights import write_plan, write_scores
from pybtex.database import parse_string

from sigdask import compare_all
from sigdask.formats.frames import as_counts
from sigdask.options import Adjust
from sigdask.report.methods import SOURCES, format_bibtex
from sigdask.report.sentences import ADJUSTMENTS, EXACT_METHOD_SOURCES, INTERVAL_METHODS, find_citations
from sigdask.results.comparisons import get_version
from sigdask.statistics.classical import DESCRIPTIONS

SCORES = np.random.default_rng(4).random((40, 3))


def cite_comparison(**options):
    return compare_all(SCORES, **{"trials": 500, "method": "randomization", "interval": "none", **options}).cite()


def test_all_sources_are_bibtex_that_a_parser_reads():
    bibliography = parse_string(format_bibtex(SOURCES), "bibtex")
    assert [*bibliography.entries] == [*SOURCES]
    for key, entry in bibliography.entries.items():
        assert entry.persons["author"], key
        assert entry.fields["title"]
        assert entry.fields["year"].isdigit()


def test_every_word_for_a_method_rests_on_works_that_there_are():
    words = [*ADJUSTMENTS.values(), *INTERVAL_METHODS.values()]
    texts = " ".join([*(method.sentence for method in words), *DESCRIPTIONS.values()])
    assert set(find_citations(texts)) | set(EXACT_METHOD_SOURCES.values()) <= SOURCES.keys()
    assert {*ADJUSTMENTS, "none"} - {"bootstrap-t"} == set(Adjust.__args__)  # a companion of max-t


@pytest.mark.parametrize(
    ("how", "sentence", "keys"),
    [
        ({"adjust": "holm"}, "The p-values were adjusted in families of 3 comparisons by Holm's step-down procedure (Holm 1979).",
         {"holm1979", "phipson2010"}),
        ({}, "by the step-down max-T procedure on the same swaps, studentised (Westfall & Young 1993; Romano & Wolf 2005).",
         {"westfall1993", "romano2005"}),
        ({"alternative": "greater", "second_run": False}, "The p-values are one-sided", {"phipson2010"}),
        ({"method": "exact", "adjust": "none", "trials": None}, None, None),
        ({"interval": "bootstrap", "resamples": 200}, "paired bootstrap (Efron 1987) with 200 resamples", {"efron1987"}),
        ({"tests": "t,mcnemar"}, "the results of the matched-pair t-test (Student 1908) are given", {"student1908"}),
        ({"seed": 11}, "Random numbers are those of Philox4x32-10 (Salmon et al. 2011) with seed 11.", {"salmon2011"}),
    ],
)  # fmt: skip
def test_a_paragraph_tells_what_was_run(how, sentence, keys):
    if sentence is None:
        citation = compare_all(SCORES.round(2), **how, interval="none").cite()
        sentence, keys = "The p-values are exact, over all possible swaps", set()
    else:
        citation = cite_comparison(**how)
    assert sentence in citation.text
    assert keys <= set(citation.keys)
    assert set(parse_string(citation.bibtex, "bibtex").entries) == set(citation.keys)
    assert "[[" not in citation.text + citation.latex
    assert citation.text.startswith("3 systems were compared by mean in 3 comparisons. ")


@pytest.mark.parametrize(("n_news", "size"), [(20, "20 items"), (16, "16 to 24 items")])
def test_a_paragraph_states_the_number_of_units(n_news, size):
    scores = {"a": SCORES[:, 0].tolist(), "b": SCORES[:, 1].tolist()}
    table = {"id": range(40), **scores, "set": ["news"] * n_news + ["law"] * (40 - n_news)}
    by_set = compare_all(as_counts(pd.DataFrame(table), ids="id", groups=["set"]), by="set", trials=500)
    assert f"recomputed on all items of both systems ({size}). " in by_set.cite().text
    assert "recomputed on all items of both systems (40 items). " in cite_comparison().text


def test_each_metric_has_its_own_adjustment(tmp_path):
    """Holm's procedure adjusts p of ranks, and max-T that of sums; no line speaks of one for both."""
    rng = np.random.default_rng(2)
    gold = rng.normal(size=60)
    frame = pd.DataFrame({"gold": gold} | {k: gold + rng.normal(size=60) for k in "ABC"})
    results = compare_all(frame, metrics=["spearman", "pearson"], trials=500, resamples=100)
    assert results.to_dict()["family"] is None
    assert re.search(r"Holm \(spearman\).*max-T[^()]*\(pearson\)", str(results))
    assert results.cite().text.count("n were adjusted in families of 3 comparisons") == 2
    assert " 0 resamples" not in results.cite().text
    assert str(results).count("] unadjusted") == 3  # intervals beside simultaneous ones


@pytest.mark.parametrize(
    ("alternative", "kind"), [("two-sided", "the symmetric studentised"), ("less", "the studentised")]
)
def test_the_bootstrap_of_a_one_sided_test_is_not_symmetric(alternative, kind):
    assert f"{kind} bootstrap of units" in cite_comparison(alternative=alternative).text


def test_the_paragraph_of_a_file_is_that_of_the_results(tmp_path):
    shutil.copy(YEH, tmp_path / "yeh.tsv")
    result = call_sigdask("compare", "yeh.tsv", "-o", "r.json", "-q", cwd=tmp_path)
    assert result.returncode == 0
    text = call_sigdask("cite", "r.json", "--text", cwd=tmp_path).stdout
    assert text.startswith("2 systems were compared by recall, precision and f1 in 3 comparisons. ")
    assert "The p-values are exact, over all possible swaps, and two-sided." in text
    assert "Tango's score method (Tango 1998)" in text
    citation = call_sigdask("cite", "r.json", cwd=tmp_path).stdout
    entries = call_sigdask("cite", "r.json", "--bibtex", cwd=tmp_path).stdout
    latex = call_sigdask("cite", "--latex", "r.json", cwd=tmp_path).stdout
    assert "\\citep{" in latex
    assert "@" not in latex
    assert call_sigdask("cite", "r.json", "--latex", "--bibtex", cwd=tmp_path).stdout == entries
    assert citation == f"{text}\n{entries}"
    assert {"yeh2000", "noreen1989", "sigdask", "tango1998"} <= set(parse_string(entries, "bibtex").entries)


IMPOSSIBLE = [
    ("p_value", 0.001), ("p_value", None), ("a", "b"), ("b", ""), ("n_discordant", 4), ("verdict", "significant"),
    ("exact", {"p_lo": 0.9, "p_hi": 0.25, "method": "enumeration", "guarantee": "exact"}), ("test_set", "other"),
    ("score_a_interval", [4.5, 3.5]), ("subset", {"column": "genre", "value": "news"}), ("metric", "f1"),
    ("difference", 0.9), ("score_a", None), ("n_extreme", 3),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), IMPOSSIBLE)
def test_results_with_an_impossible_or_altered_value_are_neither_shown_nor_cited(tmp_path, key, value):
    document = compare_all({"a": [3, 4, 5], "b": [1, 1, 1]}).to_dict()
    document["results"][0][key] = value
    (tmp_path / "r.json").write_text(json.dumps(document))
    for command in ("show", "cite"):
        answer = call_sigdask(command, "r.json", cwd=tmp_path)
        assert answer.returncode == 2
        assert key.partition("_")[0] in answer.stderr


def test_a_seed_that_is_not_that_of_the_signatures_and_a_result_that_occurs_twice_are_not_cited(tmp_path):
    document = compare_all(SCORES, trials=500, interval="none").to_dict()
    (tmp_path / "r.json").write_text(json.dumps({**document, "seed": 7}))
    assert "result 1: seed is 7, but 0 by its signature" in call_sigdask("cite", "r.json", cwd=tmp_path).stderr
    document["results"] += document["results"][:1]
    (tmp_path / "r.json").write_text(json.dumps(document))
    assert "result 4: occurs twice" in call_sigdask("cite", "r.json", cwd=tmp_path).stderr


def test_a_plan_is_cited_from_its_results(tmp_path):
    write_plan(tmp_path, sets=2, systems=3, trials=500, settings='adjust = "bh"')
    assert call_sigdask("run", "night.toml", "-q", "-o", "r.json", cwd=tmp_path).returncode == 0
    text = call_sigdask("cite", "r.json", "--text", cwd=tmp_path).stdout
    assert "3 systems were compared on set0 and set1 by mean in 6 comparisons. " in text
    assert "The p-values were adjusted in families of 3 comparisons by the procedure of Benjamini" in text


def test_without_results_it_is_said_how_the_program_and_its_test_are_cited(tmp_path):
    output = call_sigdask("cite", cwd=tmp_path).stdout
    assert f"with sigdask {get_version()} (The sigdask developers 2026)." in output
    assert [*parse_string(output.partition("\n\n")[2], "bibtex").entries] == ["noreen1989", "yeh2000", "sigdask"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs TeX Live")
def test_latex_and_bibtex_compile(tmp_path):
    write_scores(tmp_path / "a_b%.csv", 3)
    result = call_sigdask("compare", "a_b%.csv", "--name", "50 % & a_b#", "-o", "r.json", "-q", cwd=tmp_path)
    assert result.returncode == 0
    paragraph = call_sigdask("cite", "r.json", "--latex", "--text", cwd=tmp_path).stdout
    (tmp_path / "p.bib").write_text(format_bibtex(SOURCES))
    (tmp_path / "p.tex").write_text(
        "\\documentclass{article}\\usepackage[utf8]{inputenc}\\usepackage[T1]{fontenc}\\usepackage{natbib}\\begin{document}\n"
        f"{paragraph}\\nocite{{*}}\\bibliographystyle{{plainnat}}\\bibliography{{p}}\\end{{document}}\n"
    )
    latex = ["pdflatex", "-halt-on-error", "p"]
    for command in (latex, ["bibtex", "p"], latex, latex):
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout[-2000:]
    assert not re.findall(r"Citation .* undefined", ran.stdout)
    assert "Warning--" not in (tmp_path / "p.blg").read_text()
