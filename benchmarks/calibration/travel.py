"""Send the benchmark modules to remote workers, whose installed packages lack them."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def send_modules(cluster: Any) -> None:
    """Upload the modules of `benchmarks` to workers that may be other machines."""
    if not cluster.remote:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sigdask-benchmarks.zip"
        with zipfile.ZipFile(path, "w") as packed:
            for module in sorted((ROOT / "benchmarks").rglob("*.py")):
                packed.write(module, module.relative_to(ROOT))
        cluster.client.upload_file(str(path))
