"""An API server that keeps a few objects, tells about their changes, and takes what the writer sends."""

import asyncio
from typing import Any

from fake_api_server import Answer, FakeApi

JAILED = "/apis/slurm.nebius.ai/v1alpha1/namespaces/slurm/jailedconfigs"
MAPS = "/api/v1/namespaces/slurm/configmaps"
SECRETS = "/api/v1/namespaces/slurm/secrets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/slurm/leases"


class SmallApi(FakeApi):
    def __init__(self) -> None:
        super().__init__(lists=[self.answer], watches=[self.watch], others=[self.answer])
        self.things: dict[str, dict[str, Any]] = {}
        self.history: list[tuple[int, str, str, dict[str, Any]]] = []
        self.news = asyncio.Condition()
        self.version = 100
        self.refuses: set[str] = set()  # Methods that get a 500.
        self.statuses: list[tuple[str, dict[str, tuple[str, str]]]] = []

    async def put(self, collection: str, name: str, **fields: Any) -> None:
        path = f"{collection}/{name}"
        old = self.things.get(path, {})
        metadata = {"name": name, "namespace": "slurm", "uid": f"uid-{name}", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}  # fmt: skip
        metadata |= old.get("metadata", {}) | fields.pop("metadata", {})
        await self._store(path, old | fields | {"metadata": metadata})

    async def delete(self, collection: str, name: str) -> None:
        path = f"{collection}/{name}"
        self.version += 1
        await self._tell("DELETED", path, self.things.pop(path))

    async def jailed(
        self, name: str, *paths: str, actions: bool = True, group: str = "", **metadata: Any
    ) -> None:
        """A JailedConfig whose paths end in the keys of the ConfigMap of its name."""
        labels = {"app.kubernetes.io/instance": "demo"} | (
            {"slurm.nebius.ai/jailed-aggregation": group} if group else {}
        )
        spec = {
            "configMap": {"name": name},
            "items": [{"key": path.rsplit("/", 1)[-1], "path": path} for path in paths],
        }
        spec |= {"updateActions": ["Reconfigure"]} if actions else {}
        await self.put(JAILED, name, spec=spec, metadata={"labels": labels} | metadata)

    def reasons(self, name: str) -> dict[str, str]:
        conditions = self.things[f"{JAILED}/{name}"].get("status", {}).get("conditions", [])
        return {condition["type"]: f"{condition['status']}/{condition['reason']}" for condition in conditions}

    def message(self, name: str, type_: str) -> str:
        conditions = self.things[f"{JAILED}/{name}"]["status"]["conditions"]
        return next(condition["message"] for condition in conditions if condition["type"] == type_)

    async def _store(self, path: str, thing: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        thing["metadata"] = thing["metadata"] | {"resourceVersion": str(self.version)}
        kind = "MODIFIED" if path in self.things else "ADDED"
        self.things[path] = thing
        await self._tell(kind, path, thing)
        return thing

    async def _tell(self, kind: str, path: str, thing: dict[str, Any]) -> None:
        self.history.append((self.version, kind, path, thing))
        async with self.news:
            self.news.notify_all()

    async def answer(self, answer: Answer) -> None:
        asked = answer.asked
        path = asked.path.removesuffix("/status")
        if asked.method in self.refuses:
            await answer.refuse(500, "InternalError", "no")
        elif asked.method == "PATCH":
            self._note(path, asked.json["status"])
            await answer.json(await self._store(path, self.things[path] | {"status": asked.json["status"]}))
        elif asked.method == "POST":
            name = asked.json["metadata"]["name"]
            await answer.json(await self._store(f"{path}/{name}", asked.json))
        elif asked.method == "PUT":
            await answer.json(await self._store(path, asked.json))
        elif path in self.things:
            await answer.json(self.things[path])
        elif any(path == collection for collection in (JAILED, MAPS)):
            items = [thing for where, thing in self.things.items() if _fits(asked.params, path, where, thing)]
            await answer.json(
                {"kind": "List", "metadata": {"resourceVersion": str(self.version)}, "items": items}
            )
        else:
            await answer.refuse(404, "NotFound", f"no {path}")

    def _note(self, path: str, status: dict[str, Any]) -> None:
        found = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
        self.statuses.append((path.rsplit("/", 1)[-1], found))

    async def watch(self, answer: Answer) -> None:
        asked = answer.asked
        seen = int(asked.params.get("resourceVersion", "0") or 0)
        await answer.begin()
        while True:
            for version, kind, path, thing in list(self.history):
                if version > seen and _fits(asked.params, asked.path, path, thing):
                    await answer.event(kind, thing)
            seen = self.version
            async with self.news:
                await self.news.wait()


def _fits(params: dict[str, str], collection: str, path: str, thing: dict[str, Any]) -> bool:
    label, _, value = params.get("labelSelector", "").partition("=")
    field, _, name = params.get("fieldSelector", "").partition("=")
    return (
        path.rpartition("/")[0] == collection
        and (not label or thing["metadata"].get("labels", {}).get(label) == value)
        and (not field or thing["metadata"]["name"] == name)
    )
