"""When a Token's token is signed, replaced, left alone, and what its owner is told."""

from datetime import UTC, datetime, timedelta

import pytest

from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.token import Token
from slurm_operator.manifests.meta import Meta, OwnerReference
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.plan.actions import DeleteObject, PatchObject, SignToken, Wait
from slurm_operator.plan.conditions import READY
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.token import RECONCILER, tokens_of
from slurm_operator.reconcilers.token.observe import EXPIRES_AT, ISSUED_AT, KEY_DIGEST, USERNAME
from testing.golden import assert_golden
from testing.world import HandmadeWorld

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
KEY = ObjectKey("ns", "ci")


def token(**spec) -> Token:
    body = {"jwtKeyRef": {"name": "keys", "key": "jwt.key"}, "username": "ada", "lifetime": "1h", **spec}
    return codec.read(
        Token,
        {"metadata": {"name": "ci", "namespace": "ns", "uid": "token-uid", "generation": 3}, "spec": body},
    )


def keys(*, digest="k1", entry="jwt.key") -> Secret:
    return Secret(metadata=Meta(name="keys", namespace="ns", uid="keys-uid"), digests={entry: digest})


def holding(*, at=NOW, lifetime=HOUR, user="ada", key="k1", owner=("Token", "ci", "token-uid"), immutable=False,
            noted=True) -> Secret:  # fmt: skip
    notes = {
        ISSUED_AT: at.isoformat(), EXPIRES_AT: (at + lifetime).isoformat(), USERNAME: user, KEY_DIGEST: key,
    }  # fmt: skip
    owners = []
    if owner is not None:
        kind, name, uid = owner
        owners = [OwnerReference(api_version="v1", kind=kind, name=name, uid=uid, controller=True)]
    return Secret(
        metadata=Meta(
            name="ci-jwt-ada", namespace="ns", uid="secret-uid", annotations=notes if noted else {},
            owner_references=owners,
        ),
        digests={"SLURM_JWT": "whatever"},
        immutable=immutable,
    )  # fmt: skip


def world(token_: Token, *, signing=None, secret=None) -> HandmadeWorld:
    made = HandmadeWorld(things=[token_])
    if signing is not None:
        made.with_secret(signing, ObjectKey("ns", "keys"))
    if secret is not None:
        made.with_secret(secret, ObjectKey("ns", "ci-jwt-ada"))
    return made


def decide(made: HandmadeWorld, now=NOW):
    seen = RECONCILER.observe(KEY, made)
    plan = RECONCILER.decide(seen, now)
    return seen, plan, list(plan.actions())


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("minimal", {}),
        ("not-refreshed", {"refresh": False}),
        (
            "named-secret",
            {"secretRef": {"name": "robots", "key": "jwt"}, "username": "bob", "lifetime": "168h"},
        ),
    ],
)
def test_the_secret_of_a_token(name, spec):
    _, _, actions = decide(world(token(**spec), signing=keys()))

    assert_golden("token", name, [action.manifest for action in actions])


@pytest.mark.parametrize(
    ("given", "now", "steps", "word"),
    [
        pytest.param(world(token(), signing=keys()), NOW, [SignToken], "no token yet", id="the first token"),
        pytest.param(world(token(), signing=keys(), secret=holding()), NOW, [], "", id="a good one stays"),
        pytest.param(world(token(), signing=keys(), secret=holding()), NOW + 0.79 * HOUR, [], "", id="until 80 %"),
        pytest.param(world(token(), signing=keys(), secret=holding()), NOW + 0.8 * HOUR, [SignToken], "runs out at", id="of its life are over"),
        pytest.param(world(token(), signing=keys(digest="k2"), secret=holding()), NOW, [SignToken], "key has changed", id="the key was rotated"),
        pytest.param(world(token(username="bob"), signing=keys(), secret=holding()).with_secret(holding(), ObjectKey("ns", "ci-jwt-bob")), NOW, [SignToken], "user 'ada'", id="another user"),
        pytest.param(world(token(lifetime="2h"), signing=keys(), secret=holding()), NOW, [SignToken], "lifetime", id="another lifetime"),
        pytest.param(world(token(), secret=holding()), NOW, [Wait], "There is no Secret 'keys'", id="no signing key"),
        pytest.param(world(token(), signing=keys(entry="other")), NOW, [Wait], "it has: other", id="a typo in the entry"),
        pytest.param(world(token(), signing=Unread(why="forbidden")), NOW, [Wait], "forbidden", id="not allowed to read it"),
        pytest.param(world(token(), signing=keys(), secret=holding(owner=None)), NOW, [Wait], "nobody we know", id="somebody else's Secret is left alone"),
        pytest.param(world(token(), signing=keys(), secret=holding(owner=("App", "x", "u"))), NOW, [Wait], "App x", id="and another owner's"),
        pytest.param(world(token(), signing=keys(), secret=holding(owner=("Secret", "keys", "keys-uid"), noted=False)), NOW, [PatchObject, SignToken], "", id="one that the Slinky operator made is adopted"),
        pytest.param(world(token(refresh=False), signing=keys(), secret=holding(immutable=True)), NOW + 0.9 * HOUR, [], "", id="without refresh it stays"),
        pytest.param(world(token(refresh=False), signing=keys(), secret=holding(immutable=True)), NOW + HOUR, [Wait], "ran out", id="and its end is told"),
        pytest.param(world(token(refresh=False), signing=keys(digest="k2"), secret=holding(immutable=True)), NOW, [Wait], "key has changed", id="and a changed key too"),
        pytest.param(world(token(), signing=keys(digest="k2"), secret=holding(immutable=True)), NOW, [DeleteObject], "immutable", id="refresh turned on later: made again"),
    ],
)  # fmt: skip
def test_a_token_is_signed_exactly_when_it_must_be(given, now, steps, word):
    _, _, actions = decide(given, now)

    assert [type(action) for action in actions] == steps
    assert word in " ".join(action.message for action in actions)


