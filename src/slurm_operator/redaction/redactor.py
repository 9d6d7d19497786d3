"""Takes secrets out of texts and objects.

Three nets. By place: environment variables, arguments, annotations and lines of files whose name speaks of a
secret. By shape: private keys, tokens, logins. By value: every value of a Secret that we were allowed to
read, wherever it turns up and however it is written.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.redaction.known_values import KnownValues, Span
from slurm_operator.redaction.names import HANDLE, REDACTED, is_nothing, may_speak_of_secret, speaks_of_secret
from slurm_operator.redaction.settings import named_spans, password_option
from slurm_operator.redaction.shapes import shaped_spans

# Annotations that hold the whole object again, as somebody once wrote it.
_COPIES: Final = ("kubectl.kubernetes.io/last-applied-configuration",)

# Environment variables that we set ourselves, or that only say where something is.
_PLAIN_VARIABLES: Final = frozenset(
    {
        *("DATABASE_HOST", "DATABASE_NAME", "DATABASE_PORT", "DATABASE_USER", "HOME", "HOSTNAME", "LANG"),
        *("MARIADB_DATABASE", "MARIADB_USER", "NODE_NAME", "PAM_SLURM_ADOPT_OPTIONS", "PATH", "POD_CPUS"),
        *("POD_IP", "POD_MEMORY", "POD_NAME", "POD_NAMESPACE", "SACKD_OPTIONS", "SLURM_CONF", "SLURM_USER"),
        *("SLURMRESTD_OPTIONS", "STATE_DIRECTORY"),
        *("SLURMRESTD_SECURITY", "SLURM_OPERATOR_IMAGES", "SLURM_OPERATOR_MARIADB_IMAGE", "SOCKET", "TZ"),
        *("SLURM_OPERATOR_CLUSTER_DOMAIN", "SLURM_SACK_JWKS", "SLURM_SACK_KEY", "WATCH_NAMESPACE"),
    }
)
# These have names of secrets, and say only that there is one.
_PLAIN_SETTINGS: Final = frozenset({("SLURM_JWT", "daemon"), ("MARIADB_RANDOM_ROOT_PASSWORD", "1")})

# Entries of Secrets that are there to be seen; their values are words that stand in many places.
_OPEN_ENTRIES: Final = re.compile(
    r"^(user(name)?|host(name)?|port|db(name)?|database|namespace|server|url|ca\.crt|tls\.crt|.*\.pub|.*-cert)$",
    re.IGNORECASE,
)
# What a dictionary under the name of a secret says about where the secret is.
_REFERENCE: Final = frozenset({"name", "namespace", "key", "optional", "secretName", "kind", "apiVersion"})

_FLAG: Final = re.compile(r"--?[\w\-]+$")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/\n]{16,}={0,2}\n?$")


class Redactor:
    """Redacts; `secrets` are the entries of Secrets, which are kept nowhere but here."""

    def __init__(self, secrets: Iterable[Mapping[str, bytes]] = ()) -> None:
        self._known = KnownValues(value for secret in secrets for value in secret_values(secret))

    def text(self, text: str) -> str:
        """A file, a log or a sentence."""
        spans = sorted([*self._known.spans(text), *named_spans(text), *shaped_spans(text)])
        if not spans:
            return text
        parts: list[str] = []
        end = 0
        for start, stop in _merged(spans):
            parts += (text[end:start], REDACTED)
            end = stop
        return "".join([*parts, text[end:]])

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
                return self._string(value)
            case dict() if _is_variable(value):
                return {**value, "value": self._variable(value["name"], value["value"])}
            case dict() if _is_pair(value):
                return {**value, "value": REDACTED}
            case dict():
                return {name: self._named(name, inner) for name, inner in value.items()}
            case list() | tuple():
                return self._items(list(value))
            case _:
                return value

    def _string(self, text: str) -> str:
        """JSON in a text keeps its shape; what is in base64 is looked at too."""
        if text[:1] in ("{", "[") and text != REDACTED:
            try:
                told = wire.decode_any(text)
                redacted = self.value(told)
            except (wire.DecodeError, RecursionError):
                return self.text(text)
            inside = text if redacted == told else wire.encode(redacted).decode()
            return self.text(inside) if self.text(inside) == inside else self.text(text)
        if _BASE64.match(text):
            inner = _decoded(text)
            if inner and self.text(inner) != inner:
                return REDACTED
        return self.text(text)

    def _metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        annotations = metadata.pop("annotations", None)
        redacted: dict[str, Any] = self.value(metadata)
        return {**redacted, "annotations": annotations} if annotations is not None else redacted

    def _named(self, name: str, value: Any) -> Any:
        """What stands under a name that may speak of a secret."""
        if name in _COPIES:
            return REDACTED
        match value:
            case str():
                return REDACTED if speaks_of_secret(name, value) else self._string(value)
            case bool() | None:
                return value
            case int() | float():
                return REDACTED if _is_number_of_secret(name) else value
            case list() if may_speak_of_secret(name):
                return [
                    self._named(name, item) if isinstance(item, str) else self.value(item) for item in value
                ]
            case dict() if may_speak_of_secret(name) and not value.keys() & _REFERENCE:
                return {inner: self._below(name, inner, item) for inner, item in value.items()}
            case _:
                return self.value(value)

    def _below(self, name: str, inner: str, value: Any) -> Any:
        is_secret = isinstance(value, str) and speaks_of_secret(name, value)
        return REDACTED if is_secret and not is_nothing(str(value)) else self._named(inner, value)

    def _variable(self, name: str, value: str) -> str:
        """Nobody knows what people put into their environment, so only what is surely harmless stays."""
        is_plain = name in _PLAIN_VARIABLES or (name, value) in _PLAIN_SETTINGS or value.startswith(HANDLE)
        return self.text(value) if is_plain else REDACTED

    def _items(self, items: list[Any]) -> list[Any]:
        """`--password X` is two arguments, and so may be `mysql -p X`."""
        redacted: list[Any] = []
        before = ""
        option = password_option(items[0]) if items and isinstance(items[0], str) else ""
        for item in items:
            if option and isinstance(item, str) and (before == option or item.startswith(option)):
                kept = option if item.startswith(option) else ""
                redacted.append(item if item == option else f"{kept}{REDACTED}")
                before = item
                continue
            follows = (
                isinstance(item, str) and _FLAG.match(before) and speaks_of_secret(before.lstrip("-"), item)
            )
            redacted.append(REDACTED if follows and not str(item).startswith("--") else self.value(item))
            before = item if isinstance(item, str) else ""
        return redacted


def secret_values(secret: Mapping[str, bytes]) -> Iterator[bytes]:
    """What of a Secret must not be seen: its entries, and the passwords in files that are among them."""
    for entry, value in secret.items():
        if _OPEN_ENTRIES.match(entry):
            continue
        yield value
        text = value.decode(errors="ignore")
        for start, end in (*named_spans(text), *shaped_spans(text)):
            yield text[start:end].strip("\"' \t").encode()


def _merged(spans: list[Span]) -> Iterator[Span]:
    """Spans in order, those that touch as one."""
    start, end = spans[0] if spans else (0, 0)
    for begin, stop in spans:
        if begin > end:
            yield start, end
            start, end = begin, stop
        end = max(end, stop)
    if spans:
        yield start, end


def _is_variable(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("name"), str) and isinstance(value.get("value"), str) and len(value) == 2


def _is_pair(value: Mapping[str, Any]) -> bool:
    """`key: password, value: X`."""
    key, told = value.get("key"), value.get("value")
    return isinstance(key, str) and isinstance(told, str) and speaks_of_secret(key, told)


def _is_number_of_secret(name: str) -> bool:
    return speaks_of_secret(name, "0") and "pass" in name.lower()


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=False).decode()
    except ValueError:
        return ""
