"""Secrets as people, programs and attackers write them: none may be read from what is left, in any encoding."""

import base64
import html
import json
import re
import time
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_operator.redaction.names import REDACTED
from slurm_operator.redaction.redactor import Redactor

SECRET = "hunter2-Planted"
ODD = "pl\"an ted, it's; #1/2+3=4\\5 & <6>%41"  # Whatever ends a value somewhere.
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJzbHVybSJ9.c2lnbmF0dXJlLXBsYW50ZWQ"
PEM_BODY = "MIIEowIBAAKCAQEAplantedplantedplantedplantedplantedplantedplanted12"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}\n{PEM_BODY[::-1]}\n-----END RSA PRIVATE KEY-----"
OBJECT = {"spec": {"password": "hunter2-Planted", "replicas": 2}}


def indented(text: str, by: str = "    ") -> str:
    return "\n".join(by + line for line in text.splitlines())


BY_PLACE = {
    "slurmdbd.conf": ("StoragePass=hunter2-Planted\nStorageHost=db", ["hunter2"]),
    "a value with spaces": ("StoragePass=one hunter2 Planted", ["one", "hunter2", "Planted"]),
    "a value with commas": ("password=one,hunter2,Planted", ["one", "hunter2", "Planted"]),
    "a value with semicolons": ("password: one;hunter2;Planted", ["one", "hunter2", "Planted"]),
    "a value with a number sign": ("StoragePass=one#hunter2 # Planted", ["one", "hunter2", "Planted"]),
    "quotes within quotes": (r'"password": "one\"hunter2\" Planted", "user": "ada"', ["one", "hunter2", "Planted"]),
    "a backslash before the last quote": (r'{"password": "hunter2\\", "user": "ada"}', ["hunter2"]),
    "a quote that nobody closed": ('password="one hunter2', ["one", "hunter2"]),
    "a quote too many": ('StoragePass="one" hunter2"', ["one", "hunter2"]),
    "doubled quotes": ("password: 'one''hunter2'", ["one", "hunter2"]),
    "quotes over two lines": ("PASSWORD='one\nhunter2'\nUSER=ada", ["one", "hunter2"]),
    "a YAML block": ("password: |\n  one\n\n  hunter2\nuser: ada", ["one", "hunter2"]),
    "a folded YAML block": ("  password: >-\n    one\n    hunter2\n  user: ada", ["one", "hunter2"]),
    "a YAML value on the next line": ("password:\n  hunter2\nuser: ada", ["hunter2"]),
    "a YAML value that continues": ("password: one\n  hunter2\nuser: ada", ["one", "hunter2"]),
    "a YAML list": ("passwords:\n- one\n- hunter2\nuser: ada", ["one", "hunter2"]),
    "an indented YAML list": ("passwords:\n  - one\n  - hunter2\nuser: ada", ["one", "hunter2"]),
    "a YAML item": ("- user: ada\n  password: hunter2\n", ["hunter2"]),
    "a YAML flow mapping": ("{user: ada, password: hunter2, more: x}", ["hunter2"]),
    "a default of a variable": ("PASSWORD=${PW:-hunter2}", ["hunter2"]),
    "a JSON list": ('{"passwords": ["one", "hunter2"], "x": 1}', ["one", "hunter2"]),
    "JSON over many lines": ('{\n  "passwords": [\n    "one",\n    "hunter2"\n  ]\n}', ["one", "hunter2"]),
    "a JSON number": ('{"password": 4711081500, "user": "ada"}', ["4711081500"]),
    "JSON in JSON": (json.dumps({"a": json.dumps(OBJECT)}), ["hunter2"]),
    "JSON in JSON in JSON": (json.dumps({"a": json.dumps({"b": json.dumps(OBJECT)})}), ["hunter2"]),
    "a Python dictionary": ("{'password': 'one\\'hunter2', 'user': 'ada'}", ["one", "hunter2"]),
    "a Go map": ("map[password:hunter2 user:ada]", ["hunter2"]),
    "an XML element": ("<password>hunter2</password>", ["hunter2"]),
    "an XML attribute": ('<db password="hunter2" user="ada"/>', ["hunter2"]),
    "an ini file": ("[domain/x]\nldap_default_authtok = one hunter2\nid_provider = ldap", ["one", "hunter2"]),
    "an environment list": ("- name: DB_PASSWORD\n  value: hunter2\n", ["hunter2"]),
    "an environment list the other way round": ("- value: hunter2\n  name: DB_PASSWORD\n", ["hunter2"]),
    "an environment list in JSON": ('{"name":"DB_PASSWORD","value":"hunter2"}', ["hunter2"]),
    "an environment list in long JSON": ('{\n  "name": "API_TOKEN",\n  "value": "hunter2"\n}', ["hunter2"]),
    "an environment block": ("- name: DB_PASSWORD\n  value: |\n    hunter2\n", ["hunter2"]),
    "a shell export": ("export PGPASSWORD=one\\ hunter2", ["one", "hunter2"]),
    "a shell variable before a command": ("PGPASSWORD=hunter2 psql -h db", ["hunter2"]),
    "an option and its value": ("slurm-tool --password hunter2 --verbose", ["hunter2"]),
    "an option with a sign": ("slurm-tool --db-password='one hunter2'", ["one", "hunter2"]),
    "an option in a list": ("args:\n- --password\n- hunter2\n- -v", ["hunter2"]),
    "an option in a JSON list": ('"args": ["--password", "hunter2"]', ["hunter2"]),
    "mysql -pX": ("mysql -u root -phunter2 slurm_acct_db", ["hunter2"]),
    "mysqldump -p X": ("exec mysqldump -uroot -p'one hunter2' acct", ["one", "hunter2"]),
    "mariadb-admin -pX in a list": ('["mariadb-admin", "-uroot", "-phunter2", "ping"]', ["hunter2"]),
    "sshpass": ("sshpass -p hunter2 ssh node", ["hunter2"]),
    "curl -u": ("curl -s -u ada:hunter2 http://slurmrestd:6820", ["hunter2"]),
    "ldapsearch -w": ("ldapsearch -D cn=admin -w hunter2 -b dc=x", ["hunter2"]),
    "redis-cli -a": ("redis-cli -a hunter2 ping", ["hunter2"]),
    "kubectl create secret": ("kubectl create secret generic x --from-literal=a=hunter2", ["hunter2"]),
    "openssl -passin": ("openssl rsa -passin pass:hunter2 -in x", ["hunter2"]),
    "user:pass@host": ("connecting to slurm:hunter2@mariadb:3306", ["hunter2"]),
    "a Go data source name": ("slurm:hunter2@tcp(db:3306)/acct", ["hunter2"]),
    "a connection URL": ("mysql://slurm:hunter2@db/acct", ["hunter2"]),
    "a connection URL with signs": ("mysql://slurm:one@two/hunter2@db/acct", ["one", "two", "hunter2"]),
    "a connection URL with a space": ("mysql://slurm:one hunter2@db/acct", ["one", "hunter2"]),
    "a token as user of a URL": ("git clone https://planted0planted0planted0@git.example/x", ["planted0"]),
    "a URL within a URL": ("http://a/?next=http://ada:hunter2@b/", ["hunter2"]),
    "a query": ("GET /login?user=ada&password=hunter2&x=1", ["hunter2"]),
    "a cookie": ("Cookie: theme=dark; sid=hunter2", ["hunter2"]),
    "a cookie that is set": ("< Set-Cookie: sid=hunter2; Path=/", ["hunter2"]),
    "an Authorization header": ("Authorization: Basic aHVudGVyMjpodW50ZXIy", ["aHVudGVyMjpodW50ZXIy"]),
    "an Authorization header in a list": ('["Authorization", "Bearer hunter2hunter2"]', ["hunter2"]),
    "slurmrestd's header": ("X-SLURM-USER-TOKEN: hunter2hunter2", ["hunter2"]),
    "a JWT": (f"got {JWT} back", JWT.split(".")),
    "a JWT behind other letters": (f"scontrol-token_{JWT}", JWT.split(".")[1:]),
    "a munge credential": ("cred MUNGE:AwQDAAplantedplanted==: seen", ["planted"]),
    "a munge key": ("munge.key: AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", ["AAECAwQF"]),
    "a private key": (f"key\n{PEM}\nend", [PEM_BODY, PEM_BODY[::-1]]),
    "an indented private key": (f"tls.key: |\n{indented(PEM)}\nend: 1", [PEM_BODY, PEM_BODY[::-1]]),
    "a private key in JSON": (json.dumps({"x": PEM}), [PEM_BODY, PEM_BODY[::-1]]),
    "a private key cut at its end": (PEM[:-40], [PEM_BODY]),
    "a private key cut at its beginning": (f"log\n{PEM[40:]}\nmore", [PEM_BODY[20:], PEM_BODY[::-1]]),
    "the hash of a password": ("root:$6$saltsalt$plantedplanted:19000:0", ["planted"]),
    "SQL": ("CREATE USER slurm IDENTIFIED BY 'one hunter2'", ["one", "hunter2"]),
    "a netrc": ("machine x login ada password hunter2", ["hunter2"]),
    "a sentence": ("the password is hunter2", ["hunter2"]),
    "a token of a forge": ("cloning with ghp_plantedplantedplanted00", ["planted"]),
    "a token that looks like a path": ("token=/Planted9planted+hunter2", ["Planted9", "hunter2"]),
    "a Windows line": ("StoragePass=hunter2\r\nStorageHost=db\r\n", ["hunter2"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "secrets"), BY_PLACE.values(), ids=BY_PLACE)
def test_a_secret_nobody_knows_is_recognised_by_its_place_or_shape(text, secrets):
    for redacted in (Redactor().text(text), json.dumps(Redactor().value({"a": [text]}))):
        assert [secret for secret in secrets if secret in redacted.replace(REDACTED, "")] == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("StoragePass=hunter2\nStorageHost=db", "\nStorageHost=db"),
        ('{"password": "hunter2", "user": "ada"}', '"user": "ada"'),
        ("password: |\n  hunter2\nuser: ada", "\nuser: ada"),
        ("- name: DB_PASSWORD\n  value: hunter2\n- name: B\n  value: shown", "\n- name: B\n  value: shown"),
        ("mysql://slurm:hunter2@db:3306/acct", "mysql://slurm:[redacted]@db:3306/acct"),
        ("mysql -u root -phunter2", "mysql -u root -p[redacted]"),
        (f"key\n{PEM}\nend", "key\n[redacted]\nend"),
        (json.dumps({"a": json.dumps(OBJECT)}), r"\"replicas\": 2"),
    ],
)
def test_what_stands_around_a_secret_stays(text, kept):
    assert kept in Redactor().text(text)


