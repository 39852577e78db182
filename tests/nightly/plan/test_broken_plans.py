"""Hundreds of broken plans: each gives one message that names file and key, and no traceback."""

import copy
import datetime as dt
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner
from good_plan import build_good_plan, change_key, format_plan, iter_key_paths, remove_key, write_plan_inputs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sigdask.cli import commands
from sigdask.errors import InputError
from sigdask.nightly.plan import load_plan
from sigdask.nightly.plan.errors import format_key

HUGE = 10**400
DAY = dt.date(2026, 1, 31)
LONG = "x" * 5000
BAD_TEXTS = [3, 1.5, True, [], {}, DAY, "", "   "]
BAD_FLAGS = ["true", 1, 0, [], {}]
BAD_NAMES = ["mean", 3, [], [3], [""], {}, [["mean"]], True]
BAD_TRIALS = [0, -1, 1.5, "4096", 2**48 + 1, HUGE, True, [4096]]
BAD_SHARES = [0, 1, -0.1, 1.5, "0.05", float("nan"), float("inf"), HUGE, True, [0.05]]
BAD_FILES = ["none.csv", "runs", "../none.csv", "/none/none.csv", "a\0b", LONG, *BAD_TEXTS]
BAD_OUTPUTS = ["none/out.json", "runs", "night-{day}.json", "a\0b", "plan.toml", "runs/base.csv", LONG, *BAD_TEXTS]


def build_bad_choices(*near):
    return [*near, "something else", 3, True, [], {}]


