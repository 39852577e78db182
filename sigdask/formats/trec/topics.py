"""Topics that some systems lack."""

from __future__ import annotations

from collections.abc import Sequence

from sigdask.counts.checks import check_common_items, check_complete
from sigdask.counts.fields import Bools
from sigdask.counts.texts import ScopeNote
from sigdask.formats.reading.missing import describe_missing
from sigdask.formats.reading.options import Options
from sigdask.options import Missing


def apply_topic_policy(
    has: Bools, topics: Sequence[str], systems: Sequence[str], options: Options, default: Missing
) -> tuple[Bools | None, list[ScopeNote]]:
    """Apply the policy for missing topics, `default` unless the user chooses one.

    Parameters
    ----------
    has : bool array, shape (n_topics, n_systems)
        Whether each system has each topic.
    topics, systems : sequence of str
        Names of the topics and of the systems.
    options : Options
        The requested policy, if any.
    default : {"zero", "error"}
        The policy if none was requested.

    Returns
    -------
    present : bool array, shape (n_topics, n_systems), or None
        As in `Counts`.
    notes : list of ScopeNote
        What is missing and how it counts.
    """
    policy = options.missing or default
    if not options.few_in_common:
        check_common_items(has, systems, None if policy == "zero" else policy, topics)
    if policy == "error":
        check_complete(has, systems, topics, "scores")
    return has if policy == "pairwise" and not has.all() else None, describe_missing(has, systems, options, default)
