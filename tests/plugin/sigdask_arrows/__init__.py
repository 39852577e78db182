"""A format of lines `item -> label`, and two metrics."""

import gzip
import re

import pyarrow as pa

import sigdask
from sigdask.formats.reading.files import read_head
from sigdask.formats.registry import Format

LINE = re.compile(r"(\S+) -> (\S+)")

ARROWS = Format(
    "sigdask_arrows:read_arrows",
    "lines of item, arrow and label; --gold FILE of the same kind",
    "sigdask_arrows:is_arrows",
    gold="required",
)


def is_arrows(path):
    """Return whether all lines at the beginning of a file are of this format."""
    lines = read_head(path).filled_lines
    return bool(lines) and all(map(LINE.fullmatch, lines))


def read_arrows(path):
    """Return the table of a file: items and their labels."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("utf-8-sig")
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not (match := LINE.fullmatch(line)):
            raise ValueError(f"{path}, line {number}: expected ITEM -> LABEL, found {line[:20]!r}")
        rows.append(match.groups())
    if not rows:
        raise ValueError(f"{path}: no line")
    items, labels = zip(*rows, strict=True)
    return pa.table({"item": items, "label": labels})


@sigdask.metric
def fowlkes_mallows(tp, predicted, gold):
    """Return the geometric mean of precision and recall."""
    return tp / (predicted * gold) ** 0.5


@sigdask.metric(of="outputs")
def longest(outputs, gold):
    """Return the length of the longest run of right outputs, divided by their number."""
    best = run = 0
    for output, right in zip(outputs, gold, strict=True):
        run = run + 1 if output == right else 0
        best = max(best, run)
    return best / len(outputs)
