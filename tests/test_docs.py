"""Tests that the documents are complete: formats, real data sets and kinds of notes."""

import re
import sys
from pathlib import Path
from typing import get_args

from sigdask.formats import FORMATS
from sigdask.results.notes import NoteKind

DOCS = Path(__file__).parent.parent / "docs"
NOT_SYSTEMS = {
    "assoc_krennppv", "ir_trec_eval_tests",  # no systems to compare; tests of another program
    "parsing_conll18", "parsing_evalb", "relations_brat", "regression_wmtqe22",  # their official metrics are not built
    "ratings_wmt22_da", "meta_wmt21ted_en-de",  # standardised ratings by worker; metrics held against people
}  # fmt: skip


def test_every_format_has_a_section():
    pages = [path.read_text() for path in (DOCS / "formats").glob("*.md")]
    headings = {
        word for page in pages for line in re.findall(r"^## (.+)$", page, re.MULTILINE) for word in line.split()
    }
    assert set(FORMATS) <= headings


def test_every_kind_of_note_stands_in_the_table():
    page = (DOCS / "statistics" / "notes.md").read_text()
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE) == list(get_args(NoteKind))


def test_every_set_of_real_data_has_its_official_scores(shared_data):
    page = (DOCS / "formats" / "official-scores.md").read_text()
    table = page[page.index(": begin -->") : page.index(": end -->")]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][2:]
    assert {row[0].removeprefix("| ") for row in rows} == {
        p.name for p in shared_data.iterdir() if p.is_dir()
    } - NOT_SYSTEMS
    assert all(re.match(r"\d+ systems: \d+ scores? equal", row[2]) for row in rows)


def test_the_readmes_python_runs_with_what_its_install_brings(monkeypatch, capsys):
    root = Path(__file__).parent.parent
    blocks = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    [code] = [block for block in blocks if block.startswith("import sigdask\n\ncounts = ")]
    monkeypatch.chdir(root)
    for absent in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, absent, None)
    exec(code, {})
    assert "I  II  recall" in capsys.readouterr().out


def test_the_pages_on_design_name_what_is_there():
    root = Path(__file__).parent.parent
    pages = "".join((root / "docs" / f"{name}.md").read_text() for name in ("design", "decisions"))
    page = re.sub(r"```.*?```", "", pages, flags=re.DOTALL)
    files = [path for part in ("sigdask", "tests", "benchmarks", "docs") for path in (root / part).rglob("*.*")]
    paths = {f"/{path.relative_to(root).as_posix()}" for path in files}
    code = "\n".join(path.read_text() for path in files if path.suffix in {".py", ".js", ".html", ".css"})
    words = {*re.findall(r"\w+", code)}
    names = {name.rstrip("/") for name in re.findall(r"`([\w./]+)`", page) if re.search(r"[a-z][._/]\w", name)}
    ends = ("", ".py", "/__init__.py")
    missing = [
        name
        for name in names
        if not any(path.endswith(f"/{name}{end}") for path in paths for end in ends)
        and re.split(r"[./]", name)[-1] not in words
    ]
    assert missing == []
