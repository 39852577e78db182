"""Workers as pods, by the dask-kubernetes operator and `kubectl`.

    class = "kubernetes"
    workers = 8
    [options]
    image = "registry.example.org/sigdask:0.3.0"
    namespace = "evaluation"

The operator's own Python class speaks plain tcp only; here a DaskCluster whose parts speak TLS is
applied, with certificates of this run in a Secret, reached through `kubectl port-forward`, and
deleted in the end. Its size is fixed: the operator's autoscaler has no certificate.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import subprocess
from typing import Any

from sigdask.errors import InputError, UnfinishedError
from sigdask.execution.certificates import ROLES, Files
from sigdask.execution.clusters.base import first_line, last_lines, log
from sigdask.execution.clusters.description import Description
from sigdask.execution.clusters.lifecycle import ClusterKind, accepts
from sigdask.execution.clusters.settings import environment

OPTIONS = ("image", "namespace", "name", "context", "threads", "memory", "service_account", "pull_secret")
PORT = 8786
PLACE = "/certificates"
"""Where pods find their certificates."""


def kind(description: Description) -> ClusterKind:
    """Return how pods are started."""
    made: list[KubernetesCluster] = []

    def make(description: Description, files: Files | None) -> Any:
        made.append(KubernetesCluster(description, files))
        return made[-1]

    threads = int(description.options.get("threads", 1))
    return ClusterKind(make, said=lambda: made[-1].said() if made else "", threads=threads)


class KubernetesCluster:
    """A DaskCluster of one run.

    Attributes
    ----------
    scheduler_address : str
        This end of the forwarded port.
    """

    def __init__(self, description: Description, files: Files | None) -> None:
        options = accepts(description, OPTIONS)
        if "image" not in options:
            raise description.refuse("[options] image is missing: an image with sigdask, see deploy/docker")
        if description.adaptive:
            raise description.refuse("class kubernetes has a fixed size: give workers")
        if files is None:
            raise description.refuse("class kubernetes speaks TLS only")
        self.name = str(options.get("name", f"sigdask-{secrets.token_hex(4)}"))
        self.namespace = str(options.get("namespace", "default"))
        self._context = [f"--context={options['context']}"] if "context" in options else []
        self._forward: subprocess.Popen[str] | None = None
        manifests = {"apiVersion": "v1", "kind": "List", "items": [
            secret(self.name, files), cluster(self.name, self.namespace, description),
        ]}  # fmt: skip
        try:
            self._kubectl("apply", "--filename=-", given=json.dumps(manifests))
            running = "--for=jsonpath={.status.phase}=Running"
            self._kubectl("wait", running, f"--timeout={description.wait:.0f}s", f"daskcluster/{self.name}")
            ready = f"deployment/{self.name}-scheduler"
            self._kubectl("wait", "--for=condition=Available", f"--timeout={description.wait:.0f}s", ready)
            self.scheduler_address = f"tls://127.0.0.1:{self._forwarded()}"
        except (UnfinishedError, InputError) as error:
            word = self.said()
            self.close()
            detail = f"; Kubernetes says: {word}" if word else ""
            raise type(error)(f"{description.where}: {first_line(error)}{detail}") from None

    def scale(self, n_workers: int) -> None:
        """Set the number of worker pods; the operator replaces lost ones itself."""
        self._kubectl("scale", f"--replicas={n_workers}", f"daskworkergroup/{self.name}-default")

    def close(self, timeout: float = 30) -> None:
        """Delete everything this run made."""
        if self._forward is not None:
            self._forward.terminate()
            self._forward.wait(timeout)
            assert self._forward.stdout is not None
            self._forward.stdout.close()
        try:
            self._kubectl(
                "delete", "--ignore-not-found", "--wait=false", f"daskcluster/{self.name}", f"secret/{self.name}"
            )
        except UnfinishedError as error:
            log.warning("left behind in namespace %s: daskcluster/%s (%s)", self.namespace, self.name, error)

    def said(self) -> str:
        """Return what Kubernetes says of the pods."""
        why = ".status.containerStatuses[*].state.waiting.reason"
        form = f"custom-columns=POD:.metadata.name,PHASE:.status.phase,WHY:{why}"
        try:
            chosen = f"--selector=dask.org/cluster-name={self.name}"
            return last_lines(self._kubectl("get", "pods", chosen, "--no-headers", f"--output={form}"))
        except (UnfinishedError, InputError) as error:
            return first_line(error)

    def _kubectl(self, *arguments: str, given: str | None = None) -> str:
        command = ["kubectl", *self._context, f"--namespace={self.namespace}", *arguments]
        try:
            done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)  # noqa: S603
        except OSError as error:
            raise InputError(f"kubectl cannot be run ({error.strerror}); class kubernetes needs it") from None
        if done.returncode != 0:
            raise UnfinishedError(f"kubectl {arguments[0]}: {last_lines(done.stderr)}")
        return done.stdout

    def _forwarded(self) -> int:
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


def secret(name: str, files: Files) -> dict[str, Any]:
    """Return the Secret with what scheduler and workers need; the client's key stays here."""
    paths = [files.ca, *(pair[role] for role in ROLES if role != "client" for pair in (files.certs, files.keys))]
    data = {path.name: base64.b64encode(path.read_bytes()).decode() for path in dict.fromkeys(paths)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque", "data": data}


def cluster(name: str, namespace: str, description: Description) -> dict[str, Any]:
    """Return the DaskCluster."""
    options = description.options
    address = f"tls://{name}-scheduler.{namespace}.svc:{PORT}"
    scheduler = [
        "dask", "scheduler", "--protocol", "tls", "--port", str(PORT), *_tls("scheduler"),
        "--dashboard-address", "127.0.0.1:8787", "--preload", "sigdask.execution.clusters.hung_workers",
    ]  # fmt: skip
    worker = [
        "dask", "worker", address, "--name", "$(DASK_WORKER_NAME)", "--protocol", "tls", *_tls("worker"),
        "--nthreads", str(options.get("threads", 1)), "--no-dashboard", "--dashboard-address", "127.0.0.1:0",
    ]  # fmt: skip
    ports = [{"name": "tcp-comm", "port": PORT, "targetPort": "tcp-comm", "protocol": "TCP"}]
    return {
        "apiVersion": "kubernetes.dask.org/v1",
        "kind": "DaskCluster",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "sigdask"}},
        "spec": {
            "scheduler": {
                "spec": _pod("scheduler", scheduler, name, address, options),
                "service": {"type": "ClusterIP", "ports": ports, "selector": {
                    "dask.org/cluster-name": name, "dask.org/component": "scheduler"}},
            },
            "worker": {"replicas": description.workers or 1, "spec": _pod("worker", worker, name, address, options)},
        },
    }  # fmt: skip


def _tls(role: str) -> list[str]:
    return [
        "--tls-ca-file",
        f"{PLACE}/ca.pem",
        "--tls-cert",
        f"{PLACE}/{role}.pem",
        "--tls-key",
        f"{PLACE}/{role}-key.pem",
    ]


def _pod(role: str, command: list[str], name: str, address: str, options: Any) -> dict[str, Any]:
    """Return a pod that runs as nobody, with nothing to write but /tmp."""
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
        "volumeMounts": [{"name": "certificates", "mountPath": PLACE, "readOnly": True},
                         {"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
    }  # fmt: skip
    given = {"serviceAccountName": options.get("service_account")}
    pull = [{"name": options["pull_secret"]}] if "pull_secret" in options else None
    return {
        "containers": [container],
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001,
                            "seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": [{"name": "certificates", "secret": {"secretName": name, "defaultMode": 0o440}},
                    {"name": "tmp", "emptyDir": {}}],
        **{key: value for key, value in {**given, "imagePullSecrets": pull}.items() if value is not None},
    }  # fmt: skip
