"""Certificates that the webhook makes for itself: an authority, what it signs, and when each is made again.

Nobody who trusts the old must meet the new unprepared. A new authority is trusted for a day before it signs
anything, and an old one until it runs out; a new serving certificate is signed by what is trusted already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE: Final = timedelta(days=3650)
AUTHORITY_RENEWED: Final = timedelta(days=365)  # Before its end.
SERVING_LIFE: Final = timedelta(days=90)
SERVING_RENEWED: Final = timedelta(days=30)  # Before its end.
TRUSTED_BEFORE_USE: Final = timedelta(days=1)
_BACKDATED: Final = timedelta(hours=1)  # The API server's clock may be behind ours.

_NO_USAGE: Final = {
    "digital_signature": False,
    "content_commitment": False,
    "key_encipherment": False,
    "data_encipherment": False,
    "key_agreement": False,
    "key_cert_sign": False,
    "crl_sign": False,
    "encipher_only": False,
    "decipher_only": False,
}


class Unusable(Exception):  # noqa: N818 - says what is wrong with somebody's data
    """These bytes are no certificates that could be served or signed with."""


@dataclass(frozen=True)
class Bundle:
    """Everything that is kept, as PEM. The first certificate of `trusted` belongs to `signing_key`.

    With a `next_key`, the last one belongs to that, and signs as soon as it has been trusted long enough.
    """

    trusted: bytes
    signing_key: bytes
    certificate: bytes
    key: bytes
    next_key: bytes = b""

    @property
    def entries(self) -> dict[str, bytes]:
        """As the entries of a Secret, named as cert-manager names them where it has a name."""
        found = {
            "ca.crt": self.trusted,
            "ca.key": self.signing_key,
            "tls.crt": self.certificate,
            "tls.key": self.key,
        }
        return found | ({"next-ca.key": self.next_key} if self.next_key else {})

    @classmethod
    def of(cls, entries: Mapping[str, bytes]) -> "Bundle":
        """Raises Unusable when an entry is missing or is not what its name says."""
        try:
            bundle = cls(
                entries["ca.crt"],
                entries["ca.key"],
                entries["tls.crt"],
                entries["tls.key"],
                entries.get("next-ca.key", b""),
            )
            pairs = [(bundle.certificates[0], bundle.signing_key), (bundle.serving, bundle.key)]
            if bundle.next_key:
                pairs.append((bundle.certificates[-1], bundle.next_key))
            if all(certificate.public_key() == _key(pem).public_key() for certificate, pem in pairs):
                return bundle
            raise Unusable("a key and its certificate do not belong together")
        except (KeyError, ValueError, TypeError) as error:
            raise Unusable(f"an entry is missing or broken: {error}") from error

    @property
    def certificates(self) -> list[x509.Certificate]:
        return x509.load_pem_x509_certificates(self.trusted)

    @property
    def serving(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.certificate)


def first(hosts: Sequence[str], now: datetime) -> Bundle:
    """An authority, and a certificate to serve under these names with."""
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _authority(key, now)
    certificate, serving_key = _serving(authority, key, hosts, now)
    return Bundle(_pem(authority), _private(key), certificate, serving_key)


def renewed(bundle: Bundle, hosts: Sequence[str], now: datetime) -> Bundle:
    """The bundle with the one step that is due; itself when nothing is."""
    authority, newest = bundle.certificates[0], bundle.certificates[-1]
    if authority.not_valid_after_utc <= now:
        return first(hosts, now)  # Nobody ran for a year; nothing that it signs would be trusted.
    if bundle.next_key and now - newest.not_valid_before_utc >= TRUSTED_BEFORE_USE + _BACKDATED:
        return _promoted(bundle, hosts, now)
    if not bundle.next_key and authority.not_valid_after_utc - now <= AUTHORITY_RENEWED:
        key = ec.generate_private_key(ec.SECP256R1())
        return replace(bundle, trusted=bundle.trusted + _pem(_authority(key, now)), next_key=_private(key))
    serving = bundle.serving
    if serving.not_valid_after_utc - now <= SERVING_RENEWED or not set(hosts) <= _hosts(serving):
        certificate, key_ = _serving(authority, _key(bundle.signing_key), hosts, now)
        return replace(bundle, certificate=certificate, key=key_)
    return bundle


def _promoted(bundle: Bundle, hosts: Sequence[str], now: datetime) -> Bundle:
    """Sign with the new authority from now on; the old ones are trusted until they run out."""
    *former, newest = bundle.certificates
    kept = [one for one in former if one.not_valid_after_utc > now]
    certificate, key = _serving(newest, _key(bundle.next_key), hosts, now)
    return Bundle(b"".join(map(_pem, [newest, *kept])), bundle.next_key, certificate, key)


def _authority(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    name = _name("slurm-operator-webhook-ca")
    return (
        _started(name, key, now, AUTHORITY_LIFE)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.KeyUsage(**(_NO_USAGE | {"key_cert_sign": True, "crl_sign": True})), critical=True
        )
        .sign(key, hashes.SHA256())
    )


def _serving(
    authority: x509.Certificate, signing: ec.EllipticCurvePrivateKey, hosts: Sequence[str], now: datetime
) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([_host(host) for host in hosts])
    certificate = (
        _started(_name("slurm-operator-webhook"), key, now, SERVING_LIFE)
        .issuer_name(authority.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**(_NO_USAGE | {"digital_signature": True})), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False
        )
        .add_extension(names, critical=False)
        .sign(signing, hashes.SHA256())
    )
    return _pem(certificate), _private(key)


def _started(
    name: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _hosts(certificate: x509.Certificate) -> set[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in names}


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not of the kind that is made here")
    return key