def test_the_next_look_is_at_the_renewal():
    _, plan, _ = decide(world(token(), signing=keys(), secret=holding()), NOW + 0.5 * HOUR)

    assert plan.look_again == 0.3 * HOUR


def test_the_plan_never_has_the_key_or_the_token_in_it():
    _, _, [sign] = decide(world(token(), signing=keys()))

    assert sign.key.digest == "k1"
    assert "data" not in sign.manifest
    assert "stringData" not in sign.manifest


def test_a_secret_that_is_not_refreshed_is_immutable_and_belongs_to_its_token():
    _, _, [sign] = decide(world(token(refresh=False), signing=keys()))

    assert sign.manifest["immutable"] is True
    assert sign.manifest["metadata"]["ownerReferences"][0]["uid"] == "token-uid"


def test_the_key_of_a_named_controller_is_used():
    controller = codec.read(Controller, {"metadata": {"name": "demo", "namespace": "ns"}, "spec": {}})
    asking = codec.read(
        Token,
        {
            "metadata": {"name": "ci", "namespace": "ns", "uid": "token-uid"},
            "spec": {"controllerRef": {"name": "demo"}, "username": "ada"},
        },
    )
    made = HandmadeWorld(things=[asking, controller])
    made.with_secret(
        Secret(metadata=Meta(name="demo-auth-jwt", namespace="ns"), digests={"jwt.key": "k9"}),
        ObjectKey("ns", "demo-auth-jwt"),
    )

    _, _, [sign] = decide(made)

    assert (sign.key.name, sign.key.digest) == ("demo-auth-jwt", "k9")
    assert list(tokens_of(controller, made)) == [KEY]


def test_status_tells_when_it_is_valid_and_what_is_missing():
    seen, plan, actions = decide(world(token(), signing=keys(), secret=holding()))
    report = RECONCILER.status(seen, plan, Outcome(done=tuple(actions)))
    ready = next(c for c in report.conditions if c.type == READY)
    assert (ready.status, ready.message) == ("True", "Valid until 2026-01-01 13:00:00 UTC.")
    assert report.fields["renewsAt"] == NOW + 0.8 * HOUR

    seen, plan, actions = decide(world(token()))
    report = RECONCILER.status(seen, plan, Outcome(done=tuple(actions)))
    ready = next(c for c in report.conditions if c.type == READY)
    assert (ready.status, ready.reason) == ("False", "SigningKeyMissing")


def test_a_deleted_token_needs_nothing():
    assert RECONCILER.observe(KEY, HandmadeWorld()) is None


def test_the_status_says_nothing_about_the_signing_key():
    told = [
        RECONCILER.status(
            seen := RECONCILER.observe(KEY, there), RECONCILER.decide(seen, NOW), Outcome()
        ).fields
        for there in (
            world(token(), signing=keys(digest=digest), secret=holding(key=digest)) for digest in ("k1", "k2")
        )
    ]

    assert told[0] == told[1]
    assert told[0]["expiresAt"] == NOW + HOUR
