"""Collects a support archive: reads everything, redacts it, and hands back files."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import slurm_operator
from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.insight.bundle.archive import (
    ABOUT,
    CONFIG_MAPS,
    EVENTS,
    README,
    SECRETS,
    SLURM,
    About,
    Facts,
    Files,
    Named,
    log_path,
    object_path,
    with_kind,
)
from slurm_operator.insight.clusters import clusters
from slurm_operator.insight.collect import Looker, Sight, Unseen
from slurm_operator.insight.doctor import checkup, collection
from slurm_operator.insight.evaluation import verdicts
from slurm_operator.insight.logs import choice, reading
from slurm_operator.insight.operator_pods import OPERATOR
from slurm_operator.insight.status.cluster_status import status
from slurm_operator.insight.text.status_text import screen
from slurm_operator.kube.errors import Forbidden, KubeError, NotFound
from slurm_operator.kube.request import Selection
from slurm_operator.kube.secret_values import value_digest
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import ConfigMap, Pod, Secret, Unread
from slurm_operator.operator import OUR_CHILDREN
from slurm_operator.redaction.names import REDACTED
from slurm_operator.redaction.redactor import Redactor

SecretValues = Mapping[ObjectKey, Mapping[str, bytes]]

_SECRETS = "Secrets"
_MOST_EVENTS = 2000
_LOGS_AT_ONCE = 8

# The digest of a short value could be tried out until it fits; that of a key tells nothing.
_GUESSABLE_BYTES = 32


class _SecretBody(wire.CamelRecord):
    data: dict[str, bytes] | None = None
    type: str = ""


class NothingThere(Exception):  # noqa: N818 - it says what is the case
    """There is nothing of Slurm to pack, or nobody may see it."""


def _nothing(namespace: str, sight: Sight) -> str:
    where = f"in namespace {namespace!r}" if namespace else "in any namespace"
    rights = [
        one.right for one in sight.unseen if one.right.startswith(("list clusters", "list controllers"))
    ]
    if rights:
        return f"You may not {' and '.join(rights)} {where}, so there is nothing to pack."
    elsewhere = "Name another namespace with -n, or use -A."
    return f"There is no Slurm cluster {where}, so there is nothing to pack. {elsewhere}"


class Collector:
    """One archive. What cannot be read is noted and left out."""

    def __init__(self, looker: Looker, *, tail: int) -> None:
        self._looker = looker
        self._client = looker.client
        self._tail = tail
        self._unseen: list[Unseen] = []
        self._redact = Redactor()

    async def collect(self) -> Files:
        """Every file of the archive, redacted."""
        sight = await self._looker.look()
        if not any(sight.picture.all(one.about) for one in self._looker.program.reconcilers):
            raise NothingThere(_nothing(self._looker.namespace, sight))
        self._unseen += sight.unseen
        values = await self._secret_values(sight)
        self._redact = Redactor(values.values())
        files = {"README.txt": README.encode()}
        files |= await self._objects()
        files |= self._referenced(sight, values)
        files |= self._status(sight)
        files |= {EVENTS: await self._events(), "doctor.json": await self._doctor(sight)}
        files |= await self._logs(sight)
        about = About(
            version=slurm_operator.__version__,
            taken_at=sight.picture.now,
            kubernetes=str((await self._client.request("GET", "/version")).get("gitVersion", "")),
            namespace=self._looker.namespace,
            served=tuple(sorted(sight.picture.served, key=str)),
            is_scrubbed=not any(one.what.startswith(_SECRETS) for one in self._unseen),
            unseen=tuple(self._unseen),
            images=dict(sight.images),
        )
        return {**files, ABOUT: self._json(about)}

    def _json(self, value: object) -> bytes:
        """Indented for people, and redacted."""
        return wire.pretty(self._redact.value(wire.decode_any(wire.encode(value)))).encode()

    async def _secret_values(self, sight: Sight) -> SecretValues:
        """Values that must not turn up anywhere: of every Secret beside our objects. In memory only."""
        places = {one.key.namespace for one in clusters(sight.picture)} or {self._looker.namespace}
        found: dict[ObjectKey, Mapping[str, bytes]] = {}
        for namespace in sorted(places - {""}):
            try:
                for manifest in await self._list(kinds.SECRET, namespace):
                    body = wire.convert(manifest, _SecretBody)
                    if not body.type.startswith("helm.sh/"):
                        found[ObjectKey(namespace, manifest["metadata"]["name"])] = body.data or {}
            except KubeError as error:
                self._note(f"{_SECRETS} in {namespace}", error, f"list secrets in namespace {namespace}")
        return found

    async def _objects(self) -> Files:
        sources = self._looker.program.sources
        wanted: dict[Kind, set[str]] = {}
        for source in sources.records:
            wanted.setdefault(source.kind, set()).add(source.label_selector)
        for kind in sources.children:
            wanted.setdefault(kind, set()).add(sources.child_selector)
        files: Files = {}
        for kind, selectors in wanted.items():
            found = [one for selector in sorted(selectors) for one in await self._tried(kind, selector)]
            files[object_path(kind)] = wire.pretty([self._redact.manifest(one) for one in found]).encode()
        operators = await self._tried(kinds.DEPLOYMENT, OPERATOR, everywhere=True)
        files["objects/operator.json"] = wire.pretty(
            [self._redact.manifest(one) for one in operators]
        ).encode()
        return files

    async def _tried(self, kind: Kind, selector: str, *, everywhere: bool = False) -> list[Manifest]:
        namespace = self._looker.namespace if kind.namespaced and not everywhere else ""
        try:
            return await self._list(kind, namespace, selector)
        except NotFound:
            return []
        except KubeError as error:
            self._note(kind.plural, error, f"list {kind.plural}")
            return []

    def _note(self, what: str, error: KubeError, right: str) -> None:
        """Once for each thing: the look before may have noted it already."""
        if not any(one.what == what for one in self._unseen):
            right = right if isinstance(error, Forbidden) else ""
            self._unseen.append(Unseen(what=what, why=str(error), right=right))

    async def _list(self, kind: Kind, namespace: str, selector: str = "") -> list[Manifest]:
        selection = Selection(kind=kind, namespace=namespace, label_selector=selector)
        pages = [page async for page in self._client.list_pages(selection)]
        return [with_kind(wire.decode_any(bytes(item)), kind) for page in pages for item in page.items]

    def _referenced(self, sight: Sight, values: SecretValues) -> Files:
        picture = sight.picture
        secrets = [
            _named_object(
                key, without_guessable(found, values.get(key, {})) if isinstance(found, Secret) else found
            )
            for key, found in sorted(picture.secrets.items())
        ]
        maps = [_named_object(key, found) for key, found in sorted(picture.config_maps.items())]
        slurms = [
            Facts(namespace=key.namespace, name=key.name, facts=facts)
            for key, facts in sorted(picture.slurms.items())
        ]
        return {
            # Digests stand under the names of keys, so this one must not go through `value`.
            SECRETS: wire.pretty([self._redact_secret(one) for one in secrets]).encode(),
            CONFIG_MAPS: self._json(maps),
            SLURM: self._json(slurms),
        }

    def _redact_secret(self, one: Named) -> Named:
        """Its annotations may say anything; entries and digests are no secrets any more."""
        if one.secret is None:
            return one
        meta = one.secret.metadata
        notes = self._redact.manifest({"metadata": {"annotations": dict(meta.annotations)}})["metadata"]
        kept = wire.replace(meta, annotations=notes["annotations"])
        return wire.replace(one, secret=wire.replace(one.secret, metadata=kept))

    def _status(self, sight: Sight) -> Files:
        with sight.as_operator():
            judged = list(verdicts(self._looker.program.reconcilers, sight.picture))
        found = [status(one, judged, sight.unseen) for one in clusters(sight.picture)]
        text = screen(found, sight.unseen, sight.picture.now).plain
        return {"status.txt": self._redact.text(text).encode()}

    async def _events(self) -> bytes:
        found = await self._tried(kinds.EVENT, "")
        newest = sorted(found, key=lambda one: str(one["metadata"].get("creationTimestamp")))[-_MOST_EVENTS:]
        return wire.pretty([self._redact.manifest(one) for one in newest]).encode()

    async def _doctor(self, sight: Sight) -> bytes:
        found = clusters(sight.picture)
        namespace = self._looker.namespace or next((one.key.namespace for one in found), "default")
        return self._json(checkup.findings(await collection.collect_facts(self._client, namespace)))

    async def _logs(self, sight: Sight) -> Files:
        restarted = set(_restarted(sight.picture.all(Pod)))
        pods = await self._pods(self._looker.namespace, OUR_CHILDREN, "pods")
        operators = await self._pods("", OPERATOR, "logs of the operator")
        streams = [
            choice.Stream(pod.metadata.namespace, pod.metadata.name, container)
            for pod in (*pods, *operators)
            for container in pod.containers
        ]
        again = [stream for stream in streams if stream in restarted]
        gate = asyncio.Semaphore(_LOGS_AT_ONCE)
        found = await asyncio.gather(
            *(self._log(stream, gate, previous=False) for stream in streams),
            *(self._log(stream, gate, previous=True) for stream in again),
        )
        return dict(found)

    async def _pods(self, namespace: str, labels: str, what: str) -> list[choice.LoggedPod]:
        try:
            return await reading.pods(self._client, namespace, labels)
        except KubeError as error:
            self._note(what, error, "list pods" if namespace else "list pods in every namespace")
            return []

    async def _log(
        self, stream: choice.Stream, gate: asyncio.Semaphore, *, previous: bool
    ) -> tuple[str, bytes]:
        wanted = choice.Wanted(tail=self._tail, previous=previous, timestamps=True)
        async with gate:
            lines = [line.text async for line in reading.lines(self._client, [stream], wanted)]
        return log_path(stream, previous=previous), self._redact.text("\n".join([*lines, ""])).encode()


def _named_object(key: ObjectKey, found: Secret | ConfigMap | Unread | None) -> Named:
    return Named(
        namespace=key.namespace,
        name=key.name,
        secret=found if isinstance(found, Secret) else None,
        config_map=found if isinstance(found, ConfigMap) else None,
        unread=found.why if isinstance(found, Unread) else "",
    )


def without_guessable(secret: Secret, values: Mapping[str, bytes]) -> Secret:
    """Which entries there are; digests only of what is too long to be guessed."""
    digests = {
        entry: value_digest(values[entry]) if len(values.get(entry, b"")) >= _GUESSABLE_BYTES else REDACTED
        for entry in secret.digests
    }
    return wire.replace(secret, digests=digests)


def _restarted(pods: Iterable[Pod]) -> Iterable[choice.Stream]:
    """Containers that ended before: what they said last is often the cause."""
    for pod in pods:
        for one in (*pod.status.container_statuses, *pod.status.init_container_statuses):
            if one.restart_count:
                yield choice.Stream(pod.metadata.namespace, pod.metadata.name, one.name)


def default_name(namespace: str) -> str:
    return f"slurm-bundle-{namespace or 'all'}-{datetime.now(UTC):%Y%m%d-%H%M%S}.tar.gz"
