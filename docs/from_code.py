"""Generate the reference of commands, keys, metrics and names from the program, as Markdown.

A page has a comment such as `<!-- from code: commands -->` where `fill_places` puts what it makes. So nothing of it is
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
from sigdask import errors
from sigdask.cli import commands as all_commands
from sigdask.formats import FORMATS
from sigdask.metrics import METRICS
from sigdask.nightly.plan import build_schema
from sigdask.report import plots
from sigdask.results.columns import read_schema as results_schema
from sigdask.results.comparisons import get_version
from sigdask.results.record import Result

PLACE = re.compile(r"^<!-- from code: ([a-z-]+) -->$", re.MULTILINE)


def fill_places(text: str) -> str:
    """Return a page with generated text at all its places.

    Examples
    --------
    >>> "| `mean` | mean of item scores |" in fill_places("<!-- from code: metrics -->")
    True
    """
    return PLACE.sub(lambda match: MAKERS[match[1]](), text)


def get_release() -> str:
    """Return the program's version number."""
    return get_version().split()[-1].rstrip(",")


# commands


def render_commands() -> str:
    """Render every command with its options, in the groups of its help."""
    sections = []
    for name, command, context in iter_commands():
        sections += [
            f"## {name}",
            escape_markup(command.help or ""),
            format_block(command.get_usage(context).removeprefix("Usage: ")),
        ]
        for title, options in iter_option_groups(command, context):
            sections += [f"### {title}" if title else "", format_table(("option", "meaning"), options)]
        if examples := getattr(command, "examples", ()):
            sections += ["### Examples", format_block("\n".join(examples))]
    return "\n\n".join(filter(None, sections))


def iter_commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield the program, its commands and subcommands, each with its full name and context."""
    waiting: list[tuple[str, click.Command, click.Context | None]] = [("sigdask", all_commands, None)]
    while waiting:
        name, command, parent = waiting.pop(0)
        context = command.context_class(command, parent, name.split()[-1], **command.context_settings)
        context.terminal_width = 100
        yield name, command, context
        names = command.list_commands(context) if isinstance(command, click.Group) else ()
        subcommands = {subname: command.get_command(context, subname) for subname in names}
        waiting = [(f"{name} {subname}", subcommand, context) for subname, subcommand in subcommands.items()] + waiting


def iter_option_groups(command: click.Command, context: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the title and options of each group; the title is empty if help has no groups."""
    help_records = [
        param.get_help_record(context) for param in command.get_params(context) if isinstance(param, click.Option)
    ]
    records = [(format_code(names), escape_markup(text)) for names, text in filter(None, help_records)]
    for title, n in getattr(command, "groups", {}).items():
        yield title, records[:n]
        records = records[n:]
    yield "Help" if getattr(command, "groups", {}) else "", records


# plans


def render_plan_keys() -> str:
    """Render every table of a plan with its keys, types, bounds and defaults."""
    schema = build_schema()
    tables = {
        "A plan": schema,
        **{get_heading(name): definition for name, definition in schema["$defs"].items() if "properties" in definition},
    }
    sections = []
    for title, definition in tables.items():
        required = definition.get("required", ())
        rows = [
            (
                f"`{key}`" + (" (needed)" if key in required else ""),
                describe_type(key_schema),
                format_default(key_schema),
                escape_markup(get_description(key_schema)),
            )
            for key, key_schema in definition["properties"].items()
        ]
        sections += [
            f"## {title}",
            escape_markup(definition.get("description", "")),
            format_table(("key", "value", "default", "meaning"), rows),
        ]
    return "\n\n".join(sections)


HEADINGS = {
    "TestSetKeys": "[[test_set]]",
    "ReportFiles": "[report]", "Gate": "[gate]", "NotWorseKeys": 'gate.rules: rule = "not-worse"',
    "NonInferiorKeys": 'gate.rules: rule = "non-inferior"',
    "BaselineKeys": "pairs: a table",
}  # fmt: skip
"""As plans write them."""


def get_heading(name: str) -> str:
    """Return the name of a table in plans for a class name of the schema."""
    return HEADINGS.get(name, name)


def describe_type(schema: Mapping[str, Any], keyed: str = "table") -> str:
    """Describe the type of a key in words; `keyed` is the word for something with keys of its own.

    Examples
    --------
    >>> describe_type({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})
    'number, above 0, below 1'
    >>> describe_type({"anyOf": [{"const": "all", "type": "string"}, {"type": "array", "items": {"type": "string"}}]})
    '`"all"`, or list of texts'
    >>> describe_type({"anyOf": [{"$ref": "#/$defs/exact"}, {"type": "null"}]}, "object")
    'object `exact`, or null'
    """
    if alternatives := schema.get("anyOf", schema.get("oneOf")):
        return ", or ".join(dict.fromkeys(describe_type(alternative, keyed) for alternative in alternatives))
    if "const" in schema:
        return format_code(json.dumps(schema["const"]))
    if "enum" in schema:
        return ", ".join(format_code(json.dumps(word)) for word in schema["enum"])
    if "$ref" in schema:
        return f"{keyed} {format_code(get_heading(schema['$ref'].rpartition('/')[2]))}"
    types = schema.get("type", "object")
    kind = " or ".join(TYPE_WORDS.get(name, keyed) for name in ([types] if isinstance(types, str) else types))
    if kind == "list":
        items = [schema["items"]] if isinstance(schema.get("items"), dict) else schema.get("prefixItems", [])[:1]
        return f"list of {pluralize(describe_type(items[0], keyed))}" if items else kind
    bounds = [f"{word} {schema[key]:,}" for key, word in BOUNDS.items() if key in schema]
    return ", ".join([kind, *bounds])


