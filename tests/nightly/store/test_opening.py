"""A store from a stranger is opened safely: what lies beside it makes no command write, delete or follow a link."""

import json
import os
import sqlite3
import subprocess
import sys

import pytest
from command import call_sigdask

from sigdask.nightly.store.runs import seal, unseal

PLAN = 'trials = 99\nstore = "night.sqlite"\n[[test_set]]\nname = "x"\nsystems = "t.csv"\n'
READING = [("status",), ("history",), ("report",)]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "t.csv").write_text("item,a,b\n" + "".join(f"{k},{k % 2},{k % 3}\n" for k in range(20)))
    (tmp_path / "plan.toml").write_text(PLAN)
    assert call_sigdask("run", "plan.toml", "-q", cwd=tmp_path).returncode == 0
    return tmp_path


def write_hot_journal(store):
    """Leave the journal of a transaction whose process was killed while it wrote."""
    code = (
        "import os, sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "connection.execute('PRAGMA cache_size = 1')\n"
        "connection.execute('BEGIN IMMEDIATE')\n"
        "connection.execute('CREATE TABLE spare (x)')\n"
        "connection.executemany('INSERT INTO spare VALUES (?)', [('x' * 3000,)] * 200)\n"
        "os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(store)], check=False)
    return store.with_name(f"{store.name}-journal")


def read_results(folder):
    return json.loads(call_sigdask("report", "plan.toml", "--json", "-", cwd=folder).stdout)["results"]


@pytest.mark.parametrize("command", READING)
def test_a_command_that_reads_undoes_nothing_and_a_run_does(folder, command):
    store = folder / "night.sqlite"
    before = read_results(folder)
    journal = write_hot_journal(store)
    contents = store.read_bytes(), journal.read_bytes()
    assert call_sigdask(*command, "night.sqlite", cwd=folder).returncode == 3
    assert (store.read_bytes(), journal.read_bytes()) == contents
    assert call_sigdask("run", "plan.toml", "-q", cwd=folder).returncode == 0
    assert not journal.exists()
    assert read_results(folder) == before


@pytest.mark.parametrize("command", [*READING, ("run", "plan.toml")])
@pytest.mark.parametrize("kind", ["names a file", "is a link"])
def test_a_journal_that_names_a_file_or_is_a_link_is_refused_and_harms_nothing(folder, command, kind):
    store, victim = folder / "night.sqlite", folder / "victim.txt"
    journal = write_hot_journal(store)
    victim.write_text("kept")
    if kind == "is a link":
        victim.write_bytes(journal.read_bytes())
        journal.unlink()
        journal.symlink_to(victim)
    else:
        name = str(victim).encode()
        numbers = (0x7FFFFFFF, len(name), sum(name))
        ends = [number.to_bytes(4, "big") for number in numbers]
        journal.write_bytes(
            journal.read_bytes() + ends[0] + name + ends[1] + ends[2] + bytes.fromhex("d9d505f920a163d7")
        )
    contents = store.read_bytes(), victim.read_bytes()
    result = call_sigdask(*command, *(() if "run" in command else ("night.sqlite",)), cwd=folder)
    assert (result.returncode, "night.sqlite-journal" in result.stderr) == (2, True), result.stderr
    assert (store.read_bytes(), victim.read_bytes()) == contents


@pytest.mark.parametrize("command", [*READING, ("run", "plan.toml")])
@pytest.mark.parametrize("kind", ["of the store", "beside the store"])
def test_a_write_ahead_log_is_refused_and_nothing_is_written_beside_the_store(folder, command, kind):
    store = folder / "night.sqlite"
    if kind == "of the store":
        sqlite3.connect(store).execute("PRAGMA journal_mode = WAL").connection.close()
    else:
        store.with_name("night.sqlite-wal").write_bytes(b"")
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = call_sigdask(*command, *(() if "run" in command else ("night.sqlite",)), cwd=folder)
    assert (result.returncode, "night.sqlite" in result.stderr) == (2, True), result.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == contents


def test_a_store_that_cannot_be_written_is_read(folder):
    (folder / "night.sqlite").chmod(0o444)
    for name in ("night.sqlite", "plan.toml"):
        assert call_sigdask("report", name, cwd=folder).returncode == 0
    assert sqlite3.connect(folder / "night.sqlite").execute("SELECT count(*) FROM runs").fetchone() == (1,)
    assert os.access(folder / "night.sqlite", os.R_OK)


@pytest.mark.parametrize("command", [*READING, ("run", "plan.toml", "--store")])
def test_a_store_that_is_a_link_is_refused_and_one_in_a_folder_that_is_a_link_is_not(folder, command):
    (folder / "there").mkdir()
    (folder / "night.sqlite").rename(folder / "there" / "kept")
    before = (folder / "there" / "kept").read_bytes()
    (folder / "night.sqlite").symlink_to("there/kept")
    refused = call_sigdask(*command, "night.sqlite", cwd=folder)
    assert (refused.returncode, "is a symbolic link" in refused.stderr) == (2, True), refused.stderr
    assert (folder / "there" / "kept").read_bytes() == before
    (folder / "night.sqlite").unlink()
    (folder / "link").symlink_to("there")
    assert call_sigdask(*command, "link/kept", cwd=folder).returncode == 0


@pytest.mark.parametrize("kind", ["a pipe", "a link"])
def test_a_lock_file_from_a_stranger_stops_no_command_that_reads(folder, kind):
    lock = folder / "night.sqlite-lock"
    lock.unlink()
    if kind == "a pipe":
        os.mkfifo(lock)
    else:
        lock.symlink_to("t.csv")
    with sqlite3.connect(folder / "night.sqlite") as connection:
        [record] = connection.execute("SELECT record FROM runs").fetchone()
        values = json.loads(unseal(record, "runs", 1, spare=2**20, ratio=64))
        del values["details"]["status"]
        running = seal(json.dumps({**values, "state": "running", "ended": None}).encode(), "runs", 1)
        connection.execute("UPDATE runs SET record = ?", (running,))
    connection.close()
    result = call_sigdask("status", "night.sqlite", cwd=folder)
    assert (result.returncode, "killed" in result.stdout) == (0, True), result.stderr
