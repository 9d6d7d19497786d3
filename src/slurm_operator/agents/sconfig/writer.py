"""One pass after the other: look, decide, write, have Slurm read it, tell."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import structlog

from slurm_operator.agents.sconfig import decide as deciding
from slurm_operator.agents.sconfig import objects
from slurm_operator.agents.sconfig.decide import Hold, Pace, Step, Write, decide, paced
from slurm_operator.agents.sconfig.files import Batch, Result, Root, WantedFile
from slurm_operator.agents.sconfig.groups import Contents, Group, GroupKey, grouped
from slurm_operator.agents.sconfig.metrics import Metrics
from slurm_operator.agents.sconfig.report import Conditions, Reconfigured, finished, starting
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.conditions import Condition
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError, NotFound, NotLeader
from slurm_operator.kube.lease import clock_that_never_stops
from slurm_operator.kube.watch.cache import Cache
from slurm_operator.kube.watch.named_objects import NamedObjects
from slurm_operator.manifests.objects import ConfigMap
from slurm_operator.plan.conditions import settled

log = structlog.get_logger(__name__)

T = TypeVar("T")
X = TypeVar("X")

_OWNER = "writer"


class Writer:
    """Keeps the shared root as the JailedConfigs of one cluster say."""

    def __init__(
        self,
        client: Client,
        root: Root,
        configs: Cache[objects.JailedConfig],
        config_maps: NamedObjects[ConfigMap],
        reconfigure: Callable[[], Awaitable[Reconfigured]],
        metrics: Metrics,
        *,
        settle_seconds: float,
        clock: Callable[[], float] = clock_that_never_stops,
    ) -> None:
        self.changed = asyncio.Event()
        self._client = client
        self._root = root
        self._configs = configs
        self._config_maps = config_maps
        self._reconfigure = reconfigure
        self._metrics = metrics
        self._settle_seconds = settle_seconds
        self._clock = clock
        self._paces: dict[GroupKey, Pace] = {}
        # By uid. What we decided counts, also while the API server could not be told.
        self._conditions: dict[str, tuple[Condition, ...]] = {}
        self._is_swept = False
        self._told_holds: dict[GroupKey, str] = {}
        configs.subscribe(self._on_config)
        config_maps.subscribe(lambda key, found: self.changed.set())

    def _on_config(self, old: objects.JailedConfig | None, new: objects.JailedConfig | None) -> None:
        if old is None or new is None or _wish(old) != _wish(new):
            self.changed.set()

    async def run(self) -> None:
        """Pass after pass, until cancelled."""
        while True:
            self.changed.clear()
            try:
                until = await self.one_pass()
            except Exception as error:
                # Whatever it is, it must not end this: nobody would notice before a file is missed.
                is_expected = isinstance(error, KubeError)
                log.warning("a pass broke off; trying again", why=str(error), exc_info=not is_expected)
                until = self._clock() + deciding.FIRST_RETRY_SECONDS
            try:
                async with asyncio.timeout(max(0.0, until - self._clock())):
                    await self.changed.wait()
            except TimeoutError:
                pass

    async def one_pass(self) -> float:
        """When the next one is due, if nothing changes before."""
        groups = self._observed()
        files = [file for group in groups for file in group.files]
        looked = await self._looked(files)
        now = self._clock()
        self._paces = paced(self._paces, groups, now)
        steps = decide(groups, looked, self._paces, now)
        self._note_holds(steps)
        told = {step.group.key: await self._tell(starting(step)) for step in steps}
        await self._sweep(files, steps)
        batches = {
            step.group.key: await self._written(step)
            for step in steps
            if isinstance(step, Write) and told[step.group.key]
        }
        await self._settle([batch for batch in batches.values() if batch.replaced])
        steps = tuple(step for step in steps if not isinstance(step, Write) or step.group.key in batches)
        outcome = await self._reconfigured(deciding.to_reconfigure(steps, batches))
        for step in steps:
            await self._finish(step, batches.get(step.group.key), outcome.get(step.group.key))
        for key, is_told in told.items():
            if not is_told:
                self._paces[key] = deciding.failed(self._paces[key], self._clock())
        return deciding.look_again_at(steps, self._paces, self._clock())

    def _observed(self) -> tuple[Group, ...]:
        found = [each for each in self._configs.values() if not each.metadata.is_terminating]
        uids = {each.metadata.uid for each in found}
        self._conditions = {uid: told for uid, told in self._conditions.items() if uid in uids}
        names = {each.spec.config_map.name: each.metadata.namespace for each in found}
        keys = {name: ObjectKey(namespace, name) for name, namespace in names.items() if name}
        self._config_maps.want(_OWNER, keys.values())
        configs = [objects.jailed_config(each, self._latest(each)) for each in found]
        return grouped(configs, self._contents(keys))

    def _latest(self, found: objects.JailedConfig) -> tuple[Condition, ...]:
        return self._conditions.get(found.metadata.uid) or found.conditions

    def _contents(self, keys: Mapping[str, ObjectKey]) -> Contents:
        known = {name: key for name, key in keys.items() if self._config_maps.knows(key)}
        contents: dict[str, Mapping[str, bytes] | None] = {"": None}
        for name, key in known.items():
            found = self._config_maps.get(key)
            contents[name] = objects.content(found) if found is not None else None
        return contents

    async def _looked(self, files: Sequence[WantedFile]) -> dict[str, Result]:
        results = await _in_thread(self._root.look, files)
        return {result.path: result for result in results}

    async def _sweep(self, files: Sequence[WantedFile], steps: Sequence[Step]) -> None:
        """What an earlier writer left: once when all paths are known, then before each write."""
        is_first = not self._is_swept and not any(step.group.unread for step in steps)
        if not is_first and not any(isinstance(step, Write) for step in steps):
            return
        swept = await _in_thread(self._root.sweep, [file.path for file in files])
        self._is_swept |= is_first
        if swept.removed or swept.troubles:
            log.info("leftovers of an interrupted write", removed=swept.removed, troubles=swept.troubles)

    async def _written(self, step: Write) -> Batch:
        self._check_lease()
        batch = await _in_thread(self._root.write, step.group.files)
        for result in batch.results:
            self._metrics.files.labels(result.fate.name.lower()).inc()
            if result.is_new:
                log.info("file written", path=result.path, group=str(step.group.key), why=step.message)
            elif result.is_trouble:
                log.warning(result.message, path=result.path, group=str(step.group.key))
        return batch

    async def _settle(self, batches: Sequence[Batch]) -> None:
        """Keep the previous files for as long as other nodes may have their names cached."""
        if not batches:
            return
        await asyncio.sleep(self._settle_seconds)
        replaced = [leftover for batch in batches for leftover in batch.replaced]
        swept = await _in_thread(self._root.discard, replaced)
        for trouble in swept.troubles:
            log.warning(trouble)

    async def _reconfigured(self, groups: Sequence[Group]) -> dict[GroupKey, Reconfigured]:
        if not groups:
            return {}
        self._check_lease()
        log.info("asking Slurm to read its files", groups=", ".join(str(group.key) for group in groups))
        outcome = await self._reconfigure()
        self._metrics.reconfigures.labels("failed" if outcome.trouble else "done").inc()
        if outcome.trouble:
            log.warning("Slurm has not read its files", why=outcome.trouble)
        return dict.fromkeys((group.key for group in groups), outcome)

    async def _finish(self, step: Step, batch: Batch | None, outcome: Reconfigured | None) -> None:
        key, pace = step.group.key, self._paces[step.group.key]
        is_bad = (batch is not None and not batch.is_complete) or (outcome is not None and outcome.trouble)
        if is_bad:
            pace = deciding.failed(pace, self._clock())
        elif not isinstance(step, deciding.Wait):
            pace = deciding.succeeded(pace)
        self._paces[key] = pace
        await self._tell(finished(step, batch, outcome))

    def _check_lease(self) -> None:
        if not self._client.may_write():
            raise NotLeader("nothing is written: the lease is not ours")

    def _note_holds(self, steps: Sequence[Step]) -> None:
        """Said once, not with every pass."""
        holds = {step.group.key: step.message for step in steps if isinstance(step, Hold)}
        for key, message in holds.items():
            if self._told_holds.get(key) != message:
                log.warning("a group is not written", group=str(key), why=message)
        self._told_holds = holds
        self._metrics.held_groups.set(len(holds))

    async def _tell(self, conditions: Conditions) -> bool:
        """Whether the API server knows it now. Our own next pass does in any case."""
        by_name = {each.metadata.name: each for each in self._configs.values()}
        is_told = True
        for name, told in conditions.items():
            found = by_name.get(name)
            if found is not None:
                is_told &= await self._tell_one(found, told)
        return is_told

    async def _tell_one(self, found: objects.JailedConfig, told: tuple[Condition, Condition]) -> bool:
        before = self._latest(found)
        generation = found.metadata.generation
        conditions = settled(told, before, generation=generation, now=datetime.now(UTC))
        types = {condition.type for condition in conditions}
        known = [condition for condition in found.conditions if condition.type in types]
        if conditions == sorted(known, key=lambda condition: condition.type):
            self._conditions[found.metadata.uid] = tuple(conditions)
            return True
        manifest = {
            "metadata": {
                "name": found.metadata.name,
                "namespace": found.metadata.namespace,
                "uid": found.metadata.uid,
            },
            "status": {"conditions": codec.plain(conditions)},
        }
        try:
            written = await self._client.apply_status(objects.KIND, manifest)
        except NotFound:
            return True
        except KubeError as error:
            log.warning("conditions could not be told", key=str(key_of(found)), why=str(error))
            return False
        finally:
            self._conditions[found.metadata.uid] = tuple(conditions)
        self._configs.note_written(written)
        return True


async def _in_thread(call: Callable[[X], T], argument: X) -> T:
    """What has begun in the root is carried through, also when we are told to end: the next writer waits."""
    task = asyncio.ensure_future(asyncio.to_thread(call, argument))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _wish(found: objects.JailedConfig) -> tuple[object, ...]:
    """What of a JailedConfig is not our own doing."""
    metadata = found.metadata
    return metadata.uid, found.spec, metadata.labels, metadata.is_terminating, metadata.owner_references
