"""Which names say that a secret stands under them."""

import re
from typing import Final

from slurm_operator.api.shared.names import GROUP

REDACTED: Final = "[redacted]"

# How a plan writes a secret that is put in while it is performed: a name and a digest.
HANDLE: Final = "⟦secret"

# No setting has a longer name; of a longer word only the end is looked at.
_LONGEST_NAME: Final = 200

# Words that make the name of a setting speak of a secret. Under the second kind of names there may be a path
# to one instead, and under the third also many other things, all of them short.
_PASSWORD_WORD: Final = re.compile(
    r"pass(?!ive|ed|ing|through)|pwd|secret|credential|authtok|bindpw|rootpw|_pw$|from-literal"
    r"|^(?:proxy-)?authorization$|^(?:set-)?cookie$|session[-_]?id$|^auth$",
    re.IGNORECASE,
)
_TOKEN_WORD: Final = re.compile(r"token|jwt|bearer|api[-_]?key|private[-_]?key", re.IGNORECASE)
_KEY_WORD: Final = re.compile(r"key", re.IGNORECASE)
_SHORTEST_KEY: Final = 16

# Names of things around a secret that are none themselves.
_HARMLESS: Final = re.compile(
    r"(Ref|Name|Path|File|Policy|Timeout|Lifetime|Seconds|Mount[A-Za-z]{0,20}|Digest|KeySecret|topologyKey)$"
    r"|[-_](file|path|name|ref|dir|policy|timeout|lifetime|seconds|digest|type)$"
    r"|^(key|[sS]ecrets?|authorized_keys|imagePullSecrets)$"
)
_PASSWORD_HASH: Final = re.compile(r"pass\w{0,40}[-_]hash$", re.IGNORECASE)
_STAMP: Final = re.compile(r"\d{1,10}-\d{1,10}")

# Lower case only: a token that begins with a slash has other letters too.
_PATH: Final = re.compile(r"""["']?/[a-z0-9_.\-]+(?:/[a-z0-9_.\-]+)*/?["']?(?=$|[\s,;:)}\]\\])""")
_NOTHING: Final = re.compile(
    r"""(?:true|false|null|none|nil|yes|no|~|\{\}|\[\]|""|'')["']?$""", re.IGNORECASE
)

# A script, or Kubernetes, puts the value in: the text says only where it comes from.
_REFERENCE: Final = re.compile(
    r"""["']?\$(?:\w+|\{\w+\}|\(\w+\)|\(cat /[a-z0-9_./\-]+\)|\(printf '%s' "\$\w+"\))["']?;?$"""
    # For one command, which is looked at next.
    r"""|"\$\w+" exec """
)


def speaks_of_secret(name: str, value: str) -> bool:
    """Whether a text under this name is better not shown. A path says where a key is, not what it is."""
    prefix, _, last = name[-_LONGEST_NAME:].rpartition("/")
    if prefix.endswith(GROUP):
        # Our own annotations hold names, times and digests. No stamp follows from a password.
        return bool(_PASSWORD_HASH.search(last)) and not _STAMP.fullmatch(value)
    if is_nothing(value) or value.startswith(HANDLE) or _HARMLESS.search(last):
        return False
    if last.endswith("-hash"):  # Of keys they tell nothing; a short password could be guessed from one.
        return bool(_PASSWORD_HASH.search(last))
    if _PASSWORD_WORD.search(last):
        return True
    is_key = bool(_KEY_WORD.search(last)) and len(value) >= _SHORTEST_KEY
    return (is_key or bool(_TOKEN_WORD.search(last))) and not path_length(value)


def is_nothing(value: str) -> bool:
    """Whether no secret can be in it: it is empty, yes or no, another variable, or was redacted before."""
    if value.strip("\"'\\,;)}] \t\r") in ("", REDACTED, REDACTED[:-1]):
        return True
    return bool(_NOTHING.match(value) or _REFERENCE.match(value))


def may_speak_of_secret(name: str) -> bool:
    """Whether there are values under this name that are secrets."""
    return speaks_of_secret(name, "x" * _SHORTEST_KEY)


def is_of_password(name: str) -> bool:
    """Whether the name leaves no doubt, whatever the value looks like."""
    return bool(_PASSWORD_WORD.search(name[-_LONGEST_NAME:]))


def path_length(value: str) -> int:
    """How much of the beginning of a value is a path; 0 where it is none."""
    found = _PATH.match(value)
    return found.end() if found else 0
