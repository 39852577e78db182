"""What several tests need: the real data, where they are beside the project, the oracles and Yeh's example."""

import json
from pathlib import Path

import pytest

from sigdask.counts import Counts
from sigdask.formats import read

ROOT = Path(__file__).parent.parent
YEH = ROOT / "sigdask" / "examples" / "yeh2000.tsv"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data sets are not beside the project (../shared/data)")
    return folder


@pytest.fixture(scope="session")
def yeh() -> Counts:
    return read(YEH)


@pytest.fixture(scope="session")
def oracles():
    text = (ROOT / "tests" / "data" / "oracles.json").read_text(encoding="utf-8")
    return {o["name"]: o for o in json.loads(text)}
