"""Tests that the committed figures of the documents are what their scripts make."""

import importlib
import json
import re
import xml.etree.ElementTree as ET

import pytest

pytestmark = pytest.mark.slow


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


def test_the_exchanges_of_the_picture_of_chance_give_the_exact_p(pictures):
    svg = pictures.chance().svg.decode()
    data = json.loads(re.search(r"<dc:description>(.*?)</dc:description>", svg)[1].replace("&quot;", '"'))
    p = 2 * 0.01477569  # F1 of Yeh's example, two-sided: sums over all arrangements in fractions (docs/yeh.md)
    assert abs(data["n_extreme"] / data["of"] - p) < 4 * (p * (1 - p) / data["of"]) ** 0.5
