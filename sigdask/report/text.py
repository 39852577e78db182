"""What is printed: users' names made harmless, p-values rounded up, limits outwards."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    r"""Replace what is no printable character and no blank, but for those to keep.

    Examples
    --------
    >>> printable("a\x1b[31m", keep="\n").isprintable()
    True
    """
    if _without(keep, text).isprintable():
        return text
    return "".join(c if _is_harmless(c) or c in keep else "\N{REPLACEMENT CHARACTER}" for c in text)


def printable_json(text: str) -> str:
    r"""Escape in JSON what a terminal might take as a command; its meaning stays.

    Examples
    --------
    >>> print(printable_json('"a\x9b1m"'))
    "a\u009b1m"
    """
    if _without("\n", text).isprintable():
        return text
    return "".join(c if _is_harmless(c) or c == "\n" else _escaped(c) for c in text)


def _without(some: str, text: str) -> str:
    for c in some:
        text = text.replace(c, "")
    return text


def _is_harmless(c: str) -> bool:
    return c.isprintable() or (c.isspace() and c >= "\xa0" and c not in "\u2028\u2029")


def _escaped(c: str) -> str:
    units = c.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k : k + 2].hex()}" for k in range(0, len(units), 2))
