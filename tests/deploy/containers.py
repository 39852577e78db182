"""Images built by buildah from a base made by debootstrap, and the services of a compose file run from them.

Where there are no cgroups no container engine runs, but `buildah run --isolation=chroot` does. What it lacks
of what compose asks for is given from outside: a network namespace, a root that cannot be written, no new privileges.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import yaml
from cluster.slurm import wait_until
from conftest import ROOT

DOCKER = ROOT / "deploy" / "docker"
BASE = "docker.io/library/python:3.11.14-slim-bookworm"
MIRROR = "http://deb.debian.org/debian"
NAMESPACE = "sdk-compose"
ADDRESSES = {"scheduler": "10.78.31.1", "postgres": "10.78.31.2"}

RUN_READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
SAVE_STATUS = '"$@"; echo $? > /tmp/status'


def find_obstacle():
    """Return why no images can be built on this machine, or nothing."""
    absent = [
        program for program in ("buildah", "debootstrap", "ip", "setpriv", "unshare") if not shutil.which(program)
    ]
    if absent:
        return f"{', '.join(absent)} not installed: apt-get install buildah debootstrap iproute2"
    if os.geteuid():
        return "images are built as root here"
    probe = subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True, check=False)
    return "no rights to namespaces of mounts and networks" if probe.returncode else ""


def run_checked(command, **options):
    """Run a command and return its output, or fail with its output."""
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert result.returncode == 0, f"{shlex.join(map(str, command))}: {result.stdout[-2000:]}{result.stderr[-4000:]}"
    return result.stdout.strip()


class BuiltImages:
    """The image of this tree and a stand-in for PostgreSQL's, in a storage of their own."""

    def __init__(self, folder):
        self.folder = folder
        self.storage = ["buildah", "--root", folder / "root", "--runroot", folder / "run"]

    def __enter__(self):
        try:
            self._build_base()
            postgres = [Path(__file__).parent / "postgres"]
            sigdask_arguments = ["--file", DOCKER / "Dockerfile", *_list_pip_volumes(self.folder), ROOT]
            tags = ["docker.io/library/postgres:16.11", "sigdask:0.4.0.dev0"]
            with ThreadPoolExecutor() as pool:
                list(pool.map(self._build, tags, [postgres, sigdask_arguments]))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for partition in reversed(psutil.disk_partitions(all=True)):
            if Path(partition.mountpoint).is_relative_to(self.folder):
                subprocess.run(["umount", partition.mountpoint], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _build_base(self):
        """Make a Debian with Python 3.11 as `python` and `pip`, like the base image of the Dockerfile."""
        container = self.run("from", "scratch")
        root = self.run("mount", container)
        run_checked(
            ["debootstrap", "--variant=minbase", "--include=python3-venv,ca-certificates", "bookworm", root, MIRROR],
            env={**os.environ, "DPKG_FORCE": "unsafe-io"},  # no synchronisation of each file: it is thrown away
        )
        run_checked(["chroot", root, "python3", "-m", "venv", "/usr/local"])
        run_checked(["chroot", root, "apt-get", "clean"])
        self.run("umount", container)
        self.run("commit", "--quiet", "--rm", container, BASE)

    def _build(self, tag, arguments):
        self.run("build", "--isolation=chroot", "--pull-never", "--tag", tag, *arguments)

    def run(self, *arguments):
        return run_checked([*self.storage, *map(str, arguments)], cwd=self.folder)


def _list_pip_volumes(folder):
    """Return volumes that give a build this machine's pip settings: its index or certificates."""
    config = run_checked([sys.executable, "-m", "pip", "config", "list"])
    keys = ("index-url", "extra-index-url", "find-links", "cert", "proxy", "trusted-host", "timeout")
    settings = {}
    for key, value in re.findall(r"^[\w:]+\.\.?([\w-]+)='(.*)'$", config, re.MULTILINE):
        if key in keys:
            settings[key] = value.replace("\\n", " ")
    (folder / "pip.conf").write_text("[global]\n" + "".join(f"{key} = {value}\n" for key, value in settings.items()))
    local = {path for path in re.findall(r"(?:file://)?(/[^\s']+)", " ".join(settings.values())) if Path(path).exists()}
    paths = {str(Path(path).parent) if f"file://{path}" in config else path for path in local}
    volumes = [f"{folder}/pip.conf:/etc/pip.conf:ro", *(f"{mounted}:{mounted}:ro" for mounted in sorted(paths))]
    return [word for volume in volumes for word in ("--volume", volume)]


class ComposeServices:
    """Services of the compose file: their commands, environment, users, volumes and secrets."""

    def __init__(self, images, folder):
        """`folder` is as deploy/docker is after its README: certificates, plan and password are in it."""
        self.images, self.folder = images, folder
        self.table = yaml.safe_load((DOCKER / "compose.yaml").read_text())
        self.started = {}

    def __enter__(self):
        subprocess.run(["ip", "netns", "del", NAMESPACE], capture_output=True, check=False)
        run_checked(["ip", "netns", "add", NAMESPACE])
        run_checked(["ip", "-n", NAMESPACE, "link", "set", "lo", "up"])
        names = [f"127.0.0.1 localhost {os.uname().nodename}"]
        for name, address in ADDRESSES.items():
            run_checked(["ip", "-n", NAMESPACE, "addr", "add", f"{address}/24", "dev", "lo"])
            names.append(f"{address} {name}")
        (self.folder / "hosts").write_text("\n".join(names) + "\n")
        return self

    def __exit__(self, *_):
        for name in reversed(self.started):
            self.kill(name)
        subprocess.run(["ip", "netns", "del", NAMESPACE], capture_output=True, check=False)

    def start(self, service, name=""):
        """Start a service under a name, as compose names the copies of one service."""
        name = name or service
        definition = self.table["services"][service]
        container, command = self._prepare_container(definition, name)
        log = (self.folder / f"{name}.log").open("wb")
        self.started[name] = subprocess.Popen(
            [*command, container, "--", *self._build_command(definition)], stdout=log, stderr=subprocess.STDOUT
        )
        log.close()

    def read_log(self, name):
        """Return the output of a service."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def has_ended(self, name):
        return self.started[name].poll() is not None

    def wait_for_exit(self, name, seconds):
        """Return the exit status of a service and its output."""
        self.started[name].wait(seconds)
        return int((self.folder / f"{name}.tmp" / "status").read_text()), self.read_log(name)

    def kill(self, name):
        """Kill all processes of a service at once, as `docker kill` does."""
        for process in reversed(self.processes(name)):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        self.started[name].wait(30)

    def processes(self, name):
        """Return the processes of a service, those of the image last."""
        try:
            return [(top := psutil.Process(self.started[name].pid)), *top.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def check_health(self, service):
        """Wait until the service passes its own health check."""
        definition = self.table["services"][service]
        test = definition["healthcheck"]["test"]
        assert test[0] == "CMD"
        container, command = self._prepare_container({"image": definition["image"]}, f"{service}-health")
        command = [*command, container, "--", *test[1:], "--host", ADDRESSES[service]]
        wait_until(lambda: not subprocess.run(command, capture_output=True, check=False).returncode, service, 60)

    @staticmethod
    def wrap_in_network(command):
        """Return a command of this machine that runs in the network of the services."""
        return ["ip", "netns", "exec", NAMESPACE, *command]

    def _build_command(self, definition):
        words = shlex.split(definition["command"].replace("$$", "$")) if "command" in definition else ["entry"]
        return ["sh", "-c", SAVE_STATUS, "sh", *words]

    def _prepare_container(self, definition, name):
        """Return a container of a service, and the words that run its command."""
        container = self.images.run("from", "--pull-never", definition["image"])
        root = Path(self.images.run("mount", container))
        tmp = self.folder / f"{name}.tmp"
        tmp.mkdir(exist_ok=True)
        tmp.chmod(0o1777)
        volumes = {"/etc/hosts": f"{self.folder}/hosts:/etc/hosts:ro", "/tmp": f"{tmp}:/tmp"}
        for volume in definition.get("volumes", []):
            source, target, *mode = volume.split(":")
            volumes[target] = ":".join([str(self.folder / source), target, *mode])
            (self.folder / source).mkdir(exist_ok=True)
        for secret in definition.get("secrets", []):
            source = self.folder / self.table["secrets"][secret]["file"]
            volumes[f"/run/secrets/{secret}"] = f"{source}:/run/secrets/{secret}:ro"
        for target, volume in volumes.items():
            _make_mount_point(Path(volume.split(":")[0]), root / target[1:])
        (root / "run" / ".containerenv").touch()
        options = [f"--volume={volume}" for volume in volumes.values()]
        options += [f"--env={key}={value}" for key, value in definition.get("environment", {}).items()]
        options += [f"--cap-drop={name}" for name in definition.get("cap_drop", [])]
        command = [*self.images.storage, "run", "--isolation=chroot", "--no-hosts", *options]
        if "no-new-privileges:true" in definition.get("security_opt", []):
            command = ["setpriv", "--no-new-privs", *command]
        if definition.get("read_only"):
            command = ["unshare", "--mount", "sh", "-c", RUN_READ_ONLY, "sh", root, *command]
        return container, [str(word) for word in self.wrap_in_network(command)]


def _make_mount_point(source, target):
    """Make the file or folder that a volume is mounted on."""
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
