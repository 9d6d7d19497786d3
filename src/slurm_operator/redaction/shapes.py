"""Secrets by shape: private keys, tokens, logins, hashes of passwords."""

import re
from collections.abc import Iterator
from typing import Final

from slurm_operator.redaction.names import REDACTED

Span = tuple[int, int]

_PRIVATE: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
_PRIVATE_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
_KEY_LINE: Final = re.compile(r"(?:^|[\s>|])[A-Za-z0-9+/=]{16,}\s*$")

_RUN: Final = re.compile(r"[\w.\-]{20,}")
_JWT: Final = re.compile(r"eyJ[\w\-]{8,}\.[\w\-]{4,}")
_AUTHORIZATION: Final = re.compile(
    r"(?i:\b(?:bearer|basic|negotiate|ntlm))[ \t]{1,20}(?P<token>[\w\-.~+/=]{0,40}[0-9A-Z+/=][\w\-.~+/=]*)"
)
_KNOWN_PREFIX: Final = re.compile(
    r"(?<![\w\-])(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|hvs\.|AKIA|ASIA)[\w\-]{12,}"
)
_MUNGE: Final = re.compile(r"MUNGE:[A-Za-z0-9+/=]{8,}:?")
_CRYPT: Final = re.compile(r"\$(?:1|5|6|7|y|gy|2[abxy]|argon2[a-z]{1,2}|pbkdf2[\w\-]{0,12})\$[^\s:,\"']{8,}")
_LDAP_HASH: Final = re.compile(r"\{(?:S?SHA\d{0,3}|S?MD5|CRYPT)\}[^\s,\"']{8,}")
_MYSQL_HASH: Final = re.compile(r"(?<![\w*])\*[0-9A-F]{40}(?!\w)")

# Where no sign stands between the word and the secret.
_SENTENCES: Final = (
    re.compile(r"(?i)\bidentified[ \t]+(?:with[ \t]+\w{1,40}[ \t]+)?(?:by|as)[ \t]+(?P<value>[^\n]+)"),
    re.compile(r"(?i)\blogin[ \t]+\S{1,100}[ \t]+password[ \t]+(?P<value>[^\n]+)"),
    re.compile(r"(?i)\b(?:requirepass|masterauth)[ \t]+(?P<value>[^\n]+)"),
    re.compile(
        r"(?i)\b(?:password|passwd|passphrase|secret|token)[ \t]+(?:is|was)(?:[ \t]+now)?[ \t]+"
        r"(?!(?:not|no|a|an|the|too|in|from|for|of|only|already|required|missing|wrong|expired|invalid|empty"
        r"|set|unset|stored|read|kept|generated|created|valid|refused|rejected|accepted|needed|given|used"
        r"|unknown|being|about|to|never|replaced|changed|signed|by|made|written|mounted)\b)(?P<value>[^\n]+)"
    ),
)

_SCHEME: Final = re.compile(r"(?<![a-zA-Z0-9+.\-])[a-zA-Z][a-zA-Z0-9+.\-]{0,30}://")
_URL: Final = re.compile(r"""[^\s"'<>`]+""")
_PORT: Final = re.compile(r":\d{1,5}(?:[/?#,]|$)")
_DIGEST: Final = re.compile(r"@(?:sha|md)\d+:")
_AT_WORD: Final = re.compile(r"""[^\s"'<>`,=]+""")
_SHORTEST_USER_TOKEN: Final = 16


def shaped_spans(text: str) -> Iterator[Span]:
    """Where secrets stand that everybody recognises."""
    yield from _private_keys(text)
    yield from _tokens(text)
    yield from _logins(text)
    for sentence in _SENTENCES:
        for found in sentence.finditer(text):
            if found["value"].strip() != REDACTED:
                yield found.span("value")


def _private_keys(text: str) -> Iterator[Span]:
    position = 0
    while (begin := _PRIVATE.search(text, position)) is not None:
        yield from _headless(text, position, begin.start())
        end = _PRIVATE_END.search(text, begin.end())
        position = end.end() if end is not None else len(text)
        yield begin.start(), position
    yield from _headless(text, position, len(text))


def _headless(text: str, start: int, stop: int) -> Iterator[Span]:
    """The rest of a key whose beginning is not in the end of a log."""
    for end in _PRIVATE_END.finditer(text, start, stop):
        begin = text.rfind("\n", start, end.start()) + 1
        while begin > start:
            line = text.rfind("\n", start, begin - 1) + 1
            line = max(line, start)
            if not _KEY_LINE.search(text[line:begin][-400:]):
                break
            begin = line
        yield max(begin, start), end.end()
        start = end.end()


def _tokens(text: str) -> Iterator[Span]:
    for run in _RUN.finditer(text):
        begin = text.find("eyJ", run.start(), run.end())
        while begin >= 0:
            if _JWT.match(text, begin, run.end()):
                yield begin, run.end()
                break
            dot = text.find(".", begin, run.end())  # What has no dot behind it has none further on.
            begin = text.find("eyJ", dot, run.end()) if dot >= 0 else -1
    for found in _AUTHORIZATION.finditer(text):
        if len(found["token"]) >= 8:
            yield found.span("token")
    for pattern in (_KNOWN_PREFIX, _MUNGE, _CRYPT, _LDAP_HASH, _MYSQL_HASH):
        for found in pattern.finditer(text):
            yield found.span()


def _logins(text: str) -> Iterator[Span]:
    """The password, or the token, in `scheme://user:password@host` and `user:password@host`."""
    if "@" not in text:
        return
    for line in re.finditer(r"[^\n]+", text):
        last_at = line[0].rfind("@") + line.start()
        if last_at < line.start():
            continue
        done = line.start()
        for scheme in _SCHEME.finditer(text, line.start(), line.end()):
            if scheme.end() < done:
                continue
            url = _URL.match(text, scheme.end(), line.end())
            done = url.end() if url is not None else scheme.end()
            span = _url_login(text, scheme.end(), done, last_at)
            if span is not None:
                yield span
        for word in _AT_WORD.finditer(text, line.start(), line.end()):
            span = _word_login(text, word.start(), word.end())
            if span is not None:
                yield span


def _url_login(text: str, begin: int, end: int, last_at: int) -> Span | None:
    at = text.rfind("@", begin, end)
    colon = text.find(":", begin, at if at >= 0 else end)
    if at < 0:  # A password with a space, or a quote, in it.
        is_port = colon >= 0 and _PORT.match(text, colon, end) is not None
        slash = text.find("/", begin, end)
        if colon < 0 or is_port or last_at < end or 0 <= slash < colon:
            return None
        at = last_at
    if _DIGEST.match(text, at):
        return None
    if colon >= 0:
        slash = text.find("/", begin, colon)
        return (colon + 1, at) if slash < 0 and colon + 1 < at and text[colon + 1 : at] != REDACTED else None
    is_name = text.find("/", begin, at) >= 0 or at - begin < _SHORTEST_USER_TOKEN
    return None if is_name or text[begin:at] == REDACTED else (begin, at)


def _word_login(text: str, begin: int, end: int) -> Span | None:
    at = text.rfind("@", begin, end)
    scheme = text.rfind("://", begin, at) if at >= 0 else -1
    begin = scheme + 3 if scheme >= 0 else begin
    colon = text.find(":", begin, at) if at >= 0 else -1
    if colon <= begin or colon + 1 >= at or at + 1 >= end:
        return None
    if _DIGEST.match(text, at) or text[colon + 1 : at] == REDACTED:
        return None
    return colon + 1, at
