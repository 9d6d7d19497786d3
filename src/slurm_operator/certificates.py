"""X.509: authorities that sign themselves, what they sign, and keys as PEM.

Python 3.13 and newer verify strictly: a CA without keyUsage, or a leaf without key identifiers, is refused by
every Python client. So each certificate carries the whole set.
"""

import os
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Key = ec.EllipticCurvePrivateKey

BACKDATED: Final = timedelta(hours=1)  # Clocks differ, and those of virtual machines jump after a pause.
SERVES: Final = ExtendedKeyUsageOID.SERVER_AUTH
ASKS: Final = ExtendedKeyUsageOID.CLIENT_AUTH

_USAGES: Final = (
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


@dataclass(frozen=True)
class Signer:
    """An authority: its certificate and the key that belongs to it."""

    certificate: x509.Certificate
    key: Key


@dataclass(frozen=True)
class Subject:
    """Whom a certificate is about: a name, the groups it is a member of, and under which hosts it serves."""

    name: str
    groups: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


def new_key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def authority(
    name: str, key: Key, now: datetime, life: timedelta, *, path_length: int | None = None
) -> x509.Certificate:
    """One that signs others, and itself."""
    return (
        _started(Subject(name), key, now, life)
        .issuer_name(_name(Subject(name)))
        .add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def signed(
    subject: Subject,
    key: Key,
    by: Signer | None,
    now: datetime,
    life: timedelta,
    purposes: Iterable[x509.ObjectIdentifier] = (SERVES,),
) -> x509.Certificate:
    """One to serve or ask with. Signed by nobody else, it is by its own key."""
    issuer, signing = (by.certificate.subject, by.key) if by is not None else (_name(subject), key)
    builder = (
        _started(subject, key, now, life)
        .issuer_name(issuer)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False
        )
    )
    if subject.hosts:
        names = x509.SubjectAlternativeName([_host(host) for host in subject.hosts])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signing, hashes.SHA256())


def hosts(certificate: x509.Certificate) -> set[str]:
    """Under which names and addresses it serves."""
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in names}


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def private_pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def read_key(text: bytes) -> Key:
    """Raises ValueError when it is of another kind than those that are made here."""
    key = serialization.load_pem_private_key(text, password=None)
    if not isinstance(key, Key):
        raise ValueError("the key is not of the kind that is made here")
    return key


def load(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """OpenSSL wants a file; one in memory works with a read-only root, and ends with its descriptor."""
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(key + b"\n" + certificate)
        # Without a password to ask for, an encrypted key is refused instead of read from a terminal.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=lambda: b"")
    finally:
        os.close(descriptor)


def _started(subject: Subject, key: Key, now: datetime, life: timedelta) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(subject: Subject) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in subject.groups]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, subject.name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(**allowed: bool) -> x509.KeyUsage:
    return x509.KeyUsage(**(dict.fromkeys(_USAGES, False) | allowed))
