"""The works that results rest on, by LaTeX citation key: entries of `sources.bib`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files

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
