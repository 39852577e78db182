"""`sigdask list`: lists metrics, file formats and example data, and copies an example."""

from __future__ import annotations

from pathlib import Path

import click

from sigdask.cli import declare
from sigdask.cli.streams import print_line
from sigdask.errors import InputError
from sigdask.examples import EXAMPLES, copy_example
from sigdask.formats import FORMATS, TABLE
from sigdask.formats.registry import add_installed_formats
from sigdask.metrics import METRICS, add_installed_metrics

NAME_COLUMNS = 19
"""Width of the column of names."""


@declare.command(
    click.argument("what", metavar="metrics|formats|examples", type=click.Choice(["metrics", "formats", "examples"])),
    click.argument("name", required=False),
    declare.option("--to DIR", "Folder for the files of the example.  [default: ./NAME]", dest="folder"),
)
def command(what: str, name: str | None, folder: str | None) -> None:
    """List metrics, file formats or example data, or copy an example.

    `sigdask list examples NAME --to DIR` copies the files of an example. The tutorials start from these files.
    """
    if name is not None or folder is not None:
        _copy_example(what, name, folder)
        return
    add_installed_formats()
    add_installed_metrics()
    tables = {
        "metrics": {metric: text for metric, (_, text) in METRICS.items()}
        | {"MODULE:NAME": "your own: a @sigdask.metric of summed counts, or any f(outputs, gold) -> float"},
        "formats": {TABLE: "any of the tables below, recognised by its columns; options sheet, decimal"}
        | {format_: declared.help for format_, declared in FORMATS.items()},
        "examples": EXAMPLES,
    }
    for entry, text in tables[what].items():
        print_line(f"{entry:{NAME_COLUMNS}}{text}", hang=NAME_COLUMNS)


def _copy_example(what: str, name: str | None, folder: str | None) -> None:
    if what != "examples" or name is None:
        raise InputError("list: only an example has a name and a folder: sigdask list examples NAME --to DIR")
    target = Path(folder or name)
    tops = {Path(path).parts[0]: len(Path(path).parts) > 1 for path in copy_example(name, target)}
    print_line(f"{target}: {', '.join(f'{top}/' if is_folder else top for top, is_folder in tops.items())}")