WRONG_VALUES = {
    ("name",): BAD_TEXTS,
    ("metrics",): [*BAD_NAMES, ["mean", "mean"], ["my metrics:best"], ["mean:3"], ["f[LOC"], ["macro-f1:labels"]],
    ("pairs",): ["al", "some", 3, [], {}, {"baselin": "base"}, {"baseline": 3}, {"baseline": "nobody"}, [["base"]],
                 [["base", "new", "old"]], [["base", 3]], ["base", "new"], True],
    ("alternative",): build_bad_choices("two sided", "Greater", "lesser"),
    ("method",): build_bad_choices("randomisation", "exakt"),
    ("trials",): BAD_TRIALS,
    ("seed",): [-1, 1.5, "1", HUGE, True, [1], 2**63],
    ("alpha",): BAD_SHARES,
    ("second_run",): BAD_FLAGS,
    ("adjust",): [*build_bad_choices("hollm", "max_t"), "max-t", "tukey", "single-step-max-t"],
    ("family",): build_bad_choices("testset", "plans"),
    ("tests",): ["anova", ["t", "wilcoxn"], "", [], [3], 3, True, {}, "t,"],
    ("cluster",): ["moon", "thread", "cluster.toml", "scheduler.json", 3, True, [], {}, {"class": 3}, {"klass": "slurm"},
                   {"file": "none.toml"}, {"file": "long.csv", "cores": 3}, ""],
    ("workers",): [0, -1, 1.5, "2", HUGE, True],
    ("store",): ["none/night.sqlite", "runs", "mysql://host/db", "postgres://host/db", "long.csv", "plan.toml", *BAD_TEXTS],
    ("rankings",): [3, "pairs", {}, [3], [[]], True, [{}], [{"name": "pairs"}], [{"candidates": "pairs.tsv"}]],
    ("rankings", 0, "name"): [*BAD_TEXTS, "one", LONG],
    ("rankings", 0, "candidates"): BAD_FILES,
    ("rankings", 0, "gold_column"): BAD_TEXTS,
    ("rankings", 0, "positive"): BAD_NAMES,
    ("rankings", 0, "id"): [3, True, [], {}, "", [3], [""]],
    ("rankings", 0, "measures"): BAD_NAMES,
    ("rankings", 0, "smaller"): BAD_NAMES,
    ("rankings", 0, "ignore"): BAD_NAMES,
    ("rankings", 0, "partial"): BAD_FLAGS,
    ("rankings", 0, "decimal"): build_bad_choices(";", "comma"),
    ("rankings", 0, "n"): [0, 3, [], [0], [-1], [1.5], ["1"], {}, True, "", "ten", "1:", "3:1:1", "1:3:0", "1:99999:1"],
    ("rankings", 0, "pairs"): ["al", 3, [], {}, {"baselin": "t"}, {"baseline": 3}, [["t"]], [["t", 3]], True],
    ("rankings", 0, "ties"): build_bad_choices("expect", "Random"),
    ("rankings", 0, "trials"): BAD_TRIALS,
    ("rankings", 0, "confidence"): BAD_SHARES,
    ("rankings", 0, "samples"): [0, -1, 1.5, "3", 100_001, HUGE, True, [3]],
    ("rankings", 0, "sample_size"): [0, -1, 1.5, "3", HUGE, True, [3]],
    ("test_set",): [3, "one", [], {}, [3], [[]], True, [{}]],
    ("test_set", 0, "name"): [*BAD_TEXTS, "two", LONG],
    ("test_set", 0, "systems"): ["none/{system}.csv", "runs/*.tsv", "runs/[a.csv", 3, True, [], {}, "", [3], {"base": 3}, {"base": []}, {"base": [3]}, {"base": ["runs/base.csv", "none.csv"]},
                                 {"": "runs/base.csv"}, ["runs/base.csv", "runs/base.csv"], ["runs/base.csv", "none.csv"],
                                 {"a": "runs/base.csv", "b": "runs/base.csv"}, "runs", "a\0{system}"],
    ("test_set", 0, "format"): [*BAD_TEXTS, "wid", "conl", "wide:x", "my reader:read"],
    ("test_set", 0, "unit"): [3, True, [], {}, "", "remark"],
    ("test_set", 0, "by"): [3, True, [], {}, "", "remark"],
    ("test_set", 0, "missing"): build_bad_choices("pairwize", "zeros"),
    ("test_set", 0, "id"): BAD_TEXTS,
    ("test_set", 0, "ignore"): ["remark", 3, [], [3], {}, ["topic"]],
    ("test_set", 0, "align"): build_bad_choices("ids", "positions"),
    ("test_set", 0, "metrics"): [*BAD_NAMES, ["mean", "mean"]],
    ("test_set", 0, "pairs"): [[["new", "new"]], [["new", "bas"]], [["new", "base"], ["base", "new"]], "every", {}, [],
                               {"baseline": "bse"}],
    ("test_set", 0, "alternative"): build_bad_choices("les"),
    ("test_set", 0, "method"): build_bad_choices("random"),
    ("test_set", 0, "trials"): BAD_TRIALS,
    ("test_set", 0, "tests"): ["ttest", ["sing"], [], 3],
    ("test_set", 1, "gold"): BAD_FILES,
    ("test_set", 1, "gold_column"): BAD_TEXTS,
    ("test_set", 1, "prediction_column"): BAD_TEXTS,
    ("test_set", 1, "map"): ["P=R", 3, [], {"P": "R"}, {"P": []}, {"P": [3]}, {"": ["R"]}],
    ("test_set", 2, "system_column"): BAD_TEXTS,
    ("test_set", 2, "score_column"): BAD_TEXTS,
    ("test_set", 3, "references"): [["none.txt"], [3], [], {}, 3],
    ("test_set", 3, "documents"): BAD_FILES,
    ("stopping",): ["besag-clifford", 3, [], {}, {"h": 3}, True],
    ("stopping", "rule"): [*build_bad_choices("besag", "confidence_sequence")],
    ("stopping", "h"): [0, -3, 1.5, "10", HUGE, True],
    ("report",): ["night.json", 3, [], True],
    ("report", "json"): BAD_OUTPUTS,
    ("report", "text"): [*BAD_OUTPUTS, "night-{date}.json"],
    ("gate",): [3, "not-worse", [], {}, True],
    ("gate", "rules"): [3, "not-worse", [], {}, [3], [{}], [{"alpha": 0.01}]],
    ("gate", "rules", 0, "rule"): build_bad_choices("notworse", "non-worse"),
    ("gate", "rules", 0, "alpha"): BAD_SHARES,
    ("gate", "rules", 0, "adjust"): build_bad_choices("hollm", "max-t"),
    ("gate", "rules", 0, "baseline"): [*BAD_TEXTS, "old", "new"],
    ("gate", "rules", 0, "test_sets"): [["eins"], "one", [], [3]],
    ("gate", "rules", 1, "margin"): [0, -1, "0.5", float("inf"), float("nan"), True, [0.5], HUGE],
    ("gate", "rules", 1, "metrics"): [["man"], "mean", [], [3]],
    ("gate", "runs_per_year"): [0, -1, "250", float("inf"), HUGE, True],
    ("gate", "fdr"): build_bad_choices("lord", "LORD++"),
    ("gate", "junit"): BAD_OUTPUTS,
    ("gate", "json"): [*BAD_OUTPUTS, "gate.xml"],
    ("gate", "command"): ["true", 3, [], [3], ["no-such-program-here"], ["./none"], ["a\0b"]],
    ("gate", "webhook"): ["127.0.0.1/hook", "ftp://host/x", "http://", "https://a b/", "http://host:99999/", *BAD_TEXTS],
    ("gate", "when"): build_bad_choices("fail", "alway"),
    ("gate", "timeout"): [0, -1, "5", float("inf"), HUGE, 4000, True],
}  # fmt: skip

