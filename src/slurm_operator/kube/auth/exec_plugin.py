"""Credentials from another program, as cloud providers hand them out: `exec` in a kubeconfig."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from slurm_operator import wire
from slurm_operator.kube.auth.credentials import Headers, Identity, bearer
from slurm_operator.kube.auth.tls import ClientCertificate
from slurm_operator.kube.errors import ConfigProblem

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

# A credential that is about to expire would be refused on its way.
_EARLY = timedelta(seconds=30)
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class ExecCommand:
    """What the kubeconfig says to run. `cluster` is told to the program when it asks for it."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    install_hint: str = ""
    interactive: bool = False
    cluster: Mapping[str, Any] | None = None


class _CredentialStatus(wire.CamelRecord):
    expiration_timestamp: datetime | None = None
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _ExecCredential(wire.CamelRecord):
    api_version: str
    status: _CredentialStatus


class ExecPlugin:
    """Runs the program when there is no credential, it is about to expire, or the server refused it."""

    def __init__(
        self,
        command: ExecCommand,
        others: Headers = (),
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._command = command
        self._others = others
        self._now = now
        self._running = asyncio.Lock()
        self._identity: Identity | None = None
        self._expires: datetime | None = None

    async def identity(self) -> Identity:
        async with self._running:
            if self._identity is None or self._is_expired():
                self._identity = await self._ask()
            return self._identity

    def invalidate(self) -> None:
        self._identity = None

    def _is_expired(self) -> bool:
        return self._expires is not None and self._now() >= self._expires - _EARLY

    async def _ask(self) -> Identity:
        status = _read(self._command, await _output(self._command)).status
        self._expires = status.expiration_timestamp
        certificate = None
        if status.client_certificate_data and status.client_key_data:
            certificate = ClientCertificate(
                status.client_certificate_data.encode(), status.client_key_data.encode()
            )
        elif not status.token:
            raise ConfigProblem(f"{self._command.command} gave neither a token nor a client certificate")
        token = (bearer(status.token),) if status.token else ()
        return Identity((*self._others, *token), certificate)


async def _output(command: ExecCommand) -> bytes:
    try:
        process = await asyncio.create_subprocess_exec(
            command.command,
            *command.args,
            stdin=None if command.interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if command.interactive else asyncio.subprocess.PIPE,
            env={**os.environ, **command.env, "KUBERNETES_EXEC_INFO": _info(command)},
        )
    except OSError as error:
        hint = f" {command.install_hint}" if command.install_hint else ""
        raise ConfigProblem(
            f"cannot run {command.command}, which the kubeconfig names for credentials: "
            f"{error.strerror}.{hint}"
        ) from error
    return await _finished(process, command)


async def _finished(process: asyncio.subprocess.Process, command: ExecCommand) -> bytes:
    """What it printed. A person whom it asks reads the question on standard error, and may take any time."""
    try:
        async with asyncio.timeout(None if command.interactive else _PATIENCE_SECONDS):
            out, complaint = await process.communicate()
    except TimeoutError as error:
        raise ConfigProblem(f"{command.command} gave no credentials in {_PATIENCE_SECONDS:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        said = "see above" if command.interactive else complaint.decode(errors="replace").strip()[-500:]
        raise ConfigProblem(f"{command.command} failed with exit code {process.returncode}: {said}")
    return out


def _info(command: ExecCommand) -> str:
    spec: dict[str, Any] = {"interactive": command.interactive}
    if command.cluster is not None:
        spec["cluster"] = command.cluster
    return wire.encode({"apiVersion": command.api_version, "kind": "ExecCredential", "spec": spec}).decode()


def _read(command: ExecCommand, out: bytes) -> _ExecCredential:
    try:
        credential = wire.decode(out, _ExecCredential)
    except (wire.DecodeError, UnicodeDecodeError) as error:
        # The output is not quoted: it may hold a token.
        raise ConfigProblem(f"{command.command} did not print an ExecCredential: {error}") from error
    if credential.api_version != command.api_version:
        raise ConfigProblem(
            f"{command.command} answered in {credential.api_version}, the kubeconfig asks for "
            f"{command.api_version}; change apiVersion under `exec` there"
        )
    return credential


def may_interact(mode: str) -> bool:
    """Whether the program may ask the person at the terminal: `interactiveMode` of the kubeconfig."""
    return mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
