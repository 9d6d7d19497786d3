"""What must not leave a cluster in a support archive: taken out of objects, files and logs.

Two nets. By place: environment variables, arguments, annotations and lines of files whose name speaks of a
secret. By value: every value of a Secret that we were allowed to read, wherever it turns up.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from slurm_operator.api.names import GROUP

REDACTED: Final = "[redacted]"

# Annotations that hold the whole object again, as somebody once wrote it.
_COPIES: Final = ("kubectl.kubernetes.io/last-applied-configuration",)

# Environment variables that we set ourselves, or that only say where something is.
_PLAIN_VARIABLES: Final = frozenset(
    {
        *("DATABASE_HOST", "DATABASE_NAME", "DATABASE_PORT", "DATABASE_USER", "HOME", "HOSTNAME", "LANG"),
        *("MARIADB_DATABASE", "MARIADB_USER", "NODE_NAME", "PAM_SLURM_ADOPT_OPTIONS", "PATH", "POD_CPUS"),
        *("POD_IP", "POD_MEMORY", "POD_NAME", "POD_NAMESPACE", "SACKD_OPTIONS", "SLURM_CONF", "SLURM_USER"),
        *("SLURMRESTD_SECURITY", "SLURM_OPERATOR_IMAGES", "SLURM_OPERATOR_MARIADB_IMAGE", "SOCKET", "TZ"),
        *("SLURM_OPERATOR_CLUSTER_DOMAIN", "SLURM_SACK_JWKS", "WATCH_NAMESPACE"),
    }
)
# These have names of secrets, and say only that there is one.
_PLAIN_SETTINGS: Final = frozenset({("SLURM_JWT", "daemon"), ("MARIADB_RANDOM_ROOT_PASSWORD", "1")})

# Words that make the name of a setting speak of a secret. Under the second kind of names there may be a path
# to one instead, and under the third also many other things, all of them short.
_PASSWORD_WORD: Final = re.compile(
    r"pass(?!ive|ed|ing|through)|pwd|secret|credential|authtok|bindpw|rootpw|_pw$", re.IGNORECASE
)
_TOKEN_WORD: Final = re.compile(r"token|jwt|bearer|api[-_]?key|private", re.IGNORECASE)
_KEY_WORD: Final = re.compile(r"key", re.IGNORECASE)
_SHORTEST_KEY: Final = 16

# Names of things around a secret that are none themselves.
_HARMLESS: Final = re.compile(
    r"(Ref|Name|Path|File|Policy|Timeout|Lifetime|Seconds|Mount\w*|Digest|KeySecret|topologyKey)$"
    r"|^(key|secret|authorized_keys)$"
)
_PASSWORD_HASH: Final = re.compile(r"pass\w*[-_]hash$", re.IGNORECASE)

# Entries of Secrets that are there to be seen; their values are words that stand in many places.
_OPEN_ENTRIES: Final = re.compile(
    r"^(user(name)?|host(name)?|port|db(name)?|database|namespace|server|url|ca\.crt|tls\.crt|.*\.pub|.*-cert)$",
    re.IGNORECASE,
)

# NAME=value or NAME: value in files, arguments and log lines; --name value in lists of arguments.
_SETTING: Final = re.compile(
    r"""(?P<name>[\w.\-/]+)(?P<sep>["']?\s*[=:]\s*)(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s,;]+)"""
)
# How Slurm's daemons begin a line about a plugin: `rest_auth/jwt: attempting token authentication`.
_PLUGIN: Final = re.compile(r"^[a-z_]+/[a-z_]+$")
_FLAG: Final = re.compile(r"^--?[\w\-]+$")

_PEM: Final = re.compile(r"-----BEGIN [A-Z0-9 ]+-----.*?(-----END [A-Z0-9 ]+-----|\Z)", re.DOTALL)
_JWT: Final = re.compile(r"\beyJ[\w\-]{8,}\.[\w\-]{4,}(\.[\w\-]*)?")
_BEARER: Final = re.compile(r"(?i)\b(bearer|basic)\s+[\w\-.~+/=]{8,}")
_LOGIN: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+.\-]*://)[^\s/@:]*:[^\s/@]+@", re.IGNORECASE)

_SHORTEST_VALUE: Final = 6


