r"""Tables as LaTeX: booktabs alone, for pdflatex, XeLaTeX and LuaLaTeX alike.

Nothing is left out: if a table has more rows than a page, it continues in another table, and so do columns of more
metrics than fit a line. A table wider than a column of a two-column page is a `table*`. If it fits only the columns of
some classes, LaTeX chooses by the width of the column. If it fits on a two-column page, but not on the lines of a
one-column article, LaTeX chooses between one table and several. pdflatex prints a character
without a glyph as its number, and the others print it as it is.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence

from sigdask.report.tables.model import PaperTable, TableColumn, TableSection
from sigdask.results.comparisons import get_version
from sigdask.text import make_printable

MAX_LINES = 40
"""Maximum lines of a page. A row with broken names takes several."""

MAX_COLUMNS = 8
"""Maximum number of numeric columns side by side."""

COLUMN_POINTS, LINE_POINTS = 225, 342
"""Points of a column of LaTeX's two-column article, and of a line of its one-column article, with a reserve
subtracted.
"""

WIDE_COLUMN_POINTS = 245
"""Points of the widest columns that are common (IEEEtran's), with a reserve subtracted."""

PAGE_POINTS = 460
"""Points of both columns of the two-column article, with a reserve subtracted."""

CHARACTER_WIDTHS = {"%": 1.6, "@": 1.6, "m": 1.6, "w": 1.4, "+": 1.6, "↓": 2.0} | dict.fromkeys(" .,:;|()[]'ijlt", 0.65)
"""Widths of characters relative to a digit. Capitals have the width `CAPITAL`, all others that of a digit."""

CAPITAL, BOLD = 1.4, 1.15
"""Widths of a capital letter, and of a bold digit, relative to a digit."""

MIN_NAME_POINTS = 50
"""Minimum points of a column of long names."""

SIZES = (
    (r"\small", 4.6, 6, 10), (r"\footnotesize", 4.3, 6, 10), (r"\footnotesize\setlength{\tabcolsep}{3pt}", 4.3, 3, 10),
    (r"\footnotesize\setlength{\tabcolsep}{3pt}", 4.3, 3, 6), (r"\scriptsize\setlength{\tabcolsep}{3pt}", 4.1, 3, 10),
    (r"\scriptsize\setlength{\tabcolsep}{1.5pt}", 4.1, 1.5, 6),
)  # fmt: skip
"""Font sizes: points of a digit, points on either side of a column, and the length from which headers take two lines
if the texts of their columns are shorter.
"""

LABEL = "tab:sigdask"

LINE_BREAK = r"\allowbreak{}"
"""Where a line may end within a signature or a long name."""

ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\symbol{34}", "`": r"\symbol{96}", "[": "{[}", "]": "{]}", "*": "{*}",
    "†": r"\dag{}", "‡": r"\ddag{}", "↓": r"$\downarrow$", "≤": r"$\leq$", "–": "--", "—": "---", "\u2212": "$-$",
    "\N{NO-BREAK SPACE}": "~", "\N{REPLACEMENT CHARACTER}": "?",
}  # fmt: skip
"""LaTeX's special characters and their commands."""

WITHOUT_GLYPH = "«»ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ"
"""Characters up to U+017F that pdflatex lacks in its default encoding."""

UNKNOWN_CHARACTER = r"\sigdaskchar{"
CHARACTERS = r"""% XeLaTeX and LuaLaTeX print every character; pdflatex prints the code of one without a glyph.
\providecommand{\sigdaskchar}{}
\DeclareRobustCommand{\sigdaskchar}[2]{\ifdefined\Umathchar#1\else\texttt{U+#2}\fi}
"""

LIGATURES = re.compile(r"([-,'])(?=\1)")
NUMBER = re.compile(r"([-+]?)(\d+(?:\.\d+)?)(?:e([-+]?\d+))?|inf|[<≤\[\]–]")
LONG_WORD = 16
"""Minimum characters of words that may be broken."""

SIGNATURE_PIECES, NAME_PIECES = re.compile(r"[^-|:/._]+[-|:/._]*|[-|:/._]+"), re.compile(r"[^\W_]{1,6}[\W_]*|[\W_]+")
"""Patterns of the parts of long words that stay on one line: up to punctuation, and of at most six letters."""

MATHEMATICAL = {"p": "$p$", "adjusted p": "adjusted $p$", "A - B": "$A - B$", "mean A - B": "mean $A - B$"}


def iter_document_parts(
    tables: Iterable[PaperTable], *, caption: str | None = None, label: str = LABEL
) -> Iterator[str]:
    r"""Yield the text of a file for `\input`: a `table` for each table, split where it is long.

    Parameters
    ----------
    tables : iterable of PaperTable
        One after the other.
    caption : str, optional
        Caption as LaTeX, in place of the default one. The legend follows.
    label : str
        Label of the first table. Further tables are numbered.
    """
    yield (
        f"% By sigdask {get_version()}: needs \\usepackage{{booktabs}} alone\n"
        "% BibTeX of what is cited: -o FILE.bib, or sigdask cite\n"
    )
    for number, table in enumerate(tables, 1):
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


def escape_breakable(text: str, pieces: re.Pattern[str]) -> str:
    r"""Return text with LaTeX's special characters escaped, which may be broken after each of its pieces.

    Examples
    --------
    >>> print(escape_breakable("tok:13a|smooth:exp", SIGNATURE_PIECES))
    tok:\allowbreak{}13a\textbar{}\allowbreak{}smooth:\allowbreak{}exp
    """
    return LINE_BREAK.join(map(escape, pieces.findall(text)))


def _escape_character(c: str) -> str:
    if c == "\N{ZERO WIDTH NON-JOINER}":
        return "{}"
    if c in ESCAPES:
        return ESCAPES[c]
    has_glyph = c in "‘’“”•…€™" or (c <= "\u017f" and c not in WITHOUT_GLYPH)
    return c if has_glyph else f"{UNKNOWN_CHARACTER}{c}}}{{{ord(c):04X}}}"


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


def _iter_float_lines(table: PaperTable, caption: str | None, label: str) -> Iterator[str]:
    """Yield the lines of a table, split into parts that fit on a page each."""
    title = escape_sentence(table.title) if caption is None else caption
    full_caption = " ".join([title, *map(escape_sentence, table.legend)])
    yield from (f"% note: {make_printable(note)}" for note in table.warnings)
    narrow, wide = ([*_split_columns(table.sections, line)] for line in (LINE_POINTS, PAGE_POINTS))
    if len(narrow) > len(wide):
        yield rf"\ifdim\textwidth>{PAGE_POINTS}pt % for two-column pages"
        yield from _iter_part_lines(table, wide, PAGE_POINTS, title, full_caption, label)
        yield r"\else % the same for lines of one-column pages, in more tables"
    yield from _iter_part_lines(table, narrow, LINE_POINTS, title, full_caption, label)
    if len(narrow) > len(wide):
        yield r"\fi"


def _iter_part_lines(
    table: PaperTable, selections: Sequence[Sequence[TableSection]], line: float, title: str, caption: str, label: str
) -> Iterator[str]:
    """Yield the lines of a table for each selection of its columns, split where it is longer than a page."""
    forms = [(_format_tabular(sections, line), sections) for sections in selections]
    parts = [(*form, rows) for form, sections in forms for rows in _split_pages(sections, form[-1])]
    for k, (form, size, opening, header, _, rows) in enumerate(parts):
        yield from (r"\clearpage", "") if k else ()
        environment = r"\sigdaskfloat" if form.endswith("pt") else form
        if form.endswith("pt"):
            yield rf"\edef\sigdaskfloat{{table\ifdim\columnwidth<{form}*\fi}} % table* if columns are narrow"
        yield from (rf"\begin{{{environment}}}", rf"\centering{size}")
        if k:
            yield from (r"\addtocounter{table}{-1}", rf"\caption{{{title} (continued)}}")
        else:
            yield from (rf"\caption{{{caption}}}", rf"\label{{{label}}}")
        yield from (opening, r"\toprule", header, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}")
        if k == len(parts) - 1 and table.method:
            yield from ("", r"\smallskip", rf"\parbox{{\linewidth}}{{\footnotesize\sloppy {_format_method(table)}}}")
        yield from (rf"\end{{{environment}}}", "")


def _format_tabular(sections: Sequence[TableSection], line: float) -> tuple[str, str, str, str, float | None]:
    """Return the environment (or the width of the table, if it decides), size, opening, header and points of names."""
    columns = sections[0].columns
    environment, size, long_header, name_points = _choose_form(sections, line)
    opening = rf"\begin{{tabular}}{{@{{}}{''.join(map(_format_alignment, columns))}@{{}}}}"
    header = _format_row(_format_header(column, long_header) for column in columns)
    return environment, size, opening, header, name_points


def _measure_columns(sections: Sequence[TableSection], points: float, gap: float, long_header: int) -> list[float]:
    """Return the width of each column in points, with the gaps on both sides."""
    columns = zip(*(section.columns for section in sections), strict=True)
    return [max(_measure(part, long_header) for part in parts) * points + 2 * gap for parts in columns]


def _measure(column: TableColumn, long_header: int) -> float:
    """Return the width of a column in digits. Headers stand above texts and marks."""
    header = max(map(_measure_text, _split_header(column, long_header)))
    marks = max(map(len, column.marks or [""]), default=0)
    signs = ("", "") if column.is_name else ("-", "+")  # a hyphen in a name, a minus sign in a number
    texts = max((_measure_text(text.replace(*signs)) for text in column.texts), default=0.0)
    return max(header, texts * (1.0 if column.bold is None else BOLD) + marks)


def _measure_text(text: str) -> float:
    return sum(CHARACTER_WIDTHS.get(c, CAPITAL if c.isupper() else 1.0) for c in text)


def _choose_form(sections: Sequence[TableSection], line: float) -> tuple[str, str, int, float | None]:
    """Return the environment, the largest font size that is likely to fit, its long headers, and the points of names.

    Names are broken, so their points are given, where the smallest type is too wide.
    """
    forms = (("table", COLUMN_POINTS, SIZES[:4]), ("", WIDE_COLUMN_POINTS, SIZES[2:4]), ("table*", line, SIZES))
    for environment, room, sizes in forms:
        for size, points, gap, long_header in sizes:
            widths = _measure_columns(sections, points, gap, long_header)
            width = sum(widths) - 2 * gap  # columns have no gap at both ends of the table
            if width <= room:
                return environment or f"{width:.0f}pt", size, long_header, None
    names = [width - 2 * gap for width, column in zip(widths, sections[0].columns, strict=True) if column.is_name]
    rest = line - (sum(widths) - sum(names))
    least = min(MIN_NAME_POINTS, max(names, default=0))
    return environment, size, long_header, max(rest / max(len(names), 1), least)


def _split_columns(sections: Sequence[TableSection], line: float) -> Iterator[list[TableSection]]:
    """Yield sections with as many columns of numbers as fit on a line; each repeats the columns of names."""
    columns = sections[0].columns
    names = [k for k, column in enumerate(columns) if column.is_name]
    numbers = [k for k, column in enumerate(columns) if not column.is_name]
    _, points, gap, long_header = SIZES[-1]
    widths = _measure_columns(sections, points, gap, long_header)
    room = line - sum(min(widths[k], MIN_NAME_POINTS + 2 * gap) for k in names)
    n_parts = max(math.ceil(len(numbers) / MAX_COLUMNS), math.ceil(sum(widths[k] for k in numbers) / max(room, 1)), 1)
    per_part = MAX_COLUMNS if n_parts * MAX_COLUMNS - len(numbers) < MAX_COLUMNS else -(-len(numbers) // n_parts)
    for start in range(0, max(len(numbers), 1), max(per_part, 1)):
        selected = sorted(names + numbers[start : start + per_part])
        yield [TableSection(section.heading, tuple(section.columns[k] for k in selected)) for section in sections]


def _split_pages(sections: Sequence[TableSection], name_points: float | None) -> Iterator[list[str]]:
    """Yield the table rows of each page; a section's heading is repeated where the section continues."""
    page: list[str] = []
    n_lines = 0
    for section in sections:
        heading = rf"\multicolumn{{{_count_columns(section.columns)}}}{{l}}{{\emph{{{escape(section.heading)}}}}} \\"
        lines_by_row = _count_lines(section, name_points)
        for k, (row, row_lines) in enumerate(zip(_format_rows(section, name_points), lines_by_row, strict=True)):
            if page and n_lines + row_lines > MAX_LINES:
                yield page
                page, n_lines = [], 0
            if section.heading and (k == 0 or not page):
                n_lines += 2 if page else 1
                page += [r"\addlinespace", heading] if page else [heading]
            page.append(row)
            n_lines += row_lines
    yield page


def _count_lines(section: TableSection, name_points: float | None) -> list[int]:
    """Return about how many lines each row takes, of which broken names leave a quarter empty."""
    if name_points is None:
        return [1] * len(section.columns[0].texts)
    _, points, *_ = SIZES[-1]
    names = zip(*(column.texts for column in section.columns if column.is_name), strict=True)
    return [math.ceil(max(map(len, row)) * points / (0.75 * name_points)) for row in names]


def _format_rows(section: TableSection, name_points: float | None) -> Iterator[str]:
    return map(_format_row, zip(*(_format_cells(column, name_points) for column in section.columns), strict=True))


def _format_row(cells: Iterable[str]) -> str:
    return rf"{' & '.join(cells)} \\"


def _format_cells(column: TableColumn, name_points: float | None) -> Iterator[str]:
    """Return the cells of a column with raised marks; each distinct text is formatted once."""
    format_name: Callable[[str], str] = escape
    if name_points is not None:
        box = rf"\parbox[t]{{{name_points:.0f}pt}}{{\sloppy\raggedright\strut "
        format_name = lambda text: rf"{box}{escape_breakable(text, NAME_PIECES)}\strut}}"  # noqa: E731
    texts = column.render(format_name, format_number, r"\textbf{{{}}}")
    if column.marks is None:
        return iter(texts)
    raised = {mark: mark and rf"\textsuperscript{{{escape(mark)}}}" for mark in dict.fromkeys(column.marks)}
    return map("{} & {}".format if _is_double(column) else "{}{}".format, texts, map(raised.__getitem__, column.marks))


def _is_double(column: TableColumn) -> bool:
    """Return whether a column's marks go into a separate column, so that its numbers align."""
    return column.marks is not None and not column.is_p


def _format_alignment(column: TableColumn) -> str:
    return "l" if column.is_name or column.is_p else "r@{}l" if _is_double(column) else "r"


def _count_columns(columns: Sequence[TableColumn]) -> int:
    return len(columns) + sum(map(_is_double, columns))


def _split_header(column: TableColumn, long_header: int) -> list[str]:
    """Return a long header in two lines, at a space, hyphen or @, if the texts of its column are shorter."""
    header = column.header
    if len(header) < long_header or len(header) <= max(map(len, column.texts), default=0):
        return [header]
    places = re.finditer(r" (?![%(↓])|(?<=\w[-@])(?=\w)" if long_header > 6 else r" |(?<=\w[-@])(?=\w)", header)
    return min(
        ([header[: m.start()], header[m.end() :]] for m in places),
        key=lambda parts: max(map(len, parts)),
        default=[header],
    )


def _format_header(column: TableColumn, long_header: int) -> str:
    lines = [MATHEMATICAL.get(line) or escape(line) for line in _split_header(column, long_header)]
    text = lines[0] if len(lines) == 1 else rf"\shortstack{{{lines[0]} \\ {lines[1]}}}"
    return rf"\multicolumn{{2}}{{c}}{{{text}}}" if _is_double(column) else text


def _format_method(table: PaperTable) -> str:
    first, *others = (escape_sentence(sentence) for sentence in table.method)
    if table.sources:
        keys = ",".join(table.sources)  # natbib's \cite is part of a sentence
        first = rf"{first.removesuffix('.')}~\ifdefined\citep\citep{{{keys}}}\else\cite{{{keys}}}\fi."
    return " ".join([first, *others])


def escape_sentence(sentence: str) -> str:
    """Return a sentence with LaTeX's special characters escaped, whose long words, such as signatures, are broken."""
    words = re.split(r"(\s+)", sentence)
    return "".join(escape(w) if len(w) < LONG_WORD else escape_breakable(w, SIGNATURE_PIECES) for w in words)
