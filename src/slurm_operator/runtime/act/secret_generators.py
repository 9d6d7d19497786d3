"""Secret contents that are made, not given. Slow ones run off the event loop."""

import asyncio
import base64
import hashlib
import secrets
from typing import Literal

Recipe = Literal["random", "ssh-host-keys", "password"]


def fingerprints(entries: dict[str, bytes]) -> list[str]:
    """Of the public ssh keys among the entries, as `ssh-keygen -l` tells them: `ED25519 SHA256:...`."""
    found = []
    for name in sorted(entries):
        if name.startswith("ssh_host_") and name.endswith(".pub"):
            digest = hashlib.sha256(base64.b64decode(entries[name].split()[1])).digest()
            kind = name.removeprefix("ssh_host_").removesuffix("_key.pub").upper()
            found.append(f"{kind} SHA256:{base64.b64encode(digest).decode().rstrip('=')}")
    return found


async def make(recipe: Recipe, entry: str, size: int) -> dict[str, bytes]:
    """The entries of a new Secret: one under `entry`, or six for ssh host keys."""
    match recipe:
        case "random":
            return {entry: secrets.token_bytes(size)}
        case "password":
            return {entry: secrets.token_urlsafe(size).encode()}
        case "ssh-host-keys":
            return await asyncio.to_thread(ssh_host_keys, size)


def ssh_host_keys(rsa_bits: int) -> dict[str, bytes]:
    """RSA, Ed25519 and ECDSA host keys in OpenSSH's format, named as sshd wants them."""
    # Megabytes, and a part of the start-up, for what happens once in the life of a LoginSet.
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    keys: dict[str, rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey] = {
        "rsa": rsa.generate_private_key(public_exponent=65537, key_size=rsa_bits),
        "ed25519": ed25519.Ed25519PrivateKey.generate(),
        "ecdsa": ec.generate_private_key(ec.SECP256R1()),
    }
    entries = {}
    for name, key in keys.items():
        entries[f"ssh_host_{name}_key"] = key.private_bytes(
            Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()
        )
        entries[f"ssh_host_{name}_key.pub"] = (
            key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n"
        )
    return entries
