"""Tests of the store: each trial is kept once, one driver writes at a time, errors are explained."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
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
from sigdask.nightly import store as stores
from sigdask.nightly.store import NewTallies, database, tallies
from sigdask.nightly.store.results import Changes

DIGESTS = [bytes([k]) * 20 for k in range(3)]

DETAILS = {"settings": {"alpha": 0.05, "seed": 0}}

open_store = partial(stores.open_store, details=DETAILS)


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
    clear_tables(url)
    return url


def clear_tables(url):
    with open_store(url, "p") as store, store.database.transaction() as connection:
        for table in ("runs", "tallies", "results"):
            connection.execute(text(f"DELETE FROM {table}"))


def draw(n_rounds, n=1, size=3, seed=0):
    return np.random.default_rng(seed).integers(0, 900, (n_rounds, n, size))


def fetch(store, *n_wanted, run=0, size=3):
    """Return the used trials of the first comparisons, and the counts of each round."""
    n = len(n_wanted)
    trials, counts = store.read(tallies.read_tallies, DIGESTS[:n], np.full(n, size), {run: np.array(n_wanted)})
    return trials[run].tolist(), counts[run].reshape(-1, n, size).tolist()


def test_trials_are_kept_by_round(where):
    counts = draw(3, 2)
    with open_store(where, "p") as store:
        store.commit([NewTallies(DIGESTS[:2], 0, 4096, counts[:1])])
        store.commit(
            [NewTallies(DIGESTS[:1], 0, 10_000, counts[:2, :1]), NewTallies(DIGESTS[:1], 1, 5, counts[:1] % 5)]
        )
        store.commit([NewTallies(DIGESTS[:1], 0, 20_000, counts[:, :1])])
        expected = counts * np.array([[[1], [1]], [[1], [0]], [[1], [0]]])
        assert fetch(store, 20_000, 20_000) == ([20_000, 4096], expected.tolist())
        assert fetch(store, 5, run=1) == ([5], (counts[:1, :1] % 5).tolist())
        assert fetch(store, 9, 9, 9, run=2) == ([0] * 3, [[[0] * 3] * 3])


@pytest.mark.parametrize("n_trials", [100, 4096, 9000, 10_000])
def test_of_two_counts_the_one_with_more_trials_stays(where, n_trials):
    counts = draw(2)
    with open_store(where, "p") as store:
        store.commit([NewTallies(DIGESTS[:1], 0, 10_000, counts)])
        store.commit([NewTallies(DIGESTS[:1], 0, n_trials, np.zeros_like(counts[: 1 + (n_trials > 4096)]))])
        assert fetch(store, 10_000) == ([10_000], counts.tolist())


@pytest.mark.parametrize(
    ("n_wanted", "n_used", "n_rounds"), [(20_000, 20_000, 3), (19_999, 16_384, 3), (16_383, 4096, 2), (99, 0, 1)]
)
def test_only_whole_rounds_are_used_where_fewer_trials_are_wanted(where, n_wanted, n_used, n_rounds):
    counts = draw(3)
    with open_store(where, "p") as store:
        store.commit([NewTallies(DIGESTS[:1], 0, 20_000, counts)])
        ends = np.array([4096, 16_384, 20_000])[:n_rounds, None, None]
        assert fetch(store, n_wanted) == ([n_used], (counts[:n_rounds] * (ends <= n_used)).tolist())


def test_families_are_kept_as_a_whole(where):
    counts = draw(2, size=500)
    with open_store(where, "p") as store:
        store.commit([NewTallies(DIGESTS[:1], 0, 5000, counts)])
        assert fetch(store, 5000, size=500) == ([5000], counts.tolist())


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
    counts = draw(1)
    clear_tables(server.url)
    with open_store(server.url, "one") as one, open_store(server.url, "two") as two:
        one.commit([NewTallies(DIGESTS[:1], 0, 1000, counts % 100)])
        two.commit([NewTallies(DIGESTS[:1], 0, 4096, counts)])
        one.commit([NewTallies(DIGESTS[:1], 0, 2000, counts % 2000)])
        for store in (one, two):
            assert fetch(store, 4096) == ([4096], counts.tolist())


HOLD = """
import sys
from sigdask.nightly.store import open_store
with open_store(sys.argv[1], "p", details={"settings": {"alpha": 0.05, "seed": 0}}) as store:
    print("held", flush=True)
    sys.stdin.readline()
    store.commit([])
