"""Certificates: an authority of our own, and what it signs. Keys are readable by their owner only."""

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from slurm_operator import certificates
from slurm_operator.certificates import Signer, Subject

_LIFE = timedelta(days=3650)


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
            key = certificates.new_key()
            _write(self.pair, certificates.authority(name, key, datetime.now(UTC), _LIFE), key)
        certificate = x509.load_pem_x509_certificate(self.pair.certificate.read_bytes())
        self._signer = Signer(certificate, certificates.read_key(self.pair.key.read_bytes()))

    def issue(self, file: str, name: str, groups: Iterable[str] = (), hosts: Iterable[str] = ()) -> Pair:
        """A certificate for `name`, member of `groups`, that may serve under `hosts` (names, addresses)."""
        pair = _pair(self._directory, file)
        with self._lock:  # Nodes are made side by side, and some certificates are for all of them.
            if not pair.key.exists():
                key = certificates.new_key()
                subject = Subject(name, tuple(groups), tuple(hosts))
                purposes = (certificates.SERVES, certificates.ASKS)
                made = certificates.signed(subject, key, self._signer, datetime.now(UTC), _LIFE, purposes)
                _write(pair, made, key)
        return pair


def signing_pair(directory: Path, file: str) -> Pair:
    """A bare key pair, for signing tokens; `certificate` holds the public key."""
    pair = Pair(directory / f"{file}.pub", directory / f"{file}.key")
    if not pair.key.exists():
        key = certificates.new_key()
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        pair.certificate.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, form))
        _write_private(pair.key, key)
    return pair


def _pair(directory: Path, file: str) -> Pair:
    return Pair(directory / f"{file}.crt", directory / f"{file}.key")


def _write(pair: Pair, certificate: x509.Certificate, key: certificates.Key) -> None:
    # The key last: it is the sign that both are there.
    pair.certificate.write_bytes(certificates.pem(certificate))
    _write_private(pair.key, key)


def _write_private(path: Path, key: certificates.Key) -> None:
    write_secret(path, certificates.private_pem(key))


def write_secret(path: Path, data: bytes) -> None:
    """A file that was never readable by anybody else, not even for a moment."""
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    partial.rename(path)
