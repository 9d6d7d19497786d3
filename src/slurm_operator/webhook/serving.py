"""The certificate in use: loaded without a file of ours on disk, and changed under running connections."""

import ssl
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from slurm_operator import certificates
from slurm_operator.webhook.authority import Unusable

# In a PEM of any kind of private key, and in no certificate.
_KEY_MARK = b"PRIVATE KEY-----"


class Served:
    """The TLS side of the server. New connections meet the newest certificate, others keep theirs."""

    def __init__(self) -> None:
        self.context = _context()
        self.expires_at: datetime | None = None
        self._loaded: tuple[bytes, bytes] | None = None

    @property
    def is_ready(self) -> bool:
        return self._loaded is not None

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC)

    def use(self, certificate: bytes, key: bytes) -> bool:
        """Serve with this certificate from now on; whether it is another one. Raises Unusable."""
        if self._loaded == (certificate, key):
            return False
        try:
            certificates.load(_context(), certificate, key)  # A bad pair must not spoil the good one.
            certificates.load(self.context, certificate, key)
            self.expires_at = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
        except (ssl.SSLError, ValueError) as error:
            raise Unusable(f"no certificate and key that belong together: {error}") from error
        self._loaded = (certificate, key)
        return True


def read_files(place: Path) -> tuple[bytes, bytes]:
    """What cert-manager, or a person, has put there: two files in a directory, or a certificate in a file.

    The key is then in the same file, or beside it as `tls.key`. Raises Unusable when one is missing.
    """
    try:
        if place.is_file():
            content = place.read_bytes()
            return content, b"" if _KEY_MARK in content else place.with_name("tls.key").read_bytes()
        return (place / "tls.crt").read_bytes(), (place / "tls.key").read_bytes()
    except OSError as error:
        raise Unusable(f"cannot read the certificate: {error}") from error


def has_certificate(directory: Path) -> bool:
    return (directory / "tls.crt").exists() and (directory / "tls.key").exists()


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
