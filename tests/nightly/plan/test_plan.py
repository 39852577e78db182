"""Plans: keys, patterns, defaults, line numbers and the schema."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import ROOT
from good_plan import build_good_plan, format_plan, write_plan_inputs

from sigdask.errors import InputError
from sigdask.nightly.gate.rules import Equivalent, NonInferior, NotWorse
from sigdask.nightly.plan import Plan, ReportFiles, build_schema, format_schema, load_plan
from sigdask.nightly.plan.errors import find_key_lines
from sigdask.nightly.run.estimate import estimate_costs
from sigdask.nightly.store.database import parse_url


@pytest.fixture
def folder(tmp_path):
    return write_plan_inputs(tmp_path)


def load_text(folder, text) -> Plan:
    (folder / "plan.toml").write_text(text)
    return load_plan(folder / "plan.toml")


SMALLEST = '[[test_set]]\nname = "one"\nsystems = "runs/{system}.csv"\n'


def test_a_plan_of_three_lines_has_all_defaults(folder):
    plan = load_text(folder, SMALLEST)
    test_set = plan.test_sets[0]
    assert plan.name == "plan"
    assert plan.store == f"{folder}/plan.sqlite"
    assert (plan.seed, plan.alpha, plan.second_run, plan.adjust, plan.family) == (0, 0.05, True, None, "test-set")
    assert (plan.gate, plan.cluster, plan.workers) == (None, "auto", None)
    assert [source.name for source in test_set.sources] == ["base", "new"]
    assert (test_set.metrics, test_set.baseline, test_set.pairs, test_set.trials, test_set.unit) == (
        (),
        None,
        None,
        None,
        "item",
    )
    ignoring = load_text(folder, SMALLEST + 'ignore = ["topic", "kind", "remark"]\n')
    assert ignoring.test_sets[0].read().systems == ("base", "new")


def test_a_plan_with_every_key_is_what_it_says(folder):
    plan = load_text(folder, format_plan(build_good_plan()))
    one, two, three, four = plan.test_sets
    assert one.pairs == (("new", "base"),)
    assert (one.baseline, two.baseline) == (None, "base")
    assert (one.trials, two.trials, one.alternative, two.alternative) == (4096, 5000, "less", "two-sided")
    assert one.options.groups == ("topic", "kind")
    assert one.options.ignore == ("remark",)
    assert two.options.label_map == (("P", ("R",)),)
    assert two.gold == folder / "labels" / "gold.csv"
    assert three.options.missing == "pairwise"
    assert four.options.references == (folder / "text" / "gold2.txt",)
    assert set(four.list_files()) == {
        folder / "text" / f"{n}.txt" for n in ("base", "new", "gold", "gold2", "documents")
    }
    assert plan.gate.rules == (
        NotWorse(0.01, "holm", "base", ("one",)), NonInferior(0.5, 0.05, "base", (), ("mean",)),
    )  # fmt: skip
    assert plan.gate.notify.command[0].endswith("/true")


def test_a_plan_reads_like_the_command_line_does(folder):
    plan = load_text(folder, format_plan(build_good_plan()))
    assert [t.read().n_items for t in plan.test_sets] == [4, 4, 2, 2]
    assert plan.test_sets[0].read().unit == "topic"
    assert plan.test_sets[1].read().labels == ("P", "Q")


def test_paths_are_relative_to_the_plan_and_not_to_where_one_stands(folder, monkeypatch):
    monkeypatch.chdir("/")
    (folder / "plans").mkdir()
    (folder / "plans" / "p.toml").write_text(SMALLEST.replace("runs/", "../runs/") + '[report]\njson = "out.json"\n')
    plan = load_plan(folder / "plans" / "p.toml")
    assert plan.test_sets[0].sources[0].path == folder / "runs" / "base.csv"
    assert plan.report.files["json"] == folder / "plans" / "out.json"


@pytest.mark.parametrize(
    ("systems", "names"),
    [
        ('"runs/{system}.csv"', ["base", "new"]),
        ('"*/{system}.csv"', ["base", "gold", "new", "base", "new"]),
        ('["runs/*.csv"]', [None, None]),
        ('["runs/new.csv", "runs/base.csv"]', [None, None]),
        ('{ b = "runs/base.csv", a = ["runs/new.csv"] }', ["b", "a"]),
        ('"**/n{system}.csv"', ["ew", "ew"]),
        ('"run[a-s]/{system}.[!t]*"', ["base", "new"]),
        ('"{system}/new.csv"', ["labels", "runs"]),
    ],
)
def test_systems_are_tables_lists_and_patterns(folder, systems, names):
    text = SMALLEST.replace('"runs/{system}.csv"', systems)
    assert [source.name for source in load_text(folder, text).test_sets[0].sources] == names


def test_several_files_under_one_name_are_replicates(folder):
    for name in ("a.1", "a.2", "b.1", "b.2"):
        (folder / f"{name}.csv").write_text("item,score\nx,1\ny,2\n")
    for systems in ('"{system}.[12].csv"', '{ a = ["a.1.csv", "a.2.csv"], b = "b.*.csv" }'):
        test_set = load_text(folder, SMALLEST.replace('"runs/{system}.csv"', systems)).test_sets[0]
        assert [source.name for source in test_set.sources] == ["a", "a", "b", "b"]
        assert test_set.read().systems == ("a", "b")


def test_a_system_written_twice_in_a_pattern_is_the_same_name(folder):
    for run, tag in (("x", "x"), ("y", "y"), ("y", "z")):
        (folder / run).mkdir(exist_ok=True)
        (folder / run / f"{tag}.csv").write_text("item,score\na,1\n")
    text = SMALLEST.replace("runs/{system}.csv", "{system}/{system}.csv")
    assert [s.name for s in load_text(folder, text).test_sets[0].sources] == ["x", "y"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(folder):
    (folder / "odd[1].csv").write_text("item,a,b\nx,1,2\n")
    text = SMALLEST.replace("runs/{system}.csv", "odd[1].csv")
    assert load_text(folder, text).test_sets[0].sources[0].path.name == "odd[1].csv"


def test_the_default_family_of_a_whole_plan_takes_one_alternative(folder):
    text = SMALLEST + '[[test_set]]\nname = "other"\nsystems = "runs/{system}.csv"\nalternative = "less"\n'
    with pytest.raises(InputError, match="needs one alternative; found less, two-sided"):
        load_text(folder, 'family = "plan"\n' + text)
    assert load_text(folder, 'family = "plan"\nadjust = "holm"\n' + text).adjust == "holm"
    assert load_text(folder, text).adjust is None


@pytest.mark.parametrize(
    ("store", "url"),
    [
        ("night.db", "{folder}/night.db"),
        ("sqlite:///night.db", "{folder}/night.db"),
        ("sqlite:////tmp/night.db", "sqlite:////tmp/night.db"),
        ("postgresql+psycopg://u:p@host/db", "postgresql+psycopg://u:p@host/db"),
    ],
)
def test_a_store_is_a_path_or_a_url(folder, store, url):
    assert load_text(folder, f'store = "{store}"\n' + SMALLEST).store == url.format(folder=folder)


def test_a_cluster_is_a_word_a_file_or_a_table(folder):
    (folder / "c.toml").write_text('class = "local"\n')
    assert load_text(folder, 'cluster = "tcp://host:8786"\n' + SMALLEST).cluster == "tcp://host:8786"
    assert load_text(folder, 'cluster = "c.toml"\n' + SMALLEST).cluster == str(folder / "c.toml")
    assert load_text(folder, SMALLEST + '[cluster]\nfile = "c.toml"\n').cluster == str(folder / "c.toml")
    slurm = load_text(folder, SMALLEST + '[cluster]\nclass = "slurm"\noptions = { queue = "night" }\n').cluster
    assert (slurm.kind, slurm.options) == ("slurm", {"queue": "night"})


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ('[cluster]\nclass = "slurrm"\n', "did you mean 'slurm'"),
        ('[cluster]\nclass = "slurm"\nqueue = "night"\n', r"unknown key 'queue'.*\[options\]"),
        ('[cluster]\nclass = "local"\nworkers = 0\n', "workers = 0"),
        ('[cluster]\nfile = "c.toml"\n', "class is missing"),
    ],
)
def test_a_cluster_is_validated_with_its_plan(folder, table, error):
    (folder / "c.toml").write_text("workers = 3\n")
    with pytest.raises(InputError, match=error):
        load_text(folder, SMALLEST + table)


def test_paths_of_a_cluster_start_at_the_plan(folder):
    text = '[cluster]\nclass = "address"\noptions = { scheduler_file = "s.json" }\nsecurity = { folder = "certs" }\n'
    cluster = load_text(folder, SMALLEST + text).cluster
    assert cluster.options["scheduler_file"] == str(folder / "s.json")
    assert cluster.transport.folder == folder / "certs"


def test_a_store_beside_a_plan_with_any_name(folder):
    (folder / "a?b%20c.toml").write_text(SMALLEST)
    plan = load_plan(folder / "a?b%20c.toml")
    assert plan.store == str(folder / "a?b%20c.sqlite")
    assert parse_url(plan.store).database == plan.store


def test_the_gates_rules_take_the_plans_level_and_adjustment(folder):
    gate = '[gate]\nrules = [{ rule = "not-worse" }]\n'
    head = 'alpha = 0.02\npairs = { baseline = "base" }\n'
    assert load_text(folder, head + SMALLEST + gate).gate.rules == (NotWorse(0.02, "holm", false_alarms_per_year=4),)
    [rule] = load_text(folder, 'adjust = "max-t"\n' + head + SMALLEST + gate).gate.rules
    assert rule == NotWorse(0.02, "plan", false_alarms_per_year=4)


def test_no_module_is_imported_until_it_is_used(folder, monkeypatch):
    (folder / "mine_raises.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(folder))
    plan = load_text(folder, 'metrics = ["mine_raises:best"]\n' + SMALLEST + 'format = "mine_raises:read"\n')
    assert plan.test_sets[0].metrics == ("mine_raises:best",)
    with pytest.raises(
        InputError, match=r"format 'mine_raises:read': cannot import 'mine_raises' \(RuntimeError: imported"
    ):
        plan.test_sets[0].read()


def test_reports_carry_the_date_of_the_run():
    start = datetime(2026, 1, 31, 6, 5, tzinfo=UTC)
    report = ReportFiles({"json": Path("a-{date}.json"), "text": Path("b-{date}T{time}.txt")}).fill_dates(start)
    assert (*map(str, report.files.values()),) == ("a-2026-01-31.json", "b-2026-01-31T060500.txt")


def list_documented_plans():
    return re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "plans.md").read_text(), re.DOTALL)


def test_the_plans_of_the_docs_are_plans(tmp_path):
    for folder, names in (("topics", ("production", "bm25")), ("runs", ("a", "b"))):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / f"{name}.csv").write_text("item,score\n1,0.5\n2,0.25\n")
    (tmp_path / "reviews").mkdir()
    for name in ("gold", "production", "candidate"):
        column = "gold" if name == "gold" else "label"
        (tmp_path / "reviews" / f"{name}.csv").write_text(f"id,{column},document\n1,P,x\n2,Q,y\n")
    (tmp_path / "talks").mkdir()
    for name in ("reference", "production", "candidate", "documents"):
        (tmp_path / "talks" / f"{name}.txt").write_text("the cat sat on the mat\nthe dog did not\n")
    smallest, complete, _ = list_documented_plans()  # the third is run in overnight/test_nights_of_logs
    assert len(load_text(tmp_path, smallest).test_sets) == 1
    plan = load_text(tmp_path, complete.replace('"logger"', '"true"'))
    assert [t.baseline for t in plan.test_sets] == ["production"] * 3
    assert [t.metrics for t in plan.test_sets] == [("mean",), ("accuracy", "macro-f1"), ("BLEU", "chrF")]
    assert [cost.n_comparisons for cost in estimate_costs(plan)] == [1, 2, 2]


LINES = """\
# a comment with [brackets] = 1
seed = 1

