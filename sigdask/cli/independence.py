"""`sigdask independence`: labellings of one test set beside another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from sigdask.cli.compare import read_systems
from sigdask.cli.declared_options import TABLES, grouped, option, whole
from sigdask.cli.output.progress import progress
from sigdask.cli.output.write import LOG, be_quiet, check_outputs, note, say, width, write_json, write_tables
from sigdask.errors import InputError, UnfinishedError
from sigdask.options import PERMUTING
from sigdask.text import count_noun

if TYPE_CHECKING:
    from sigdask.counts import Counts
    from sigdask.options import HowPermuted

permuting: Callable[..., Any] = partial(option, of=PERMUTING)

GROUPS = {
    "Files": (
        click.option("--gold", metavar="FILE", help="What every FILE is held against, instead of the last."),
        click.option("--format", "format_", default="labels", show_default=True, help="See `sigdask formats`."),
        option("--id", "id_column", metavar="COLUMN"),
        option("--gold-column", metavar="COLUMN"),
        option("--prediction-column", metavar="COLUMN"),
        option("--map", "label_map", multiple=True, metavar="TO=FROM,FROM", more="May be repeated."),
        option("--ignore", multiple=True, metavar="COLUMN", more="May be repeated."),
        option("--align"),
        option("--groups", "group_file", metavar="FILE", more="Permute within its groups by --within."),
        option("--most-unpacked", type=whole, metavar="BYTES"),
    ),
    "The test": (
        click.option("-m", "--metric", "metrics", multiple=True, metavar="M", default=("accuracy",), show_default=True,
                     help="A score of labels: accuracy, kappa, mcc, precision[LABEL], macro-f1. May be repeated."),
        click.option("--within", metavar="COLUMN", help="Permute labels within each value of a column alone."),
        option("--alternative", of=PERMUTING),
        option("--method", of=PERMUTING),
        option("--adjust", of=PERMUTING),
        option("--trials", of=PERMUTING, type=whole, metavar="N"),
        option("--seed", of=PERMUTING, type=int),
        option("--alpha", of=PERMUTING, type=float),
        click.option("--no-second-run", is_flag=True, help="Leave out the cross-check by a second run."),
        click.option("--name", default="", metavar="TESTSET", help="The test set's name, of its stream's address."),
    ),
    "Where to run": (
        option("--cluster"),
        option("--workers", of=PERMUTING, type=click.IntRange(min=1), metavar="N"),
    ),
    "Output": (
        click.option("--json", "json_file", metavar="FILE|-", help="Write the results as JSON."),
        *TABLES,
        click.option("-q", "--quiet", is_flag=True, help="Say nothing beside results, warnings and errors."),
    ),
}  # fmt: skip

EXAMPLES = (
    "sigdask independence expert.txt contents.txt",
    "sigdask independence annotator1.csv annotator2.csv -m kappa -m 'f1[spam]' --alternative two-sided",
    "sigdask independence model.csv --gold gold.csv -m macro-f1 --within document",
)

UNUSED = {
    "unit": (), "by": None, "system_column": None, "score_column": None, "decimal": None, "missing": None,
    "min_items": None, "references": (), "documents": None,
}  # fmt: skip
"""What is said of files by other commands."""


@grouped(GROUPS, EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="[NAME=]FILE...")
def independence(**options: Any) -> None:
    """Test whether one labelling of items is independent of another.

    The labels of the last FILE are permuted over the items, and each other FILE is scored against them: by precision
    as the one that gives labels, by recall against those of the last. A single FILE is a table with a column gold.
    """
    from sigdask.api import independence_all
    from sigdask.report.terminal.independence import render

    files = {name: options[f"{name}_file"] for name in ("json", "markdown", "latex")}
    check_outputs(**files)
    how = _how(options)
    if options["quiet"]:
        be_quiet()
    with progress(quiet=options["quiet"]) as steps:
        counts, reference = _read(options, steps)
        how["progress"] = steps
        try:
            found = independence_all(
                counts, metrics=options["metrics"], reference=reference, within=options["within"], **how
            )
        except KeyboardInterrupt:
            raise UnfinishedError("interrupted; nothing was written") from None
    for warning in found.warnings:
        LOG.warning(warning)
    if "-" not in files.values():
        say(render(found, width=width()))
    write_json(files["json"], found.json_parts)
    write_tables(files, found.paper_tables)


def _how(options: dict[str, Any]) -> HowPermuted:
    """Return what is asked of the test; refused before anything is read where it cannot be."""
    from sigdask.execution import clusters
    from sigdask.options import HowPermuted, filled_permuted

    clusters.check(options["cluster"])
    given = {name: options[name] for name in PERMUTING if options.get(name) is not None}
    return filled_permuted(HowPermuted(**given, second_run=not options["no_second_run"]))  # type: ignore[typeddict-item]


def _read(options: dict[str, Any], steps: Any) -> tuple[Counts, str]:
    """Read the labellings; return them and what they are held against is called."""
    from sigdask.formats import parse_source

    files, gold = options["files"], options["gold"]
    reference = options["gold_column"] or "gold"
    if gold is not None:
        reference = parse_source(gold).system
    elif len(files) > 1:
        *files, last = files
        source = parse_source(last)
        gold, reference = str(source.path), source.system
    if gold is not None and options["gold_column"] is None and not files:
        raise InputError("no labelling given beside --gold; name a file")
    within = () if options["within"] is None else (options["within"],)
    counts, format_ = read_systems({**UNUSED, **options, "systems": files, "gold": gold, "unit": within}, steps)
    note(f"read as {format_}: {count_noun(counts.n_systems, 'labelling')}, {count_noun(counts.n_items, 'item')}")
    return counts, reference
