"""How login pods come up, what replaces them and what reaches them while they run."""

from datetime import UTC, datetime

import pytest

from slurm_operator.api.schema.problems import References
from slurm_operator.api.shared import names
from slurm_operator.api.shared.images import DOMAIN_VARIABLE
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.key_ring import Ring
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.manifests.secrets import SSH_FINGERPRINTS
from slurm_operator.plan.actions import Apply, GenerateSecret, Wait
from slurm_operator.reconcilers.loginset import RECONCILER, of_controller, of_pod
from testing.children import carried_out, pod, read, report, running, secret, with_secrets
from testing.golden import assert_golden
from testing.rings import ring_secret
from testing.world import HandmadeWorld

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = ObjectKey("ns", "login")
SMALLEST = {"controllerRef": {"name": "slurm"}}
EVERYTHING = {
    **SMALLEST,
    "replicas": 2,
    "login": {
        "image": "registry.example.org/login:1", "ports": [{"name": "login", "containerPort": 2222}],
        "securityContext": {"privileged": False}, "env": [{"name": "SSHD_OPTIONS", "value": "-4"}],
    },
    "initconf": {"image": "alpine:latest", "resources": {"limits": {"memory": "32Mi"}}},
    "template": {
        "metadata": {"labels": {"team": "hpc"}, "annotations": {"example.org/scrape": "no"}},
        "spec": {"dnsConfig": {"searches": ["example.org"]}, "volumes": [{"name": "home", "nfs": {"server": "nfs", "path": "/home"}}]},
    },
    "rootSshAuthorizedKeys": "ssh-ed25519 AAAA admin\n",
    "extraSshdConfig": "MaxAuthTries 3\nMatch Group guests\n    X11Forwarding no\n",
    "sssdConfRef": {"name": "users", "key": "conf"},
    "sshHostKeysRef": {"name": "hosts"},
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    "service": {"port": 2200, "nodePort": 30022, "spec": {"type": "LoadBalancer"}},
}  # fmt: skip


def loginset(spec: dict, **meta) -> LoginSet:
    return read(LoginSet, spec, name="login", **meta)


def given(name: str, **digests: str) -> Secret:
    return Secret(metadata=secret(name).metadata, digests=digests)


def ring(made: Ring) -> Secret:
    return ring_secret("ns", "slurm-auth-slurm", made)


def world(made: LoginSet, controller: dict | None = None) -> HandmadeWorld:
    """A Controller with its key, and what the user brings."""
    there = HandmadeWorld(things=[made, read(Controller, controller or {})])
    return with_secrets(
        there, secret("slurm-auth-slurm", slurm_key="k1"), ring(Ring(signs="k1")), given("users", conf="u1"), given("hosts", ssh_host_ed25519_key="h1")
    )  # fmt: skip


def decide(there: HandmadeWorld):
    seen = RECONCILER.observe(KEY, there)
    return seen, RECONCILER.decide(seen, NOW)


def settled(there: HandmadeWorld, passes: int = 3) -> HandmadeWorld:
    for _ in range(passes):
        carried_out(there, decide(there)[1])
    return there


def written(there: HandmadeWorld) -> list[dict]:
    found = {}
    for _ in range(3):
        _, plan = decide(there)
        for action in plan.actions():
            if isinstance(action, Apply | GenerateSecret):
                found.setdefault(
                    (action.manifest["kind"], action.manifest["metadata"]["name"]), action.manifest
                )
        carried_out(there, plan)
    return list(found.values())


def one(manifests: list[dict], kind: str) -> dict:
    [found] = [manifest for manifest in manifests if manifest["kind"] == kind]
    return found


@pytest.mark.parametrize(
    ("name", "spec", "controller"),
    [
        ("defaults", SMALLEST, {}),
        ("everything", EVERYTHING, {}),
        ("files", {**SMALLEST, "configSource": "files"}, {}),
        ("ordered", {**SMALLEST, "ordered": True, "replicas": 2}, {}),
        ("external-slurmctld", SMALLEST, {"external": True, "externalConfig": {"host": "head.example.org", "port": 7000}}),
    ],
)  # fmt: skip
def test_the_objects_of_a_loginset(name, spec, controller):
    assert_golden("loginset", name, written(world(loginset(spec), controller)))