"""


@contextmanager
def hold(where):
    """Hold a store in another process, which commits when it is sent a line."""
    command = [sys.executable, "-c", HOLD, where]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_the_lock_of_a_killed_driver_is_free_at_once(where):
    with hold(where) as process:
        with pytest.raises(HeldError, match=f"process {process.pid}"), open_store(where, "p"):
            pass
        process.kill()
        process.wait()
        with open_store(where, "p"):
            pass


def test_a_hung_driver_keeps_the_lock_of_a_file(tmp_path):
    store = str(tmp_path / "night.sqlite")
    with hold(store) as process:
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(HeldError, match="end it if it hangs"), open_store(store, "p"):
            pass
        process.send_signal(signal.SIGCONT)
        process.communicate("\n", timeout=60)
        assert process.returncode == 0


@pytest.mark.slow
def test_a_hung_driver_loses_the_lock_of_a_server_and_cannot_commit(server):
    with hold(server.url) as process:
        time.sleep(1.5 * database.BEAT_SECONDS)  # it lives
        with pytest.raises(HeldError), open_store(server.url, "p"):
            pass
        process.send_signal(signal.SIGSTOP)
        time.sleep(database.SILENT_SECONDS + 1)
        with open_store(server.url, "p"):
            process.send_signal(signal.SIGCONT)
            _, errors = process.communicate("\n", timeout=60)
        assert "another run took over" in errors


@pytest.mark.slow
def test_a_driver_that_is_cut_off_within_a_commit_loses_the_lock_of_a_server(server):
    is_due, errors = threading.Event(), []

    def cut_before_commit(data):
        if is_due.is_set() and b"UPDATE runs SET record" in data:
            connected.clear()
            connected.wait()
        return False

    def commit():
        try:
            with open_store(url, "p", details={"settings": {}}) as store:
                is_due.set()
                store.commit([NewTallies(DIGESTS, 0, 1000, draw(1, len(DIGESTS)) % 100)])  # several rows
        except StoreError as error:
            errors.append(error)

    with forward_connections(server.port, cut_before_commit) as (port, connected):
        url = server.url.replace(f":{server.port}/", f":{port}/")
        driver = threading.Thread(target=commit, daemon=True)
        driver.start()
        assert is_due.wait(60)
        while connected.is_set():
            time.sleep(0.1)
        time.sleep(database.SILENT_SECONDS + 1)
        with open_store(server.url, "p"):
            is_due.clear()
            connected.set()
            driver.join(timeout=60)
    assert "another run took over" in str(errors[0])


@pytest.fixture
def losing(where, monkeypatch):
    """Return a store that loses the first answer to a commit after each of some statements, and these statements."""
    left, begun = {"INSERT INTO tallies", "INSERT INTO results", "UPDATE runs SET record"}, set()

    def is_answer_lost(sent):
        begun.update(words for words in (*left, "INSERT INTO runs") if words in sent)
        if "COMMIT" not in sent:
            return False
        is_lost = bool(begun) and "INSERT INTO runs" not in begun  # a run that has not begun ends with its connection
        left.difference_update(begun if is_lost else ())
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
    small, family = result.replace(p_value=0.05), result.replace(p_value=0.04, p_adjusted=0.06)
    kinds = [
        (None, result, ("new",)), (None, small, ("new",)), (None, family, ("new",)),
        (small, None, ("gone",)),
        (result, small, ("gained", "p")), (small, family, ("lost", "p")), (result, family, ("p",)),
        (small, small.replace(score_a=0.5), ("scores", "reversed")), (small, small.replace(score_b=0.5), ("scores",)),
        (small, small.replace(n_trials=99), ("p",)), (small, small.replace(n_items=5), ("details",)),
    ]  # fmt: skip
    for before, now, words in kinds:
        assert compare_results(before, now).kinds == [words]


def compare_results(earlier, later):
    """Compare two results of one comparison, either of which may be missing."""
    sides = [results_to_table([result] if result else [], 0.05) for result in (earlier, later)]
    return Changes(*sides, *(np.array([len(table) - 1]) for table in sides))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("mysql://h/x", "'mysql' is not supported"),
        ("sqlite:///x", "'sqlite' is not supported; expected a path"),
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
    with pytest.raises((InputError, StoreError), match=found) as caught, open_store(name, "p"):
        pass
    assert "secret" not in str(caught.value)


@pytest.mark.slow
def test_a_killed_server_loses_nothing_and_is_waited_for(server):
    counts = draw(2)
    clear_tables(server.url)
    with open_store(server.url, "p") as store:
        store.commit([NewTallies(DIGESTS[:1], 0, 4096, counts[:1])])
        server.kill()
        restart = threading.Timer(1.0, server.start)
        restart.start()
        store.commit([NewTallies(DIGESTS[:1], 0, 8192, counts)])
        restart.join()
        assert fetch(store, 8192) == ([8192], counts.tolist())
        server.kill()
        store._is_patient = lambda: False
        with pytest.raises(StoreError, match="cannot be reached"):
            store.commit([NewTallies(DIGESTS[:1], 0, 9000, counts)])
        server.start()


def test_no_message_or_file_has_a_secret_from_the_query_of_a_store_url(server, tmp_path):
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
