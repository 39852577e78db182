"""What a night of many test sets prints, held against the rows of its JSON."""

import json
from collections import defaultdict

import pytest
from command import call_sigdask
from nights import write_plan, write_scores

N_SETS = 30


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """Two runs of a plan of 30 test sets; one file changed in between."""
    folder = tmp_path_factory.mktemp("night")
    plan = write_plan(folder, sets=N_SETS, systems=3, trials=200, settings='adjust = "holm"')
    first = call_sigdask("run", plan, cwd=folder)
    write_scores(folder / "set7.csv", 3, seed=77)
    second = call_sigdask("run", plan, "--all", cwd=folder)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    return folder, first.stdout, second.stdout


def list_rows(text):
    """Return the cells of the table's rows, by test set."""
    lines = [line for line in text.splitlines() if line.startswith("set") and line[3].isdigit()]
    return {line.split()[0]: line for line in lines}


@pytest.mark.slow
def test_rows_agree_with_the_results(night):
    folder, _, second = night
    document = json.loads(call_sigdask("report", folder / "night.toml", "--json", "-", cwd=folder).stdout)
    by_set = defaultdict(list)
    for row in document["results"]:
        by_set[row["test_set"]].append(row)
    rows = list_rows(second)
    assert len(rows) == N_SETS
    for name, results in by_set.items():
        scores = {r[side]: r[f"score_{side}"] for r in results for side in "ab"}
        best = max(scores, key=scores.get)
        n_significant = sum(r["verdict"] == "significant" for r in results)
        assert rows[name].split()[1] == best
        assert f"{n_significant} of 3 significant" in rows[name]
    assert f"{sum(r['verdict'] == 'significant' for r in document['results'])} significant at 0.05" in second