def test_another_cluster_domain_is_for_pods_to_come(monkeypatch):
    there = settled(world(loginset(SMALLEST)))
    monkeypatch.setenv(DOMAIN_VARIABLE, "k8s.example.org")

    assert list(decide(there)[1].actions()) == [], "sessions go on"
    pod = one(written(world(loginset(SMALLEST))), "Deployment")["spec"]["template"]["spec"]
    assert pod["dnsConfig"]["searches"] == ["slurm-workers-slurm.ns.svc.k8s.example.org"]


@pytest.mark.parametrize(
    ("extra", "forwards"),
    [
        pytest.param("", ["yes"], id="unless told otherwise"),
        pytest.param("MaxAuthTries 3\nx11forwarding = no", ["no"], id="the user's word stands"),
        pytest.param("X11Forwarding yes", ["yes"], id="the same word"),
        pytest.param("Match Group guests\n    X11Forwarding no", ["yes", "no"], id="a word about some"),
        pytest.param("X11Forwarding no\nMatch Group us\n    X11Forwarding yes", ["no", "yes"], id="about all, and some"),
        pytest.param("# X11Forwarding no", ["yes"], id="a comment"),
    ],
)  # fmt: skip
def test_x11_is_forwarded_unless_the_user_says_otherwise(extra, forwards):
    made = written(world(loginset({**SMALLEST, "extraSshdConfig": extra})))
    lines = [line.split() for line in one(made, "ConfigMap")["data"]["sshd_config"].splitlines()]

    assert [line[-1] for line in lines if line and line[0].lower() == "x11forwarding"] == forwards


def test_a_user_whose_word_on_x11_had_no_effect_keeps_their_sessions():
    made = written(world(loginset({**SMALLEST, "extraSshdConfig": "X11Forwarding no"})))
    text = one(made, "ConfigMap")["data"]["sshd_config"]
    before = text.replace("Subsystem sftp", "X11Forwarding yes\nSubsystem sftp")
    noted = one(made, "Deployment")["spec"]["template"]["metadata"]["annotations"][names.SSHD_CONF_HASH]

    assert noted == digest(before)


@pytest.mark.parametrize("spec", [SMALLEST, EVERYTHING])
def test_what_is_there_is_not_written_again(spec):
    assert list(decide(settled(world(loginset(spec))))[1].actions()) == []


@pytest.mark.parametrize(
    ("spec", "gone", "reason", "word"),
    [
        pytest.param(SMALLEST, "slurm-auth-slurm", "KeyNotYetGenerated", "Controller 'slurm'", id="no Slurm key yet"),
        pytest.param(SMALLEST, "slurm-auth-slurm-ring", "KeyNotYetGenerated", "slurm-auth-slurm-ring", id="no key ring yet"),
        pytest.param(EVERYTHING, "users", "SecretNotFound", "spec.sssdConfRef", id="no sssd.conf"),
        pytest.param(EVERYTHING, "hosts", "SecretNotFound", "spec.sshHostKeysRef", id="no host keys of the user's"),
        pytest.param({**EVERYTHING, "sshHostKeysRef": {"name": "users"}}, None, "SecretEntryNotFound", "it has: conf", id="a Secret without host keys"),
        pytest.param({"controllerRef": {"name": "typo"}}, None, "ControllerNotFound", "Controller 'typo'", id="no Controller"),
    ],
)  # fmt: skip
def test_login_pods_are_not_started_before_they_have_all_they_need(spec, gone, reason, word):
    there = world(loginset(spec))
    if gone:
        del there.named[Secret, ObjectKey("ns", gone)]
    settled(there)

    seen, plan = decide(there)

    assert there.child(kinds.DEPLOYMENT, "ns", "login") is None
    assert there.child(kinds.SERVICE, "ns", "login") is not None
    assert reason in {wait.reason for wait in plan.waits}
    assert report(RECONCILER, seen, plan)["Ready"][:2] == ("False", reason)
    assert word in report(RECONCILER, seen, plan)["Ready"][2]


