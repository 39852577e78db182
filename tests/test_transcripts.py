"""Tests that the pages show what the program prints now."""

import pytest

from docs import make_pictures, transcripts

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


@pytest.mark.parametrize("page", make_pictures.PAGES, ids=lambda path: path.name)
def test_a_page_quotes_the_answer_and_describes_the_pictures_of_the_example(page):
    text = page.read_text("utf-8")
    assert make_pictures.update_page(text) == text
