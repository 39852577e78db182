"""Tests that the pages show what the program prints now, and of the checker of these transcripts."""

import pytest

from docs import transcripts

pytestmark = pytest.mark.slow
PAGES = transcripts.find_pages()


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(transcripts.ROOT)) for page in PAGES])
def test_a_page_shows_what_its_commands_print(page):
    transcripts.check_page(page.read_text("utf-8"))


@pytest.mark.parametrize("notebook", transcripts.find_notebooks(), ids=lambda path: path.name)
def test_a_notebook_runs_and_shows_what_its_cells_give(notebook):
    stored = notebook.read_text("utf-8")
    assert transcripts.renew_notebook(stored) == stored
    assert stored.count('"output_type"') >= 4


def build_page(*lines, comment="", info="console"):
    return "\n".join(["# A page", comment, f"```{info}", *lines, "```", "An end.", ""])


def test_another_output_is_told_with_what_the_program_prints():
    with pytest.raises(transcripts.PageError, match=r"(?s)make_pages.*-three\n\+two"):
        transcripts.check_page(build_page("$ printf 'one\\ntwo\\n'", "one", "three"))


def test_a_failure_is_no_output():
    with pytest.raises(transcripts.PageError, match="(?s)none.csv: no such file.*status 2"):
        transcripts.check_page(build_page("$ sigdask compare none.csv", "sigdask: error: none.csv: no such file"))
