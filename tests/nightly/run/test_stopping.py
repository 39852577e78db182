"""Early-stopping rules stop at the same counts on any cluster and over any number of nights."""

import json
import math
import signal

import pytest
from command import call_sigdask
from nights import read_tallies, write_plan

from sigdask.analysis.comparison import stopping
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan
from sigdask.nightly.store.status import build_report, read_status
from sigdask.results.messages import STOP_UNKNOWN
from sigdask.statistics.stopping import compute_sequence_interval, locate_exceedances

BESAG_CLIFFORD = 'adjust = "none"\nstopping = { rule = "besag-clifford", h = 10 }'
CONFIDENCE_SEQUENCE = 'adjust = "none"\nstopping = { rule = "confidence-sequence", epsilon = 0.001 }'


def load_stopping_plan(folder, more, trials=300_000, **options):
    return load_plan(write_plan(folder, sets=1, systems=7, trials=trials, settings=more, **options))


def test_besag_and_cliffords_p_is_that_of_the_tenth_exceedance(tmp_path):
    plan = load_stopping_plan(tmp_path / "night", BESAG_CLIFFORD)
    outcome = run_plan(plan, cluster="none")
    assert outcome.exit_status == 0
    results = outcome.results["set0"]
    stopping = [r for r in results if r.stopped.is_early]
    assert stopping
    for r in results:
        n_extreme, n_trials = find_exceedances(plan, r, 10)
        assert (r.n_extreme, r.n_trials) == (n_extreme, n_trials)
        assert r.p_value == (10 / n_trials if r.stopped.is_early else (n_extreme + 1) / (n_trials + 1))
    n_trials_kept = {row[3] for row in read_tallies(tmp_path / "night" / "night.sqlite")}
    assert min(n_trials_kept) == 4096
    first_run_trials = [row[3] for row in read_tallies(tmp_path / "night" / "night.sqlite") if row[1] == 0]
    assert build_report(plan.store).run.details["savings"]["set0"] == 1 - sum(first_run_trials) / (
        300_000 * len(first_run_trials)
    )


@pytest.mark.parametrize("more", [BESAG_CLIFFORD, CONFIDENCE_SEQUENCE])
def test_what_a_rule_has_ended_is_finished(tmp_path, more):
    plan = load_stopping_plan(tmp_path / "night", more)
    for _ in range(2):
        run_plan(plan, cluster="none")
        state = read_status(plan.store)
        [progress] = state.run.progress
        assert (state.state, progress.comparisons, progress.reached, progress.finished) == ("finished", 21, 21, 21)
        assert 0 < state.n_counted == state.n_wanted < 2 * 21 * 300_000
        assert "(100 %)" in call_sigdask("status", plan.path, cwd=plan.path.parent).stdout


def find_exceedances(plan, r, h):
    """Count up to h exceedances trial by trial, without blocks."""
    from sigdask.nightly.run.work import build_study

    [test_set] = plan.test_sets
    counts = test_set.read()
    job = build_study(plan, [(test_set, counts)]).jobs[0]
    names = counts.systems
    [row] = [k for k, (i, j) in enumerate(job.panel.pairs) if (names[i], names[j]) == (r.a, r.b)]
    panel = job.panel.select([row], [0])
    k = 0
    for first in range(0, 300_000, 100):
        n_in_block = int(panel.tally(run=0, first=first, n_trials=min(100, 300_000 - first)).counts[0, 0, 2])
        if k + n_in_block >= h:
            for t in range(first, first + 100):
                k += int(panel.tally(run=0, first=t, n_trials=1).counts[0, 0, 2])
                if k == h:
                    return k, t + 1
        k += n_in_block
    return k, 300_000


