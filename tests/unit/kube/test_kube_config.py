"""Where the API server is and who we are, from files that people wrote."""

import base64
import os
import ssl
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from slurm_operator.kube.auth import kubeconfig
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.auth.config import find, in_cluster
from slurm_operator.kube.auth.credentials import TokenFile
from slurm_operator.kube.auth.exec_plugin import ExecCommand, ExecPlugin
from slurm_operator.kube.auth.tls import ClientCertificate, TlsContexts, Trust
from slurm_operator.kube.errors import ConfigProblem

PLUGIN_VERSION = "client.authentication.k8s.io/v1"


def written(path: Path, **more: Any) -> Path:
    """A kubeconfig with one of each; keyword arguments replace sections."""
    content = {
        "clusters": [{"name": "home", "cluster": {"server": "https://home:6443/"}}],
        "users": [{"name": "me", "user": {"token": "t0ken"}}],
        "contexts": [{"name": "home", "context": {"cluster": "home", "user": "me", "namespace": "slurm"}}],
        "current-context": "home",
    } | more
    path.write_text(yaml.safe_dump(content))
    return path


def user(path: Path, **fields: Any) -> Path:
    return written(path, users=[{"name": "me", "user": fields}])


def cluster(path: Path, **fields: Any) -> Path:
    return written(path, clusters=[{"name": "home", "cluster": {"server": "https://home", **fields}}])


async def headers(access: Access) -> tuple[tuple[str, str], ...]:
    return (await access.credentials.identity()).headers


async def test_a_kubeconfig_gives_server_namespace_and_token(tmp_path: Path) -> None:
    access = find(written(tmp_path / "config"))

    assert (access.server, access.namespace) == ("https://home:6443", "slurm")
    assert await headers(access) == (("Authorization", "Bearer t0ken"),)


def test_another_context_can_be_named(tmp_path: Path) -> None:
    path = written(
        tmp_path / "config",
        clusters=[
            {"name": "home", "cluster": {"server": "https://home"}},
            {"name": "away", "cluster": {"server": "https://away"}},
        ],
        contexts=[
            {"name": "home", "context": {"cluster": "home", "user": "me"}},
            {"name": "away", "context": {"cluster": "away", "user": "me"}},
        ],
    )

    assert find(path, "away").server == "https://away"
    assert find(path).server == "https://home"
    assert find(path).namespace == "default"


