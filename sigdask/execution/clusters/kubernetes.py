"""Clusters of pods on Kubernetes, started by the dask-kubernetes operator and `kubectl`.

    class = "kubernetes"
    workers = 8
    [options]
    image = "registry.example.org/sigdask:0.3.0"
    namespace = "evaluation"

The operator's Python class supports only plain tcp. So this module applies a DaskCluster whose parts use TLS, with
certificates of this run in a Secret. It is reached through `kubectl port-forward`, and deleted at the end. Its size is
fixed, because the operator's autoscaler has no certificate.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import subprocess
from pathlib import Path
from typing import Any

from sigdask.errors import InputError, UnfinishedError
from sigdask.execution.clusters.base import get_first_line, join_last_lines, log
from sigdask.execution.clusters.description import ClusterDescription
from sigdask.execution.clusters.lifecycle import ClusterKind, check_options
from sigdask.execution.clusters.settings import environment
from sigdask.execution.clusters.tls import TlsFiles

OPTIONS = ("image", "namespace", "name", "context", "threads", "memory", "service_account", "pull_secret")
PORT = 8786
CERTIFICATE_FOLDER = "/certificates"
"""Folder of certificates in pods."""

POD_FILES = TlsFiles.from_folder(Path(CERTIFICATE_FOLDER))


def build_kind(description: ClusterDescription) -> ClusterKind:
    """Return the `ClusterKind` that starts a cluster of pods."""
    return ClusterKind(KubernetesCluster, threads=int(description.options.get("threads", 1)))


class KubernetesCluster:
    """A DaskCluster resource of Kubernetes that is created for one run and deleted after it.

    Attributes
    ----------
    scheduler_address : str
        Local end of the forwarded port.
    """

    def __init__(self, description: ClusterDescription, files: TlsFiles | None) -> None:
        options = check_options(description, OPTIONS)
        if "image" not in options:
            raise description.build_error("[options] image is missing: an image with sigdask, see deploy/docker")
        if description.is_adaptive:
            raise description.build_error("class kubernetes has a fixed size: give workers")
        if files is None:
            raise description.build_error("class kubernetes supports only TLS; leave security out")
        self.name = str(options.get("name", f"sigdask-{secrets.token_hex(4)}"))
        self.namespace = str(options.get("namespace", "default"))
        self._context = [f"--context={options['context']}"] if "context" in options else []
        self._forward: subprocess.Popen[str] | None = None
        manifests = {"apiVersion": "v1", "kind": "List", "items": [
            build_secret(self.name, files), build_manifest(self.name, self.namespace, description),
        ]}  # fmt: skip
        try:
            self._run_kubectl("apply", "--filename=-", content=json.dumps(manifests))
            running = "--for=jsonpath={.status.phase}=Running"
            self._run_kubectl("wait", running, f"--timeout={description.wait:.0f}s", f"daskcluster/{self.name}")
            ready = f"deployment/{self.name}-scheduler"
            self._run_kubectl("wait", "--for=condition=Available", f"--timeout={description.wait:.0f}s", ready)
            self.scheduler_address = f"tls://127.0.0.1:{self._forward_port()}"
        except (UnfinishedError, InputError) as error:
            status = self.get_status()
            self.close()
            detail = f"; Kubernetes says: {status}" if status else ""
            raise type(error)(f"{description.source}: {get_first_line(error)}{detail}") from None

    def scale(self, n_workers: int) -> None:
        """Set the number of worker pods; the operator replaces lost ones itself."""
        self._run_kubectl("scale", f"--replicas={n_workers}", f"daskworkergroup/{self.name}-default")

    def close(self, timeout: float = 30) -> None:
        """Stop forwarding the port, and delete everything that this run created in Kubernetes."""
        if self._forward is not None:
            self._forward.terminate()
            self._forward.wait(timeout)
            assert self._forward.stdout is not None
            self._forward.stdout.close()
        try:
            self._run_kubectl(
                "delete", "--ignore-not-found", "--wait=false", f"daskcluster/{self.name}", f"secret/{self.name}"
            )
        except UnfinishedError as error:
            log.warning("left behind in namespace %s: daskcluster/%s (%s)", self.namespace, self.name, error)

    def get_status(self) -> str:
        """Return what Kubernetes reports about the pods, as one line."""
        reason = ".status.containerStatuses[*].state.waiting.reason"
        form = f"custom-columns=POD:.metadata.name,PHASE:.status.phase,WHY:{reason}"
        try:
            selector = f"--selector=dask.org/cluster-name={self.name}"
            return join_last_lines(self._run_kubectl("get", "pods", selector, "--no-headers", f"--output={form}"))
        except (UnfinishedError, InputError) as error:
            return get_first_line(error)

    def _run_kubectl(self, *arguments: str, content: str | None = None) -> str:
        command = ["kubectl", *self._context, f"--namespace={self.namespace}", *arguments]
        try:
            process = subprocess.run(command, input=content, capture_output=True, text=True, check=False)  # noqa: S603
        except OSError as error:
            raise InputError(f"kubectl cannot be run ({error.strerror}); class kubernetes needs it") from None
        if process.returncode != 0:
            raise UnfinishedError(f"kubectl {arguments[0]}: {join_last_lines(process.stderr)}")
        return process.stdout

    def _forward_port(self) -> int:
        command = ["kubectl", *self._context, f"--namespace={self.namespace}", "port-forward", "--address=127.0.0.1",
                   f"service/{self.name}-scheduler", f":{PORT}"]  # fmt: skip
        self._forward = subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self._forward.stdout is not None
        line = self._forward.stdout.readline()
        match = re.search(r"127\.0\.0\.1:(\d+)", line)
        if match is None:
            raise UnfinishedError(f"kubectl port-forward: {line.strip()}")
        return int(match[1])


def build_secret(name: str, files: TlsFiles) -> dict[str, Any]:
    """Return the Kubernetes Secret with the certificate and key of scheduler and workers."""
    contents = zip(POD_FILES, files, strict=True)
    data = {pod.name: base64.b64encode(path.read_bytes()).decode() for pod, path in contents}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque", "data": data}


def build_manifest(name: str, namespace: str, description: ClusterDescription) -> dict[str, Any]:
    """Return the Kubernetes manifest of the DaskCluster."""
    options = description.options
    address = f"tls://{name}-scheduler.{namespace}.svc:{PORT}"
    scheduler = [
        "dask", "scheduler", "--protocol", "tls", "--port", str(PORT), *POD_FILES.to_arguments(),
        "--dashboard-address", "127.0.0.1:8787", "--preload", "sigdask.execution.clusters.hung_workers",
    ]  # fmt: skip
    worker = [
        "dask", "worker", address, "--name", "$(DASK_WORKER_NAME)", "--protocol", "tls",
        *POD_FILES.to_arguments(), "--nthreads", str(options.get("threads", 1)),
        "--no-dashboard", "--dashboard-address", "127.0.0.1:0",
    ]  # fmt: skip
    ports = [{"name": "tcp-comm", "port": PORT, "targetPort": "tcp-comm", "protocol": "TCP"}]
    return {
        "apiVersion": "kubernetes.dask.org/v1",
        "kind": "DaskCluster",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "sigdask"}},
        "spec": {
            "scheduler": {
                "spec": _build_pod("scheduler", scheduler, name, address, options),
                "service": {
                    "type": "ClusterIP",
                    "ports": ports,
                    "selector": {"dask.org/cluster-name": name, "dask.org/component": "scheduler"},
                },
            },
            "worker": {
                "replicas": description.workers or 1,
                "spec": _build_pod("worker", worker, name, address, options),
            },
        },
    }


def _build_pod(role: str, command: list[str], name: str, address: str, options: Any) -> dict[str, Any]:
    """Return the spec of a scheduler or worker pod, which runs without privileges and can write to /tmp only."""
    env = {**environment(), "DASK_SCHEDULER_ADDRESS": address, "NUMBA_CACHE_DIR": "/tmp/numba"}  # noqa: S108
    limits = {"memory": str(options["memory"])} if "memory" in options else {}
    container = {
        "name": role,
        "image": options["image"],
        "args": command,
        "env": [{"name": key, "value": value} for key, value in env.items()],
        "ports": [{"name": "tcp-comm", "containerPort": PORT, "protocol": "TCP"}] if role == "scheduler" else [],
        "resources": {"limits": limits, "requests": {"cpu": str(options.get("threads", 1)), **limits}},
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                            "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "certificates", "mountPath": CERTIFICATE_FOLDER, "readOnly": True},
                         {"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
    }  # fmt: skip
    account = {"serviceAccountName": options.get("service_account")}
    pull = [{"name": options["pull_secret"]}] if "pull_secret" in options else None
    return {
        "containers": [container],
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001,
                            "seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": [{"name": "certificates", "secret": {"secretName": name, "defaultMode": 0o440}},
                    {"name": "tmp", "emptyDir": {}}],
        **{key: value for key, value in {**account, "imagePullSecrets": pull}.items() if value is not None},
    }  # fmt: skip
