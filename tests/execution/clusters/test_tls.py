"""Tests of certificates: of a run, and the user's own files."""

import pytest
from cluster.hosts import write_certificates

from sigdask.errors import InputError
from sigdask.execution.clusters.description import build_security, parse_description


def test_a_run_has_its_own_certificate_unless_plain_tcp_is_asked_for():
    first, second = (build_security(parse_description({"class": "ssh"}, source="c")) for _ in range(2))
    assert first.require_encryption
    assert first.tls_client_key != second.tls_client_key
    assert build_security(parse_description({"class": "ssh", "security": "tcp"}, source="c")) is None


def test_own_files_are_used_as_they_are_unless_missing_or_open_to_others(tmp_path):
    files = write_certificates(tmp_path)
    own = {"class": "local", "certificates": {"ca": "ca.pem", "cert": "cert.pem", "key": "key.pem"}}
    description = parse_description(own, source="c.toml", folder=tmp_path)  # paths are relative to the file
    assert build_security(description).tls_worker_key == files["key"]
    (tmp_path / "key.pem").chmod(0o644)
    with pytest.raises(InputError, match="other users can read it"):
        build_security(description)
    (tmp_path / "cert.pem").unlink()
    with pytest.raises(InputError, match=r"cert\.pem: no such file"):
        build_security(description)
