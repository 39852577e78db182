"""A real Slurm on this machine: munged, slurmctld and slurmd of two logical nodes, without systemd."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from servers import find_free_port

PROGRAMS = ("munged", "mungekey", "slurmctld", "slurmd", "sbatch", "scancel", "squeue", "sinfo", "srun", "scontrol")

LIVE_STATES = "PENDING,RUNNING,COMPLETING,CONFIGURING,SUSPENDED,REQUEUED"

CONF_TEMPLATE = """
ClusterName=sigdask
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmdPort={first}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
KillWait=5
OverTimeLimit=0
InactiveLimit=0
NodeName=n[1-2] NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=2 RealMemory=8000
PartitionName=main Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP
"""


def list_missing_programs():
    """Return the programs that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


class Slurm:
    """Starts Slurm in a folder; `environment` is what its commands need."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.started = []
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def __enter__(self):
        try:
            self._start_daemons()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start_daemons(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        for name in ("state", "spool/n1", "spool/n2"):
            (self.folder / name).mkdir(parents=True)
        first_port = find_two_free_ports()
        ports = {"ctld": find_free_port(), "first": first_port, "last": first_port + 1}
        host = socket.gethostname().partition(".")[0]
        (self.folder / "slurm.conf").write_text(CONF_TEMPLATE.format(host=host, folder=self.folder, **ports))
        self._start_munge()
        self._start("slurmctld", "-D", "-c")
        for node in ("n1", "n2"):
            self._start("slurmd", "-D", "-N", node)
        self._wait_until_idle()

    def _start_munge(self):
        folder = self.folder
        subprocess.run(["mungekey", "--create", f"--keyfile={folder}/munge.key"], check=True)
        files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid", "log-file": "munged.log",
                 "seed-file": "munged.seed"}  # fmt: skip
        self._start("munged", "--foreground", "--force", *[f"--{k}={folder}/{v}" for k, v in files.items()])
        wait_until((folder / "munge.socket").exists, "munged's socket", 300)

    def _start(self, *command):
        path = shutil.which(command[0])
        environment = {**os.environ, **self.environment}
        with (self.folder / f"{command[0]}-{len(self.started)}.out").open("w") as out:
            self.started.append(
                subprocess.Popen([path, *command[1:]], env=environment, stdout=out, stderr=out, start_new_session=True)
            )

    def _wait_until_idle(self):
        def is_idle():
            output = self.run("sinfo", "-h", "-o", "%D %t", check=False)
            return output.strip() == "2 idle"

        wait_until(is_idle, "two idle nodes", 300)

    def run(self, *command, check=True):
        result = subprocess.run(
            command, env={**os.environ, **self.environment}, capture_output=True, text=True, check=check, timeout=30
        )
        return result.stdout

    def jobs(self, state="RUNNING"):
        """Return the ids of jobs in a state."""
        return self.run("squeue", "-h", "-t", LIVE_STATES if state == "all" else state, "-o", "%i").split()

    def __exit__(self, *_):
        try:
            self.run("scancel", "--full", *self.jobs("all"), check=False)
        finally:
            self._stop_daemons()

    def _stop_daemons(self):
        for process in reversed(self.started):
            process.send_signal(signal.SIGTERM)
        for process in reversed(self.started):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until(condition, what, seconds):
    """Wait for a condition, or raise TimeoutError after some seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"no {what} after {seconds} s")
        time.sleep(0.1)


def find_two_free_ports():
    """Return the first of two neighbouring free ports."""
    while True:
        port = find_free_port()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port + 1)) != 0:
                return port
