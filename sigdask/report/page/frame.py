"""The frame of the page: its template, style, scripts, embedded data, content security policy and provenance.

A page is one file that requests nothing. Its policy allows its own style and scripts by their digests, and embedded
pictures, but no `style` attribute and no `onclick`. Names from users are escaped by Jinja, or are JSON, which
`sigdask.make` sets as `textContent`. The provenance of results has the digests of files and the versions of packages.

A part adds a section: `render_page(…, parts={"details": PagePart(shown, data)})`. The files of part NAME stand in this
folder. `NAME.html` is included at its place with `shown` as the variable NAME, `NAME.css` and `NAME.js` are added to
the page's own, and the script gets `data` from `sigdask.data("NAME")`.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from sigdask.randomization.stream import SCHEME
from sigdask.text import as_json_line, is_url, make_printable

UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Characters that could end a script, or one of its lines, with their escapes in JSON."""


@dataclass(frozen=True, slots=True)
class PagePart:
    """A section that another module adds to the page.

    Attributes
    ----------
    shown : object
        Value for the part's HTML template.
    data : object
        JSON value for its script, or None.
    """

    shown: Any
    data: Any = None


def render_frame(
    context: Mapping[str, Any], data: Mapping[str, Any], parts: Mapping[str, PagePart], name: str = "page.html"
) -> str:
    """Return the complete page as HTML.

    Parameters
    ----------
    context : mapping of str to object
        The variables of `page.html`.
    data : mapping of str to object
        Values for scripts, by name.
    parts : mapping of str to PagePart
        Parts by name, which is that of their files.
    name : str
        File name of the template in this folder.
    """
    styles, scripts = _read_sources("css", parts), _read_sources("js", parts)
    all_data = {**data, **{name: part.data for name, part in parts.items() if part.data is not None}}
    template = _build_environment().get_template(name)
    text = template.render(
        {
            **context,
            **{name: part.shown for name, part in parts.items()},
            "parts": tuple(parts),
            "policy": build_policy(styles, scripts),
            "styles": [_mark_safe(text) for text in styles],
            "scripts": [_mark_safe(text) for text in scripts],
            "data": {name: embed_json(value) for name, value in all_data.items()},
        }
    )
    return str(text)


def build_policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return a content security policy that allows only these styles and scripts, and inline pictures."""
    allowed = {"style-src": styles, "script-src": scripts}
    sources = (f"{kind} {' '.join(map(_hash_text, texts))}" for kind, texts in allowed.items() if texts)
    return "; ".join(["default-src 'none'", "img-src data:", *sources])


def embed_json(value: Any) -> Any:
    r"""Return a value as JSON that is safe within a script element.

    Examples
    --------
    >>> print(embed_json({"system": "</script>"}))
    {"system":"\u003c/script\u003e"}
    """
    text = as_json_line(value)
    for character, escape in UNSAFE.items():
        text = text.replace(character, escape)
    return _mark_safe(text)


def _read_sources(kind: str, parts: Mapping[str, PagePart]) -> list[str]:
    """Return the texts of the style sheets or scripts of the page and of its parts."""
    folder = files(__package__)
    paths = (folder.joinpath(f"{name}.{kind}") for name in ("page", *parts))
    return [file.read_text(encoding="utf-8") for file in paths if file.is_file()]


def _hash_text(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _mark_safe(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  # files of this folder, and JSON that is escaped


@cache
def _build_environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("sigdask.report", "page"),
        autoescape=True,
        # without control characters and marks of direction
        finalize=lambda value: make_printable(value, keep="\n") if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def get_versions(*extra_packages: str) -> dict[str, str]:
    """Return the versions of sigdask, its numerical libraries, Python, and `extra_packages`."""
    packages = {name: version(name) for name in ("sigdask", "numpy", "scipy", "numba", *extra_packages)}
    return {**packages, "python": platform.python_version(), "scheme": str(SCHEME)}


def hash_paths(paths: Iterable[Path]) -> dict[str, str]:
    """Return the digest of each path, with the path as text for its key."""
    return {format_path(path): hash_path(path) for path in paths}


def format_path(path: Path) -> str:
    """Return a path as text without surrogate escapes, so that every file format can hold it."""
    return str(path).encode(errors="surrogateescape").decode(errors="backslashreplace")


def hide_folders(path: str, home: Path) -> str:
    """Return a path relative to a folder, or only the end of one outside it: pages show no folders of the machine."""
    relative = path if is_url(path) else os.path.relpath(path, home)
    return "/".join(["…", *Path(path).parts[-2:]]) if relative.startswith("..") else relative


def hash_path(path: Path) -> str:
    """Return the SHA-256 of a file, or one of all names and contents in a folder; "" if the path is missing."""
    if not path.is_dir():
        return _hash_file(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    listing = "".join(f"{_hash_file(file)} {format_path(file.relative_to(path))}\n" for file in files)
    return hashlib.sha256(listing.encode()).hexdigest()


def _hash_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
