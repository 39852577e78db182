"""Draft a commented plan for the test sets discovered in a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from sigdask.nightly.plan.discover import DiscoveredTestSet, FolderSurvey
from sigdask.text import format_count, format_list

BASELINE_NAMES = ("baseline", "prod", "production", "main")
"""Words in names of systems that are likely to be the baseline."""

MAX_PATHS = 4
"""Maximum number of files that are named on the terminal."""


def guess_baseline(survey: FolderSurvey) -> str | None:
    """Return the first system that all test sets have and whose name says that it is the baseline, if any.

    Names are split into words: `prod-2` and `my_baseline` are baselines, `production-like` and `domain` are not.
    """
    first, *others = (test_set.counts.systems for test_set in survey.test_sets)
    shared = [name for name in first if all(name in systems for systems in others)]
    words = {name: {*re.split(r"[^a-z]+", name.casefold())} for name in shared}
    return next((name for known in BASELINE_NAMES for name in shared if known in words[name]), None)


def render_draft(survey: FolderSurvey, name: str, baseline: str | None = None) -> str:
    """Return a plan as TOML, with comments on the choices.

    Parameters
    ----------
    survey : FolderSurvey
        The test sets.
    name : str
        Name of the plan's file without its ending.
    baseline : str, optional
        System with which the others are compared. Without one, all are compared with each other.
    """
    first_system = _format_value(survey.test_sets[0].counts.systems[0] if baseline is None else baseline)
    choices = ['pairs = "all"', f"pairs = {{ baseline = {first_system} }}"]
    pairs = "{}\n# {}".format(*(choices if baseline is None else choices[::-1]))
    sets = "\n".join(line for test_set in survey.test_sets for line in _iter_lines(test_set))
    template = files(__package__).joinpath("draft.template").read_text(encoding="utf-8")
    return template.format(name=name, first=first_system, pairs=pairs, sets=sets)


def _iter_lines(test_set: DiscoveredTestSet) -> Iterator[str]:
    yield f"# {_describe_systems(test_set)}."
    yield "[[test_set]]"
    if not isinstance(test_set.keys["systems"], str):
        yield "# No pattern has these files alone. Add each new system to the list."
    yield from (f"{key} = {_format_value(value)}" for key, value in test_set.keys.items())
    if "documents" in test_set.keys:
        yield "# Whole documents are swapped, because segments of a document are correlated."
        yield 'unit = "document"'
    elif part := find_parts(test_set):
        yield f"# Each {part} is compared by itself; leave this out to compare all items together:"
        yield f'by = "{part}"'
    elif groups := [*test_set.counts.groups]:
        yield "# Swap whole groups if their items are correlated:"
        yield from (f"# unit = {_format_value(name)}" for name in groups)
    yield "# `sigdask list metrics` lists others."
    yield f"metrics = {_format_value(test_set.counts.suggested)}"
    yield ""


def find_parts(test_set: DiscoveredTestSet) -> str | None:
    """Return "task" or "file" if the items are of several, else None."""
    counts = test_set.counts
    parts = (name for name in ("task", "file") if name in counts.groups)
    return next((name for name in parts if len({*counts.group(name).levels}) > 1), None)


def _describe_systems(test_set: DiscoveredTestSet) -> str:
    counts = test_set.counts
    sizes = f"{format_count(counts.n_systems, 'system')}, {format_count(counts.of_one.n_items, 'item')}"
    return f"{sizes}, read as {test_set.keys['format']}"


def _format_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def describe_survey(survey: FolderSurvey, baseline: str | None = None) -> Iterator[str]:
    """Yield lines that state the role of each file, what was guessed, and the line of the plan to change."""
    for test_set in survey.test_sets:
        yield f"test set {test_set.name}: {_describe_systems(test_set)}"
        for key in ("systems", "gold", "references", "documents"):
            if value := test_set.keys.get(key):
                yield f"  {key:12}{value if isinstance(value, str) else format_list(value, MAX_PATHS)}"
        yield f"  metrics     {', '.join(test_set.counts.suggested)}"
        if part := find_parts(test_set):
            yield f'  {f"{part}s":12}each by itself; to compare all items together, leave out the line by = "{part}"'
    if baseline is None:
        yield 'compared: all systems with each other; or write pairs = { baseline = "NAME" }'
    else:
        yield f'compared: all systems with the baseline {baseline}; with each other, write pairs = "all"'
    yield from (f"not read: {reason}" for reason in survey.unread[:MAX_PATHS])
    if survey.unread:
        yield "to compare them, add a [[test_set]] to the plan: options of compare are keys there"
    if survey.unused:
        yield f"not used: {format_list(survey.unused, MAX_PATHS)}"
