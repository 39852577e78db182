"""Metrics that need another tool or other data, and advice on what to use instead."""

from __future__ import annotations

import re

SEGMENTS = "needs scores per segment, which its own tool writes{}: compare the files that it writes (format metrics)"
ITEMS = (
    "is computed by other tools: give its scores per item, a column a system (format wide) or a file (format metrics)"
)
NUMBERS = "is of predictions that are numbers: give the error of each item as a score, a column a system (format wide)"
WHOLE_OUTPUTS = "is no mean over items: write it as a function of whole outputs, MODULE:FUNCTION"

NEEDS = (
    (r"x?comet([-_ ]?(kiwi|qe|da|\d+).*)?|wmt\d\d-comet.*", SEGMENTS.format(" (comet-score --to_json)")),
    (r"bert[-_ ]?score.*", SEGMENTS.format(" (bert-score -s)")),
    (r"bleurt.*|bart[-_ ]?score|metricx.*|yisi.*|gemba.*|unite.*|mover[-_ ]?score|prism", SEGMENTS.format("")),
    (r"rouge.*|meteor|cider.*|spice|sari|nist|perplexity|ppl|loss", ITEMS),
    (r"mqm|esa|da|sqm", "needs people's ratings: rows of system, segment and score or errors (format ratings)"),
    (r"em|exact[-_ ]?match", "needs answers and --gold of SQuAD (--format squad), or a column of scores of that name"),
    (r"pass@\d+|acc_norm", "needs logs of single samples (format samples), or a column of scores of that name"),
    (r"win[-_ ]?rate|elo|lc_win_?rate", "needs wins, ties and losses of pairs of models (format battles)"),
    (r"edit[-_ ]?distance|levenshtein", "needs words and their morphs or forms, and --gold (--format pairs)"),
    (r"[ucml]?las|uas|blex|parseval|evalb", "needs parses, which are not read: give scores per sentence (format wide)"),
    (r"r?mse|mae|mape|r2|log[-_ ]?loss|brier.*", NUMBERS),
    (r"pearson.*|spearman.*|kendall.*|(roc[-_ ]?)?auc|eer", WHOLE_OUTPUTS),
    (
        r"(n?dcg|map|mrr|rr|ap|gmap|infap|bpref|rprec|err|rbp|recip_rank)([@_(].*)?|(p|r|recall|success|hits?)[@_]\d+",
        "needs a run and qrels: --format trec and --gold QRELS; names are those of ir-measures, as nDCG@10",
    ),
)  # fmt: skip
"""Patterns of names, without case, and what such a metric needs."""


def describe_needs(name: str) -> str | None:
    """Return which tool or data a known but unsupported metric needs, or None if the name is not known.

    Examples
    --------
    >>> describe_needs("nDCG")
    'needs a run and qrels: --format trec and --gold QRELS; names are those of ir-measures, as nDCG@10'
    >>> describe_needs("accuracy") is None
    True
    """
    folded_name = name.strip().casefold()
    return next((text for pattern, text in NEEDS if re.fullmatch(pattern, folded_name)), None)
