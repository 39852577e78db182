"""Broken plans: each gives one message that names file and key, and no traceback."""

import copy
import datetime as dt
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner
from command import limit_cpu
from good_plan import build_good_plan, change_key, format_plan, iter_key_paths, remove_key, write_plan_inputs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sigdask.cli import commands
from sigdask.errors import InputError
from sigdask.nightly.plan import load_plan
from sigdask.nightly.plan.errors import format_key

DAY = dt.date(2026, 1, 31)

WRONG_VALUES = {
    ("name",): ["   "],
    ("metrics",): [[], ["mean", "mean"], ["my metrics:best"], ["mean:3"], ["f[LOC"], ["macro-f1:labels"]],
    ("pairs",): ["al", {"baselin": "base"}, {"baseline": "nobody"}, [["base", "new", "old"]], [["new", "new"]]],
    ("trials",): [0, "4096", 2**48 + 1, 10**400, True],
    ("alpha",): [0, 1, float("nan")],
    ("second_run",): [1],
    ("adjust",): ["hollm", "tukey"],
    ("tests",): ["anova", "t,"],
    ("cluster",): ["moon", "scheduler.json", {"class": 3}, {"file": "none.toml"}, {"file": "long.csv", "cores": 3}],
    ("store",): ["none/night.sqlite", "runs", "mysql://host/db", "long.csv", "plan.toml"],
    ("rankings", 0, "name"): ["one", "x" * 5000],
    ("rankings", 0, "n"): [[-1], "ten", "3:1:1", "1:99999:1"],
    ("rankings", 0, "pairs"): [{"baseline": 3}, [["t"]]],
    ("rankings", 0, "samples"): [100_001],
    ("test_set", 0, "name"): ["two"],
    ("test_set", 0, "systems"): ["none/{system}.csv", "runs/[a.csv", {"base": []}, {"": "runs/base.csv"}, "a\0{system}",
                                 ["runs/base.csv", "runs/base.csv"], {"a": "runs/base.csv", "b": "runs/base.csv"}],
    ("test_set", 0, "format"): ["conl", "wide:x"],
    ("test_set", 0, "unit"): ["remark"],
    ("test_set", 0, "by"): ["remark"],
    ("test_set", 0, "ignore"): [["topic"]],
    ("test_set", 0, "pairs"): [[["new", "new"]], [["new", "base"], ["base", "new"]]],
    ("test_set", 1, "gold"): ["../none.csv", "runs"],
    ("test_set", 1, "map"): [{"P": []}],
    ("report", "json"): ["none/out.json", "night-{day}.json", "plan.toml"],
    ("gate", "rules"): [[{}]],
    ("gate", "rules", 0, "rule"): ["notworse"],
    ("gate", "rules", 0, "test_sets"): [["eins"]],
    ("gate", "rules", 1, "margin"): [float("inf")],
    ("gate", "json"): ["gate.xml"],
    ("gate", "command"): [["no-such-program-here"]],
    ("gate", "webhook"): ["127.0.0.1/hook", "http://host:99999/"],
    ("gate", "timeout"): [4000],
}  # fmt: skip
"""One or more values for each check of our own. Wrong types are pydantic's, and a test below draws them at random."""

ALSO_NAMED_AT = {("test_set", 0, "unit"): [("test_set", 0, "ignore")]}
EXPLANATIONS = re.compile(
    "should be|choose|test sets:|no such|missing|which is a folder|matches no|twice|needs|is the name|is an input|both a unit|also a unit|no system|is paired"
)

MUTANTS = [(path, value) for path, values in WRONG_VALUES.items() for value in values]

REQUIRED_KEYS = [("test_set",), ("test_set", 0, "name"), ("test_set", 0, "systems"), ("gate", "rules"),
          ("gate", "rules", 0, "rule"), ("gate", "rules", 1, "margin")]  # fmt: skip

