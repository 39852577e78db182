r"""Methods sections of papers, generated from results, with the works they cite.

Each procedure has one sentence in `SENTENCES`, whose blanks are filled from results. Sentences hold
citations as `[[key,key]]`, which become names and years, or LaTeX's `\citep`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from typing import Any

import numpy as np

from sigdask.report.latex import CHARACTERS, LINE_BREAK, UNKNOWN_CHARACTER, escape_sentence
from sigdask.report.sentences import (
    ADJUSTMENTS,
    ALTERNATIVES,
    CITATION_PATTERN,
    EXACT_METHOD_SOURCES,
    INTERVAL_METHODS,
    find_citations,
    join_phrases,
    list_adjustments,
)
from sigdask.results.columns import pluralize
from sigdask.results.comparisons import ComparisonResults, get_version
from sigdask.results.ranking import build_rankings, is_agreement
from sigdask.results.table import list_scorers
from sigdask.statistics.classical import DESCRIPTIONS
from sigdask.text import format_count, format_list

SOURCES: dict[str, str] = {
    entry[1]: entry[0]
    for entry in re.finditer(
        r"^@\w+\{(\w+),$.*?^\}$",
        files(__package__).joinpath("sources.bib").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
}
"""BibTeX entries. The key is the first author's name and the year."""


def get_field(key: str, name: str) -> str:
    """Return a BibTeX field of a work, such as its author, title or year.

    Examples
    --------
    >>> get_field("yeh2000", "author")
    'Yeh, Alexander'
    """
    field = re.search(rf"^  {name} = {{(.*)}},?$", SOURCES[key], re.MULTILINE)
    assert field is not None
    return field[1]


def format_citation(key: str) -> str:
    """Return the authors and year of a work.

    Examples
    --------
    >>> (format_citation("yeh2000"), format_citation("streitberg1986"),
    ...  format_citation("salmon2011"), format_citation("sigdask"))
    ('Yeh 2000', 'Streitberg & Röhmel 1986', 'Salmon et al. 2011', 'The sigdask developers 2026')
    """
    authors = get_field(key, "author").replace('{\\"o}', "ö").split(" and ")
    surnames = [author.strip("{}") if author.startswith("{") else author.partition(",")[0] for author in authors]
    shown = " & ".join(surnames) if len(surnames) <= 2 else f"{surnames[0]} et al."
    return f"{shown} {get_field(key, 'year')}"


def format_bibtex(keys: Iterable[str]) -> str:
    """Return the BibTeX entries of works.

    Examples
    --------
    >>> print(format_bibtex(["holm1979"]))
    @article{holm1979,
      author = {Holm, Sture},
      title = {A simple sequentially rejective multiple test procedure},
      year = {1979},
      journal = {Scandinavian Journal of Statistics},
      volume = {6},
      number = {2},
      pages = {65--70}
    }
    """
    return "\n\n".join(SOURCES[key] for key in keys)


MAX_NAMES = 9
"""Maximum number of names that are listed."""

CLUSTERS = (
    "Ranks range from the number of significantly better {systems} plus one to the number of {systems} not "
    "significantly worse; the ranges of different clusters do not overlap."
)

