"""What the reference says of commands, keys, metrics and names, made from the program as Markdown.

A page has a comment such as `<!-- from code: commands -->` where `filled` puts what it makes. So nothing of it is
copied by hand, and the page can be no older than the program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from inspect import cleandoc, getdoc
from typing import Any

import click
from numpydoc.docscrape import NumpyDocString

import sigdask
from sigdask import api, errors
from sigdask.cli import commands as all_commands
from sigdask.formats import FORMATS
from sigdask.metrics import METRICS
from sigdask.nightly.plan import build_schema
from sigdask.report import plots
from sigdask.results.comparisons import get_version
from sigdask.results.record import Result
from sigdask.results.schema import read_schema as results_schema

PLACE = re.compile(r"<!-- from code: ([a-z-]+) -->")


def filled(text: str) -> str:
    """Return a page with all its places filled.

    Examples
    --------
    >>> "| `mean` | mean of item scores |" in filled("<!-- from code: metrics -->")
    True
    """
    return PLACE.sub(lambda place: MAKERS[place[1]](), text)


def version() -> str:
    """Return that of the program."""
    return get_version().split()[-1].rstrip(",")


# commands


def commands() -> str:
    """Return every command with its options, in the groups that its help shows."""
    parts = []
    for name, command, context in every_command():
        parts += [f"## {name}", prose(command.help or ""), fenced(command.get_usage(context).removeprefix("Usage: "))]
        for title, options in option_groups(command, context):
            parts += [f"### {title}" if title else "", table(("option", "meaning"), options)]
        if examples := getattr(command, "examples", ()):
            parts += ["### Examples", fenced("\n".join(examples))]
    return "\n\n".join(filter(None, parts))


def every_command() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield the program itself and each of its commands, also those of groups, as they are typed."""
    waiting: list[tuple[str, click.Command, click.Context | None]] = [("sigdask", all_commands, None)]
    while waiting:
        name, command, parent = waiting.pop(0)
        context = command.context_class(command, parent, name.split()[-1])
        context.terminal_width = 100
        yield name, command, context
        of_group = command.commands if isinstance(command, click.Group) else {}
        waiting = [(f"{name} {own}", one, context) for own, one in of_group.items()] + waiting


