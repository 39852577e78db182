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
from cluster.slurm import wait
from conftest import ROOT

DOCKER = ROOT / "deploy" / "docker"
BASE = "docker.io/library/python:3.11-slim"
MIRROR = "http://deb.debian.org/debian"
SPACE = "sdk-compose"
ADDRESSES = {"scheduler": "10.78.31.1", "postgres": "10.78.31.2"}

READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
STATUS = '"$@"; echo $? > /tmp/status'


def missing():
    """Return why no images can be built here, or nothing."""
    absent = [
        program for program in ("buildah", "debootstrap", "ip", "setpriv", "unshare") if not shutil.which(program)
    ]
    if absent:
        return f"{', '.join(absent)} not installed: apt-get install buildah debootstrap iproute2"
    if os.geteuid():
        return "images are built as root here"
    probe = subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True, check=False)
    return "no rights to namespaces of mounts and networks" if probe.returncode else ""


def succeed(command, **how):
    """Run a command and return what it says; what it says of a failure is the failure."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
    assert done.returncode == 0, f"{shlex.join(map(str, command))}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout.strip()


class Images:
    """The image of this tree and what stands for PostgreSQL's, in a storage of their own."""

    def __init__(self, folder):
        self.folder = folder
        self.storage = ["buildah", "--root", folder / "root", "--runroot", folder / "run"]

    def __enter__(self):
        try:
            self._base()
            postgres = [Path(__file__).parent / "postgres"]
            ours = ["--file", DOCKER / "Dockerfile", *_settings_of_pip(self.folder), ROOT]
            with ThreadPoolExecutor() as both:
                list(both.map(self._build, ["docker.io/library/postgres:16", "sigdask:0.3.0"], [postgres, ours]))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for part in reversed(psutil.disk_partitions(all=True)):
            if Path(part.mountpoint).is_relative_to(self.folder):
                subprocess.run(["umount", part.mountpoint], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _base(self):
        """Make a Debian with its Python 3.11 as `python` and `pip`, as the image that the Dockerfile names has them."""
        container = self.run("from", "scratch")
        place = self.run("mount", container)
        succeed(
            ["debootstrap", "--variant=minbase", "--include=python3-venv,ca-certificates", "bookworm", place, MIRROR],
            env={**os.environ, "DPKG_FORCE": "unsafe-io"},  # no synchronisation of each file: it is thrown away
        )
        succeed(["chroot", place, "python3", "-m", "venv", "/usr/local"])
        succeed(["chroot", place, "apt-get", "clean"])
        self.run("umount", container)
        self.run("commit", "--quiet", "--rm", container, BASE)

    def _build(self, tag, what):
        self.run("build", "--isolation=chroot", "--pull-never", "--tag", tag, *what)

    def run(self, *arguments):
        return succeed([*self.storage, *map(str, arguments)], cwd=self.folder)


def _settings_of_pip(folder):
    """Return volumes that give a build pip's settings of this machine: an index or certificates of its own."""
    listed = succeed([sys.executable, "-m", "pip", "config", "list"])
    wanted = ("index-url", "extra-index-url", "find-links", "cert", "proxy", "trusted-host", "timeout")
    said = {}
    for key, value in re.findall(r"^[\w:]+\.\.?([\w-]+)='(.*)'$", listed, re.MULTILINE):
        if key in wanted:
            said[key] = value.replace("\\n", " ")
    (folder / "pip.conf").write_text("[global]\n" + "".join(f"{key} = {value}\n" for key, value in said.items()))
    local = {path for path in re.findall(r"(?:file://)?(/[^\s']+)", " ".join(said.values())) if Path(path).exists()}
    places = {str(Path(path).parent) if f"file://{path}" in listed else path for path in local}
    volumes = [f"{folder}/pip.conf:/etc/pip.conf:ro", *(f"{place}:{place}:ro" for place in sorted(places))]
    return [word for volume in volumes for word in ("--volume", volume)]


class Composed:
    """Services of the compose file: their own commands, environment, users, volumes and secrets."""

    def __init__(self, images, folder):
        """`folder` is as deploy/docker is after its README: certificates, plan and the password are in it."""
        self.images, self.folder = images, folder
        self.table = yaml.safe_load((DOCKER / "compose.yaml").read_text())
        self.started = {}

    def __enter__(self):
        subprocess.run(["ip", "netns", "del", SPACE], capture_output=True, check=False)
        succeed(["ip", "netns", "add", SPACE])
        succeed(["ip", "-n", SPACE, "link", "set", "lo", "up"])
        names = [f"127.0.0.1 localhost {os.uname().nodename}"]
        for name, address in ADDRESSES.items():
            succeed(["ip", "-n", SPACE, "addr", "add", f"{address}/24", "dev", "lo"])
            names.append(f"{address} {name}")
        (self.folder / "hosts").write_text("\n".join(names) + "\n")
        return self

    def __exit__(self, *_):
        for name in reversed(self.started):
            self.kill(name)
        subprocess.run(["ip", "netns", "del", SPACE], capture_output=True, check=False)

    def start(self, service, name=""):
        """Start a service; compose gives copies of one names of their own."""
        name = name or service
        asked = self.table["services"][service]
        container, command = self._prepared(asked, name)
        log = (self.folder / f"{name}.log").open("wb")
        self.started[name] = subprocess.Popen(
            [*command, container, "--", *self._command(asked)], stdout=log, stderr=subprocess.STDOUT
        )
        log.close()

    def say(self, name):
        """Return what a service wrote."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def has_ended(self, name):
        return self.started[name].poll() is not None

    def finish(self, name, seconds):
        """Return the status of a service that ends, and what it wrote."""
        self.started[name].wait(seconds)
        return int((self.folder / f"{name}.tmp" / "status").read_text()), self.say(name)

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
        """Wait until the service's own health check says that it is there."""
        test = self.table["services"][service]["healthcheck"]["test"]
        assert test[0] == "CMD"
        container, command = self._prepared({"image": self.table["services"][service]["image"]}, f"{service}-health")
        command = [*command, container, "--", *test[1:], "--host", ADDRESSES[service]]
        wait(lambda: not subprocess.run(command, capture_output=True, check=False).returncode, service, 60)

    @staticmethod
    def inside(command):
        """Return a command of this machine as it runs in the network of the services."""
        return ["ip", "netns", "exec", SPACE, *command]

    def _command(self, asked):
        words = shlex.split(asked["command"].replace("$$", "$")) if "command" in asked else ["entry"]
        return ["sh", "-c", STATUS, "sh", *words]

    def _prepared(self, asked, name):
        """Return a container of a service, and what runs its command."""
        container = self.images.run("from", "--pull-never", asked["image"])
        place = Path(self.images.run("mount", container))
        tmp = self.folder / f"{name}.tmp"
        tmp.mkdir(exist_ok=True)
        tmp.chmod(0o1777)
        volumes = {"/etc/hosts": f"{self.folder}/hosts:/etc/hosts:ro", "/tmp": f"{tmp}:/tmp"}
        for volume in asked.get("volumes", []):
            source, target, *how = volume.split(":")
            volumes[target] = ":".join([str(self.folder / source), target, *how])
            (self.folder / source).mkdir(exist_ok=True)
        for secret in asked.get("secrets", []):
            source = self.folder / self.table["secrets"][secret]["file"]
            volumes[f"/run/secrets/{secret}"] = f"{source}:/run/secrets/{secret}:ro"
        for target, volume in volumes.items():
            _made_like(Path(volume.split(":")[0]), place / target[1:])
        (place / "run" / ".containerenv").touch()
        given = [f"--volume={volume}" for volume in volumes.values()]
        given += [f"--env={key}={value}" for key, value in asked.get("environment", {}).items()]
        given += [f"--cap-drop={name}" for name in asked.get("cap_drop", [])]
        command = [*self.images.storage, "run", "--isolation=chroot", "--no-hosts", *given]
        if "no-new-privileges:true" in asked.get("security_opt", []):
            command = ["setpriv", "--no-new-privs", *command]
        if asked.get("read_only"):
            command = ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", place, *command]
        return container, [str(word) for word in self.inside(command)]


def _made_like(source, target):
    """Make what a volume is mounted on."""
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
