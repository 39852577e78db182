"""The note on items that a system lacks."""

from __future__ import annotations

from collections.abc import Sequence

from sigdask.counts.fields import Bools
from sigdask.counts.texts import ScopeNote
from sigdask.formats.reading.options import Options
from sigdask.interface import spell
from sigdask.options import Missing
from sigdask.text import format_count

MAX_SHOWN = 3
"""Number of systems that a note names."""


def describe_missing(
    present: Bools | None, systems: Sequence[str], options: Options, convention: Missing = "error"
) -> list[ScopeNote]:
    """Return a note on missing items or scores, if there are any: how many each system lacks, and what was done.

    Parameters
    ----------
    present : bool array, shape (n_items, n_systems), or None
        Which items each system has. None if none is missing.
    systems : sequence of str
        Their names.
    options : Options
        Its `missing` says what was done: "pairwise" or "zero".
    convention : {"error", "zero"}
        What the format does if `missing` does not say.
    """
    lacking = {} if present is None else dict(zip(systems, (~present).sum(axis=0).tolist(), strict=True))
    shown = [f"{name} lacks {n:,}" for name, n in lacking.items() if n]
    if present is None or not shown:
        return []
    more = f", {format_count(len(shown) - MAX_SHOWN, 'more system')} some" if len(shown) > MAX_SHOWN else ""
    treatment = "left out of the pairs of that system" if options.missing == "pairwise" else "scored 0"
    reason = f"the format's convention; {spell('missing', 'pairwise')} leaves them out"
    reason = (
        reason if options.missing is None and convention == "zero" else spell("missing", options.missing or "error")
    )
    lacks = f"{', '.join(shown[:MAX_SHOWN])}{more} of {format_count(len(present), 'item')}"
    return [ScopeNote(f"{lacks}: {treatment} ({reason})")]
