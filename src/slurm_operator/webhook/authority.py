"""Certificates that the webhook makes for itself: an authority, what it signs, and when each is made again.

Nobody who trusts the old must meet the new unprepared. A new authority is trusted for a day before it signs
anything, and an old one until it runs out; a new serving certificate is signed by what is trusted already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509

from slurm_operator import certificates
from slurm_operator.certificates import Signer, Subject

AUTHORITY_LIFE: Final = timedelta(days=3650)
AUTHORITY_RENEWED: Final = timedelta(days=365)  # Before its end.
SERVING_LIFE: Final = timedelta(days=90)
SERVING_RENEWED: Final = timedelta(days=30)  # Before its end.
TRUSTED_BEFORE_USE: Final = timedelta(days=1)


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
            if all(
                certificate.public_key() == certificates.read_key(pem).public_key()
                for certificate, pem in pairs
            ):
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
    signer = _authority(now)
    certificate, serving_key = _serving(signer, hosts, now)
    return Bundle(
        certificates.pem(signer.certificate), certificates.private_pem(signer.key), certificate, serving_key
    )


def renewed(bundle: Bundle, hosts: Sequence[str], now: datetime) -> Bundle:
    """The bundle with the one step that is due; itself when nothing is."""
    authority, newest = bundle.certificates[0], bundle.certificates[-1]
    if authority.not_valid_after_utc <= now:
        return first(hosts, now)  # Nobody ran for a year; nothing that it signs would be trusted.
    if bundle.next_key and now - newest.not_valid_before_utc >= TRUSTED_BEFORE_USE + certificates.BACKDATED:
        return _promoted(bundle, hosts, now)
    if not bundle.next_key and authority.not_valid_after_utc - now <= AUTHORITY_RENEWED:
        added = _authority(now)
        trusted = bundle.trusted + certificates.pem(added.certificate)
        return replace(bundle, trusted=trusted, next_key=certificates.private_pem(added.key))
    serving = bundle.serving
    if serving.not_valid_after_utc - now <= SERVING_RENEWED or not set(hosts) <= certificates.hosts(serving):
        signer = Signer(authority, certificates.read_key(bundle.signing_key))
        certificate, key = _serving(signer, hosts, now)
        return replace(bundle, certificate=certificate, key=key)
    return bundle


def _promoted(bundle: Bundle, hosts: Sequence[str], now: datetime) -> Bundle:
    """Sign with the new authority from now on; the old ones are trusted until they run out."""
    *former, newest = bundle.certificates
    kept = [one for one in former if one.not_valid_after_utc > now]
    certificate, key = _serving(Signer(newest, certificates.read_key(bundle.next_key)), hosts, now)
    return Bundle(b"".join(map(certificates.pem, [newest, *kept])), bundle.next_key, certificate, key)


def _authority(now: datetime) -> Signer:
    key = certificates.new_key()
    made = certificates.authority("slurm-operator-webhook-ca", key, now, AUTHORITY_LIFE, path_length=0)
    return Signer(made, key)


def _serving(signer: Signer, hosts: Sequence[str], now: datetime) -> tuple[bytes, bytes]:
    key = certificates.new_key()
    subject = Subject("slurm-operator-webhook", hosts=tuple(hosts))
    certificate = certificates.signed(subject, key, signer, now, SERVING_LIFE)
    return certificates.pem(certificate), certificates.private_pem(key)
