"""Tests that damage in a store is reported row by row, never used, and repaired on request."""

import random
import re
import shutil
import sqlite3
import threading
from contextlib import closing
from itertools import product

import numpy as np
import pytest
from command import call_sigdask
from nights import read_tallies, write_plan
from servers import start_postgres
from sqlalchemy import create_engine, text

from sigdask.errors import DamagedError, HeldError, InputError
from sigdask.metrics.extraction.cache import pack_statistics
from sigdask.nightly.store import open_for_reading, open_store
from sigdask.nightly.store import repair as mending
from sigdask.nightly.store.checksums import are_possible, compute_checksum, compute_keys, compute_tally_checksums
from sigdask.nightly.store.database import open_to_write, parse_url

BITS64 = 2**64 - 1


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


def test_the_checksum_of_a_tally_is_splitmix_of_what_it_says():
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
    rows = [
        (1, "a", None),
        ("1", "a", None),
        (1.0, "a", None),
        (1, b"a", None),
        (1, "a", "None"),
        ("a", 1, None),
        (1, "aNone"),
    ]
    assert len({compute_checksum(row) for row in rows}) == len(rows)


def test_what_shuffles_can_give_is_possible_and_what_they_cannot_is_not():
    # every sign of every difference: the counts of all exact tests of four items
    for differences in product(range(-3, 4), repeat=4):
        shuffled = [sum(s * d for s, d in zip(signs, differences, strict=True)) for signs in product((1, -1), repeat=4)]
        t = sum(differences)
        counts = [sum(d >= t for d in shuffled), sum(d <= t for d in shuffled), sum(abs(d) >= abs(t) for d in shuffled)]
        assert are_possible(np.array([0]), np.array([16]), np.array([counts])).all()
    for counts in ([17, 1, 5], [5, -1, 5], [5, 12, 4], [5, 6, 12], [9_999, 1, 1]):
        assert not are_possible(np.array([0]), np.array([16]), np.array([counts])).any()


@pytest.fixture(scope="module")
def server():
    postgres = start_postgres()
    yield postgres
    postgres.close()


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """Run a plan twice, with other results the second time."""
    folder = tmp_path_factory.mktemp("night")
    path = write_plan(folder / "calm", sets=2, systems=4, trials=6000)
    assert run_plan_again(path).returncode == 0
    assert run_plan_again(path).returncode == 0
    return path


def run_plan_again(path, *options):
    return call_sigdask("run", path, "--cluster", "none", *options, cwd=path.parent)


def parse_n_counted(result):
    assert result.returncode == 0, result.stderr
    return int(re.search(r"([\d,]+) trials counted", result.stderr)[1].replace(",", ""))


@pytest.fixture
def copy(night, tmp_path):
    shutil.copytree(night.parent, tmp_path / "calm")
    return tmp_path / "calm" / night.name


def execute(store, *statements):
    with closing(sqlite3.connect(store)) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount >= 1
        connection.commit()


IMPOSSIBLE_TALLY = "UPDATE tallies SET greater = 99999 WHERE comparison = 3 AND run = 0 AND first = 0"


def test_a_tally_that_no_trials_give_is_refused_told_and_alone_counted_again(copy):
    store = copy.parent / "night.sqlite"
    before, report = read_tallies(store), run_plan_again(copy).stdout
    execute(store, IMPOSSIBLE_TALLY)
    refused = run_plan_again(copy)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "damaged: tallies: comparison 3, run 0, trials 0 to 4,095" in refused.stderr
    assert "intact" not in refused.stderr
    for command in ("check", "repair"):
        result = call_sigdask("store", command, copy, cwd=copy.parent)
        assert result.returncode == {"check": 2, "repair": 0}[command]
        assert "tallies: comparison 3, run 0, trials 0 to 4,095: counts that no trials can give" in result.stdout
    recounted = run_plan_again(copy)
    assert parse_n_counted(recounted) == 4096  # trials 4,096 to 5,999 are kept
    assert recounted.stdout == report.replace("run 3 of", "run 4 of") or "Nothing changed" in recounted.stdout
    assert read_tallies(store) == before
    assert "none of them damaged" in call_sigdask("store", "check", copy, cwd=copy.parent).stdout


