"""Names that users give, as terminals, text files and XML may get them."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    r"""Replace what is no printable character, but for those to keep.

    Examples
    --------
    >>> printable("a\x1b[31m", keep="\n").isprintable()
    True
    """
    return "".join(c if c.isprintable() or c in keep else "\N{REPLACEMENT CHARACTER}" for c in text)
