"""Count panels that are too large for one machine, in blocks of systems.

A block is what some systems contribute beyond the panel's first system. Pairs and families need only the sums
of contributions over the swapped units, 2 or 4 bytes a column and trial, so each block is summed once, where it
is. The sums of all blocks are counted with a *frame*: the panel without its contributions, but with the values
that were derived from them. Sums are those of the whole panel, number by
number; so are the counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np

from sigdask.randomization.families.max_t import MaxTFamily
from sigdask.randomization.kernels.layouts import get_layout, set_layout
from sigdask.randomization.kernels.sums import MovedSums, SlabMemory, SumLayout, compute_moved_sums
from sigdask.randomization.panels.sums import Panel

LARGE_BYTES = 2**27
"""From this size on, a panel is counted in blocks if it would have to be sent to a worker."""

BLOCK_BYTES = 2**24
"""Bytes of the unit sums of one block, which holds at least one system."""

SUMS_BYTES = 2**24
"""Maximum bytes of all systems' sums from which one task counts."""

TIMED_TRIALS = 256
"""Trials by which the speed is measured."""

BYTES_PER_SUM = 4
"""Maximum bytes of a sum in most panels."""


@dataclass(frozen=True, slots=True, eq=False)
class SystemBlock:
    """A block: the contributions of some systems of a panel, arranged for summing.

    Attributes
    ----------
    frame : Panel
        The swapped units, without contributions.
    arranged : SumLayout
        The contributions.
    """

    frame: Panel
    arranged: SumLayout

    @staticmethod
    def from_panel(panel: Panel) -> SystemBlock:
        """Return the block of a part of a panel from `split_panel`; the part itself is no longer needed."""
        arranged = get_layout(panel)  # copies, because views would keep the whole arrays alive
        addresses = panel.addresses if arranged.dense is not None else panel.addresses[:0].copy()
        return SystemBlock(replace(panel, values=panel.values[:0].copy(), addresses=addresses), arranged)

    def compute_sums(self, *, run: int, first: int, n_trials: int) -> MovedSums:
        """Return contributions summed over the units swapped in trials `first` to `first + n_trials - 1` of a run."""
        arranged, slab = self.arranged, min(self.arranged.slab_size, n_trials)
        room = SlabMemory.from_layout(arranged, slab)
        kind = next(t for t in (np.int16, np.int32, np.int64) if arranged.largest <= np.iinfo(t).max)
        sums = np.empty((arranged.n_columns, n_trials), kind)
        for start in range(0, n_trials, slab):
            size = min(slab, n_trials - start)
            sums[:, start : start + size] = compute_moved_sums(
                self.frame, arranged, run=run, first=first + start, n_trials=size, room=room
            )
        return MovedSums(replace(arranged, pieces=None, dense=None), first, sums)


def is_large(target: Any) -> TypeGuard[Panel | MaxTFamily]:
    """Return whether a panel or family is large enough to be counted in blocks."""
    return isinstance(target, (Panel, MaxTFamily)) and not target.enumerated and target.nbytes > LARGE_BYTES


def list_panels(target: Panel | MaxTFamily) -> tuple[Panel, ...]:
    """Return the distinct panels of a family, or a panel itself as the only one."""
    return target.panels if isinstance(target, MaxTFamily) else (target,)


