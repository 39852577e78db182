"""Tests that damage of a store is never used: it is refused with one message, and a new store counts the same."""

import os
import random
import re
import shutil
import sqlite3
import struct
import zlib
from contextlib import closing
from itertools import product

import numpy as np
import pytest
from command import call_sigdask
from nights import read_tallies, write_plan

from sigdask.nightly.store.checksums import are_possible, compute_checksum, compute_keys, compute_tally_checksums

BITS64 = 2**64 - 1
PAGE = 4096
READERS = ("history", "status", "report", "cite")


def compute_splitmix(key, values):
    """Compute the checksum in Python's integers."""
    mixed = key
    for value in values:
        mixed ^= value
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & BITS64
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & BITS64
    return mixed >> 33


def compute_single_checksum(key, run, first, stop, *counts):
    run, first, stop = (np.array([value]) for value in (run, first, stop))
    [result] = compute_tally_checksums(np.array([key], np.uint64), run, first, stop, np.array([counts])).tolist()
    return result


def test_the_checksum_of_a_tally_is_splitmix_of_its_values():
    rng = random.Random(0)
    for _ in range(50):
        key, values = rng.getrandbits(64), [rng.getrandbits(rng.choice([1, 12, 40])) for _ in range(6)]
        assert compute_single_checksum(key, *values) == compute_splitmix(key, values) < 2**31


def test_every_bit_of_a_tally_and_of_the_digest_counts():
    digest, values = random.Random(1).randbytes(20), [1, 4096, 16_384, 17, 12_271, 30]
    [key] = compute_keys([digest]).tolist()
    before = compute_single_checksum(key, *values)
    for index, bit in product(range(6), range(48)):
        assert compute_single_checksum(key, *(v ^ (k == index) << bit for k, v in enumerate(values))) != before
    for index, bit in product(range(20), range(8)):
        changed = bytes(byte ^ (k == index) << bit for k, byte in enumerate(digest))
        assert compute_single_checksum(*compute_keys([changed]).tolist(), *values) != before


def test_a_row_has_another_checksum_where_types_or_borders_differ():
    rows = [(1, "a", None), ("1", "a", None), (1.0, "a", None), (1, b"a", None), ("a", 1, None), (1, "aNone")]
    assert len({compute_checksum(row) for row in rows}) == len(rows)


def test_counts_of_swaps_are_possible_and_others_are_not():
    # every sign of every difference: the counts of all exact tests of four items
    for differences in product(range(-3, 4), repeat=4):
        swapped = [sum(s * d for s, d in zip(signs, differences, strict=True)) for signs in product((1, -1), repeat=4)]
        t = sum(differences)
        counts = [sum(d >= t for d in swapped), sum(d <= t for d in swapped), sum(abs(d) >= abs(t) for d in swapped)]
        assert are_possible(np.array([0]), np.array([16]), np.array([counts])).all()
    for counts in ([17, 1, 5], [5, -1, 5], [5, 12, 4], [5, 6, 12], [9_999, 1, 1]):
        assert not are_possible(np.array([0]), np.array([16]), np.array([counts])).any()


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


def put_bomb(table, column):
    """Replace values by few bytes that zlib unpacks to a gibibyte."""
    packer = zlib.compressobj(9)
    mebibyte = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    bomb = mebibyte + mebibyte[2:] * 1023 + packer.flush()
    return change(f"UPDATE {table} SET {column} = x'{bomb.hex()}'")


KINDS = {
    "cut within a page": lambda store: os.truncate(store, store.stat().st_size - 1000),
    "flipped in its first bytes": change_bytes(3, b"\xff"),
    "a tree that holds itself": write_circle,
    "a folder": replace_by(os.mkdir),
    "a pipe": replace_by(os.mkfifo),
    "a text": replace_by(lambda store: store.write_text("no database " * 500)),
    "no version": change("DELETE FROM schema_version"),
    "another program's": replace_by(change("CREATE TABLE runs (id INTEGER)")),
    "a view without end": change(
        "DROP TABLE found",
        "CREATE VIEW found AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x AS id FROM n",
    ),
    "a trigger": change("CREATE TRIGGER mine AFTER UPDATE ON runs BEGIN DELETE FROM tallies; END"),
    "no table of tallies": change("DROP TABLE tallies"),
    "impossible counts": change("UPDATE tallies SET greater = 99999 WHERE run = 0 AND first = 0"),
    "other possible counts": change("UPDATE tallies SET two_sided = two_sided + 1 WHERE run = 1 AND first = 0"),
    "tallies of another comparison": change(
        "UPDATE tallies SET comparison = 1000 WHERE comparison = (SELECT max(comparison) FROM tallies)",
        "UPDATE tallies SET comparison = comparison + 1 WHERE comparison + 2 = (SELECT max(id) FROM comparisons)",
    ),
    "another family": change("UPDATE arrays SET stop = stop + 1 WHERE run = 0 AND first = 4096"),
    "other settings": change("UPDATE runs SET details = replace(details, '0.05', '0.15')"),
    "other progress": change("UPDATE progress SET counted = counted + 1"),
    "a block of more rows": change("UPDATE found SET n = n + 1"),
    "another end of results": change("UPDATE ended SET run = 1"),
    "a bomb in a block": put_bomb("found", "columns"),
    "a lease of nonsense": change("INSERT INTO leases VALUES ('', 't', '[', 'x', 1e300, -4)"),
    "a text that is no UTF-8": change("UPDATE runs SET plan = CAST(x'6eff' AS TEXT) WHERE id = 1"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_a_damaged_store_is_refused_or_harmless_and_a_new_one_counts_the_same(kind, copy, night, monkeypatch):
    monkeypatch.setattr("sigdask.nightly.store.lease.BEAT_SECONDS", 0.05)
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
    """Check that every command ends in one message, that what a run says is right, and that a new store counts it."""
    _, tallies, results = night
    store = plan.parent / "night.sqlite"
    for command in READERS:
        check_end(call_sigdask(command, store, cwd=plan.parent))
    run = check_end(run_again(plan))
    if run.returncode:
        assert "night.sqlite" in run.stderr
        store.rename(store.with_name("aside"))
        assert run_again(plan).returncode == 0
        assert read_tallies(store) == tallies
    assert read_results(plan) == results


def check_end(result):
    """Check that a command ended in at most one message."""
    assert result.returncode in {0, 2, 3}, (result.args, result.stderr)
    assert "Traceback" not in result.stderr, result.stderr
    assert "internal error" not in result.stderr, result.stderr
    assert result.stderr.count("error:") <= 1, result.stderr
    return result


def test_a_store_of_another_version_is_refused_with_both_versions(copy):
    change("UPDATE schema_version SET version = 99")(copy.parent / "night.sqlite")
    for result in (run_again(copy), call_sigdask("status", copy, cwd=copy.parent)):
        assert result.returncode == 2
        assert re.search(r"found schema version 99, expected \d+; move the file aside", result.stderr)


@pytest.mark.parametrize("table", ["tallies", "arrays"])
def test_missing_trials_are_noticed_and_they_alone_are_counted(copy, night, table):
    store = copy.parent / "night.sqlite"
    before = read_tallies(store)
    latest = f"comparison = (SELECT max(comparison) FROM {table}) AND run = 0 AND first = 0"
    change(f"DELETE FROM {table} WHERE {latest}")(store)
    assert " 4,096 trials counted" in run_again(copy).stderr
    assert read_tallies(store) == before
