"""Hosts as network namespaces on a bridge of their own, each with its own address."""

import os
import shutil
import subprocess
from contextlib import suppress

SUBNET = "10.77.31"
DRIVER_ADDRESS = f"{SUBNET}.254"


def find_obstacle():
    """Return why there can be no hosts on this machine, or nothing."""
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            return f"{program} is not installed: apt-get install iproute2"
    if os.geteuid() != 0:
        return "network namespaces need root"
    result = subprocess.run(["ip", "netns", "add", "sdk-probe"], capture_output=True, text=True, check=False)
    if result.returncode:
        return f"no right to make network namespaces ({result.stderr.strip()})"
    run_ip("netns del sdk-probe")
    return ""


def run_ip(words):
    subprocess.run(["ip", *words.split()], check=True, capture_output=True, text=True)


class Network:
    """A bridge with hosts 1 to n on it, and this process as a host of its own."""

    def __init__(self, n_hosts):
        self.hosts = range(1, n_hosts + 1)

    def __enter__(self):
        self._remove_namespaces()
        run_ip("netns add sdk-bridge")
        run_ip("-n sdk-bridge link add br0 type bridge")
        run_ip("-n sdk-bridge link set br0 up")
        for host in self.hosts:
            run_ip(f"netns add sdk-{host}")
            run_ip(f"link add sdk{host} netns sdk-bridge type veth peer name eth0 netns sdk-{host}")
            run_ip(f"-n sdk-bridge link set sdk{host} master br0 up")
            run_ip(f"-n sdk-{host} addr add {self.address(host)}/24 dev eth0")
            run_ip(f"-n sdk-{host} link set eth0 up")
            run_ip(f"-n sdk-{host} link set lo up")
        run_ip("link add sdk-here type veth peer name sdk-out netns sdk-bridge")
        run_ip("-n sdk-bridge link set sdk-out master br0 up")
        run_ip(f"addr add {DRIVER_ADDRESS}/24 dev sdk-here")
        run_ip("link set sdk-here up")
        return self

    @staticmethod
    def address(host):
        return f"{SUBNET}.{host}"

    @staticmethod
    def get_prefix(host):
        """Return the words that run a command on a host."""
        return ["ip", "netns", "exec", f"sdk-{host}"]

    @staticmethod
    def cut(host):
        """Disconnect a host without a packet that tells anyone."""
        run_ip(f"-n sdk-bridge link set sdk{host} down")

    @staticmethod
    def slow_down(host, rate="64kbit"):
        for side in (["ip", "netns", "exec", f"sdk-{host}", "tc", "qdisc", "add", "dev", "eth0"],
                     ["ip", "netns", "exec", "sdk-bridge", "tc", "qdisc", "add", "dev", f"sdk{host}"]):  # fmt: skip
            subprocess.run([*side, "root", "tbf", "rate", rate, "burst", "8kb", "latency", "800ms"], check=True)

    def _remove_namespaces(self):
        for name in ["sdk-bridge", *(f"sdk-{host}" for host in self.hosts)]:
            with suppress(subprocess.CalledProcessError):
                run_ip(f"netns del {name}")

    def __exit__(self, *_):
        self._remove_namespaces()
        with suppress(subprocess.CalledProcessError):
            run_ip("link del sdk-here")
