"""`sigdask init`: a plan of the files at hand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from sigdask.cli.declared_options import option, whole
from sigdask.cli.output.write import say
from sigdask.errors import InputError
from sigdask.text import printable


@click.command()
@click.argument("where", nargs=-1, metavar="[FOLDER|FILES...]")
@click.option("--gold", "--qrels", "--ref", "gold", metavar="FILE", help="File of what is right.")
@click.option("--documents", metavar="FILE", help="File of the document of each segment.")
@click.option("--format", "format_", default="auto", show_default=True, help="See `sigdask formats`.")
@option("--missing")
@option("--min-items", type=whole, metavar="N")
@click.option("-o", "--output", default="night.toml", show_default=True, metavar="PLAN.toml", help="What to write.")
@click.option("--force", is_flag=True, help="Write over a plan that is there.")
def init(
    where: tuple[str, ...],
    gold: str | None,
    documents: str | None,
    format_: str,
    missing: Any,
    min_items: int | None,
    output: str,
    *,
    force: bool,
) -> None:
    """Write a plan of the files at hand: a folder's, or those of systems.

    It looks at what lies there, reads it to be sure, and says what it took for what; what it cannot tell it asks for.
    The plan passes `sigdask check`, and is commented for whoever goes on with it.
    """
    from sigdask.nightly.plan import draft
    from sigdask.nightly.plan.discover import Hints, survey

    plan = _target(output, force=force)
    home = plan.absolute().parent
    given = Hints(_existing(gold, "--gold"), _existing(documents, "--documents"), format_, missing, min_items)
    found = survey([_there(one) for one in where or (".",)], home, given)
    _write(plan, draft.text(found, plan.stem))
    for line in draft.told(found):
        say(printable(line), hang=14)
    say(printable(f"wrote {plan}; next: sigdask check {plan}, then sigdask run {plan}"))


def _target(output: str, *, force: bool) -> Path:
    """Return the file to write; never one that is there, unless told so."""
    from sigdask.cli.output.write import check_writable

    check_writable(output, "-o")
    plan = Path(output)
    if plan.suffix != ".toml":
        raise InputError(f"-o {plan}: expected a name that ends in .toml")
    if plan.exists() and not force:
        raise InputError(f"-o {plan}: is there already; --force writes over it, -o NAME.toml writes another one")
    return plan


def _existing(text: str | None, option: str) -> Path | None:
    if text is not None and not Path(text).is_file():
        raise InputError(f"{option} {text}: no such file")
    return None if text is None else Path(text).absolute()


def _there(text: str) -> Path:
    if not Path(text).exists():
        raise InputError(f"{text}: no such file or folder")
    return Path(text).absolute()


def _write(plan: Path, text: str) -> None:
    """Write a plan where the loader takes it."""
    from sigdask.nightly.plan import load_plan
    from sigdask.report.files import write_whole

    trial = plan.with_name(f".{plan.stem}.{os.getpid()}.toml")
    try:
        write_whole(trial, text)
        load_plan(trial)
        trial.replace(plan)
    finally:
        trial.unlink(missing_ok=True)
