"""URLs of real servers on loopback (S3 in its own process, HTTP): reading, refusals, time limits."""

import gzip

import pytest
from command import call_sigdask
from object_store import SECRET, ObjectStore, serve_folder, write_scores

from sigdask.errors import InputError
from sigdask.formats import read
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan

pytest.importorskip("aiohttp")

PASSWORD, TOKEN = "pa5s:w0rd", "0af9s1gnature"
TABLE = "id,a,b\n" + "".join(f"i{k},{k % 3},{k % 2}\n" for k in range(40))


@pytest.fixture
def server(tmp_path):
    """Yield a web server of files."""
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / "a.csv").write_text(TABLE)
    (folder / "b.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    with serve_folder(folder) as running:
        yield running


def build_secret_url(server, path):
    return server.url.replace("://", "://ann:pa5s%3Aw0rd@") + f"{path}?X-Amz-Signature={TOKEN}"


def test_a_table_is_read_over_http_and_each_file_is_fetched_once(server):
    counts = read(f"{server.url}/a.csv")
    assert (counts.systems, counts.n_items) == (("a", "b"), 40)
    assert [method for method, path, _ in server.asked if path == "/a.csv"] == ["HEAD", "GET"]
    assert read(f"{server.url}/b.csv.gz").n_items == 40


def test_a_password_and_a_signature_in_a_url_reach_the_server_alone(server):
    read(build_secret_url(server, "/a.csv"))
    _, path, authorization = server.asked[-1]
    assert path == f"/a.csv?X-Amz-Signature={TOKEN}"
    assert authorization == "Basic YW5uOnBhNXM6dzByZA=="  # ann:pa5s:w0rd


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("none.csv", "no such file"),
        ("403/a.csv", "access was denied; set your credentials in the environment"),
        ("401/a.csv", "access was denied"),
        ("500/a.csv", "the server cannot be reached, or answers with an error (50"),
        ("503/a.csv", "the server cannot be reached, or answers with an error (50"),
    ],
)
def test_what_a_server_refuses_is_told_by_its_url(server, path, said):
    with pytest.raises(InputError) as raised:
        read(f"{server.url}/{path}?sig={TOKEN}")
    assert str(raised.value).startswith(f"{server.url}/{path}?***: {said}")
    assert TOKEN not in str(raised.value.__context__)  # what lies behind it may tell the URL as it is


@pytest.mark.slow
def test_no_stream_of_a_run_holds_what_is_secret_in_a_url(server, tmp_path):
    urls = {}
    for k, name in enumerate(("base", "new")):
        write_scores(tmp_path / "web" / f"{name}.csv", seed=k)
        urls[name] = build_secret_url(server, f"/{name}.csv")
    outputs = '[report]\njson = "r.json"\ntext = "r.txt"\nhtml = "r.html"\n[gate]\njunit = "j.xml"\njson = "g.json"\n'
    outputs += '[[gate.rules]]\nrule = "not-worse"\nbaseline = "base"\n'
    system_list = ", ".join(f'{name} = "{url}"' for name, url in urls.items())
    (tmp_path / "n.toml").write_text(
        f'trials = 500\n[[test_set]]\nname = "s"\nmetrics = ["mean"]\nsystems = {{ {system_list} }}\n{outputs}'
    )
    bad = system_list.replace("/new.csv", "/403/new.csv")
    (tmp_path / "bad.toml").write_text((tmp_path / "n.toml").read_text().replace(system_list, bad))
    results = [
        call_sigdask("run", "n.toml", "--json", "o.json", cwd=tmp_path),
        call_sigdask("check", "n.toml", cwd=tmp_path),
        call_sigdask("report", "n.toml", "-o", "p.html", "--all", cwd=tmp_path),
        call_sigdask("status", "n.toml", "--json", cwd=tmp_path),
        call_sigdask("history", "n.toml", cwd=tmp_path),
        call_sigdask("compare", *urls.values(), "--json", "c.json", "-o", "c.html", "--all", cwd=tmp_path),
    ]
    assert [result.returncode for result in results] == [0] * 6, [result.stderr for result in results]
    refused = [
        call_sigdask("check", "bad.toml", cwd=tmp_path),
        call_sigdask("compare", *(url.replace("/new.csv", "/403/new.csv") for url in urls.values()), cwd=tmp_path),
        call_sigdask("compare", urls["new"].replace("new.csv", "none.csv"), cwd=tmp_path),
        call_sigdask("compare", "=" + urls["new"], cwd=tmp_path),
        call_sigdask("compare", urls["base"], urls["base"], "--gold", urls["new"], "--format", "labels", cwd=tmp_path),
    ]
    assert {result.returncode for result in refused} == {2}
    streams = [text for result in (*results, *refused) for text in (result.stdout, result.stderr)]
    contents = [file.read_bytes() for file in tmp_path.iterdir() if file.is_file() and file.suffix != ".toml"]
    assert len(contents) >= 10
    assert "?***" in (tmp_path / "r.html").read_text() + streams[7]
    for hidden in ("pa5s", "w0rd", TOKEN):
        assert not any(hidden in text for text in streams)
        assert not any(hidden.encode() in content for content in contents)


# -- S3 -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def buckets(tmp_path_factory):
    """Yield a client of an S3 server that runs in its own process."""
    s3fs = pytest.importorskip("s3fs")
    pytest.importorskip("moto.server")
    with pytest.MonkeyPatch.context() as patch, (tmp_path_factory.mktemp("s3") / "log").open("wb") as log:
        store = ObjectStore(log)
        for name, value in store.environment.items():
            patch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        client = s3fs.S3FileSystem()
        client.mkdir("nightly-runs")
        yield client
        store.kill()
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.slow
def test_a_plan_of_runs_in_a_bucket_finds_what_the_plan_of_paths_finds(buckets, tmp_path):
    for k, name in enumerate(("base", "new", "old")):
        write_scores(tmp_path / f"{name}.csv", seed=k)
        buckets.put_file(str(tmp_path / f"{name}.csv"), f"nightly-runs/2026-01-01/{name}.csv")
    outcomes = []
    for number, systems in enumerate(("{system}.csv", "s3://nightly-runs/2026-01-01/{system}.csv")):
        (tmp_path / f"{number}.toml").write_text(
            f'trials = 2000\n[report]\nhtml = "{number}.html"\n[[test_set]]\nname = "one"\nmetrics = ["mean"]\nsystems = "{systems}"\n'
        )
        outcomes.append(run_plan(load_plan(tmp_path / f"{number}.toml")))
    local_outcome, remote_outcome = outcomes
    assert remote_outcome.results["one"].to_json() == local_outcome.results["one"].to_json()
    digests = [list(outcome.report.run.details["inputs"]["one"].values()) for outcome in outcomes]
    assert digests[0] == digests[1]
    assert not any(SECRET.encode() in file.read_bytes() for file in tmp_path.iterdir() if file.is_file())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://nightly-runs/none.csv", "no such file"),
        ("s3://no-such-bucket/a.csv", "no such file"),
        ("s3://nightly-runs", "is a directory, expected a file"),
    ],
)
def test_what_is_not_in_a_bucket_is_told_by_its_url(buckets, url, said):
    buckets.pipe("nightly-runs/x/a.csv", TABLE.encode())
    with pytest.raises(InputError, match=f"^{url}: {said}"):
        read(url, format="wide")
