"""`sigdask store`: checks and repairs stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigdask.cli.output.streams import print_text
from sigdask.cli.status import find_store_and_plan
from sigdask.errors import DamagedError
from sigdask.nightly.store.repair import check_store, repair_store
from sigdask.report.layout import COLUMN_GAP
from sigdask.text import format_count, make_printable

if TYPE_CHECKING:
    from sigdask.nightly.store.repair import StoreCondition

MAX_SHOWN = 50
"""Maximum number of faults that are listed."""


def check(where: str, store: str | None, *, everything: bool) -> int:
    """Verify every row of a store, print the faults and return the exit status."""
    condition = check_store(find_store_and_plan(where, store, None)[0])
    n_rows = format_count(condition.n_rows, "row")
    if not condition.faults:
        _print(f"store {condition.where}: {n_rows}, none of them damaged")
        return 0
    _print_faults(condition, everything=everything)
    outcome = "removes the damaged rows; the next run counts only those again"
    if not all(fault.table for fault in condition.faults):
        outcome = (
            "copies the rows that can be read to a new file. If there are none, move the file away; the next run "
            "counts all again"
        )
    _print(
        f"store {condition.where}: {format_count(len(condition.faults), 'fault')} in {n_rows}. `sigdask store "
        f"repair {condition.where}` {outcome}"
    )
    return DamagedError.exit_status


def repair(where: str, store: str | None, *, everything: bool) -> None:
    """Remove damaged rows from a store and print what was removed."""
    condition = repair_store(find_store_and_plan(where, store, None)[0])
    _print_faults(condition, everything=everything)
    if condition.set_aside is not None:
        _print(
            "the file itself was damaged; what could be read is in a new file, and the damaged file is now "
            f"{condition.set_aside}"
        )
    n = sum(bool(fault.key) for fault in condition.faults)
    outcome = f"{format_count(condition.n_rows, 'row')}, none of them damaged; nothing was changed"
    if n or condition.set_aside is not None:
        outcome = f"{n:,} damaged rows of {condition.n_rows:,} were removed; run the plan again"
    _print(f"store {condition.where}: {outcome}")


def _print(text: str, hang: int = COLUMN_GAP) -> None:
    print_text(make_printable(text), hang=hang)


def _print_faults(condition: StoreCondition, *, everything: bool) -> None:
    shown = condition.faults if everything else condition.faults[:MAX_SHOWN]
    for fault in shown:
        _print(fault.text, hang=4)
    if len(shown) < len(condition.faults):
        _print(f"… and {len(condition.faults) - len(shown):,} more (--all shows all)")