def option_groups(command: click.Command, context: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield title, options and what each is; without a title where help has no groups."""
    said = [param.get_help_record(context) for param in command.get_params(context)]
    records = [(code(names), prose(text)) for names, text in filter(None, said)]
    for title, n in getattr(command, "groups", {}).items():
        yield title, records[:n]
        records = records[n:]
    yield "Help" if hasattr(command, "groups") else "", records


# plans


def plan_keys() -> str:
    """Return every table of a plan with its keys, types, bounds and defaults."""
    whole = build_schema()
    tables = {"A plan": whole, **{heading(name): part for name, part in whole["$defs"].items() if "properties" in part}}
    parts = []
    for title, part in tables.items():
        needed = part.get("required", ())
        rows = [
            (f"`{key}`" + (" (needed)" if key in needed else ""), typed(said), default(said), prose(described(said)))
            for key, said in part["properties"].items()
        ]
        parts += [
            f"## {title}",
            prose(part.get("description", "")),
            table(("key", "value", "default", "meaning"), rows),
        ]
    return "\n\n".join(parts)


TABLES = {
    "TestSetKeys": "[[test_set]]", "RankingsKeys": "[[rankings]]", "IndependenceKeys": "[[independence]]",
    "ReportKeys": "[report]", "GateKeys": "[gate]", "NotWorseKeys": 'gate.rules: rule = "not-worse"',
    "NonInferiorKeys": 'gate.rules: rule = "non-inferior"', "EquivalentKeys": 'gate.rules: rule = "equivalent"',
    "BesagCliffordKeys": 'stopping: rule = "besag-clifford"',
    "ConfidenceSequenceKeys": 'stopping: rule = "confidence-sequence"', "BaselineKeys": "pairs: a table",
}  # fmt: skip
"""As plans write them."""


def heading(name: str) -> str:
    """Return how a plan writes what the schema calls by the name of a class."""
    return TABLES.get(name, name)


def typed(said: Mapping[str, Any], keyed: str = "table") -> str:
    """Return what a key may be, in words; `keyed` is the word for what has keys of its own.

    Examples
    --------
    >>> typed({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})
    'number, above 0, below 1'
    >>> typed({"anyOf": [{"const": "all", "type": "string"}, {"type": "array", "items": {"type": "string"}}]})
    '`"all"`, or list of text'
    >>> typed({"anyOf": [{"$ref": "#/$defs/exact"}, {"type": "null"}]}, "object")
    'object `exact`, or null'
    """
    if several := said.get("anyOf", said.get("oneOf")):
        return ", or ".join(dict.fromkeys(typed(one, keyed) for one in several))
    if "const" in said:
        return code(json.dumps(said["const"]))
    if "enum" in said:
        return ", ".join(code(json.dumps(word)) for word in said["enum"])
    if "$ref" in said:
        return f"{keyed} {code(heading(said['$ref'].rpartition('/')[2]))}"
    types = said.get("type", "object")
    kind = " or ".join(KINDS.get(name, keyed) for name in ([types] if isinstance(types, str) else types))
    if kind == "list":
        parts = [said["items"]] if isinstance(said.get("items"), dict) else said.get("prefixItems", [])[:1]
        return f"list of {typed(parts[0], keyed)}" if parts else kind
    bounds = [f"{word} {said[key]:,}" for key, word in BOUNDS.items() if key in said]
    return ", ".join([kind, *bounds])


KINDS = {
    "string": "text", "integer": "whole number", "number": "number", "boolean": "`true`, `false`", "array": "list",
    "null": "null",
}  # fmt: skip
BOUNDS = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above", "exclusiveMaximum": "below"}


def default(said: Mapping[str, Any]) -> str:
    """Return the default as a plan writes it; none where there is none, or where it is a table of its own."""
    value = said.get("default")
    if value is None or isinstance(value, dict) or value == []:
        return ""
    return code(
        str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)
    )


def described(said: Mapping[str, Any]) -> str:
    """Return what the schema says of a key."""
    return str(said.get("description", ""))


# lists


def metrics() -> str:
    """Return the metrics by name."""
    return table(("metric", "meaning"), [(code(name), prose(text)) for name, (_, text) in METRICS.items()])


def formats() -> str:
    """Return the formats by name, each with a link to what is told of it."""
    return table(("format", "what it holds"), [(code(name), prose(text)) for name, (_, text) in FORMATS.items()])


def statuses() -> str:
    """Return the errors that end a command, by exit status."""
    kinds: dict[int, list[str]] = {}
    for one in vars(errors).values():
        if isinstance(one, type) and issubclass(one, errors.SigdaskError) and one is not errors.SigdaskError:
            kinds.setdefault(one.exit_status, []).append(f"`{one.__name__}`: {prose(summary(one))}")
    rows = [(f"{status}", "<br>".join(said)) for status, said in sorted(kinds.items())]
    return table(("status", "errors, as Python raises them"), rows)


# results


def json_keys() -> str:
    """Return the keys of the JSON of results, object by object, as its schema has them."""
    whole = json.loads(results_schema())
    said = {"result": attributes(Result), "": {}}
    parts = []
    for name, part in {"": whole, **whole["$defs"]}.items():
        about = said.get(name, {})
        rows = [
            (code(key), typed(one, "object"), prose(described(one) or about.get(key, "")))
            for key, one in part.get("properties", {}).items()
        ]
        parts += [f"### {name}" if name else "", prose(described(part)), table(("key", "value", "meaning"), rows)]
    return "\n\n".join(filter(None, parts))


def attributes(of: type) -> dict[str, str]:
    """Return what the documentation of a class says of its attributes and properties, by name."""
    found = {name: summary(one) for name, one in vars(of).items() if isinstance(one, property)}
    for part in NumpyDocString(getdoc(of) or "")["Attributes"]:
        for name in part.name.split(", "):
            found[name] = " ".join(part.desc)
    return found


# Python


def python() -> str:
    """Return every public name with its documentation."""
    return "\n\n".join(documented("sigdask", sigdask.__all__))


def python_rankings() -> str:
    """Return the public names of rankings."""
    return "\n\n".join(documented("sigdask.api", api.RANKING_NAMES))


def python_figures() -> str:
    """Return the public names of figures."""
    return "\n\n".join(documented("sigdask.report.plots", [n for n in plots.__all__ if callable(getattr(plots, n))]))


def documented(module: str, names: Sequence[str]) -> Iterator[str]:
    """Yield a section for each name: functions first, then classes with what they offer."""
    found = {name: getattr(import_module(module), name) for name in names}
    for name in sorted(found, key=lambda name: (isinstance(found[name], type), name.casefold())):
        kind = "autofunction" if not isinstance(found[name], type) else "autoclass"
        error = isinstance(found[name], type) and issubclass(found[name], Exception)
        members = "\n   :members:" if kind == "autoclass" and not error else ""
        yield f"### {name}\n\n```{{eval-rst}}\n.. {kind}:: {module}.{name}{members}\n```"


def summary(of: Any) -> str:
    """Return the first sentence of what a thing says of itself."""
    return " ".join((getdoc(of) or "").partition("\n\n")[0].split())


# Markdown


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a mark that would part cells is escaped."""
    cells = [[cell.replace("|", r"\|").replace("\n", " ") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [[*head], ["---"] * len(head), *cells])


def code(text: str) -> str:
    """Return a text as code."""
    return f"`{text}`"


def prose(text: str) -> str:
    r"""Return a text in which no mark is taken for markup; names between backticks stay code.

    Examples
    --------
    >>> print(prose("see `a*b`: f[LABEL], F_beta <x>"))
    see `a*b`: f\[LABEL\], F\_beta \<x>
    """
    parts = cleandoc(text).replace("\n\n", "\0").replace("\n", " ").replace("\0", "\n\n").split("`")
    return "`".join(part if k % 2 else re.sub(r"([\\*_\[\]<$~])", r"\\\1", part) for k, part in enumerate(parts))


def fenced(text: str) -> str:
    """Return a text as it is typed."""
    return f"```text\n{text}\n```"


MAKERS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "plan-keys": plan_keys,
    "metrics": metrics,
    "formats": formats,
    "statuses": statuses,
    "json-keys": json_keys,
    "python": python,
    "python-rankings": python_rankings,
    "python-figures": python_figures,
}
"""Of a place to what fills it."""
