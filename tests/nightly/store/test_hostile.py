"""Tests that damaged and crafted stores end every command with one clear message, in little time and memory.

Whatever is sound in a store is there after each command, or after `store repair` and a run.
"""

import os
import resource
import shutil
import sqlite3
import struct
import zlib
from base64 import b64encode
from contextlib import closing, suppress
from itertools import pairwise

import numpy as np
import pytest
from command import call_sigdask
from nights import read_tallies, write_plan

from sigdask.metrics.extraction.cache import pack_statistics
from sigdask.nightly.store import open_store
from sigdask.nightly.store.checksums import seal_rows
from sigdask.nightly.store.columns import pack_columns, unpack_columns
from sigdask.nightly.store.database import open_to_write

PAGE = 4096
MAX_SECONDS, MAX_KILOBYTES = 20, 2 << 20  # compiling kernels takes up to 1 GiB
READERS = ("history", "status", "report", "cite")


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """Return a plan with a store that has rows in all tables, its tallies and the report of its results."""
    folder = tmp_path_factory.mktemp("hostile") / "calm"
    plan = write_plan(folder, sets=1, systems=3, trials=5000)
    scores = (folder / "set0.csv").read_text()
    (folder / "set0.csv").write_text(scores.replace("0.1", "0.3"))
    call_run(plan)  # so that results of it end
    (folder / "set0.csv").write_text(scores)
    store = folder / "night.sqlite"
    with open_store(str(store), "other") as opened:
        opened.extraction_cache.put({"a": pack_statistics("a", np.arange(3))})
    call_run(plan)
    call_run(plan, "--store", "now.sqlite")  # whose counts are those of the files as they are
    return plan, read_tallies(folder / "now.sqlite"), read_results(plan)


@pytest.fixture
def copy(night, tmp_path):
    shutil.copytree(night[0].parent, tmp_path / "calm")
    return tmp_path / "calm" / "night.toml"


def call_run(plan, *options):
    return call_sigdask("run", plan, "--cluster", "none", *options, cwd=plan.parent)


def read_results(plan):
    """Return the results of the latest run, without its number and what changed."""
    result = call_sigdask("report", plan, cwd=plan.parent)
    assert result.returncode == 0, result.stderr
    return result.stdout.partition("\n\n")[2].partition("\nsigdask 0.")[0]


def execute(store, *statements, values=()):
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            connection.execute(statement, values)
        connection.commit()


def seal(store, table):
    """Make the checksums of a table fit, as whoever crafts a store can."""
    with closing(open_to_write(str(store))) as database, database.transaction() as connection:
        seal_rows(connection, table)


def change_and_seal(table, statement, *values):
    def craft(store):
        execute(store, statement, values=values)
        seal(store, table)

    return craft


def change(*statements):
    return lambda store: execute(store, *statements)


def change_bytes(first, content):
    def damage(store):
        data = bytearray(store.read_bytes())
        data[first : first + len(content)] = content
        store.write_bytes(data)

    return damage


def cut(share):
    return lambda store: os.truncate(store, int(share * store.stat().st_size) // PAGE * PAGE)


def find_root(store, table):
    with closing(sqlite3.connect(store)) as connection:
        return connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]


def damage_root(table, first, content):
    return lambda store: change_bytes((find_root(store, table) - 1) * PAGE + first, content)(store)


def write_bomb(n_bytes=256 << 20):
    """Compress zeros: a megabyte, and its compressed bytes again and again."""
    packer = zlib.compressobj(9, wbits=-15)
    megabyte = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    adler = n_bytes % 65521 << 16 | 1
    return b"\x78\xda" + megabyte * (n_bytes >> 20) + packer.flush() + struct.pack(">I", adler)


def test_a_bomb_is_what_zlib_makes_of_zeros():
    assert zlib.decompress(write_bomb(3 << 20)) == bytes(3 << 20)


def put_bomb_into_a_column(store):
    columns = unpack_columns(fetch(store, "SELECT columns FROM found"))
    packed = pack_columns({name: columns[name] for name in [*columns][:1]})
    (size,) = struct.unpack_from("<I", packed)
    bomb = write_bomb()
    head = zlib.decompress(packed[4 : 4 + size]).decode()
    head = zlib.compress((head[: head.index('"sizes":[')] + f'"sizes":[{len(bomb)}]}}]').encode())
    content = struct.pack("<I", len(head)) + head + bomb
    change_and_seal("found", "UPDATE found SET columns = ?", content)(store)