SENTENCES = {
    "comparisons": "{subject} were compared{place} by {metrics}{scorers}{subsets}{pairs}.",
    "systems": "Each difference was tested by approximate randomization, also called stratified shuffling "
    "[[noreen1989,yeh2000]], with sigdask {version} [[sigdask]]: under the null hypothesis the outputs of two systems "
    "for the same {units} are exchangeable, so they were swapped and the metric was recomputed on all items of "
    "both systems{size}.",
    "metrics": "Each difference in agreement was tested by a permutation test of both metrics' scores "
    "[[deutsch2021,deutsch2023]], a form of approximate randomization [[noreen1989,yeh2000]], with sigdask {version} "
    "[[sigdask]]: under the null hypothesis two metrics are exchangeable, so their standardised scores, or decisions "
    "on pairs of scores, were swapped by {units} and the agreement was recomputed.",
    "sacrebleu": "sacreBLEU [[post2018]] computed {metrics}.",
    "meta-acc-eq": "Thresholds of ties between a metric's scores were calibrated [[deutsch2023]].",
    "meta-spa": "Soft pairwise accuracy compares p-values of pairs of systems [[thompson2024]].",
    "exact": "The p-values{share} are exact, over all possible swaps{cited}, and {sided}.",
    "sampled": "{are} computed from n = {trials} random swaps as (k + 1) / (n + 1) [[phipson2010]], where k is the "
    "number of swaps with a difference at least as large as the observed one.",
    "adjusted": "The p-values{by} were adjusted in families of {n} comparisons by {procedure}.",
    "significant": "Differences with {adjusted}p at most {alpha:g} are called significant.",
    "equal scores": "The hypothesis of equal scores was also tested by the {symmetric}studentised bootstrap of units, "
    "step-down in families [[efron1993,romano2005,westfall1993]]. Results of which only one of the two tests rejects "
    "are called contested instead ({n:,} of {checked}).",
    "runs": "Scores are means over {n}{paired} runs of each system: the p-values above, and marks of significance, "
    "are of these runs.",
    "recipes": "Whether differences hold for new runs (the recipes) was tested by Student's t with the variances over "
    "items and runs [[satterthwaite1946]].",
    "margin": "Non-inferiority and equivalence within a margin of {margin:g} were tested by one-sided tests in both "
    "directions [[schuirmann1987]]: score tests of items scored 0 or 1 [[tango1998]], and swaps of shifted scores for "
    "other means{adjusted}.",
    "letters": "{Systems} that share a letter are not significantly different [[piepho2004]].",
    "clusters": "{Systems} are grouped in clusters of ranks. " + CLUSTERS,
    "tied": "{Systems} that are not significantly different from the best are called tied with it.",
    "ranks": CLUSTERS,
    "sets": "Verdicts over several sets are about the mean difference, each with its own {confidence:.4g} % confidence "
    "interval by Student's t [[satterthwaite1946]]{how}.",
    "intervals": "{confidence:.4g} % confidence intervals of differences{alone} were computed by {methods}.",
    "simultaneous": "Simultaneous {confidence:.4g} % confidence intervals were computed by the largest statistic of "
    "the studentised bootstrap [[efron1993]], in one step, with {n:,} resamples.",
    "classical": "For comparison, the results of {tests} are given as well.",
    "random numbers": "Random numbers are those of Philox4x32-10 [[salmon2011]] with seed {seed}.",
    "program": "Differences were tested for significance by approximate randomization [[noreen1989,yeh2000]] with "
    "sigdask {version} [[sigdask]].",
}
"""The sentence of each procedure."""

Used = tuple[str, dict[str, Any]]
"""A procedure, and what fills the blanks of its sentence."""


@dataclass(frozen=True, slots=True)
class Methods:
    """A methods paragraph.

    Attributes
    ----------
    marked : str
        Its sentences, with `[[key,key]]` where works are cited.
    """

    marked: str

    @property
    def keys(self) -> tuple[str, ...]:
        """BibTeX keys of the works that the paragraph cites, in order of appearance."""
        return find_citations(self.marked)

    @property
    def text(self) -> str:
        """The paragraph with authors and years in parentheses."""
        return CITATION_PATTERN.sub(
            lambda match: f" ({'; '.join(format_citation(key) for key in match[1].split(','))})", self.marked
        )

    @property
    def latex(self) -> str:
        r"""The paragraph as LaTeX with natbib's `\citep`. With long signatures it is set with looser lines."""
        parts = CITATION_PATTERN.split(self.marked)
        text = "".join(
            f"~\\citep{{{part}}}" if index % 2 else escape_sentence(part) for index, part in enumerate(parts)
        )
        if LINE_BREAK in text:
            text = f"\\begin{{sloppypar}}\n{text}\n\\end{{sloppypar}}"
        return f"{CHARACTERS}{text}" if UNKNOWN_CHARACTER in text else text

    @property
    def bibtex(self) -> str:
        """BibTeX entries of the works that the paragraph cites."""
        return format_bibtex(self.keys)

    def __str__(self) -> str:
        return self.text


