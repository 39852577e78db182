"""`sigdask init`: writes a plan for the files at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sigdask.cli import declare
from sigdask.cli.streams import print_line
from sigdask.cli.write import check_writable
from sigdask.errors import InputError
from sigdask.nightly.plan.init import describe_survey, render_draft, survey_files
from sigdask.options import ReadingOptions
from sigdask.report.files import write_parts
from sigdask.text import format_list

MAX_SYSTEMS = 10
"""Maximum number of systems that an error names."""


@declare.command(
    click.argument("where", nargs=-1, metavar="[FOLDER|FILES...]"),
    declare.GOLD,
    declare.FORMAT,
    *declare.options(ReadingOptions, "documents", "missing"),
    declare.option("-o,--output PLAN.toml", "Plan file to write.", default="night.toml"),
    declare.option("--baseline NAME", "Compare all systems with this one, not with each other."),
    declare.option("--force", "Overwrite an existing plan."),
)
def command(where: tuple[str, ...], baseline: str | None, **options: Any) -> None:
    """Write a plan for the files of a folder or for the files of systems.

    sigdask reads the files and prints how it interprets each. If something is unclear, it asks you to name it. The plan
    passes `sigdask check` and has comments for you to continue.
    """
    output = options["output"]
    check_writable(output, "-o")
    plan = Path(output)
    if plan.suffix != ".toml":
        raise InputError(f"-o {plan}: expected a name that ends in .toml")
    if plan.exists() and not options["force"]:
        raise InputError(f"-o {plan}: the file exists; --force overwrites it, -o NAME.toml writes another file")
    home = plan.absolute().parent
    gold, documents = (options[name] and _find_existing(options[name]) for name in ("gold", "documents"))
    targets = [_find_existing(path) for path in where or (".",)]
    test_sets, unused = survey_files(
        targets, home, gold=gold, documents=documents, format_=options["format_"], missing=options["missing"]
    )
    for test_set in test_sets if baseline is not None else ():
        if baseline not in test_set.counts.systems:
            systems = format_list([*test_set.counts.systems], MAX_SYSTEMS)
            raise InputError(
                f"--baseline {baseline}: not among the systems of test set {test_set.keys['name']}: {systems}"
            )
    write_parts(plan, [render_draft(test_sets, plan.stem, baseline)])
    for line in describe_survey(test_sets, unused, baseline):
        print_line(line, hang=14)
    print_line(f"wrote {plan}; next: sigdask check {plan}, then sigdask run {plan}")


def _find_existing(text: str) -> Path:
    if not Path(text).exists():
        raise InputError(f"{text}: no such file or folder")
    return Path(text).absolute()