def test_host_keys_are_made_once_and_belong_to_the_loginset():
    made = [a for a in decide(world(loginset(SMALLEST)))[1].actions() if isinstance(a, GenerateSecret)]
    [keys] = made

    assert (keys.recipe, keys.size, keys.manifest["immutable"]) == ("ssh-host-keys", 4096, True)
    assert keys.manifest["metadata"]["ownerReferences"][0]["name"] == "login"

    there = world(loginset(SMALLEST))
    there.with_secret(Unread(why="forbidden"), ObjectKey("ns", "login-ssh-host-keys"))
    assert not [a for a in decide(there)[1].actions() if isinstance(a, GenerateSecret)]
    assert not [a for a in decide(world(loginset(EVERYTHING)))[1].actions() if isinstance(a, GenerateSecret)]


def test_new_keys_of_root_change_a_mounted_file_and_no_pod():
    there = settled(world(loginset(SMALLEST)))
    there.things[0] = loginset({**SMALLEST, "rootSshAuthorizedKeys": "ssh-ed25519 BBBB new\n"})

    [write] = decide(there)[1].actions()

    assert write.manifest["kind"] == "ConfigMap"
    assert "BBBB" in write.manifest["data"]["authorized_keys"]
    deployment = there.child(kinds.DEPLOYMENT, "ns", "login").body["spec"]["template"]["spec"]
    [mount] = [m for m in deployment["containers"][0]["volumeMounts"] if m["name"] == "authorized-keys"]
    assert "subPath" not in mount, "the kubelet never updates a subPath"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda there: there.things.__setitem__(0, loginset({**SMALLEST, "extraSshdConfig": "Banner none"})), id="sshd_config"),
        pytest.param(lambda there: with_secrets(there, ring(Ring(signs="k1", next="k2"))), id="a new Slurm key to accept"),
        pytest.param(lambda there: with_secrets(there, ring(Ring(signs="k2", former="k1"))), id="another Slurm key that signs"),
        pytest.param(lambda there: with_secrets(there, given("login-ssh-host-keys", ssh_host_rsa_key="new")), id="host keys"),
        pytest.param(lambda there: there.things.__setitem__(1, read(Controller, {"service": {"port": 7000}})), id="where slurmctld is"),
    ],
)  # fmt: skip
def test_what_pods_read_at_their_start_replaces_them(change):
    there = settled(world(loginset(SMALLEST)))
    change(there)

    assert "Deployment" in [action.manifest["kind"] for action in decide(there)[1].actions()]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(secret("slurm-auth-slurm", slurm_key="k2"), id="a new key that nobody knows yet"),
        pytest.param(ring(Ring(signs="k1", former="k0")), id="an old one that goes"),
    ],
)
def test_a_slurm_key_replaces_login_pods_only_when_it_has_to(change):
    there = settled(world(loginset(SMALLEST)))

    assert list(decide(with_secrets(there, change))[1].actions()) == []


def test_sshd_listens_where_the_container_port_says_and_offers_only_keys_that_all_pods_share():
    found = written(world(loginset(EVERYTHING)))
    config = one(found, "ConfigMap")["data"]["sshd_config"]
    [login] = one(found, "Deployment")["spec"]["template"]["spec"]["containers"]

    assert "Port 2222\nHostKey /etc/ssh/ssh_host_ed25519_key\nUsePAM yes\n" in config
    assert "ssh_host_rsa_key" not in config
    assert login["ports"] == [{"name": "login", "containerPort": 2222}]
    assert config.index("Match Group guests") < config.index("Match User root")


def test_users_of_the_image_are_the_default_and_a_given_sssd_conf_replaces_it():
    assert (
        "proxy_lib_name = files"
        in next(m for m in written(world(loginset(SMALLEST))) if m["metadata"]["name"] == "login-sssd-conf")[
            "stringData"
        ]["sssd.conf"]
    )
    assert "login-sssd-conf" not in [m["metadata"]["name"] for m in written(world(loginset(EVERYTHING)))]


