"""Tests of stored results, in blocks of columns: a night adds little to a store when little changes."""

import zlib

import numpy as np
import pytest
from builders import build_result, results_to_table

from sigdask.nightly.store import COMPARISON, COMPLETE, open_for_reading, open_store, results, status
from sigdask.results.columns import encode
from sigdask.results.fields import iter_results


def build_row(a, b, p=0.5, **changes):
    values = {
        "test_set": "s", "subset": None, "unit": "item", "metric": "mean", "higher_is_better": True, "score_a": 0.25,
        "score_b": 0.125, "difference": 0.125, "alternative": "two-sided", "n_items": 9, "n_units": 9,
        "n_discordant": 5, "method": "approximate", "n_trials": 99, "n_extreme": 49, "p_interval": (0.25, 0.75),
    }  # fmt: skip
    return build_result(a=a, b=b, p_value=p, **values | changes)


def build_table(n_systems, p):
    """Build a table of all pairs of systems, in columns."""
    i, j = np.triu_indices(n_systems, 1)
    names = tuple(f"system{k}" for k in range(n_systems))
    single = results_to_table([build_row("a", "b")], 0.05)
    repeated = single.take(np.zeros(len(i), np.int64))
    scores = np.arange(n_systems) / 1000
    return repeated.replace(
        a=encode(names, i), b=encode(names, j), p_value=p, score_a=scores[i],
        score_b=scores[j], difference=scores[i] - scores[j],
    )  # fmt: skip


def build_stored(table):
    """Build what a run records, with comparisons identified by their systems."""
    number = np.array(
        [zlib.crc32(f"{a} {b}".encode()) for a, b in zip(table.a.tolist(), table.b.tolist(), strict=True)]
    )
    return table.replace(**{COMPARISON: number, COMPLETE: np.ones(len(table), np.bool_)})


DETAILS = {"settings": {"alpha": 0.05, "seed": 0}, "frames": {}}


def record_night(where, table, state="finished"):
    with open_store(where, "p", details=DETAILS) as store:
        changed = store.save_results(build_stored(table))
        store.commit(state=state)
        return store.run.number, changed


def test_a_night_adds_what_it_changed_alone(tmp_path):
    file, rng = tmp_path / "n.sqlite", np.random.default_rng(0)
    p = rng.random(4950)
    assert record_night(str(file), build_table(100, p))[1] == 4950
    n_bytes = [file.stat().st_size]
    for n_changed in (0, 25):
        p[rng.choice(4950, n_changed, replace=False)] = 0.01
        assert record_night(str(file), build_table(100, p))[1] == n_changed
        n_bytes.append(file.stat().st_size)
    assert n_bytes[1] == n_bytes[0]
    assert n_bytes[2] - n_bytes[1] <= 2 * 4096  # of pages; a block of all results has more than ten
    assert [len(c) for c in (status.list_runs(str(file)), status.build_report(str(file)).results["s"])] == [3, 4950]


def test_a_run_is_compared_with_the_latest_one_that_was_not_stopped(tmp_path):
    store = str(tmp_path / "n.sqlite")
    for p, state in ((0.5, "stopped"), (0.4, "finished"), (0.3, "stopped"), (0.4, "finished")):
        record_night(store, build_table(2, np.array([p])), state)
    reports = [status.build_report(store, "p", number) for number in (2, 3, 4)]
    assert [(r.before, len(r.changes)) for r in reports] == [(None, 0), (2, 1), (2, 0)]


@pytest.mark.slow
def test_what_held_after_each_of_many_nights_is_what_was_found_then(tmp_path):
    rng = np.random.default_rng(1)
    nights = []
    store = str(tmp_path / "n.sqlite")
    for _ in range(12):
        names = [name for name in "abcdef" if rng.random() < 0.8]
        rows = {(a, b): build_row(a, b, rng.integers(3) / 4) for a in names for b in names if a < b}
        nights.append((record_night(store, results_to_table(list(rows.values()), 0.05))[0], rows))
    with open_for_reading(store) as connection:
        for number, rows in nights:
            table = results.fetch_results(connection, "p", number, 0.05)
            assert {(r.a, r.b): r.replace(verdict=None) for r in iter_results(table)} == rows
        for earlier, old_rows in nights:
            for upto, new_rows in nights:
                if earlier < upto:
                    stored, find_held = results.read_history(connection, "p", earlier, upto)
                    held = find_held(earlier), find_held(upto)
                    changed = results.find_changes(stored.replace(alpha=0.05), *held)
                    changed_keys = {key for key in old_rows | new_rows if old_rows.get(key) != new_rows.get(key)}
                    sides = {((now or before).a, (now or before).b): (before, now) for before, now in changed}
                    assert {*sides} == changed_keys
                    for key, pair in sides.items():
                        plain = [result and result.replace(verdict=None) for result in pair]
                        assert plain == [old_rows.get(key), new_rows.get(key)]