def pluralize(description: str) -> str:
    """Return a description of a type for several of it.

    Examples
    --------
    >>> pluralize("whole number, at least 1"), pluralize("table `[gate]`"), pluralize('`"svg"`, `"pdf"`')
    ('whole numbers, at least 1', 'tables `[gate]`', '`"svg"`, `"pdf"`')
    """
    return re.sub(r"^(text|whole number|number|table|object|list)\b|, or (text|table|object)\b", r"\g<0>s", description)


TYPE_WORDS = {
    "string": "text", "integer": "whole number", "number": "number", "boolean": "`true`, `false`", "array": "list",
    "null": "null",
}  # fmt: skip
BOUNDS = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above", "exclusiveMaximum": "below"}


def format_default(schema: Mapping[str, Any]) -> str:
    """Format the default as plans write it; return "" if there is none or it is a table or an empty list."""
    value = schema.get("default")
    if value is None or isinstance(value, dict) or value == []:
        return ""
    return format_code(
        str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)
    )


def get_description(schema: Mapping[str, Any]) -> str:
    """Return the description of a key in its schema."""
    return str(schema.get("description", ""))


# lists


def render_metrics() -> str:
    """Render the table of metrics."""
    return format_table(
        ("metric", "meaning"), [(format_code(name), escape_markup(text)) for name, (_, text) in METRICS.items()]
    )


def render_formats() -> str:
    """Render the table of formats."""
    return format_table(
        ("format", "what it holds"),
        [(format_code(name), escape_markup(declared.help)) for name, declared in FORMATS.items()],
    )


def render_statuses() -> str:
    """Render the errors that end a command, by exit status."""
    kinds: dict[int, list[str]] = {}
    for error in vars(errors).values():
        if isinstance(error, type) and issubclass(error, errors.SigdaskError) and error is not errors.SigdaskError:
            kinds.setdefault(error.exit_status, []).append(f"`{error.__name__}`: {escape_markup(get_summary(error))}")
    rows = [(f"{status}", "<br>".join(descriptions)) for status, descriptions in sorted(kinds.items())]
    return format_table(("status", "errors, as Python raises them"), rows)


# results


def render_json_keys() -> str:
    """Render the keys of the JSON of results, object by object, from its schema."""
    schema = json.loads(results_schema())
    summaries_by_name = {"result": read_attributes(Result), "": {}}
    sections = []
    for name, definition in {"": schema, **schema["$defs"]}.items():
        summaries = summaries_by_name.get(name, {})
        rows = [
            (
                format_code(key),
                describe_type(key_schema, "object"),
                escape_markup(get_description(key_schema) or summaries.get(key, "")),
            )
            for key, key_schema in definition.get("properties", {}).items()
        ]
        sections += [
            f"### {name}" if name else "",
            escape_markup(get_description(definition)),
            format_table(("key", "value", "meaning"), rows),
        ]
    return "\n\n".join(filter(None, sections))


def read_attributes(cls: type) -> dict[str, str]:
    """Return the documentation of a class's attributes and properties, by name."""
    summaries = {name: get_summary(member) for name, member in vars(cls).items() if isinstance(member, property)}
    for entry in NumpyDocString(getdoc(cls) or "")["Attributes"]:
        for name in entry.name.split(", "):
            summaries[name] = " ".join(entry.desc)
    return summaries


# Python


def render_python() -> str:
    """Render every public name with its documentation."""
    return "\n\n".join(iter_sections("sigdask", sigdask.__all__))


def render_python_figures() -> str:
    """Render the public names for figures."""
    return "\n\n".join(iter_sections("sigdask.report.plots", [n for n in plots.__all__ if callable(getattr(plots, n))]))


def iter_sections(module: str, names: Sequence[str]) -> Iterator[str]:
    """Yield a section for each name, functions before classes."""
    objects = {name: getattr(import_module(module), name) for name in names}
    for name in sorted(objects, key=lambda name: (isinstance(objects[name], type), name.casefold())):
        kind = "autofunction" if not isinstance(objects[name], type) else "autoclass"
        error = isinstance(objects[name], type) and issubclass(objects[name], Exception)
        members = "\n   :members:" if kind == "autoclass" and not error else ""
        yield f"### {name}\n\n```{{eval-rst}}\n.. {kind}:: {module}.{name}{members}\n```"


def get_summary(documented_object: Any) -> str:
    """Return the first paragraph of an object's docstring, as one line."""
    return " ".join((getdoc(documented_object) or "").partition("\n\n")[0].split())


# Markdown


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table; vertical bars in cells are escaped."""
    cells = [[cell.replace("|", r"\|").replace("\n", " ") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [[*head], ["---"] * len(head), *cells])


def format_code(text: str) -> str:
    """Format a text as inline code."""
    return f"`{text}`"


def escape_markup(text: str) -> str:
    r"""Escape Markdown markup in a text; names between backticks stay code.

    Examples
    --------
    >>> print(escape_markup("see `a*b`: f[LABEL], F_beta <x>"))
    see `a*b`: f\[LABEL\], F\_beta \<x>
    """
    pieces = cleandoc(text).replace("\n\n", "\0").replace("\n", " ").replace("\0", "\n\n").split("`")
    return "`".join(piece if k % 2 else re.sub(r"([\\*_\[\]<$~])", r"\\\1", piece) for k, piece in enumerate(pieces))


def format_block(text: str) -> str:
    """Format a text as a fenced block."""
    return f"```text\n{text}\n```"


MAKERS: dict[str, Callable[[], str]] = {
    "commands": render_commands,
    "plan-keys": render_plan_keys,
    "metrics": render_metrics,
    "formats": render_formats,
    "statuses": render_statuses,
    "json-keys": render_json_keys,
    "python": render_python,
    "python-figures": render_python_figures,
}
"""Of a place to what fills it."""
