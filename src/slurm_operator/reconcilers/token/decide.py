"""When a token is signed, and why not."""

from datetime import datetime, timedelta

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.plan.actions import Action, DeleteObject, PatchObject, SignToken, Wait
from slurm_operator.plan.plan import Plan, lane, plan
from slurm_operator.reconcilers.token import desired
from slurm_operator.reconcilers.token.observe import Issued, Seen

# A token is replaced when this much of its life is over, so that whoever reads it has time to notice.
REFRESH_AT = 0.8


def decide(seen: Seen, now: datetime) -> Plan:
    if seen.token.metadata.is_terminating:
        return plan()
    steps = next_steps(seen, now)
    return plan(lane("token", *([step] for step in steps)), look_again=look_again(seen, steps, now))


def next_steps(seen: Seen, now: datetime) -> list[Action]:
    """What brings the Secret to what the Token asks for, in order."""
    name = f"Secret {seen.token.secret_name}"
    if seen.key is None:
        return [Wait(subject=name, reason=Reason.SIGNING_KEY_MISSING, message=seen.key_problem)]
    match seen.secret:
        case Unread(why=why):
            return [Wait(subject=name, reason=Reason.SECRET_UNREAD, message=why)]
        case None:
            return [_sign(seen, now, Reason.SIGNED, "there was no token yet")]
        case Secret() as secret if not is_ours(secret, seen):
            return [Wait(subject=name, reason=Reason.SECRET_TAKEN, message=taken(secret, seen))]
        case Secret() as secret:
            return _renewal(seen, secret, now)


def _renewal(seen: Seen, secret: Secret, now: datetime) -> list[Action]:
    why = why_sign_again(seen, now)
    if not seen.token.spec.refresh and seen.issued is not None:
        return _kept(seen, seen.issued, why, now)
    if why is None:
        return []
    if secret.immutable:
        return [_delete(seen, secret, "an immutable Secret cannot be updated; it is created again at once")]
    adoption = [_adopt(seen, secret)] if _foreign_controller(secret, seen) else []
    return [*adoption, _sign(seen, now, Reason.RENEWED, why)]


def _kept(seen: Seen, issued: Issued, why: str | None, now: datetime) -> list[Action]:
    """Signed once, for good. What is no longer right about it is reported, not corrected."""
    if now >= issued.until:
        why = f"the token ran out at {issued.until:%Y-%m-%d %H:%M:%S} UTC"
    elif why is None or now >= due(issued):
        return []
    message = (
        f"spec.refresh is off and {why}. Delete Secret {seen.token.secret_name!r} to have a new token "
        "signed, or set spec.refresh to true."
    )
    return [Wait(subject=f"Secret {seen.token.secret_name}", reason=Reason.NOT_REFRESHED, message=message)]


def why_sign_again(seen: Seen, now: datetime) -> str | None:
    """The reason to replace the token in the Secret; None while it is good."""
    assert seen.key is not None
    match seen.issued:
        case None:
            return "nothing is noted about the token in the Secret"
        case Issued(key_digest=digest) if digest != seen.key.digest:
            return "the signing key has changed"
        case Issued(username=username) if username != seen.token.spec.username:
            return f"it was for user {username!r}"
        case Issued(at=at, until=until) if until - at != seen.lifetime:
            return "its lifetime has changed"
        case Issued() as issued if now >= due(issued):
            return f"it runs out at {issued.until:%Y-%m-%d %H:%M:%S} UTC"
        case Issued():
            return None


def due(issued: Issued) -> datetime:
    """When the token is replaced."""
    return issued.at + (issued.until - issued.at) * REFRESH_AT


def look_again(seen: Seen, steps: list[Action], now: datetime) -> timedelta | None:
    """At the next renewal, or when a token that is not renewed runs out."""
    if seen.issued is None or steps:
        return None
    moment = due(seen.issued) if seen.token.spec.refresh else seen.issued.until
    return max(moment - now, timedelta(seconds=1)) if moment > now else None


def is_ours(secret: Secret, seen: Seen) -> bool:
    """Made by this Token; or by the Slinky operator, which let the signing key own it."""
    owner = secret.metadata.owner
    return owner is not None and (owner.uid == seen.token.metadata.uid or _foreign_controller(secret, seen))


def _foreign_controller(secret: Secret, seen: Seen) -> bool:
    owner = secret.metadata.owner
    key = seen.key
    return owner is not None and key is not None and owner.is_a(kinds.SECRET) and owner.name == key.name


def taken(secret: Secret, seen: Seen) -> str:
    owner = secret.metadata.owner
    whose = f"{owner.kind} {owner.name}" if owner is not None else "nobody we know"
    return (
        f"Secret {seen.token.secret_name!r} already exists and belongs to {whose}; it is left alone. "
        "Delete it, or name another one in spec.secretRef."
    )


def _sign(seen: Seen, now: datetime, reason: Reason, why: str) -> SignToken:
    assert seen.key is not None
    issued_at = now.replace(microsecond=0)
    return SignToken(
        manifest=desired.secret(seen, issued_at),
        entry=seen.token.secret_key,
        key=seen.key,
        username=seen.token.spec.username,
        issued_at=issued_at,
        lifetime=seen.lifetime,
        reason=reason,
        message=f"signed a token for user {seen.token.spec.username!r}: {why}",
    )


def _delete(seen: Seen, secret: Secret, why: str) -> DeleteObject:
    return DeleteObject(
        kind=kinds.SECRET,
        key=ObjectKey(seen.token.metadata.namespace, seen.token.secret_name),
        uid=secret.metadata.uid,
        reason=Reason.REPLACED,
        message=why,
    )


def _adopt(seen: Seen, secret: Secret) -> PatchObject:
    return PatchObject(
        kind=kinds.SECRET,
        key=ObjectKey(seen.token.metadata.namespace, seen.token.secret_name),
        uid=secret.metadata.uid,
        operations=({"op": "remove", "path": "/metadata/ownerReferences"},),
        reason=Reason.ADOPTED,
        message="the Secret belongs to its Token now, not to the signing key",
    )
