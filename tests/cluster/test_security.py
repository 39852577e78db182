"""Tests of security: who can connect, what listens, and what hostile names and files cannot do."""

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
from cluster.hosts import list_sockets, start_dask_cluster
from cluster.slurm import wait_until
from cluster.work import counted

from sigdask.errors import InputError
from sigdask.execution.clusters import connect, parse_description
from sigdask.execution.clusters.lifecycle import list_listening as list_reported

SIGDASK = str(Path(sys.executable).parent / "sigdask")
LOOPBACK = {"127.0.0.1", "::1"}


@pytest.fixture(scope="module")
def secured(certificates, tmp_path_factory):
    with start_dask_cluster(tmp_path_factory.mktemp("tls-cluster"), files=certificates) as address:
        yield address


def describe_address(address, **security):
    table = {"class": "address", "wait": 30, "options": {"address": address}}
    return parse_description({**table, "security": security} if security else table, source="c.toml")


def test_a_client_with_our_certificate_counts(secured, certificates, exact):
    jobs, want = exact
    with connect(describe_address(secured, folder=str(certificates.ca.parent))) as cluster:
        assert counted(jobs, cluster=cluster, blocks_per_task=3) == want


def test_a_client_without_a_certificate_is_told_what_it_needs(secured):
    with pytest.raises(InputError, match="TLS needs certificates"), connect(secured):
        pass


def test_a_client_of_another_authority_is_refused(secured, tmp_path):
    from sigdask.execution.certificates import create_certificates

    other_certificates = create_certificates(tmp_path / "other")
    with (
        pytest.raises(InputError, match="no dask scheduler answers"),
        connect(describe_address(secured, folder=str(other_certificates.ca.parent))),
    ):
        pass


def test_a_client_that_trusts_our_authority_but_has_anothers_certificate_is_refused(secured, certificates, tmp_path):
    from sigdask.execution.certificates import create_certificates

    other_certificates = create_certificates(tmp_path / "other")
    mixed = {
        "ca": str(certificates.ca),
        "cert": str(other_certificates.certs["client"]),
        "key": str(other_certificates.keys["client"]),
    }
    with pytest.raises(InputError, match="no dask scheduler answers"), connect(describe_address(secured, **mixed)):
        pass


def test_plain_tcp_is_refused_by_a_tls_scheduler(secured):
    with pytest.raises(InputError, match="no dask scheduler answers"), connect(secured.replace("tls://", "tcp://")):
        pass


def test_every_port_of_scheduler_nanny_and_worker_wants_a_certificate(secured, certificates):
    with connect(describe_address(secured, folder=str(certificates.ca.parent))) as cluster:
        info = cluster.client.scheduler_info()
        ports = [secured, *info["workers"], *(worker["nanny"] for worker in info["workers"].values())]
        assert len(ports) == 3
        for address in ports:
            host, port = address.removeprefix("tls://").split(":")
            assert requires_certificate(host, int(port)), address


def requires_certificate(host, port):
    """Whether a handshake fails for lack of a certificate; TLS 1.3 says so at the first read."""
    context = ssl._create_unverified_context()
    try:
        with socket.create_connection((host, port), timeout=2) as raw, context.wrap_socket(raw) as encrypted:
            encrypted.recv(1)
    except (ssl.SSLError, TimeoutError) as error:
        return "certificate required" in str(error).lower()
    return False


def serves_pages(host, port):
    with socket.create_connection((host, port), timeout=5) as raw:
        raw.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        return raw.recv(5) == b"HTTP/"


def test_plain_tcp_elsewhere_is_warned_about(caplog):
    with (
        caplog.at_level("WARNING", "sigdask"),
        pytest.raises(InputError, match="no dask scheduler answers"),
        connect("tcp://192.0.2.255:9"),
    ):
        pass
    assert "plain tcp" in caplog.text