def test_of_several_files_the_first_word_counts_and_missing_files_are_passed_over(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text("current-context: both\nusers: null\n")
    second = written(
        tmp_path / "second", contexts=[{"name": "both", "context": {"cluster": "home", "user": "me"}}]
    )
    third = cluster(tmp_path / "third", **{"tls-server-name": "ignored"})
    named = os.pathsep.join(map(str, [tmp_path / "missing", first, second, third]))

    access = find(environ={"KUBECONFIG": named})

    assert access.server == "https://home:6443"
    assert access.trust.server_name == ""


async def test_the_pod_itself_is_the_next_place_to_look(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("mounted\n")
    (tmp_path / "ca.crt").write_text("pem")
    (tmp_path / "namespace").write_text("slurm-system")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    access = find(environ=environ, mounted=tmp_path)

    assert (access.server, access.namespace) == ("https://[fd00::1]:443", "slurm-system")
    assert access.trust == Trust(authority=tmp_path / "ca.crt")
    assert await headers(access) == (("Authorization", "Bearer mounted"),)


def test_the_usual_file_in_the_home_directory_comes_last(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    written(tmp_path / ".kube" / "config")

    assert find(environ={"HOME": str(tmp_path)}, mounted=tmp_path).server == "https://home:6443"


async def test_a_renewed_token_is_noticed_without_asking(tmp_path: Path) -> None:
    """The kubelet swaps a symlink; the file behind the name is another one then."""
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    (tmp_path / "token").symlink_to("one")
    credentials = TokenFile(tmp_path / "token")
    before = await credentials.identity()

    (tmp_path / "swapped").symlink_to("two")
    (tmp_path / "swapped").rename(tmp_path / "token")

    assert before.headers == (("Authorization", "Bearer one"),)
    assert (await credentials.identity()).headers == (("Authorization", "Bearer two"),)


async def test_a_refused_token_is_read_again_even_if_the_file_looks_the_same(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    seen = path.stat()
    credentials = TokenFile(path)
    before = await credentials.identity()
    path.write_text("two")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    unnoticed = await credentials.identity()
    credentials.invalidate()
    after = await credentials.identity()

    assert before == unnoticed
    assert after.headers == (("Authorization", "Bearer two"),)


def without_token(directory: Path) -> Access:
    return in_cluster(environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, mounted=directory)


@pytest.mark.parametrize(
    ("attempt", "says"),
    [
        pytest.param(lambda d: find(d / "nowhere"), ["cannot read kubeconfig", "nowhere"], id="no such file"),
        pytest.param(lambda d: find(environ={"HOME": str(d)}, mounted=d), ["KUBECONFIG", ".kube"], id="none"),
        pytest.param(without_token, ["token is missing", "automount"], id="a pod without a token"),
        pytest.param(lambda d: in_cluster(environ={}, mounted=d), ["SERVICE_HOST"], id="no pod at all"),
        pytest.param(lambda d: find(written(d / "c"), "moon"), ["no context 'moon'", "'home'"], id="context"),
        pytest.param(
            lambda d: find(written(d / "c", **{"current-context": ""})), ["no current-context"], id="none set"
        ),
        pytest.param(
            lambda d: find(written(d / "c", clusters=[])), ["no cluster 'home'", "none"], id="no cluster"
        ),
        pytest.param(
            lambda d: find(written(d / "c", clusters=[{"name": "home", "cluster": {}}])),
            ["'home' has no server"],
            id="a cluster without a server",
        ),
        *(
            pytest.param(
                lambda d, server=server: find(cluster(d / "c", server=server)),
                ["is no address", server],
                id=server,
            )
            for server in ("https://api:644300", "https://[fd00::1:6443", "10.0.0.1:6443", "https://:6443")
        ),
        pytest.param(
            lambda d: find(user(d / "c", token=12345)),
            ["damaged", "Expected `str`", "users[0].user.token"],
            id="wrong type",
        ),
        pytest.param(lambda d: find(damaged(d / "c")), ["damaged", "line 2"], id="no YAML"),
        pytest.param(
            lambda d: find(user(d / "c", **{"client-key": "k"})), ["certificate or a key"], id="half a pair"
        ),
        pytest.param(
            lambda d: find(cluster(d / "c", **{"certificate-authority-data": "?"})),
            ["no base64"],
            id="no b64",
        ),
        pytest.param(
            lambda d: find(user(d / "c", **{"auth-provider": {"name": "gcp"}})),
            ["auth-provider", "exec"],
            id="what was removed long ago",
        ),
        pytest.param(
            lambda d: find(user(d / "c", exec={"command": "x", "apiVersion": "v0"})),
            ["'v0'", PLUGIN_VERSION],
            id="an exec version nobody knows",
        ),
    ],
)
def test_what_is_wrong_is_said_with_where_and_what_to_do(
    attempt: Callable[[Path], Access], says: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigProblem) as caught:
        attempt(tmp_path)

    assert all(part in str(caught.value) for part in says), str(caught.value)


def damaged(path: Path) -> Path:
    path.write_text("clusters: [\n}")
    return path


def test_a_proxy_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigProblem, match=r"cluster 'home' is behind a proxy \(proxy-url\)") as caught:
        find(cluster(tmp_path / "c", **{"proxy-url": "http://user:secret@proxy:3128"}))

    assert "secret" not in str(caught.value)


async def test_files_are_found_beside_the_kubeconfig_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("from-file")
    path = user(tmp_path / "c", tokenFile="t", token="overruled")

    assert await headers(find(path)) == (("Authorization", "Bearer from-file"),)


async def test_certificates_come_inline_or_from_files(tmp_path: Path) -> None:
    inline = base64.b64encode(b"inline").decode()
    path = user(
        tmp_path / "c", **{"client-certificate-data": inline, "client-key": "key", "client-certificate": "x"}
    )

    identity = await find(path).credentials.identity()

    assert identity.certificate == ClientCertificate(b"inline", tmp_path / "key")


async def test_impersonation_becomes_headers(tmp_path: Path) -> None:
    path = user(tmp_path / "c", **{"token": "t", "as": "jane", "as-groups": ["dev", "ops"]})

    assert await headers(find(path)) == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Authorization", "Bearer t"),
    )


def test_without_verification_only_when_asked_for(tmp_path: Path) -> None:
    insecure = find(cluster(tmp_path / "c", **{"insecure-skip-tls-verify": True})).trust
    secure = find(written(tmp_path / "d")).trust

    assert not TlsContexts(insecure).context().check_hostname
    assert TlsContexts(secure).context().check_hostname


def test_a_certificate_authority_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("not a certificate")

    with pytest.raises(ConfigProblem, match=r"ca\.crt"):
        TlsContexts(Trust(authority=tmp_path / "ca.crt")).context()
    with pytest.raises(ConfigProblem, match="given inline"):
        TlsContexts(Trust(authority=b"not a certificate")).context()
    with pytest.raises(ConfigProblem, match="cannot read"):
        TlsContexts(Trust(authority=tmp_path / "missing")).context()
    with pytest.raises(ConfigProblem, match="cannot read"):
        TlsContexts(Trust(authority=tmp_path)).context()


def test_an_empty_certificate_authority_is_not_taken_for_that_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()

    for empty in (tmp_path / "ca.crt", b""):
        with pytest.raises(ConfigProblem, match="is empty"):
            TlsContexts(Trust(authority=empty)).context()


def authority(path: Path, name: str) -> Path:
    """A CA as old tools made them: without key usage, which Python 3.13 and newer refuse by default."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = datetime.now(UTC) - timedelta(hours=1)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return path


def trusted(contexts: TlsContexts) -> list[str]:
    return [str(found["subject"]) for found in contexts.context().get_ca_certs()]


def test_a_renewed_authority_is_loaded_and_an_unchanged_one_is_not(tmp_path: Path) -> None:
    path = authority(tmp_path / "ca.crt", "first")
    contexts = TlsContexts(Trust(authority=path))
    first = contexts.context()
    same = contexts.context()
    before = trusted(contexts)
    authority(tmp_path / "new", "second").rename(path)
    after = trusted(contexts)

    assert same is first
    assert (len(before), len(after)) == (1, 1), "only the cluster's own authority is trusted"
    assert "first" in before[0]
    assert "second" in after[0]


def test_a_bundle_may_have_comments_in_any_language(tmp_path: Path) -> None:
    pem = authority(tmp_path / "ca.crt", "ours").read_bytes()

    assert len(trusted(TlsContexts(Trust(authority="# Főtanúsítvány\n".encode() + pem)))) == 1


def test_authorities_of_old_tools_are_accepted(tmp_path: Path) -> None:
    context = TlsContexts(Trust(authority=authority(tmp_path / "ca.crt", "old"))).context()

    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_mode is ssl.CERT_REQUIRED


async def test_no_secret_shows_when_an_identity_is_printed(tmp_path: Path) -> None:
    path = user(
        tmp_path / "c", **{"token": "t0p", "client-certificate-data": "YQ==", "client-key-data": "c2VjcmV0"}
    )
    access = find(path)

    assert "t0p" not in repr(access)
    assert "secret" not in repr(await access.credentials.identity())


# Programs for credentials


def program(path: Path, body: str) -> str:
    path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{dedent(body)}")
    path.chmod(0o755)
    return str(path)


COUNTING = """
    here = os.path.dirname(os.path.abspath(__file__))
    count = len(os.listdir(here)) - 1
    open(os.path.join(here, str(count)), "w").close()
    info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
    status = {"token": f"{os.environ.get('PREFIX', '')}{' '.join(sys.argv[1:])}{count}"}
    status["expirationTimestamp"] = "2026-01-01T12:00:00Z"
    status["cluster"] = info["spec"].get("cluster", {}).get("server", "")
    print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


@pytest.mark.parametrize("version", [PLUGIN_VERSION, "client.authentication.k8s.io/v1beta1"])
async def test_a_program_gives_a_token_until_it_is_about_to_expire(tmp_path: Path, version: str) -> None:
    now = datetime(2026, 1, 1, 11, 0, tzinfo=UTC)
    command = ExecCommand(
        api_version=version,
        command=program(tmp_path / "plugin", COUNTING),
        args=("token",),
        env={"PREFIX": "my-"},
    )
    plugin = ExecPlugin(command, now=lambda: now)

    first = await plugin.identity()
    again = await plugin.identity()
    now += timedelta(minutes=59, seconds=45)
    renewed = await plugin.identity()
    plugin.invalidate()
    refused = await plugin.identity()

    assert first.headers == (("Authorization", "Bearer my-token0"),)
    assert again == first
    assert renewed.headers == (("Authorization", "Bearer my-token1"),)
    assert refused.headers == (("Authorization", "Bearer my-token2"),)


async def test_a_program_named_in_a_kubeconfig_is_run_from_beside_it(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "plugin", COUNTING)
    asked = {
        "command": "./bin/plugin",
        "apiVersion": PLUGIN_VERSION,
        "args": ["x"],
        "env": [{"name": "PREFIX", "value": "p"}],
        "provideClusterInfo": True,
        "interactiveMode": "Never",
    }

    access = kubeconfig.load([user(tmp_path / "c", exec=asked)])

    assert await headers(access) == (("Authorization", "Bearer px0"),)


async def test_a_program_can_give_a_certificate(tmp_path: Path) -> None:
    body = """
        status = {"clientCertificateData": "CERT", "clientKeyData": "KEY"}
        print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "status": status}))
    """
    plugin = ExecPlugin(ExecCommand(PLUGIN_VERSION, program(tmp_path / "plugin", body)))

    assert (await plugin.identity()).certificate == ClientCertificate(b"CERT", b"KEY")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param("sys.exit('please log in first')", "exit code 1: please log in first", id="it fails"),
        pytest.param("print('secret-token')", "did not print an ExecCredential", id="it prints nonsense"),
        pytest.param(
            "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'status': {}}))",
            "neither a token nor a client certificate",
            id="it gives nothing",
        ),
        pytest.param(
            "print(json.dumps({'apiVersion': 'v9', 'status': {'token': 'secret-token'}}))",
            "answered in v9",
            id="another version",
        ),
    ],
)
async def test_a_program_that_fails_is_quoted_and_what_it_printed_is_not(
    tmp_path: Path, body: str, says: str
) -> None:
    plugin = ExecPlugin(ExecCommand(PLUGIN_VERSION, program(tmp_path / "plugin", body)))

    with pytest.raises(ConfigProblem, match=says) as caught:
        await plugin.identity()

    assert "secret-token" not in str(caught.value)


async def test_what_a_program_asks_a_person_is_seen(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ask = "print('Open the browser and enter ABCD', file=sys.stderr); sys.exit(1)"
    command = program(tmp_path / "plugin", ask)

    for is_interactive in (False, True):
        with pytest.raises(ConfigProblem, match="exit code 1"):
            await ExecPlugin(ExecCommand(PLUGIN_VERSION, command, interactive=is_interactive)).identity()
        assert ("enter ABCD" in capfd.readouterr().err) is is_interactive


async def test_a_program_that_is_not_installed_comes_with_its_hint(tmp_path: Path) -> None:
    missing = ExecCommand(PLUGIN_VERSION, str(tmp_path / "nope"), install_hint="Get it from the cloud.")

    with pytest.raises(ConfigProblem, match=r"No such file or directory\. Get it from the cloud\."):
        await ExecPlugin(missing).identity()
