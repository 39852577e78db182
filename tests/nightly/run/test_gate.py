"""A plan's gate, from the plan to its files: verdict, reports, notifications."""

import json
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from gate_helpers import judge_plan

from sigdask.api import compare_all
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run.gate import publish_verdict

START = datetime(2026, 1, 31, 6, 5, tzinfo=UTC)

PLAN = """\
pairs = { baseline = "base" }
trials = 99999
metrics = ["mean"]
[[test_set]]
name = "one"
systems = "one.csv"
[[test_set]]
name = "two"
systems = "two.csv"
by = "kind"
[gate]
junit = "gate-{date}.xml"
json = "gate.json"
command = ["sh", "-c", "cat > told"]
rules = [
    { rule = "not-worse", alpha = 0.05 },
    { rule = "non-inferior", margin = 0.5, test_sets = ["two"] },
]
"""


@pytest.fixture
def plan(tmp_path):
    rng = np.random.default_rng(1)
    for name, loss in (("one", 1.0), ("two", 0.0)):
        base = np.round(rng.normal(0, 1, 80), 3)
        new = np.round(base - loss + rng.normal(0, 0.3, 80), 3)
        rows = [f"{k},{'xy'[k % 2]},{a},{b}" for k, (a, b) in enumerate(zip(base, new, strict=True))]
        kind = "kind" if name == "two" else "ignored"
        (tmp_path / f"{name}.csv").write_text("\n".join([f"item,{kind},base,new", *rows]) + "\n")
    (tmp_path / "plan.toml").write_text(
        PLAN.replace('systems = "one.csv"', 'systems = "one.csv"\nignore = ["ignored"]')
    )
    return load_plan(tmp_path / "plan.toml")


def compare_plan(plan):
    return [
        r
        for t in plan.test_sets
        for r in compare_all(t.read(), metrics=["mean"], baseline="base", by=t.by, trials=t.trials, second_run=False)
    ]


def test_a_plan_is_judged_written_and_told(plan):
    verdict = judge_plan(plan, compare_plan(plan))
    assert [rule.passed for rule in verdict.rules] == [False, True]
    assert [len(rule.findings) for rule in verdict.rules] == [3, 2]
    assert list(publish_verdict(plan, verdict, START)) == []
    folder = plan.path.parent
    assert ET.parse(folder / "gate-2026-01-31.xml").getroot().get("failures") == "1"
    assert json.loads((folder / "gate.json").read_text())["passed"] is False
    assert json.loads((folder / "told").read_text())["plan"] == "plan"


def test_a_plan_without_a_gate_has_no_verdict(tmp_path):
    (tmp_path / "s.csv").write_text("item,a,b\nx,1,2\n")
    (tmp_path / "p.toml").write_text('[[test_set]]\nname = "s"\nsystems = "s.csv"\n')
    assert judge_plan(load_plan(tmp_path / "p.toml"), []) is None
