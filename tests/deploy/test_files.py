"""Tests of the files in deploy/ against real schemas and the program itself, without an engine."""

import importlib.util
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from distributed.cli import dask_scheduler, dask_worker

from sigdask.execution.clusters.allocation import as_allocation
from sigdask.execution.clusters.base import environment
from sigdask.execution.clusters.description import read_description
from sigdask.execution.clusters.kubernetes import build_arguments

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
    described = read_description(path)
    assert (described.security == "tcp") == (described.kind == "kubernetes")
    if described.kind == "slurm":
        assert as_allocation(described).workers == described.workers


@pytest.mark.parametrize("path", [*DEPLOY.rglob("*.sh"), *DEPLOY.rglob("*.sbatch")], ids=lambda p: p.name)
def test_scripts_are_shell_scripts(path):
    subprocess.run(["bash", "-n", path], check=True)


def test_what_class_kubernetes_starts_is_valid(crd):
    jsonschema, checker = pytest.importorskip("jsonschema"), pytest.importorskip("kubernetes_validate")
    arguments = build_arguments(read_description(DEPLOY / "kubernetes" / "from-outside.toml"))
    manifest = arguments["custom_cluster_spec"]
    jsonschema.validate(manifest, crd)
    assert (arguments["namespace"], manifest["spec"]["worker"]["replicas"]) == ("sigdask", 8)
    for role in ("scheduler", "worker"):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": manifest["spec"][role]["spec"]}
        checker.validate(pod, "1.31", strict=True)
        [container] = manifest["spec"][role]["spec"]["containers"]
        assert container["args"][:2] == ["dask", role]
        assert environment().items() <= {entry["name"]: entry["value"] for entry in container["env"]}.items()
        container["args"] = container["args"][1:]
    check_commands(manifest["spec"])