UNTOUCHED = [
    "ClusterName=demo\nSlurmctldHost=demo-controller-0(demo-controller)\nAuthType=auth/slurm\nCredType=cred/slurm",
    "AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=/etc/slurm/jwt.key,jwks=/etc/slurm/jwks.json",
    "PrivateData=accounts,events,jobs,reservations,usage,users\nPropagateResourceLimits=NONE",
    "NodeName=gpu-[0-15] CPUs=64 RealMemory=512000 Gres=gpu:h100:8 Feature=gpu,ib State=CLOUD",
    "PartitionName=all Nodes=ALL Default=YES MaxTime=7-00:00:00 State=UP OverSubscribe=NO",
    "SlurmctldParameters=enable_configless,cloud_dns,idle_on_node_suspend",
    "AuthInfo=socket=/run/munge/munge.socket.2,cred_expire=120,ttl=60",
    "StorageHost=mariadb.db.svc.cluster.local\nStoragePort=3306\nStorageUser=slurm\nStorageLoc=slurm_acct_db",
    "GresTypes=gpu\nKeepAliveTime=30\nSlurmdParameters=l3cache_as_socket",
    "imageID: docker-pullable://registry.example:5000/slurmd@sha256:0123456789abcdef0123456789abcdef",
    "image: ghcr.io/slinkyproject/slurmd:26.05-ubuntu24.04@sha256:0123456789abcdef0123456789abcdef",
    "slinky.slurm.net/jwt-key-hash: 0123456789abcdef\nslinky.slurm.net/config-digest: fedcba9876543210",
    "imagePullSecrets:\n- name: regcred\nautomountServiceAccountToken: false",
    "volumes:\n- name: keys\n  secret:\n    secretName: demo-auth-slurm\n    items:\n    - key: slurm.key",
    "env:\n- name: POD_NAME\n  value: demo-cpu-0\n- name: HOME\n  value: /root",
    "valueFrom:\n  secretKeyRef:\n    name: db\n    key: password-of-the-database",
    "topologyKey: kubernetes.io/hostname\ntolerations:\n- key: nvidia.com/gpu\n  operator: Exists",
    "[2026-11-16T02:42:27.707] error: slurm_receive_msg_and_forward: Zero Bytes were transmitted or received",
    "[2026-11-16T02:42:27.707] rest_auth/jwt: slurm_rest_auth_p_authenticate: attempting token authentication",
    "slurmctld: debug2: _slurm_rpc_submit_batch_job: JobId=7 NodeList=gpu-[0-3] usec=412",
    'secrets is forbidden: User "ada" cannot list resource "secrets" in API group "" in the namespace "ns"',
    "Passing 3 jobs to the scheduler: passed=3",
    "the password is not readable; the token is expired; a token is required",
    "http://demo-restapi.ns.svc:6820/slurm/v0.0.44/diag took 12 ms, mail to ada@example.org",
    "user@host:/path and git@github.com:org/repo.git",
    "gpu-3: draining (ada: fan is loud) since 12:05:31, 2 jobs: 17_4@ada, 18",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUplanted\n-----END CERTIFICATE-----",
    "uid: 0f3b8a52-7c1e-4b7c-9a2e-5a5d3f0c9e11, resourceVersion: \"812345\"",
    "export MYSQL_PWD=\"$DATABASE_PASSWORD\"\nPASSWORD=$(cat /run/secrets/password)\nTOKEN=$(TOKEN)",
    'MYSQL_PWD="$MARIADB_PASSWORD" exec mariadb --protocol=TCP --user="$MARIADB_USER" --execute="SELECT 1"',
    "docker run -p 8080:80 mariadb",
    "basic authentication and bearer tokens are refused",
    "100% of 5 workers are ready; \\n is no line; a&amp;b",
]  # fmt: skip


