"""URLs used like paths: reading, writing, fetching and hiding secrets."""

import gc
import logging
import os
import pickle
import re
import sys
from pathlib import Path
from urllib.parse import quote, quote_plus

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sigdask.cli.streams import LogLines
from sigdask.errors import InputError
from sigdask.formats import Source, read
from sigdask.io import as_path
from sigdask.text import redact

HEAD = "id,a,b\n"
ROWS = "".join(f"i{k},{k % 3},{k % 2}\n" for k in range(30))


def copy_folder(system, folder, target):
    """Copy a folder into a file system."""
    for file in Path(folder).rglob("*"):
        if file.is_file():
            system.pipe(f"{target}/{file.relative_to(folder).as_posix()}", file.read_bytes())


def check_same_counts(counts, expected):
    """Check that two readings gave the same counts."""
    assert (counts.systems, counts.ids, counts.groups) == (expected.systems, expected.ids, expected.groups)
    assert list(counts.fields) == list(expected.fields)
    for name in counts.fields:
        np.testing.assert_array_equal(counts.fields[name], expected.fields[name])


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("s3://bucket/runs/a.tsv", "s3://bucket/runs/a.tsv"),
        ("s3://AKID:sec/ret@bucket/a.tsv", "s3://***@bucket/a.tsv"),
        ("s3://bucket/ann@home/a:b@c.tsv", "s3://bucket/ann@home/a:b@c.tsv"),
        ("https://ann:p@ss:word@host:8080/a.tsv", "https://***@host:8080/a.tsv"),
        ("https://ghp_token@host/a.tsv", "https://***@host/a.tsv"),
        ("https://host/a.tsv?X-Amz-Credential=A%2FB&X-Amz-Signature=0af", "https://host/a.tsv?***"),
        ("https://host/a.tsv?0af9", "https://host/a.tsv?***"),
        ("https://host/a?sig=x;b=y#access_token=z", "https://host/a?***"),
        ("https://host/a.tsv?path=runs/a.tsv&versionId=7", "https://host/a.tsv?***"),
        ("abfs://runs@lab.dfs.core.windows.net/a.tsv?sv=1&sig=x%3D", "abfs://runs@lab.dfs.core.windows.net/a.tsv?***"),
        ("zip://a.tsv::https://u:p@host/a.zip?t=1", "zip://a.tsv::https://***@host/a.zip?***"),
        ("simplecache::sftp://u:p@host/a.tsv", "simplecache::sftp://***@host/a.tsv"),
        ("a = 'https://u:p@h/a?k=v' and \"ftp://u:p@h/b\"", "a = 'https://***@h/a?***' and \"ftp://***@h/b\""),
        ("postgresql://ann:p@s/s?w:rd@host:5432/night?sslmode=require", "postgresql://***@host:5432/night?***"),
        ("postgresql+psycopg://ann@host/night?P%61ssword=x&options=-c%20a%3Db", "postgresql+psycopg://***@host/night?***"),
        ("https://h/a?file=https%3A%2F%2Fu%3Apw%40h%2Fb&path=b?token=x", "https://h/a?***"),
        ("store https://h/a?v=x: no answer (see https://h/b?v=x).", "store https://h/a?***: no answer (see https://h/b?***)."),
        ("s3://bucket/run?.tsv", "s3://bucket/run?.tsv"),
        ("runs/a.tsv?x=1", "runs/a.tsv?x=1"),
    ],
)  # fmt: skip
def test_what_may_be_secret_in_a_url_is_hidden(url, written):
    assert redact(url) == written
    assert redact(written) == written