def describe_program() -> Methods:
    """Return the sentence that cites the program and its test."""
    return Methods(SENTENCES["program"].format(version=get_version()))


def describe_results(results: ComparisonResults) -> Methods:
    """Return the methods paragraph of results."""
    parts = (_iter_test, _iter_p_values, _iter_verdicts, _iter_intervals)
    used = chain.from_iterable(part(results) for part in parts)
    return Methods(" ".join(SENTENCES[name].format(**values) for name, values in used))


def _iter_test(results: ComparisonResults) -> Iterator[Used]:
    """Yield what was compared, by which test."""
    table, is_meta = results.table, is_agreement(results.table)
    metrics, units = table.metric.levels, table.unit.levels
    names = _join_names(metrics)
    scorers = "; ".join(f"{name}: {signature}" for name, signature in list_scorers(table))
    sets = _join_names(filter(None, table.test_set.levels))
    subsets = _join_names(filter(None, table["subset.column"].levels))
    n_systems = len({*table.a.levels, *table.b.levels})
    baseline = f" with {table.b[0]}" if n_systems > 2 and len(table.b.levels) == 1 else ""
    texts = {
        "subject": f"{n_systems} {'evaluation metrics' if is_meta else 'systems'}",
        "place": f" on {sets}" if sets else "",
        "metrics": f"their agreement with human scores ({names})" if is_meta else names,
        "scorers": f" ({scorers})" if scorers else "",
        "subsets": f", within each {subsets}" if subsets else "",
        "pairs": f" in {len(table):,} comparisons{baseline}" if len(table) > 1 else "",
    }
    yield "comparisons", {key: text.replace("[[", "[ [") for key, text in texts.items()}  # no citation
    if by_sacrebleu := [name for name, signature in list_scorers(table) if signature.startswith("nrefs:")]:
        yield "sacrebleu", {"metrics": _join_names(by_sacrebleu)}
    versions = filter(None, table["origins.version"].levels)
    unit = pluralize(units[0] if len(units) == 1 else "unit")
    size = f" ({_format_range(table.n_units.tolist())} {unit})" if len(table) else ""
    shared = {"version": " and ".join(versions) or get_version(), "units": " or ".join(units), "size": size}
    yield "metrics" if is_meta else "systems", shared
    bases = dict.fromkeys(name.partition(":")[0] for name in metrics if is_meta)
    yield from ((base, {}) for base in bases if base in SENTENCES)


def _iter_p_values(results: ComparisonResults) -> Iterator[Used]:
    """Yield how p-values were computed and adjusted."""
    table = results.table
    exact = table.is_exact | (table.n_trials == 0)
    n_exact, counts = int(exact.sum()), np.unique(table.n_trials[~exact]).tolist()
    sided = _join_names(ALTERNATIVES[alternative].sentence for alternative in table.alternative.levels)
    names = table["exact.method"].levels
    keys = dict.fromkeys(EXACT_METHOD_SOURCES[name] for name in names if name in EXACT_METHOD_SOURCES)
    if n_exact:
        share = f" of {format_count(n_exact, 'comparison')}" if counts else ""
        yield "exact", {"share": share, "cited": f" [[{','.join(keys)}]]" if keys else "", "sided": sided}
    if counts:
        are = f"The other{'s are' if (~exact).sum() > 1 else ' is'}" if n_exact else f"The p-values are {sided}, and"
        yield "sampled", {"are": are, "trials": _format_range(counts)}
    found = list_adjustments(results)
    for adjust, (sizes, metrics) in found.items():
        by = f" for {_join_names(metrics)}" if len(found) > 1 else ""
        yield "adjusted", {"by": by, "n": _format_range([*sizes]), "procedure": ADJUSTMENTS[adjust].sentence}


