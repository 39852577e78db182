"""Tests of the files in deploy/ against real schemas and the program itself. No engine runs here."""

import importlib.util
import json
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

from sigdask.execution.clusters import read
from sigdask.execution.clusters.description import as_allocation, parse_description
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


def test_commands_in_files_are_options_that_dask_has():
    from click.testing import CliRunner
    from distributed.cli import dask_scheduler, dask_worker

    helps = {
        "scheduler": CliRunner().invoke(dask_scheduler.main, ["--help"]).output,
        "worker": CliRunner().invoke(dask_worker.main, ["--help"]).output,
    }
    table = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text())["services"]
    [manifest] = load_documents(DEPLOY / "kubernetes" / "daskcluster.yaml")
    for role, text in helps.items():
        words = shlex.split(table[role]["command"]) + manifest["spec"][role]["spec"]["containers"][0]["args"]
        for word in words:
            assert not word.startswith("--") or word in text, (role, word)


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


FAKE_KUBECTL = """#!{python}
import base64, json, os, subprocess, sys, time
from pathlib import Path
here, words = Path({folder!r}), [w for w in sys.argv[1:] if not w.startswith("--namespace")]
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(words) + chr(10))
if words[0] == "apply":
    listed = json.loads(sys.stdin.read())
    (here / "applied.json").write_text(json.dumps(listed))
    for name, data in listed["items"][0]["data"].items():
        (here / name).touch(mode=0o600)
        (here / name).write_bytes(base64.b64decode(data))
    for role in ("scheduler", "worker"):
        args = [w.replace("/certificates", str(here)) for w in listed["items"][1]["spec"][role]["spec"]["containers"][0]["args"]]
        args = ["127.0.0.1:0" if w == "127.0.0.1:8787" else "{port}" if w == "8786" else w for w in args]
        args = ["tls://127.0.0.1:{port}" if w.startswith("tls://") else w for w in args]
        with open(here / (role + ".log"), "w") as log:
            subprocess.Popen([{dask!r}, *args[1:], "--host", "127.0.0.1"], stdout=log, stderr=log, env={{**os.environ, "PYTHONPATH": {path!r}}}, start_new_session=True)
            (here / (role + ".pid")).write_text("x")
elif words[0] == "port-forward":
    print("Forwarding from 127.0.0.1:{port} -> 8786", flush=True)
    time.sleep(600)
elif words[0] == "get":
    print("sigdask-scheduler Pending ImagePullBackOff")
elif words[0] == "wait" and (here / "broken").exists():
    sys.exit("error: timed out waiting for the condition")
"""


@pytest.fixture
def kubectl(tmp_path, monkeypatch):
    """Install a fake kubectl that runs applied objects as local processes with their arguments."""
    import os
    import signal
    import sys

    import psutil
    from cluster.hosts import DASK
    from cluster.slurm import find_free_port

    folder = tmp_path / "bin"
    folder.mkdir()
    port = find_free_port()
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    text = FAKE_KUBECTL.format(python=sys.executable, folder=str(folder), port=port, dask=DASK, path=path)
    (folder / "kubectl").write_text(text)
    (folder / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    yield folder
    for process in psutil.process_iter(["cmdline"]):
        if str(folder) in " ".join(process.info["cmdline"] or []):
            process.send_signal(signal.SIGKILL)


KUBERNETES_TABLE = {"class": "kubernetes", "workers": 1, "wait": 60, "options": {
    "image": "registry.example.org/sigdask:0.3.0", "namespace": "evaluation", "memory": "2Gi"}}  # fmt: skip


@pytest.mark.cluster
def test_what_class_kubernetes_applies_is_valid_and_counts_when_it_runs(kubectl, crd):
    jsonschema, checker = pytest.importorskip("jsonschema"), pytest.importorskip("kubernetes_validate")
    pytest.importorskip("cryptography")
    from cluster.work import counted, exact_jobs

    from sigdask.execution.clusters import connect

    jobs = exact_jobs()
    with connect(parse_description(KUBERNETES_TABLE, source="c.toml")) as cluster:
        assert counted(jobs, cluster=cluster, blocks_per_task=2) == counted(jobs, cluster="none")
    secret, manifest = json.loads((kubectl / "applied.json").read_text())["items"]
    jsonschema.validate(manifest, crd)
    checker.validate(secret, "1.31", strict=True)
    assert not any("client" in name for name in secret["data"])
    calls = [json.loads(line) for line in (kubectl / "calls").read_text().splitlines()]
    name = manifest["metadata"]["name"]
    assert ["delete", "--ignore-not-found", "--wait=false", f"daskcluster/{name}", f"secret/{name}"] in calls
    assert ["scale", "--replicas=1", f"daskworkergroup/{name}-default"] in calls
