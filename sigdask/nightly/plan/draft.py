"""A plan in plain words of what was found in a folder: what is certain stands, what is a choice is a comment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from sigdask.nightly.plan.discover import DiscoveredTestSet, FolderSurvey
from sigdask.text import count_noun

MORE = {"BLEU": "chrF++, TER", "accuracy": "macro-f1, mcc", "AP": "nDCG@20, P@10", "f1": "f1[LABEL]"}
"""Metrics to what else is often asked for."""

PATHS = 4
"""Files that are named on the terminal."""


def text(found: FolderSurvey, name: str) -> str:
    """Return the text of a plan.

    Parameters
    ----------
    found : FolderSurvey
        The test sets.
    name : str
        Of the plan's file, without its ending.
    """
    first = _quoted(found.test_sets[0].counts.systems[0])
    sets = "\n".join(line for one in found.test_sets for line in _test_set(one))
    return HEAD.format(name=name, first=first) + sets + TAIL.format(name=name, first=first)


HEAD = """\
# What is compared, and how. `sigdask check {name}.toml` says what it costs, `sigdask run {name}.toml` runs it.
# Run it again whenever files have changed: what is counted already is kept beside this file.

# Every system against every other; or every other one against a baseline:
pairs = "all"
# pairs = {{ baseline = {first} }}

# Random exchanges of each comparison; p is exact instead where that is quick.
trials = 1048576

# A difference is called significant where its p is at most this.
alpha = 0.05

# How p is adjusted for many comparisons: by default max-t from three systems on.
# adjust = "holm"

"""

TAIL = """
[report]
# A page that needs nothing else.
html = "{name}-{{date}}.html"

# A gate: the run fails, with status 1, where a system is significantly worse than the baseline. Its level is that of
# so many false alarms a year, in as many runs.
# [gate]
# false_alarms_per_year = 4
# runs_per_year = 365
# rules = [{{ rule = "not-worse", baseline = {first} }}]
"""


def _test_set(one: DiscoveredTestSet) -> Iterator[str]:
    yield f"# {_systems(one)}."
    yield "[[test_set]]"
    yield f"name = {_quoted(one.name)}"
    if not isinstance(one.systems, dict):
        yield f"systems = {_value(one.systems)}"
    yield f"format = {_quoted(one.format)}"
    if one.missing is not None:
        yield f"missing = {_quoted(one.missing)}"
    if one.min_items is not None:
        yield f"min_items = {one.min_items}"
    if one.gold is not None:
        yield f"gold = {_quoted(one.gold)}"
    if one.references:
        yield f"references = {_value(one.references)}"
    if one.documents is not None:
        yield f"documents = {_quoted(one.documents)}"
        yield "# Documents are exchanged whole, as segments are correlated within them."
        yield 'unit = "document"'
    elif groups := [*one.counts.groups]:
        yield "# Exchange groups whole where their items are correlated:"
        yield from (f"# unit = {_quoted(name)}" for name in groups)
    metrics = one.counts.suggested
    if more := MORE.get(metrics[0] if metrics else ""):
        yield f"# `sigdask metrics` lists others, such as {more}."
    yield f"metrics = {_value(metrics)}"
    if isinstance(one.systems, dict):
        yield ""
        yield "# Files of several runs of one system are its replicates: NAME = [FILE, FILE]."
        yield "[test_set.systems]"
        yield from (f"{_quoted(name)} = {_quoted(path)}" for name, path in one.systems.items())
    yield ""


def _systems(one: DiscoveredTestSet) -> str:
    counts = one.counts
    return (
        f"{count_noun(counts.n_systems, 'system')}, {count_noun(counts.of_one.n_items, 'item')}, read as {one.format}"
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _value(value: str | Sequence[str]) -> str:
    return _quoted(value) if isinstance(value, str) else f"[{', '.join(map(_quoted, value))}]"


def told(found: FolderSurvey) -> Iterator[str]:
    """Say what was taken for what."""
    for one in found.test_sets:
        yield f"test set {one.name}: {_systems(one)}"
        yield f"  systems     {_shown(one)} ({one.n_files:,} file{'' if one.n_files == 1 else 's'})"
        if one.gold is not None:
            yield f"  gold        {one.gold}"
        yield from (f"  reference   {path}" for path in one.references)
        if one.documents is not None:
            yield f"  documents   {one.documents}, exchanged whole"
        yield f"  metrics     {', '.join(one.counts.suggested)}"
        if isinstance(one.systems, dict):
            yield "  note        a system each; are some of them runs of one system, write NAME = [FILE, FILE]"
    yield from (f"not read: {why}" for why in found.unread[:PATHS])
    if found.unused:
        yield f"not used: {_few(found.unused)}"


def _shown(one: DiscoveredTestSet) -> str:
    return one.systems if isinstance(one.systems, str) else _few([*one.systems])


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - PATHS:,} more" if len(names) > PATHS else ""
    return ", ".join(names[:PATHS]) + more
