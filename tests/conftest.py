"""What several tests need: the shared real data and Yeh's example."""

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
    file = ROOT.parent / "shared" / "oracles.json"
    if not file.is_file():
        pytest.skip("the oracles are not beside the project (../shared/oracles.json)")
    return {o["name"]: o for o in json.loads(file.read_text())}
