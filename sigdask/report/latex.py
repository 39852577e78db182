r"""Documents as LaTeX: booktabs alone, for pdflatex, XeLaTeX and LuaLaTeX alike.

LaTeX itself measures each table, and chooses the largest type and the narrowest float (`table`, else `table*`) that it
fits; names that are too long even then are broken. A table of more rows than a page, or of more columns than fit a
line, is for the author to divide. pdflatex prints a character without a glyph as its number, and the others print it as
it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from sigdask.report.document import Column, DocumentTable, Section
from sigdask.results.comparisons import get_version
from sigdask.text import make_printable

NAME_CHARACTERS = 11
"""Characters of a line of a broken name."""

LONG_HEADER = 9
"""Minimum characters of headers that take two lines where their columns are narrower."""

LONG_WORD = 16
"""Minimum characters of words that may be broken."""

MAX_ROWS = 36
"""Maximum rows of a table, so that it fits a page with its caption and note. Floats are not broken between pages."""

LABEL = "tab:sigdask"

LINE_BREAK = r"\allowbreak{}"
"""Where a line may end within a signature or a long name."""

ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\symbol{34}", "`": r"\symbol{96}", "[": "{[}", "]": "{]}", "*": "{*}",
    "†": r"\dag{}", "‡": r"\ddag{}", "↓": r"$\downarrow$", "≤": r"$\leq$", "≠": r"$\neq$", "–": "--", "—": "---",
    "\u2212": "$-$", "\N{NO-BREAK SPACE}": "~", "\N{REPLACEMENT CHARACTER}": "?", "\N{ZERO WIDTH NON-JOINER}": "{}",
}  # fmt: skip
"""LaTeX's special characters and their commands."""

WITHOUT_GLYPH = "«»ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ"
"""Characters up to U+017F that pdflatex lacks in its default encoding."""

UNKNOWN_CHARACTER = r"\sigdaskchar{"
CHARACTERS = r"""% XeLaTeX and LuaLaTeX print every character; pdflatex prints the code of one without a glyph.
\providecommand{\sigdaskchar}{}
\DeclareRobustCommand{\sigdaskchar}[2]{\ifdefined\Umathchar#1\else\texttt{U+#2}\fi}
"""

MEASURING = r"""% \sigdasktry{FLOAT}{ROOM}{TYPE} is chosen if the table is too wide for all that were tried before.
\providecommand{\sigdasktry}{}
\renewcommand{\sigdasktry}[3]{\ifdim\wd0>\sigdaskroom\def\sigdaskfloat{#1}\def\sigdaskroom{#2}%
  \def\sigdasktype{#3\relax}\setbox0\hbox{\sigdasktype\sigdasktable}\fi}
\providecommand{\sigdaskname}{}
\providecommand{\sigdaskfit}{}
\renewcommand{\sigdaskfit}{\def\sigdaskroom{-1pt}\setbox0\hbox{}\renewcommand{\sigdaskname}[1]{##1}%
  \sigdasktry{table}{\columnwidth}{\small}%
  \sigdasktry{table}{\columnwidth}{\footnotesize\tabcolsep=3pt}%
  \sigdasktry{table*}{\textwidth}{\small}%
  \sigdasktry{table*}{\textwidth}{\footnotesize\tabcolsep=3pt}%
  \sigdasktry{table*}{\textwidth}{\scriptsize\tabcolsep=1.5pt}%
  \sigdasktry{table*}{\textwidth}{\scriptsize\tabcolsep=1.5pt
    \renewcommand{\sigdaskname}[1]{\parbox[t]{42pt}{\tiny\sloppy\raggedright\strut####1\strut}}}}
"""

LIGATURES = re.compile(r"([-,'])(?=\1)")
NUMBER = re.compile(r"([-+]?)(\d+(?:\.\d+)?)(?:e([-+]?\d+))?|inf|[<≤\[\]–]")

SIGNATURE_PIECES, NAME_PIECES = re.compile(r"[^-|:/._]+[-|:/._]*|[-|:/._]+"), re.compile(r"[^\W_]{1,6}[\W_]*|[\W_]+")
"""Patterns of the parts of long words that stay on one line: up to punctuation, and of at most six letters."""


def iter_parts(tables: Iterable[DocumentTable], *, caption: str | None = None, label: str = LABEL) -> Iterator[str]:
    r"""Yield the text of a file for `\input`: a `table` for each table, split where it is long.

    Parameters
    ----------
    tables : iterable of DocumentTable
        One after the other.
    caption : str, optional
        Caption as LaTeX, in place of the default one. The legend follows.
    label : str
        Label of the first table. Further tables are numbered.
    """
    yield (
        f"% By sigdask {get_version()}: needs \\usepackage{{booktabs}} alone\n% What to cite: sigdask cite\n{MEASURING}"
    )
    parts = chain.from_iterable([*table.divide(MAX_ROWS)] or [table] for table in tables)
    for number, table in enumerate(parts, 1):
        lines = [*_iter_float_lines(table, caption, label if number == 1 else f"{label}-{number}")]
        if any(UNKNOWN_CHARACTER in line for line in lines):
            yield CHARACTERS
        yield from (f"{line}\n" for line in lines)


def escape(text: str) -> str:
    r"""Return text with LaTeX's special characters escaped.

    Examples
    --------
    >>> print(escape("50 % of a_b"))
    50 \% of a\_b
    """
    plain = unicodedata.normalize("NFC", make_printable(text))
    return "".join(map(_escape_character, LIGATURES.sub("\\1\N{ZERO WIDTH NON-JOINER}", plain)))


