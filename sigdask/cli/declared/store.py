"""`sigdask store check` and `sigdask store repair`: their options and help."""

from __future__ import annotations

from typing import Any

import click

from sigdask.cli.declared.options import run_by


@click.group()
def store() -> None:
    """Look at a store, and mend one that is damaged."""


@store.command()
@click.argument("where", metavar="PLAN.toml|STORE")
@click.option("--store", metavar="FILE|URL", help="Instead of the plan's.")
@click.option("--all", "everything", is_flag=True, help="Show every damaged row.")
@run_by("sigdask.cli.store:check")
def check(**options: Any) -> None:
    """Look at every row: its checksum, and whether trials can have given it. Nothing is changed."""


@store.command()
@click.argument("where", metavar="PLAN.toml|STORE")
@click.option("--store", metavar="FILE|URL", help="Instead of the plan's.")
@click.option("--all", "everything", is_flag=True, help="Show every damaged row.")
@run_by("sigdask.cli.store:repair")
def repair(**options: Any) -> None:
    """Take out what is damaged, so that the next run counts it again; all else stays."""