def list_listening(pid):
    """Return the addresses on which a process and its children listen."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    addresses = set()
    for process in processes:
        try:
            addresses |= {(c.laddr.ip, c.laddr.port) for c in process.net_connections("inet") if c.status == "LISTEN"}
        except psutil.NoSuchProcess:
            continue
    return addresses


@pytest.mark.parametrize("cluster", ["local", "threads", "auto"])
def test_a_run_listens_on_loopback_only(tmp_path, cluster):
    table = tmp_path / "scores.csv"
    table.write_text("item,x,y\n" + "".join(f"q{k},{k % 7 / 8},{k % 5 / 8}\n" for k in range(500)))
    command = [SIGDASK, "compare", table, "--cluster", cluster, "--trials", str(2**26), "--workers", "2"]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seen = set()
    try:
        end = time.monotonic() + (60 if cluster == "local" else 8)
        while run.poll() is None and time.monotonic() < end:
            if (addresses := list_listening(run.pid)) and not seen:
                end = time.monotonic() + 8
            seen |= addresses
            time.sleep(0.2)
    finally:
        run.terminate()
        run.wait()
    assert {ip for ip, _ in seen} <= LOOPBACK
    assert bool(seen) == (cluster == "local")


def test_the_dashboard_of_a_queue_listens_on_loopback_and_all_else_speaks_tls(slurm, exact):
    jobs, want = exact
    described = parse_description(
        {"class": "slurm", "workers": 1, "wait": 60, "options": {"cores": 1, "memory": "1GB"}}, source="c"
    )
    before = list_listening(os.getpid())
    with connect(described) as cluster:
        assert counted(jobs, cluster=cluster) == want
        [worker] = cluster.client.run(os.getpid).values()
        driver_addresses = list_listening(os.getpid()) - before
        worker_addresses = list_listening(psutil.Process(worker).ppid())
        open_ports = [(ip, port) for ip, port in driver_addresses | worker_addresses if ip not in LOOPBACK]
        for ip, port in open_ports:
            assert speaks_tls(ip if ip != "0.0.0.0" else "127.0.0.1", port), (ip, port)


def speaks_tls(host, port):
    context = ssl._create_unverified_context()
    try:
        with socket.create_connection((host, port), timeout=5) as raw, context.wrap_socket(raw):
            return True
    except ssl.SSLError as error:
        return "certificate required" in str(error).lower()


CUSTOM = "distributed:LocalCluster"


@pytest.mark.parametrize(
    ("table", "beyond"),
    [
        ({"class": "local"}, set()),
        ({"class": "local", "expose": True, "options": {"dashboard_address": ":0"}}, {"http"}),
        ({"class": CUSTOM, "options": {"n_workers": 1}}, set()),
        ({"class": CUSTOM, "options": {"n_workers": 1, "host": "0.0.0.0"}}, {"tls"}),
        ({"class": CUSTOM, "options": {"n_workers": 1, "host": "0.0.0.0"}, "security": "tcp", "expose": True}, {"tcp"}),
        (
            {"class": CUSTOM, "options": {"n_workers": 1, "dashboard_address": "0.0.0.0:0"}, "expose": True},
            {"http"},
        ),
    ],
)
def test_listening_addresses_are_those_of_the_sockets(table, beyond, caplog):
    before = list_sockets()
    with (
        caplog.at_level("INFO", "sigdask"),
        connect(parse_description({"workers": 1, "wait": 60, **table}, source="c.toml")) as cluster,
    ):
        listening = list_reported(cluster.client)
        sockets = list_sockets() - before
    assert {port for *_, port in listening} == {port for _, port in sockets}
    elsewhere = {(host, port) for host, port in sockets if host not in LOOPBACK}
    assert {port for _, _, host, port in listening if host not in LOOPBACK} == {port for _, port in elsewhere}
    assert {protocol for _, protocol, host, _ in listening if host not in LOOPBACK} == beyond
    assert all(f":{port}" in caplog.text for _, port in elsewhere)
    assert ("other machines can reach" in caplog.text) == bool(beyond)
    page = next(host for role, protocol, host, _ in listening if role == "scheduler" and protocol == "http")
    assert f"dashboard: http://{f'[{page}]' if ':' in page else page}:" in caplog.text


@pytest.mark.parametrize(
    "table",
    [
        {"class": "local", "options": {"dashboard_address": ":0"}},
        {"class": CUSTOM, "options": {"n_workers": 1, "host": "0.0.0.0"}, "security": "tcp"},
        {"class": CUSTOM, "options": {"n_workers": 1, "dashboard_address": ":0"}},
        {"class": CUSTOM, "options": {"n_workers": 1, "worker_dashboard_address": ":0"}},
    ],
)
def test_listening_beyond_loopback_without_tls_is_refused(table):
    before = list_sockets()
    described = parse_description({"workers": 1, "wait": 60, **table}, source="c.toml")
    with (
        pytest.raises(InputError, match=r"c\.toml: other machines can reach, without TLS: .*expose = true"),
        connect(described),
    ):
        pass
    assert not list_sockets() - before


def check_plain_tcp_beyond_loopback(table, dashboard, caplog):
    """Plain tcp between machines goes on, warned about and logged; pages beyond loopback are refused."""
    described = parse_description({**table, "security": "tcp"}, source="c.toml")
    with caplog.at_level("INFO", "sigdask"), connect(described) as cluster:
        beyond = {(protocol, port) for _, protocol, host, port in list_reported(cluster.client) if host not in LOOPBACK}
        ports = {port for _, port in beyond}
        assert {port for host, port in list_sockets(ports) if host not in LOOPBACK} == ports
    assert {protocol for protocol, _ in beyond} == {"tcp"}
    assert "plain tcp" in caplog.text
    assert all(f":{port}" in caplog.text for port in ports)
    options = {**table["options"], "scheduler_options": {"dashboard_address": dashboard}}
    exposed = {**table, "options": options, "security": "tcp"}
    with (
        pytest.raises(InputError, match="other machines can reach, without TLS: scheduler http"),
        connect(parse_description(exposed, source="c.toml")),
    ):
        pass
    with connect(parse_description({**exposed, "expose": True}, source="c.toml")) as cluster:
        assert cluster.client.nthreads()


def test_plain_tcp_of_a_queue_goes_on_and_its_addresses_are_logged(slurm, caplog, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # without certificates the jobs' logs go there
    table = {"class": "slurm", "workers": 1, "wait": 60, "options": {"cores": 1, "memory": "1GB"}}
    check_plain_tcp_beyond_loopback(table, ":0", caplog)


def test_plain_tcp_over_ssh_goes_on_and_its_addresses_are_logged(login, caplog):
    hosts = {"hosts": ["127.0.0.1"], "python": sys.executable, "connect": login, "worker_options": {"nthreads": 1}}
    check_plain_tcp_beyond_loopback({"class": "ssh", "wait": 60, "options": hosts}, "0.0.0.0:0", caplog)


HOSTILE_NAMES = ["<script>alert(1)</script>", "$(touch pwned)", "`touch pwned`", "'; DROP TABLE tallies; --", "a;touch pwned",
           "\x1b[31mred", "[bold]x[/bold]", "../../etc/passwd"]  # fmt: skip


def test_hostile_names_reach_no_shell_and_no_page(tmp_path):
    pytest.importorskip("bokeh")
    table = tmp_path / "scores.csv"
    header = ",".join('"' + name.replace('"', '""') + '"' for name in ["item", *HOSTILE_NAMES])
    rows = "".join(
        f"{name},{','.join(str((j * k) % 7) for j in range(len(HOSTILE_NAMES)))}\n" for k, name in enumerate("abcdefgh")
    )
    table.write_text(header + "\n" + rows)
    command = [SIGDASK, "--log-json", "compare", table, "--cluster", "local", "--workers", "1", "--trials", "20000",
               "--method", "randomization", "--json", "out.json"]  # fmt: skip
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not (tmp_path / "pwned").exists()
    assert "\x1b" not in process.stdout
    assert all(json.loads(line)["logger"].startswith("sigdask") for line in process.stderr.splitlines())
    assert "<script>alert(1)" not in (tmp_path / "report.html").read_text()
    names = {result["a"] for result in json.loads((tmp_path / "out.json").read_text())["results"]}
    assert HOSTILE_NAMES[0] in names


@pytest.mark.parametrize("path", ["/tmp/$(touch pwned)", "/tmp/a;b", "/tmp/a b", "/tmp/`x`", "/tmp/a\nb"])
def test_a_path_that_a_job_script_would_run_is_refused(path, monkeypatch, tmp_path):
    pytest.importorskip("dask_jobqueue")
    monkeypatch.setenv("PATH", str(tmp_path))
    for command in ("sbatch", "scancel", "squeue"):
        (tmp_path / command).touch(0o755)
    described = parse_description({"class": "slurm", "workers": 1, "options": {
        "cores": 1, "memory": "1GB", "local_directory": path}}, source="c.toml")  # fmt: skip
    with pytest.raises(InputError, match="is written into a job script"), connect(described):
        pass


@pytest.mark.parametrize("named", ["local", {"class": "local", "workers": 1}])
def test_who_reaches_loopback_without_a_certificate_can_run_nothing_on_a_local_cluster(exact, named):
    jobs, want = exact
    before = list_listening(os.getpid())
    with connect(named, workers=1) as cluster:
        assert counted(jobs, cluster=cluster) == want
        cluster_addresses = list_listening(os.getpid()) - before
        closed = [(ip, port) for ip, port in cluster_addresses if requires_certificate(ip, port)]
        assert len(closed) == 3  # scheduler, nanny and worker
        assert all(serves_pages(ip, port) for ip, port in cluster_addresses.difference(closed))
        with (
            pytest.raises(InputError, match="no dask scheduler answers"),
            connect(cluster.client.scheduler.address.replace("tls://", "tcp://")),
        ):
            pass


@pytest.mark.parametrize("named", ["local+tcp", {"class": "local", "security": "tcp"}])
def test_a_local_cluster_speaks_plain_tcp_where_that_is_asked_for(exact, named):
    jobs, want = exact
    with connect(named, workers=1) as cluster:
        assert cluster.client.scheduler.address.startswith("tcp://127.0.0.1:")
        assert counted(jobs, cluster=cluster) == want


def test_what_a_killed_run_leaves_in_temporary_folders_is_swept_by_the_next(tmp_path):
    table = tmp_path / "scores.csv"
    table.write_text("item,x,y\n" + "".join(f"q{k},{k % 7 / 8},{k % 5 / 8}\n" for k in range(500)))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [SIGDASK, "compare", table, "--cluster", "local", "--workers", "1", "--trials"]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    run = subprocess.Popen([*command, str(2**30)], env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: list(scratch.glob("sigdask-dask-*/*/worker-*")), "workers", 60)
    finally:
        run.kill()
        run.wait()
    leftovers = {path.name.rpartition("-")[0] for path in scratch.iterdir()}
    assert leftovers >= {"sigdask-tls", "sigdask-dask"}
    subprocess.run([*command, "20000"], env=environment, check=True, capture_output=True)
    assert not list(scratch.iterdir())


def test_prometheus_counts_trials_beside_dasks_own_metrics(exact):
    pytest.importorskip("prometheus_client")
    from urllib.request import urlopen

    jobs, _ = exact
    with connect("local", workers=1) as cluster:
        counted(jobs, cluster=cluster)
        port = cluster.client.scheduler_info()["services"]["dashboard"]
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
    samples = [line for line in text.splitlines() if line.startswith("sigdask_trials_total")]
    assert float(samples[0].split()[1]) >= sum(job.n_trials for job in jobs)
    assert "dask_scheduler_workers" in text


def test_certificates_by_the_command_line_are_those_dask_takes(tmp_path, exact):
    pytest.importorskip("cryptography")
    from sigdask.execution.certificates import CertificateFiles

    jobs, want = exact
    subprocess.run([SIGDASK, "certificates", tmp_path / "certs", "--days", "1"], check=True, capture_output=True)
    files = CertificateFiles.from_folder(tmp_path / "certs")
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    (tmp_path / "c.toml").write_text(
        'class = "address"\n[options]\naddress = "ADDRESS"\n[security]\nfolder = "certs"\n'
    )
    with start_dask_cluster(tmp_path, files=files) as address:
        file = tmp_path / "c.toml"
        file.write_text(file.read_text().replace("ADDRESS", address))
        with connect(str(file)) as cluster:
            assert counted(jobs, cluster=cluster) == want
