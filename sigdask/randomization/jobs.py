"""Jobs: which trials of which panel are to be counted."""

from __future__ import annotations

from dataclasses import dataclass

from sigdask.randomization.panels import AnyPanel


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Trials `first` to `first + n_trials - 1` of one run of one panel.

    Attributes
    ----------
    panel : Panel, PresencePanel, OutputsPanel, Family or Relabelling
        What is counted.
    n_trials : int
        Number of trials.
    run : int
        0 for the first run, 1 for the second.
    label : str
        What is compared, for errors.
    first : int
        The first trial.
    """

    panel: AnyPanel
    n_trials: int
    run: int = 0
    label: str = ""
    first: int = 0
