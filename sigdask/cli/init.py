"""`sigdask init`: a plan of the files at hand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sigdask.cli.output.say import say
from sigdask.cli.output.write import check_writable
from sigdask.errors import InputError
from sigdask.nightly.plan import draft, load_plan
from sigdask.nightly.plan.discover import Hints, survey
from sigdask.report.files import write_whole
from sigdask.text import printable


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
    """Find the test sets in a folder or among files, and write a plan of them."""
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
    trial = plan.with_name(f".{plan.stem}.{os.getpid()}.toml")
    try:
        write_whole(trial, text)
        load_plan(trial)
        trial.replace(plan)
    finally:
        trial.unlink(missing_ok=True)
