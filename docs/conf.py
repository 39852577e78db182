"""Sphinx configuration of the site: `sphinx-build -W -n -c docs . site`, first page site/index.html.

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
release = version = from_code.get_release()
html_title = f"sigdask {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
root_doc = "docs/index"
WITH_CONTENTS = {root_doc, "docs/formats", "docs/statistics", "docs/error-rates", "deploy/README"}
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


TITLED_BLOCK = re.compile(r'^```(\w+) title="([^"]+)"$', re.MULTILINE)
HIGHLIGHTED = {"python", "toml", "json"}


def build_contents(text: str) -> str:
    r"""Return hidden tables of contents from the lists and tables of links in each section.

    Examples
    --------
    >>> print(build_contents("## Start\n- [First](a.md): how\n"))
    ```{toctree}
    :hidden:
    :caption: Start
    <BLANKLINE>
    First <a.md>
    ```
    """
    toctrees = []
    for section in re.split(r"^##? ", text, flags=re.MULTILINE)[1:]:
        pages = re.findall(r"^(?:-|\|) \[([^\]]+)\]\(([^)#]+\.md)\)", section, re.MULTILINE)
        if pages:
            entries = "\n".join(f"{title} <{page}>" for title, page in pages)
            toctrees.append(f"```{{toctree}}\n:hidden:\n:caption: {section.splitlines()[0]}\n\n{entries}\n```")
    return "\n\n".join(toctrees)


def format_caption(block: re.Match[str]) -> str:
    """Return the first lines of a Sphinx code block with the file's name as caption."""
    return f"```{{code-block}} {block[1] if block[1] in HIGHLIGHTED else 'text'}\n:caption: {block[2]}\n"


def read(_: Sphinx, page: str, source: list[str]) -> None:
    """Fill in generated text and contents, and convert titled blocks to captions."""
    source[0] = TITLED_BLOCK.sub(format_caption, from_code.fill_places(source[0]))
    if page in WITH_CONTENTS:
        source[0] += f"\n{build_contents(source[0])}\n"


def write_redirect(app: Sphinx, failed: Exception | None) -> None:
    """Write site/index.html, which redirects to the first page."""
    if not failed:
        page = f'<!DOCTYPE html><html lang="en"><title>{project}</title>'
        target = f"{root_doc}.html"
        page += f'<meta http-equiv="refresh" content="0; url={target}"><a href="{target}">{project}</a></html>\n'
        (Path(app.outdir) / "index.html").write_text(page)


def improve_accessibility(_: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """Set heading levels in the contents, and let the keyboard scroll wide blocks and tables."""
    contents_ = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = contents_.replace('role="heading"', 'role="heading" aria-level="2"')
    body = context.get("body", "").replace("<pre>", '<pre tabindex="0">')
    context["body"] = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the functions of this file to Sphinx."""
    app.connect("source-read", read)
    app.connect("html-page-context", improve_accessibility, priority=900)  # after the theme's own
    app.connect("build-finished", write_redirect)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
