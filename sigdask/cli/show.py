"""`sigdask show`: presents stored results as text, tables, pages and figures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sigdask import options as declared
from sigdask.cli import declare
from sigdask.cli.compare import print_results
from sigdask.cli.streams import LOG, print_data
from sigdask.cli.write import present_analysis, write_outputs
from sigdask.options import TableLayoutOptions, check_options, select_options
from sigdask.report.analyses import AnyResults, list_analysis_texts, load_results
from sigdask.report.plots import pairs
from sigdask.report.presentable import Results, list_result_texts
from sigdask.results.columns import read_schema
from sigdask.text import format_count, format_list

MAX_NAMED = 6
"""Maximum number of figures that are named."""


def _print_schema(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        print_data([read_schema()])
        context.exit()


FIGURE_FORMATS = "svg,pdf"
"""Default formats of figures."""

GROUPS = {
    "Output": (
        *declare.output("csv", "parquet", "markdown", "latex", "bibtex", "html", "text"),
        *declare.options(declared.RankingMarkOptions),
        declare.VERBOSE,
        declare.everything("comparison"),
        declare.option("--schema", "Print the JSON schema of results, and exit.", is_eager=True, expose_value=False,
            callback=_print_schema),
        declare.QUIET,
    ),
    "Tables": declare.options(declared.TableLayoutOptions),
    "Figures": (
        declare.option("--figures DIR", "Draw all figures that fit the results into this folder. "
            "Needs sigdask[report].", type=click.Path(file_okay=False)),
        declare.option("--figure-format FORMAT,...", "Formats of figures: svg, pdf, png.", default=FIGURE_FORMATS),
        *declare.options(declared.FigureStyleOptions),
    ),
}  # fmt: skip

EXAMPLES = (
    "sigdask show results.json",
    "sigdask show results.json -o table.tex -o table.md --digits 1",
    "sigdask show results.json -o page.html",
    "sigdask show results.json --figures figures --figure-format png",
)


@declare.command(click.argument("file", metavar="RESULTS.json"), groups=GROUPS, examples=EXAMPLES)
def command(file: str, **options: Any) -> None:
    """Show stored results: print them, or write tables, pages and figures.

    RESULTS.json is a file that a command wrote with -o or --json. Without -o and --figures, `show` prints what the
    command printed.
    """
    outputs = options["outputs"]
    check_options(TableLayoutOptions, layout := select_options(TableLayoutOptions, options))
    kinds = pairs.parse_kinds(options["figure_kinds"])
    formats = pairs.parse_names(options["figure_format"], "--figure-format")
    results = load_results(file)
    if isinstance(results, Results):
        results = replace(results, table=results.table.replace(grouping=options["grouping"]))
        texts = list_result_texts(results, layout)
    else:
        texts = list_analysis_texts(results)
    write_outputs(outputs, texts)
    if options["figures"] is not None:
        _draw_figures(options["figures"], kinds, formats, results)
    elif not outputs and isinstance(results, Results):
        print_results(results, options)
    elif not outputs:
        present_analysis(outputs, results, everything=options["everything"])


def _draw_figures(folder: str, kinds: Collection[str], formats: Sequence[str], results: AnyResults) -> None:
    """Write the figures into a folder, and log the names of the files."""
    pictures = pairs.iter_pictures(results.table, kinds) if isinstance(results, Results) else ()
    written = pairs.write_figures(Path(folder), pictures, formats)
    if not written:
        LOG.info(f"--figures {folder}: no figure fits these results")
        return
    names = format_list([path.name for path in written], limit=MAX_NAMED)
    LOG.info(f"{format_count(len(written), 'file')} in {folder}: {names}")