ALSO_NAMED_AT = {("adjust",): [("stopping",)], ("test_set", 0, "unit"): [("test_set", 0, "ignore")]}
EXPLANATIONS = re.compile(
    "should be|choose|test sets:|no such|missing|which is a folder|matches no|twice|needs|is the name|is an input|both a unit|no system|is paired"
)

MUTANTS = [(path, value) for path, values in WRONG_VALUES.items() for value in values]

REQUIRED_KEYS = [("test_set",), ("test_set", 0, "name"), ("test_set", 0, "systems"), ("gate", "rules"), ("stopping", "rule"),
          ("gate", "rules", 0, "rule"), ("gate", "rules", 1, "margin")]  # fmt: skip

RAW_PLANS = {
    "empty": (b"", "test_set: missing"),
    "a comment alone": (b"# nothing\n", "test_set: missing"),
    "UTF-16": ("name = 'x'\n".encode("utf-16"), "is UTF-16, expected UTF-8"),
    "Latin 1": (b"name = 'n\xe4chtlich'\n", "line 1: byte 0xe4 is not UTF-8"),
    "Latin 1 far down": (b"# x\n" * 9 + b"name = '\xff'\n", "line 10: byte 0xff"),
    "NUL": (b"name = '\x00'\n", "not TOML"),
    "binary": (bytes(range(256)), "not UTF-8"),
    "unclosed string": (b"name = 'x\nseed = 1", "not TOML"),
    "unclosed list": (b"metrics = ['a',\n", "not TOML"),
    "key twice": (b"seed = 1\nseed = 2\n", "not TOML: Cannot overwrite a value (at line 2"),
    "table twice": (b"[gate]\n[gate]\n", "not TOML"),
    "no value": (b"seed =\n", "line 1"),
    "bare word": (b"method = auto\n", "not TOML"),
    "YAML": (b"name: nightly\nseed: 1\n", "not TOML"),
    "JSON": (b'{"name": "nightly"}', "not TOML"),
    "number of 5000 digits": (b"seed = " + b"9" * 5000 + b"\n", "not TOML"),
    "no such day": (b"name = 2026-02-31\n", "not TOML"),
    "deep": (b"metrics = " + b"[" * 5000 + b"]" * 5000 + b"\n", "nested too deep"),
    "dotted deep": (b"a" + b".a" * 3000 + b" = 1\n", "more than 50 parts"),
    "Windows path": (b'store = "C:\\users\\night.sqlite"\n', "not TOML"),
    "many unknown keys": (b"".join(b"k%d = 1\n" % k for k in range(300)), "301 errors"),
    "too large": (b"#" * (17 * 2**20), "more than 16 MB"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_plan_inputs(tmp_path_factory.mktemp("plan"))


def check_refused(folder, raw):
    """Return the message of `sigdask check` for a plan that it must refuse."""
    path = folder / "plan.toml"
    path.write_bytes(raw)
    result = CliRunner().invoke(commands, ["check", str(path)], standalone_mode=False)
    assert isinstance(result.exception, InputError), (raw[:200], result.exception)
    assert result.output == ""
    message = str(result.exception)
    assert message.startswith(str(path))
    assert message.isprintable() or all(line.isprintable() for line in message.split("\n"))
    assert len(message) < 12_000
    for word in ("Traceback", "pydantic", "Tag(", "dataclass", "Keys", "NoneType"):
        assert word not in message
    return message


def test_the_good_plan_is_good(folder):
    (folder / "plan.toml").write_text(format_plan(build_good_plan()))
    assert [t.name for t in load_plan(folder / "plan.toml").test_sets] == ["one", "two", "three", "four"]
    result = CliRunner().invoke(commands, ["check", str(folder / "plan.toml")], standalone_mode=False)
    assert result.exception is None, result.exception
    assert "4 test sets" in result.output


def test_there_are_more_than_two_hundred_broken_plans():
    assert len(MUTANTS) + len(list(iter_key_paths(build_good_plan()))) + len(RAW_PLANS) > 450


@pytest.mark.parametrize(
    ("path", "value"), MUTANTS, ids=[f"{format_key(p)}={str(v)[:30]!r}-{n}" for n, (p, v) in enumerate(MUTANTS)]
)
def test_a_wrong_value_is_one_clear_error_that_names_its_key(folder, path, value):
    message = check_refused(folder, format_plan(change_key(path, value)).encode())
    assert any(format_key(key) in message for key in (path, path[:-1], *ALSO_NAMED_AT.get(path, ())) if key)
    assert "expected" in message or "did you mean" in message or EXPLANATIONS.search(message), message
    assert f"{folder / 'plan.toml'}, line " in message or " errors\n" in message


@pytest.mark.parametrize("path", list(iter_key_paths(build_good_plan())), ids=format_key)
def test_a_misspelt_key_is_refused_with_the_nearest_known_one(folder, path):
    name = path[-1]
    plan = change_key((*path[:-1], name[:-1] + "q" if len(name) > 3 else name + "x"), 1)
    inner = plan
    for part in path[:-1]:
        inner = inner[part]
    del inner[name]
    message = check_refused(folder, format_plan(plan).encode())
    assert "unknown key" in message or "rule is missing" in message
    if len(name) > 3 and name != "rule":
        assert f"did you mean '{name}'?" in message


@pytest.mark.parametrize("path", REQUIRED_KEYS, ids=format_key)
def test_a_key_that_is_needed_is_missed(folder, path):
    plan = remove_key(path)
    if path == ("test_set",):
        del plan["rankings"]  # either will do
    assert "missing" in check_refused(folder, format_plan(plan).encode())


@pytest.mark.parametrize(("raw", "message"), RAW_PLANS.values(), ids=RAW_PLANS.keys())
def test_what_is_no_plan_at_all_is_one_clear_error(folder, raw, message):
    assert message in check_refused(folder, raw)


@pytest.mark.parametrize("name", ["", ".", "none.toml", "\0"])
def test_a_plan_that_cannot_be_opened_is_an_error(folder, name):
    result = CliRunner().invoke(commands, ["check", str(folder / name) if name else ""], standalone_mode=False)
    assert isinstance(result.exception, InputError)


MESSAGES = [
    (("test_set", 0, "formt"), "wide", "test_set[0].formt: unknown key; did you mean 'format'?"),
    (("systems",), "x", "systems: unknown key here; systems belongs in [[test_set]]"),
    (("gate", "seed"), 3, "gate.seed: unknown key here; seed belongs at the top, before the first [table]"),
    (("stopping", "epsilon"), 0.1, 'stopping.epsilon: not a key of rule "besag-clifford"'),
    (("trials",), "many", 'trials: found "many", expected a whole number'),
    (("alpha",), 5, "alpha: found 5, expected a number below 1"),
    (("alternative",), "grater", "alternative: found \"grater\", expected one of 'two-sided', 'greater' or 'less'; did you mean 'greater'?"),
    (("test_set", 1, "name"), "one", 'test_set[1].name: "one" is the name of test_set[0] as well'),
    (("test_set", 0, "systems"), "runs/{system}.tsv", "which matches no file"),
    (("test_set", 1, "gold"), "labels", "which is a folder"),
    (("report", "text"), "night-{day}.txt", "{day} is not known, expected {date} or {time}"),
    (("report", "json"), "runs/base.csv", 'is an input of test set "one"'),
    (("tests",), "t,wilcoxn", "tests: no classical test 'wilcoxn'; did you mean 'wilcoxon'?"),
    (("adjust",), "max-t", "needs the same number of trials of every comparison"),
    (("test_set", 0, "metrics"), ["my metrics:best"], "expected MODULE:ATTRIBUTE"),
    (("store",), "postgres://u@h/d", "did you mean 'postgresql'?"),
    (("gate", "rules", 0, "baseline"), "new", "is compared"),
    (("gate", "rules", 0, "test_sets"), ["on"], "did you mean 'one'?"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "text"), MESSAGES, ids=[format_key(p) for p, _, _ in MESSAGES])
def test_the_message_says_what_was_found_and_what_was_expected(folder, path, value, text):
    plan = change_key(path, value)
    if path == ("gate", "rules", 0, "baseline"):
        del plan["test_set"][0]["pairs"]
    assert text in check_refused(folder, format_plan(plan).encode())


def test_every_error_is_listed_with_its_line(folder):
    text = """\
trials = "many"
seed = -1
[[test_set]]
name = "one"
systems = "runs/{system}.csv"
metrics = [
    "mean",  # a = [
    3,
]
[[test_set]]
name = "two"
systems = { base = "none.csv", new = "runs/new.csv" }
gold = '''
key = 3
'''
[gate]
rules = []
"""
    message = check_refused(folder, text.encode())
    places = [line.split(":")[0].strip() for line in message.split("\n")[1:]]
    assert places == ["line 1", "line 2", "line 6", "line 12", "line 13", "line 17"]


def test_windows_line_ends_and_a_byte_order_mark_are_read(folder):
    raw = b"\xef\xbb\xbf" + format_plan(build_good_plan()).replace("\n", "\r\n").encode()
    (folder / "plan.toml").write_bytes(raw)
    assert load_plan(folder / "plan.toml").seed == 1


def test_the_program_ends_with_status_2_and_one_message(folder):
    (folder / "plan.toml").write_text(format_plan(change_key(("trials",), "many")))
    result = subprocess.run(
        [sys.executable, "-m", "sigdask", "check", "plan.toml"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert result.stderr == 'sigdask: error: plan.toml, line 6: trials: found "many", expected a whole number\n'
    assert result.stdout == ""


VALUES = st.recursive(
    st.one_of(
        st.booleans(), st.integers(), st.floats(), st.just(DAY),
        st.text(st.characters(exclude_categories=("Cs",)), max_size=12), st.sampled_from(["all", "one", "base", "runs/*.csv"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6).filter(str.isprintable), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(list(iter_key_paths(build_good_plan()))), value=VALUES)
def test_whatever_a_value_is_the_plan_loads_or_is_refused(folder, path, value):
    (folder / "fuzz.toml").write_text(format_plan(change_key(path, value)), encoding="utf-8")
    try:
        load_plan(folder / "fuzz.toml")
    except InputError as error:
        assert str(error).startswith(str(folder / "fuzz.toml"))  # noqa: PT017


def test_mutants_do_not_change_the_good_plan():
    before = copy.deepcopy(build_good_plan())
    change_key(("seed",), 3)
    assert build_good_plan() == before
