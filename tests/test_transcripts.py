"""Tests that the pages show what the program prints now, and of the checker of these transcripts."""

import json
import sys
from types import ModuleType

import pytest

from docs import transcripts
from sigdask.io import addresses

PAGES = transcripts.find_pages()


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(transcripts.ROOT)) for page in PAGES])
def test_a_page_shows_what_its_commands_print(page):
    transcripts.check_page(page.read_text("utf-8"))


@pytest.mark.parametrize("notebook", transcripts.find_notebooks(), ids=lambda path: path.name)
def test_a_notebook_runs_and_shows_what_its_cells_give(notebook):
    stored = notebook.read_text("utf-8")
    assert transcripts.renew_notebook(stored) == stored
    assert stored.count('"output_type"') >= 4


def test_a_cell_prints_and_gives_the_value_of_its_last_line():
    cell = {"cell_type": "code", "source": ["x = 2\n", "print('a')\n", "x + 1"], "outputs": []}
    [renewed] = json.loads(transcripts.renew_notebook(json.dumps({"cells": [cell]})))["cells"]
    assert [output.get("text") or output["data"]["text/plain"] for output in renewed["outputs"]] == [["a\n"], ["3"]]
    with pytest.raises(ZeroDivisionError):
        transcripts.renew_notebook(json.dumps({"cells": [cell | {"source": ["1 / 0"]}]}))


def build_page(*lines, comment="", info="console"):
    return "\n".join(["# A page", comment, f"```{info}", *lines, "```", "An end.", ""])


SCORES_BLOCK = """
```csv title="data/scores.csv"
item,x,y
a,1,2
b,2,1
c,3,1
```
"""


def test_another_output_is_told_with_what_the_program_prints():
    with pytest.raises(transcripts.PageError, match=r"(?s)make_pages.*-three\n\+two"):
        transcripts.check_page(build_page("$ printf 'one\\ntwo\\n'", "one", "three"))


def test_a_failure_is_no_output():
    with pytest.raises(transcripts.PageError, match="(?s)none.csv: no such file.*status 2"):
        transcripts.check_page(build_page("$ sigdask compare none.csv", "sigdask: error: none.csv: no such file"))


def test_runs_of_all_blocks_are_of_one_day():
    transcripts.check_page(build_page("$ date -u +%F", transcripts.DAY))


def test_a_status_that_is_shown_may_be_any():
    transcripts.check_page(build_page("$ sh -c 'echo no; exit 3'", "no", "$ echo $?", "3"))
    with pytest.raises(transcripts.PageError):
        transcripts.check_page(build_page("$ sh -c 'echo no; exit 3'", "no", "$ echo $?", "1"))


def test_commands_share_a_folder_with_the_files_of_the_page():
    page = build_page("$ head -1 data/scores.csv > top", "$ cat top", "item,x,y", comment=SCORES_BLOCK)
    transcripts.check_page(page + build_page("$ ls", "data", "top"))


def test_a_folder_that_is_gone_to_holds_from_then_on():
    page = build_page("$ cd data", "$ ls", "scores.csv", comment=SCORES_BLOCK)
    transcripts.check_page(page + build_page("$ cd ..", "$ ls", "data"))


def test_a_module_of_the_page_is_meant_though_one_of_its_name_was_used_before(tmp_path, monkeypatch):
    (tmp_path / "own_metric.py").write_text("none = 0\n")
    addresses.add_folder(tmp_path)
    monkeypatch.setitem(sys.modules, "own_metric", ModuleType("own_metric"))
    module = '\n```python title="own_metric.py"\ndef most(outputs, gold):\n    return max(outputs)\n```\n'
    command = "$ sigdask compare data/scores.csv -m own_metric:most -q"
    transcripts.check_page(build_page(command, "\N{HORIZONTAL ELLIPSIS}", comment=SCORES_BLOCK + module))


def test_files_of_the_project_are_put_where_they_are_asked_for():
    comment = "<!-- files: relations.tsv=sigdask/examples/yeh2000.tsv LICENSE -->\n<!-- run: touch made -->"
    transcripts.check_page(build_page("$ ls", "LICENSE", "made", "relations.tsv", comment=comment))


def test_the_program_writes_as_on_a_terminal_and_into_pipes_as_into_pipes():
    command = "sigdask compare sigdask/examples/yeh2000.tsv \\\n    -m recall --trials 100"
    files = "<!-- files: sigdask/examples/yeh2000.tsv -->"
    page = transcripts.renew_page(
        build_page(f"$ {command}", f"$ {command} -q --json - | grep -c n_extreme", comment=files)
    )
    transcripts.check_page(page)
    assert max(map(len, page.splitlines())) <= transcripts.COLUMNS
    assert "sigdask: read as responses: 2 systems, 160 items" in page.splitlines()
    count = page.partition("grep -c n_extreme\n")[2].partition("\n")[0]
    assert int(count) >= 1


def test_what_varies_is_kept_as_it_was():
    comment = r"<!-- varies: \d+ ns -->"
    page = build_page("$ echo took 7 ns", "took 5 ns", comment=comment)
    assert transcripts.renew_page(page) == page
    with pytest.raises(transcripts.PageError):
        transcripts.check_page(build_page("$ echo took 7 ms", "took 5 ns", comment=comment))


def test_a_line_that_is_new_in_nothing_but_what_varies_stays_when_others_change():
    page = build_page("$ printf 'took 7 ns\\ntwo\\n'", "took 5 ns", "one", comment=r"<!-- varies: \d+ ns -->")
    assert transcripts.renew_page(page) == page.replace("one\n", "two\n")


@pytest.mark.parametrize("shown", [["1", "…", "9"], ["…", "9"], ["1", "…"], ["…"], ["1", "…", "4", "5", "…", "9"]])
def test_lines_left_out_may_be_any(shown):
    page = build_page("$ seq 9", *shown)
    transcripts.check_page(page)
    assert transcripts.renew_page(page) == page


def test_renewed_output_leaves_out_what_was_left_out():
    page = build_page("$ seq 20 29", "0", "…", "27", "28 or so", "…", "9")
    assert transcripts.renew_page(page) == build_page("$ seq 20 29", "20", "…", "27", "28", "…", "29")


def test_blocks_of_other_languages_are_left_alone():
    page = build_page("$ false", info="bash")
    transcripts.check_page(page)
    assert transcripts.renew_page(page) == page


SCRIPT_LINES = """
```python title="shown.py"
import sys

print(sys.argv, __name__)
print("to standard error", file=sys.stderr)
```

```python title="fails.py"
1 / 0
```
"""


def test_scripts_of_the_page_print_as_in_a_process_of_their_own():
    shown = ["['shown.py'] __main__", "to standard error"]
    transcripts.check_page(build_page("$ python shown.py", *shown, comment=SCRIPT_LINES))
    with pytest.raises(transcripts.PageError, match="(?s)ZeroDivisionError.*ended with status 1"):
        transcripts.check_page(build_page("$ python fails.py", comment=SCRIPT_LINES))
