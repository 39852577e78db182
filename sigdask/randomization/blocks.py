"""Panels in blocks of systems: for those that no machine should hold whole.

A block is what some systems contribute beside the panel's first system. All that pairs and families take of
contributions are their sums over the swapped units, 2 or 4 bytes a column and trial, so each block is summed
where it is, once, and whoever has the sums of all blocks counts from a *frame*: the panel without its
contributions, which keeps what the whole panel knew of itself. Sums are those of the whole panel, number by
number; so are the counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np

from sigdask.randomization.families.max_t import Family
from sigdask.randomization.kernels.layouts import arrange, layout
from sigdask.randomization.kernels.sums import MovedSums, SlabMemory, SumLayout, moved_sums
from sigdask.randomization.panels.sums import Panel

LARGE_BYTES = 2**27
"""Size from which a panel is counted in blocks where it would have to travel."""

BLOCK_BYTES = 2**24
"""Contributions of one block, at least those of one system."""

SUMS_BYTES = 2**24
"""Sums of all systems that one task counts from."""

TIMED = 256
"""Trials that tell the speed."""

ABOUT_A_SUM = 4
"""Bytes of a sum, at most as a rule."""


@dataclass(frozen=True, slots=True, eq=False)
class SystemBlock:
    """Some systems of a panel, arranged for summing.

    Attributes
    ----------
    frame : Panel
        The units that are swapped; no contributions.
    arranged : SumLayout
        The contributions.
    """

    frame: Panel
    arranged: SumLayout

    @staticmethod
    def of(part: Panel) -> SystemBlock:
        """Arrange a part of a panel, as `parts_of` cuts it, whose own arrays are needed no more."""
        arranged = layout(part)  # below no views, which would hold all that they are of
        addresses = part.addresses if arranged.dense is not None else part.addresses[:0].copy()
        return SystemBlock(replace(part, values=part.values[:0].copy(), addresses=addresses), arranged)

    def sums(self, *, run: int, first: int, n_trials: int) -> MovedSums:
        """Sum over the units swapped in trials `first` to `first + n_trials - 1` of a run."""
        arranged, slab = self.arranged, min(self.arranged.slab, n_trials)
        room = SlabMemory.of(arranged, slab)
        kind = next(t for t in (np.int16, np.int32, np.int64) if arranged.largest <= np.iinfo(t).max)
        sums = np.empty((arranged.n_columns, n_trials), kind)
        for start in range(0, n_trials, slab):
            here = min(slab, n_trials - start)
            sums[:, start : start + here] = moved_sums(
                self.frame, arranged, run=run, first=first + start, n_trials=here, room=room
            )
        return MovedSums(replace(arranged, pieces=None, dense=None), first, sums)


def is_large(counted: Any) -> TypeGuard[Panel | Family]:
    """Say whether what is counted is worth cutting into blocks."""
    return isinstance(counted, (Panel, Family)) and not counted.enumerated and counted.nbytes > LARGE_BYTES


def panels_of(counted: Panel | Family) -> tuple[Panel, ...]:
    """Return the distinct panels of what is counted."""
    return counted.panels if isinstance(counted, Family) else (counted,)


def parts_of(panel: Panel) -> Iterator[Panel]:
    """Cut a panel into parts of some systems beside its first one, without pairs and metrics."""
    n_systems = len(panel.totals)
    step = max(1, BLOCK_BYTES * n_systems // max(panel.nbytes, 1))
    for start in range(1, n_systems, step):
        own = [0, *range(start, min(start + step, n_systems))]
        yield replace(
            panel,
            addresses=panel.addresses.astype(np.int32 if panel.addresses.max(initial=0) < 2**31 else np.int64),
            values=np.asfortranarray(panel.values[:, own]),
            totals=panel.totals[own],
            sizes=panel.sizes[:0],
            pairs=panel.pairs[:0],
            metrics=(),
        )


def frame_of(counted: Panel | Family) -> Panel | Family:
    """Return what is counted without its contributions, but with all that was known by them."""
    frames = [_frame(panel) for panel in panels_of(counted)]
    if isinstance(counted, Panel):
        return frames[0]
    return _with_panels(counted, frames, {"scales": counted.scales})


def _frame(panel: Panel) -> Panel:
    frame = replace(panel, values=panel.values[:0], addresses=panel.addresses[:0], sizes=panel.sizes[:0])
    vars(frame).update(linear=panel.linear, slack=panel.slack, _positive=panel._positive)  # noqa: SLF001
    return frame


def from_sums(frame: Panel | Family, sums: Sequence[Sequence[MovedSums]]) -> Panel | Family:
    """Return what a frame is of, as it counts from the sums of all blocks of each panel, in the trials of these."""
    twins = [copy(panel) for panel in panels_of(frame)]
    for twin, made in zip(twins, sums, strict=True):
        arrange(twin, _joined(made))
    if isinstance(frame, Panel):
        return twins[0]
    known = {name: getattr(frame, name) for name in ("scales", "observed", "statistics", "order", "is_integral")}
    return _with_panels(frame, twins, known)


def _with_panels(family: Family, panels: Sequence[Panel], known: Mapping[str, Any]) -> Family:
    """Return a family with other panels in the places of its own, and what is known of it."""
    place = {id(panel): k for k, panel in enumerate(family.panels)}
    members = tuple(replace(member, panel=panels[place[id(member.panel)]]) for member in family.members)
    found = replace(family, members=members)
    vars(found).update(known)
    return found


def _joined(made: Sequence[MovedSums]) -> SumLayout:
    """Return the layout of all blocks together."""
    ends = np.cumsum([0, *(block.arranged.n_columns for block in made)])
    places = [
        np.where(block.arranged.column_of[1:] < 0, -1, block.arranged.column_of[1:] + end)
        for block, end in zip(made, ends[:-1], strict=True)
    ]
    first = made[0].arranged
    return SumLayout(
        n_columns=int(ends[-1]),
        column_of=np.concatenate([first.column_of[:1], *places]),
        sign_of=np.concatenate([first.sign_of[:1], *(block.arranged.sign_of[1:] for block in made)]),
        largest=max(block.arranged.largest for block in made),
        made=tuple(made),
    )


def most_trials(counted: Any) -> int | None:
    """Return how many trials one task may be of, so that a worker holds the sums; None where that does not matter."""
    if not is_large(counted):
        return None
    a_trial = ABOUT_A_SUM * sum(panel.totals.size for panel in panels_of(counted))
    return int(max(SUMS_BYTES // a_trial // 256 * 256, 256))


def seconds_by_blocks(counted: Panel | Family) -> float:
    """Measure what a trial costs here, by one block of each panel, whose sums stand for those of the others."""
    made, seconds = [], 0.0
    for panel in panels_of(counted):
        part = next(parts_of(panel))
        block = SystemBlock.of(part)
        block.sums(run=0, first=0, n_trials=1)
        start = time.perf_counter()
        moved = block.sums(run=0, first=0, n_trials=TIMED)
        others, own = len(panel.totals) - 1, len(part.totals) - 1
        seconds += (time.perf_counter() - start) * others / own
        made.append([_some(moved, min(own, others - begun)) for begun in range(0, others, own)])
    whole = from_sums(frame_of(counted), made)
    whole.tally(run=0, first=0, n_trials=1)
    start = time.perf_counter()
    whole.tally(run=0, first=0, n_trials=TIMED)
    return (seconds + time.perf_counter() - start) / TIMED


def _some(moved: MovedSums, n_systems: int) -> MovedSums:
    """Return the sums of the first systems of a block."""
    own = moved.arranged
    part = replace(own, column_of=own.column_of[: n_systems + 1], sign_of=own.sign_of[: n_systems + 1])
    return replace(moved, arranged=part)
