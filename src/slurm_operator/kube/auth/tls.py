"""Certificates: whom we trust and what we show, noticed when the files behind them change."""

import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from slurm_operator.kube.errors import ConfigProblem

# Certificates and keys as PEM, or the file that holds them.
Pem = bytes | Path


@dataclass(frozen=True)
class Trust:
    """Which server certificate we accept. Without an authority: what the system trusts."""

    authority: Pem | None = None
    insecure: bool = False
    server_name: str = ""


@dataclass(frozen=True)
class ClientCertificate:
    """What we show the server, when it knows us by certificate."""

    certificate: Pem = field(repr=False)
    key: Pem = field(repr=False)


class TlsContexts:
    """Builds the TLS context for a certificate, once, and again when a file has changed.

    A new context means new connections; running watches finish on the old one.
    """

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._made_from: object = None
        self._context: ssl.SSLContext | None = None

    def context(self, shown: ClientCertificate | None = None) -> ssl.SSLContext:
        parts = (self._trust.authority, *((shown.certificate, shown.key) if shown else ()))
        made_from = [fingerprint(part) for part in parts]
        if self._context is None or made_from != self._made_from:
            self._context = _context(self._trust, shown)
            self._made_from = made_from
        return self._context


def fingerprint(pem: Pem | None) -> object:
    """Differs when the content does, without reading it. Mounted Secrets change by a swapped symlink."""
    if not isinstance(pem, Path):
        return pem
    try:
        found = pem.stat()
    except OSError as error:
        raise ConfigProblem(f"cannot read {pem}: {error.strerror}") from error
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def _context(trust: Trust, shown: ClientCertificate | None) -> ssl.SSLContext:
    # With its own authority the system's are not loaded: only the cluster's CA vouches for the API server.
    given = None if trust.authority is None else _pem_text(trust.authority)
    if given == "":  # To Python that is none given, and then everybody's would do.
        raise ConfigProblem(f"the certificate authority ({_where(trust.authority)}) is empty")
    try:
        context = ssl.create_default_context(cadata=given)
    except ssl.SSLError as error:
        raise ConfigProblem(f"the certificate authority ({_where(trust.authority)}) is no PEM") from error
    # Python 3.13 began to refuse authorities without key usage or identifiers. Clusters live longer than
    # the tools that made their certificates, and every other client accepts them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if trust.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if shown is not None:
        _show(context, shown)
    return context


def _pem_text(pem: Pem) -> str:
    """Without what is not ASCII: people write comments between certificates."""
    try:
        content = pem.read_bytes() if isinstance(pem, Path) else pem
    except OSError as error:
        raise ConfigProblem(f"cannot read {pem!s}: {error.strerror}") from error
    return content.decode("ascii", errors="ignore")


def _show(context: ssl.SSLContext, shown: ClientCertificate) -> None:
    with tempfile.TemporaryDirectory(prefix="slurm-operator-") as directory:
        certificate = _as_file(shown.certificate, Path(directory) / "crt")
        key = _as_file(shown.key, Path(directory) / "key")
        try:
            # The callback keeps OpenSSL from asking for a passphrase on the terminal.
            context.load_cert_chain(certificate, key, password=lambda: "")
        except (ssl.SSLError, OSError) as error:
            where = f"{_where(shown.certificate)} and {_where(shown.key)}"
            raise ConfigProblem(f"the client certificate and key ({where}) do not load: {error}") from error


def _as_file(pem: Pem, place: Path) -> Path:
    if isinstance(pem, Path):
        return pem
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)
    return place


def _where(pem: Pem | None) -> str:
    return str(pem) if isinstance(pem, Path) else "given inline"