[gate]  # another
rules = [
    { rule = "not-worse", alpha = 0.01 },
    { rule = "non-inferior", margin = 1 },
]
command = ["a = b"]
[[test_set]]
name = 'one'
metrics = ["mean",
           "f1[X]"]
[test_set.map]
"odd key" = ["a"]
dotted.inner = ["b"]
[[test_set]]
name = \"\"\"
several = lines
[and.more]
\"\"\"
gold = "x"
"""


def test_keys_are_found_on_their_lines():
    import tomllib

    lines = find_key_lines(LINES, tomllib.loads(LINES))
    assert lines == {
        ("seed",): 2, ("gate",): 4, ("gate", "rules"): 5, ("gate", "command"): 9, ("test_set", 0): 10,
        ("test_set", 0, "name"): 11, ("test_set", 0, "metrics"): 12, ("test_set", 0, "map"): 14,
        ("test_set", 0, "map", "odd key"): 15, ("test_set", 0, "map", "dotted", "inner"): 16, ("test_set", 1): 17,
        ("test_set", 1, "name"): 18, ("test_set", 1, "gold"): 22,
    }  # fmt: skip


def test_very_long_lists_cost_no_more_than_their_lines():
    import tomllib

    text = "seed = 1\nmetrics = [\n" + '  "mean",\n' * 20_000 + "]\nalpha = 0.1\n"
    assert find_key_lines(text, tomllib.loads(text))[("seed",)] == 1


def test_the_kept_schema_is_what_the_keys_say():
    stored = (ROOT / "sigdask" / "nightly" / "plan" / "schema.json").read_text()
    assert remove_descriptions(json.loads(stored)) == remove_descriptions(json.loads(format_schema()))


def remove_descriptions(schema):
    """Return a schema without its descriptions, which depend on the version of pydantic."""
    if isinstance(schema, list):
        return [remove_descriptions(item) for item in schema]
    if isinstance(schema, dict):
        return {k: remove_descriptions(v) for k, v in schema.items() if k != "description" or not isinstance(v, str)}
    return schema


def test_the_schema_knows_every_key_and_no_null():
    text = json.dumps(build_schema())
    for key in ("test_set", "systems", "non-inferior", "runs_per_year", "webhook"):
        assert f'"{key}"' in text
    assert "null" not in text
    assert build_schema()["additionalProperties"] is False
    assert build_schema()["anyOf"] == [{"required": [name]} for name in ("test_set", "rankings", "independence")]


def test_the_schema_accepts_the_good_plan_and_refuses_a_misspelt_one():
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(build_good_plan(), build_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**build_good_plan(), "metrcs": ["mean"]}, build_schema())


def test_equivalence_is_a_rule_with_a_margin(folder):
    plan = load_text(
        folder, SMALLEST + '[gate]\nrules = [{ rule = "equivalent", margin = 0.01, alpha = 0.1, baseline = "base" }]\n'
    )
    assert plan.gate.rules == (Equivalent(0.01, 0.1, "base"),)
    with pytest.raises(InputError, match="margin: missing; expected margin on the metric's own scale"):
        load_text(folder, SMALLEST + '[gate]\nrules = [{ rule = "equivalent", baseline = "base" }]\n')
    with pytest.raises(InputError, match="did you mean 'equivalent'"):
        load_text(folder, SMALLEST + '[gate]\nrules = [{ rule = "equivalence", margin = 0.1, baseline = "base" }]\n')
