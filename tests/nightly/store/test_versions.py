"""Tests that stores of every schema version are read by every command, and crafted versions are refused."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command import call_sigdask
from nights import write_plan
from sqlalchemy import text

from sigdask.nightly.store import database
from sigdask.nightly.store.migrations import MIGRATIONS, NEWEST, read_version

DATA_FOLDER = Path(__file__).parents[2] / "data"
KEPT_FILES = {"v1": "store_v1.sql", "0.1.0": "kept/store_0_1_0.sql", "before rooms": "kept/store_before_rooms.sql"}
"""The first two schema versions, as they were written."""

LATER_VERSIONS = range(3, NEWEST + 1)
READERS = (("history",), ("status",), ("report",), ("cite",))
STORE_COMMANDS = (("store", "check"), ("store", "repair"))


def write_kept(path, name):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((DATA_FOLDER / KEPT_FILES[name]).read_text())


def migrate_to(path, version):
    """Bring a store to a schema version, as the sigdask of that version did."""
    opened = database.Database(database._create_engine(database.parse_url(str(path)), "BEGIN IMMEDIATE"))
    with closing(opened), opened.transaction() as connection:
        for step in MIGRATIONS[read_version(connection) : version]:
            step(connection)
        connection.execute(text("UPDATE schema_version SET version = :v"), {"v": version})


def execute(path, *statements):
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def fetch_column(path, query):
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute(query)]


@pytest.mark.parametrize("name", [*KEPT_FILES, *(f"version {k}" for k in LATER_VERSIONS)])
def test_every_command_reads_a_store_of_every_version_before_any_run(name, tmp_path):
    file = tmp_path / "old.sqlite"
    if name in KEPT_FILES:
        write_kept(file, name)
    else:
        write_kept(file, "0.1.0")
        migrate_to(file, int(name.split()[1]))
    before, shown = file.read_bytes(), {}
    plans = fetch_column(file, "SELECT DISTINCT plan FROM runs")
    for plan in plans[::5]:
        for command in READERS[:3]:
            result = call_sigdask(*command, file, "--plan", plan, cwd=tmp_path)
            if name == "v1" and command == ("report",):
                assert result.returncode == 2
                assert "its record names no settings" in result.stderr
                continue
            assert result.returncode == 0, result.stderr
            shown[command, plan] = result.stdout
    assert all(plan in output for (_, plan), output in shown.items())
    for command in (*READERS, *STORE_COMMANDS[:1]):
        result = call_sigdask(*command, file, cwd=tmp_path)
        one_plan = len(plans) == 1 and command in READERS[:2]
        assert result.returncode == (0 if one_plan or command[0] == "store" else 2)
        assert "damaged:" not in result.stderr
        assert result.returncode == 0 or ("name one" in result.stderr) == (len(plans) > 1)
    assert file.read_bytes() == before  # nothing was written
    assert call_sigdask("store", "repair", file, cwd=tmp_path).returncode == 0
    for (command, plan), output in shown.items():
        assert call_sigdask(*command, file, "--plan", plan, cwd=tmp_path).stdout == output


def test_the_history_of_an_old_store_has_as_many_changes_as_after_its_upgrade(tmp_path):
    old, new = tmp_path / "old.sqlite", tmp_path / "new.sqlite"
    write_kept(old, "0.1.0")
    shutil.copy(old, new)
    migrate_to(new, NEWEST)
    for plan in fetch_column(old, "SELECT DISTINCT plan FROM runs"):
        outputs = [call_sigdask("history", file, "--plan", plan, cwd=tmp_path).stdout for file in (old, new)]
        assert outputs[0] == outputs[1]
        n_results = fetch_column(old, f"SELECT count(*) FROM results WHERE plan = '{plan}'")[0]
        assert f", {n_results} result" in outputs[0]


def test_exact_values_are_not_called_trials(tmp_path):
    plan = write_plan(tmp_path / "night", sets=1, systems=3, method="exact", settings='adjust = "none"')
    for expected in ("0 trials counted, 3 exact values computed, 3 results new", "0 trials counted, 0 results new"):
        assert expected in call_sigdask("run", plan, "--cluster", "none", cwd=plan.parent).stderr
        status = call_sigdask("status", plan, cwd=plan.parent).stdout
        assert [line.split() for line in status.splitlines()[-1:]] == [["set0", *"333", "none", "of", "its", "own"]]
    assert "1 test set, 3 comparisons, 0 trials, " in call_sigdask("check", plan, cwd=plan.parent).stdout
    assert [row.split()[-4:-2] for row in call_sigdask("history", plan, cwd=plan.parent).stdout.splitlines()[-2:]] == [
        ["3", "0"],
        ["3", "0"],
    ]


def test_a_database_of_another_program_is_refused_and_stays_as_it_was(tmp_path):
    file = tmp_path / "other.sqlite"
    execute(file, "CREATE TABLE runs (id INTEGER)", "INSERT INTO runs VALUES (1)")
    before = file.read_bytes()
    plan = write_plan(tmp_path, systems=2, trials=64)
    refused = call_sigdask("run", plan, "--store", file, "--cluster", "none", cwd=tmp_path)
    assert refused.returncode == 2
    assert "is a database of another program (it has runs); name another file with --store" in refused.stderr
    assert file.read_bytes() == before