@pytest.mark.parametrize("more", [BESAG_CLIFFORD, CONFIDENCE_SEQUENCE])
def test_where_it_stops_does_not_depend_on_nights_or_on_what_more_is_kept(tmp_path, more):
    at_once = run_plan(load_stopping_plan(tmp_path / "a", more), cluster="none")
    run_plan(load_stopping_plan(tmp_path / "b", 'adjust = "none"', trials=20_000), cluster="none")
    later = run_plan(load_stopping_plan(tmp_path / "b", more), cluster="none")
    run_plan(load_stopping_plan(tmp_path / "c", 'adjust = "none"'), cluster="none")
    resumed = run_plan(load_stopping_plan(tmp_path / "c", more), cluster="none")
    assert resumed.n_counted == 0
    assert list_outcomes(later) == list_outcomes(at_once) == list_outcomes(resumed)
    repeated = run_plan(load_stopping_plan(tmp_path / "a", more), cluster="none")
    assert (repeated.n_counted, repeated.n_changed) == (0, 0)


@pytest.mark.parametrize("more", [BESAG_CLIFFORD, CONFIDENCE_SEQUENCE])
@pytest.mark.parametrize("trials", [1000, 4096, 10_000, 50_000])
@pytest.mark.parametrize("before", [BESAG_CLIFFORD, 'adjust = "none"'])
def test_with_fewer_trials_than_are_kept_the_rule_sees_those_asked_for(tmp_path, more, trials, before):
    at_once = run_plan(load_stopping_plan(tmp_path / "a", more, trials=trials), cluster="none")
    run_plan(load_stopping_plan(tmp_path / "b", before, trials=65_536), cluster="none")
    for _ in range(2):
        lowered = run_plan(load_stopping_plan(tmp_path / "b", more, trials=trials), cluster="none")
        assert list_outcomes(lowered) == list_outcomes(at_once)
        assert lowered.exit_status == 0
        assert max(r.n_trials for r in lowered.results["set0"]) <= trials
        assert (
            read_status(str(tmp_path / "b" / "night.sqlite")).n_counted
            == read_status(str(tmp_path / "a" / "night.sqlite")).n_counted
        )


def list_outcomes(outcome):
    return [(r.a, r.b, r.n_trials, r.n_extreme, repr(r.p_value), r.stopped) for r in outcome.results["set0"]]


def test_the_confidence_sequence_gives_decisions_and_no_p(tmp_path):
    plan = load_stopping_plan(tmp_path / "night", CONFIDENCE_SEQUENCE)
    results = run_plan(plan, cluster="none").results["set0"]
    for r in results:
        assert math.isnan(r.p_value)
        assert r.p_interval == compute_sequence_interval(r.n_extreme, r.n_trials, 0.001)
        low, high = r.p_interval
        if r.stopped.is_significant is not None:
            assert r.verdict(0.05) == ("significant" if high < 0.05 else "not significant")
            assert high < 0.05 or low > 0.05
    result = call_sigdask("run", plan.path, "--json", "-", cwd=plan.path.parent)
    rows = json.loads(result.stdout)["results"]
    assert {row["p_value"] for row in rows} == {None}
    assert {row["stopped"]["rule"] for row in rows} == {"confidence-sequence"}
    text = call_sigdask("report", plan.path, cwd=plan.path.parent).stdout
    assert "stopping early saved" in text
    assert "nan" not in text


def test_a_stop_while_the_tenth_exceedances_are_looked_for_bounds_p_and_the_next_night_finds_them(
    tmp_path, monkeypatch
):
    at_once = run_plan(load_stopping_plan(tmp_path / "a", BESAG_CLIFFORD), cluster="none")
    plan = load_stopping_plan(tmp_path / "b", BESAG_CLIFFORD)

    def interrupt(*block):
        yield from list(locate_exceedances(*block))[:2]
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(stopping, "locate_exceedances", interrupt)
    stopped = run_plan(plan, cluster="none")
    assert (stopped.exit_status, stopped.stopped) == (3, "SIGTERM")
    loose = 0
    for bound, expected in zip(stopped.results["set0"], at_once.results["set0"], strict=True):
        assert bound.p_value >= expected.p_value
        if STOP_UNKNOWN in bound.notes:
            loose += 1
        else:
            assert bound.p_value == expected.p_value
    assert loose
    assert build_report(plan.store).n_incomplete == loose
    monkeypatch.undo()
    later = run_plan(plan, cluster="none")
    assert (later.exit_status, later.n_counted) == (0, 0)
    assert list_outcomes(later) == list_outcomes(at_once)
    assert not later.second_looks
