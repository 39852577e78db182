"""Test of the systemd unit's command in its sandbox: writable paths, environment, working folder.

Without systemd as the first process, a mount namespace (`unshare`) holds what the unit asks for.
"""

import os
import shlex
import subprocess
import sys

import pytest
from conftest import ROOT

UNIT = ROOT / "deploy" / "sigdask@.service"

SANDBOX = """
set -e
mount --make-rprivate /
for place in /srv /var/cache /opt; do mount --bind {inner}$place $place; done
mount --rbind {prefix} /opt/sigdask/.venv
mount --rbind {root} /opt/sigdask/project
mount --bind {inner}/tmp /tmp
bring() {{ [ -e "$2" ] || {{ mkdir -p "$2"; mount --rbind "$1" "$2"; }}; }}  # what lay below the other /tmp
bring /opt/sigdask/project {root}
bring /opt/sigdask/.venv {prefix}
awk '{{print $2}}' /proc/self/mounts | while read -r place; do
    case "$place" in
        /proc*|/sys*|/dev*|/srv|/tmp|/var/cache) ;;
        *) mount -o remount,bind,ro "$place" 2>/dev/null || true ;;
    esac
done
mount --bind /var/cache/sigdask /var/cache/sigdask
mount -o remount,bind,ro /var/cache
touch {outside} 2>/dev/null && {{ echo "the sandbox is open" >&2; exit 99; }}
cd {folder}
exec env -i HOME=/root {environment} {command}
"""


def read_settings():
    """Return the keys of the unit, and its environment lines."""
    lines = [line.split("=", 1) for line in UNIT.read_text().splitlines() if "=" in line and line[0] != "#"]
    keys = {key: value for key, value in lines if key != "Environment"}
    return keys, [value.replace("%C", "/var/cache") for key, value in lines if key == "Environment"]


def run_unit(tmp_path, environment):
    keys, _ = read_settings()
    assert (keys["ProtectSystem"], keys["PrivateTmp"], keys["ReadWritePaths"]) == ("strict", "true", "/srv/evaluation")
    inner = tmp_path / "inner"
    for name in ("srv/evaluation", f"var/cache/{keys['CacheDirectory']}", "opt/sigdask/.venv", "opt/sigdask/project",
                 "tmp"):  # fmt: skip
        (inner / name).mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{n % 2},{int(n % 3 == 0)}\n" for n in range(60))
    (inner / "srv/evaluation/t.csv").write_text("a,b\n" + rows)
    # so many swaps that they are counted by compiled code, which is kept in the cache folder
    settings = 'pairs = { baseline = "a" }\ntrials = 200000\nmethod = "randomization"\n'
    text = f'{settings}[[test_set]]\nname = "t"\nsystems = "t.csv"\n'
    (inner / "srv/evaluation/nightly.toml").write_text(text)
    script = SANDBOX.format(
        inner=inner, prefix=sys.prefix, root=ROOT, outside=ROOT / "sigdask" / ".probe", folder=keys["WorkingDirectory"],
        environment=shlex.join([*environment, f"PYTHONPATH={ROOT}"]), command=keys["ExecStart"].replace("%i", "nightly"),
    )  # fmt: skip
    result = subprocess.run(
        ["unshare", "--mount", "bash", "-c", script], capture_output=True, text=True, check=False, timeout=300
    )
    return result, inner


@pytest.mark.cluster
@pytest.mark.parametrize("cached", [True, False])
def test_the_systemd_unit_runs_where_package_and_home_cannot_be_written(tmp_path, cached):
    if os.geteuid() or subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no rights to a mount namespace")
    _, environment = read_settings()
    if not cached:
        environment = [line for line in environment if "CACHE" not in line]
    result, inner = run_unit(tmp_path, environment)
    assert result.returncode == 0, result.stderr
    assert "internal error" not in result.stderr
    assert any((inner / "var/cache/sigdask").rglob("*.nbi")) == cached
    assert not list((inner / "tmp").glob("sigdask-*"))