RAW_PLANS = {
    "empty": (b"", "test_set: missing"),
    "a comment alone": (b"# nothing\n", "test_set: missing"),
    "UTF-16": ("name = 'x'\n".encode("utf-16"), "is UTF-16, not UTF-8"),
    "Latin 1": (b"name = 'n\xe4chtlich'\n", "line 1: byte 0xe4 at offset 9 is not UTF-8"),
    "Latin 1 far down": (b"# x\n" * 9 + b"name = '\xff'\n", "line 10: byte 0xff"),
    "NUL": (b"name = '\x00'\n", "not TOML"),
    "binary": (bytes(range(256)), "not UTF-8"),
    "unclosed string": (b"name = 'x\nseed = 1", "line 1 has a quotation mark that is not closed: name = 'x"),
    "unclosed basic string": (b'seed = 1\nname = "x\nalpha = 0.1\n', "line 2 has a quotation mark that is not closed"),
    "unclosed list": (b"seed = 1\nmetrics = ['a',\n", "line 2 begins a list or table that is not closed"),
    "key twice": (b"seed = 1\nseed = 2\n", "not TOML: Cannot overwrite a value (at line 2"),
    "table twice": (b"[gate]\n[gate]\n", "not TOML"),
    "no value": (b"seed =\n", "line 1"),
    "bare word": (b"method = auto\n", "text needs quotation marks, and a list ends with ]: method = auto"),
    "YAML": (b"# sets\nname: nightly\nseed: 1\n", "not TOML, but YAML; write the plan in TOML: `sigdask init FOLDER`"),
    "YAML list": (b"- name: nightly\n", "not TOML, but YAML"),
    "JSON": (b'{"name": "nightly"}', "not TOML, but JSON; write the plan in TOML: `sigdask init FOLDER`"),
    "one bracket": (b"[test_set]\nname = 'x'\n", "expected a list of tables: write [[test_set]], with two brackets"),
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


@pytest.mark.parametrize(
    ("path", "value"), MUTANTS, ids=[f"{format_key(p)}={str(v)[:30]!r}-{n}" for n, (p, v) in enumerate(MUTANTS)]
)
def test_a_wrong_value_is_one_clear_error_that_names_its_key(folder, path, value):
    message = check_refused(folder, format_plan(change_key(path, value)).encode())
    assert any(format_key(key) in message for key in (path, path[:-1], *ALSO_NAMED_AT.get(path, ())) if key)
    assert "expected" in message or "did you mean" in message or EXPLANATIONS.search(message), message
    assert f"{folder / 'plan.toml'}, line " in message or " errors\n" in message


MISSPELT_KEYS = [
    ("trials",), ("cluster",), ("rankings", 0, "gold_column"), ("test_set", 0, "systems"), ("test_set", 2, "system_column"),
    ("report", "json"), ("gate", "rules", 0, "rule"), ("gate", "rules", 1, "margin"),
]  # fmt: skip


@pytest.mark.parametrize("path", MISSPELT_KEYS, ids=format_key)
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
    (("trials",), "many", 'trials: found "many", expected a whole number'),
    (("alpha",), 5, "alpha: found 5, expected a number below 1"),
    (("alternative",), "grater", "alternative: found \"grater\", expected one of 'two-sided', 'greater' or 'less'; did you mean 'greater'?"),
    (("test_set", 1, "name"), "one", 'test_set[1].name: "one" is already the name of test_set[0]'),
    (("test_set", 0, "systems"), "runs/{system}.tsv", "which matches no file"),
    (("test_set", 1, "gold"), "labels", "which is a folder"),
    (("report", "text"), "night-{day}.txt", "{day} is not known, expected {date} or {time}"),
    (("report", "json"), "runs/base.csv", 'is an input of test set "one"'),
    (("tests",), "t,wilcoxn", "tests: no classical test 'wilcoxn'; did you mean 'wilcoxon'?"),
    (("test_set", 0, "metrics"), ["my metrics:best"], "expected MODULE:ATTRIBUTE"),
    (("store",), "postgres://u@h/d", "did you mean 'postgresql'?"),
    (("gate", "rules", 0), "not-worse", 'expected a table: write rules = [{ rule = "not-worse" }]'),
    (("gate", "rules", 0, "adjust"), "by", "found \"by\", expected one of 'holm', 'plan' or 'none'"),
    (("gate", "rules"), {"rule": "not-worse"}, "write [[gate.rules]], with two brackets"),
    (("gate",), {"rule": "not-worse"}, 'gate.rule: unknown key here; write rules = [{ rule = "not-worse" }]'),
    (("gate", "margin"), 0.1, "gate.margin: unknown key here; margin belongs in a rule: rules = ["),
    (("gate",), [{"rules": []}], "gate: found a list of 1, expected one table: write [gate], with one bracket"),
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


N_LARGE = 20_000
LARGE_PLANS = {
    "valid": (
        '[gate]\nrules = [{ rule = "not-worse", test_sets = ["' + '", "'.join(map(str, range(N_LARGE))) + '"] }]\n',
        '[[test_set]]\nname = "{}"\nsystems = "long.csv"\npairs = {{ baseline = "base" }}\n',
        None,
    ),
    "empty": ("", "[[test_set]]\n", r": 40000 errors\n  line 1: test_set\[0\].name: missing"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LARGE_PLANS)
def test_a_plan_of_20_000_test_sets_is_validated_or_refused(kind, folder):
    start, test_set, problem = LARGE_PLANS[kind]
    (folder / "plan.toml").write_text(start + "".join(map(test_set.format, range(N_LARGE))))
    with limit_cpu():
        if problem is None:
            assert len(load_plan(folder / "plan.toml").test_sets) == N_LARGE
        else:
            with pytest.raises(InputError, match=problem):
                load_plan(folder / "plan.toml")


def test_a_rule_may_name_many_unknown_test_sets(folder):
    names = ", ".join(f'"x{k}"' for k in range(N_LARGE))
    (folder / "plan.toml").write_text(
        f'[gate]\nrules = [{{ rule = "not-worse", test_sets = [{names}] }}]\n'
        + "".join(f'[[test_set]]\nname = "{k}"\nsystems = "long.csv"\n' for k in range(1000))
    )
    problem = r": 20000 errors\n  line 2: gate.* no test set .x0.; did you mean '0'\?"
    with limit_cpu(), pytest.raises(InputError, match=problem):
        load_plan(folder / "plan.toml")


@pytest.mark.parametrize("table", ["test_set", "rankings", "independence"])
def test_a_plan_of_more_than_100_000_entries_is_refused_at_once(table, folder):
    (folder / "plan.toml").write_text(f"[[{table}]]\n" * 100_001)
    with pytest.raises(InputError, match=rf"plan.toml: 100,001 entries of \[\[{table}\]\], at most 100,000; split it"):
        load_plan(folder / "plan.toml")


VALUES = st.recursive(
    st.one_of(
        st.booleans(), st.integers(), st.floats(), st.just(DAY),
        st.text(st.characters(exclude_categories=("Cs",)), max_size=12), st.sampled_from(["all", "one", "base", "runs/*.csv"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6).filter(str.isprintable), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_wrong_pairs_of_all_test_sets_are_named_once(tmp_path):
    (tmp_path / "scores.csv").write_text("item,a,b\n1,2,3\n2,3,4\n")
    sets = "".join(f'[[test_set]]\nname = "{k}"\nsystems = "scores.csv"\nmetrics = ["mean"]\n' for k in range(3))
    plan = tmp_path / "plan.toml"
    plan.write_text('pairs = [["a", "a"], ["a", "b"], ["b", "a"]]\n' + sets)
    with pytest.raises(InputError) as raised:
        load_plan(plan)
    assert str(raised.value).count("paired with itself") == str(raised.value).count("paired twice") == 1
