"""Measure the speed of the store: `python -m benchmarks.store [FILE|URL] [COMPARISONS]`.

Prints tallies kept a second in batches of 5,000, the time of `read_status`, and the share of a run's time
that goes into keeping.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import driver
from sigdask.nightly.store import Progress, StoredTallies, open_store, status
from sigdask.randomization.panels.digests import pack_digests

BATCH = 5000


def measure_throughput(location, n):
    """Print tallies per second: first rounds inserted, then updated."""
    greater = np.random.default_rng(0).integers(0, 2048, BATCH)
    counts = np.column_stack([greater, 2048 - greater, greater])
    with open_store(location, "million") as store:
        store.begin_run("", {"settings": {}}, [Progress("s", n, 0, 0, 0, 0, 4096 * n)])
        start = time.perf_counter()
        ids = store.fetch_ids(pack_digests(k.to_bytes(20) for k in range(n)), ["pair"] * n)
        print(f"{n:,} comparisons entered in {time.perf_counter() - start:.1f} s")
        for first, stop in ((0, 2048), (2048, 4096)):  # each row is written whole
            start = time.perf_counter()
            for offset in range(0, n, BATCH):
                tallies = StoredTallies(
                    ids[offset : offset + BATCH], 0, 0, stop, counts[: len(ids[offset : offset + BATCH])]
                )
                store.commit([tallies], [(0, Progress("s", n, offset, 0, 0, offset * stop, 4096 * n))])
            seconds = time.perf_counter() - start
            print(f"trials {first:,} to {stop:,}: {n / seconds:,.0f} tallies a second in batches of {BATCH:,}")
    start = time.perf_counter()
    status.read_status(location, "million")
    print(f"status of {n:,} comparisons: {time.perf_counter() - start:.3f} s")


def measure_store_share(seconds):
    """Print the share of a run's time spent on saving, for one table of 60 systems."""
    save_seconds = [0.0]
    commit = driver.Store.commit

    def timed_commit(self, *arguments):
        start = time.perf_counter()
        commit(self, *arguments)
        save_seconds[0] += time.perf_counter() - start

    driver.Store.commit = timed_commit
    with tempfile.TemporaryDirectory() as folder:
        scores = np.random.default_rng(0).random((200, 60)).round(4)
        header = ",".join(f"s{k}" for k in range(60))
        np.savetxt(Path(folder) / "x.csv", scores, fmt="%.4f", delimiter=",", header=header, comments="")
        (Path(folder) / "x.toml").write_text(
            'trials = 1099511627776\nadjust = "none"\n[[test_set]]\nname = "x"\nsystems = "x.csv"\n'
        )
        start = time.perf_counter()
        outcome = driver.run_plan(load_plan(Path(folder) / "x.toml"), deadline=time.time() + seconds)
        total_seconds = time.perf_counter() - start
    print(
        f"1,770 pairs for {total_seconds:.0f} s: {outcome.n_counted:,} trials, {save_seconds[0] / total_seconds:.1%} of the time kept them"
    )


if __name__ == "__main__":
    place = sys.argv[1] if len(sys.argv) > 1 else str(Path(tempfile.mkdtemp()) / "store.sqlite")
    measure_throughput(place, int((sys.argv[2:] or ["1000000"])[0]))
    measure_store_share(60)
