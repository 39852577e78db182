"""How the site is built of these pages: `sphinx-build -W -n -c docs . site`, whose first page is site/index.html.

Pages are the Markdown files of the repository as they stand, so that a link between two of them is the same one on the
site and in any view of the repository. Two things are added while they are read: `from_code` fills places that say so,
and the sections of docs/index.md become the contents.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))

import from_code  # noqa: E402

project = "sigdask"
author = "the authors of sigdask"
release = version = from_code.version()
html_title = f"sigdask {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
root_doc = "docs/index"
WITH_CONTENTS = {root_doc, "deploy/README"}
include_patterns = [
    "docs/**.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/*.md", "deploy/**.md",
]  # fmt: skip
exclude_patterns = [".*", "**/.*", "sigdask", "tests", "build", "dist", "site", "benchmarks/results-scheduler.md"]

myst_heading_anchors = 3
smartquotes = False
nitpick_ignore_regex = [("py:.*", r".*")]  # annotations name what other libraries and the inside of this one have

autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "furo"
html_static_path, html_css_files = ["_static"], ["site.css"]
html_copy_source = html_show_sourcelink = False
html_show_search_summary = False  # it would fetch pages, which browsers refuse where they are files
html_show_sphinx = html_show_copyright = False
html_permalinks_icon = "#"
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"


TITLED = re.compile(r'^```(\w+) title="([^"]+)"$', re.MULTILINE)
COLOURED = {"python", "toml", "json"}


def contents(text: str) -> str:
    r"""Return hidden tables of contents: a section's lists and tables of links are a part of them.

    Examples
    --------
    >>> print(contents("## Start\n- [First](a.md): how\n"))
    ```{toctree}
    :hidden:
    :caption: Start
    <BLANKLINE>
    First <a.md>
    ```
    """
    found = []
    for section in re.split(r"^##? ", text, flags=re.MULTILINE)[1:]:
        pages = re.findall(r"^(?:-|\|) \[([^\]]+)\]\(([^)#]+\.md)\)", section, re.MULTILINE)
        if pages:
            listed = "\n".join(f"{title} <{page}>" for title, page in pages)
            found.append(f"```{{toctree}}\n:hidden:\n:caption: {section.splitlines()[0]}\n\n{listed}\n```")
    return "\n\n".join(found)


def captioned(block: re.Match[str]) -> str:
    """Return the beginning of a block that is a file, as Sphinx has it."""
    return f"```{{code-block}} {block[1] if block[1] in COLOURED else 'text'}\n:caption: {block[2]}\n"


def read(_: Sphinx, page: str, source: list[str]) -> None:
    """Fill what the program itself says, and the contents; a block that is a file has its name above it."""
    source[0] = TITLED.sub(captioned, from_code.filled(source[0]))
    if page in WITH_CONTENTS:
        source[0] += f"\n{contents(source[0])}\n"


def lead_in(app: Sphinx, failed: Exception | None) -> None:
    """Write the page that leads from the site's folder to its first page."""
    if not failed:
        page = f'<!DOCTYPE html><html lang="en"><title>{project}</title>'
        to = f"{root_doc}.html"
        page += f'<meta http-equiv="refresh" content="0; url={to}"><a href="{to}">{project}</a></html>\n'
        (Path(app.outdir) / "index.html").write_text(page)


def for_all(_: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """Give the contents' headings their level, and let a keyboard scroll wide blocks, as assistive programs need."""
    contents_ = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = contents_.replace('role="heading"', 'role="heading" aria-level="2"')
    body = context.get("body", "").replace("<pre>", '<pre tabindex="0">')
    context["body"] = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx."""
    app.connect("source-read", read)
    app.connect("html-page-context", for_all, priority=900)  # after the theme's own
    app.connect("build-finished", lead_in)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
