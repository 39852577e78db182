"""Tests that damage of a store is never used: it is refused with one message, and a new store counts the same."""

import json
import os
import random
import re
import shutil
import sqlite3
import struct
from contextlib import closing

import pyarrow as pa
import pytest
from command import call_sigdask
from nights import read_tallies, write_plan

from sigdask.nightly.store.runs import seal, unseal

PAGE = 4096
READERS = ("history", "status", "report")


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """Return a plan with a store in which results of an earlier run ended, its tallies and its results."""
    folder = tmp_path_factory.mktemp("night") / "calm"
    plan = write_plan(folder, sets=1, systems=4, trials=6000)
    scores = (folder / "set0.csv").read_text()
    (folder / "set0.csv").write_text(scores.replace("0.1", "0.3"))
    assert run_again(plan).returncode == 0
    (folder / "set0.csv").write_text(scores)
    assert run_again(plan).returncode == 0
    assert run_again(plan, "--store", "new.sqlite").returncode == 0
    return plan, read_tallies(folder / "new.sqlite"), read_results(plan)


@pytest.fixture
def copy(night, tmp_path):
    shutil.copytree(night[0].parent, tmp_path / "calm")
    return tmp_path / "calm" / "night.toml"


def run_again(plan, *options):
    return call_sigdask("run", plan, "--cluster", "none", *options, cwd=plan.parent)


def read_results(plan):
    """Return the results of the latest run, without its time and number."""
    result = call_sigdask("report", plan, cwd=plan.parent)
    assert result.returncode == 0, result.stderr
    return re.split(r"\n(?:Changed since|Nothing changed)", result.stdout.partition("\n")[2])[0].strip()