def test_a_tally_that_was_changed_to_a_possible_one_is_told_by_its_checksum(copy):
    execute(
        copy.parent / "night.sqlite",
        "UPDATE tallies SET two_sided = two_sided + 1 WHERE comparison = 2 AND run = 1 AND first = 0",
    )
    assert run_plan_again(copy).returncode == 2
    assert (
        "comparison 2, run 1, trials 0 to 4,095: another checksum"
        in call_sigdask("store", "check", copy, cwd=copy.parent).stdout
    )


def test_tallies_under_another_comparison_are_told(copy):
    execute(
        copy.parent / "night.sqlite",
        "UPDATE tallies SET comparison = 1000 WHERE comparison = 1",
        "UPDATE tallies SET comparison = 1 WHERE comparison = 2",
        "UPDATE tallies SET comparison = 2 WHERE comparison = 1000",
    )
    result = run_plan_again(copy)
    assert result.returncode == 2
    assert "comparison 1, run 0" in result.stderr


def test_missing_trials_are_noticed_and_they_alone_are_counted(copy):
    store = copy.parent / "night.sqlite"
    before = read_tallies(store)
    execute(store, "DELETE FROM tallies WHERE comparison = 4 AND run = 0 AND first = 0")
    result = call_sigdask("store", "check", copy, cwd=copy.parent)
    assert result.returncode == 2
    assert "tallies: comparison 4, run 0, trials 0 to 4,095, are missing" in result.stdout
    assert parse_n_counted(run_plan_again(copy)) == 4096
    assert read_tallies(store) == before


def test_a_missing_round_of_a_family_is_counted_and_no_other(copy):
    store = copy.parent / "night.sqlite"
    before = read_tallies(store)
    execute(store, "DELETE FROM arrays WHERE first = 0 AND run = 0")
    assert parse_n_counted(run_plan_again(copy)) > 0
    assert read_tallies(store) == before


DAMAGE_STATEMENTS = {
    "runs: run 1 of plan": "UPDATE runs SET details = replace(details, '0.05', '0.15') WHERE id = 1",
    "progress: how far run 1 came": "UPDATE progress SET counted = counted + 1 WHERE run = 1 AND position = 0",
    "found: block": "UPDATE found SET n = n + 1",
    "ended: what run": "UPDATE ended SET run = 1",
    "arrays: comparison": "UPDATE arrays SET stop = stop + 1 WHERE run = 0 AND first = 4096 AND comparison < 15",
    "extracted: ": "UPDATE extracted SET digest = 'other'",
}


def fill_all_tables(path, store_url):
    """Run a plan and change its scores in between, so that results of before end."""
    assert run_plan_again(path, "--store", store_url).returncode == 0
    scores = (path.parent / "set0.csv").read_text()
    (path.parent / "set0.csv").write_text(scores.replace("0.1", "0.3"))
    assert run_plan_again(path, "--store", store_url).returncode == 0
    (path.parent / "set0.csv").write_text(scores)
    assert run_plan_again(path, "--store", store_url).returncode == 0
    with open_store(store_url, "other") as store:
        store.extraction_cache.put({"a": pack_statistics("a", np.arange(3))})


@pytest.fixture(scope="module")
def full_night(night, tmp_path_factory):
    """Return a plan whose store has rows in every table."""
    folder = shutil.copytree(night.parent, tmp_path_factory.mktemp("full") / "calm")
    fill_all_tables(folder / night.name, str(folder / "night.sqlite"))
    return folder / night.name


