"""Plans: keys, patterns, defaults and the schema."""

import json
import re

import pytest
from conftest import ROOT
from good_plan import build_good_plan, format_plan, write_plan_inputs

from sigdask.errors import InputError
from sigdask.nightly.gate.rules import NonInferior, NotWorse
from sigdask.nightly.plan import Plan, build_schema, load_plan
from sigdask.nightly.run.check import check_plan_data


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
    shared = {"seed": 0, "alpha": 0.05, "second_run": True, "adjust": None, "workers": None}
    assert {name: plan.comparison[name] for name in shared} == shared
    assert (plan.gate, plan.cluster) == (None, "auto")
    assert [source.name for source in test_set.sources] == ["base", "new"]
    assert (test_set.metrics, test_set.unit) == ((), "item")
    assert [test_set.comparison[name] for name in ("baseline", "pairs", "trials")] == [None] * 3
    ignoring = load_text(folder, SMALLEST + 'ignore = ["topic", "kind", "remark"]\n')
    assert ignoring.test_sets[0].read().systems == ("base", "new")


def test_a_plan_with_every_key_is_what_it_says(folder):
    plan = load_text(folder, format_plan(build_good_plan()))
    one, two, three, four = plan.test_sets
    one_has, two_has = one.comparison, two.comparison
    assert one_has["pairs"] == (("new", "base"),)
    assert (one_has["baseline"], two_has["baseline"]) == (None, "base")
    assert (one_has["trials"], two_has["trials"]) == (4096, 5000)
    assert (one_has["alternative"], two_has["alternative"]) == ("less", "two-sided")
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
        NotWorse(0.01, "base", ("one",)), NonInferior(0.5, 0.05, "base", (), ("mean",)),
    )  # fmt: skip


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


@pytest.mark.parametrize(
    ("store", "url"),
    [
        ("night.db", "{folder}/night.db"),
        ("postgresql+psycopg://u:p@host/db", "postgresql+psycopg://u:p@host/db"),
    ],
)
def test_a_store_is_a_path_or_a_url(folder, store, url):
    assert load_text(folder, f'store = "{store}"\n' + SMALLEST).store == url.format(folder=folder)


def test_a_cluster_is_a_word_an_address_or_a_file(folder):
    (folder / "c.toml").write_text('class = "local"\n')
    assert load_text(folder, 'cluster = "tcp://host:8786"\n' + SMALLEST).cluster == "tcp://host:8786"
    assert load_text(folder, 'cluster = "c.toml"\n' + SMALLEST).cluster == str(folder / "c.toml")


@pytest.mark.parametrize(
    ("gate", "n_alarms"),
    [
        ('rules = [{ rule = "not-worse" }]', 4),
        ('rules = [{ rule = "not-worse", alpha = 0.02 }]', None),
        ('false_alarms_per_year = 2\nrules = [{ rule = "not-worse", alpha = 0.02 }]', 2),
    ],
)
def test_the_gates_rules_take_the_plans_level_and_four_false_alarms_a_year(folder, gate, n_alarms):
    text = f'alpha = 0.02\npairs = {{ baseline = "base" }}\n{SMALLEST}[gate]\n{gate}\n'
    assert load_text(folder, text).gate.rules == (NotWorse(0.02, false_alarms_per_year=n_alarms),)


def test_no_module_is_imported_until_it_is_used(folder, monkeypatch):
    (folder / "mine_raises.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(folder))
    plan = load_text(folder, 'metrics = ["mine_raises:best"]\n' + SMALLEST)
    assert plan.test_sets[0].metrics == ("mine_raises:best",)


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
    assert [t.comparison["baseline"] for t in plan.test_sets] == ["production"] * 3
    assert [t.metrics for t in plan.test_sets] == [("mean",), ("accuracy", "macro-f1"), ("BLEU", "chrF")]
    assert [size.n_comparisons for size in check_plan_data(plan)] == [1, 2, 2]


def test_the_kept_schema_is_what_the_keys_say():
    stored = (ROOT / "sigdask" / "nightly" / "plan" / "schema.json").read_text()
    assert remove_descriptions(json.loads(stored)) == remove_descriptions(build_schema())


def remove_descriptions(schema):
    """Return a schema without its descriptions, which depend on the version of pydantic."""
    if isinstance(schema, list):
        return [remove_descriptions(item) for item in schema]
    if isinstance(schema, dict):
        return {k: remove_descriptions(v) for k, v in schema.items() if k != "description" or not isinstance(v, str)}
    return schema


def test_the_schema_accepts_the_good_plan_and_refuses_a_misspelt_one():
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(build_good_plan(), build_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**build_good_plan(), "metrcs": ["mean"]}, build_schema())


def test_a_unit_item_beside_joined_ids_is_refused_at_its_key(tmp_path):
    text = '[[test_set]]\nname = "x"\nsystems = "t.csv"\ncolumns = { item = "prompt+item" }\n'
    (tmp_path / "plan.toml").write_text(text + 'unit = "item"\n')
    with pytest.raises(InputError, match="no such file") as missing:
        load_plan(tmp_path / "plan.toml")
    assert "errors" not in str(missing.value)  # one, about the file
    (tmp_path / "t.csv").write_text("prompt,item,system,score\n")
    with pytest.raises(InputError, match=r"test_set\[0\]\.unit"):
        load_plan(tmp_path / "plan.toml")
    (tmp_path / "plan.toml").write_text(text)
    assert load_plan(tmp_path / "plan.toml").test_sets[0].unit == "item"
