"""`sigdask verify`: checks the program on this machine."""

from __future__ import annotations

from sigdask.cli import declare
from sigdask.cli.streams import print_line, print_text
from sigdask.verify import run_audits


@declare.command(
    declare.option("--cluster CLUSTER", "Cluster whose counts are compared with this process's.", default="local"),
    declare.WORKERS,
)
def command(cluster: str, workers: int | None) -> int:
    """Check the program on this machine: random streams, Yeh's example, exact p, and a cluster."""
    failed = 0
    for name, passed, detail in run_audits(cluster, workers):
        print_line(f"{'ok    ' if passed else 'FAILED'}  {name}: {detail}", hang=8)
        failed += not passed
    print_text(f"\n{failed} of the audits failed" if failed else "\nall audits passed")
    return 1 if failed else 0
