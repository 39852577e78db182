"""Tests that the committed figures of the documents are what their scripts make."""

import importlib
import json
import os
import re
import xml.etree.ElementTree as ET

import pytest
from command import call_sigdask
from scipy import stats


@pytest.fixture(scope="module")
def figures():
    return importlib.import_module("docs.make_figures")


@pytest.fixture(scope="module")
def found(figures):
    return {shape.name: shape for shape in figures.shapes()}


def test_normal_counts_make_recall_normal_and_neither_precision_nor_f(found):
    # Van Asch's illustration: 30,000 runs, TP 400 +- 80 of 500, FP 60 +- 15
    assert found["recall"].p_value > 0.05
    assert found["precision"].p_value < 1e-200
    assert found["F"].p_value < 1e-200
    assert (found["recall"].mean, found["recall"].sd) == pytest.approx((0.8, 0.16), abs=0.005)
    assert abs(found["recall"].skewness) < 0.05
    assert found["precision"].skewness < -0.5
    assert found["F"].skewness < -0.4


def test_other_tests_of_normality_agree(figures):
    scores = figures.scores()
    verdicts = {name: stats.jarque_bera(values).pvalue > 0.01 for name, values in scores.items()}
    assert verdicts == {"recall": True, "precision": False, "F": False}
    distances = {name: stats.kstest(stats.zscore(values), "norm").pvalue > 0.01 for name, values in scores.items()}
    assert distances == {"recall": True, "precision": False, "F": False}


def test_the_committed_figure_holds_the_counts_that_the_script_makes(figures, found):
    root = ET.parse(figures.FIGURE).getroot()
    [description] = [node.text for node in root.iter() if node.tag.endswith("}description")]
    data = json.loads(description)
    assert list(data) == ["recall", "precision", "F"]
    for name, shape in found.items():
        assert data[name]["edges"] == pytest.approx(shape.edges, rel=1e-9)
        assert data[name]["counts"] == list(shape.counts)
    assert figures.FIGURE.stat().st_size < 60_000


def test_the_page_holds_the_table_that_the_script_makes(figures, found):
    page = figures.PAGE.read_text(encoding="utf-8")
    table = page.split(figures.BEGIN)[1].split(figures.END)[0].strip()
    assert table == "\n".join(figures.table([*found.values()]))
    assert f"]({os.path.relpath(figures.FIGURE, figures.PAGE.parent)})" in page


def test_the_figure_is_drawn_alike_each_time(figures, found, tmp_path):
    for name in ("one.svg", "two.svg"):
        figures.draw([*found.values()], tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


@pytest.fixture(scope="module")
def pictures():
    return importlib.import_module("docs.make_pictures")


@pytest.mark.parametrize("name", ["chance", "forest"])
def test_a_picture_of_the_pages_holds_the_numbers_that_its_script_finds(pictures, name):
    picture = getattr(pictures, name)()
    numbers, committed = (
        [node.text for node in ET.fromstring(svg).iter() if node.tag.endswith("}description")]
        for svg in (picture.svg, picture.path.read_bytes())
    )
    assert numbers == committed != []


def test_the_first_pages_say_of_their_pictures_what_these_show_and_answer_as_the_program_does(pictures):
    texts = [page.read_text() for page in pictures.PAGES]
    assert texts == [pictures.update_page(page) for page in texts]
    assert [pictures.forest().alt in page for page in texts] == [True, True, False]
    assert [f"\n> {pictures.answer()}\n" in page for page in texts] == [True, True, False]
    assert [pictures.chance().alt in page for page in texts] == [False, False, True]


def test_the_command_of_the_first_pages_prints_their_answer(pictures):
    commands = [
        re.findall(r"^ +sigdask (compare combined.txt.*)$", re.sub(r"\\\n\s*", "", page.read_text()), re.MULTILINE)
        for page in pictures.PAGES[:2]
    ]
    assert len({*commands[0], *commands[1]}) == 1
    result = call_sigdask(*commands[0][0].split(), cwd=pictures.EXAMPLE)
    assert result.stdout.startswith(f"{pictures.answer()}\n")


def test_the_exchanges_of_the_picture_of_chance_give_the_exact_p(pictures):
    svg = pictures.chance().svg.decode()
    data = json.loads(re.search(r"<dc:description>(.*?)</dc:description>", svg)[1].replace("&quot;", '"'))
    p = 2 * 0.01477569  # F1 of Yeh's example, two-sided: sums over all arrangements in fractions (docs/yeh.md)
    assert abs(data["n_extreme"] / data["of"] - p) < 4 * (p * (1 - p) / data["of"]) ** 0.5
