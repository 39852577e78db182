"""The commands on stores: what of one is damaged, and taking that out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigdask.cli.output.say import say
from sigdask.cli.status import store_and_plan
from sigdask.errors import DamagedError
from sigdask.nightly.store import repair as mending
from sigdask.text import count_noun, printable

if TYPE_CHECKING:
    from sigdask.nightly.store.repair import StoreCondition

SHOWN = 50
"""Faults that are told one by one."""


def check(where: str, store: str | None, *, everything: bool) -> int:
    """Verify every row of a store, print the faults and return the exit status."""
    found = mending.check(store_and_plan(where, store, None)[0])
    if not found.faults:
        say(printable(f"store {found.where}: {count_noun(found.n_rows, 'row')}, none of them damaged"))
        return 0
    _list(found, everything=everything)
    remedy = f"`sigdask store repair {found.where}` takes out what is damaged: the next run counts that again, no more"
    say(
        printable(
            f"store {found.where}: {count_noun(len(found.faults), 'fault')} in {count_noun(found.n_rows, 'row')}. "
            f"{remedy}"
        )
    )
    return DamagedError.exit_status


def repair(where: str, store: str | None, *, everything: bool) -> None:
    """Remove damaged rows from a store and print what was removed."""
    found = mending.repair(store_and_plan(where, store, None)[0])
    _list(found, everything=everything)
    if found.set_aside is not None:
        say(printable(f"the file itself was damaged: what could be read is in a new one, it is now {found.set_aside}"))
    n = sum(bool(fault.key) for fault in found.faults)
    if n or found.set_aside is not None:
        say(
            printable(f"store {found.where}: {n:,} damaged rows were taken out of {found.n_rows:,}; run the plan again")
        )
    else:
        say(
            printable(
                f"store {found.where}: {count_noun(found.n_rows, 'row')}, none of them damaged; nothing was changed"
            )
        )


def _list(found: StoreCondition, *, everything: bool) -> None:
    shown = found.faults if everything else found.faults[:SHOWN]
    for fault in shown:
        say(printable(fault.text), hang=4)
    if len(shown) < len(found.faults):
        say(f"… and {len(found.faults) - len(shown):,} more (--all shows all)")
