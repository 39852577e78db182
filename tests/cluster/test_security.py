"""Who gets in, what listens, and what hostile names and files can do: nothing."""

import json
import os
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from cluster.hosts import dask_cluster
from cluster.work import counted

from sigdask.clusters import connect, describe
from sigdask.errors import InputError

SIGDASK = str(Path(sys.executable).parent / "sigdask")
LOOPBACK = {"127.0.0.1", "::1"}


@pytest.fixture(scope="module")
def secured(certificates, tmp_path_factory):
    with dask_cluster(tmp_path_factory.mktemp("tls-cluster"), files=certificates) as address:
        yield address


def at(address, **security):
    table = {"class": "address", "wait": 30, "options": {"address": address}}
    return describe({**table, "security": security} if security else table, where="c.toml")


def test_a_client_with_our_certificate_counts(secured, certificates, exact):
    jobs, want = exact
    with connect(at(secured, folder=str(certificates.ca.parent))) as cluster:
        assert counted(jobs, cluster=cluster, blocks_per_task=3) == want


def test_a_client_without_a_certificate_is_told_what_it_needs(secured):
    with pytest.raises(InputError, match="TLS needs certificates"), connect(secured):
        pass


def test_a_client_of_another_authority_is_refused(secured, tmp_path):
    from sigdask.clusters.certificates import make

    other = make(tmp_path / "other")
    with (
        pytest.raises(InputError, match="no dask scheduler answers"),
        connect(at(secured, folder=str(other.ca.parent))),
    ):
        pass


def test_a_client_that_trusts_our_authority_but_has_anothers_certificate_is_refused(secured, certificates, tmp_path):
    from sigdask.clusters.certificates import make

    other = make(tmp_path / "other")
    mixed = {"ca": str(certificates.ca), "cert": str(other.certs["client"]), "key": str(other.keys["client"])}
    with pytest.raises(InputError, match="no dask scheduler answers"), connect(at(secured, **mixed)):
        pass


def test_plain_tcp_is_refused_by_a_tls_scheduler(secured):
    with pytest.raises(InputError, match="no dask scheduler answers"), connect(secured.replace("tls://", "tcp://")):
        pass


def test_every_port_of_scheduler_nanny_and_worker_wants_a_certificate(secured, certificates):
    with connect(at(secured, folder=str(certificates.ca.parent))) as cluster:
        info = cluster.client.scheduler_info()
        ports = [secured, *info["workers"], *(worker["nanny"] for worker in info["workers"].values())]
        assert len(ports) == 3
        for address in ports:
            host, port = address.removeprefix("tls://").split(":")
            context = ssl.create_default_context(cafile=str(certificates.ca))
            context.check_hostname = False
            with (  # TLS 1.3: the refusal arrives with the first read
                pytest.raises(ssl.SSLError, match="(?i)certificate required"),
                socket.create_connection((host, int(port)), timeout=5) as raw,
                context.wrap_socket(raw) as spoken,
            ):
                spoken.recv(1)


def test_plain_tcp_elsewhere_is_warned_about(caplog):
    with (
        caplog.at_level("WARNING", "sigdask"),
        pytest.raises(InputError, match="no dask scheduler answers"),
        connect("tcp://192.0.2.255:9"),
    ):
        pass
    assert "plain tcp" in caplog.text


def listening(pid):
    """Addresses on which a process and its children listen."""
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    found = set()
    for process in family:
        try:
            found |= {(c.laddr.ip, c.laddr.port) for c in process.net_connections("inet") if c.status == "LISTEN"}
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.mark.parametrize("cluster", ["local", "threads", "auto"])
def test_a_run_listens_on_loopback_only(tmp_path, cluster):
    table = tmp_path / "scores.csv"
    table.write_text("item,x,y\n" + "".join(f"q{k},{k % 7 / 8},{k % 5 / 8}\n" for k in range(500)))
    command = [SIGDASK, "compare", table, "--cluster", cluster, "--trials", str(2**26), "--workers", "2"]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seen = set()
    try:
        end = time.monotonic() + 8
        while run.poll() is None and time.monotonic() < end:
            seen |= listening(run.pid)
            time.sleep(0.2)
    finally:
        run.terminate()
        run.wait()
    assert {ip for ip, _ in seen} <= LOOPBACK
    assert bool(seen) == (cluster == "local")