def _iter_verdicts(results: ComparisonResults) -> Iterator[Used]:
    """Yield what is called significant, and what else was tested."""
    table, is_adjusted = results.table, bool(list_adjustments(results))
    yield "significant", {"adjusted": "adjusted " * is_adjusted, "alpha": results.alpha}
    if n := int(np.count_nonzero(table["equal_scores.n_resamples"])):
        counts = {"n": int(np.count_nonzero(table.is_contested)), "checked": format_count(n, "comparison")}
        yield "equal scores", {"symmetric": "symmetric " * (table.alternative[0] == "two-sided"), **counts}
    holm = ", and their p-values were adjusted by Holm's method [[holm1979]]" if is_adjusted else ""
    for margin in np.unique(table["margin.margin"][~np.isnan(table["margin.margin"])]).tolist():
        yield "margin", {"margin": margin, "adjusted": holm}
    if table.has("runs"):
        n_runs = table["runs.n_runs"]
        is_paired = table["runs.is_paired"][n_runs > 0].astype(bool)
        paired = " paired" * bool(is_paired.all()) + " unpaired" * (not is_paired.any())
        yield "runs", {"n": _format_range(n_runs[n_runs > 0].tolist()), "paired": paired}
        if not np.isnan(table["runs.p_value"]).all():
            yield "recipes", {}
    noun = "metrics" if is_agreement(table) else "systems"
    for grouping in dict.fromkeys(ranking.grouping for ranking in build_rankings(table)):
        yield grouping, {"systems": noun, "Systems": noun.capitalize()}
    if results.together:
        sampled = [v.n_trials for v in results.together if v.method != "exact" and v.n_trials]
        how = [f"computed from {_format_range(sampled)} random swaps [[phipson2010]]"] if sampled else []
        if any(verdict.p_adjusted is not None for verdict in results.together):
            how.append(f"adjusted by {ADJUSTMENTS['max-t'].sentence}")
        p = f", and with p-values {join_phrases(how)}" if how else ""
        yield "sets", {"confidence": 100 * (1 - results.alpha), "how": p}


def _iter_intervals(results: ComparisonResults) -> Iterator[Used]:
    """Yield methods of intervals, other tests, and the random numbers of all."""
    table = results.table
    pairs = zip(table["interval.method"].tolist(), table["interval.n_resamples"].tolist(), strict=True)
    found = [(INTERVAL_METHODS[name], n) for name, n in sorted({*pairs}) if name]
    if found:
        methods = [f"{words.sentence}{f' with {n:,} {words.draws}' if n else ''}" for words, n in found]
        confidence = 100 * float(np.nanmax(table["interval.confidence"], initial=0.0))
        alone = " (each for one comparison alone)" if list_adjustments(results) else ""
        yield "intervals", {"confidence": confidence, "alone": alone, "methods": _join_names(methods)}
    if (has := ~np.isnan(table["interval_simultaneous.0"])).any():
        of_family, shown = results.family and results.family.n_resamples, table["equal_scores.n_resamples"][has]
        yield "simultaneous", {"confidence": 100 * (1 - results.alpha), "n": of_family or int(shown.max())}
    if tests := [name for name in table.list_keys("tests") if not np.isnan(table[f"tests.{name}.p_value"]).all()]:
        yield "classical", {"tests": _join_names(DESCRIPTIONS[name] for name in tests)}
    if found or not (table.is_exact | (table.n_trials == 0)).all():
        yield "random numbers", {"seed": results.seed}


def _join_names(names: Iterable[str]) -> str:
    """Join names with commas and a final "and"; of many names, the first ones."""
    all_names = [*names]
    return format_list(all_names, MAX_NAMES) if len(all_names) > MAX_NAMES else join_phrases(all_names)


def _format_range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