def change(*statements):
    """Return a function that changes rows or tables behind sigdask's back."""

    def damage(store):
        with closing(sqlite3.connect(store)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    return damage


def change_bytes(first, content):
    def damage(store):
        data = bytearray(store.read_bytes())
        data[first : first + len(content)] = content
        store.write_bytes(data)

    return damage


def write_circle(store):
    """Make the tree of a table's pages refer to itself, so that a scan of it would not end."""
    with closing(sqlite3.connect(store)) as connection:
        [root] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs'").fetchone()
    cells = b"".join(struct.pack(">IB", root, 1) for _ in range(300))
    start = PAGE - len(cells)
    pointers = b"".join(struct.pack(">H", start + 5 * k) for k in range(300))
    head = struct.pack(">BHHHBI", 5, 0, 300, start, 0, root)
    change_bytes((root - 1) * PAGE, (head + pointers).ljust(start, b"\0") + cells)(store)


def replace_by(make):
    def damage(store):
        store.unlink()
        make(store)

    return damage


def forge(table, column, key, make):
    """Return a function that replaces values by others whose checksums are right, as a stranger can."""

    def damage(store):
        with closing(sqlite3.connect(store)) as connection:
            name = "id" if table == "runs" else "run"
            place = f"{name}, base" if column == "places" else name
            for run, *base in connection.execute(f"SELECT {place} FROM {table}").fetchall():
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE {name} = ?", (make(key, run, *base), run))
            connection.commit()

    return damage


def seal_bytes(content):
    return lambda *key: seal(content, *key)


def change_details(**changes):
    def damage(store):
        with closing(sqlite3.connect(store)) as connection:
            for run, record in connection.execute("SELECT id, record FROM runs").fetchall():
                values = json.loads(unseal(record, "runs", run, spare=2**20, ratio=64))
                changed = {**values, "details": {**values["details"], **changes}}
                sealed = seal(json.dumps(changed).encode(), "runs", run)
                connection.execute("UPDATE runs SET record = ? WHERE id = ?", (sealed, run))
            connection.commit()

    return damage


def pack_forged_columns(*_):
    sink = pa.BufferOutputStream()
    column = pa.DictionaryArray.from_arrays(pa.array([7], pa.int32()), pa.array(["a"]), safe=False)
    table = pa.table({"test_set": column})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


BOMB = bytes(2**30)

KINDS = {
    "cut within a page": lambda store: os.truncate(store, store.stat().st_size - 1000),
    "flipped in its first bytes": change_bytes(3, b"\xff"),
    "a tree that holds itself": write_circle,
    "a folder": replace_by(os.mkdir),
    "a pipe": replace_by(os.mkfifo),
    "a text": replace_by(lambda store: store.write_text("no database " * 500)),
    "no version": change("DELETE FROM meta WHERE name = 'version'"),
    "another program's": replace_by(change("CREATE TABLE runs (id INTEGER)")),
    "a view without end": change(
        "DROP TABLE results",
        "CREATE VIEW results AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x AS run FROM n",
    ),
    "a trigger": change("CREATE TRIGGER mine AFTER UPDATE ON runs BEGIN DELETE FROM tallies; END"),
    "no table of tallies": change("DROP TABLE tallies"),
    "other counts": change("UPDATE tallies SET counts = x'00' || substr(counts, 2) WHERE run = 0"),
    "other trials": change("UPDATE tallies SET n_trials = n_trials + 1 WHERE run = 1"),
    "trials of another kind": change("UPDATE tallies SET n_trials = 'x'"),
    "tallies of another comparison": change("UPDATE tallies SET counts = (SELECT counts FROM tallies LIMIT 1)"),
    "other details": change("UPDATE runs SET record = (SELECT record FROM runs LIMIT 1)"),
    "a part of the details": change("UPDATE runs SET record = substr(record, 2)"),
    "results of another run": change("UPDATE results SET rows = (SELECT rows FROM results LIMIT 1)"),
    "other places": change("UPDATE results SET places = substr(places, 2)"),
    "no base": change("UPDATE results SET base = base + 1"),
    "a base that is no number": change("UPDATE results SET base = 'x'"),
    "a text instead of details": change("UPDATE runs SET record = 'x'"),
    "no results": change("DELETE FROM results"),
    "a link to itself": replace_by(lambda store: store.symlink_to(store.name)),
    "a bomb of rows": forge("results", "rows", "results", seal_bytes(BOMB)),
    "a bomb of places": forge("results", "places", "places", seal_bytes(BOMB)),
    "a bomb of details": forge("runs", "record", "runs", seal_bytes(BOMB)),
    "rows that refer to no text": forge("results", "rows", "results", seal_bytes(pack_forged_columns())),
    "places without rows": forge("results", "places", "places", seal_bytes(struct.pack("<i", 2**30))),
    "details in depth": forge("runs", "record", "runs", seal_bytes(b'{"details": ' + b"[" * 10**5)),
    "details of another kind": forge("runs", "record", "runs", seal_bytes(b'{"details": 7}')),
    "a number of changes that is none": change_details(changed="x"),
    "a verdict without rules": change_details(verdict={"passed": True}),
    "results of a test set of another kind": change_details(frames={"set0": {"seed": 0, "alpha": 0.05, "notes": [{}]}}),
    "a text that is no UTF-8": change("UPDATE runs SET plan = CAST(x'6eff' AS TEXT) WHERE id = 1"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_a_damaged_store_is_told_and_counted_again(kind, copy, night):
    KINDS[kind](copy.parent / "night.sqlite")
    check_commands(copy, night)


N_SPOILED, N_QUICK = 40, 2


@pytest.mark.parametrize(
    "number", [k if k < N_QUICK else pytest.param(k, marks=pytest.mark.chaos) for k in range(N_SPOILED)]
)
def test_bytes_that_are_spoiled_are_told_or_do_not_matter(number, copy, night):
    rng, store = random.Random(number), copy.parent / "night.sqlite"
    data = bytearray(store.read_bytes())
    if number % 4 == 0:
        del data[rng.randrange(1, len(data)) :]
    elif number % 4 == 1:
        first = PAGE * rng.randrange(len(data) // PAGE)
        data[first : first + PAGE] = rng.randbytes(PAGE)
    else:
        data[rng.randrange(PAGE if number % 4 == 2 else len(data))] ^= 1 << rng.randrange(8)
    store.write_bytes(data)
    check_commands(copy, night)


def check_commands(plan, night):
    """Check that every command ends in one message, and that what a run says is right, in a new store if need be."""
    _, tallies, results = night
    store = plan.parent / "night.sqlite"
    for command in READERS:
        check_end(call_sigdask(command, store, cwd=plan.parent))
    run = check_end(run_again(plan))
    aside = re.search(r"now night.sqlite.damaged-\S+?\b", run.stderr)
    if run.returncode and aside is None:  # it is no store: it stays where it is
        assert "night.sqlite" in run.stderr
        store.rename(store.with_name("aside"))
    if run.returncode:
        assert run_again(plan).returncode == 0
    if run.returncode or aside:
        assert read_tallies(store) == tallies
    assert read_results(plan) == results


def check_end(result):
    """Check that a command ended in at most one message."""
    assert result.returncode in {0, 2, 3}, (result.args, result.stderr)
    assert "Traceback" not in result.stderr, result.stderr
    assert "internal error" not in result.stderr, result.stderr
    assert result.stderr.count("error:") <= 1, result.stderr
    assert "error:" not in result.stderr or "night.sqlite" in result.stderr, result.stderr
    return result


def test_a_store_of_another_version_is_refused_with_both_versions(copy):
    change("UPDATE meta SET value = 99 WHERE name = 'version'")(copy.parent / "night.sqlite")
    for result in (run_again(copy), call_sigdask("status", copy, cwd=copy.parent)):
        assert result.returncode == 2
        assert re.search(r"found schema version 99, expected \d+; move the file aside", result.stderr)


def test_missing_tallies_are_noticed_and_they_alone_are_counted(copy, night):
    store = copy.parent / "night.sqlite"
    before = read_tallies(store)
    digest = next(digest for digest, run, *_ in night[1] if run == 1)
    change(f"DELETE FROM tallies WHERE run = 1 AND digest = x'{digest.hex()}'")(store)
    assert " 1,500 trials counted" in run_again(copy).stderr
    assert read_tallies(store) == before