@pytest.mark.parametrize("text", UNTOUCHED)
def test_ordinary_texts_stay_as_they_are(text):
    redactor = Redactor([{"password": SECRET.encode(), "slurm.key": bytes(range(200, 240))}])

    assert redactor.text(text) == text
    assert redactor.value({"message": text}) == {"message": text}


@pytest.mark.parametrize("rest", ["mariadb --password=planted", "mariadb -pplanted", "env TOKEN=planted sh"])
def test_behind_a_variable_for_one_command_that_command_is_looked_at(rest):
    assert "planted" not in Redactor().text(f'MYSQL_PWD="$MARIADB_PASSWORD" exec {rest}')


def test_json_in_a_text_keeps_its_spelling_where_nothing_is_secret():
    text = '{"a":  [1, 2],\n "b": "x"}'

    assert Redactor().value([text]) == [text]


# ---- Known values, in every encoding


def wrapped(text: str, width: int = 8) -> str:
    return "\n  ".join(text[at : at + width] for at in range(0, len(text), width))


def in_base64(secret: str, before: bytes = b"", after: bytes = b"") -> str:
    return base64.b64encode(before + secret.encode() + after).decode()


ENCODINGS = {
    "plain": str,
    "URL": lambda secret: urllib.parse.quote(secret, safe=""),
    "URL in small letters": lambda secret: re.sub("%..", lambda it: it[0].lower(), urllib.parse.quote(secret)),
    "every letter in a URL": lambda secret: "".join(f"%{byte:02X}" for byte in secret.encode()),
    "a form": urllib.parse.quote_plus,
    "URL twice": lambda secret: urllib.parse.quote(urllib.parse.quote(secret, safe=""), safe=""),
    "JSON": lambda secret: json.dumps(secret)[1:-1],
    "JSON in letters": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "JSON with slashes": lambda secret: json.dumps(secret)[1:-1].replace("/", r"\/"),
    "JSON in JSON": lambda secret: json.dumps(json.dumps(secret)),
    "JSON in JSON in JSON": lambda secret: json.dumps(json.dumps(json.dumps(secret))),
    "JSON of a URL": lambda secret: json.dumps(urllib.parse.quote(secret)),
    "repr": repr,
    "repr of bytes": lambda secret: repr(secret.encode()),
    "ascii": ascii,
    "hex escapes": lambda secret: "".join(f"\\x{byte:02x}" for byte in secret.encode()),
    "octal escapes": lambda secret: "".join(f"\\{byte:03o}" for byte in secret.encode()),
    "HTML": html.escape,
    "hex": lambda secret: secret.encode().hex(),
    "HEX": lambda secret: secret.encode().hex().upper(),
    "hex with colons": lambda secret: secret.encode().hex(":"),
    "a hex dump": lambda secret: secret.encode().hex(" "),
    "base64": in_base64,
    "base64 behind one byte": lambda secret: in_base64(secret, b"u"),
    "base64 behind two bytes": lambda secret: in_base64(secret, b"u:"),
    "base64 within more": lambda secret: in_base64(secret, b"user:", b"\nand more"),
    "base64 for URLs": lambda secret: base64.urlsafe_b64encode(b"u" + secret.encode()).decode(),
    "base64 in lines": lambda secret: wrapped(in_base64(secret, b"ab", b"cdef")),
    "base64 in JSON lines": lambda secret: json.dumps(wrapped(in_base64(secret, b"a"))),
    "base64 of base64": lambda secret: in_base64(in_base64(secret), b"x"),
}  # fmt: skip