SECRET_NAMES = (
    "password", "PASSWD", "pwd", "token", "access_token", "api-key", "API_KEY", "apikey", "X-Amz-Signature", "sig", "SAS",
    "sas", "secret", "client_secret", "key", "auth", "X-Amz-Security-Token", "jsessionid", "SharedAccessKey", "sslpassword",
)  # fmt: skip
SECRETS = st.text("abcdefghijkmnopqrstuvwxyz0123456789", min_size=8, max_size=20).map(lambda text: f"Q{text}Z")
PLACES = {
    "password": "{scheme}://ann:{secret}@host/a",
    "password with a quotation mark": "{scheme}://ann:it's{secret}@host/a",
    "encoded user and password": "{scheme}://ann%3A{secret}%40host/a",
    "encoded colon": "{scheme}://ann%3a{secret}@host/a",
    "query": "{scheme}://host/a?b=1&{name}={secret}&c=2",
    "semicolons in the query": "{scheme}://host/a?b=1;{name}={secret};c=2",
    "path": "{scheme}://host/a;{name}={secret}/b.tsv",
    "path before a query": "{scheme}://host/a;v=1;{name}={secret}?b=1",
    "fragment": "{scheme}://host/a#{name}={secret}",
    "encoded within a value": "{scheme}://host/a?next=https%3A%2F%2Fhost%2F%3F{name}%3D{secret}",
    "encoded twice": "{scheme}://host/a?next=https%253A%252F%252Fann%253A{secret}%2540host",
    "encoded equals sign": "{scheme}://host/a?{name}%3D{secret}=1",
    "chained": "zip://a.tsv::{scheme}://host/a.zip?{name}={secret}",
}


@st.composite
def urls_with_a_secret(draw):
    """Draw a secret and a URL with it anywhere; characters of the name of its parameter may be percent-encoded."""
    scheme = draw(st.sampled_from(["https", "http", "s3", "ftp", "postgresql", "postgresql+psycopg", "HTTPS"]))
    name, secret = draw(st.sampled_from(SECRET_NAMES)), draw(SECRETS)
    case = draw(st.sampled_from([str, str.upper, str.lower, str.title]))
    times = draw(st.lists(st.integers(0, 2), min_size=len(name), max_size=len(name)))
    encoded = "".join(f"%{'25' * (n - 1)}{ord(c):02x}" if n else c for c, n in zip(case(name), times, strict=True))
    return secret, draw(st.sampled_from([*PLACES.values()])).format(scheme=scheme, name=encoded, secret=secret)


@pytest.mark.slow
@given(urls_with_a_secret(), st.sampled_from(["{}", "cannot open {}: refused", "item '{}', line 3", '["{}"]', "({})"]))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_a_secret_anywhere_in_a_url_is_in_no_text_message_or_log_line(secret_and_url, sentence):
    secret, url = secret_and_url
    text = sentence.format(url)
    record = logging.makeLogRecord({"msg": text, "levelno": 20, "levelname": "INFO", "created": 0})
    written = [redact(text), str(InputError(text)), LogLines().format(record)]
    assert not [line for line in written if secret.lower() in re.sub(r"\s", "", line).lower()]


@given(SECRETS)
@settings(max_examples=30, deadline=None)
def test_a_secret_that_another_program_repeats_is_hidden_also_when_encoded(secret):
    secret = f"{secret}/+ä"
    for repeated in (secret, quote(secret), quote(secret, safe=""), quote_plus(secret)):
        assert redact(f"wrong: {repeated}!", values=[secret]) == "wrong: ***!"


def test_a_table_is_read_the_same_from_a_url_as_from_a_path_gzipped_or_not(memory, tmp_path):
    import gzip

    (tmp_path / "a.csv").write_text(HEAD + ROWS)
    memory.pipe({"/t/a.csv": (HEAD + ROWS).encode(), "/t/b.csv.gz": gzip.compress((HEAD + ROWS).encode())})
    for name in ("a.csv", "b.csv.gz"):
        check_same_counts(read(f"memory://t/{name}"), read(tmp_path / "a.csv"))