def put_nested_bomb(store):
    details = fetch(store, "SELECT details FROM runs ORDER BY id DESC")
    packed = b64encode(write_bomb(300 << 20)).decode()
    crafted = details[:-1] + f', "rankings": {{"x": {{"packed": "{packed}"}}}}}}'
    change_and_seal("runs", "UPDATE runs SET details = ? WHERE id = (SELECT max(id) FROM runs)", crafted)(store)


def fetch(store, query):
    with closing(sqlite3.connect(store)) as connection:
        return connection.execute(query).fetchone()[0]


def loosen(table, *statements):
    """Take the constraints of a table away, then change it."""

    def craft(store):
        with closing(sqlite3.connect(store)) as connection:
            names = ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))
        execute(store, f"CREATE TABLE loose AS SELECT {names} FROM {table}", f"DROP TABLE {table}",
                f"ALTER TABLE loose RENAME TO {table}", *statements)  # fmt: skip

    return craft


def replace_by_view(table, query):
    return change(f"DROP TABLE {table}", f"CREATE VIEW {table} AS {query}")


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x AS id FROM n"


def write_tree_of_circles(store):
    """Make the tree of a table's pages refer to itself, so that a scan has no end that one lives to see."""
    root = find_root(store, "runs")
    data = bytearray(store.read_bytes())
    first = (root - 1) * PAGE
    cells = b"".join(struct.pack(">IB", root, 1) for _ in range(300))
    start = PAGE - len(cells)
    pointers = b"".join(struct.pack(">H", start + 5 * k) for k in range(300))
    page = struct.pack(">BHHHBI", 5, 0, 300, start, 0, root) + pointers
    data[first : first + PAGE] = page.ljust(start, b"\0") + cells
    store.write_bytes(data)


def write_deep_circles(store):
    """Make ten pages of which each refers to the next 300 times: more rows than can be read, and no circle."""
    execute(store, "CREATE TABLE filler (x)", "INSERT INTO filler VALUES (zeroblob(100000))")
    root, data = find_root(store, "runs"), bytearray(store.read_bytes())
    last = len(data) // PAGE
    leaf = bytes(data[(root - 1) * PAGE : root * PAGE])
    pages = [root, *range(last - 9, last + 1)]
    for page, child in pairwise(pages):
        cells = b"".join(struct.pack(">IB", child, 1) for _ in range(300))
        start = PAGE - len(cells)
        pointers = b"".join(struct.pack(">H", start + 5 * k) for k in range(300))
        head = struct.pack(">BHHHBI", 5, 0, 300, start, 0, child)
        data[(page - 1) * PAGE : page * PAGE] = (head + pointers).ljust(start, b"\0") + cells
    data[(last - 1) * PAGE : last * PAGE] = leaf
    store.write_bytes(data)


def loop_freelist(store):
    execute(store, "CREATE TABLE filler (x)", "INSERT INTO filler VALUES (zeroblob(100000))", "DROP TABLE filler")
    trunk = struct.unpack_from(">I", store.read_bytes(), 32)[0]
    assert trunk
    change_bytes((trunk - 1) * PAGE, struct.pack(">I", trunk))(store)


def loop_overflow(store):
    execute(store, "UPDATE runs SET details = details || ' ' || hex(zeroblob(20000)) WHERE id = 1")
    with closing(sqlite3.connect(store)) as connection, suppress(sqlite3.Error):
        pages = connection.execute("SELECT pageno FROM dbstat WHERE name = 'runs' AND pagetype = 'overflow'").fetchall()
    page = pages[0][0] if "pages" in locals() and pages else store.stat().st_size // PAGE
    change_bytes((page - 1) * PAGE, struct.pack(">I", page))(store)


