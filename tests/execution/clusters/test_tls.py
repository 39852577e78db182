"""Tests of certificates of a run and of the user's own: permissions, lifetime of the files, refusals."""

import stat

import pytest

from sigdask.errors import InputError
from sigdask.execution.clusters.description import ClusterDescription, Transport
from sigdask.execution.clusters.tls import open_tls_files


def describe_own(files):
    return ClusterDescription("ssh", transport=Transport(ca=files.ca, cert=files.cert, key=files.key))


@pytest.mark.parametrize("kind", ["local", "ssh"])
def test_files_of_a_run_are_private_and_gone_after_it(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("HOME", str(tmp_path))
    with open_tls_files(ClusterDescription(kind)) as files:
        folder = files.ca.parent
        assert (tmp_path in folder.parents) == (kind == "ssh")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
        assert files.to_security().require_encryption
    assert not folder.exists()


def test_a_local_cluster_needs_no_home(tmp_path, monkeypatch):
    (tmp_path / "home").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with open_tls_files(ClusterDescription("local")) as files:
        assert files.key.is_file()
    with pytest.raises(InputError, match="certificates cannot be written"), open_tls_files(ClusterDescription("ssh")):
        pass


def test_own_files_are_used_as_they_are_unless_missing_or_open_to_others():
    with open_tls_files(ClusterDescription("local")) as files:
        with open_tls_files(describe_own(files)) as own:
            assert own == files
        files.key.chmod(0o644)
        with pytest.raises(InputError, match="other users can read it"), open_tls_files(describe_own(files)):
            pass
        files.cert.unlink()
        with pytest.raises(InputError, match=r"cert\.pem: no such file"), open_tls_files(describe_own(files)):
            pass
