"""Measure error rates, keep them and write their table: `python -m benchmarks.calibration --help`."""

from __future__ import annotations

import argparse
import resource
import sys

from benchmarks.calibration.catalogue import chosen
from benchmarks.calibration.measuring import measured
from benchmarks.calibration.table import keep, kept, tables, write
from sigdask.errors import SigdaskError

QUICK = 1000


def main() -> None:
    asked = parsed()
    cases = chosen(asked.only)
    if not cases:
        sys.exit(f"--only {asked.only!r}: no table or row is called that")
    n_sets = QUICK if asked.quick else asked.replications
    if n_sets is not None and n_sets < 1:
        sys.exit(f"--replications {n_sets}: must be at least 1")
    try:
        found = measured(cases, n_sets, cluster=asked.cluster, told=told)
    except SigdaskError as error:
        sys.exit(f"--cluster {asked.cluster}: {error}")
    if asked.quick:
        print("\n".join(tables(found)))
    else:
        keep(found)
        write(kept())
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"{sum(u.ru_utime + u.ru_stime for u in used):.0f} s of CPU", file=sys.stderr)
    for wrong in (m for m in found if m.is_wrong):
        print(
            f"{wrong.should} {wrong.expected:.3f}: {wrong.share:.3f} in {wrong.table}: {wrong.row}: {wrong.procedure}",
            file=sys.stderr,
        )


def told(text: str) -> None:
    """Say what is done."""
    print(text, file=sys.stderr, flush=True)


def parsed() -> argparse.Namespace:
    """Return what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("--cluster", default="none", help="where to measure, as sigdask compare takes it")
    parser.add_argument("--replications", type=int, help="data sets of each case at most; by default what each says")
    parser.add_argument("--only", default="", help="cases whose table or row holds this text")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} data sets of each, printed and not kept")
    return parser.parse_args()


if __name__ == "__main__":
    main()