@pytest.mark.parametrize("named", DAMAGE_STATEMENTS)
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_damage_of_each_table_is_told_and_mended(named, kind, full_night, tmp_path, request):
    copy = shutil.copytree(full_night.parent, tmp_path / "calm") / full_night.name
    store_url = str(copy.parent / "night.sqlite")
    if kind == "postgresql":
        store_url = create_empty_database(request.getfixturevalue("server"))
        fill_all_tables(copy, store_url)
    before = read_tallies(store_url)
    with closing(open_to_write(store_url)) as database, database.transaction() as connection:
        if kind == "postgresql":
            connection.execute(text("SET session_replication_role = replica"))
        connection.execute(text(DAMAGE_STATEMENTS[named]))
    check = call_sigdask("store", "check", store_url, cwd=copy.parent)
    assert check.returncode == 2
    assert named in check.stdout
    for command in (
        ["status", store_url],
        ["history", store_url],
        ["report", store_url],
        ["run", copy, "--store", store_url, "--cluster", "none"],
    ):
        result = call_sigdask(*command, cwd=copy.parent)
        assert result.returncode in {0, 2}
        assert "intact" not in result.stderr
    assert call_sigdask("store", "repair", store_url, cwd=copy.parent).returncode == 0
    assert run_plan_again(copy, "--store", store_url).returncode == 0
    assert "none of them damaged" in call_sigdask("store", "check", store_url, cwd=copy.parent).stdout
    assert read_tallies(store_url) == before
    assert call_sigdask("report", store_url, cwd=copy.parent).returncode == 0


def create_empty_database(server):
    """Create a database without any table and return its URL."""
    engine = create_engine(parse_url(server.url), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("DROP DATABASE IF EXISTS nights WITH (FORCE)"))
        connection.execute(text("CREATE DATABASE nights"))
    engine.dispose()
    return f"{server.url.rpartition('/')[0]}/nights"


def test_a_damaged_run_is_still_listed_and_its_results_are_not_told(copy):
    execute(copy.parent / "night.sqlite", "UPDATE runs SET details = '{' WHERE id = 1")
    with pytest.raises(DamagedError, match="runs: run 1"):
        build_first_report(copy)
    assert call_sigdask("store", "repair", copy, cwd=copy.parent).returncode == 0
    assert "damaged" in call_sigdask("history", copy, cwd=copy.parent).stdout
    with pytest.raises(InputError, match="its record was damaged"):
        build_first_report(copy)


def build_first_report(path):
    from sigdask.nightly.store import status

    return status.build_report(str(path.parent / "night.sqlite"), number=1)


def test_a_store_that_a_driver_is_at_work_on_is_not_repaired(copy):
    store = str(copy.parent / "night.sqlite")
    with open_store(store, "night"), pytest.raises(HeldError):
        mending.repair_store(store)


def test_a_store_without_a_fault_is_left_as_it_is(copy):
    store = copy.parent / "night.sqlite"
    before = store.read_bytes()
    assert call_sigdask("store", "check", copy, cwd=copy.parent).returncode == 0
    assert store.read_bytes() == before
    result = call_sigdask("store", "repair", copy, cwd=copy.parent)
    assert (result.returncode, "nothing was changed" in result.stdout) == (0, True)
    with open_for_reading(str(store)) as connection:
        assert connection.execute(text("SELECT count(*) FROM leases")).scalar_one() == 0


def test_a_mistake_of_the_program_is_not_called_damage_of_the_store(copy):
    with pytest.raises(ZeroDivisionError), open_for_reading(str(copy.parent / "night.sqlite")):
        raise ZeroDivisionError
    execute(copy.parent / "night.sqlite", IMPOSSIBLE_TALLY)
    with pytest.raises(DamagedError, match="comparison 3"), open_for_reading(str(copy.parent / "night.sqlite")):
        raise ZeroDivisionError


PAGE_BYTES = 4096


