"""Certificates: an authority of our own, and what it signs. Keys are readable by their owner only.

Python 3.13 and newer verify strictly: a CA without keyUsage, or a leaf without key identifiers, is refused by
every Python client in the cluster. So each certificate carries the whole set.
"""

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = timedelta(days=3650)
_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
_BACKDATED = timedelta(hours=1)  # Clocks of virtual machines jump after a pause.


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates into one directory. A directory that already has an authority is used as it is."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self.pair = _pair(directory, name)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.pair.key.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            _write(self.pair, _self_signed(name, key), key)
        self._certificate = x509.load_pem_x509_certificate(self.pair.certificate.read_bytes())
        key_ = serialization.load_pem_private_key(self.pair.key.read_bytes(), password=None)
        assert isinstance(key_, ec.EllipticCurvePrivateKey)
        self._key = key_

    def issue(self, file: str, name: str, groups: Iterable[str] = (), hosts: Iterable[str] = ()) -> Pair:
        """A certificate for `name`, member of `groups`, that may serve under `hosts` (names, addresses)."""
        pair = _pair(self._directory, file)
        with self._lock:  # Nodes are made side by side, and some certificates are for all of them.
            if not pair.key.exists():
                key = ec.generate_private_key(ec.SECP256R1())
                _write(pair, self._signed(name, groups, hosts, key), key)
        return pair

    def _signed(
        self, name: str, groups: Iterable[str], hosts: Iterable[str], key: ec.EllipticCurvePrivateKey
    ) -> x509.Certificate:
        subject = [*((NameOID.ORGANIZATION_NAME, group) for group in groups), (NameOID.COMMON_NAME, name)]
        builder = (
            _started(subject, key)
            .issuer_name(self._certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if names := [_general_name(host) for host in hosts]:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def signing_pair(directory: Path, file: str) -> Pair:
    """A bare key pair, for signing tokens; `certificate` holds the public key."""
    pair = Pair(directory / f"{file}.pub", directory / f"{file}.key")
    if not pair.key.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        pair.certificate.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, form))
        _write_private(pair.key, key)
    return pair


def _self_signed(name: str, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    subject = [(NameOID.COMMON_NAME, name)]
    return (
        _started(subject, key)
        .issuer_name(_name(subject))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _started(
    subject: list[tuple[x509.ObjectIdentifier, str]], key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(subject: list[tuple[x509.ObjectIdentifier, str]]) -> x509.Name:
    return x509.Name([x509.NameAttribute(kind, value) for kind, value in subject])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(**allowed: bool) -> x509.KeyUsage:
    return x509.KeyUsage(**(dict.fromkeys(_USAGES, False) | allowed))


def _pair(directory: Path, file: str) -> Pair:
    return Pair(directory / f"{file}.crt", directory / f"{file}.key")


def _write(pair: Pair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    # The key last: it is the sign that both are there.
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_private(pair.key, key)


def _write_private(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_secret(path, pem)


def write_secret(path: Path, data: bytes) -> None:
    """A file that was never readable by anybody else, not even for a moment."""
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    partial.rename(path)
