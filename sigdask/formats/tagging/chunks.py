"""Chunks (named entities, phrases) found in token tags, and their counts per sentence.

By default the rules are those of conlleval (Tjong Kim Sang & Buchholz 2000): a chunk begins where a tag says so or the
type changes, in any scheme. A scheme that is given by name is applied strictly, as in the strict mode of seqeval: tags
that it does not allow are no chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Array
from sigdask.formats.reading.signatures import TAG

PREFIXES = "OBIES"
LETTERS = {"O": "O", "B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S", "W": "S"}
"""Letters of equivalent schemes: BILOU, BMES, BMEWO."""

NO_TYPE = "_"


@dataclass(frozen=True, slots=True)
class ChunkScheme:
    """The rules of a tagging scheme, by which tokens begin, continue and end chunks.

    A rule is the prefix of the token before, of the token itself ("." is any) and whether the types
    are the same (=), differ (!) or do not matter (*).

    Attributes
    ----------
    start : tuple of str
        Rules of tokens that begin a chunk.
    inside : tuple of str, or None
        Rules of tokens that continue a chunk. None for all that neither begin one nor are O.
    end : tuple of str, or None
        Rules of tokens before which a chunk may end. None for all tokens.
    prefixes : str
        Prefixes of the scheme.
    """

    start: tuple[str, ...]
    inside: tuple[str, ...] | None = None
    end: tuple[str, ...] | None = None
    prefixes: str = PREFIXES


CONLLEVAL = ChunkScheme((".B*", ".S*", "EI*", "EE*", "SI*", "SE*", "OI*", "OE*", ".I!", ".E!"))
IOBES = ChunkScheme((".B*", ".S*"), ("BI=", "BE=", "II=", "IE="), ("S.*", "E.*"))
IOB2 = ChunkScheme((".B*",), ("BI=", "II="), ("IO*", "II!", "IB*", "BO*", "BI!", "BB*"), "OBI")

SCHEMES: dict[str, ChunkScheme] = {
    "conlleval": CONLLEVAL,
    "IOB1": ChunkScheme(
        ("OI*", "II!", "BI*", "IB=", "BB="), ("BI=", "II="), ("II!", "IO*", "IB*", "BO*", "BI!", "BB="), "OBI"
    ),
    "IOB2": IOB2,
    "BIO": IOB2,
    "IOE1": ChunkScheme(("OI*", "II!", "EI*", "EE="), ("II=", "IE="), ("II!", "IO*", "IE!", "EI=", "EE="), "OIE"),
    "IOE2": ChunkScheme(("OI*", "OE*", "EI*", "EE*", "II!", "IE!"), ("IE=", "II="), ("E.*",), "OIE"),
    "IOBES": IOBES,
    "BIOES": IOBES,
    "BILOU": IOBES,
    "BMES": IOBES,
    "IO": CONLLEVAL,
    "raw": CONLLEVAL,
}
"""Names of tagging schemes. IO (types without prefix, runs of one type) and raw (each token is a chunk) have their own
tags.
"""


def parse_tag(label: str, scheme: str) -> tuple[str, str] | None:
    """Return the prefix and type of a label, or None if it is not a tag of the scheme.

    Examples
    --------
    >>> parse_tag("U-creative-work", "BILOU"), parse_tag("B", "conlleval"), parse_tag("NN", "IOB2")
    (('S', 'creative-work'), ('B', '_'), None)
    >>> parse_tag("PER", "IO"), parse_tag("B-NP", "raw")
    (('I', 'PER'), ('S', 'B-NP'))
    """
    if label == "O":
        return "O", ""
    if scheme == "raw":
        return "S", label
    match = TAG.fullmatch(label)
    if scheme == "IO":
        return "I", label.removeprefix("I-") or NO_TYPE
    if match is None or LETTERS[match[1]] not in SCHEMES[scheme].prefixes:
        return None
    return LETTERS[match[1]], match[2] or NO_TYPE


Chunks = NDArray[np.int64]
"""Rows of first token, the token after the last, type and sentence. One token is counted before each sentence."""


def find_chunks(prefixes: Array, types: Array, lengths: Array, scheme: ChunkScheme) -> Chunks:
    """Find the chunks of tagged sentences.

    Parameters
    ----------
    prefixes : int array, shape (n_tokens,)
        Indices in `PREFIXES`.
    types : int array, shape (n_tokens,)
        Codes of types.
    lengths : int array, shape (n_sentences,)
        Number of tokens of each sentence.
    scheme : ChunkScheme
        The rules.
    """
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    positions = np.arange(len(prefixes)) + sentence + 1  # an O before, between and after sentences
    prefix = np.zeros(len(prefixes) + len(lengths) + 1, np.int8)
    type_ = np.full(len(prefix), -1, np.int32)
    prefix[positions], type_[positions] = prefixes, types

    start = _match_rules(scheme.start, prefix, type_)
    inside = (prefix != 0) & ~start if scheme.inside is None else _match_rules(scheme.inside, prefix, type_)
    heads = np.flatnonzero(~inside)  # the inside tokens after each belong to it
    ends = np.append(heads[1:], len(prefix))
    starts = np.flatnonzero(start)
    run = np.searchsorted(heads, starts, "right") - 1
    is_new = np.append(True, run[1:] != run[:-1])[: len(run)]  # a chunk that continues is not begun again
    starts, chunk_ends = starts[is_new], ends[run[is_new]]
    if scheme.end is not None:
        is_complete = _match_rules(scheme.end, prefix, type_)[chunk_ends]
        starts, chunk_ends = starts[is_complete], chunk_ends[is_complete]
    owner = np.zeros(len(prefix), np.int64)
    owner[positions] = sentence
    return np.column_stack([starts, chunk_ends, type_[starts], owner[starts]])


def _match_rules(rules: Sequence[str], prefix: Array, type_: Array) -> NDArray[np.bool_]:
    """Return a mask of the tokens that match at least one of the rules."""
    matches = np.zeros(len(prefix), np.bool_)
    same_type = type_[1:] == type_[:-1]
    for rule in rules:
        previous, current, types = tuple(rule)
        fits = {"=": same_type, "!": ~same_type, "*": np.ones_like(same_type)}[types]
        if previous != ".":
            fits = fits & (prefix[:-1] == PREFIXES.index(previous))
        if current != ".":
            fits = fits & (prefix[1:] == PREFIXES.index(current))
        matches[1:] |= fits
    return matches


def find_lost_tags(prefixes: Array, found: Chunks) -> NDArray[np.intp]:
    """Return the tokens with a tag of a chunk that are in none of the chunks."""
    covered = [np.arange(first, end) - sentence - 1 for first, end, _, sentence in found.tolist()]
    return np.setdiff1d(np.flatnonzero(prefixes > 0), np.concatenate([np.zeros(0, np.intp), *covered]))


def count_chunks(gold: Chunks, predicted: Sequence[Chunks]) -> dict[str, NDArray[np.int64]]:
    """Return the entries of `MatchFields`: correct, predicted and gold chunks by sentence, system and type."""

    def list_entries(columns: Sequence[Chunks]) -> NDArray[np.int64]:
        systems = np.repeat(np.arange(len(columns)), [len(rows) for rows in columns])
        rows = np.concatenate(columns)
        return np.column_stack([rows[:, 3], systems, rows[:, 2] - 1, np.ones_like(systems)])

    nearest = [np.searchsorted(gold[:, 0], rows[:, 0]).clip(max=len(gold) - 1) for rows in predicted]
    matched = [rows[(rows == gold[k]).all(axis=1)] for rows, k in zip(predicted, nearest, strict=True)]
    return {"tp": list_entries(matched), "predicted": list_entries(predicted), "gold": list_entries([gold])}