def test_status_counts_pods_finds_them_and_tells_where_to_log_in():
    there = running(settled(world(loginset(EVERYTHING))), kinds.DEPLOYMENT, "login", ready=2)
    told = report(RECONCILER, *decide(there))
    assert told["Ready"] == ("True", "Serving", "Log in with ssh at login.ns:2200.")
    assert [told[f"{kind}Replicas"] for kind in ("updated", "ready", "available")] == [2, 2, 2]
    assert told["selector"] == "app.kubernetes.io/instance=login,app.kubernetes.io/name=login"

    service = there.child(kinds.SERVICE, "ns", "login")
    service.body["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}
    assert report(RECONCILER, *decide(there))["endpoint"] == "192.0.2.7:2200"


def test_with_a_port_of_every_node_the_status_names_it():
    there = running(settled(world(loginset(EVERYTHING))), kinds.DEPLOYMENT, "login", ready=2)
    service = there.child(kinds.SERVICE, "ns", "login")
    service.body["spec"] = {"type": "NodePort", "ports": [{"port": 2200, "nodePort": 30022}]}

    told = report(RECONCILER, *decide(there))

    assert told["Ready"][2] == (
        "Log in with ssh at port 30022 of any Kubernetes node, or inside at login.ns:2200."
    )
    assert told["endpoint"] == "login.ns:2200"


def test_fingerprints_of_generated_host_keys_are_told():
    there = settled(world(loginset(SMALLEST)))
    made = there.named[Secret, ObjectKey("ns", "login-ssh-host-keys")]
    assert report(RECONCILER, *decide(there))["hostKeyFingerprints"] == []

    made.metadata.annotations[SSH_FINGERPRINTS] = "ED25519 SHA256:abc, RSA SHA256:def"

    assert report(RECONCILER, *decide(there))["hostKeyFingerprints"] == [
        "ED25519 SHA256:abc",
        "RSA SHA256:def",
    ]


def test_half_a_rollout_is_ready_but_in_progress():
    there = running(
        settled(world(loginset(EVERYTHING))),
        kinds.DEPLOYMENT,
        "login",
        ready=2,
        updatedReplicas=1,
        replicas=3,
    )

    told = report(RECONCILER, *decide(there))

    assert told["Ready"][0] == "True"
    assert told["Progressing"] == ("True", "RollingOut", "2 of 2 login pods are ready, 1 of them up to date.")


def test_no_pods_are_as_good_as_asked_for():
    there = running(settled(world(loginset({**SMALLEST, "replicas": 0}))), kinds.DEPLOYMENT, "login", ready=0)

    assert report(RECONCILER, *decide(there))["Ready"][:2] == ("True", "ScaledToZero")


def test_a_workload_without_pods_is_not_ready_when_the_spec_asks_for_some():
    """In the moment between the change of the spec and the next look at the workload."""
    there = running(settled(world(loginset(SMALLEST))), kinds.DEPLOYMENT, "login", ready=0)
    there.child(kinds.DEPLOYMENT, "ns", "login").body["spec"]["replicas"] = 0

    told = report(RECONCILER, *decide(there))

    assert told["Ready"][:2] == ("False", "Starting")
    assert told["Progressing"][:2] == ("True", "Starting")


def test_a_loginset_that_goes_needs_nothing():
    going = loginset(SMALLEST, deletionTimestamp="2026-01-01T11:00:00Z")

    assert not [action for action in decide(world(going))[1].actions() if not isinstance(action, Wait)]
    assert RECONCILER.observe(KEY, HandmadeWorld()) is None


def test_who_wakes_a_loginset():
    there = world(loginset(SMALLEST))

    assert list(of_controller(there.get(Controller, "ns", "slurm"), there)) == [KEY]
    assert list(of_pod(pod("p", "login", "login"), there)) == [KEY]
    assert list(of_pod(pod("p", "slurmd", "login"), there)) == []


def test_ordered_login_pods_are_ready_when_their_statefulset_says_so():
    there = settled(world(loginset({**SMALLEST, "ordered": True, "replicas": 2})))
    seen, plan = decide(there)
    assert list(plan.actions()) == [], "settled"
    assert (kinds.DEPLOYMENT, "login") not in seen.children

    there = running(there, kinds.STATEFUL_SET, "login", ready=2)
    seen, plan = decide(there)
    assert seen.rollout is not None
    assert seen.rollout.works


def test_whether_login_pods_are_ordered_cannot_change():
    before, after = loginset(SMALLEST), loginset({**SMALLEST, "ordered": True})

    assert any("ordered cannot change" in str(problem) for problem in after.problems(before, References()))


def test_a_strategy_of_deployments_is_not_for_ordered_pods():
    made = loginset({**SMALLEST, "ordered": True, "strategy": {"type": "Recreate"}})

    assert "strategy" not in one(written(world(made)), "StatefulSet")["spec"]
    assert any(problem.path == "spec.strategy" for problem in made.problems(None, References()))
