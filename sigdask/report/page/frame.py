"""The frame of the page: its template, its style and scripts, the data they read, and what may run.

A page is one file that requests nothing. Its policy allows the style and the scripts by their digests and pictures
that stand in the page, and nothing else: no `style` attribute, no `onclick`. What users named reaches it as text of
Jinja's autoescape or as JSON, which `sigdask.make` sets as `textContent`.

A part adds sections: `page(…, parts={"details": Part(shown, data)})`. Its files stand in this folder under its name:
`NAME.html` is included at its place with `shown` as the variable NAME, `NAME.css` and `NAME.js` are added to the
page's own, and `data` is what its script gets from `sigdask.data("NAME")`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from sigdask.report.tables.cells import how, interval_cell, letters_text, p_cell
from sigdask.statistics.rounding import score_text, signed
from sigdask.text import as_line

UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""What could end a script, or a line of one, by its escape in JSON."""


@dataclass(frozen=True, slots=True)
class PagePart:
    """What another room adds to the page.

    Attributes
    ----------
    shown : object
        What the part's template makes HTML of.
    data : object
        What its script reads, as JSON has it; None for nothing.
    """

    shown: Any
    data: Any = None


def framed(context: Mapping[str, Any], data: Mapping[str, Any], parts: Mapping[str, PagePart]) -> str:
    """Return the page.

    Parameters
    ----------
    context : mapping of str to object
        The variables of `page.html`.
    data : mapping of str to object
        What scripts read, by name.
    parts : mapping of str to PagePart
        By name, that of their files.
    """
    styles, scripts = _sources("css", parts), _sources("js", parts)
    held = {**data, **{name: part.data for name, part in parts.items() if part.data is not None}}
    template = _environment().get_template("page.html")
    text: str = template.render(
        {
            **context,
            **{name: part.shown for name, part in parts.items()},
            "parts": tuple(parts),
            "policy": policy(styles, scripts),
            "styles": [_markup(text) for text in styles],
            "scripts": [_markup(text) for text in scripts],
            "data": {name: embedded(value) for name, value in held.items()},
        }
    )
    return text


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return the content security policy that allows these and pictures in the page alone."""
    allowed = {"style-src": styles, "script-src": scripts}
    sources = (f"{kind} {' '.join(map(_digest, texts))}" for kind, texts in allowed.items() if texts)
    return "; ".join(["default-src 'none'", "img-src data:", *sources])


def embedded(value: Any) -> Any:
    r"""Return JSON that stands within a script.

    Examples
    --------
    >>> print(embedded({"system": "</script>"}))
    {"system":"\u003c/script\u003e"}
    """
    text = as_line(value)
    for character, escape in UNSAFE.items():
        text = text.replace(character, escape)
    return _markup(text)


def _sources(kind: str, parts: Mapping[str, PagePart]) -> list[str]:
    """Return the files of a kind: the page's own, and those of its parts that have one."""
    folder = files(__package__)
    own = (folder.joinpath(f"{name}.{kind}") for name in ("page", *parts))
    return [file.read_text(encoding="utf-8") for file in own if file.is_file()]


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _markup(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  # files of this folder, and JSON that is escaped


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("sigdask.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "p": p_cell,
        "sure": interval_cell,
        "score": score_text,
        "signed": signed,
        "how": how,
        "letters": letters_text,
    }
    return environment
