"""Broken plans: each gives one message that names file and key, and no traceback."""

import datetime as dt
import re

import pytest
from click.testing import CliRunner
from good_plan import build_good_plan, change_key, format_plan, iter_key_paths, write_plan_inputs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sigdask.cli import commands
from sigdask.errors import InputError
from sigdask.nightly.plan import load_plan
from sigdask.nightly.plan.load import format_key

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
    ("cluster",): ["moon", "scheduler.json", {"class": 3}],
    ("store",): ["none/night.sqlite", "runs", "mysql://host/db", "long.csv", "plan.toml"],
    ("test_set", 0, "name"): ["two"],
    ("test_set", 0, "systems"): ["none/{system}.csv", "runs/[a.csv", {"base": []}, {"": "runs/base.csv"}, "a\0{system}",
                                 ["runs/base.csv", "runs/base.csv"], {"a": "runs/base.csv", "b": "runs/base.csv"}],
    ("test_set", 0, "format"): ["conl", "wide:x"],
    ("test_set", 0, "unit"): ["remark"],
    ("test_set", 0, "by"): ["remark"],
    ("test_set", 0, "ignore"): [["topic"]],
    ("test_set", 0, "pairs"): [[["new", "base"], ["new", "new"]], [["new", "base"], ["base", "new"]]],
    ("test_set", 1, "gold"): ["../none.csv"],
    ("test_set", 1, "map"): [{"P": []}],
    ("report", "json"): ["none/out.json", "night-{day}.json", "plan.toml"],
    ("gate", "rules"): [[{}]],
    ("gate", "rules", 0, "test_sets"): [["eins"]],
    ("gate", "rules", 1, "margin"): [float("inf")],
    ("gate", "json"): ["gate.xml"],
    ("gate", "webhook"): ["127.0.0.1/hook", "http://host:99999/"],
}  # fmt: skip
"""One or more values for each check of our own. Wrong types are pydantic's, and a test below draws them at random."""

ALSO_NAMED_AT = {("test_set", 0, "unit"): [("test_set", 0, "ignore")]}
EXPLANATIONS = re.compile(
    "should be|choose|keys:|test sets:|no such|missing|which is a folder|matches no|twice|needs|is the name|is an input|both a unit|also a unit|no system|compared with itself"
)

MUTANTS = [(path, value) for path, values in WRONG_VALUES.items() for value in values]

REQUIRED_KEYS = [("test_set",), ("test_set", 0, "name"), ("test_set", 0, "systems"), ("gate", "rules"),
                 ("gate", "rules", 1, "margin")]  # fmt: skip

RAW_PLANS = {
    "empty": (b"", "test_set: missing"),
    "Latin 1": (b"name = 'n\xe4chtlich'\n", "line 1: is not UTF-8"),
    "unclosed list": (b"seed = 1\nmetrics = ['a',\n", "at end of document"),
    "key twice": (b"seed = 1\nseed = 2\n", "not TOML: Cannot overwrite a value (at line 2"),
    "YAML": (b"# sets\nname: nightly\nseed: 1\n", "write the plan in TOML: `sigdask init FOLDER`"),
    "JSON": (b'{"name": "nightly"}', "write the plan in TOML: `sigdask init FOLDER`"),
    "one bracket": (b"[test_set]\nname = 'x'\n", "expected a list of tables: write [[test_set]], with two brackets"),
    "number of 5000 digits": (b"seed = " + b"9" * 5000 + b"\n", "not TOML"),
    "deep": (b"metrics = " + b"[" * 5000 + b"]" * 5000 + b"\n", "not TOML"),
    "many unknown keys": (b"".join(b"k%d = 1\n" % k for k in range(300)), "301 errors"),
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


@pytest.mark.parametrize(
    ("path", "value"), MUTANTS, ids=[f"{format_key(p)}={str(v)[:30]!r}-{n}" for n, (p, v) in enumerate(MUTANTS)]
)
def test_a_wrong_value_is_one_clear_error_that_names_its_key(folder, path, value):
    message = check_refused(folder, format_plan(change_key(path, value)).encode())
    assert any(format_key(key) in message for key in (path, path[:-1], *ALSO_NAMED_AT.get(path, ())) if key)
    assert "expected" in message or "did you mean" in message or EXPLANATIONS.search(message), message


@pytest.mark.parametrize("path", REQUIRED_KEYS, ids=format_key)
def test_a_key_that_is_needed_is_missed(folder, path):
    assert "missing" in check_refused(folder, format_plan(change_key(path)).encode())


@pytest.mark.parametrize(("raw", "message"), RAW_PLANS.values(), ids=RAW_PLANS.keys())
def test_what_is_no_plan_at_all_is_one_clear_error(folder, raw, message):
    assert message in check_refused(folder, raw)


MESSAGES = [
    (("test_set", 0, "formt"), "wide", "test_set[0].formt: unknown key; did you mean 'format'?"),
    (("metrics",), ["AP"], "line 2, test_set[2].metrics: metric 'AP' needs"),
    (("alternative",), "grater", "did you mean 'greater'"),
    (("tests",), "t,wilcoxn", "did you mean 'wilcoxon'?"),
    (("gate", "rules"), {"rule": "not-worse"}, "write [[gate.rules]], with two brackets"),
    (("gate", "rules", 0, "rule"), "notworse", "rules[0].rule: found \"notworse\", expected 'not-worse', 'non-inferior'; did"),
    (("gate", "rules"), ["not-worse"], 'rules[0]: found "not-worse", expected a table such as { rule = "not-worse" }'),
    (("test_set", 0, "systems"), {"base": {"a": "b"}}, "systems.base: found a table, expected 'text', 'list'"),
    (("gate",), [{"rules": []}], "write [gate], with one bracket"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "text"), MESSAGES, ids=[format_key(p) for p, _, _ in MESSAGES])
def test_the_message_names_what_was_meant(folder, path, value, text):
    assert text in check_refused(folder, format_plan(change_key(path, value)).encode())


def test_windows_line_ends_and_a_byte_order_mark_are_read(folder):
    raw = b"\xef\xbb\xbf" + format_plan(build_good_plan()).replace("\n", "\r\n").encode()
    (folder / "plan.toml").write_bytes(raw)
    assert load_plan(folder / "plan.toml").comparison["seed"] == 1


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
@pytest.mark.slow
def test_whatever_a_value_is_the_plan_loads_or_is_refused(folder, path, value):
    (folder / "fuzz.toml").write_text(format_plan(change_key(path, value)), encoding="utf-8")
    try:
        load_plan(folder / "fuzz.toml")
    except InputError as error:
        assert str(error).startswith(str(folder / "fuzz.toml"))  # noqa: PT017


PLAN_WITH_ERRORS = '''reprot.json = 1
gate.rules = [  # one on each line
  { rule = "not-worse", alpah = 0.1 },
  { rule = "nope" },
]

[[test_set]]
name = "one"
systems = { "a b.c" = """
none""" }

[[test_set]]
"gold" = 7
[test_set.columns]
itme = "id"
'''


def test_errors_name_the_lines_of_their_keys(folder):
    rows = check_refused(folder, PLAN_WITH_ERRORS.encode()).splitlines()[1:]
    places = [
        "line 1, reprot", "line 3, gate.rules[0].alpah", "line 4, gate.rules[1].rule", "line 9, test_set[0].systems",
        "line 12, test_set[1].name", "line 12, test_set[1].systems", "line 13, test_set[1].gold",
        "line 15, test_set[1].columns.itme",
    ]  # fmt: skip
    assert [row.strip().partition(": ")[0] for row in rows] == places
