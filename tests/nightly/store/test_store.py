"""Tests of the store: each trial is kept once, one driver writes at a time, errors are explained."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from builders import results_to_table
from command import call_sigdask
from nights import read_tallies, write_plan
from servers import PASSWORD, forward_connections, start_postgres
from sqlalchemy import event, text
from sqlalchemy.engine import make_url

from sigdask.api import compare
from sigdask.errors import HeldError, InputError, StoreError
from sigdask.nightly.store import StoredTallies, database, lease, open_for_reading, open_store
from sigdask.nightly.store.database import find_file_system, find_lock_holder, open_to_write
from sigdask.nightly.store.lease import Lease, LeaseHolder
from sigdask.nightly.store.status import Changes
from sigdask.randomization.panels.digests import pack_digests


@pytest.fixture(scope="module")
def server():
    postgres = start_postgres()
    yield postgres
    postgres.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    """Run each test of the contract on both databases."""
    if request.param == "sqlite":
        return str(tmp_path / "night.sqlite")
    url = request.getfixturevalue("server").url
    db = open_to_write(url)
    with db.transaction() as connection:
        for table in ("ended", "found", "progress", "runs", "leases", "arrays", "tallies", "comparisons"):
            connection.execute(text(f"DELETE FROM {table}"))
    db.close()
    return url


def build_digests(*letters):
    """Pack digests that are easy to tell apart."""
    return pack_digests(bytes.fromhex(40 * letter) for letter in letters)


def draw_tallies(n, seed=0, n_trials=4096):
    """Draw tallies that trials can give: each trial is of one side, and two-sided counts are no smaller."""
    greater = np.random.default_rng(seed).integers(0, n_trials, n)
    return np.column_stack([greater, n_trials - greater, np.maximum(greater, n_trials - greater)])


def test_trials_are_kept_by_round_and_read_back_as_sums(where):
    with open_store(where, "p") as store:
        ids = store.fetch_ids(build_digests("a", "b"), ["pair", "pair"])
        store.begin_run("p.toml", {}, [])
        store.commit([StoredTallies(ids, 0, 0, 4096, draw_tallies(2))])
        store.commit(
            [
                StoredTallies(ids[:1], 0, 4096, 10_000, draw_tallies(1, 1)),
                StoredTallies(ids[:1], 1, 0, 5, draw_tallies(1, 2, 5)),
            ]
        )
        store.commit(
            [StoredTallies(ids[:1], 0, 4096, 16_384, draw_tallies(1, 1) + draw_tallies(1, 3))]
        )  # the round so far
        prefixes = store.fetch_prefixes(ids, 0)
        assert prefixes.n_trials.tolist() == [16_384, 4096]
        assert (
            prefixes.counts[0].tolist() == (draw_tallies(2)[0] + draw_tallies(1, 1)[0] + draw_tallies(1, 3)[0]).tolist()
        )
        assert store.fetch_prefixes(ids, 1).n_trials.tolist() == [5, 0]
        assert store.fetch_ids(build_digests("b", "a"), ["", ""]).tolist() == ids[::-1].tolist()
    with open_for_reading(where) as connection:
        rows = connection.execute(text("SELECT first, stop FROM tallies WHERE run = 0 ORDER BY comparison, first"))
        assert [tuple(row) for row in rows] == [(0, 4096), (4096, 16_384), (0, 4096)]


@pytest.mark.parametrize("again", [(0, 4096), (4096, 8192), (0, 100), (4096, 5000)])
def test_no_trial_is_kept_twice_and_none_left_out(where, again):
    with open_store(where, "p") as store:
        ids = store.fetch_ids(build_digests("a"), ["pair"])
        store.begin_run("p.toml", {}, [])
        store.commit(
            [StoredTallies(ids, 0, 0, 4096, draw_tallies(1)), StoredTallies(ids, 0, 4096, 8192, draw_tallies(1, 1))]
        )
        store.commit(
            [StoredTallies(ids, 0, *again, draw_tallies(1, 2, again[1] - again[0]))]
        )  # no further than what is kept
        prefixes = store.fetch_prefixes(ids, 0)
        assert prefixes.n_trials.tolist() == [8192]
        assert prefixes.counts.tolist() == (draw_tallies(1) + draw_tallies(1, 1)).tolist()
        assert prefixes.before.tolist() == draw_tallies(1).tolist()


def test_trials_that_are_kept_beyond_a_gap_are_told_apart(where):
    with open_store(where, "p") as store:
        ids = store.fetch_ids(build_digests("a", "b"), ["pair", "pair"])
        store.begin_run("p.toml", {}, [])
        store.commit(
            [
                StoredTallies(ids, 0, *bounds, draw_tallies(2))
                for bounds in ((0, 4096), (4096, 16_384), (16_384, 20_480))
            ]
        )
        with store.database.transaction() as connection:
            connection.execute(text("DELETE FROM tallies WHERE first = 4096 AND comparison = :c"), {"c": int(ids[1])})
        prefixes = store.fetch_prefixes(ids, 0)
        assert prefixes.n_trials.tolist() == [20_480, 4096]
        assert prefixes.gap.tolist() == [0, 16_384]
        assert prefixes.counts.tolist() == [(3 * draw_tallies(2)[0]).tolist(), draw_tallies(2)[1].tolist()]


def test_whole_rounds_are_read_up_to_a_trial_of_each_comparison(where):
    first, second, third = draw_tallies(2), draw_tallies(2, 1), draw_tallies(1, 2, 3616)
    with open_store(where, "p") as store:
        ids = store.fetch_ids(build_digests("a", "b"), ["pair", "pair"])
        store.begin_run("p.toml", {}, [])
        store.commit([StoredTallies(ids, 0, 0, 4096, first)])
        store.commit([StoredTallies(ids, 0, 4096, 16_384, second)])
        store.commit([StoredTallies(ids[1:], 0, 16_384, 20_000, third)])
        rounds = store.fetch_rounds(ids[::-1], 0, np.array([16_384, 16_383]))
        partial_rounds = store.fetch_rounds(ids, 0, np.array([20_000, 20_000]))
        none = store.fetch_rounds(ids, 1, np.array([20_000, 20_000]))
    assert rounds.n_trials.tolist() == [16_384, 4096]
    assert rounds.counts.tolist() == [(first + second)[1].tolist(), first[0].tolist()]
    assert partial_rounds.n_trials.tolist() == [16_384, 20_000]
    assert partial_rounds.counts.tolist() == [(first + second)[0].tolist(), (first + second + third)[1].tolist()]
    assert (none.n_trials.tolist(), none.counts.tolist()) == ([0, 0], [[0] * 3] * 2)


def test_families_are_kept_as_a_whole(where):
    counts = np.arange(15).reshape(1, 15)
    with open_store(where, "p") as store:
        [number] = store.fetch_ids(build_digests("f"), ["family"])
        store.begin_run("p.toml", {}, [])
        for first, stop, times in ((0, 4096, 1), (4096, 5000, 1), (4096, 16_384, 2), (4096, 5000, 3)):
            store.commit([StoredTallies(np.array([number]), 0, first, stop, times * counts, whole=True)])
        prefixes = store.fetch_family_prefixes({number: 15}, 0)[number]
        assert prefixes.n_trials.tolist() == [16_384]
        assert prefixes.counts.tolist() == (3 * counts).tolist()
        assert prefixes.before.tolist() == counts.tolist()


def test_a_second_driver_is_refused_and_told_who_holds_the_store(where):
    with (
        open_store(where, "p"),
        pytest.raises(HeldError, match=rf"is being run by process {os.getpid()} on {socket.gethostname()} since 20"),
        open_store(where, "p"),
    ):
        pass
    with open_store(where, "p"):
        pass


def test_a_postgresql_store_serves_several_plans_at_once_which_share_what_they_count(server):
    with open_store(server.url, "one") as store_one, open_store(server.url, "two") as store_two:
        store_one.begin_run("", {}, [])
        store_two.begin_run("", {}, [])
        ids = store_one.fetch_ids(build_digests("d"), ["pair"])
        assert store_two.fetch_ids(build_digests("d"), ["pair"]).tolist() == ids.tolist()
        store_one.commit([StoredTallies(ids, 0, 0, 1000, draw_tallies(1, n_trials=1000))])
        store_two.commit([StoredTallies(ids, 0, 0, 4096, draw_tallies(1))])
        store_one.commit([StoredTallies(ids, 0, 0, 2000, draw_tallies(1, n_trials=2000))])
        for store in (store_one, store_two):
            assert store.fetch_prefixes(ids, 0).n_trials.tolist() == [4096]
            assert store.fetch_prefixes(ids, 0).counts.tolist() == draw_tallies(1).tolist()


def test_the_lease_of_a_dead_process_is_taken_over_at_once(where):
    db = open_to_write(where)
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    write_lease(db, replace(LeaseHolder.from_this_process(), pid=process.pid, born="1"), beat=time.time())
    Lease(db, "" if db.is_sqlite else "p").release()
    db.close()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_only_a_process_that_could_be_seen_here_is_called_dead():
    this = LeaseHolder.from_this_process()
    assert not this.is_dead()
    assert replace(this, born="1").is_dead()  # its number went to another process
    for unseen in (replace(this, host="elsewhere"), replace(this, space="another boot"), replace(this, space="")):
        assert not unseen.is_dead()
        assert not replace(unseen, born="1").is_dead()


def test_the_lease_of_another_host_runs_out_after_a_minute_without_a_sign_of_life(where, monkeypatch):
    monkeypatch.setattr(lease, "BEAT_SECONDS", 0.1)
    db = open_to_write(where)
    name = "" if db.is_sqlite else "p"
    elsewhere = LeaseHolder("elsewhere", 1, "", "1")
    write_lease(db, elsewhere, beat=time.time() - 50)
    with pytest.raises(HeldError, match="process 1 on elsewhere"):
        Lease(db, name)
    write_lease(db, elsewhere, beat=time.time() - 61)
    Lease(db, name).release()
    db.close()


def test_a_lease_from_a_clock_far_ahead_is_free_unless_its_holder_shows_life(where, monkeypatch):
    monkeypatch.setattr(lease, "BEAT_SECONDS", 0.2)
    db = open_to_write(where)
    name = "" if db.is_sqlite else "p"
    elsewhere = LeaseHolder("elsewhere", 1, "", "1")
    write_lease(db, elsewhere, beat=time.time() + 8204693635)
    Lease(db, name).release()
    write_lease(db, elsewhere, beat=time.time() + 3600)

    def beats(_):
        write_lease(db, elsewhere, beat=time.time() + 3610)

    with monkeypatch.context() as patched:
        patched.setattr(lease.time, "sleep", beats)
        with pytest.raises(HeldError, match=r"process 1 on elsewhere .*\(last sign of life 0 s ago\).* in 60 s"):
            Lease(db, name)
    db.close()


@pytest.mark.parametrize("hours", [-48, -1, 1, 48])
@pytest.mark.slow
def test_a_clock_that_jumps_under_a_lease_lets_in_no_second_driver_and_holds_nothing_for_ever(
    where, hours, monkeypatch
):
    monkeypatch.setattr(lease, "BEAT_SECONDS", 0.1)
    clock = {"ahead": 0.0}
    monkeypatch.setattr(lease, "read_clock", lambda _: time.time() + clock["ahead"])
    with open_store(where, "p") as store:
        ids = store.fetch_ids(build_digests("a"), ["pair"])
        store.begin_run("p.toml", {}, [])
        clock["ahead"] = 3600.0 * hours
        with pytest.raises(HeldError, match=rf"is being run by process {os.getpid()}"), open_store(where, "p"):
            pass
        store.commit([StoredTallies(ids, 0, 0, 4096, draw_tallies(1))])  # it holds its lease as before
    db = open_to_write(where)
    write_lease(db, LeaseHolder("elsewhere", 1, "", "1"), beat=time.time())  # of one that was killed
    clock["ahead"] = 0.0
    with pytest.raises(HeldError, match="process 1 on elsewhere"):
        Lease(db, "" if db.is_sqlite else "p")
    clock["ahead"] = 3600.0 * hours
    Lease(db, "" if db.is_sqlite else "p").release()
    db.close()


def write_lease(db, holder, beat):
    with db.transaction() as connection:
        connection.execute(text("DELETE FROM leases"))
        row = {"n": "" if db.is_sqlite else "p", "h": json.dumps(asdict(holder)), "b": beat}
        connection.execute(text("INSERT INTO leases VALUES (:n, 'theirs', :h, :b, :b, 0)"), row)


def test_a_driver_that_lost_its_lease_cannot_commit(where):
    with open_store(where, "p") as store:
        ids = store.fetch_ids(build_digests("a"), ["pair"])
        store.begin_run("p.toml", {}, [])
        with store.database.transaction() as connection:
            connection.execute(text("UPDATE leases SET token = 'theirs'"))
        with pytest.raises(StoreError, match="another run took over"):
            store.commit([StoredTallies(ids, 0, 0, 4096, draw_tallies(1))])
        assert store.fetch_prefixes(ids, 0).n_trials.tolist() == [0]


def test_a_lease_is_given_up_only_after_its_last_sign_of_life(where, monkeypatch):
    # a connection that is in use while the others are closed stays open until it is collected
    asleep, read_clock = threading.Event(), lease.read_clock

    def read_clock_slowly(connection):
        if threading.current_thread().name == "sigdask lease":
            asleep.set()
            time.sleep(0.3)
        return read_clock(connection)

    monkeypatch.setattr(lease, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(lease, "read_clock", read_clock_slowly)
    with open_store(where, "p"):
        assert asleep.wait(10)
    assert "sigdask lease" not in {thread.name for thread in threading.enumerate()}


@pytest.fixture
def losing(where, monkeypatch):
    """Return a store that loses the first answer to a commit after each of some statements, and these statements."""
    left, begun = {"INSERT INTO tallies", "INSERT INTO found", "UPDATE runs SET ended"}, set()

    def is_answer_lost(sent):
        begun.update(words for words in left if words in sent)
        is_lost = "COMMIT" in sent and bool(begun)
        if is_lost:
            left.difference_update(begun)
            begun.clear()
        return is_lost

    transaction = database.Database.transaction

    @contextmanager
    def lose_answer(self):
        with transaction(self) as connection:
            event.listen(connection, "before_cursor_execute", lambda *arguments: is_answer_lost(arguments[2]))
            yield connection
        if is_answer_lost("COMMIT"):
            raise StoreError("the file system went away", lost=True)

    if "://" in where:
        port = make_url(where).port
        with forward_connections(port, lambda sent: is_answer_lost(sent.decode("latin-1"))) as (proxy, _):
            yield where.replace(f":{port}/", f":{proxy}/"), left
    else:
        monkeypatch.setattr(database.Database, "transaction", lose_answer)
        yield where, left


@pytest.mark.slow
def test_commits_of_a_night_whose_answers_were_lost_count_once(losing, where, tmp_path):
    plan = write_plan(tmp_path / "night", sets=2, systems=4, trials=20_000)
    outputs, (store, left) = [], losing
    for name in (store, "calm.sqlite"):
        run = call_sigdask("run", plan, "--cluster", "none", "--store", name, cwd=plan.parent)
        assert (run.returncode, left) == (0, set()), run.stderr
        outputs.append((re.search(r"[\d,]+ trials counted", run.stderr)[0], run.stdout.partition("\n")[2]))
    assert outputs[0] == outputs[1]
    assert read_tallies(where) == read_tallies(plan.parent / "calm.sqlite")


def test_a_change_says_what_is_otherwise_and_whether_the_verdict_turned():
    result = compare([1, 2, 3, 4], [0, 1, 1, 2])  # p = 2 / 16
    small, family = replace(result, p_value=0.05), replace(result, p_value=0.04, p_adjusted=0.06)
    kinds = {
        (None, result): ("new",), (None, small): ("new",), (None, family): ("new",),
        (small, None): ("gone",),
        (result, small): ("gained", "p"), (small, family): ("lost", "p"), (result, family): ("p",),
        (small, replace(small, score_a=0.5)): ("scores", "reversed"), (small, replace(small, score_b=0.5)): ("scores",),
        (small, replace(small, n_trials=99)): ("p",), (small, replace(small, n_items=5)): ("details",),
    }  # fmt: skip
    for (before, now), words in kinds.items():
        assert compare_results(before, now).kinds == [words]


def compare_results(earlier, later):
    """Compare two results of one comparison, either of which may be missing."""
    sides = [results_to_table([result] if result else [], 0.05) for result in (earlier, later)]
    return Changes(*sides, *(np.array([len(table) - 1]) for table in sides))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("mysql://h/x", "'mysql' is not supported"),
        ("sqlite://", "no file is named"),
        ("nowhere/x.sqlite", "its folder does not exist"),
        ("postgresql+psycopg://u:secret@127.0.0.1:1/x", "cannot be reached"),
        ("://", "not a URL"),
        ("postgresql://u:secret@[::1/x", "not a URL"),
        ("postgresql://u@127.0.0.1:secret/x", "not a URL"),
        ("postgresql://u:pass@secret@127.0.0.1:1/x", "the password holds @; write it as %40"),
        ("postgresql://u:a secret'@127.0.0.1:1/x", "cannot be reached"),
        ("postgresql://u@127.0.0.1:1/x?password=a secret&P%41SSFILE=secret", "invalid connection option"),
        ("postgresql://u@127.0.0.1:1/x?sslpassword=secret", "cannot be reached"),
    ],
)
def test_a_store_that_cannot_be_is_an_error_in_words(tmp_path, monkeypatch, name, found):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((InputError, StoreError), match=found) as caught:
        open_to_write(name)
    assert "secret" not in str(caught.value)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="locks are listed in /proc/locks")
def test_the_process_that_holds_the_lock_of_a_file_is_named(tmp_path):
    store = tmp_path / "x.sqlite"
    open_to_write(str(store)).close()
    assert find_lock_holder(store) == ""
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], isolation_level=None).execute('BEGIN EXCLUSIVE'); print()"
    command = [sys.executable, "-c", f"{code}; input()", str(store)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        holder = find_lock_holder(store)
        process.communicate(b"\n")
    assert holder.startswith(f"process {process.pid} (")


def test_shared_file_systems_are_known_and_said(tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    mounts.write_text("/dev/a / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0\nx /home/my\\040data lustre rw 0 0\n")
    assert find_file_system(Path("/home/me"), str(mounts)) == "nfs4"
    assert find_file_system(Path("/home/my data/x"), str(mounts)) == "lustre"
    assert find_file_system(Path("/homeless"), str(mounts)) == "ext4"
    mounts.write_text(mounts.read_text() + "\nauto /home\n")  # what is cut short says nothing
    assert find_file_system(Path("/home/me"), str(mounts)) == "nfs4"
    assert find_file_system(Path("/home/me"), str(tmp_path / "none")) == ""
    monkeypatch.setattr(database, "find_file_system", lambda _: "nfs4")
    db = open_to_write(str(tmp_path / "x.sqlite"))
    assert "shared file system (nfs4)" in db.notes[0]
    db.close()
    monkeypatch.setattr(database, "_can_lock", lambda _: False)
    with pytest.raises(InputError, match="does not support locks"):
        open_to_write(str(tmp_path / "x.sqlite"))


@pytest.mark.slow
def test_a_killed_server_loses_nothing_and_is_waited_for(server):
    with open_store(server.url, "waiting") as store:
        store.begin_run("", {}, [])
        ids = store.fetch_ids(build_digests("e"), ["pair"])
        store.commit([StoredTallies(ids, 0, 0, 4096, draw_tallies(1))])
        server.kill()
        restart = threading.Timer(1.0, server.start)
        restart.start()
        store.commit([StoredTallies(ids, 0, 4096, 8192, draw_tallies(1))])
        restart.join()
        assert store.fetch_prefixes(ids, 0).n_trials.tolist() == [8192]
        server.kill()
        store._patient = lambda: False
        with pytest.raises(StoreError, match="cannot be reached"):
            store.commit([StoredTallies(ids, 0, 8192, 9000, draw_tallies(1))])
        server.start()


def test_no_message_or_file_has_a_secret_from_the_query_of_a_store_url(server, tmp_path, monkeypatch):
    monkeypatch.setenv("SIGDASK_LOG", "json")
    path = write_plan(tmp_path, sets=1, systems=2, trials=500, settings='[report]\njson = "r.json"\nhtml = "r.html"')
    url = f"postgresql://sigdask@127.0.0.1:{server.port}/postgres?password={quote(PASSWORD, safe='')}"
    runs = [call_sigdask("run", path, "--store", url, cwd=tmp_path),
            call_sigdask("status", path, "--store", url, cwd=tmp_path),
            call_sigdask("history", url, "--plan", path.stem, cwd=tmp_path),
            call_sigdask("run", path, "--store", f"{url}&options=-c%20a%3Dhush", cwd=tmp_path),
            call_sigdask("run", path, "--store", f"{url}&options=hushhush", cwd=tmp_path),
            call_sigdask("run", path, f"{url}&token=hush", cwd=tmp_path)]  # fmt: skip
    assert [run.returncode for run in runs] == [0, 0, 0, 3, 3, 2], [run.stderr for run in runs]
    assert "?***" in runs[3].stderr
    texts = [run.stdout + run.stderr for run in runs] + [file.read_text() for file in tmp_path.glob("r.*")]
    assert len(texts) == 8
    for secret in (PASSWORD, quote(PASSWORD, safe=""), "hush"):
        assert not any(secret in words for words in texts)