def test_the_dashboard_of_a_queue_listens_on_loopback_and_all_else_speaks_tls(slurm, exact):
    jobs, want = exact
    described = describe(
        {"class": "slurm", "workers": 1, "wait": 60, "options": {"cores": 1, "memory": "1GB"}}, where="c"
    )
    before = listening(os.getpid())
    with connect(described) as cluster:
        assert counted(jobs, cluster=cluster) == want
        [worker] = cluster.client.run(os.getpid).values()
        mine = listening(os.getpid()) - before
        theirs = listening(psutil.Process(worker).ppid())
        open_ports = [(ip, port) for ip, port in mine | theirs if ip not in LOOPBACK]
        for ip, port in open_ports:
            assert speaks_tls(ip if ip != "0.0.0.0" else "127.0.0.1", port), (ip, port)


def speaks_tls(host, port):
    context = ssl._create_unverified_context()
    try:
        with socket.create_connection((host, port), timeout=5) as raw, context.wrap_socket(raw):
            return True
    except ssl.SSLError as error:
        return "certificate required" in str(error).lower()


HOSTILE = ["<script>alert(1)</script>", "$(touch pwned)", "`touch pwned`", "'; DROP TABLE tallies; --", "a;touch pwned",
           "\x1b[31mred", "[bold]x[/bold]", "../../etc/passwd"]  # fmt: skip


def test_hostile_names_reach_no_shell_and_no_page(tmp_path):
    pytest.importorskip("bokeh")
    table = tmp_path / "scores.csv"
    header = ",".join('"' + name.replace('"', '""') + '"' for name in ["item", *HOSTILE])
    rows = "".join(
        f"{name},{','.join(str((j * k) % 7) for j in range(len(HOSTILE)))}\n" for k, name in enumerate("abcdefgh")
    )
    table.write_text(header + "\n" + rows)
    command = [SIGDASK, "--log-json", "compare", table, "--cluster", "local", "--workers", "1", "--trials", "20000",
               "--method", "randomization", "--json", "out.json", "--performance-report", "report.html"]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not (tmp_path / "pwned").exists()
    assert "\x1b" not in done.stdout
    assert all(json.loads(line)["logger"].startswith("sigdask") for line in done.stderr.splitlines())
    assert "<script>alert(1)" not in (tmp_path / "report.html").read_text()
    names = {result["a"] for result in json.loads((tmp_path / "out.json").read_text())["results"]}
    assert HOSTILE[0] in names


@pytest.mark.parametrize("path", ["/tmp/$(touch pwned)", "/tmp/a;b", "/tmp/a b", "/tmp/`x`", "/tmp/a\nb"])
def test_a_path_that_a_job_script_would_run_is_refused(path, monkeypatch, tmp_path):
    pytest.importorskip("dask_jobqueue")
    monkeypatch.setenv("PATH", str(tmp_path))
    described = describe({"class": "slurm", "workers": 1, "options": {
        "cores": 1, "memory": "1GB", "local_directory": path}}, where="c.toml")  # fmt: skip
    with pytest.raises(InputError, match="goes into a job script"), connect(described):
        pass


def test_a_local_cluster_speaks_tls_where_the_machine_is_shared(exact):
    pytest.importorskip("cryptography")
    jobs, want = exact
    with connect(describe({"class": "local", "workers": 1, "security": "tls"}, where="c")) as cluster:
        assert cluster.client.scheduler.address.startswith("tls://127.0.0.1:")
        assert counted(jobs, cluster=cluster) == want


def test_prometheus_counts_trials_beside_dasks_own_metrics(exact):
    pytest.importorskip("prometheus_client")
    from urllib.request import urlopen

    jobs, _ = exact
    with connect("local", workers=1) as cluster:
        counted(jobs, cluster=cluster)
        port = cluster.client.scheduler_info()["services"]["dashboard"]
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
    found = [line for line in text.splitlines() if line.startswith("sigdask_trials_total")]
    assert float(found[0].split()[1]) >= sum(job.n_trials for job in jobs)
    assert "dask_scheduler_workers" in text


def test_certificates_by_the_command_line_are_those_dask_takes(tmp_path, exact):
    pytest.importorskip("cryptography")
    from sigdask.clusters.certificates import Files

    jobs, want = exact
    subprocess.run([SIGDASK, "certificates", tmp_path / "certs", "--days", "1"], check=True, capture_output=True)
    files = Files.of(tmp_path / "certs")
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    (tmp_path / "c.toml").write_text(
        'class = "address"\n[options]\naddress = "ADDRESS"\n[security]\nfolder = "certs"\n'
    )
    with dask_cluster(tmp_path, files=files) as address:
        file = tmp_path / "c.toml"
        file.write_text(file.read_text().replace("ADDRESS", address))
        with connect(str(file)) as cluster:
            assert counted(jobs, cluster=cluster) == want