def test_a_folder_of_logs_at_a_url_gives_the_newest_of_each_task(memory, tmp_path):
    import json

    rows = [
        {"doc_id": k, "doc": {"q": k}, "target": "1", "filter": "none", "metrics": ["acc"], "resps": [["1"]]}
        for k in range(4)
    ]
    for day, value in (("2024-05-01", 1), ("2024-05-02", 0)):
        for system in ("base", "new"):
            file = tmp_path / system / f"samples_t_{day}T02-00-00.123456.jsonl"
            file.parent.mkdir(exist_ok=True)
            file.write_text("".join(json.dumps(row | {"acc": value}) + "\n" for row in rows))
    copy_folder(memory, tmp_path, "/logs")
    remote = read("memory://logs/base", "memory://logs/new")
    local = read(tmp_path / "base", tmp_path / "new")
    check_same_counts(remote, local)
    assert [file.name for file in remote.files] == [file.name for file in local.files]
    assert str(remote.files[0]) == "memory://logs/base/samples_t_2024-05-02T02-00-00.123456.jsonl"
    assert [note.replace("memory://logs/", "") for note in remote.warnings] == list(local.warnings)


def test_what_is_not_there_is_an_error_that_names_the_url(memory):
    memory.pipe("/t/a.csv", b"id,a\n")
    with pytest.raises(InputError, match=r"^memory://t/none.csv: no such file"):
        read("memory://t/none.csv")
    with pytest.raises(InputError, match=r"memory://t: is a directory"):
        read("memory://t", format="wide")


def test_a_copy_is_private_and_goes_with_its_path(memory):
    memory.pipe("/t/a.csv", (HEAD + ROWS).encode())
    path = as_path("memory://t/a.csv")
    read(Source(path))
    copy_here = Path(os.fspath(path))
    assert copy_here.stat().st_mode & 0o077 == 0  # for no other user
    memory.pipe("/t/a.csv", (HEAD + ROWS[:28]).encode())
    assert read("memory://t/a.csv").n_items == 4  # what changed is fetched anew
    del path
    gc.collect()
    assert not copy_here.exists()


def test_a_path_that_is_a_url_is_its_url_wherever_it_goes(memory):
    memory.pipe("/t/runs/a.csv", b"x")
    path = as_path("memory://t/runs/a.csv")
    folder = path.parent
    assert isinstance(path, Path)
    assert (str(folder), folder.is_dir(), path.is_file(), (folder / "none").exists()) == (
        "memory://t/runs",
        True,
        True,
        False,
    )
    assert (path.name, path.suffix, path.relative_to(as_path("memory://t"))) == ("a.csv", ".csv", Path("runs/a.csv"))
    assert list(folder.iterdir()) == list(folder.glob("*.csv")) == list(folder.parent.rglob("a*")) == [path]
    assert path != Path("/t/runs/a.csv")
    assert pickle.loads(pickle.dumps(path)) == path
    assert path.resolve() is path
    with path.open() as file:
        assert file.read() == "x"


def test_a_pickled_url_holds_nothing_secret():
    assert b"5ecret" not in pickle.dumps(as_path("https://ann:5ecret@host/a.csv?sig=5ecret"))


def test_a_package_that_is_not_there_is_named(monkeypatch):
    registry = sys.modules["fsspec.registry"]
    for name in [name for name in sys.modules if name.partition(".")[0] == "paramiko"] + ["paramiko"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "fsspec.implementations.sftp", None)
    memory_only = {name: kind for name, kind in registry._registry.items() if name == "memory"}
    monkeypatch.setattr(registry, "_registry", memory_only)
    monkeypatch.setattr(registry, "registry", memory_only)
    with pytest.raises(InputError, match=r"^sftp://\*\*\*@host/a.tsv: .*requires \"paramiko\"") as raised:
        as_path("sftp://ann:pw@host/a.tsv")
    assert raised.value.__context__ is None


def test_credentials_in_the_url_of_a_store_and_unknown_kinds_of_urls_are_refused():
    with pytest.raises(InputError, match=r"^s3://\*\*\*@bucket/a: s3:// URLs take no password; set your credentials"):
        as_path("s3://key:5ecret@bucket/a")
    with pytest.raises(InputError, match=r"^nfs://host/a: fsspec cannot open nfs:// URLs"):
        as_path("nfs://host/a")
