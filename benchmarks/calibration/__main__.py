"""Measure error rates, save them and write their tables: `python -m benchmarks.calibration --help`."""

from __future__ import annotations

import argparse
import resource
import sys

from benchmarks.calibration.catalogue import select_cases
from benchmarks.calibration.measuring import measure_cases
from benchmarks.calibration.table import format_tables, load_results, save_results, write_tables
from sigdask.errors import SigdaskError

N_QUICK_SETS = 1000


def main() -> None:
    arguments = parse_arguments()
    cases = select_cases(arguments.only)
    if not cases:
        sys.exit(f"--only {arguments.only!r}: no table or row is called that")
    n_sets = N_QUICK_SETS if arguments.quick else arguments.replications
    if n_sets is not None and n_sets < 1:
        sys.exit(f"--replications {n_sets}: must be at least 1")
    try:
        rates = measure_cases(cases, n_sets, cluster=arguments.cluster, report=print_progress)
    except SigdaskError as error:
        sys.exit(f"--cluster {arguments.cluster}: {error}")
    if arguments.quick:
        print("\n".join(format_tables(rates)))
    else:
        save_results(rates)
        write_tables(load_results())
    usages = [resource.getrusage(scope) for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"{sum(u.ru_utime + u.ru_stime for u in usages):.0f} s of CPU", file=sys.stderr)
    for wrong in (m for m in rates if m.is_wrong):
        print(
            f"{wrong.should} {wrong.expected:.3f}: {wrong.share:.3f} in {wrong.table}: {wrong.row}: {wrong.procedure}",
            file=sys.stderr,
        )


def print_progress(text: str) -> None:
    """Print a progress message to standard error."""
    print(text, file=sys.stderr, flush=True)


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("--cluster", default="none", help="where to measure, as sigdask compare takes it")
    parser.add_argument("--replications", type=int, help="data sets of each case at most; by default what each says")
    parser.add_argument("--only", default="", help="cases whose table or row holds this text")
    parser.add_argument(
        "--quick", action="store_true", help=f"{N_QUICK_SETS:,} data sets of each, printed and not kept"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
