"""Tests of the files in deploy/ against real schemas and the program itself, without an engine."""

import base64
import importlib.util
import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from cluster.hosts import write_certificates
from conftest import ROOT
from distributed.cli import dask_scheduler, dask_worker

from sigdask.errors import UnfinishedError
from sigdask.execution.clusters import read
from sigdask.execution.clusters.description import as_allocation, parse_description
from sigdask.execution.clusters.kubernetes import KubernetesCluster
from sigdask.execution.clusters.settings import environment

yaml = pytest.importorskip("yaml")
DEPLOY = ROOT / "deploy"
KUBERNETES_FILES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))


def load_documents(path):
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


@pytest.fixture(scope="module")
def crd():
    """Return the operator's schema of DaskCluster, closed so that an unknown key is an error."""
    package_spec = importlib.util.find_spec("dask_kubernetes")
    if package_spec is None:
        pytest.skip("dask-kubernetes is not installed: its schemas are needed")
    path = Path(package_spec.origin).parent / "operator/deployment/helm/dask-kubernetes-operator/crds/daskcluster.yaml"
    version = yaml.safe_load(path.read_text())["spec"]["versions"][0]
    schema = close_schema(version["schema"]["openAPIV3Schema"])
    schema["properties"] |= {key: {} for key in ("apiVersion", "kind", "metadata")}
    return schema


def close_schema(schema):
    """Refuse unknown keys in a schema, since the API server drops them."""
    if isinstance(schema, list):
        return [close_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: close_schema(value) for key, value in schema.items()}
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if isinstance(schema.get("properties"), dict) and not is_open:
        schema["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        schema["type"] = ["integer", "string"]
    return schema


@pytest.mark.slow
def test_the_daskcluster_is_one_the_operator_takes(crd):
    jsonschema = pytest.importorskip("jsonschema")
    [manifest] = load_documents(DEPLOY / "kubernetes" / "daskcluster.yaml")
    jsonschema.validate(manifest, crd)
    manifest["spec"]["worker"]["replica"] = 2
    with pytest.raises(jsonschema.ValidationError, match="replica"):
        jsonschema.validate(manifest, crd)


@pytest.mark.parametrize("path", KUBERNETES_FILES, ids=[path.name for path in KUBERNETES_FILES])
def test_kubernetes_objects_are_valid_in_the_strict_schemas(path):
    checker = pytest.importorskip("kubernetes_validate")
    for document in load_documents(path):
        if document["apiVersion"].startswith("kubernetes.dask.org"):
            for role in ("scheduler", "worker"):
                pod = {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "x"},
                    "spec": document["spec"][role]["spec"],
                }
                checker.validate(pod, "1.31", strict=True)
        else:
            checker.validate(document, "1.31", strict=True)


def test_the_compose_file_is_one_that_compose_takes():
    compose_spec = pytest.importorskip("compose_spec")
    text = (DEPLOY / "docker" / "compose.yaml").read_text()
    table = yaml.safe_load(text)
    compose_spec.models.ComposeSpecification.model_validate({k: v for k, v in table.items() if not k.startswith("x-")})
    assert not any("ports" in service for service in table["services"].values())
    service_environment = table["services"]["scheduler"]["environment"]
    assert environment().items() <= service_environment.items()


def check_commands(spec):
    """Check that the arguments in a spec of a DaskCluster are options that dask has."""
    for role, command in (("scheduler", dask_scheduler.main), ("worker", dask_worker.main)):
        known = {option for parameter in command.params for option in [*parameter.opts, *parameter.secondary_opts]}
        used = [word for word in spec[role]["spec"]["containers"][0]["args"] if word.startswith("--")]
        assert {*used} <= known, role


def test_commands_in_files_are_options_that_dask_has():
    services = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text())["services"]
    words = {role: shlex.split(services[role]["command"]) for role in ("scheduler", "worker")}
    check_commands({role: {"spec": {"containers": [{"args": words[role]}]}} for role in words})
    [manifest] = load_documents(DEPLOY / "kubernetes" / "daskcluster.yaml")
    check_commands(manifest["spec"])


CLUSTER_FILES = [path for path in sorted(DEPLOY.rglob("*.toml")) if "[[test_set]]" not in path.read_text()]


@pytest.mark.parametrize("path", CLUSTER_FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_cluster_files_are_understood(path):
    described = read(path)
    assert not described.transport.plain
    if described.kind == "slurm":
        assert as_allocation(described).options["threads"] == described.options["cores"]


@pytest.mark.parametrize("path", [*DEPLOY.rglob("*.sh"), *DEPLOY.rglob("*.sbatch")], ids=lambda p: p.name)
def test_scripts_are_shell_scripts(path):
    subprocess.run(["bash", "-n", path], check=True)


FAKE_KUBECTL = """#!/bin/sh
echo "$*" >> {folder}/calls
case "$2" in
apply) cat > {folder}/applied.json ;;
port-forward) echo "Forwarding from 127.0.0.1:4321 -> 8786" ;;
get) echo "sigdask-scheduler Pending ImagePullBackOff" ;;
wait) [ ! -e {folder}/broken ] || {{ echo "timed out waiting for the condition" >&2; exit 1; }} ;;
esac
"""

KUBERNETES_TABLE = {"class": "kubernetes", "workers": 1, "wait": 60, "options": {
    "image": "registry.example.org/sigdask:0.4.0", "namespace": "evaluation", "memory": "2Gi", "name": "night"}}  # fmt: skip


@pytest.mark.slow
def test_what_class_kubernetes_applies_is_valid_and_deleted_at_its_end(tmp_path, monkeypatch, crd):
    jsonschema, checker = pytest.importorskip("jsonschema"), pytest.importorskip("kubernetes_validate")
    pytest.importorskip("cryptography")
    (tmp_path / "kubectl").write_text(FAKE_KUBECTL.format(folder=tmp_path))
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    files = write_certificates(tmp_path)
    cluster = KubernetesCluster(parse_description(KUBERNETES_TABLE, source="c.toml"), files)
    assert cluster.scheduler_address == "tls://127.0.0.1:4321"
    cluster.scale(1)
    cluster.close()
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[-2] == "--namespace=evaluation scale --replicas=1 daskworkergroup/night-default"
    assert calls[-1].endswith("delete --ignore-not-found --wait=false daskcluster/night secret/night")
    secret, manifest = json.loads((tmp_path / "applied.json").read_text())["items"]
    jsonschema.validate(manifest, crd)
    checker.validate(secret, "1.31", strict=True)
    contents = {name: base64.b64decode(text) for name, text in secret["data"].items()}
    assert contents == {path.name: path.read_bytes() for path in files}
    check_commands(manifest["spec"])
    (tmp_path / "broken").touch()
    with pytest.raises(UnfinishedError, match=r"c\.toml: .*timed out.*ImagePullBackOff"):
        KubernetesCluster(parse_description(KUBERNETES_TABLE, source="c.toml"), files)
