"""Harmful files: bombs, pipes, devices, endless nesting, names of any length."""

import gzip
import json
import os
import zipfile

import pyarrow as pa
import pytest
from command import limit_cpu
from pyarrow import feather, parquet

from sigdask.api import compare_all
from sigdask.errors import InputError, SigdaskError
from sigdask.execution.clusters import connect
from sigdask.execution.clusters.description import read_description as describe_file
from sigdask.formats import read
from sigdask.io import as_path
from sigdask.nightly.plan import load_plan

LOG = json.dumps({"status": "success", "eval": {"task": "t", "model": "m"}})
DEEP = "[" * 100_000 + "]" * 100_000


def write_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def write_encrypted_zip(path):
    write_zip(path, {"header.json": LOG, "samples/1.json": "{}"})
    content = bytearray(path.read_bytes())
    content[content.find(b"PK\3\4") + 6] |= 1
    content[content.find(b"PK\1\2") + 8] |= 1
    path.write_bytes(content)
    return path


def write_text(path, text):
    path.write_text(text)
    return path


def make_fifo(path):
    os.mkfifo(path)
    return path


def write_workbook(path, *cells):
    openpyxl = pytest.importorskip("openpyxl")
    workbook = openpyxl.Workbook()
    for cell in cells:
        workbook.active[cell] = 1
    workbook.save(path)
    return path


def write_repeated_text(path, kind):
    """Write 200 rows of one text of 3 MB into a few KB."""
    text = pa.array(["x" * 3_000_000]).take(pa.array([0] * 200))
    table = pa.table({"item": range(200), "a": pa.array([[1]] * 200) if kind == "list" else text, "b": text})
    encoding = {"item": "PLAIN", "a": "DELTA_BYTE_ARRAY", "b": "DELTA_BYTE_ARRAY"} if kind == "delta" else None
    if kind == "feather":
        feather.write_feather(table.set_column(1, "a", text.dictionary_encode()), path, compression="zstd")
    else:
        parquet.write_table(table, path, compression="zstd", use_dictionary=encoding is None, column_encoding=encoding)
    return path


def write_column(path, write):
    write(pa.table({"item": pa.nulls(20_000_000, pa.int64()).fill_null(0)}), path, compression="zstd")
    return path


DECODED = {
    "gzip": lambda at: _write_gzip(at / "a.tsv.gz", 200),
    "a workbook of one cell": lambda at: write_workbook(at / "a.xlsx", "XFD1048576"),
    "a workbook of two far cells": lambda at: write_workbook(at / "a.xlsx", "A1", "CV65536", "XFD2"),
    "a Parquet dictionary": lambda at: write_repeated_text(at / "a", "dictionary"),
    "Parquet lists": lambda at: write_repeated_text(at / "a", "list"),
    "shared prefixes in Parquet": lambda at: write_repeated_text(at / "a", "delta"),
    "an Arrow dictionary": lambda at: write_repeated_text(at / "a", "feather"),
    "Arrow buffers": lambda at: write_column(at / "a", feather.write_feather),
    "Parquet runs": lambda at: write_column(at / "a", parquet.write_table),
}


@pytest.mark.parametrize("kind", DECODED)
@pytest.mark.slow
def test_a_small_file_that_is_large_when_decoded_is_refused_and_the_error_names_the_option(kind, tmp_path):
    path = DECODED[kind](tmp_path)
    with limit_cpu(), pytest.raises(InputError, match=r"auto:size=any"):
        read(path)


@pytest.mark.slow
def test_the_option_in_the_error_reads_a_larger_input(tmp_path):
    rows = "item,a,b\n" + "".join(f"{k},1,{k % 2}\n" for k in range(1000)) + "\n" * (105 << 20)
    (path := tmp_path / "t.csv.gz").write_bytes(gzip.compress(rows.encode(), 1))
    with pytest.raises(InputError, match=r"format='auto:size=any'"):
        read(path)
    assert read(path, format="auto:size=any").n_items == 1000


def test_a_gzip_file_of_very_many_members_is_refused_and_one_of_some_is_read(tmp_path):
    (path := tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"") * 200_000)
    with limit_cpu(), pytest.raises(InputError, match="200,000 gzip members"):
        read(path)
    path.write_bytes(gzip.compress(b"item,a,b\n") + gzip.compress(b"1,0,1\n") + gzip.compress(b"2,1,1\n"))
    assert read(path).n_items == 2