class Redactor:
    """Redacts; `secrets` are the entries of Secrets, which are kept nowhere but here."""

    def __init__(self, secrets: Iterable[Mapping[str, bytes]] = ()) -> None:
        forms = {form for secret in secrets for value in secret_values(secret) for form in _forms(value)}
        # The longest first: one secret may be a part of another.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._values = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def text(self, text: str) -> str:
        """A file, a log or a sentence."""
        if self._values is not None:
            text = self._values.sub(REDACTED, text)
        text = _PEM.sub(REDACTED, text)
        text = _LOGIN.sub(lambda found: f"{found['scheme']}{REDACTED}@", text)
        text = _BEARER.sub(lambda found: f"{found[1]} {REDACTED}", text)
        text = _JWT.sub(REDACTED, text)
        return _SETTING.sub(_setting, text)

    def manifest(self, thing: Mapping[str, Any]) -> dict[str, Any]:
        """A Kubernetes object without secrets, and without the field managers' bookkeeping."""
        if thing.get("kind") == "Secret":
            raise ValueError("a Secret has no place in an archive")
        plain = {name: value for name, value in thing.items() if name != "metadata"}
        metadata = dict(thing.get("metadata") or {})
        metadata.pop("managedFields", None)
        annotations = metadata.get("annotations") or {}
        if annotations:
            kept = {name: text for name, text in annotations.items() if name not in _COPIES}
            metadata["annotations"] = {name: self._named(name, text) for name, text in kept.items()}
        return {**self.value(plain), "metadata": self._metadata(metadata)}

    def value(self, value: Any) -> Any:
        """Anything made of dictionaries, lists and texts."""
        match value:
            case str():
                return self.text(value)
            case dict() if _is_variable(value):
                return {**value, "value": self._variable(value["name"], value["value"])}
            case dict():
                return {name: self._named(name, inner) for name, inner in value.items()}
            case list() | tuple():
                return self._items(list(value))
            case _:
                return value

    def _metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        annotations = metadata.pop("annotations", None)
        redacted: dict[str, Any] = self.value(metadata)
        return {**redacted, "annotations": annotations} if annotations is not None else redacted

    def _named(self, name: str, value: Any) -> Any:
        """What stands under a name that may speak of a secret."""
        if isinstance(value, str) and speaks_of_secret(name, value):
            return REDACTED
        return self.value(value)

    def _variable(self, name: str, value: str) -> str:
        """Nobody knows what people put into their environment, so only what is surely harmless stays."""
        is_plain = name in _PLAIN_VARIABLES or (name, value) in _PLAIN_SETTINGS
        return self.text(value) if is_plain else REDACTED

    def _items(self, items: list[Any]) -> list[Any]:
        """`--password X` is two arguments."""
        redacted = []
        before = ""
        for item in items:
            follows = isinstance(item, str) and _FLAG.match(before) and speaks_of_secret(before, item)
            redacted.append(REDACTED if follows and not str(item).startswith("-") else self.value(item))
            before = item if isinstance(item, str) else ""
        return redacted


def speaks_of_secret(name: str, value: str) -> bool:
    """Whether a text under this name is better not shown. A path says where a key is, not what it is."""
    prefix, _, last = name.rpartition("/")
    if prefix.endswith(GROUP):  # Our own annotations hold names, times and digests.
        return bool(_PASSWORD_HASH.search(last))
    if not value or value == REDACTED or _HARMLESS.search(last):
        return False
    if last.endswith("-hash"):  # Of keys they tell nothing; a short password could be guessed from one.
        return bool(_PASSWORD_HASH.search(last))
    if _PASSWORD_WORD.search(last):
        return True
    is_path = value.strip("\"'").startswith("/")
    is_key = bool(_KEY_WORD.search(last)) and len(value) >= _SHORTEST_KEY
    return not is_path and (is_key or bool(_TOKEN_WORD.search(last)))


def secret_values(secret: Mapping[str, bytes]) -> Iterator[bytes]:
    """What of a Secret must not be seen: its entries, and the passwords in files that are among them."""
    for entry, value in secret.items():
        if _OPEN_ENTRIES.match(entry):
            continue
        yield value
        for found in _SETTING.finditer(value.decode(errors="ignore")):
            if speaks_of_secret(found["name"], found["value"]):
                yield found["value"].strip("\"'").encode()


def _setting(found: re.Match[str]) -> str:
    name, value = found["name"], found["value"]
    if _PLUGIN.match(name) and ":" in found["sep"] and not _PASSWORD_WORD.search(name):
        return found[0]
    # In `AuthAltParameters=jwt_key=/etc/slurm/jwt.key` the name of the outer setting is not the secret.
    inner, equals, rest = value.partition("=")
    if equals and not speaks_of_secret(name, value):
        return f"{name}{found['sep']}{inner}={REDACTED if speaks_of_secret(inner, rest) else rest}"
    return f"{name}{found['sep']}{REDACTED}" if speaks_of_secret(name, value) else found[0]


def _is_variable(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("name"), str) and isinstance(value.get("value"), str) and len(value) == 2


def _forms(value: bytes) -> Iterable[str]:
    """How a secret may be written: as it is, without its last line break, and in base64."""
    for form in {value, value.strip()}:
        if len(form) < _SHORTEST_VALUE:
            continue
        yield base64.b64encode(form).decode()
        text = form.decode(errors="ignore")
        if text.encode() == form:
            yield text
