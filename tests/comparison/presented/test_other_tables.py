"""Tables for papers of rankings, tests of independence and power: what stands in them is what JSON has."""

import json

import numpy as np
import pytest
from command import called
from papers import HOSTILE, compiled, parsed

from sigdask.api import evaluate, independence_all, power
from sigdask.counts import Counts
from sigdask.counts.candidates import Candidates


def evaluation(names=("one", "two", "three"), **options):
    rng = np.random.default_rng(4)
    gold = rng.random(120) < 0.3
    scores = {name: gold * (k + 1) / 6 + rng.random(120) for k, name in enumerate(names)}
    return evaluate(Candidates.of(gold, scores), **{"n": [10, 40], "trials": 99} | options)


def powers(names="abc", **options):
    rng = np.random.default_rng(4)
    scores = {name: rng.random(50) + k / 20 for k, name in enumerate(names)}
    return power(Counts.from_scores(scores), metrics=["mean"], samples=100, **options)


def labellings(names="abc"):
    rng = np.random.default_rng(4)
    gold = rng.choice(["x", "y"], 40)
    made = {name: np.where(rng.random(40) < 0.2 + k / 3, gold, "x") for k, name in enumerate(names)}
    return independence_all(Counts.from_labels([*gold], {k: [*v] for k, v in made.items()}), metrics=["accuracy"])


def test_a_table_of_measures_has_precision_of_the_json_with_the_best_in_bold():
    found = evaluation()
    of, pairs = parsed(found.to_markdown())
    header, *rows = of
    assert [text for text, _ in header] == ["measure", "AP", "n = 10", "n = 40"]
    measures = {one["measure"]: one for one in found.as_dict()["measures"]}
    precision = {(one["measure"], one["n"]): one["precision"] for one in found.as_dict()["precision"]}
    for (name, _), (average, _), *at in rows:
        assert average == f"{measures[name]['average_precision']:.4f}"
        assert [text for text, _ in at] == [f"{100 * precision[name, n]:.1f}" for n in (10, 40)]
    most = max(one["average_precision"] for one in measures.values())
    best = {name for name, one in measures.items() if one["average_precision"] == pytest.approx(most, rel=1e-12)}
    assert {name for (name, _), (_, bold), *_ in rows if bold} == best
    for row, one in zip(pairs[1:], found.as_dict()["average_precision"], strict=True):
        assert [text for text, _ in row[:2]] == [one["a"], one["b"]]
        assert one["p_value"] <= float(row[5][0]) <= 1.01 * one["p_value"]
        assert ("*" in row[6][0]) == (one["p_adjusted"] <= 0.05)


def test_a_table_of_independence_has_score_chance_and_p():
    found = labellings()
    [[header, *rows]] = parsed(found.to_markdown())
    assert [text for text, _ in header] == ["A", "B", "metric", "score", "by chance", "p", "adjusted p"]
    for row, one in zip(rows, found.to_dict()["results"], strict=True):
        texts = [text for text, _ in row]
        assert texts[:5] == [one["a"], one["b"], one["metric"], f"{one['score']:.4f}", f"{one['expected']:.4f}"]
        assert "*" not in texts[5]
        assert ("*" in texts[6]) == (one["p_adjusted"] <= 0.05)


def test_a_table_of_power_has_units_and_differences():
    found = powers(difference=0.1)
    [[header, *rows]] = parsed(found.to_markdown())
    assert [text for text, _ in header] == ["A", "B", "metric", "A - B", "units for 0.1", "found by 50"]
    for row, one in zip(rows, found, strict=True):
        assert [row[4][0], row[5][0]] == [f"{one.needed.value:,.0f}", f"{one.detectable.value:.3g}"]


@pytest.mark.parametrize("found", [evaluation, powers, labellings])
def test_hostile_names_are_text_and_frames_have_the_rows(found):
    made = found(HOSTILE[:6])
    for table in parsed(made.to_markdown()):
        assert {row[0][0] for row in table[1:]} <= {*HOSTILE}
    assert "<script>" not in made._repr_html_()
    assert "&lt;script&gt;" in made._repr_html_()
    assert len(made.to_frame()) == (12 if found is evaluation else 15 if found is powers else 6)


def test_a_ranking_shows_itself_in_a_notebook():
    from papers import found_of

    [ranking] = found_of("abc").rankings()
    assert "<strong>" in ranking._repr_html_()
    assert all(f">{one.system}<" in ranking._repr_html_() for one in ranking.systems)


def test_pdflatex_takes_them(tmp_path):
    said = compiled(tmp_path, [made.to_latex() for made in (evaluation(HOSTILE[:6]), powers(), labellings())])
    assert "undefined" not in said


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
        found = called(*arguments, "--latex", "-", "--markdown", "t.md", "--json", "t.json", cwd=tmp_path)
        assert found.returncode == 0, found.stderr
        assert found.stdout.startswith("% By sigdask")
        assert found.stdout.rstrip().endswith(r"\end{table}")
        assert parsed((tmp_path / "t.md").read_text())
        assert json.loads((tmp_path / "t.json").read_text())
    refused = called("rankings", "candidates.tsv", "--validate", "--cutoff", "one=0.5", "--latex", "-", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--validate" in refused.stderr