def _escape_character(c: str) -> str:
    if c in ESCAPES:
        return ESCAPES[c]
    has_glyph = c in "‘’“”•…€™" or (c <= "\u017f" and c not in WITHOUT_GLYPH)
    return c if has_glyph else f"{UNKNOWN_CHARACTER}{c}}}{{{ord(c):04X}}}"


def escape_sentence(sentence: str) -> str:
    """Return a sentence with LaTeX's special characters escaped, whose long words, such as signatures, are broken."""
    words = re.split(r"(\s+)", sentence)
    return "".join(escape(w) if len(w) < LONG_WORD else _escape_breakable(w, SIGNATURE_PIECES) for w in words)


def _escape_breakable(text: str, pieces: re.Pattern[str]) -> str:
    return LINE_BREAK.join(map(escape, pieces.findall(text)))


def _escape_name(text: str) -> str:
    if len(text) <= NAME_CHARACTERS:
        return escape(text)
    return rf"\sigdaskname{{{_escape_breakable(text, NAME_PIECES)}}}"


def format_number(text: str) -> str:
    r"""Return a number, interval or limit with LaTeX's minus sign and powers of ten.

    Examples
    --------
    >>> print(format_number("-0.5"), format_number("1.2e-05"), format_number("<1e-300"))
    $-$0.5 $1.2\times10^{-5}$ $<$$1\times10^{-300}$
    """
    return NUMBER.sub(_format_number_match, text)


def _format_number_match(match: re.Match[str]) -> str:
    sign, digits, power = match.groups()
    if digits is None:
        return {"inf": r"$\infty$", "<": "$<$", "≤": r"$\leq$", "[": "{[}", "]": "{]}", "–": "--"}[match[0]]
    if power is not None:
        return f"${sign}{digits}\\times10^{{{int(power)}}}$"
    return f"{'$-$' if sign == '-' else sign}{digits}"


def _iter_float_lines(table: DocumentTable, caption: str | None, label: str) -> Iterator[str]:
    """Yield the lines of a table."""
    title = escape_sentence(f"{table.title}.") if caption is None else caption
    yield from (f"% note: {make_printable(text)}" for text in table.warnings)
    columns = table.sections[0].columns
    aligned = ("l" if c.is_name or c.is_p else "r@{}l" if _is_double(c) else "r" for c in columns)
    yield rf"\def\sigdasktable{{\begin{{tabular}}{{@{{}}{''.join(aligned)}@{{}}}}"
    yield from (r"\toprule", _format_row(map(_format_header, columns)), r"\midrule", *_iter_rows(table.sections))
    yield from (r"\bottomrule", r"\end{tabular}}\sigdaskfit", r"\begin{\sigdaskfloat}", r"\centering")
    legend = map(escape_sentence, table.list_sentences())
    yield from (rf"\caption{{{' '.join([title, *legend])}}}", rf"\label{{{label}}}", r"{\sigdasktype\sigdasktable\par}")
    if table.note:
        note = escape_sentence(" ".join(table.note))
        yield from (r"\smallskip", rf"\parbox{{\linewidth}}{{\footnotesize\sloppy {note}}}")
    yield from (r"\end{\sigdaskfloat}", "")


def _iter_rows(sections: Sequence[Section]) -> Iterator[str]:
    """Yield the rows of a table, with the headings of its sections."""
    n_columns = sum(1 + _is_double(column) for column in sections[0].columns)
    for k, section in enumerate(sections):
        if section.heading:
            yield from [r"\addlinespace"] * (k > 0)
            yield rf"\multicolumn{{{n_columns}}}{{l}}{{\emph{{{escape(section.heading)}}}}} \\"
        yield from map(_format_row, zip(*map(_format_cells, section.columns), strict=True))


def _format_row(cells: Iterable[str]) -> str:
    return rf"{' & '.join(cells)} \\"


def _format_cells(column: Column) -> Iterator[str]:
    """Return the cells of a column with raised marks."""
    texts = column.render(_escape_name, format_number, r"\textbf{{{}}}")
    if column.marks is None:
        return iter(texts)
    raised = [mark and rf"\textsuperscript{{{escape(mark)}}}" for mark in column.marks]
    return map("{} & {}".format if _is_double(column) else "{}{}".format, texts, raised)


def _is_double(column: Column) -> bool:
    """Return whether a column's marks go into a separate column, so that its numbers align."""
    return column.marks is not None and not column.is_p


def _split_header(column: Column) -> list[str]:
    """Return a long header in two lines, at a space, hyphen or @, if the texts of its column are shorter."""
    header = column.header
    if len(header) < LONG_HEADER or len(header) <= max(map(len, column.texts), default=0):
        return [header]
    places = re.finditer(r" (?![%(↓])|(?<=\w[-@])(?=\w)", header)
    halves = [[header[: m.start()], header[m.end() :]] for m in places]
    return min(halves, key=lambda parts: max(map(len, parts)), default=[header])


def _format_header(column: Column) -> str:
    lines = [escape(line) for line in _split_header(column)]
    text = lines[0] if len(lines) == 1 else rf"\shortstack{{{lines[0]} \\ {lines[1]}}}"
    return rf"\multicolumn{{2}}{{c}}{{{text}}}" if _is_double(column) else text
