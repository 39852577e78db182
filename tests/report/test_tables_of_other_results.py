"""Tests of paper tables of rankings, independence tests and power, against the JSON."""

import json
import math

import numpy as np
import pytest
from command import call_sigdask
from paper_tables import HOSTILE_NAMES, compile_paper, parse_tables

from sigdask.counts import Candidates, Counts
from sigdask.errors import InputError
from sigdask.report.analyses import independence_all, load_results, power, rankings


def evaluate_rankings(names=("one", "two", "three"), **options):
    rng = np.random.default_rng(4)
    gold = rng.random(120) < 0.3
    scores = {name: gold * (k + 1) / 6 + rng.random(120) for k, name in enumerate(names)}
    return rankings(Candidates(gold, scores), **{"n": [10, 40], "trials": 99} | options)


def compute_power(names="abc", **options):
    rng = np.random.default_rng(4)
    scores = {name: rng.random(50) + k / 20 for k, name in enumerate(names)}
    return power(Counts.from_scores(scores), metrics=["mean"], samples=100, **options)


def compute_independence(names="abc"):
    rng = np.random.default_rng(4)
    gold = rng.choice(["x", "y"], 40)
    labels = {name: np.where(rng.random(40) < 0.2 + k / 3, gold, "x") for k, name in enumerate(names)}
    return independence_all(Counts.from_labels([*gold], {k: [*v] for k, v in labels.items()}), metrics=["accuracy"])


def test_a_table_of_measures_has_precision_of_the_json_with_the_best_in_bold():
    results = evaluate_rankings()
    measure_rows, pairs = parse_tables(results.to_markdown())
    header, *rows = measure_rows
    assert [text for text, _ in header] == ["measure", "AP", "n = 10", "n = 40"]
    measures = {row_dict["measure"]: row_dict for row_dict in results.to_dict()["measures"]}
    precision = {(row["measure"], row["n"]): row["precision"] for row in results.to_dict()["precision"]}
    for (name, _), (average, _), *cells in rows:
        assert average == f"{measures[name]['average_precision']:.4f}"
        assert [text.split()[0] for text, _ in cells] == [f"{100 * precision[name, n]:.1f}" for n in (10, 40)]
    averages = {name: row_dict["average_precision"] for name, row_dict in measures.items()}
    assert [name for (name, _), (_, bold), *_ in rows if bold] == [max(averages, key=averages.get)]
    differences = {(row["a"], row["b"], row["n"]): row for row in results.to_dict()["differences"]}
    for row in pairs[1:]:
        (a, _), (b, _), *better = row
        for sign, (text, _) in zip((1, -1), better, strict=True):
            rows = [differences[a, b, n] for n in (10, 40)]
            found = [str(r["n"]) for r in rows if r["p_adjusted"] <= 0.05 and sign * r["difference"] > 0]
            assert text == ("all" if len(found) == 2 else ", ".join(found) or "–")


def test_a_table_of_independence_has_score_chance_and_p():
    results = compute_independence()
    [[header, *rows]] = parse_tables(results.to_markdown())
    assert [text for text, _ in header] == [
        "A", "B", "metric", "score", "by chance", "unadjusted p", "adjusted p", "method",
    ]  # fmt: skip
    for row, row_dict in zip(rows, results.to_dict()["results"], strict=True):
        texts = [text for text, _ in row]
        assert texts[:3] == [row_dict[key] for key in ("a", "b", "metric")]
        assert texts[3:5] == [f"{row_dict[key]:.4f}" for key in ("score", "expected")]
        assert "*" not in texts[5]
        assert ("*" in texts[6]) == (row_dict["p_adjusted"] <= 0.05)


def test_a_table_of_power_has_units_and_differences():
    results = compute_power(difference=0.1)
    [[header, *rows]] = parse_tables(results.to_markdown())
    assert [text for text, _ in header] == [
        "A", "B", "metric", "A - B", "units for 0.1", "power of 50", "detectable by 50", "how",
    ]  # fmt: skip
    frame = results.to_frame()
    for name in ("needed", "detectable"):
        estimates = [getattr(result, name) for result in results]
        for key, column in (("value", name), ("low", f"{name}_low"), ("high", f"{name}_high")):
            assert frame[column].tolist() == [getattr(estimate, key) for estimate in estimates]
    assert frame["at_wanted_power"].tolist() == [result.at_wanted.power for result in results]
    for row, result in zip(rows, results, strict=True):
        shown = [row[4][0].split()[0].strip("~"), row[6][0].split()[0].strip("~")]
        assert shown == [f"{result.needed.value:,.0f}", f"{result.detectable.value:.3g}"]


@pytest.mark.parametrize("found", [evaluate_rankings, compute_power, compute_independence])
def test_hostile_names_are_text_and_frames_have_the_rows(found):
    results = found(HOSTILE_NAMES[:6])
    for table in parse_tables(results.to_markdown()):
        assert {row[0][0] for row in table[1:]} <= {*HOSTILE_NAMES}
    assert "<script>" not in results._repr_html_()
    assert "&lt;script&gt;" in results._repr_html_()
    assert len(results.to_frame()) == (12 if found is evaluate_rankings else 15 if found is compute_power else 6)


@pytest.mark.parametrize("compute", [evaluate_rankings, compute_power, compute_independence])
def test_their_json_is_read_again_and_refused_if_a_number_is_impossible(compute, tmp_path):
    path, computed = tmp_path / "results.json", compute().to_dict()
    path.write_text(json.dumps(computed))
    assert load_results(path).to_dict() == computed
    for seed in (math.nan, 10**400, "nan"):
        path.write_text(json.dumps(computed | {"seed": seed}))
        with pytest.raises(InputError, match=r"results\.json"):
            load_results(path)


def test_an_end_of_an_interval_that_was_altered_by_hand_is_shown(tmp_path):
    path, computed = tmp_path / "results.json", evaluate_rankings().to_dict()
    computed["precision"][0]["low"] = 1e308
    path.write_text(json.dumps(computed))
    assert "(inf-" in load_results(path).to_markdown()


@pytest.mark.slow
def test_pdflatex_takes_them(tmp_path):
    found = (evaluate_rankings(HOSTILE_NAMES[:6]), compute_power(), compute_independence())
    assert "undefined" not in compile_paper(tmp_path, [results.to_latex() for results in found])


def test_commands_write_them_alone_where_they_are_asked_for(tmp_path):
    rng = np.random.default_rng(0)
    rows = "\n".join(f"{int(rng.random() < 0.3)}\t{rng.random():.3f}\t{rng.random():.3f}" for _ in range(60))
    (tmp_path / "candidates.tsv").write_text(f"gold\tone\ttwo\n{rows}\n")
    np.savetxt(tmp_path / "s.csv", rng.random((40, 2)).round(2), fmt="%.2f", delimiter=",", header="a,b", comments="")
    for name in ("first", "second"):
        (tmp_path / f"{name}.txt").write_text("\n".join(rng.choice(["x", "y"], 30)) + "\n")
    for arguments in (
        ("rankings", "candidates.tsv", "--n", "10", "--trials", "99"),
        ("power", "s.csv", "--difference", "0.1", "--samples", "100"),
        ("independence", "first.txt", "second.txt"),
    ):
        result = call_sigdask(*arguments, "-o", "t.tex", "-o", "t.md", "--json", "t.json", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert r"\end{\sigdaskfloat}" in (tmp_path / "t.tex").read_text()
        assert parse_tables((tmp_path / "t.md").read_text())
        assert json.loads((tmp_path / "t.json").read_text())
