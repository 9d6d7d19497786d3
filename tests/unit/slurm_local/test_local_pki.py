"""Certificates that strict verifiers accept, and files nobody else can read."""

import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from slurm_local.kubernetes.pki import Authority, Pair, signing_pair


def handshake(server: Pair, client: Pair, ca: Path, name: str) -> None:
    """A TLS handshake in memory in which both sides verify as strictly as Python 3.13 does."""
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(ca))
    serving.verify_mode = ssl.CERT_REQUIRED
    asking = ssl.create_default_context(cafile=str(ca))
    for context, pair in ((serving, server), (asking, client)):
        context.load_cert_chain(pair.certificate, pair.key)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    up, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        asking.wrap_bio(back, up, server_hostname=name),
        serving.wrap_bio(up, back, server_side=True),
    ]
    while sides:
        for side in list(sides):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            sides.remove(side)


@pytest.mark.parametrize("name", ["localhost", "10.96.0.1"])
def test_both_sides_trust_each_other_by_name_and_by_address(tmp_path: Path, name: str) -> None:
    authority = Authority(tmp_path, "ca")
    server = authority.issue("server", "server", hosts=["localhost", "10.96.0.1"])
    client = authority.issue("client", "client")

    handshake(server, client, authority.pair.certificate, name)


def test_a_name_that_was_not_asked_for_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    server = authority.issue("server", "server", hosts=["localhost"])
    client = authority.issue("client", "client")

    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, client, authority.pair.certificate, "elsewhere")


def test_another_authority_is_not_trusted(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path, "ca"), Authority(tmp_path, "etcd-ca")
    server = theirs.issue("server", "server", hosts=["localhost"])
    client = ours.issue("client", "client")

    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, client, ours.pair.certificate, "localhost")


def test_groups_become_organizations(tmp_path: Path) -> None:
    pair = Authority(tmp_path, "ca").issue("node", "system:node:a", groups=["system:nodes"])
    subject = x509.load_pem_x509_certificate(pair.certificate.read_bytes()).subject

    assert [each.value for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == [
        "system:nodes"
    ]
    assert [each.value for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["system:node:a"]


def test_an_authority_that_exists_is_kept(tmp_path: Path) -> None:
    before = Authority(tmp_path, "ca").pair.certificate.read_bytes()

    assert Authority(tmp_path, "ca").pair.certificate.read_bytes() == before


def test_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki", "ca")
    keys = [authority.pair.key, authority.issue("x", "x").key, signing_pair(tmp_path / "pki", "tokens").key]

    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700
