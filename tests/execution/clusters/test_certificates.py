"""Tests of certificates: signature, purpose, lifetime and file permissions."""

import os
import shutil
import stat
from datetime import UTC, datetime, timedelta

import pytest

x509 = pytest.importorskip("cryptography.x509")

from sigdask.errors import InputError  # noqa: E402
from sigdask.execution.certificates import ROLES, CertificateFiles, check_files, create_certificates, open_certificates  # noqa: E402
from sigdask.execution.clusters.description import ClusterDescription, Transport  # noqa: E402


@pytest.fixture
def files(tmp_path):
    return create_certificates(tmp_path / "certs", days=3)


def load_certificate(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_only_their_owner_may_read_them_whatever_the_umask(tmp_path):
    old_umask = os.umask(0)
    try:
        files = create_certificates(tmp_path / "open")
    finally:
        os.umask(old_umask)
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_the_authoritys_key_is_not_kept(files):
    private = [path for path in files.ca.parent.iterdir() if b"PRIVATE KEY" in path.read_bytes()]
    assert sorted(private) == sorted(files.keys.values())
    public = {path.read_bytes() for path in private}
    assert len(public) == len(ROLES)


def test_each_is_signed_by_the_authority_and_for_its_role(files):
    authority = load_certificate(files.ca)
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    for role, path in files.certs.items():
        certificate = load_certificate(path)
        certificate.verify_directly_issued_by(authority)
        assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        uses = {use._name for use in certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value}
        assert uses == ({"clientAuth"} if role == "client" else {"clientAuth", "serverAuth"})


def test_they_live_for_days_and_began_an_hour_ago_since_clocks_differ(files):
    for path in (files.ca, *files.certs.values()):
        certificate, now = load_certificate(path), datetime.now(UTC)
        assert timedelta(minutes=55) < now - certificate.not_valid_before_utc < timedelta(minutes=65)
        assert timedelta(days=2, hours=23) < certificate.not_valid_after_utc - now < timedelta(days=3, minutes=1)


def test_nothing_is_overwritten(files):
    with pytest.raises(InputError, match="already has certificates"):
        create_certificates(files.ca.parent)


def test_a_key_that_others_may_read_is_refused(files):
    files.keys["client"].chmod(0o644)
    with pytest.raises(InputError, match="other users can read it"):
        check_files(files)


def test_an_expired_or_missing_certificate_is_named(tmp_path, files):
    with pytest.raises(InputError, match="no such file"):
        check_files(CertificateFiles.from_folder(tmp_path / "none"))
    old = create_certificates(tmp_path / "old", days=-0.01)
    with pytest.raises(InputError, match="expired"):
        check_files(old)


def test_those_made_for_a_run_are_gone_after_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with open_certificates(ClusterDescription("ssh")) as files:
        folder = files.ca.parent
        assert tmp_path in folder.parents
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists()


def test_those_of_a_local_cluster_are_their_owners_and_gone_after_it_even_where_home_cannot_be_written(
    tmp_path, monkeypatch
):
    (tmp_path / "home").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with open_certificates(ClusterDescription("local")) as files:
        folder = files.ca.parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert not folder.exists()


def test_what_a_killed_run_left_in_home_is_swept_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    leftover = tmp_path / ".sigdask" / "tls" / "run-killed"
    with open_certificates(ClusterDescription("ssh")) as files:
        shutil.copytree(files.ca.parent, leftover)
        with open_certificates(ClusterDescription("ssh")):
            assert not leftover.exists()
            assert files.ca.exists()


def test_ones_own_are_taken_as_they_are(files):
    transport = Transport(ca=files.ca, cert=files.certs["worker"], key=files.keys["worker"])
    with open_certificates(ClusterDescription("ssh", transport=transport)) as files_used:
        assert files_used.certs["client"] == files.certs["worker"]
    assert files.ca.exists()
