"""Tests of results as columns: views of rows, rows read back, slices of tables, joined tables."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import build_rng
from hypothesis import given, settings
from hypothesis import strategies as st

import sigdask
from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.formats import read
from sigdask.report.presentable import Results
from sigdask.results.fields import get_result, iter_results
from sigdask.results.from_records import results_to_table
from sigdask.results.notes import Note
from sigdask.results.record import ClassicalTest, Exact, Interval, OtherUnitResult, Result, SecondRun
from sigdask.results.table import Table
from sigdask.statistics.bounds import Check, clopper_pearson, compute_bound, judge_known_p, judge_second_run
from sigdask.statistics.dependence import Dependence

YEH = Path(sigdask.__file__).parent / "examples" / "yeh2000.tsv"
ALPHA = 0.05
P = st.floats(0, 1, allow_subnormal=False)
NAMES = st.sampled_from(["a", "b", "ä\n", 'quo"te","', "back\\", "\udc80", ""])
WORDS = st.text(max_size=8)


@st.composite
def draw_checks(draw, k, n, n_extreme_again, agreement, *, is_exact):
    checks = []
    if n_extreme_again is not None:
        checks.append(judge_second_run(k, n_extreme_again, n, agreement, draw(st.integers(1, 9))))
    elif draw(st.booleans()):
        checks.append(Check("second run", "not applicable", None, draw(WORDS)))
    if draw(st.booleans()):
        checks.append(Check("sign test", "not applicable", None, draw(WORDS)))
    elif draw(st.booleans()) and n:
        checks.append(judge_known_p("sign test", draw(st.floats(1e-9, 1)), k, n, 3, exact=is_exact))
    if draw(st.booleans()):
        checks.append(Check("exact value", draw(st.sampled_from(["agrees", "disagrees"])), draw(P), draw(WORDS)))
    return tuple(checks)


NOTES = st.tuples(
    st.sampled_from(["identical", "zero-division", "undecided", "second-look", "few-units"]), WORDS,
    st.sampled_from([{}, {"system": "a", "score": 0.0}, {"n_trials": 7}]),
)  # fmt: skip


T_TEST = ClassicalTest("t", None, None, None, assumes_independence=False, detail="fewer than 2 units")
SIGN_TEST = ClassicalTest("sign", 4.0, 0.6875, 6, assumes_independence=False, detail="exact; 1,001 dropped")
SHARE_TEST = ClassicalTest("binomial", 2.5, 0.1, 20, assumes_independence=True, detail='by "doc"')


@st.composite
def draw_results(draw):
    """Draw any result, even one that no version produces."""
    is_exact = draw(st.booleans())
    n = draw(st.integers(0, 2**40))
    k = draw(st.integers(0, n))
    p = 1.0 if n == 0 else k / n if is_exact else compute_bound(k, n)
    n_extreme_again = draw(st.none() | st.integers(0, n)) if n else None
    agreement = draw(P)
    adjusted = draw(st.none() | P)
    return Result(
        test_set=draw(NAMES), subset=draw(st.none() | st.fixed_dictionaries({"column": NAMES, "value": NAMES})),
        unit=draw(NAMES), a=draw(NAMES), b=draw(NAMES), metric=draw(NAMES), higher_is_better=draw(st.booleans()),
        score_a=draw(st.floats(allow_nan=False)), score_b=draw(st.floats(allow_nan=False)),
        difference=draw(st.floats(allow_nan=False)), alternative=draw(st.sampled_from(["two-sided", "less"])),
        n_items=draw(st.integers(0, 2**40)), n_units=draw(st.integers(0, 99)), n_discordant=draw(st.integers(0, 3)),
        method="exact" if is_exact else "approximate", n_trials=n, n_extreme=k, p_value=p,
        p_interval=(p, p) if is_exact or not n else clopper_pearson(k, n), p_adjusted=adjusted, r12=draw(st.none() | P),
        second_run=None if n_extreme_again is None else SecondRun(n, n_extreme_again, compute_bound(n_extreme_again, n), agreement),
        exact=draw(st.none() | st.builds(Exact, P, P, NAMES, NAMES)),
        checks=draw(draw_checks(k, n, n_extreme_again, agreement, is_exact=is_exact)),
        dependence=draw(st.sampled_from([(), (Dependence("doc", 3, -0.1, 1.2, 0.5),),
                                         (Dependence("doc", 3, 0.1, 1.2, 0.5), Dependence("x", 2, 0.0, 0.0, 1.0))])),
        beside=draw(st.sampled_from([(), (OtherUnitResult("item", 9, "approximate", 10, 2, 0.3),),
                                     (OtherUnitResult("item", 9, "exact", 8, 2, 0.25), OtherUnitResult("doc", 3, "exact", 8, 8, 1.0))])),
        notes=tuple(Note(*arguments) for arguments in draw(st.lists(NOTES, max_size=2))),
        signature=draw(st.none() | NAMES),
        p_adjusted_interval=None if adjusted is None else draw(st.none() | st.tuples(P, P)),
        tests=draw(st.sampled_from([(), (SIGN_TEST,), (T_TEST, SIGN_TEST, SHARE_TEST)])),
        interval=draw(st.none() | st.builds(Interval, st.sampled_from(["bootstrap-bca", "tango"]), P, P, P,
                                            st.none() | st.integers(1, 9), st.none() | st.tuples(P, P))),
        score_a_interval=draw(st.none() | st.tuples(P, P)), score_b_interval=draw(st.none() | st.tuples(P, P)),
        paired_d=draw(st.none() | P),
    )  # fmt: skip


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(draw_results(), max_size=5), st.data())
def test_rows_come_back_from_columns_as_they_were(rows, data):
    table = results_to_table(rows, ALPHA)
    assert [*iter_results(table)] == rows == [get_result(table, k) for k in range(len(rows))]
    order = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6)) if rows else []
    assert [*iter_results(table.take(np.array(order, np.int64)))] == [rows[k] for k in order]
    cut = data.draw(st.integers(0, len(rows)))
    tables = [results_to_table(rows[:cut], ALPHA), table.take(slice(cut, None))]
    assert [*iter_results(Table.join(tables))] == rows
    assert [*iter_results(table.take(slice(None, None, -1)))] == rows[::-1]
    codes = {None: -1, False: 0, True: 1}
    assert table.decision.tolist() == [codes[r.decision(ALPHA)] for r in rows]
    assert table.has_disagreement.tolist() == [bool(r.disagreements()) for r in rows]
    written_results = Results(table, 0, ALPHA)
    written, read_back = written_results.to_dict(), json.loads(written_results.to_json())
    assert read_back == written
    assert [[*row] for row in (read_back, *read_back["results"])] == [[*row] for row in (written, *written["results"])]


def draw_counts():
    """Draw correlated 0/1 scores of documents, with two equal systems and two units."""
    rng = np.random.default_rng(1)
    document = np.repeat(np.arange(30), 4)
    ease = rng.normal(0, 2, 30)[document]
    scores = {name: (ease + rng.normal(k / 4, 1, 120) > 0).astype(int) for k, name in enumerate("abcd")}
    scores["same"] = scores["a"]
    groups = {"document": [f"d{k}" for k in document], "half": ["x"] * 60 + ["y"] * 60}
    return Counts.from_scores(scores, groups=groups)


REAL_RESULTS = {
    "sampled twice": lambda: compare_all(draw_counts(), metrics=["mean"], trials=200),
    "one run, not adjusted": lambda: compare_all(draw_counts(), metrics=["mean"], trials=90, second_run=False, adjust="none"),
    "by document, items beside": lambda: compare_all(draw_counts(), metrics=["mean"], trials=99, unit="document"),
    "subsets, enumerated as well": lambda: compare_all(draw_counts(), metrics=["mean"], by="document", method="both", trials=50),
    "one-sided, Holm": lambda: compare_all(draw_counts(), metrics=["mean"], trials=64, alternative="less", adjust="holm"),
    "Yeh's example": lambda: compare_all(read(YEH), metrics=["recall", "f1", "precision"], trials=5000),
}  # fmt: skip


@pytest.mark.parametrize("name", REAL_RESULTS)
def test_what_is_found_of_real_comparisons_makes_the_round_trip(name):
    real_results = REAL_RESULTS[name]()
    rows = [*real_results]
    rebuilt = results_to_table(rows, real_results.alpha)
    assert repr([*iter_results(rebuilt)]) == repr(rows)  # NaN is like itself there
    assert rebuilt.notes == {}  # all words follow from numbers
    assert all(not checked.kept for checked in rebuilt.checks.values())
    assert json.loads(real_results.to_json()) == real_results.to_dict()


def test_results_are_a_sequence_of_views():
    real_results = REAL_RESULTS["Yeh's example"]()
    rows = [*real_results]
    assert real_results[0] == rows[0]
    assert real_results[-1] == rows[-1]
    assert real_results[1:3] == tuple(rows[1:3])
    assert real_results.index(rows[2]) == 2
    with pytest.raises(IndexError):
        real_results[len(rows)]
    assert real_results == replace(real_results)
    assert real_results != replace(real_results, seed=1)
    assert real_results != rows


def test_what_is_missing_in_a_frame_is_missing_in_every_library():
    rows = [*REAL_RESULTS["one run, not adjusted"]()[:2]]
    rows[1] = replace(rows[1], subset={"column": "half", "value": "x"})
    stopped_results = Results(results_to_table(rows, ALPHA), 0, ALPHA)
    assert stopped_results.to_frame()["p_adjusted"].isna().all()
    assert stopped_results.to_frame("pyarrow")["p_adjusted"].to_pylist() == [None, None]
    for library, to_list in (
        ("pandas", lambda c: c.astype(object).where(c.notna(), None).tolist()),
        ("pyarrow", lambda c: c.to_pylist()),
    ):
        frame = stopped_results.to_frame(library)
        assert to_list(frame["subset"]) == [None, "x"]


def test_results_are_shown_as_a_short_table(yeh):
    assert repr(sigdask.compare_all(yeh)) == (
        "Results: 3 comparisons, alpha 0.05\n"
        "A  B   metric     score A  score B    A - B  unadjusted p\n"
        "I  II  recall      0.4563   0.2427  +0.2136      0.000196  significant\n"
        "I  II  precision   0.4947   0.6410  -0.1463          0.04  contested\n"
        "I  II  f1          0.4747   0.3521  +0.1226        0.0296  significant"
    )


def test_many_comparisons_are_the_first_and_how_many_more():
    lines = repr(sigdask.compare_all(build_rng(0).normal(size=(40, 40)), trials=10, adjust="none")).splitlines()
    assert len(lines) == 13
    assert lines[0] == "Results: 780 comparisons, alpha 0.05"
    assert lines[-1] == "and 770 more"


def test_no_name_is_a_command_to_the_terminal():
    results = sigdask.compare_all({"a\x1b]0;title\x07": [1, 2, 3], "b\nc": [2, 2, 2]})
    for text in (repr(results), repr(results[0])):
        assert all(line.isprintable() for line in text.splitlines())
        assert "b\\nc" in text
