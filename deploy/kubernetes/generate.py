"""Write daskcluster.yaml from the program's own manifest, so that the two cannot differ."""

import sys

import yaml

from sigdask.execution.clusters.description import ClusterDescription
from sigdask.execution.clusters.kubernetes import build_manifest

IMAGE = "registry.example.org/sigdask:0.3.0"
HEAD = """\
# A dask cluster for sigdask, kept by the dask-kubernetes operator; every connection is mutual TLS.
# Change: image, namespace, replicas, memory. Certificates: the Secret `sigdask` (README.md).
# Written by deploy/kubernetes/generate.py.
"""


def text() -> str:
    """Return the content of daskcluster.yaml."""
    options = {"image": IMAGE, "threads": 1, "memory": "2Gi"}
    manifest = build_manifest("sigdask", "sigdask", ClusterDescription("kubernetes", workers=4, options=options))
    return HEAD + yaml.safe_dump(manifest, sort_keys=False, width=120)


if __name__ == "__main__":
    sys.stdout.write(text())