def damage_bytes(rng, kind, content):
    """Return the bytes of a store with some of them changed."""
    data = bytearray(content)
    if kind == "cut":
        return data[: rng.randrange(1, len(data))]
    if kind == "page":
        first = PAGE_BYTES * rng.randrange(len(data) // PAGE_BYTES)
        data[first : first + PAGE_BYTES] = rng.choice([bytes(PAGE_BYTES), rng.randbytes(PAGE_BYTES)])
    for _ in range(rng.choice([1, 1, 1, 2, 8]) if kind == "bits" else 0):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    if kind == "first page":
        data[rng.choice([rng.randrange(100), rng.randrange(PAGE_BYTES)])] ^= 1 << rng.randrange(8)
    return data


QUICK_NUMBERS = {0, 4, 8, 12}


@pytest.mark.parametrize(
    "number", [k if k in QUICK_NUMBERS else pytest.param(k, marks=pytest.mark.chaos) for k in range(80)]
)
def test_whatever_of_a_file_is_spoiled_is_told_or_does_not_matter(copy, number):
    rng, store = random.Random(number), copy.parent / "night.sqlite"
    before, reported = read_tallies(store), read_results(copy)
    store.write_bytes(damage_bytes(rng, ("bits", "first page", "page", "cut")[number // 4 % 4], store.read_bytes()))
    for command in ("status", "history", "report"):
        check_clean_end(call_sigdask(command, store, cwd=copy.parent))
    check, run = (
        check_clean_end(call_sigdask("store", "check", copy, cwd=copy.parent)),
        check_clean_end(run_plan_again(copy)),
    )
    assert run.returncode == 0 or check.returncode == 2
    if run.returncode == 0:
        assert read_results(copy) == reported
    repair = check_clean_end(call_sigdask("store", "repair", copy, cwd=copy.parent))
    if repair.returncode == 0:
        assert run_plan_again(copy).returncode == 0
        assert read_results(copy) == reported
        assert [*filter(before.count, read_tallies(store))] == before
        assert call_sigdask("store", "check", copy, cwd=copy.parent).returncode == 0
    else:
        assert "no row of it can be read; move the file away" in repair.stderr


def check_clean_end(result):
    assert result.returncode in {0, 2}, result.stderr
    assert "Traceback" not in result.stderr
    assert "intact" not in result.stderr
    return result


def read_results(path):
    """Return the results of the latest run, without its time and number."""
    result = call_sigdask("report", path, cwd=path.parent)
    assert result.returncode == 0, result.stderr
    return re.split(r"\n(?:Changed since|Nothing changed)", result.stdout.partition("\n")[2])[0].strip()


def test_drivers_that_start_together_on_an_empty_database_make_its_schema_once(server):
    for _ in range(3):
        url = create_empty_database(server)
        start, failed = threading.Barrier(6), []

        def open_it(url=url, start=start, failed=failed):
            start.wait()
            try:
                open_to_write(url).close()
            except Exception as error:  # noqa: BLE001  # whatever it is
                failed.append(error)

        drivers = [threading.Thread(target=open_it) for _ in range(6)]
        for driver in drivers:
            driver.start()
        for driver in drivers:
            driver.join()
        assert failed == []


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(3))
def test_three_plans_that_start_together_on_an_empty_database_all_finish(server, tmp_path, night, number):
    import subprocess

    from nights import run_sigdask

    url = create_empty_database(server)
    plans = []
    for name in ("one", "two", "three"):
        path = write_plan(tmp_path / name, sets=2, systems=4, trials=6000)
        plans.append(path.rename(path.with_name(f"{name}.toml")))  # a plan is called as its file
    running = [
        run_sigdask("run", path, "--cluster", "none", "--store", url, cwd=path.parent, start=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for path in plans
    ]  # fmt: skip
    errors = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], errors
    assert read_tallies(url) == read_tallies(night.parent / "night.sqlite")


def test_a_report_says_that_a_repair_has_removed_results_of_its_run(tmp_path):
    plan = write_plan(tmp_path / "night", trials=500)
    folder, store = plan.parent, plan.parent / "night.sqlite"
    assert call_sigdask("run", "night.toml", cwd=folder).returncode == 0
    assert "but the store has" not in call_sigdask("report", "night.toml", cwd=folder).stderr
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE found SET columns = zeroblob(9) WHERE id = (SELECT max(id) FROM found)")
        connection.commit()
    assert call_sigdask("store", "repair", store, cwd=folder).returncode == 0
    for command in ("report", "cite"):
        stderr = call_sigdask(command, "night.toml", cwd=folder).stderr
        assert "warning: run 1 had 30 results, but the store has 0" in stderr
    assert call_sigdask("run", "night.toml", cwd=folder).returncode == 0
    assert "but the store has" not in call_sigdask("report", "night.toml", cwd=folder).stderr