def split_panel(panel: Panel) -> Iterator[Panel]:
    """Yield parts of a panel, each with the first and some other systems, but without pairs and metrics."""
    n_systems = len(panel.totals)
    step = max(1, BLOCK_BYTES * n_systems // max(panel.nbytes, 1))
    for start in range(1, n_systems, step):
        systems = [0, *range(start, min(start + step, n_systems))]
        yield replace(
            panel,
            addresses=panel.addresses.astype(np.int32 if panel.addresses.max(initial=0) < 2**31 else np.int64),
            values=np.asfortranarray(panel.values[:, systems]),
            totals=panel.totals[systems],
            sizes=panel.sizes[:0],
            pairs=panel.pairs[:0],
            metrics=(),
        )


def build_frame(target: Panel | MaxTFamily) -> Panel | MaxTFamily:
    """Return a panel or family without its contributions, which tasks on blocks need; derived values are kept."""
    frames = [_build_panel_frame(panel) for panel in list_panels(target)]
    if isinstance(target, Panel):
        return frames[0]
    return _replace_panels(target, frames, {"scales": target.scales})


def _build_panel_frame(panel: Panel) -> Panel:
    frame = replace(panel, values=panel.values[:0], addresses=panel.addresses[:0], sizes=panel.sizes[:0])
    vars(frame).update(linear=panel.linear, slack=panel.slack, _positive=panel._positive)  # noqa: SLF001
    return frame


def build_from_sums(frame: Panel | MaxTFamily, sums: Sequence[Sequence[MovedSums]]) -> Panel | MaxTFamily:
    """Return a panel or family that counts from a frame (see `build_frame`) and the sums of each panel's blocks."""
    twins = [copy(panel) for panel in list_panels(frame)]
    for twin, blocks in zip(twins, sums, strict=True):
        set_layout(twin, _join_layouts(blocks))
    if isinstance(frame, Panel):
        return twins[0]
    derived = {name: getattr(frame, name) for name in ("scales", "observed", "statistics", "order", "is_integral")}
    return _replace_panels(frame, twins, derived)


def _replace_panels(family: MaxTFamily, panels: Sequence[Panel], derived: Mapping[str, Any]) -> MaxTFamily:
    """Return a family with other panels in place of its own, and set its derived values."""
    index_of = {id(panel): k for k, panel in enumerate(family.panels)}
    members = tuple(replace(member, panel=panels[index_of[id(member.panel)]]) for member in family.members)
    replaced = replace(family, members=members)
    vars(replaced).update(derived)
    return replaced


def _join_layouts(blocks: Sequence[MovedSums]) -> SumLayout:
    """Return the layout of a whole panel, joined from the sums of its blocks."""
    ends = np.cumsum([0, *(block.arranged.n_columns for block in blocks)])
    columns = [
        np.where(block.arranged.column_of[1:] < 0, -1, block.arranged.column_of[1:] + end)
        for block, end in zip(blocks, ends[:-1], strict=True)
    ]
    first_layout = blocks[0].arranged
    return SumLayout(
        n_columns=int(ends[-1]),
        column_of=np.concatenate([first_layout.column_of[:1], *columns]),
        sign_of=np.concatenate([first_layout.sign_of[:1], *(block.arranged.sign_of[1:] for block in blocks)]),
        largest=max(block.arranged.largest for block in blocks),
        block_sums=tuple(blocks),
    )


def compute_max_trials(target: Any) -> int | None:
    """Return the maximum number of trials of a task whose sums fit into a worker; None for any number."""
    if not is_large(target):
        return None
    bytes_per_trial = BYTES_PER_SUM * sum(panel.totals.size for panel in list_panels(target))
    return int(max(SUMS_BYTES // bytes_per_trial // 256 * 256, 256))


def measure_seconds_by_blocks(target: Panel | MaxTFamily) -> float:
    """Measure the seconds per trial on this machine, from one block of each panel."""
    sums_by_panel, seconds = [], 0.0
    for panel in list_panels(target):
        first_part = next(split_panel(panel))
        block = SystemBlock.from_panel(first_part)
        block.compute_sums(run=0, first=0, n_trials=1)
        start = time.perf_counter()
        moved = block.compute_sums(run=0, first=0, n_trials=TIMED_TRIALS)
        n_systems, n_in_block = len(panel.totals) - 1, len(first_part.totals) - 1
        seconds += (time.perf_counter() - start) * n_systems / n_in_block
        sums_by_panel.append(
            [_select_systems(moved, min(n_in_block, n_systems - offset)) for offset in range(0, n_systems, n_in_block)]
        )
    joined = build_from_sums(build_frame(target), sums_by_panel)
    joined.tally(run=0, first=0, n_trials=1)
    start = time.perf_counter()
    joined.tally(run=0, first=0, n_trials=TIMED_TRIALS)
    return (seconds + time.perf_counter() - start) / TIMED_TRIALS


def _select_systems(moved: MovedSums, n_systems: int) -> MovedSums:
    """Return the sums of the first systems of a block."""
    full_layout = moved.arranged
    part_layout = replace(
        full_layout, column_of=full_layout.column_of[: n_systems + 1], sign_of=full_layout.sign_of[: n_systems + 1]
    )
    return replace(moved, arranged=part_layout)