def start_transaction(store, statement):
    """Return copies of a store and its journal in the midst of a transaction."""
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("PRAGMA cache_spill = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(statement)
        connection.execute("CREATE TABLE filler (x)")
        connection.execute("INSERT INTO filler WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 99)"
                           " SELECT zeroblob(3000) FROM n")  # fmt: skip
        journal = store.with_name(f"{store.name}-journal").read_bytes()
        data = store.read_bytes()
        connection.execute("ROLLBACK")
    return data, journal


def leave_hot_journal(store):
    data, journal = start_transaction(store, "DELETE FROM tallies")
    assert data != store.read_bytes()
    store.write_bytes(data)
    store.with_name(f"{store.name}-journal").write_bytes(journal)


def replace_by(make):
    def damage(store):
        store.unlink()
        make(store)

    return damage


KINDS = {
    "cut to nothing": cut(0),
    "cut after the first page": lambda store: os.truncate(store, PAGE),
    "cut at half of its pages": cut(0.5),
    "cut before its last page": lambda store: os.truncate(store, store.stat().st_size - PAGE),
    "cut within a page": lambda store: os.truncate(store, store.stat().st_size - 1000),
    "flipped in its first bytes": change_bytes(3, b"\xff"),
    "another size of page": change_bytes(16, b"\x02\x00"),
    "a size of page that is none": change_bytes(16, b"\x00\x03"),
    "another encoding": change_bytes(56, b"\0\0\0\2"),
    "a schema format of the future": change_bytes(44, b"\0\0\0\x09"),
    "a freelist without end": loop_freelist,
    "an overflow chain without end": loop_overflow,
    "a schema that is no page": change_bytes(100, b"\xff" * 8),
    "a tree of tallies of another type": damage_root("tallies", 0, b"\x0d"),
    "cells outside of their page": damage_root("runs", 8, b"\xff\xf0" * 2),
    "a table's page of zeros": damage_root("found", 0, bytes(PAGE)),
    "a table's page of noise": damage_root("progress", 0, np.random.default_rng(0).bytes(PAGE)),
    "a tree that holds itself": write_tree_of_circles,
    "a tree of more rows than there are": write_deep_circles,
    "a hot journal": leave_hot_journal,
    "a journal of noise": lambda store: store.with_name(f"{store.name}-journal").write_bytes(b"\xd9\xd5\x05" * 3000),
    "a log of noise": lambda store: store.with_name(f"{store.name}-wal").write_bytes(b"\x37\x7f" * 3000),
    "a folder": replace_by(os.mkdir),
    "a pipe": replace_by(os.mkfifo),
    "a text": replace_by(lambda store: store.write_text("no database " * 500)),
    "version 0": change("UPDATE schema_version SET version = 0"),
    "version 99": change("UPDATE schema_version SET version = 99"),
    "a version in words": change("UPDATE schema_version SET version = 'six'"),
    "no version": change("DELETE FROM schema_version"),
    "a version of NULL": loosen("schema_version", "UPDATE schema_version SET version = NULL"),
    "two versions": change("INSERT INTO schema_version VALUES (6)"),
    "a view for its version": replace_by_view("schema_version", "SELECT 6 AS version"),
    "no table of versions": change("DROP TABLE schema_version"),
    "a view without end": replace_by_view("found", ENDLESS),
    "a view more": change("CREATE VIEW mine AS SELECT * FROM runs"),
    "a trigger": change("CREATE TRIGGER mine AFTER UPDATE ON runs BEGIN DELETE FROM tallies; END"),
    "a generated column": change("ALTER TABLE runs ADD COLUMN more AS (zeroblob(900000000)) VIRTUAL"),
    "a virtual table": change("CREATE VIRTUAL TABLE mine USING fts5(x)"),
    "a table more": change("CREATE TABLE mine (x)", "INSERT INTO mine VALUES (1)"),
    "no table of results": change("DROP TABLE found"),
    "no table of tallies": change("DROP TABLE tallies"),
    "a column less": change("ALTER TABLE runs DROP COLUMN details"),
    "a column more that must be filled": change(
        "UPDATE sqlite_master SET sql = replace(sql, 'message TEXT NOT NULL', 'message TEXT NOT NULL, more TEXT NOT NULL') "
        "WHERE name = 'runs'"
    ),
    "types of columns lost": loosen("tallies", "UPDATE tallies SET greater = CAST(greater AS TEXT)"),
    "NULLs": loosen("tallies", "UPDATE tallies SET stop = NULL WHERE rowid = 2"),
    "NULLs in a run": loosen("runs", "UPDATE runs SET details = NULL, started = NULL WHERE id = 1"),
    "rows twice": loosen("tallies", "INSERT INTO tallies SELECT * FROM tallies"),
    "negative counts": change("UPDATE tallies SET greater = -1 WHERE comparison = 2"),
    "counts that overflow": change("UPDATE tallies SET greater = 9223372036854775807, stop = 9223372036854775807"),
    "a first trial below zero": change(
        "UPDATE tallies SET first = -9223372036854775808 WHERE comparison = (SELECT max(comparison) FROM tallies) AND first = 0"
    ),
    "progress below zero": change_and_seal("progress", "UPDATE progress SET counted = -5"),
    "a huge blob": change_and_seal("arrays", "UPDATE arrays SET counts = zeroblob(30000000) WHERE run = 1"),
    "a bomb in a family": change_and_seal("arrays", "UPDATE arrays SET counts = ?", write_bomb()),
    "a bomb in a column": put_bomb_into_a_column,
    "a bomb in the head of a block": change_and_seal(
        "found", "UPDATE found SET columns = ?", struct.pack("<I", 260_000) + write_bomb()
    ),
    "a bomb in what was extracted": lambda store: execute(
        store, "UPDATE extracted SET content = ?", values=(craft_statistics(write_bomb()),)
    ),
    "a bomb within the details": put_nested_bomb,
    "a block of too many rows": change_and_seal("found", "UPDATE found SET n = 9223372036854775807"),
    "nested brackets": change_and_seal("runs", "UPDATE runs SET details = ?", "[" * 200_000),
    "nested details": change_and_seal("runs", "UPDATE runs SET details = ?", '{"frames":' * 90 + "1" + "}" * 90),
    "frames of another type": change_and_seal(
        "runs", "UPDATE runs SET details = json_set(details, '$.frames', json('{\"set0\": 5}'))"
    ),
    "a verdict of another type": change_and_seal("runs", "UPDATE runs SET details = json_set(details, '$.verdict', 5)"),
    "details that are a list": change_and_seal("runs", "UPDATE runs SET details = '[]'"),
    "settings of another type": change_and_seal("runs", 'UPDATE runs SET details = \'{"settings": {"alpha": "x"}}\''),
    "a text that is no UTF-8": change("UPDATE runs SET plan = CAST(x'6eff' AS TEXT) WHERE id = 1"),
    "dates beyond the calendar": change_and_seal("runs", "UPDATE runs SET started = 1e300, ended = 9e999"),
    "dates before 1970": change_and_seal("runs", "UPDATE runs SET started = -1e12"),
    "a time left that is none": change("UPDATE runs SET seconds_left = 9e999, updated = -1e300"),
    "a lease of nonsense": change("INSERT INTO leases VALUES ('', 't', '[', 'x', 1e300, -4)"),
    "an end of rows that are not there": change_and_seal(
        "ended", "UPDATE ended SET places = ?", pack_columns({("places",): np.array([1000])})
    ),
}


def craft_statistics(bomb):
    """Return statistics whose checksum fits, of as many numbers as a bomb unpacks to."""
    import hashlib

    packed = pack_statistics("a", np.zeros(1, np.int64))
    head = packed[:-32].rpartition(b"\n")[0].replace(b"[1]", b"[300000000]") if b"[1]" in packed else packed[:-32]
    data = head + b"\n" + bomb
    return data + hashlib.blake2b(data, digest_size=32).digest()


QUICK_KINDS = {
    "version 99",
    "a view for its version",
    "a view without end",
    "a trigger",
    "a generated column",
    "a tree of more rows than there are",
    "a bomb in a column",
    "a bomb in what was extracted",
    "nested brackets",
    "a lease of nonsense",
}


@pytest.mark.parametrize(
    "kind", [kind if kind in QUICK_KINDS else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]
)
def test_hostile_stores_end_in_words_and_lose_nothing_that_is_sound(kind, copy, night, monkeypatch):
    monkeypatch.setattr("sigdask.nightly.store.lease.BEAT_SECONDS", 0.05)
    _, tallies, results = night
    store, begun = copy.parent / "night.sqlite", measure()
    KINDS[kind](store)
    is_read = [check_end(call_sigdask(command, store, cwd=copy.parent)).returncode == 0 for command in READERS]
    check = check_end(call_sigdask("store", "check", copy, cwd=copy.parent))
    run = check_end(call_run(copy))
    assert check.returncode == 2 or run.returncode == 0 or not any(is_read)
    if run.returncode == 0:
        assert read_results(copy) == results
    repair = check_end(call_sigdask("store", "repair", copy, cwd=copy.parent))
    if repair.returncode:
        [follow] = [follow for words, follow in REMEDIES.items() if words in repair.stderr]
        follow(store)
    run = check_end(call_run(copy))
    assert run.returncode == 0, (run.stderr, repair.stdout)
    assert "none of them damaged" in call_sigdask("store", "check", copy, cwd=copy.parent).stdout
    assert read_results(copy) == results
    assert [*filter(read_tallies(store).__contains__, tallies)] == tallies
    seconds, kilobytes = measure()
    assert seconds - begun[0] < MAX_SECONDS
    assert kilobytes < max(begun[1] + 1, MAX_KILOBYTES)


REMEDIES = {
    "move the file away": lambda store: store.rename(store.with_name("away")),
    "name a file with --store": lambda store: store.rename(store.with_name("away")),
    "upgrade sigdask": change("UPDATE schema_version SET version = 6"),
}
"""Words of the errors of a repair, and functions that do what they say."""


def check_end(result):
    """Check that a command ended in one message."""
    assert result.returncode in {0, 2}, (result.args, result.stderr)
    assert "Traceback" not in result.stderr, result.stderr
    assert "internal error" not in result.stderr, result.stderr
    assert result.stderr.count("error:") <= 1, result.stderr
    return result


def measure():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss
