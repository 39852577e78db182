"""Documents as HTML for notebooks; every name is escaped."""

from __future__ import annotations

from html import escape

from sigdask.report.document import Block, Column
from sigdask.text import make_printable


def render_html(table: Block) -> str:
    """Return a table, or a paragraph of lines, as HTML."""
    if isinstance(table, str):
        return "".join(f"<p>{_escape(line)}</p>" for line in table.splitlines())
    parts = [f"<p><strong>{_escape(table.title)}</strong></p>"] if table.title else []
    for section in table.sections:
        parts += [f"<p><em>{_escape(section.heading)}</em></p>"] if section.heading else []
        heads = "".join(f'<th scope="col"{_align(c)}>{_escape(c.header)}</th>' for c in section.columns)
        rows = zip(*map(_render_cells, section.columns), strict=True)
        body = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
        parts.append(f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>")
    below = [" ".join(texts) for texts in (table.list_sentences(), table.note) if texts]
    parts += [f"<p><small>{_escape(text)}</small></p>" for text in below]
    parts += [f"<p><small>Warning: {_escape(text)}</small></p>" for text in table.warnings]
    return "<div>" + "\n".join(parts) + "</div>"


def _escape(text: str) -> str:
    return escape(make_printable(text))


def _align(column: Column) -> str:
    return f' style="text-align: {"left" if column.is_name else "right"}"'


def _render_cells(column: Column) -> list[str]:
    texts = column.render(_escape, _escape, "<strong>{}</strong>")
    marks = [mark and f"<sup>{_escape(mark)}</sup>" for mark in column.marks or [""] * len(texts)]
    return [f"<td{_align(column)}>{text}{mark}</td>" for text, mark in zip(texts, marks, strict=True)]
