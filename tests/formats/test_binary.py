"""Binary files: the error names their kind and the remedy, and never suggests iconv."""

import bz2
import gzip
import io
import lzma
import pickle
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sigdask.errors import RefusedFileError
from sigdask.formats import read

TABLE = b"id,a,b\n" + b"".join(b"%d,0.%d,0.%d\n" % (k, k, k + 1) for k in range(1, 9))


def _pack_zip(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/"), content)
    return packed.getvalue()


def _pack_tar() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as file:
        member = tarfile.TarInfo("scores.csv")
        member.size = len(TABLE)
        file.addfile(member, io.BytesIO(TABLE))
    return packed.getvalue()


def _pack_npy() -> bytes:
    packed = io.BytesIO()
    np.save(packed, np.arange(3))
    return packed.getvalue()


FILES = {
    "scores.ods": (_pack_zip(mimetype=b"application/vnd.oasis.opendocument.spreadsheet"), "OpenDocument"),
    "scores.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an old Office file"),
    "scores.zip": (_pack_zip(**{"scores.csv": TABLE}), "a zip archive"),
    "scores.npy": (_pack_npy(), "a NumPy array"),
    "scores.pkl": (pickle.dumps({"a": [1]}), "a binary file of an unknown kind"),
    "scores.csv.bz2": (bz2.compress(TABLE), "bzip2"),
    "scores.csv.xz": (lzma.compress(TABLE), "xz"),
    "scores.7z": (b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(40), "a 7z archive"),
    "scores.tar.gz": (gzip.compress(_pack_tar()), "a binary file of an unknown kind"),
    "scores.txt": ("item\ta\n1\t0\n".encode("utf-16"), "UTF-16 text"),
    "scores.pdf": (b"%PDF-1.7\n\xe2\xe3\xcf\xd3", "a PDF"),
    "scores.bin": (bytes(range(1, 40)) + b"\0\0\xff\xfe" * 30, "a binary file of an unknown kind"),
}
"""Content, and what the error calls it."""


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("as_gold", [False, True])
def test_a_binary_file_is_named_as_what_it_is(tmp_path: Path, name: str, as_gold: bool) -> None:
    content, kind = FILES[name]
    path, plain = tmp_path / name, tmp_path / "plain.csv"
    path.write_bytes(content)
    plain.write_bytes(TABLE)
    with pytest.raises(RefusedFileError) as error:
        read(plain, gold=path) if as_gold else read(path)
    message = str(error.value)
    assert message.startswith(f"{path}: is ")
    assert kind in message
    assert "unpack it, or write" in message
    assert "iconv" not in message