def test_a_workbook_with_a_wrong_dimension_is_read(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    workbook = openpyxl.Workbook()
    for row in (("item", "a", "b"), (1, 0.5, 0.25), (2, 1, 0)):
        workbook.active.append(row)
    workbook.save(plain := tmp_path / "plain.xlsx")
    with zipfile.ZipFile(plain) as packed:
        members = {name: packed.read(name).replace(b'"A1:C3"', b'"A1:XFD1048576"') for name in packed.namelist()}
    with limit_cpu():
        assert read(write_zip(tmp_path / "t.xlsx", members)).field("score").tolist() == [[0.5, 0.25], [1, 0]]


SPECIAL = {
    "a gzip bomb": lambda at: _write_gzip(at / "a.tsv.gz", 200),
    "an archive bomb": lambda at: write_zip(at / "a.eval", {"header.json": LOG, "samples/1.json": b" " * (40 << 20)}),
    "an encrypted log": lambda at: write_encrypted_zip(at / "a.eval"),
    "a nested header": lambda at: write_zip(at / "a.eval", {"header.json": DEEP}),
    "a nested sample": lambda at: write_zip(at / "a.eval", {"header.json": LOG, "samples/1.json": DEEP}),
    "a huge number": lambda at: write_zip(
        at / "a.eval", {"header.json": LOG, "samples/1.json": json.dumps({"id": 1, "scores": {"x": 10**400}})}
    ),
    "a list of scores": lambda at: write_zip(
        at / "a.eval", {"header.json": LOG, "samples/1.json": json.dumps({"id": 1, "scores": [3]})}
    ),
    "nested JSON": lambda at: write_text(at / "a.json", DEEP),
    "nested cells": lambda at: write_text(at / "a.jsonl", '{"id": 1, "a": %s}\n' % ("[" * 900 + "]" * 900) * 3),
    "nested objects": lambda at: write_text(at / "a.json", '{"a":' * 50_000 + "1" + "}" * 50_000),
    "a key of many parts": lambda at: write_text(at / "a.json", json.dumps([{"id": k, ".".join("a" * 50_000): k} for k in (1, 2)])),
    "a pipe": lambda at: make_fifo(at / "a.tsv"),
    "a device without an end": lambda at: "/dev/zero",
    "a long name": lambda at: "x" * 5000,
    "a zero byte": lambda at: "a\0b",
}  # fmt: skip


def _write_gzip(path, n_megabytes):
    with gzip.open(path, "wb", 1) as file:
        for _ in range(n_megabytes):
            file.write(b"0" * (1 << 20))
    return path


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.slow
def test_a_hostile_file_is_refused_soon(kind, tmp_path):
    path = SPECIAL[kind](tmp_path)
    with limit_cpu(), pytest.raises(SigdaskError):
        compare_all(read(str(path)), trials=16, cluster="none")


WIDE = {
    "a header": ",".join(f"c{k}" for k in range(400_000)) + "\n",
    "one name": "a," * 399_999 + "a\n" + "1," * 399_999 + "1\n",
    "rows": (",".join(f"c{k}" for k in range(100_000)) + "\n") + ("1," * 99_999 + "1\n") * 2,
    "a row": "item,a,b\n1,0.5,0.2\n2," + "1," * 10**6 + "1\n3,1,2\n",
    "objects": "{" + ",".join(f'"k{k}":1' for k in range(20_000)) + "}\n",
    "a line": "x" * 10**7 + "\n",
    "a cell": "item,a,b\n1,0.5," + "x" * 10**7 + "\n",
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Read a table by compiled code, so that no test waits for the compiler."""
    path = write_text(tmp_path_factory.mktemp("compiled") / "t.csv", "item,a,b\n" + "1,0.5,0.25\n" * 9000)
    with pytest.raises(InputError, match="repeat"):
        read(path)


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
@pytest.mark.parametrize("kind", WIDE)
def test_a_table_of_any_width_is_refused_soon(kind, tmp_path):
    path = write_text(tmp_path / ("t.jsonl" if kind == "objects" else "t.csv"), WIDE[kind])
    with limit_cpu(), pytest.raises(InputError) as error:
        read(path)
    assert len(str(error.value)) < 5000


@pytest.mark.parametrize("nested", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_parquet_that_repeats_one_value_without_end_is_a_bomb(tmp_path, nested):
    ones = pa.array([1]).take(pa.array([0] * (1 << 20)))
    column = pa.StructArray.from_arrays([ones], ["x"]) if nested else ones
    table = pa.concat_tables([pa.table({"item": column, "a": column, "b": column})] * 10)
    parquet.write_table(table, tmp_path / "a.parquet")
    for format_ in ("auto", "samples"):
        with limit_cpu(), pytest.raises(InputError, match="unpack to more than"):
            read(tmp_path / "a.parquet", format=format_)


def test_a_cluster_file_is_no_pipe(tmp_path):
    with limit_cpu(), pytest.raises(InputError, match=r"cluster file .*: no such file, or not a file"):
        describe_file(make_fifo(tmp_path / "a.toml"))


def test_what_a_fuzzer_found_is_refused_or_read(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InputError, match=r"loop: (cannot be read|no such file)"):
        read(tmp_path / "loop", format="samples")
    with pytest.raises(InputError, match="cannot open http"):
        as_path("http://[")
    with pytest.raises(InputError, match=r"tcp://\["), connect("tcp://["):
        pass
    plan = write_text(tmp_path / "plan.toml", f'[[test_set]]\nname = "a"\nsystems = "{"[" * 5000}"\n')
    with pytest.raises(InputError, match="systems"):
        load_plan(plan)
    small_table = write_text(tmp_path / "few.tsv", "item\ta\tb\n1\t0\t1\n2\t1\t1\n")
    assert compare_all(read(small_table), trials=16, alpha=1e-320, cluster="none")


def test_a_file_of_holes_and_one_of_zeros_are_refused(tmp_path):
    for start, reason in (("item\ta\tb\n1\t0\t1\n", "unpack to more"), ("", "a binary file")):
        path = write_text(tmp_path / "a.tsv", start)
        os.truncate(path, 1 << 40)
        with limit_cpu(), pytest.raises(InputError, match=reason):
            read(path)