def readings(text: str) -> list[str]:
    """What can be read out of a text by a patient reader, who has none of our code."""
    found = [text, urllib.parse.unquote(text), urllib.parse.unquote_plus(text), html.unescape(text)]
    found.append(urllib.parse.unquote(urllib.parse.unquote(text)))
    found += [re.sub(r"\\(.)", r"\1", one) for one in found]
    for word in re.findall(r"[0-9a-fA-F:\s]{12,}", text):
        digits = re.sub(r"[:\s]", "", word)
        found.append(bytes.fromhex(digits[: len(digits) // 2 * 2]).decode("latin-1"))
    joined = re.sub(r"\s|\\n", "", text)
    for word in re.findall(r"[A-Za-z0-9+/\-_]{4,}", joined):
        for skip in range(4):
            digits = word[skip:].replace("-", "+").replace("_", "/")
            found.append(base64.b64decode(digits[: len(digits) // 4 * 4]).decode("latin-1"))
    return found


@pytest.mark.parametrize("secret", [SECRET, ODD, "grüße-aus-Köln-😀", "two\nlines of it"], ids=ascii)
@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS)
def test_a_known_secret_is_found_in_every_encoding(encode, secret):
    encoded = encode(secret)
    redacted = Redactor([{"x": secret.encode()}]).text(f"seen: <{encoded}> there")

    assert REDACTED in redacted
    assert encoded not in redacted
    assert [one for one in readings(redacted) if secret in one] == []
    assert redacted.startswith("seen: <")
    assert redacted.endswith(" there")


@given(
    st.text(st.characters(exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc")), min_size=6, max_size=40),
    st.text(max_size=60),
    st.text(max_size=60),
    st.sampled_from(sorted(ENCODINGS)),
)
def test_no_surroundings_bring_a_known_secret_through(secret, before, after, encoding):
    encoded = ENCODINGS[encoding](secret)

    redacted = Redactor([{"x": secret.encode()}]).text(f"{before}{encoded}{after}")

    left = redacted.replace(REDACTED, "\n")
    if secret not in REDACTED:
        assert encoded not in left or encoded in before or encoded in after
        assert secret not in left


@given(st.binary(min_size=6, max_size=64), st.binary(max_size=9), st.binary(max_size=9))
def test_keys_of_any_bytes_are_found_in_base64_at_any_place(key, before, after):
    encoded = base64.b64encode(before + key + after).decode()

    redacted = Redactor([{"slurm.key": key}]).text(f"key={encoded}")

    assert REDACTED in redacted
    assert [one for one in readings(redacted) if key.decode("latin-1") in one] == []


def test_a_list_of_arguments_loses_the_password_of_mysql():
    redacted = Redactor().value({"command": ["mysql", "-uroot", "-phunter2", "-e", "select 1"]})

    assert redacted["command"] == ["mysql", "-uroot", f"-p{REDACTED}", "-e", "select 1"]
    assert Redactor().value(["/usr/bin/sshpass", "-p", "hunter2", "ssh"])[1:] == ["-p", REDACTED, "ssh"]


def test_a_password_that_is_a_number_goes():
    assert Redactor().value({"password": 4711, "port": 3306}) == {"password": REDACTED, "port": 3306}


def test_a_file_in_base64_is_looked_into():
    inside = base64.b64encode(b"StoragePass=hunter2\nStorageHost=db\n").decode()
    plain = base64.b64encode(b"StorageHost=db\nStorageUser=slurm\n").decode()

    assert Redactor().value({"a.conf": inside, "b.conf": plain}) == {"a.conf": REDACTED, "b.conf": plain}


# ---- Time

GROWING = {
    "a word": lambda size: "a" * size,
    "words": lambda size: "ab " * (size // 3),
    "names": lambda size: "a=" * (size // 2),
    "names of keys": lambda size: "xkey=a " * (size // 7),
    "names of passwords": lambda size: '"password":"a",' * (size // 15),
    "open quotes": lambda size: "password='a\n" * (size // 12),
    "blocks": lambda size: "password: |\n a\n" * (size // 15),
    "empty names": lambda size: "password:\n" * (size // 10),
    "handles": lambda size: "pass=⟦secret a/b/c 0 plain⟧ " * (size // 27),
    "quotes": lambda size: "'\"" * (size // 2),
    "backslashes": lambda size: "\\" * size,
    "escaped quotes": lambda size: '\\"' * (size // 2),
    "percent signs": lambda size: "%41" * (size // 3),
    "spaces": lambda size: " " * size,
    "colons": lambda size: ":" * size,
    "at signs": lambda size: "a:a@" * (size // 4),
    "URLs": lambda size: "http://a:" * (size // 9) + "@",
    "URLs of pages": lambda size: "http://a/" * (size // 9) + "@",
    "tokens": lambda size: "-eyJ" * (size // 4),
    "token heads": lambda size: "eyJ." * (size // 4),
    "begins of keys": lambda size: "-----BEGIN PRIVATE KEY-----" * (size // 27),
    "ends of keys": lambda size: f"{PEM_BODY}\n-----END PRIVATE KEY-----\n" * (size // 95),
    "options": lambda size: "--password " * (size // 11),
    "commands": lambda size: "mysql -p " * (size // 9),
    "almost a secret": lambda size: SECRET[:-1] * (size // 14),
    "mounts": lambda size: "passMount" * (size // 9) + "=x",
    "basic": lambda size: "basic a " * (size // 8),
}  # fmt: skip


def seconds(redactor: Redactor, text: str) -> float:
    """The lesser of two: other programs run on this machine too."""
    taken = []
    for _ in range(2):
        began = time.process_time()
        redactor.text(text)
        taken.append(time.process_time() - began)
    return min(taken)


@pytest.mark.parametrize("grow", GROWING.values(), ids=GROWING)
def test_the_time_grows_with_the_text_and_not_with_its_square(grow):
    """Eight times the text: eight times the time if it is linear, sixty-four times if it is quadratic."""
    redactor = Redactor([{"x": SECRET.encode()}])

    assert seconds(redactor, grow(32_000)) <= 24 * seconds(redactor, grow(4_000)) + 0.02
